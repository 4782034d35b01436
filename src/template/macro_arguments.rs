//! Macros that take more arguments than they name: by position as `varargs`, by name as `kwargs` (`rewrite/macros.rs`).

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Tuple};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::value::{Value, mapping};

/// Adds `m|_open(named, more)`: of `more`, which are `varargs`, `kwargs` or both, the macro has parameters as well.
pub(super) fn install(env: &mut Environment<'static>) {
    env.add_filter("_omitted", |value: Value| super::is_omit(&value));
    env.add_filter("_open", |inner: Value, named: Vec<String>, more: Vec<String>| {
        let has = |name: &str| more.iter().any(|one| one == name);
        Value::from_object(Open { varargs: has("varargs"), kwargs: has("kwargs"), inner, named })
    });
}

#[derive(Debug)]
struct Open {
    inner: Value,
    named: Vec<String>,
    varargs: bool,
    kwargs: bool,
}

impl Object for Open {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller", "catch_kwargs", "catch_varargs"])
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "arguments" => Some(self.named.iter().map(String::as_str).map(Value::from).collect()),
            "catch_kwargs" => Some(Value::from(self.kwargs)),
            "catch_varargs" => Some(Value::from(self.varargs)),
            name => self.inner.get_attr(name).ok(),
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (positional, named) = match args.split_last() {
            Some((last, first)) if last.is_kwargs() => (first, Some(Kwargs::try_from(last.clone())?)),
            _ => (args, None),
        };
        let known = self.named.len().min(positional.len());
        let (first, rest) = positional.split_at(known);
        if !self.varargs && !rest.is_empty() {
            let message = format!("a macro that takes {} was given {}", self.named.len(), positional.len());
            return Err(Error::new(ErrorKind::TooManyArguments, message));
        }
        let mut given: Vec<(String, Value)> = self.named.iter().cloned().zip(first.iter().cloned()).collect();
        let mut kwargs = Vec::new();
        let takes_caller = self.inner.get_attr("caller").is_ok_and(|caller| caller.is_true());
        for name in named.iter().flat_map(Kwargs::args) {
            let value: Value = named.as_ref().map_or(Ok(Value::UNDEFINED), |named| named.peek(name))?;
            // As in Jinja: what has its value by position already is one more by name.
            let own = self.named[known..].iter().any(|one| one == name) || name == "caller" && takes_caller;
            if !self.kwargs && self.named[..known].iter().any(|one| one == name) {
                return Err(Error::new(ErrorKind::TooManyArguments, format!("{name} is given twice")));
            }
            if own || !self.kwargs {
                given.push((name.to_owned(), value));
            } else {
                kwargs.push((name.to_owned(), value));
            }
        }
        if self.varargs {
            given.push(("varargs".into(), Value::from(Tuple::new(rest.to_vec()))));
        }
        if self.kwargs {
            given.push(("kwargs".into(), mapping(kwargs)));
        }
        self.inner.call(state, &[given.into_iter().collect::<Kwargs>().into()])
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}
