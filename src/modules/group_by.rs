//! `group_by`: adds the host to a group named after one of its values.

use serde::Deserialize;

use super::{Controller, Effect, Error, Local, ModuleResult, Outcome};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupBy {
    key: String,
    parents: Vec<String>,
}

impl Local for GroupBy {
    const DOC: Doc = Doc {
        name: "group_by",
        collection: "ansible.builtin",
        summary: "Put the host into a group whose name depends on its facts",
        arguments: &[
            Argument::new("key", ArgumentKind::Str, "The group's name; spaces become dashes").required(),
            Argument::new("parents", ArgumentKind::List(&ArgumentKind::Str), "The parent groups").default("all"),
        ],
        free_form: Some("key"),
        example: "\
- name: Group hosts by architecture
  group_by:
    key: arch_{{ ansible_facts.architecture | default('unknown') }}
",
        returns: &[
            Return::new("add_group", "The group's name"),
            Return::new("parent_groups", "The groups that it was added to"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let group = self.key.replace(' ', "-");
        let parents: Vec<String> = self.parents.iter().map(|name| name.replace(' ', "-")).collect();
        let groups = [&group].into_iter().chain(&parents);
        let changed = !groups.into_iter().all(|group| is_in(here, group));
        let outcome = Outcome { changed, ..Outcome::default() }
            .with("add_group", group.as_str())
            .with("parent_groups", parents.clone())
            .effect(Effect::GroupBy { group, parents });
        Ok(ModuleResult { changed, diff: Vec::new(), outcome })
    }
}

/// Whether the host is in the group already.
fn is_in(here: &Controller<'_>, group: &str) -> bool {
    let (groups, host) = (here.scope.get("groups"), here.scope.get("inventory_hostname"));
    let hosts = groups.and_then(|groups| groups.get_attr(group).ok()).and_then(|hosts| hosts.try_iter().ok());
    hosts.into_iter().flatten().any(|it| Some(&it) == host)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[tokio::test]
    async fn a_host_that_is_in_the_group_stays_there_without_a_change() {
        let mut bench = Bench::new().await;
        bench.vars("{inventory_hostname: h1, groups: {all: [h1, h2], arch-x: [h1], other: [h2]}}");
        for (task, changed) in [
            ("group_by: {key: arch x}", false),
            ("group_by: {key: other}", true),
            ("group_by: {key: arch-x, parents: [other]}", true),
            ("group_by: {key: new}", true),
        ] {
            assert_eq!(bench.run(task).await.unwrap().changed, changed, "{task}");
        }
        bench.close().await;
    }
}
