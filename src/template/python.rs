//! What Python says of values: their types' names, how they are ordered, how they are printed in code.

use std::cmp::Ordering;

use minijinja::Error;
use minijinja::value::ValueKind;

use super::conversions::fail;
use super::time;
use crate::value::Value;

/// The name of a value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "AnsibleUndefined",
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq if value.is_tuple() => "tuple",
        ValueKind::Seq | ValueKind::Iterable => "list",
        ValueKind::Map => "dict",
        _ => time::type_name(value).unwrap_or("object"),
    }
}

/// A boolean as the number that it is in Python; other values as they are.
pub(super) fn to_number(value: &Value) -> Value {
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        _ => value.clone(),
    }
}

/// How two values are ordered, which must hold nothing lazy; None: they are not (not a number).
///
/// # Errors
/// When Python does not compare values of their types; `sign` is the operator.
pub(super) fn order(a: &Value, b: &Value, sign: &str) -> Result<Option<Ordering>, Error> {
    use ValueKind::{Bool, Bytes, Iterable, Number, Seq, String};
    match (a.kind(), b.kind()) {
        (Number, Number) | (String, String) | (Bytes, Bytes) if !is_nan(a) && !is_nan(b) => Ok(Some(a.cmp(b))),
        (Number | Bool, Number | Bool) if is_nan(a) || is_nan(b) => Ok(None),
        (Number | Bool, Number | Bool) => Ok(Some(to_number(a).cmp(&to_number(b)))),
        (Seq | Iterable, Seq | Iterable) if a.is_tuple() == b.is_tuple() => {
            let (a, b): (Vec<Value>, Vec<Value>) = (a.try_iter()?.collect(), b.try_iter()?.collect());
            match a.iter().zip(&b).find(|(a, b)| a != b) {
                Some((a, b)) => order(a, b, sign),
                None => Ok(Some(a.len().cmp(&b.len()))),
            }
        }
        _ => match time::order(a, b) {
            Some(order) => Ok(Some(order)),
            None => Err(fail(format!("{sign} is not defined between {} and {}", type_name(a), type_name(b)))),
        },
    }
}

fn is_nan(value: &Value) -> bool {
    value.kind() == ValueKind::Number && !value.is_integer() && f64::try_from(value.clone()).is_ok_and(f64::is_nan)
}

/// Sorts by keys, as far as Python orders them; equal ones keep their order.
pub(super) fn sort<T>(items: &mut [(Vec<Value>, T)], reverse: bool) -> Result<(), Error> {
    let mut failed = None;
    items.sort_by(|(a, _), (b, _)| {
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        order_keys(a, b, "<").unwrap_or_else(|error| {
            failed.get_or_insert(error);
            Ordering::Equal
        })
    });
    failed.map_or(Ok(()), Err)
}

/// The order of keys of several values each.
pub(super) fn order_keys(a: &[Value], b: &[Value], sign: &str) -> Result<Ordering, Error> {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) => order(a, b, sign).map(|order| order.unwrap_or(Ordering::Equal)),
        None => Ok(a.len().cmp(&b.len())),
    }
}

/// A value as Python's `repr` gives it.
pub(super) fn repr(value: &Value) -> String {
    match value.as_str() {
        // Within a list every text is in quotes.
        Some(_) => {
            let listed = Value::from(vec![Value::from(value.as_str().unwrap_or_default())]).to_string();
            listed[1..listed.len() - 1].to_owned()
        }
        None => value.to_string(),
    }
}

/// The lines of a text; `keep` keeps their ends.
pub(super) fn python_lines(text: &str, keep: bool) -> Vec<&str> {
    let ends = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(ends) {
        let end = rest[at..].chars().next().map_or(1, char::len_utf8);
        let end = at + if rest[at..].starts_with("\r\n") { 2 } else { end };
        lines.push(if keep { &rest[..end] } else { &rest[..at] });
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}
