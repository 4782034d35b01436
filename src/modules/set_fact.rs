//! `set_fact`: gives the host variables for the rest of the run.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Controller, Effect, Error, Local, ModuleResult, Outcome};
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

const CACHEABLE: &str = "cacheable";

/// All that was written, `cacheable` too.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct SetFact(IndexMap<String, Value>);

impl Local for SetFact {
    const DOC: Doc = Doc {
        name: "set_fact",
        collection: "ansible.builtin",
        summary: "Set variables of the host for the rest of the run",
        arguments: &[
            Argument::new(CACHEABLE, ArgumentKind::Bool, "Whether they are also kept as facts of the host")
                .default("false"),
            Argument::new(ANY_NAME, ArgumentKind::Any, "Variables of any name and their values"),
        ],
        free_form: None,
        example: "\
- name: Keep two values for later
  set_fact:
    data_directory: /var/lib/etcd
    ports: [2379, 2380]
",
        returns: &[Return::new("ansible_facts", "The variables")],
    };

    /// Values as they are: a moment stays one.
    fn coerce_arguments(args: Value) -> Result<Self, Error> {
        let pairs = args.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten();
        Ok(SetFact(pairs.map(|(name, value)| (name.to_string(), value)).collect()))
    }

    async fn run(&self, _: &Controller<'_>) -> Result<ModuleResult, Error> {
        let vars: Vars = self
            .0
            .iter()
            .filter(|(name, _)| *name != CACHEABLE)
            .map(|(name, value)| (Arc::from(name.as_str()), value.clone()))
            .collect();
        if vars.is_empty() {
            return Err(Error::failed("no variable given, at least one is needed"));
        }
        check_names(&vars)?;
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(vars.clone()));
        let outcome = match self.0.get(CACHEABLE).is_some_and(Value::is_true) {
            true => outcome.effect(Effect::Facts(vars.clone())),
            false => outcome,
        };
        Ok(ModuleResult::unchanged(outcome.effect(Effect::SetFact(vars))))
    }
}

/// Refuses what cannot be the name of a variable.
pub(super) fn check_names(vars: &Vars) -> Result<(), Error> {
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
            && chars.all(|c| c == '_' || c.is_ascii_alphanumeric())
    };
    match vars.keys().find(|name| !is_name(name)) {
        Some(name) => Err(Error::Failed {
            message: format!("{name:?} is not a valid variable name"),
            hint: Some("use letters, digits and underscores, starting with a letter or an underscore".into()),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn names_are_letters_digits_and_underscores() {
        let vars = |name: &str| Vars::from_iter([(Arc::from(name), Value::from(1))]);
        assert!(check_names(&vars("_a1")).is_ok());
        for wrong in ["1a", "a-b", "", "a b", "é"] {
            assert!(check_names(&vars(wrong)).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn values_keep_their_types_and_become_variables_and_facts() {
        let bench = Bench::new().await;
        let done = bench.run("set_fact: {a: 1, b: [x], c: '{{ [1, 2] }}', cacheable: true}").await.unwrap();
        assert_eq!(value(&done.outcome, "ansible_facts"), "{'a': 1, 'b': ['x'], 'c': [1, 2]}");
        let [Effect::Facts(facts), Effect::SetFact(vars)] = done.outcome.effects.as_slice() else {
            panic!("{:?}", done.outcome.effects)
        };
        assert_eq!((facts.len(), vars.len()), (3, 3));
        assert!(bench.failure("set_fact: {cacheable: true}").await.contains("at least one"));
        bench.close().await;
    }
}
