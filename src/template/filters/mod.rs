//! The filters. To add one: write `fn name(state: &mut State, args: Args) -> Result<Value, Error>` in the file of its
//! theme, and its line in the list `FILTERS` at the top of that file, which is sorted: name, what is said of it, and an
//! example, which is tested.
//! A filter gets settled values (nothing lazy); one that is undefined passes it by.

mod choose;
mod crypt;
mod encoding;
mod formats;
mod hashes;
mod html;
mod lists;
mod mappings;
mod network;
mod numbers;
pub(super) mod of_undefined;
mod paths;
mod patterns;
mod random;
mod sequences;
mod services;
mod sets;
mod texts;
pub(super) mod times;
mod types;
mod urls;
mod wrap;

pub(super) use crypt::random_salt;
pub use crypt::{Hashing, crypt};
pub(super) use paths::glob;
pub(super) use patterns::regex;
pub(super) use sets::subset;
pub(super) use texts::split;
pub(super) use urls::Url;

use minijinja::{Error, State, filters as own};

use super::args::Filter;
use super::{lazy, own as written};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// Every filter that gets no undefined values, theme by theme; each with what is said of it.
static THEMES: &[&[(LanguageItem, Filter)]] = &[
    choose::FILTERS,
    encoding::FILTERS,
    formats::FILTERS,
    hashes::FILTERS,
    html::FILTERS,
    lists::FILTERS,
    mappings::FILTERS,
    network::FILTERS,
    numbers::FILTERS,
    paths::FILTERS,
    patterns::FILTERS,
    random::FILTERS,
    sequences::FILTERS,
    services::FILTERS,
    sets::FILTERS,
    texts::FILTERS,
    types::FILTERS,
    urls::FILTERS,
    wrap::FILTERS,
    times::FILTERS,
];

/// Every filter that gets no undefined values.
pub(super) fn all_filters() -> impl Iterator<Item = &'static (LanguageItem, Filter)> {
    THEMES.iter().copied().flatten()
}

/// A filter of the template engine itself.
pub(super) type EngineFilter = fn() -> Value;

/// The engine's own filters that mean what Ansible means.
pub(super) static ENGINE_FILTERS: &[(LanguageItem, EngineFilter)] = &[
    (
        LanguageItem::new("attr", "An attribute of a value by its name; unlike a dot, never an item of that name.")
            .takes("name")
            .example("{'a': 1} | attr('a')"),
        || Value::from_function(own::attr),
    ),
    (
        LanguageItem::new("capitalize", "A text with its first letter in upper case and all others in lower case.")
            .gives("'eTCD' | capitalize", "Etcd"),
        || Value::from_function(own::capitalize),
    ),
    (
        LanguageItem::new("count", "How many items a list or mapping has, or characters a text.")
            .gives("[1, 2] | count", "2"),
        || Value::from_function(own::length),
    ),
    (
        LanguageItem::new("first", "The first item of a list, or the first character of a text.")
            .gives("[3, 1] | first", "3"),
        || Value::from_function(own::first),
    ),
    (
        LanguageItem::new("items", "A mapping as a list of pairs of a key and a value.")
            .gives("{'a': 1} | items | map('last')", "[1]"),
        || Value::from_function(own::items),
    ),
    (
        LanguageItem::new("length", "How many items a list or mapping has, or characters a text.")
            .gives("'etcd' | length", "4"),
        || Value::from_function(own::length),
    ),
    (LanguageItem::new("lower", "A text in lower case.").gives("'ETCD' | lower", "etcd"), || {
        Value::from_function(own::lower)
    }),
    (LanguageItem::new("safe", "A text that escape does not change.").gives("'a' | safe", "a"), || {
        Value::from_function(own::safe)
    }),
    (LanguageItem::new("string", "A value as text.").gives("1 | string", "1"), || Value::from_function(own::string)),
    (
        LanguageItem::new("title", "A text with the first letter of every word in upper case.")
            .gives("'etcd cluster' | title", "Etcd Cluster"),
        || Value::from_function(own::title),
    ),
    (
        LanguageItem::new("trim", "A text without spaces, or other characters, at its start and end.")
            .takes("chars=none")
            .gives("'  a ' | trim", "a"),
        || Value::from_function(own::trim),
    ),
    (LanguageItem::new("upper", "A text in upper case.").gives("'etcd' | upper", "ETCD"), || {
        Value::from_function(own::upper)
    }),
];

/// Calls one of the engine's filters with settled arguments.
pub(super) fn call_engine_filter(filter: &Value, state: &mut State<'_, '_>, values: &[Value]) -> Result<Value, Error> {
    if let Some(undefined) = values.iter().find(|value| value.is_undefined()) {
        return Ok(undefined.clone());
    }
    let settle = |value: &Value| match super::lazy::needs_settling(value) {
        true => super::lazy::settle_argument(value, &super::lazy::scope_of(state)).map_err(super::Error::into_engine),
        false => Ok(value.clone()),
    };
    let values = values.iter().map(settle).collect::<Result<Vec<_>, Error>>()?;
    filter.call(state, &values)
}

/// Calls a filter by name, for `map('name', ...)`.
pub(super) fn by_name(
    name: &str,
    state: &mut State<'_, '_>,
    first: Value,
    args: &DelegatedCall,
) -> Result<Value, Error> {
    if lazy::scope_of(state).engine.programs().find_program_path(written::ProgramKind::Filter, name).is_some() {
        return written::call_filter(state, name, first, args.positional.clone(), args.named.clone());
    }
    let mut values = vec![first];
    values.extend(args.positional.iter().cloned());
    if !args.named.is_empty() {
        values.push(
            args.named
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect::<minijinja::value::Kwargs>()
                .into(),
        );
    }
    state.apply_filter(name, &values).map_err(|error| match error.kind() {
        minijinja::ErrorKind::UnknownFilter => super::conversions::fail(format!("there is no filter {name:?}")),
        _ => error,
    })
}

/// What is handed on to a filter or test that is named by an argument.
pub(super) struct DelegatedCall {
    pub positional: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_theme_is_sorted() {
        for theme in super::THEMES {
            assert!(theme.windows(2).all(|pair| pair[0].0.name < pair[1].0.name));
        }
    }
}
