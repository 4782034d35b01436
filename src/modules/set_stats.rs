//! `set_stats`: figures of the run, shown at its end.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Controller, Effect, Error, Local, ModuleResult, Outcome, set_fact};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetStats {
    data: IndexMap<String, Value>,
    per_host: bool,
    aggregate: bool,
}

impl Local for SetStats {
    const DOC: Doc = Doc {
        name: "set_stats",
        collection: "ansible.builtin",
        summary: "Set statistics of the run, shown at its end",
        arguments: &[
            Argument::new("data", ArgumentKind::Dict, "Names and values").required(),
            Argument::new("per_host", ArgumentKind::Bool, "Whether to keep them for each host instead of for the run")
                .default("false"),
            Argument::new(
                "aggregate",
                ArgumentKind::Bool,
                "Whether to add to existing values instead of replacing them",
            )
            .default("true"),
        ],
        free_form: None,
        example: "\
- name: Count the repairs
  set_stats:
    data:
      repaired: 1
",
        returns: &[Return::new("ansible_stats", "data, per_host and aggregate")],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<ModuleResult, Error> {
        let vars: Vars = self.data.iter().map(|(name, value)| (Arc::from(name.as_str()), value.clone())).collect();
        set_fact::check_names(&vars)?;
        let stats = Value::from_pairs([
            ("data", Value::from_pairs(vars.clone())),
            ("per_host", Value::from(self.per_host)),
            ("aggregate", Value::from(self.aggregate)),
        ]);
        let effect = Effect::Stats { vars, per_host: self.per_host, aggregate: self.aggregate };
        Ok(ModuleResult::unchanged(Outcome::default().with("ansible_stats", stats).effect(effect)))
    }
}
