//! The arguments of a filter, test or lookup, taken in the order of its parameters, as Python binds them.

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, State};

use super::conversions::{bounded, int, only_text, to_text, truthy};
use super::lazy;
use crate::value::Value;

/// Arguments, settled (no lazy parts), with nothing undefined among them.
pub(super) struct Args {
    positional: std::vec::IntoIter<Value>,
    named: Vec<(String, Value)>,
}

/// A filter: its own part of the state, and its arguments, the filtered value first.
pub(super) type Filter = fn(&mut State<'_, '_>, Args) -> Result<Value, Error>;

/// A test.
pub(super) type Test = fn(&mut State<'_, '_>, Args) -> Result<bool, Error>;

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
        self.positional.next().or_else(|| self.named_argument(name))
    }

    /// The next parameter, which must be given.
    pub(super) fn req(&mut self, name: &str) -> Result<Value, Error> {
        self.opt(name).ok_or_else(|| Error::new(ErrorKind::MissingArgument, format!("the argument {name} is missing")))
    }

    /// A parameter that is given by name alone.
    pub(super) fn named_argument(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(key, _)| key == name)?;
        Some(self.named.swap_remove(at).1)
    }

    pub(super) fn text_argument(&mut self, name: &str) -> Result<String, Error> {
        self.req(name).map(|value| to_text(&value))
    }

    /// As [`Args::text_argument`], but a value of another type is refused.
    pub(super) fn only_text(&mut self, name: &str) -> Result<String, Error> {
        only_text(&self.req(name)?)
    }

    pub(super) fn text_or(&mut self, name: &str, default: &str) -> String {
        self.opt(name).map_or_else(|| default.to_owned(), |value| to_text(&value))
    }

    pub(super) fn flag_argument(&mut self, name: &str) -> bool {
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
        self.named_argument(name).and_then(|value| value.as_i64()).map(|length| bounded(length, name)).transpose()
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
    pub(super) fn no_more_arguments(mut self) -> Result<(), Error> {
        if self.positional.next().is_some() {
            return Err(Error::new(ErrorKind::TooManyArguments, "too many arguments"));
        }
        match self.named.first() {
            Some((name, _)) => Err(Error::new(ErrorKind::TooManyArguments, format!("unknown argument {name}"))),
            None => Ok(()),
        }
    }
}
