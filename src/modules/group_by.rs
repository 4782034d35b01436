//! `group_by`: puts the host into a group named after what it is.

use async_trait::async_trait;
use serde::Deserialize;

use super::{Controller, Done, Effect, Error, Local, Outcome};
use crate::value::doc::{Argument, Doc, Kind, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupBy {
    key: String,
    parents: Vec<String>,
}

#[async_trait]
impl Local for GroupBy {
    const DOC: Doc = Doc {
        name: "group_by",
        collection: "ansible.builtin",
        summary: "Puts the host into a group named after what it is",
        arguments: &[
            Argument::new("key", Kind::Str, "The group's name; blanks become dashes").required(),
            Argument::new("parents", Kind::List(&Kind::Str), "The groups that this group is put into").default("all"),
        ],
        free_form: Some("key"),
        example: "\
- name: Hosts of one architecture together
  group_by:
    key: arch_{{ ansible_facts.architecture | default('unknown') }}
",
        returns: &[
            Return::new("add_group", "The group's name"),
            Return::new("parent_groups", "The groups that it was put into"),
        ],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<Done, Error> {
        let group = self.key.replace(' ', "-");
        let parents: Vec<String> = self.parents.iter().map(|name| name.replace(' ', "-")).collect();
        let outcome = Outcome { changed: true, ..Outcome::default() }
            .with("add_group", group.as_str())
            .with("parent_groups", parents.clone())
            .effect(Effect::GroupBy { group, parents });
        Ok(Done { changed: true, diff: Vec::new(), outcome })
    }
}
