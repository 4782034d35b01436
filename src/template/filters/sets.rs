//! Filters that treat lists as sets. The order is that of first appearance.

use std::collections::HashSet;

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, kind, member, to_text};
use super::super::python;
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("difference", "The items of a list that are not in another list, without duplicates.")
            .takes("other")
            .gives("[1, 2, 3] | difference([2])", "[1, 3]"),
        difference,
    ),
    (
        LanguageItem::new("intersect", "The items that two lists have in common, without duplicates.")
            .takes("other")
            .gives("[1, 2, 3] | intersect([2, 3, 4])", "[2, 3]"),
        intersect,
    ),
    (
        LanguageItem::new("symmetric_difference", "The items that only one of two lists has, without duplicates.")
            .takes("other")
            .gives("[1, 2] | symmetric_difference([2, 3])", "[1, 3]"),
        symmetric_difference,
    ),
    (
        LanguageItem::new("union", "The items of two lists, without duplicates.")
            .takes("other")
            .gives("[1, 2] | union([2, 3])", "[1, 2, 3]"),
        union,
    ),
    (
        LanguageItem::new("unique", "The items of a list, without duplicates.")
            .takes("case_sensitive=none, attribute=none")
            .gives("[1, 2, 1] | unique", "[1, 2]"),
        unique,
    ),
];

fn both(mut args: Args) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let both = (iterate(&args.req("a")?)?, iterate(&args.req("b")?)?);
    args.no_more_arguments()?;
    Ok(both)
}

/// Whether a value can be in a set of Python's: no list and no mapping, nor a tuple with one in it.
pub(super) fn hashable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Map => false,
        ValueKind::Seq | ValueKind::Iterable => {
            value.is_tuple() && value.try_iter().is_ok_and(|mut items| items.all(|item| hashable(&item)))
        }
        _ => true,
    }
}

/// What Python's equality looks at: true is 1.
fn key(value: &Value) -> Value {
    match value.kind() {
        ValueKind::Bool => python::to_number(value),
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().into_iter().flatten().map(|item| key(&item)).collect(),
        ValueKind::Map => {
            let pairs = value.as_object().and_then(|map| map.try_iter_pairs()).into_iter().flatten();
            Value::from_pairs(pairs.map(|(name, item)| (name, key(&item))))
        }
        _ => value.clone(),
    }
}

fn keys(items: &[Value]) -> HashSet<Value> {
    items.iter().map(key).collect()
}

fn distinct(items: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(key(item))).collect()
}

pub(super) fn union(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    Ok(Value::from(distinct(a.into_iter().chain(b))))
}

pub(super) fn difference(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let b = keys(&b);
    Ok(Value::from(distinct(a.into_iter().filter(|item| !b.contains(&key(item))))))
}

/// Of equal items (`true` and `1`) that of the shorter list is taken, as Python's sets do; of lists, which are in no
/// sets, that of the first.
pub(super) fn intersect(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let sets = a.iter().chain(&b).all(hashable);
    let (a, b) = (distinct(a), distinct(b));
    let (from, other) = if sets && b.len() <= a.len() { (b, a) } else { (a, b) };
    let other = keys(&other);
    Ok(Value::from(from.into_iter().filter(|item| other.contains(&key(item))).collect::<Vec<_>>()))
}

pub(super) fn symmetric_difference(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    let (a, b) = both(args)?;
    let (in_a, in_b) = (keys(&a), keys(&b));
    let only_a = a.into_iter().filter(|item| !in_b.contains(&key(item)));
    Ok(Value::from(distinct(only_a.chain(b.into_iter().filter(|item| !in_a.contains(&key(item)))))))
}

/// `a is subset(b)`, of what can be in sets.
pub(crate) fn subset(a: &[Value], b: &[Value]) -> Result<bool, Error> {
    match a.iter().chain(b).find(|item| !hashable(item)) {
        Some(item) => Err(fail(format!("subset and superset need plain items, and one is {}", kind(item)))),
        None => Ok(keys(a).is_subset(&keys(b))),
    }
}

/// `unique(case_sensitive=None, attribute=None)`: case does not count unless said so, but it does where an item is a list
/// or a mapping.
pub(super) fn unique(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = iterate(&args.req("a")?)?;
    let case = args.opt("case_sensitive").filter(|case| !case.is_none()).map(|case| case.is_true());
    let attribute = args.opt("attribute").filter(|attribute| !attribute.is_none()).map(|a| to_text(&a));
    args.no_more_arguments()?;
    let part = |item: &Value| attribute.as_deref().map_or_else(|| item.clone(), |path| member(item, path));
    let plain = list.iter().all(|item| hashable(&part(item)));
    if !plain && (attribute.is_some() || case == Some(false)) {
        return Err(fail("unique does not support attribute and case_sensitive with lists and mappings"));
    }
    let fold = plain && case != Some(true);
    let mut seen = HashSet::new();
    let compared = |item: &Value| {
        let value = part(item);
        match value.as_str() {
            Some(text) if fold => Value::from(text.to_lowercase()),
            _ => key(&value),
        }
    };
    Ok(Value::from(list.into_iter().filter(|item| seen.insert(compared(item))).collect::<Vec<_>>()))
}
