//! What a specification says of one argument.

use crate::value::Value;

/// The arguments of a specification with what is said of each, in the order written.
pub(super) fn options(spec: &Value) -> Vec<(String, Spec)> {
    let keys = spec.try_iter().into_iter().flatten();
    keys.filter_map(|key| Some((key.to_string(), Spec(spec.get_item(&key).ok()?)))).collect()
}

/// The items of a list; nothing for what is none.
pub(super) fn spec_items(value: &Value) -> Vec<Value> {
    match value.kind() {
        minijinja::value::ValueKind::Seq | minijinja::value::ValueKind::Iterable => {
            value.try_iter().map(Iterator::collect).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The texts in a list.
pub(super) fn texts(value: &Value) -> Vec<String> {
    spec_items(value).iter().map(ToString::to_string).collect()
}

/// One argument: `type`, `required` and so on.
pub(super) struct Spec(Value);

impl Spec {
    /// None: not written, or null.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.0.get_attr(name).ok().filter(|value| !value.is_undefined() && !value.is_none())
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.is_true())
    }

    /// Its type; a string if none is written.
    pub(super) fn kind(&self) -> String {
        self.get("type").map_or_else(|| "str".to_owned(), |kind| kind.to_string())
    }

    /// What the items of a list are, if it is said.
    pub(super) fn elements(&self) -> Option<String> {
        self.get("elements").map(|kind| kind.to_string())
    }

    pub(super) fn aliases(&self) -> Vec<String> {
        self.get("aliases").map(|aliases| texts(&aliases)).unwrap_or_default()
    }

    /// The specification of what is inside a mapping or a list of mappings.
    pub(super) fn inside(&self) -> Option<Vec<(String, Spec)>> {
        let nested = self.kind() == "dict" || self.kind() == "list" && self.elements().as_deref() == Some("dict");
        self.get("options").filter(|_| nested).map(|inside| options(&inside))
    }
}
