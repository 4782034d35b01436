//! `setup`: facts of the host.

use std::sync::Arc;

use async_trait::async_trait;
use regex::Regex;
use serde::Deserialize;

use super::{Controller, Effect, Error, Module, Outcome, Plan};
use crate::remote::{Command, FileKind, Links, Probe, Remote};
use crate::value::doc::{Argument, Doc, Kind, Return};
use crate::value::{Value, Vars};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    filter: Vec<String>,
    gather_subset: Vec<String>,
    /// Facts come in one request, which has the limits of any other.
    #[serde(rename = "gather_timeout")]
    _gather_timeout: i64,
    fact_path: String,
}

#[async_trait]
impl Module for Setup {
    const DOC: Doc = Doc {
        name: "setup",
        collection: "ansible.builtin",
        summary: "Gathers facts of the host",
        arguments: &[
            Argument::new(
                "filter",
                Kind::List(&Kind::Str),
                "Patterns with * and ?; only facts that match one are kept",
            )
            .default("[]"),
            Argument::new("gather_subset", Kind::List(&Kind::Str), "What to gather, as all, min, network, !hardware")
                .default("all"),
            Argument::new("gather_timeout", Kind::Int, "Accepted for compatibility; facts come in one request")
                .default("10"),
            Argument::new("fact_path", Kind::Path, "The directory on the host with its own facts, *.fact")
                .default("/etc/ansible/facts.d"),
        ],
        free_form: None,
        example: "\
- name: Only what the system is
  setup:
    gather_subset: [min]
    filter: [ansible_distribution*, ansible_architecture]
",
        returns: &[Return::new("ansible_facts", "The facts, each with the prefix ansible_")],
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<()>, Error> {
        let mut facts = probe.facts(&self.gather_subset).await?;
        if wants_local(&self.gather_subset) {
            facts.insert(Arc::from("ansible_local"), own_facts(probe, &self.fact_path).await?);
        }
        let facts = kept(facts, &self.filter)?;
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(facts.clone()));
        Ok(Plan::Unchanged(outcome.effect(Effect::Facts(facts))))
    }

    async fn apply(&self, (): (), _: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        unreachable!("setup never plans a change")
    }
}

/// Whether `ansible_local` is among what is gathered.
fn wants_local(subset: &[String]) -> bool {
    let has = |name: &str| subset.iter().any(|s| s == name);
    if has("!local") || has("!all") && !has("local") && has("!min") {
        return false;
    }
    has("local") || has("all") || has("min") || subset.iter().all(|s| s.starts_with('!'))
}

fn kept(facts: Vars, filter: &[String]) -> Result<Vars, Error> {
    let patterns = filter.iter().filter(|text| !text.is_empty()).map(|text| pattern(text));
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    if patterns.is_empty() {
        return Ok(facts);
    }
    let matches = |name: &str| {
        let short = name.strip_prefix("ansible_").unwrap_or(name);
        patterns.iter().any(|pattern| pattern.is_match(name) || pattern.is_match(short))
    };
    Ok(facts.into_iter().filter(|(name, _)| matches(name)).collect())
}

/// A file name pattern as a regular expression for the whole of a name.
fn pattern(text: &str) -> Result<Regex, Error> {
    let mut expression = String::from("^");
    for c in text.chars() {
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' | ']' => expression.push(c),
            c => expression.push_str(&regex::escape(&c.to_string())),
        }
    }
    expression.push('$');
    let expression = expression.replace("[!", "[^").replace("\\-", "-");
    Regex::new(&expression).map_err(|_| Error::failed(format!("{text:?} is not a pattern")))
}

/// What the host says of itself in `*.fact` files: JSON, INI, or a program that prints either.
async fn own_facts(probe: &Probe, directory: &str) -> Result<Value, Error> {
    let directory = probe.expand(directory).await?;
    let mut facts = Vars::new();
    for name in probe.list(&directory).await?.unwrap_or_default() {
        let Some(short) = name.strip_suffix(".fact") else { continue };
        let path = format!("{directory}/{name}");
        let executable = match probe.stat(&path, Links::Follow).await? {
            Some(stat) if stat.kind == FileKind::File => stat.mode & 0o111 != 0,
            _ => continue,
        };
        let value = match executable {
            true => {
                let output = probe.query(&Command::program([path.as_str()])).await?;
                match output.code {
                    0 => fact(&output.stdout),
                    code => Value::from(format!("error executing fact script {path}: code {code}")),
                }
            }
            false => fact(&probe.read(&path).await?.unwrap_or_default()),
        };
        facts.insert(Arc::from(short), value);
    }
    Ok(Value::from_pairs(facts))
}

fn fact(content: &[u8]) -> Value {
    match serde_json::from_slice::<serde_json::Value>(content) {
        Ok(json) => Value::from(minijinja::value::Serde(json)),
        Err(_) => ini(&String::from_utf8_lossy(content)),
    }
}

/// Sections of `key = value` lines; keys become lower case, as Ansible has them.
fn ini(text: &str) -> Value {
    let mut sections: indexmap::IndexMap<String, indexmap::IndexMap<String, Value>> = indexmap::IndexMap::new();
    let mut current: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.entry(name.to_owned()).or_default();
            current = Some(name.to_owned());
        } else if let (Some(section), Some((key, value))) = (&current, line.split_once(['=', ':'])) {
            let section = sections.entry(section.clone()).or_default();
            section.insert(key.trim().to_lowercase(), Value::from(value.trim()));
        }
    }
    Value::from_pairs(sections.into_iter().map(|(name, pairs)| (name, Value::from_pairs(pairs))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Vars {
        ["ansible_os_family", "ansible_eth0", "ansible_eth1"].iter().map(|n| (Arc::from(*n), Value::from(1))).collect()
    }

    fn names(filter: &[&str]) -> Vec<String> {
        let filter: Vec<String> = filter.iter().map(|text| (*text).to_owned()).collect();
        kept(facts(), &filter).unwrap().keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_filter_matches_names_with_and_without_the_prefix() {
        assert_eq!(names(&["ansible_eth[0-1]"]), ["ansible_eth0", "ansible_eth1"]);
        assert_eq!(names(&["eth[!0]"]), ["ansible_eth1"]);
        assert_eq!(names(&["os_*"]), ["ansible_os_family"]);
        assert_eq!(names(&["os"]), Vec::<String>::new());
        assert_eq!(names(&[]).len(), 3);
    }

    #[test]
    fn facts_of_the_hosts_own_are_json_or_ini() {
        assert_eq!(fact(b"{\"a\": [1]}").get_attr("a").unwrap().len(), Some(1));
        let ini = fact(b"# x\n[Part]\nKey = some value\n");
        assert_eq!(ini.get_attr("Part").unwrap().get_attr("key").unwrap().as_str(), Some("some value"));
    }

    #[test]
    fn local_facts_can_be_left_out() {
        let wants = |subset: &[&str]| wants_local(&subset.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert!(wants(&["all"]) && wants(&["min"]) && wants(&["local"]) && wants(&["!hardware"]));
        assert!(!wants(&["!local"]) && !wants(&["!all", "!min"]) && !wants(&["network"]));
    }
}
