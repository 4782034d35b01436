//! `getent`: the host's databases of users, groups, hosts and so on.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Controller, Effect, Error, Inspect, Outcome};
use crate::remote::{Command, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

const NOT_FOUND: &str = "One or more supplied key could not be found in the database.";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Getent {
    database: String,
    key: Option<String>,
    split: Option<String>,
    service: Option<String>,
    fail_key: bool,
}

impl Inspect for Getent {
    const DOC: Doc = Doc {
        name: "getent",
        collection: "ansible.builtin",
        summary: "Query the host's databases of users, groups, hosts and so on",
        arguments: &[
            Argument::new("database", ArgumentKind::Str, "passwd, group, hosts and so on").required(),
            Argument::new("key", ArgumentKind::Str, "The entry to look up (default: all)"),
            Argument::new(
                "split",
                ArgumentKind::Str,
                "The separator between fields; a colon for passwd, group, shadow, gshadow",
            ),
            Argument::new("service", ArgumentKind::Str, "Query only this source"),
            Argument::new("fail_key", ArgumentKind::Bool, "Whether to fail if the key does not exist").default("true"),
        ],
        free_form: None,
        example: "\
- name: Look up root
  getent:
    database: passwd
    key: root
",
        returns: &[Return::new("ansible_facts", "getent_DATABASE: fields by key")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        if self.database.starts_with('-') {
            return Err(Error::failed(format!("invalid database {:?}", self.database)));
        }
        let service = self.service.iter().flat_map(|service| ["-s", service.as_str()]);
        let argv = ["getent"].into_iter().chain(service).chain(["--", &self.database]).chain(self.key.as_deref());
        let output = probe.query(&Command::program(argv)).await?;
        let name = format!("getent_{}", self.database);
        let mut message = None;
        let entries = match output.code {
            0 => entries(&String::from_utf8_lossy(&output.stdout), self.separator()),
            1 => return Err(Error::failed(format!("missing arguments, or database {:?} unknown", self.database))),
            2 if !self.fail_key => {
                message = Some(NOT_FOUND.to_owned());
                IndexMap::from([(self.key.clone().unwrap_or_default(), Value::from(()))])
            }
            2 => return Err(Error::failed(NOT_FOUND)),
            3 => return Err(Error::failed(format!("cannot list the database {:?}", self.database))),
            code => return Err(Error::failed(format!("getent failed with code {code}"))),
        };
        let facts = Vars::from_iter([(Arc::from(name), Value::from_pairs(entries))]);
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(facts.clone()));
        let outcome = Outcome { message, ..outcome };
        Ok(outcome.effect(Effect::Facts(facts)))
    }
}

impl Getent {
    fn separator(&self) -> Option<&str> {
        let colon = ["passwd", "shadow", "group", "gshadow"].contains(&self.database.as_str());
        self.split.as_deref().or(colon.then_some(":"))
    }
}

/// The fields after the first, by the first; of several lines with one key (hosts) all are kept.
fn entries(text: &str, separator: Option<&str>) -> IndexMap<String, Value> {
    let mut entries: IndexMap<String, Vec<Vec<String>>> = IndexMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = match separator {
            Some(separator) => line.split(separator).collect(),
            None => line.split_whitespace().collect(),
        };
        let Some((key, rest)) = fields.split_first() else { continue };
        entries.entry((*key).to_owned()).or_default().push(rest.iter().map(|field| (*field).to_owned()).collect());
    }
    let value = |mut lines: Vec<Vec<String>>| match lines.len() {
        1 => Value::from(lines.remove(0)),
        _ => Value::from(lines.into_iter().map(Value::from).collect::<Vec<_>>()),
    };
    entries.into_iter().map(|(key, lines)| (key, value(lines))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn lines_become_fields_by_key() {
        let found = entries("a 1 2\nb 3\na 4\n", None);
        assert_eq!(found["b"].to_string(), "['3']");
        assert_eq!(found["a"].to_string(), "[['1', '2'], ['4']]");
        assert_eq!(entries("root:x:0:0::/root:/bin/sh\n", Some(":"))["root"].len(), Some(6));
    }

    #[tokio::test]
    async fn the_host_knows_root_and_not_everybody() {
        let bench = Bench::new().await;
        let done = bench.check("getent: {database: passwd, key: root}").await.unwrap();
        assert!(value(&done.outcome, "ansible_facts").contains("'getent_passwd': {'root': ['x', '0', '0'"));
        let task = "getent: {database: passwd, key: no-such-user";
        assert!(bench.failure(&format!("{task}}}")).await.contains("could not be found"));
        let done = bench.run(&format!("{task}, fail_key: false}}")).await.unwrap();
        assert_eq!(value(&done.outcome, "ansible_facts"), "{'getent_passwd': {'no-such-user': None}}");
        bench.close().await;
    }
}
