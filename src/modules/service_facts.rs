//! `service_facts`: which services there are and what they do.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::execution::quote;
use super::{Controller, Effect, Error, Inspect, Outcome};
use crate::remote::{Command, Probe};
use crate::value::doc::{Doc, Return};
use crate::value::{Value, Vars};

/// Services by name.
type Services = BTreeMap<String, Json>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceFacts {}

impl Inspect for ServiceFacts {
    const DOC: Doc = Doc {
        name: "service_facts",
        collection: "ansible.builtin",
        summary: "Return services and their states as facts",
        arguments: &[],
        free_form: None,
        example: "\
- name: List the services
  service_facts:

- name: Show the state of the firewall
  debug:
    msg: \"{{ ansible_facts.services['nftables.service'].state }}\"
  when: \"'nftables.service' in ansible_facts.services\"
",
        returns: &[Return::new("ansible_facts", "services: by name, name, state, status and source")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let text = ask(probe, GATHER).await?;
        let part = |name: &str| {
            text.split(&format!("={name}=\n")).nth(1).map_or("", |rest| rest.split("\n=").next().unwrap_or(rest))
        };
        let mut services = scripts(part("scripts"));
        services.extend(openrc(part("openrc"), part("runlevels")));
        let mut units = running_units(part("units"));
        let files = unit_files(part("files"));
        let states = states_of(probe, files.keys().filter(|name| !units.contains_key(*name)).collect()).await?;
        for (name, status) in files {
            match units.get_mut(&name) {
                None => {
                    let state = states.get(&name).map_or("unknown", String::as_str);
                    let unit = json!({ "name": name, "state": state, "status": status, "source": "systemd" });
                    units.insert(name, unit);
                }
                Some(unit) if !is_bad(unit["status"].as_str().unwrap_or_default()) => unit["status"] = json!(status),
                Some(_) => {}
            }
        }
        services.extend(units);
        if services.is_empty() {
            let message = "the host has no supported service manager (systemd, init scripts, OpenRC)";
            return Ok(Outcome { skipped: true, ..Outcome::default().message(message) });
        }
        let services = Value::from(minijinja::value::Serde(Json::Object(services.into_iter().collect::<Map<_, _>>())));
        let facts = Vars::from_iter([(Arc::from("services"), services)]);
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(facts.clone()));
        Ok(outcome.effect(Effect::Facts(facts)))
    }
}

/// What each service manager says, behind a line with its part's name.
const GATHER: &str = "export LC_ALL=C SYSTEMD_COLORS=0\n\
    there() { command -v \"$1\" >/dev/null 2>&1; }\n\
    if there service && ! there chkconfig && ! there rc-status; then echo '=scripts='; service --status-all 2>&1; fi\n\
    if there rc-status && there rc-update; then echo '=openrc='; rc-status -a -s -m 2>&1 | grep '^ ' | tr -d '[]'\n\
    echo '=runlevels='; rc-update show -v 2>&1; fi\n\
    if there systemctl && [ -d /run/systemd/system ]; then\n\
    echo '=units='; systemctl list-units --no-pager --no-legend --type service --all --plain\n\
    echo '=files='; systemctl list-unit-files --no-pager --no-legend --type service --all; fi\nexit 0";

async fn ask(probe: &Probe, line: &str) -> Result<String, Error> {
    let output = probe.query(&Command::shell(line)).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What says more than whether a unit is enabled.
fn is_bad(status: &str) -> bool {
    matches!(status, "not-found" | "masked" | "failed")
}

/// `NAME LOAD ACTIVE SUB DESCRIPTION`
fn running_units(text: &str) -> Services {
    let mut units = Services::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, load, active, sub, ..] = fields[..] else { continue };
        let status = [load, active, sub].into_iter().find(|word| is_bad(word)).unwrap_or(active);
        let state = if sub == "running" { "running" } else { "stopped" };
        units.insert(name.to_owned(), json!({ "name": name, "state": state, "status": status, "source": "systemd" }));
    }
    units
}

/// `NAME STATUS PRESET`
fn unit_files(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    });
    pairs.collect()
}

/// What units do that nothing has loaded so far. A template (`getty@.service`) is none that could do anything.
async fn states_of(probe: &Probe, names: Vec<&String>) -> Result<BTreeMap<String, String>, Error> {
    let names: Vec<&String> = names.into_iter().filter(|name| !name.contains("@.")).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let words: Vec<String> = names.iter().map(|name| quote(name)).collect();
    let text = ask(probe, &format!("systemctl show --property=ActiveState -- {}", words.join(" "))).await?;
    let states = text.lines().filter_map(|line| line.strip_prefix("ActiveState="));
    Ok(names.into_iter().cloned().zip(states.map(str::to_owned)).collect())
}

/// ` [ + ]  cron`
fn scripts(text: &str) -> Services {
    let mut services = Services::new();
    for line in text.lines() {
        let state = match line.trim_start().get(..5) {
            Some("[ + ]") => "running",
            Some("[ - ]") => "stopped",
            _ => continue,
        };
        let name = line.trim_start()[5..].trim();
        services.insert(name.to_owned(), json!({ "name": name, "state": state, "source": "sysv" }));
    }
    services
}

/// ` sshd  started`, and ` sshd | default`.
fn openrc(states: &str, levels: &str) -> Services {
    let levels: BTreeMap<&str, Vec<&str>> = levels
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(name, levels)| (name.trim(), levels.split_whitespace().collect()))
        .collect();
    let mut services = Services::new();
    for line in states.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(state)) = (words.next(), words.next()) else { continue };
        let Some(levels) = levels.get(name) else { continue };
        let levels = if levels.is_empty() { Json::Null } else { json!(levels) };
        services
            .insert(name.to_owned(), json!({ "name": name, "runlevels": levels, "state": state, "source": "openrc" }));
    }
    services
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn units_are_running_or_not_and_what_is_wrong_counts_as_their_status() {
        let units = running_units(
            "cron.service loaded active running Regular jobs\nx.service not-found inactive dead x.service\n\
             y.service loaded failed failed Y\nz.service loaded active exited Z\n",
        );
        let both = |name: &str| (units[name]["state"].as_str().unwrap(), units[name]["status"].as_str().unwrap());
        assert_eq!(both("cron.service"), ("running", "active"));
        assert_eq!(both("x.service"), ("stopped", "not-found"));
        assert_eq!(both("y.service"), ("stopped", "failed"));
        assert_eq!(both("z.service"), ("stopped", "active"));
    }

    #[test]
    fn init_scripts_and_openrc_are_read() {
        let found = scripts(" [ + ]  cron\n [ - ]  x11-common\n [ ? ]  odd\n");
        assert_eq!((found.len(), &found["cron"]["state"]), (2, &json!("running")));
        let found = openrc("  sshd   started\n  odd   stopped\n", " sshd | default\n");
        assert_eq!(found.len(), 1);
        assert_eq!((&found["sshd"]["runlevels"], &found["sshd"]["state"]), (&json!(["default"]), &json!("started")));
    }

    #[tokio::test]
    async fn a_machine_with_or_without_services_is_no_failure() {
        let bench = Bench::new().await;
        let done = bench.check("service_facts:").await.unwrap();
        assert!(!done.changed);
        assert_eq!(done.outcome.skipped, !done.outcome.values.contains_key("ansible_facts"));
        bench.close().await;
    }
}
