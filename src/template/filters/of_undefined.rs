//! Filters that may get undefined values: `default`, `mandatory`, `type_debug`, and the softener of member access.

use minijinja::value::{Object, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State};

use super::super::args::Args;
use super::super::conversions::to_text;
use super::super::{is_omit, lazy, python};
use crate::value::Value;
use crate::value::doc::LanguageItem;

type Raw = fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Value, Error>;

/// The filters of this file.
pub(crate) static FILTERS: &[(LanguageItem, Raw)] = &[
    (
        LanguageItem::new(
            "_soft",
            "Used internally for the operator . before default: members of an undefined value are undefined.",
        )
        .example("none"),
        soft,
    ),
    (
        LanguageItem::new("d", "The short name of default.")
            .takes("default_value='', boolean=false")
            .gives("no_such_variable | d(5)", "5"),
        default,
    ),
    (
        LanguageItem::new(
            "default",
            "A replacement for an undefined value; with boolean=true, also for an empty or false one.",
        )
        .takes("default_value='', boolean=false")
        .gives("no_such_variable | default('none')", "none"),
        default,
    ),
    (
        LanguageItem::new("mandatory", "The value; fails with the message if it is undefined.")
            .takes("msg=none")
            .example("inventory_hostname | mandatory('a host is needed')"),
        mandatory,
    ),
    (
        LanguageItem::new("type_debug", "The name of a value's type in Python.").gives("[1] | type_debug", "list"),
        type_debug,
    ),
];

/// Something without members: looking for one gives undefined, not an error.
#[derive(Debug)]
struct EmptyObject;

impl Object for EmptyObject {
    fn call_method(self: &std::sync::Arc<Self>, _: &mut State<'_, '_>, _: &str, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::UNDEFINED)
    }
}

/// The value, or [`EmptyObject`] for an undefined one.
fn soft(_: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let value = values.into_values().into_iter().next().unwrap_or(Value::UNDEFINED);
    Ok(if value.is_undefined() { Value::from_object(EmptyObject) } else { value })
}

/// `default(value='', boolean=False)`
fn default(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut values = values.into_values().into_iter();
    let value = values.next().unwrap_or(Value::UNDEFINED);
    let rest: Vec<Value> = values.collect();
    // The default may be undefined itself; it is so, then.
    let Ok(mut args) = Args::new(state, &rest)? else {
        return Ok(if value.is_undefined() { rest.into_iter().next().unwrap_or(Value::UNDEFINED) } else { value });
    };
    let default = args.opt("default_value").unwrap_or(Value::from(""));
    let boolean = args.opt("boolean").is_some_and(|boolean| boolean.is_true());
    args.no_more_arguments()?;
    let empty = value.is_undefined() || boolean && (!value.is_true() || is_omit(&value));
    Ok(if empty { default } else { value })
}

/// `mandatory(msg=None)`
fn mandatory(_: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut values = values.into_values().into_iter();
    match (values.next(), values.next()) {
        (Some(value), _) if !value.is_undefined() => Ok(value),
        (_, Some(message)) => {
            let message = message.get_attr("msg").ok().filter(|m| !m.is_undefined()).unwrap_or(message);
            Err(super::super::conversions::fail(to_text(&message)))
        }
        _ => Err(Error::from(ErrorKind::UndefinedError)),
    }
}

/// The name of Python's type.
fn type_debug(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let value = values.into_values().into_iter().next().unwrap_or(Value::UNDEFINED);
    let value = match lazy::needs_settling(&value) {
        true => lazy::settle_argument(&value, &lazy::scope_of(state)).map_err(super::super::Error::into_engine)?,
        false => value,
    };
    Ok(Value::from(python::type_name(&value)))
}
