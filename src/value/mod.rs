//! The one dynamic type, and what every floor shares: variables, places in files, module documentation.
//! Knows no templates' meaning, no playbooks and no hosts.

mod deferred;
pub mod doc;
pub mod float;
pub mod hidden;
pub mod home;
mod merge;
pub mod mutex;
pub mod nearest;
pub mod origin;
pub mod ownership;
pub(crate) mod pattern;
pub mod process;
pub mod read;
pub mod secret;
mod surroundings;
pub mod terminal;
#[cfg(test)]
#[path = "../../tests/shared/program.rs"]
pub(crate) mod testing;
pub mod truth;
pub mod unit_file;
pub mod vault;
pub mod yaml;

use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;
pub use minijinja::Value;
use minijinja::value::{DynObject, Object, ObjectRepr};
use regex::Regex;

pub use deferred::Deferred;
pub use hidden::SecretTexts;
pub use merge::{HashBehaviour, merged};
pub use origin::{Origin, Source};
pub use secret::Secret;
pub use surroundings::ProcessEnvironment;

/// The version of ansible-core whose language this is.
pub const CORE: &str = "2.19.14";

/// Variables by name, in the order they were written. Values may hold unrendered [`Template`]s, at any depth.
pub type Vars = IndexMap<Arc<str>, Value>;

/// A mapping with string keys, in the given order.
pub fn mapping<K: AsRef<str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
    let pairs = pairs.into_iter().map(|(key, value)| (Value::from(key.as_ref()), value));
    Value::from_object(pairs.collect::<IndexMap<Value, Value>>())
}

/// How deep lists and mappings may nest within each other: no one writes more, and all that walks through a value (reports,
/// filters, comparisons) goes down as deep.
pub const DEEPEST: usize = 200;

/// Whether lists and mappings nest deeper in it than [`DEEPEST`]. Looks only into what is there, and renders nothing.
pub fn is_too_deep(value: &Value) -> bool {
    fn deeper(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return value.len().is_some() && value.as_str().is_none() };
        if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
            return items.iter().any(|item| deeper(item, left));
        }
        match value.downcast_object_ref::<IndexMap<Value, Value>>() {
            Some(pairs) => pairs.values().any(|item| deeper(item, left)),
            None => false,
        }
    }
    deeper(value, DEEPEST)
}

/// A string that came from a file of ours and has template marks in it, not yet rendered.
///
/// Only such strings are ever rendered: what a host answered stays text, whatever it contains.
#[derive(Debug, Clone)]
pub struct Template {
    pub source: Arc<str>,
    pub origin: Option<Origin>,
}

impl Template {
    /// Wraps a string that has `{{`, `{%` or `{#` in it; other strings stay plain values.
    pub fn template_value(source: &str, origin: Option<&Origin>) -> Value {
        if has_marks(source) {
            Value::from_object(Template { source: source.into(), origin: origin.cloned() })
        } else {
            Value::from(source)
        }
    }
}

/// Whether a text has template marks in it.
pub fn has_marks(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// The constant parts of a text, without its templates.
pub fn around_marks(text: &str) -> impl Iterator<Item = &str> {
    static MARKS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}").expect("the expression is constant"));
    MARKS.split(text)
}

impl Object for Template {
    /// Equal texts are the same template, wherever they occur.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<std::cmp::Ordering> {
        other.downcast_ref::<Template>().map(|other| self.source.cmp(&other.source))
    }
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_has_an_end() {
        let nested = |levels: usize| {
            (1..levels).fold(Value::from(vec![Value::from("x")]), |inner, level| match level % 2 {
                0 => Value::from(vec![Value::from(1), inner]),
                _ => mapping([("a", Value::from(1)), ("b", inner)]),
            })
        };
        assert!(!is_too_deep(&nested(DEEPEST)));
        assert!(is_too_deep(&nested(DEEPEST + 1)));
        assert!(!is_too_deep(&Value::from("x")));
    }

    #[test]
    fn a_template_is_its_words() {
        assert_eq!(Template::template_value("{{ a }}", None), Template::template_value("{{ a }}", None));
        assert_ne!(Template::template_value("{{ a }}", None), Template::template_value("{{ b }}", None));
    }
}
