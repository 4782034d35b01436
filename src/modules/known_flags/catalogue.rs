//! A catalogue file: the flags of one version's programs, as `tools/catalogue` writes it.

use std::path::Path;

use indexmap::IndexMap;
use minijinja::value::ValueKind;
use serde::Deserialize;

use crate::modules::Error;
use crate::template::Scope;
use crate::value::truth;
use crate::value::{Value, yaml};

/// One version of one product.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    /// `karmada`, `kubernetes`
    pub product: String,
    /// The version whose programs were asked, `v1.19.0`.
    pub version: String,
    pub programs: IndexMap<String, Program>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// By name, without dashes.
    pub flags: IndexMap<String, Flag>,
    /// Names of feature gates; empty: the program does not tell them.
    #[serde(default)]
    pub gates: Vec<String>,
    /// What former versions had, and what to do instead.
    #[serde(default)]
    pub removed: IndexMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flag {
    #[serde(rename = "type")]
    kind: String,
    /// What the program says itself; for people.
    #[serde(default, rename = "default")]
    _default: Option<Value>,
    #[serde(default)]
    pub deprecated: bool,
}

impl Catalogue {
    /// Reads a file.
    pub(super) fn load_catalogue(path: &Path, scope: &Scope) -> Result<Catalogue, Error> {
        let no_catalogue = || Error::failed(format!("{} is not a catalogue of flags", path.display()));
        let node = yaml::load_yaml(path, &scope.keyring, &scope.duplicates)
            .map_err(|complaint| Error::Failed { message: complaint.to_string(), hint: complaint.hint })?;
        let value = node.ok_or_else(no_catalogue)?.to_value(&scope.keyring);
        value.ok().and_then(|value| Catalogue::deserialize(value).ok()).ok_or_else(no_catalogue)
    }

    /// `karmada v1.19.0`, for messages.
    pub(super) fn release(&self) -> String {
        format!("{} {}", self.product, self.version)
    }
}

impl Flag {
    /// What the flag expects, if the value is clearly invalid. Types with their own grammar are left to the program.
    pub(super) fn refuses(&self, value: &Value) -> Option<&'static str> {
        let text = flag_text(value);
        let (good, wanted) = match self.kind.as_str() {
            "bool" => (truth::of_flag(&text).is_some(), "true or false"),
            "int" | "int32" | "int64" => (text.parse::<i64>().is_ok(), "a whole number"),
            "uint" | "uint32" | "uint64" => (text.parse::<u64>().is_ok(), "a whole number, not negative"),
            "float" | "float32" | "float64" => (text.parse::<f64>().is_ok(), "a number"),
            "duration" => (is_duration(&text), "a duration such as 10s or 1h30m"),
            "ip" => (text.parse::<std::net::IpAddr>().is_ok(), "an IP address"),
            _ => (true, ""),
        };
        (!good).then_some(wanted)
    }
}

/// A value as written on a command line: lists with commas, mappings as `a=1,b=2`, truths as Go writes them.
pub(super) fn flag_text(value: &Value) -> String {
    let items = || value.try_iter().into_iter().flatten();
    match value.kind() {
        ValueKind::Seq => items().map(|item| flag_text(&item)).collect::<Vec<_>>().join(","),
        ValueKind::Map => {
            let pairs = items().map(|key| format!("{key}={}", flag_text(&value.get_item(&key).unwrap_or_default())));
            pairs.collect::<Vec<_>>().join(",")
        }
        ValueKind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
        _ => value.to_string(),
    }
}

/// Go's durations: `0`, or numbers with units.
fn is_duration(text: &str) -> bool {
    const UNITS: &[&str] = &["ns", "us", "µs", "ms", "s", "m", "h"];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(unit);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if number.parse::<f64>().is_err() || !UNITS.contains(&unit) {
            return false;
        }
        rest = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_go_s() {
        for good in ["0", "10s", "1h30m", "1.5h", "-5ms", "100us"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["", "10", "s", "1d", "1h30", "h1", "-"] {
            assert!(!is_duration(bad), "{bad}");
        }
    }

    #[test]
    fn values_stand_as_on_a_command_line() {
        let map = Value::from_pairs([("a", Value::from(true)), ("b", Value::from(2))]);
        assert_eq!(flag_text(&map), "a=true,b=2");
        assert_eq!(flag_text(&[Value::from("x"), Value::from(1)].into_iter().collect()), "x,1");
    }
}
