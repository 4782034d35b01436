//! Filters that treat lists as sets. The order is that of first appearance.

use std::collections::HashSet;

use minijinja::{Error, State};

use super::super::args::{Args, items, member, text};
use super::super::environment::Filter;
use crate::value::Value;
use crate::value::doc::Word;

/// The filters of this file.
pub const FILTERS: &[(Word, Filter)] = &[
    (
        Word::new("difference", "The items of a list that another has not, each once.")
            .takes("other")
            .gives("[1, 2, 3] | difference([2])", "[1, 3]"),
        difference,
    ),
    (
        Word::new("intersect", "The items that two lists have in common, each once.")
            .takes("other")
            .gives("[1, 2, 3] | intersect([2, 3, 4])", "[2, 3]"),
        intersect,
    ),
    (
        Word::new("symmetric_difference", "The items that only one of two lists has, each once.")
            .takes("other")
            .gives("[1, 2] | symmetric_difference([2, 3])", "[1, 3]"),
        symmetric_difference,
    ),
    (
        Word::new("union", "The items of two lists, each once.")
            .takes("other")
            .gives("[1, 2] | union([2, 3])", "[1, 2, 3]"),
        union,
    ),
    (
        Word::new("unique", "The items of a list, each once.")
            .takes("case_sensitive=none, attribute=none")
            .gives("[1, 2, 1] | unique", "[1, 2]"),
        unique,
    ),
];

fn both(mut args: Args) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let both = (items(&args.req("a")?)?, items(&args.req("b")?)?);
    args.end()?;
    Ok(both)
}

fn distinct(items: impl IntoIterator<Item = Value>) -> Value {
    let mut seen = HashSet::new();
    Value::from(items.into_iter().filter(|item| seen.insert(item.clone())).collect::<Vec<_>>())
}

pub fn union(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    Ok(distinct(a.into_iter().chain(b)))
}

pub fn difference(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let b: HashSet<Value> = b.into_iter().collect();
    Ok(distinct(a.into_iter().filter(|item| !b.contains(item))))
}

pub fn intersect(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let b: HashSet<Value> = b.into_iter().collect();
    Ok(distinct(a.into_iter().filter(|item| b.contains(item))))
}

pub fn symmetric_difference(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let (in_a, in_b): (HashSet<Value>, HashSet<Value>) = (a.iter().cloned().collect(), b.iter().cloned().collect());
    let only_a = a.into_iter().filter(|item| !in_b.contains(item));
    Ok(distinct(only_a.chain(b.into_iter().filter(|item| !in_a.contains(item)))))
}

/// `unique(case_sensitive=False, attribute=None)`; Ansible's compares strings with case unless told otherwise.
pub fn unique(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = items(&args.req("a")?)?;
    let case = args.opt("case_sensitive").filter(|case| !case.is_none());
    let attribute = args.opt("attribute").filter(|attribute| !attribute.is_none()).map(|a| text(&a));
    args.end()?;
    // Said False outright, or by not being said where an attribute is given: Jinja's rule.
    let fold = case.map_or(attribute.is_some(), |case| !case.is_true());
    let mut seen = HashSet::new();
    let key = |item: &Value| {
        let value = attribute.as_deref().map_or_else(|| item.clone(), |path| member(item, path));
        match value.as_str() {
            Some(text) if fold => Value::from(text.to_lowercase()),
            _ => value,
        }
    };
    Ok(Value::from(list.into_iter().filter(|item| seen.insert(key(item))).collect::<Vec<_>>()))
}
