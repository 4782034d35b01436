//! `setup`: facts of the host.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::Serde;
use serde::Deserialize;

use super::{Controller, Effect, Error, Inspect, Outcome, name_pattern, python_regex};
use crate::remote::{Command, Links, Probe, gathers};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    filter: Vec<String>,
    gather_subset: Vec<String>,
    /// Facts come in one request, which has the limits of any other.
    #[serde(rename = "gather_timeout")]
    _gather_timeout: i64,
    fact_path: String,
    /// Of `gather_facts`: there is one module that gathers.
    #[serde(default, rename = "parallel")]
    _parallel: Option<bool>,
}

const FILTER: Argument = Argument::new(
    "filter",
    ArgumentKind::List(&ArgumentKind::Str),
    "Patterns with * and ?; only facts that match one are kept",
)
.default("[]");
const SUBSET: Argument = Argument::new(
    "gather_subset",
    ArgumentKind::List(&ArgumentKind::Str),
    "Which facts to gather, such as all, min, network, !hardware",
)
.default("all");
const TIMEOUT: Argument = Argument::new(
    "gather_timeout",
    ArgumentKind::Int,
    "Accepted for compatibility; windlass reads all facts in one request",
)
.default("10");
const FACT_PATH: Argument =
    Argument::new("fact_path", ArgumentKind::Path, "The directory on the host with local facts, *.fact")
        .default("/etc/ansible/facts.d");

/// What a play does with `gather_facts: true`, as a task.
pub(super) static GATHER_FACTS: Doc = Doc {
    name: "gather_facts",
    collection: "ansible.builtin",
    summary: "Gather facts of the host; the same as setup",
    arguments: &[
        Argument::new(
            "parallel",
            ArgumentKind::Bool,
            "Accepted for compatibility; windlass reads all facts in one request",
        ),
        FILTER,
        SUBSET,
        TIMEOUT,
        FACT_PATH,
    ],
    free_form: None,
    example: "\
- name: Gather facts again after a change of the address
  gather_facts:
",
    returns: &[Return::new("ansible_facts", "The facts, each with the prefix ansible_")],
};

/// Whether a module is one that gathers the facts of a host.
pub fn gathers_facts(doc: &Doc) -> bool {
    matches!(doc.name, "setup" | "gather_facts")
}

impl Inspect for Setup {
    const DOC: Doc = Doc {
        name: "setup",
        collection: "ansible.builtin",
        summary: "Gather facts of the host",
        arguments: &[FILTER, SUBSET, TIMEOUT, FACT_PATH],
        free_form: None,
        example: "\
- name: Gather only facts about the system
  setup:
    gather_subset: [min]
    filter: [ansible_distribution*, ansible_architecture]
",
        returns: &[Return::new("ansible_facts", "The facts, each with the prefix ansible_")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut facts = probe.facts(&self.gather_subset).await?;
        if gathers(&self.gather_subset, "local")? {
            facts.insert(Arc::from("ansible_local"), own_facts(probe, &self.fact_path).await?);
        }
        let facts = kept(facts, &self.filter)?;
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(facts.clone()));
        Ok(outcome.effect(Effect::Facts(facts)))
    }
}

fn kept(facts: Vars, filter: &[String]) -> Result<Vars, Error> {
    let patterns = filter.iter().filter(|text| !text.is_empty()).map(|text| name_pattern::compile(text, "filter"));
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    if patterns.is_empty() {
        return Ok(facts);
    }
    let mut kept = Vars::new();
    for (name, value) in facts {
        let short = name.strip_prefix("ansible_").unwrap_or(&name);
        for pattern in &patterns {
            if python_regex::is_match(pattern, &name)? || python_regex::is_match(pattern, short)? {
                kept.insert(name, value);
                break;
            }
        }
    }
    Ok(kept)
}

/// As values a fact takes many times the memory of its text.
const MOST_OWN_FACT: usize = 4 << 20;

/// What the host says of itself in `*.fact` files: JSON, INI, or a program that prints either. A file that cannot be
/// used says so in its own place.
async fn own_facts(probe: &Probe, directory: &str) -> Result<Value, Error> {
    let directory = probe.expand_on_host(directory).await?;
    let mut facts = Vars::new();
    for name in probe.list_directory(&directory).await?.unwrap_or_default() {
        let Some(short) = name.strip_suffix(".fact").filter(|short| !short.starts_with('.')) else { continue };
        facts.insert(Arc::from(short), own_fact(probe, &format!("{directory}/{name}")).await?);
    }
    Ok(Value::from_pairs(facts))
}

