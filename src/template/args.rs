//! The arguments of a filter, test or lookup, taken in the order of its parameters, as Python binds them.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::lazy;
use crate::value::{Value, float, truth};

/// Arguments, settled (no lazy parts), with nothing undefined among them.
pub(super) struct Args {
    positional: std::vec::IntoIter<Value>,
    named: Vec<(String, Value)>,
}

/// An error of a filter: one line, small first letter.
pub(super) fn fail(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

impl Args {
    /// Arguments as the engine gives them; `Err(value)` with an undefined one, which the caller passes on.
    pub(super) fn new(state: &State<'_, '_>, values: &[Value]) -> Result<Result<Self, Value>, Error> {
        if let Some(undefined) = values.iter().find(|value| value.is_undefined()) {
            return Ok(Err(undefined.clone()));
        }
        let settle = |value: &Value| {
            if !lazy::needs_settling(value) {
                return Ok(value.clone());
            }
            lazy::settle_argument(value, &lazy::scope_of(state)).map_err(super::Error::into_engine)
        };
        let (positional, named) = match values.split_last() {
            Some((last, first)) if last.is_kwargs() => (first, Some(last)),
            _ => (values, None),
        };
        let positional = positional.iter().map(settle).collect::<Result<Vec<_>, Error>>()?;
        let mut pairs = Vec::new();
        if let Some(named) = named {
            let kwargs = Kwargs::try_from(named.clone())?;
            for name in kwargs.args() {
                let value: Value = kwargs.peek(name)?;
                if value.is_undefined() {
                    return Ok(Err(value));
                }
                pairs.push((name.to_owned(), settle(&value)?));
            }
        }
        Ok(Ok(Args { positional: positional.into_iter(), named: pairs }))
    }

    /// The arguments with another one before them.
    pub(super) fn before(mut self, first: Value) -> Self {
        let all: Vec<Value> = std::iter::once(first).chain(self.positional.by_ref()).collect();
        Args { positional: all.into_iter(), ..self }
    }

    /// The next parameter, by position or name. `None` (Python's) is a value.
    pub(super) fn opt(&mut self, name: &str) -> Option<Value> {
        self.positional.next().or_else(|| self.named(name))
    }

    /// The next parameter, which must be given.
    pub(super) fn req(&mut self, name: &str) -> Result<Value, Error> {
        self.opt(name).ok_or_else(|| Error::new(ErrorKind::MissingArgument, format!("the argument {name} is missing")))
    }

    /// A parameter that is given by name alone.
    pub(super) fn named(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(key, _)| key == name)?;
        Some(self.named.swap_remove(at).1)
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, Error> {
        self.req(name).map(|value| text(&value))
    }

    /// As [`Args::text`], but a value of another type is refused.
    pub(super) fn only_text(&mut self, name: &str) -> Result<String, Error> {
        only_text(&self.req(name)?)
    }

    pub(super) fn text_or(&mut self, name: &str, default: &str) -> String {
        self.opt(name).map_or_else(|| default.to_owned(), |value| text(&value))
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.opt(name).is_some_and(|value| truthy(&value))
    }

    pub(super) fn int(&mut self, name: &str) -> Result<Option<i64>, Error> {
        match self.opt(name) {
            None => Ok(None),
            Some(value) if value.is_none() => Ok(None),
            Some(value) => int(&value).map(Some),
        }
    }

    /// How long something is to be: bounded, so that a slip in a number does not take all memory.
    pub(super) fn length(&mut self, name: &str) -> Result<Option<usize>, Error> {
        self.int(name)?.map(|length| bounded(length, name)).transpose()
    }

    /// As [`Args::length`], of a parameter that is given by name alone. One that is no whole number counts as none.
    pub(super) fn named_length(&mut self, name: &str) -> Result<Option<usize>, Error> {
        self.named(name).and_then(|value| value.as_i64()).map(|length| bounded(length, name)).transpose()
    }

    /// The rest by position.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.positional.by_ref().collect()
    }

    /// The rest by name.
    pub(super) fn rest_named(&mut self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.named)
    }

    /// Nothing may be left.
    pub(super) fn end(mut self) -> Result<(), Error> {
        if self.positional.next().is_some() {
            return Err(Error::new(ErrorKind::TooManyArguments, "too many arguments"));
        }
        match self.named.first() {
            Some((name, _)) => Err(Error::new(ErrorKind::TooManyArguments, format!("unknown argument {name}"))),
            None => Ok(()),
        }
    }
}

/// A number that is to be a length.
fn bounded(length: i64, name: &str) -> Result<usize, Error> {
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
pub(super) fn text(value: &Value) -> String {
    value.to_string()
}

/// A value that must be text.
pub(super) fn only_text(value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| fail(format!("text is needed, this is {}", kind(value))))
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
pub(super) fn items(value: &Value) -> Result<Vec<Value>, Error> {
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
pub(super) fn list(value: &Value, what: &str) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => items(value),
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
