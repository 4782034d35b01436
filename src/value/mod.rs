//! The one dynamic type, and what every floor shares: variables, places in files, module documentation.
//! Knows no templates' meaning, no playbooks and no hosts.

pub mod doc;
pub mod hidden;
mod merge;
pub mod origin;
pub mod secret;
pub mod vault;
pub mod yaml;

use std::sync::Arc;

use indexmap::IndexMap;
pub use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

pub use hidden::Hidden;
pub use merge::{HashBehaviour, merged};
pub use origin::{Origin, Source};
pub use secret::Secret;

/// Variables by name, in the order they were written. Values may hold unrendered [`Template`]s, at any depth.
pub type Vars = IndexMap<Arc<str>, Value>;

/// A mapping with string keys, in the given order.
pub fn mapping<K: AsRef<str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
    let pairs = pairs.into_iter().map(|(key, value)| (Value::from(key.as_ref()), value));
    Value::from_object(pairs.collect::<IndexMap<Value, Value>>())
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
    pub fn value(source: &str, origin: Option<&Origin>) -> Value {
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

impl Object for Template {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)
    }
}
