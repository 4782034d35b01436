//! What `set_stats` keeps: figures of the run, and of its hosts.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::ValueKind;

use crate::value::{Value, Vars, merged};

/// Figures of the run, and of each host with figures.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub run: Vars,
    pub hosts: IndexMap<Arc<str>, Vars>,
}

impl Stats {
    /// Keeps figures, of one host or of the run. With `aggregate` they are added to the present figures, as in Ansible:
    /// numbers, texts and lists by `+`, mappings name by name; of two types the first stays.
    pub(super) fn add_stats(&mut self, host: Option<&Arc<str>>, figures: Vars, aggregate: bool) {
        let all = match host {
            Some(host) => self.hosts.entry(host.clone()).or_default(),
            None => &mut self.run,
        };
        for (name, figure) in figures {
            let figure = match all.get(&name).filter(|_| aggregate) {
                Some(there) => sum(there, &figure).unwrap_or_else(|| there.clone()),
                None => figure,
            };
            all.insert(name, figure);
        }
    }
}

/// The sum of two values of one type.
fn sum(a: &Value, b: &Value) -> Option<Value> {
    match (a.kind(), b.kind()) {
        (ValueKind::Number, ValueKind::Number) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) if a.checked_add(b).is_some() => Some(Value::from(a + b)),
            _ => Some(Value::from(f64::try_from(a.clone()).ok()? + f64::try_from(b.clone()).ok()?)),
        },
        (ValueKind::String, ValueKind::String) => Some(Value::from(format!("{a}{b}"))),
        (ValueKind::Seq, ValueKind::Seq) => {
            let items = [a, b].into_iter().filter_map(|list| list.try_iter().ok()).flatten();
            Some(items.collect())
        }
        (ValueKind::Map, ValueKind::Map) => Some(merged(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;

    use super::*;

    fn reported(figures: &Vars) -> serde_json::Value {
        figures.iter().map(|(name, value)| (name.to_string(), serde_json::to_value(value).unwrap())).collect()
    }

    fn figures(value: serde_json::Value) -> Vars {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str().into(), Value::from(Serde(value.clone()))))
            .collect()
    }

    #[test]
    fn figures_add_up_unless_they_are_put_in_the_place_of_others() {
        let mut stats = Stats::default();
        let first = serde_json::json!({"n": 1, "s": "a", "d": {"x": 1}, "l": [1], "t": 1});
        let second = serde_json::json!({"n": 2, "s": "b", "d": {"y": 1}, "l": [2], "t": "x"});
        stats.add_stats(None, figures(first.clone()), true);
        stats.add_stats(None, figures(second.clone()), true);
        assert_eq!(
            reported(&stats.run),
            serde_json::json!({"n": 3, "s": "ab", "d": {"x": 1, "y": 1}, "l": [1, 2], "t": 1})
        );
        stats.add_stats(None, figures(second.clone()), false);
        assert_eq!(reported(&stats.run), second);
        let host: Arc<str> = "h".into();
        stats.add_stats(Some(&host), figures(first), true);
        assert_eq!((stats.hosts.len(), stats.run["n"].as_i64()), (1, Some(2)));
    }
}
