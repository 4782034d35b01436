//! Filters that apply another filter or test to every item: `map`, `select`, `reject`, `selectattr`, `groupby`.

use minijinja::value::{Kwargs, Tuple};
use minijinja::{Error, ErrorKind, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, member, to_text};
use super::{DelegatedCall, by_name};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new(
            "groupby",
            "Groups the items of a list by a member. Returns pairs of a value and its items, sorted by value.",
        )
        .takes("attribute, default=none")
        .gives("[{'n': 'a', 'z': 1}, {'n': 'b', 'z': 1}] | groupby('z') | map('first')", "[1]"),
        groupby,
    ),
    (
        LanguageItem::new(
            "map",
            "Applies a filter to every item of a list, or returns a member of each with attribute.",
        )
        .takes("filter, arguments..., attribute=none, default=none")
        .gives("[{'n': 'a'}, {'n': 'b'}] | map(attribute='n')", "['a', 'b']"),
        map,
    ),
    (
        LanguageItem::new("reject", "The items of a list that fail a test; without a test, those that are false.")
            .takes("test, arguments...")
            .gives("[1, 2, 3] | reject('odd')", "[2]"),
        reject,
    ),
    (
        LanguageItem::new("rejectattr", "The items of a list whose member fails a test.")
            .takes("attribute, test, arguments...")
            .gives("[{'n': 1}, {'n': 2}] | rejectattr('n', 'eq', 1)", "[{'n': 2}]"),
        rejectattr,
    ),
    (
        LanguageItem::new("select", "The items of a list that pass a test; without a test, those that are true.")
            .takes("test, arguments...")
            .gives("[1, 2, 3] | select('odd')", "[1, 3]"),
        select,
    ),
    (
        LanguageItem::new("selectattr", "The items of a list whose member passes a test.")
            .takes("attribute, test, arguments...")
            .gives("[{'n': 1}, {'n': 2}] | selectattr('n', 'gt', 1)", "[{'n': 2}]"),
        selectattr,
    ),
];

/// `map('filter', args...)` or `map(attribute='a.b', default=x)`.
pub(super) fn map(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = args.req("value")?;
    // What is false has no items, whatever it is.
    let list = if list.is_true() { iterate(&list)? } else { Vec::new() };
    if let Some(attribute) = args.named_argument("attribute") {
        let default = args.named_argument("default");
        args.no_more_arguments()?;
        let path = to_text(&attribute);
        let found = |item: &Value| {
            let found = member(item, &path);
            if found.is_undefined() { default.clone().unwrap_or(found) } else { found }
        };
        return defined(list.iter().map(found).collect(), &path);
    }
    let name = args.text_argument("filter")?;
    let handed = DelegatedCall { positional: args.rest(), named: args.rest_named() };
    let mapped = list.into_iter().map(|item| by_name(&name, state, item, &handed));
    mapped.collect::<Result<Vec<_>, Error>>().map(Value::from)
}

/// A list in which nothing may be undefined.
fn defined(list: Vec<Value>, path: &str) -> Result<Value, Error> {
    if list.iter().any(Value::is_undefined) {
        return Err(super::super::Error::Undefined { name: path.to_owned(), origin: None }.into_engine());
    }
    Ok(Value::from(list))
}

/// `select('test', args...)`; without a test, what is true.
pub(super) fn select(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    filtered(state, args, false, true)
}

/// `reject('test', args...)`
pub(super) fn reject(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    filtered(state, args, false, false)
}

/// `selectattr('a.b', 'test', args...)`
pub(super) fn selectattr(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    filtered(state, args, true, true)
}

/// `rejectattr('a.b', 'test', args...)`
pub(super) fn rejectattr(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    filtered(state, args, true, false)
}

fn filtered(state: &mut State<'_, '_>, mut args: Args, by_member: bool, wanted: bool) -> Result<Value, Error> {
    let list = args.req("value")?;
    let list = if list.is_true() { iterate(&list)? } else { Vec::new() };
    let path = if by_member { Some(args.text_argument("attribute")?) } else { None };
    let test = args.opt("test").map(|test| to_text(&test));
    let mut handed = args.rest();
    let named = args.rest_named();
    if !named.is_empty() {
        handed.push(named.into_iter().collect::<Kwargs>().into());
    }
    let mut kept = Vec::new();
    for item in list {
        let value = path.as_deref().map_or_else(|| item.clone(), |path| member(&item, path));
        let holds = match &test {
            None if value.is_undefined() => return Err(Error::from(ErrorKind::UndefinedError)),
            None => value.is_true(),
            Some(test) => perform(state, test, value, &handed)?,
        };
        if holds == wanted {
            kept.push(item);
        }
    }
    Ok(Value::from(kept))
}

fn perform(state: &mut State<'_, '_>, test: &str, value: Value, handed: &[Value]) -> Result<bool, Error> {
    let mut values = vec![value];
    values.extend(handed.iter().cloned());
    state.perform_test(test, &values).map_err(|error| match error.kind() {
        ErrorKind::UnknownTest => fail(format!("there is no test {test:?}")),
        _ => error,
    })
}

/// `groupby('a.b', default=x)`: pairs of the value and the items that have it, by value.
pub(super) fn groupby(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = iterate(&args.req("value")?)?;
    let (path, default) = (args.text_argument("attribute")?, args.opt("default"));
    args.no_more_arguments()?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for item in list {
        let found = member(&item, &path);
        let found = if found.is_undefined() { default.clone().unwrap_or(found) } else { found };
        if found.is_undefined() {
            return Err(super::super::Error::Undefined { name: path, origin: None }.into_engine());
        }
        match groups.iter_mut().find(|(key, _)| *key == found) {
            Some((_, items)) => items.push(item),
            None => groups.push((found, vec![item])),
        }
    }
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    let group = |(key, items)| Value::from(Tuple::new(vec![key, Value::from(items)]));
    Ok(Value::from(groups.into_iter().map(group).collect::<Vec<Value>>()))
}
