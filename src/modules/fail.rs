//! `fail`: fails with a message.

use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    msg: Value,
}

impl Local for Fail {
    const DOC: Doc = Doc {
        name: "fail",
        collection: "ansible.builtin",
        summary: "Fail with a message",
        arguments: &[Argument::new("msg", ArgumentKind::Any, "What to say").default("Failed as requested from task")],
        free_form: None,
        example: "\
- name: Refuse a system without systemd
  fail:
    msg: this needs systemd
  when: ansible_facts.service_mgr | default('systemd') != 'systemd'
",
        returns: &[],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<ModuleResult, Error> {
        Ok(ModuleResult::unchanged(Outcome { failed: Some(self.msg.to_string()), ..Outcome::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[tokio::test]
    async fn a_message_may_be_a_list() {
        let bench = Bench::new().await;
        assert_eq!(bench.failure("fail: {msg: stop}").await, "stop");
        let said = bench.failure("fail: {msg: [one, two]}").await;
        assert!(said.contains("one") && said.contains("two"), "{said}");
        bench.close().await;
    }
}
