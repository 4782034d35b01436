//! Conversions of values for filters and tests: texts, numbers, lists, pairs.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind};

use crate::value::{Value, float, truth};

/// An error of a filter: one line, small first letter.
pub(super) fn fail(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// A number that is to be a length.
pub(super) fn bounded(length: i64, name: &str) -> Result<usize, Error> {
    const LONGEST: i64 = 1_000_000;
    match length {
        ..=LONGEST => Ok(usize::try_from(length).unwrap_or(0)),
        _ => Err(fail(format!("{name} of more than {LONGEST}"))),
    }
}

/// Refuses to make so many bytes: more is a slip, and would take the memory of the whole run. None: beyond all numbers.
pub(super) fn fits(bytes: Option<usize>) -> Result<(), Error> {
    const LONGEST: usize = 100_000_000;
    match bytes {
        Some(..=LONGEST) => Ok(()),
        _ => Err(fail("the result is too long")),
    }
}

/// A value as text, as Python's `str` gives it.
pub(super) fn to_text(value: &Value) -> String {
    value.to_string()
}

/// A value that must be text.
pub(super) fn only_text(value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| fail(format!("expected text, this is {}", kind(value))))
}

/// A value as a whole number.
pub(super) fn int(value: &Value) -> Result<i64, Error> {
    value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))
        .or_else(|| f64::try_from(value.clone()).ok().map(float::whole_part))
        .ok_or_else(|| fail(format!("{value:?} is not a number")))
}

/// Python's truth, with Ansible's strings (`'no'` is false).
pub(super) fn truthy(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => truth::of_any_text(text),
        None => value.is_true(),
    }
}

/// The items of a list; the keys of a mapping, the characters of a string.
pub(super) fn iterate(value: &Value) -> Result<Vec<Value>, Error> {
    if value.is_none() || value.is_number() || value.kind() == ValueKind::Bool {
        return Err(fail(format!("{} is not iterable", kind(value))));
    }
    if let Some(text) = value.as_str() {
        return Ok(text.chars().map(|c| Value::from(c.to_string())).collect());
    }
    value.try_iter()?.checked().collect()
}

/// The pairs of a mapping.
pub(super) fn pairs(value: &Value, what: &str) -> Result<Vec<(Value, Value)>, Error> {
    match value.as_object() {
        Some(object) if value.kind() == ValueKind::Map => Ok(object.try_iter_pairs().into_iter().flatten().collect()),
        _ => Err(fail(format!("{what} needs a mapping, this is {}", kind(value)))),
    }
}

/// A list, for filters that take nothing else.
pub(super) fn to_list(value: &Value, what: &str) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => iterate(value),
        _ => Err(fail(format!("{what} needs a list, this is {}", kind(value)))),
    }
}

/// What a value is, in a person's words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "undefined",
        ValueKind::None => "None",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String | ValueKind::Bytes => "a string",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "a mapping",
        _ => "an object",
    }
}

/// A member by a dotted path (`attribute='a.b.0'`); undefined if it is not there.
pub(super) fn member(value: &Value, path: &str) -> Value {
    path.split('.').fold(value.clone(), |value, part| {
        let found = match part.parse::<usize>() {
            Ok(index) => value.get_item_by_index(index).ok().filter(|v| !v.is_undefined()),
            Err(_) => None,
        };
        found.or_else(|| value.get_item(&Value::from(part)).ok()).unwrap_or(Value::UNDEFINED)
    })
}
