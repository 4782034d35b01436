//! How variables of one name from several places come together.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::ValueKind;

use super::{Value, Vars};

/// Ansible's `hash_behaviour`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashBehaviour {
    /// The stronger one counts.
    #[default]
    Replace,
    /// Mappings are merged key by key, at any depth; of all else the stronger one counts.
    Merge,
}

impl HashBehaviour {
    /// Adds stronger variables to weaker ones.
    pub fn combine(self, weaker: &mut Vars, stronger: impl IntoIterator<Item = (Arc<str>, Value)>) {
        for (name, value) in stronger {
            let value = match weaker.get(&name).filter(|_| self == HashBehaviour::Merge) {
                Some(old) => merged(old, &value),
                None => value,
            };
            weaker.insert(name, value);
        }
    }
}

/// The newer value over the older one; mappings key by key, at any depth.
pub fn merged(old: &Value, new: &Value) -> Value {
    if old.kind() != ValueKind::Map || new.kind() != ValueKind::Map {
        return new.clone();
    }
    let mut pairs: IndexMap<Value, Value> = IndexMap::new();
    for key in old.try_iter().into_iter().flatten() {
        pairs.insert(key.clone(), old.get_item(&key).unwrap_or_default());
    }
    for key in new.try_iter().into_iter().flatten() {
        let value = new.get_item(&key).unwrap_or_default();
        let value = pairs.get(&key).map_or_else(|| value.clone(), |before| merged(before, &value));
        pairs.insert(key, value);
    }
    Value::from_pairs(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::mapping;

    #[test]
    fn mappings_are_merged_at_any_depth_and_lists_are_replaced() {
        let inner = |name: &str| mapping([(name, Value::from(1)), ("both", Value::from(name))]);
        let old = mapping([("map", inner("a")), ("list", Value::from(vec![1]))]);
        let new = mapping([("map", inner("b")), ("list", Value::from(vec![2]))]);
        let expected = "{'map': {'a': 1, 'both': 'b', 'b': 1}, 'list': [2]}";
        let mut vars = Vars::from([("x".into(), old)]);
        HashBehaviour::Merge.combine(&mut vars, [("x".into(), new.clone())]);
        assert_eq!(vars["x"].to_string(), expected);
        HashBehaviour::Replace.combine(&mut vars, [("x".into(), new.clone())]);
        assert_eq!(vars["x"], new);
    }
}
