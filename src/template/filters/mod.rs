//! The filters. To add one: write `fn name(state: &mut State, args: Args) -> Result<Value, Error>` in the file of its
//! theme, its test beside it or a line in `cases.yml`, and its line in [`FILTERS`], which is sorted.
//! A filter gets settled values (nothing lazy); one that is undefined passes it by.

mod choose;
mod encoding;
mod formats;
mod hashes;
mod lists;
mod mappings;
mod network;
mod numbers;
pub mod of_undefined;
mod paths;
mod patterns;
mod random;
mod sets;
mod texts;
mod types;

pub use hashes::{crypt, random_salt};
pub use paths::{expand_home, glob};
pub use patterns::regex;

use minijinja::{Error, State};

use super::environment::Filter;
use super::time;
use crate::value::Value;

/// Every filter that gets no undefined values, by name.
pub static FILTERS: &[(&str, Filter)] = &[
    ("_mutable", types::mutable),
    ("_percent", texts::percent),
    ("b64decode", encoding::b64decode),
    ("b64encode", encoding::b64encode),
    ("basename", paths::basename),
    ("bool", types::bool),
    ("center", texts::center),
    ("checksum", hashes::checksum),
    ("combinations", lists::combinations),
    ("combine", mappings::combine),
    ("comment", texts::comment),
    ("commonpath", paths::commonpath),
    ("dict2items", mappings::dict2items),
    ("difference", sets::difference),
    ("dirname", paths::dirname),
    ("expanduser", paths::expanduser),
    ("expandvars", paths::expandvars),
    ("extract", lists::extract),
    ("fileglob", paths::fileglob),
    ("flatten", lists::flatten),
    ("float", numbers::float),
    ("forceescape", texts::escape),
    ("format", texts::format),
    ("from_json", formats::from_json),
    ("from_yaml", formats::from_yaml),
    ("from_yaml_all", formats::from_yaml_all),
    ("groupby", choose::groupby),
    ("hash", hashes::hash),
    ("human_readable", numbers::human_readable),
    ("human_to_bytes", numbers::human_to_bytes),
    ("int", numbers::int),
    ("intersect", sets::intersect),
    ("ipaddr", network::ipaddr),
    ("ipv4", network::ipv4),
    ("ipv6", network::ipv6),
    ("ipwrap", network::ipwrap),
    ("items2dict", mappings::items2dict),
    ("join", lists::join),
    ("json_query", formats::json_query),
    ("log", numbers::log),
    ("map", choose::map),
    ("max", lists::max),
    ("md5", hashes::md5),
    ("min", lists::min),
    ("normpath", paths::normpath),
    ("password_hash", hashes::password_hash),
    ("path_join", paths::path_join),
    ("permutations", lists::permutations),
    ("pow", numbers::pow),
    ("product", lists::product),
    ("quote", texts::quote),
    ("random", random::random),
    ("realpath", paths::realpath),
    ("regex_escape", patterns::regex_escape),
    ("regex_findall", patterns::regex_findall),
    ("regex_replace", patterns::regex_replace),
    ("regex_search", patterns::regex_search),
    ("reject", choose::reject),
    ("rejectattr", choose::rejectattr),
    ("rekey_on_member", mappings::rekey_on_member),
    ("relpath", paths::relpath),
    ("replace", texts::replace),
    ("root", numbers::root),
    ("select", choose::select),
    ("selectattr", choose::selectattr),
    ("sha1", hashes::sha1),
    ("shuffle", random::shuffle),
    ("sort", lists::sort),
    ("split", texts::split),
    ("splitext", paths::splitext),
    ("splitlines", texts::splitlines),
    ("strftime", time::strftime),
    ("subelements", lists::subelements),
    ("symmetric_difference", sets::symmetric_difference),
    ("ternary", types::ternary),
    ("to_datetime", time::to_datetime),
    ("to_json", formats::to_json),
    ("to_nice_json", formats::to_nice_json),
    ("to_nice_yaml", formats::to_nice_yaml),
    ("to_uuid", hashes::to_uuid),
    ("to_yaml", formats::to_yaml),
    ("tojson", formats::to_json),
    ("truncate", texts::truncate),
    ("union", sets::union),
    ("unique", sets::unique),
    ("unvault", encoding::unvault),
    ("urldecode", encoding::urldecode),
    ("urlsplit", network::urlsplit),
    ("vault", encoding::vault),
    ("version", types::version),
    ("version_compare", types::version),
    ("win_basename", paths::win_basename),
    ("wordcount", texts::wordcount),
    ("wordwrap", texts::wordwrap),
    ("zip", lists::zip),
    ("zip_longest", lists::zip_longest),
];

/// The engine's own filters that mean what Ansible means.
pub fn engine_filters() -> Vec<(&'static str, Value)> {
    use minijinja::filters as own;
    vec![
        ("abs", Value::from_function(own::abs)),
        ("attr", Value::from_function(own::attr)),
        ("batch", Value::from_function(own::batch)),
        ("capitalize", Value::from_function(own::capitalize)),
        ("count", Value::from_function(own::length)),
        ("dictsort", Value::from_function(own::dictsort)),
        ("e", Value::from_function(own::escape)),
        ("escape", Value::from_function(own::escape)),
        ("first", Value::from_function(own::first)),
        ("indent", Value::from_function(own::indent)),
        ("items", Value::from_function(own::items)),
        ("last", Value::from_function(own::last)),
        ("length", Value::from_function(own::length)),
        ("list", Value::from_function(own::list)),
        ("lower", Value::from_function(own::lower)),
        ("pprint", Value::from_function(own::pprint)),
        ("reverse", Value::from_function(own::reverse)),
        ("round", Value::from_function(own::round)),
        ("safe", Value::from_function(own::safe)),
        ("slice", Value::from_function(own::slice)),
        ("string", Value::from_function(own::string)),
        ("sum", Value::from_function(own::sum)),
        ("title", Value::from_function(own::title)),
        ("trim", Value::from_function(own::trim)),
        ("upper", Value::from_function(own::upper)),
        ("urlencode", Value::from_function(own::urlencode)),
    ]
}

/// Calls one of the engine's filters with settled arguments.
pub fn call_engine_filter(filter: &Value, state: &mut State<'_, '_>, values: &[Value]) -> Result<Value, Error> {
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
pub fn by_name(name: &str, state: &mut State<'_, '_>, first: Value, args: &Handed) -> Result<Value, Error> {
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
        minijinja::ErrorKind::UnknownFilter => super::args::fail(format!("there is no filter {name:?}")),
        _ => error,
    })
}

/// What is handed on to a filter or test that is named by an argument.
pub struct Handed {
    pub positional: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted_and_names_nothing_twice() {
        assert!(super::FILTERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
