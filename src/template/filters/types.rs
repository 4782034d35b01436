//! Filters that turn one kind of value into another, or choose between values.

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::{Args, fail, text};
use super::super::{jinja_tests, mutable};
use crate::value::Value;

/// Makes a list or mapping one that methods can change.
pub fn mutable(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    Ok(mutable::mutable(args.req("value")?))
}

/// A boolean of what people write for one.
pub fn bool(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    args.end()?;
    boolean(&value).map(Value::from).ok_or_else(|| fail(format!("{value:?} is not a boolean")))
}

/// What a value means as a boolean; None: neither.
pub fn boolean(value: &Value) -> Option<bool> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true()),
        ValueKind::None => Some(false),
        ValueKind::Number => Some(value.as_i64() == Some(1)),
        _ => match text(value).to_lowercase().as_str() {
            "yes" | "on" | "1" | "true" | "t" | "y" | "1.0" => Some(true),
            "no" | "off" | "0" | "false" | "f" | "n" | "0.0" | "" => Some(false),
            _ => None,
        },
    }
}

/// `ternary(true_val, false_val, none_val=None)`
pub fn ternary(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (value, yes, no) = (args.req("value")?, args.req("true_val")?, args.req("false_val")?);
    let none = args.opt("none_val").filter(|none| !none.is_none());
    args.end()?;
    Ok(match none {
        Some(none) if value.is_none() => none,
        _ if value.is_true() => yes,
        _ => no,
    })
}

/// `'1.2' | version('1.0', '>=')`
pub fn version(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    jinja_tests::version(state, args).map(Value::from)
}
