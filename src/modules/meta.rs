//! `meta`: what a task can ask of the run itself. The engine carries it out; this file only lists the actions.

use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult};
use crate::value::doc::{Argument, ArgumentKind, Doc};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    action: String,
}

impl Local for Meta {
    const DOC: Doc = Doc {
        name: "meta",
        collection: "ansible.builtin",
        summary: "Control the run",
        arguments: &[Argument::new("action", ArgumentKind::Str, "What to do")
            .alias(&["free_form"])
            .required()
            .choices(&[
                "clear_facts",
                "clear_host_errors",
                "end_batch",
                "end_host",
                "end_play",
                "end_role",
                "flush_handlers",
                "noop",
                "refresh_inventory",
                "reset_connection",
            ])],
        free_form: Some("action"),
        example: "\
- name: Run the notified handlers now
  meta: flush_handlers
",
        returns: &[],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<ModuleResult, Error> {
        let action = &self.action;
        Err(Error::failed(format!("meta: {action} must be a task of its own")))
    }
}
