//! `add_host`: adds a host to the inventory of this run.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Controller, Effect, Error, Local, ModuleResult, Outcome};
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

#[derive(Debug, Deserialize)]
pub(super) struct AddHost {
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(flatten)]
    vars: IndexMap<String, Value>,
}

impl Local for AddHost {
    const ONCE: bool = true;
    const DOC: Doc = Doc {
        name: "add_host",
        collection: "ansible.builtin",
        summary: "Add a host to the inventory of this run",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "Its name, or name:port").alias(&["host", "hostname"]).required(),
            Argument::new("groups", ArgumentKind::List(&ArgumentKind::Str), "Groups to put it into")
                .alias(&["group", "groupname"]),
            Argument::new(ANY_NAME, ArgumentKind::Any, "Variables of the host"),
        ],
        free_form: None,
        example: "\
- name: Add a new host to the inventory
  add_host:
    name: h4
    groups: [etcd, fresh]
    ansible_host: 127.0.0.4
",
        returns: &[Return::new("add_host", "host_name, groups and host_vars")],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<ModuleResult, Error> {
        let mut vars: Vars = self.vars.iter().map(|(name, value)| (Arc::from(name.as_str()), value.clone())).collect();
        let (name, port) = name_and_port(&self.name);
        if name.is_empty() {
            return Err(Error::failed("name must not be empty"));
        }
        if let Some(port) = port {
            vars.insert(Arc::from("ansible_port"), Value::from(port));
        }
        let groups: Vec<String> = self.groups.iter().map(|group| group.trim().to_owned()).collect();
        let added = Value::from_pairs([
            ("host_name", Value::from(name)),
            ("groups", Value::from(groups.clone())),
            ("host_vars", Value::from_pairs(vars.clone())),
        ]);
        let outcome = Outcome { changed: true, ..Outcome::default() }.with("add_host", added);
        let effect = Effect::AddHost { name: name.to_owned(), groups, vars };
        Ok(ModuleResult { changed: true, diff: Vec::new(), outcome: outcome.effect(effect) })
    }
}

/// `h1:2222` to its parts; the colons of an IPv6 address are none of that.
fn name_and_port(name: &str) -> (&str, Option<u16>) {
    let Some((host, port)) = name.rsplit_once(':') else { return (name, None) };
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return (address, port.parse().ok());
    }
    match port.parse() {
        Ok(port) if !host.contains(':') => (host, Some(port)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_port_is_distinguished_from_an_address() {
        assert_eq!(name_and_port("h1"), ("h1", None));
        assert_eq!(name_and_port("h1:22"), ("h1", Some(22)));
        assert_eq!(name_and_port("fd00::1"), ("fd00::1", None));
        assert_eq!(name_and_port("[fd00::1]:22"), ("fd00::1", Some(22)));
    }

    #[tokio::test]
    async fn a_host_comes_with_groups_and_variables() {
        let bench = Bench::new().await;
        let done = bench.run("add_host: {hostname: 'h4:2222', groups: 'a, b', ansible_user: x}").await.unwrap();
        assert!(done.changed);
        let [Effect::AddHost { name, groups, vars }] = done.outcome.effects.as_slice() else { panic!() };
        assert_eq!((name.as_str(), groups.as_slice()), ("h4", ["a".to_owned(), "b".to_owned()].as_slice()));
        assert_eq!(vars["ansible_port"].as_i64(), Some(2222));
        assert_eq!(vars["ansible_user"].as_str(), Some("x"));
        assert!(!vars.contains_key("groups"));
        bench.close().await;
    }
}
