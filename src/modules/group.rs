//! `group`: groups of a host.

use serde::Deserialize;

use super::accounts::{self, AccountTools};
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupModule {
    name: String,
    gid: Option<u32>,
    state: GroupState,
    system: bool,
    non_unique: bool,
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GroupState {
    Present,
    Absent,
}

impl Module for GroupModule {
    const CHANGES: Changes = Changes::Accounts;
    const DOC: Doc = Doc {
        name: "group",
        collection: "ansible.builtin",
        summary: "Add, change and remove groups of the host",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The group").required(),
            Argument::new("gid", ArgumentKind::Int, "Its number"),
            Argument::new("state", ArgumentKind::Str, "Whether it should exist")
                .default("present")
                .choices(&["present", "absent"]),
            Argument::new("system", ArgumentKind::Bool, "Whether a new group gets a system group id").default("false"),
            Argument::new("non_unique", ArgumentKind::Bool, "Whether another group may also have this id")
                .default("false"),
            Argument::new(
                "force",
                ArgumentKind::Bool,
                "Whether to remove it even if it is the primary group of a user",
            )
            .default("false"),
        ],
        free_form: None,
        example: "\
- name: Add a group for the service
  group:
    name: etcd
    system: true
",
        returns: &[
            Return::new("name", "The group"),
            Return::new("gid", "Its number"),
            Return::new("state", "present or absent"),
            Return::new("system", "As given"),
        ],
    };
    type Change = Vec<String>;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<Vec<String>>, Error> {
        accounts::check_name(&self.name, "group")?;
        let accounts = accounts::read_accounts(probe, &self.name).await?;
        let found = accounts.groups.iter().find(|group| group.name == self.name);
        let outcome = self.outcome(found.map(|group| group.gid));
        let change = |argv| Plan::Change { diff: Vec::new(), outcome: outcome.clone(), change: argv };
        Ok(match (self.state, found) {
            (GroupState::Absent, None) => Plan::Unchanged(outcome),
            (GroupState::Present, Some(group)) if self.gid.is_none_or(|gid| gid == group.gid) => {
                Plan::Unchanged(outcome)
            }
            (state, _) => {
                let tools = accounts.tools.ok_or_else(accounts::no_tools)?;
                change(self.command(state, found.is_some(), tools)?)
            }
        })
    }

    async fn apply(&self, change: Vec<String>, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        accounts::run_account_tool(remote, &change).await?;
        let accounts = accounts::read_accounts(remote, &self.name).await?;
        Ok(self.outcome(accounts.groups.iter().find(|group| group.name == self.name).map(|group| group.gid)))
    }
}

impl GroupModule {
    fn outcome(&self, gid: Option<u32>) -> Outcome {
        let state = if self.state == GroupState::Present { "present" } else { "absent" };
        let outcome =
            Outcome::default().with("name", self.name.as_str()).with("state", state).with("system", self.system);
        match gid.or(self.gid).filter(|_| self.state == GroupState::Present) {
            Some(gid) => outcome.with("gid", gid),
            None => outcome,
        }
    }

    fn command(&self, state: GroupState, exists: bool, tools: AccountTools) -> Result<Vec<String>, Error> {
        let gid = self.gid.map(|gid| ["-g".to_owned(), gid.to_string()]).into_iter().flatten();
        let mut argv: Vec<String> = Vec::new();
        match (state, exists, tools) {
            (GroupState::Absent, _, AccountTools::Shadow) => {
                argv.push("groupdel".to_owned());
                argv.extend(self.force.then(|| "-f".to_owned()));
            }
            (GroupState::Absent, _, AccountTools::Busybox) => argv.push("delgroup".to_owned()),
            (GroupState::Present, true, AccountTools::Busybox) => {
                return Err(Error::failed(format!("the host has no groupmod to change the group {}", self.name)));
            }
            (GroupState::Present, exists, AccountTools::Shadow) => {
                argv.push(if exists { "groupmod" } else { "groupadd" }.to_owned());
                argv.extend((self.system && !exists).then(|| "-r".to_owned()));
                argv.extend(gid);
                argv.extend(self.non_unique.then(|| "-o".to_owned()));
            }
            (GroupState::Present, false, AccountTools::Busybox) => {
                argv.push("addgroup".to_owned());
                argv.extend(self.system.then(|| "-S".to_owned()));
                argv.extend(gid);
            }
        }
        argv.push(self.name.clone());
        Ok(argv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(state: GroupState, exists: bool, tools: AccountTools) -> String {
        let group =
            GroupModule { name: "etcd".into(), gid: Some(900), state, system: true, non_unique: false, force: false };
        group.command(state, exists, tools).map_or_else(|error| error.to_string(), |argv| argv.join(" "))
    }

    #[test]
    fn each_kind_of_tools_is_reported_in_its_own_words() {
        assert_eq!(command_line(GroupState::Present, false, AccountTools::Shadow), "groupadd -r -g 900 etcd");
        assert_eq!(command_line(GroupState::Present, true, AccountTools::Shadow), "groupmod -g 900 etcd");
        assert_eq!(command_line(GroupState::Absent, true, AccountTools::Shadow), "groupdel etcd");
        assert_eq!(command_line(GroupState::Present, false, AccountTools::Busybox), "addgroup -S -g 900 etcd");
        assert_eq!(command_line(GroupState::Absent, true, AccountTools::Busybox), "delgroup etcd");
        assert!(command_line(GroupState::Present, true, AccountTools::Busybox).contains("no groupmod"));
    }
}