async fn own_fact(probe: &Probe, path: &str) -> Result<Value, Error> {
    let content = match probe.stat(path, Links::Follow).await? {
        None => return Ok(Value::from(format!("Could not stat fact ({path})"))),
        Some(stat) if stat.mode & 0o100 != 0 => {
            let output = probe.query(&Command::program([path])).await?;
            if output.code != 0 {
                let words = String::from_utf8_lossy(&output.stderr);
                let message = format!("Failure executing fact script ({path}), rc: {}, err: {words}", output.code);
                return Ok(Value::from(message));
            }
            output.stdout
        }
        Some(_) => probe.read_file(path).await?.unwrap_or_default(),
    };
    if content.len() > MOST_OWN_FACT {
        return Ok(Value::from(format!("the fact file is larger than {} MiB ({path})", MOST_OWN_FACT >> 20)));
    }
    let bad = || Value::from(format!("error loading facts as JSON or ini - please check content: {path}"));
    Ok(fact(&content).unwrap_or_else(bad))
}

/// None: neither JSON nor INI.
fn fact(content: &[u8]) -> Option<Value> {
    match serde_json::from_slice::<serde_json::Value>(content) {
        Ok(json) => Some(Value::from(Serde(json))),
        Err(_) => ini(std::str::from_utf8(content).ok()?),
    }
}

/// Sections of `key = value` lines; an indented line continues the value above. Keys become lower case, as in Ansible.
/// None: a line has another form.
fn ini(text: &str) -> Option<Value> {
    let mut sections: IndexMap<String, IndexMap<String, String>> = IndexMap::new();
    let mut key = None;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', ';'])) {
        let trimmed = line.trim();
        let section = sections.last_mut().map(|(_, section)| section);
        if let (true, Some(key), Some(section)) = (line.starts_with([' ', '\t']), &key, section) {
            let value: &mut String = section.get_mut(key)?;
            value.push('\n');
            value.push_str(trimmed);
        } else if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // A section that is written twice is a mistake, too.
            if sections.insert(name.to_owned(), IndexMap::new()).is_some() {
                return None;
            }
            key = None;
        } else {
            let (name, value) = trimmed.split_once(['=', ':'])?;
            let name = name.trim().to_lowercase();
            sections.last_mut()?.1.insert(name.clone(), value.trim().to_owned());
            key = Some(name);
        }
    }
    let pairs = |section: IndexMap<String, String>| {
        Value::from_pairs(section.into_iter().map(|(name, value)| (name, Value::from(value))))
    };
    Some(Value::from_pairs(sections.into_iter().map(|(name, section)| (name, pairs(section)))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
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
        assert_eq!(fact(b"{\"a\": [1]}").unwrap().get_attr("a").unwrap().len(), Some(1));
        let ini = fact(b"# x\n[Part]\nKey = some value\n  and more\nOther: 1\n").unwrap();
        assert_eq!(ini.to_string(), "{'Part': {'key': 'some value\\nand more', 'other': '1'}}");
        for wrong in ["no section = 1", "[a]\nno value", "[a]\n[a]\n", "\u{ff}"] {
            assert!(fact(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn facts_of_the_hosts_own_come_from_files_and_programs_and_say_what_is_wrong() {
        let bench = Bench::new().await;
        bench.on_host("facts/a.fact", "{\"x\": 1}");
        bench.on_host("facts/.hidden.fact", "{}");
        bench.on_host("facts/bad.fact", "neither");
        bench.on_host("facts/large.fact", format!("\"{}\"", "x".repeat(MOST_OWN_FACT)));
        let program = |name: &str, text: &str| {
            crate::value::testing::write_program(bench.host(name), text);
        };
        program("facts/run.fact", "#!/bin/sh\necho '[s]'\necho k=v\n");
        program("facts/wrong.fact", "#!/bin/sh\necho no >&2\nexit 3\n");
        let task = "setup: {fact_path: HOST/facts, gather_subset: ['!all', '!min', local]}";
        let done = bench.check(task).await.unwrap();
        let local = done.outcome.values["ansible_facts"].get_attr("ansible_local").unwrap();
        let text = |name: &str| local.get_attr(name).unwrap().to_string();
        assert_eq!((text("a"), text("run")), ("{'x': 1}".to_owned(), "{'s': {'k': 'v'}}".to_owned()));
        assert!(text("bad").starts_with("error loading facts as JSON or ini - please check content: /"));
        assert!(
            text("wrong").starts_with("Failure executing fact script (/") && text("wrong").contains("rc: 3, err: no")
        );
        assert!(text("large").starts_with("the fact file is larger than 4 MiB (/"));
        assert_eq!(local.len(), Some(5));
        for (subset, wanted) in
            [("[network]", true), ("['!min']", false), ("['!all', '!min']", false), ("['!local']", false)]
        {
            let task = format!("setup: {{fact_path: HOST/facts, gather_subset: {subset}, filter: ansible_local}}");
            let facts = bench.run(&task).await.unwrap().outcome.values["ansible_facts"].clone();
            assert_eq!(facts.len(), Some(usize::from(wanted)), "{subset}");
        }
        bench.close().await;
    }
}
