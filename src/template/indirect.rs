//! Expressions in a variable: `when: "{{ rule }}"`. A host must not be able to choose what is evaluated here, so
//! such a text is taken unchanged from the variables of the controller. Of other values (a program's output, a
//! fact, a text put together) only the name of a variable is taken.

use std::sync::LazyLock;

use minijinja::value::ValueKind;
use regex::Regex;

use super::{Error, Scope, Templar};
use crate::value::{Origin, Template, Value};

/// The longest chain of variables that refer to each other.
const DEPTH: usize = 40;

/// `a.b.c`: it can only name a value, or be true or false.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\A[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*\z").expect("the expression is constant")
});

/// The same between braces.
static VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\A\s*\{\{-?\s*([A-Za-z0-9_.]+)\s*-?\}\}\s*\z").expect("the expression is constant"));

/// The value with every template in it replaced by the expressions of its variable.
pub(super) fn resolve(templar: &Templar, value: &Value, scope: &Scope) -> Result<Value, Error> {
    deeper(templar, value, scope, DEPTH)
}

fn deeper(templar: &Templar, value: &Value, scope: &Scope, depth: usize) -> Result<Value, Error> {
    let Some(template) = value.downcast_object_ref::<Template>() else {
        return match value.kind() {
            ValueKind::Seq if depth > 0 => {
                let items = value.try_iter().into_iter().flatten();
                items
                    .map(|item| deeper(templar, &item, scope, depth - 1))
                    .collect::<Result<Vec<_>, _>>()
                    .map(Value::from)
            }
            _ => Ok(value.clone()),
        };
    };
    match written(&template.source, scope) {
        Some(own) if depth > 0 => deeper(templar, &own, scope, depth - 1),
        _ => {
            let rendered = templar.render(value, scope)?;
            check_indirect(&rendered, &template.source, template.origin.as_ref()).map(|()| rendered)
        }
    }
}

/// The value in the controller's variables of the name that a template consists of.
fn written(source: &str, scope: &Scope) -> Option<Value> {
    let mut names = VARIABLE.captures(source)?.get(1)?.as_str().split('.');
    let first = scope.own(names.next()?)?.clone();
    names.try_fold(first, |value, name| {
        if value.downcast_object_ref::<Template>().is_some() {
            return None;
        }
        let found = match value.kind() {
            ValueKind::Map => value.get_attr(name).ok(),
            ValueKind::Seq => value.get_item_by_index(name.parse().ok()?).ok(),
            _ => None,
        };
        found.filter(|found| !found.is_undefined())
    })
}

/// Refuses a value that was rendered if there is a text in it that is more than a name.
pub(super) fn check_indirect(value: &Value, source: &str, origin: Option<&Origin>) -> Result<(), Error> {
    let is_fit = |value: &Value| value.as_str().is_none_or(|text| NAME.is_match(text.trim()));
    let fits = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().is_ok_and(|mut items| items.all(|item| is_fit(&item))),
        _ => is_fit(value),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::other(
            format!(
                "refusing to evaluate {source:?}: its text may come from a host; write the expression itself, without braces"
            ),
            origin,
        )),
    }
}
