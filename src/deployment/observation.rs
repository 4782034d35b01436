//! What a deployment's hosts are like, from the events of a run of `playbooks/observe.yml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::contract::{Observation, Reported};
use super::plan::Observed;
use crate::engine::{Event, Status};

/// Its playbook.
pub const PLAYBOOK: &str = Observation::PLAYBOOK;

/// The name of the entry that says why nothing could be observed on a host.
pub const HOST: &str = "the host";

/// The entry of a host that could not be reached.
pub const SILENT: &str = "does not answer";

/// Collects the observations of all hosts.
#[derive(Debug, Default)]
pub struct Observer {
    observed: Observed,
    /// Hosts that reported something, or why they could not.
    heard: BTreeSet<Arc<str>>,
    /// Hosts that a task was run on.
    asked: BTreeSet<Arc<str>>,
    /// The first report that could not be read.
    wrong: Option<String>,
    /// Why hosts could not be reached.
    unreached: BTreeMap<String, String>,
}

impl Observer {
    /// `observed` is known without asking a host.
    pub fn new(observed: Observed) -> Observer {
        Observer { observed, ..Observer::default() }
    }

    /// Takes an event of the run.
    pub fn observe_event(&mut self, event: &Event) {
        let Event::Result { task, host, looped: false, result, .. } = event else { return };
        self.asked.insert(host.clone());
        let trouble = match result.status {
            Status::Unreachable => {
                let why = result.message.clone().unwrap_or_else(|| SILENT.to_owned());
                let hint = result.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
                self.unreached.entry(host.to_string()).or_insert(why + &hint.unwrap_or_default());
                SILENT.to_owned()
            }
            Status::Failed => {
                let why = result.message.as_deref().unwrap_or("no message");
                format!("cannot be read ({}: {why})", task.name)
            }
            Status::Skipped => return,
            _ => {
                let facts = result.values.get("ansible_facts");
                let value = facts.and_then(|facts| facts.get_attr(Observation::VARIABLE).ok());
                if let Some(value) = value.filter(|value| !value.is_undefined()) {
                    self.heard.insert(host.clone());
                    match Observation::from_report(&value) {
                        Ok(observation) => self.add(host, observation),
                        Err(error) => _ = self.wrong.get_or_insert(error),
                    }
                }
                return;
            }
        };
        self.heard.insert(host.clone());
        self.observed.entry(host.to_string()).or_default().insert(HOST.into(), trouble);
    }

    fn add(&mut self, host: &str, observation: Observation) {
        let Observation { layout: _, files, programs, units, etcd_members, member_clusters } = observation;
        let of_host = self.observed.entry(host.to_owned()).or_default();
        of_host.extend(files.iter().filter_map(|line| file(line)));
        of_host.extend(programs.iter().filter_map(|line| program(line)));
        of_host.extend(units.iter().filter_map(|line| unit(line)));
        let members = etcd_members.into_iter().map(|member| (format!("member {}", member.name), member.id));
        let clusters = member_clusters
            .into_iter()
            .map(|cluster| (format!("member cluster {}", cluster.name), cluster.generation.to_string()));
        for (place, found) in [("etcd", members.collect::<Vec<_>>()), ("control plane", clusters.collect())] {
            if !found.is_empty() {
                self.observed.entry(place.to_owned()).or_default().extend(found);
            }
        }
    }

    /// Why hosts could not be reached, by their names: no host key may be known, for example. May name secrets.
    pub fn unreached_hosts(&self) -> BTreeMap<String, String> {
        self.unreached.clone()
    }

    /// All that was observed.
    ///
    /// # Errors
    /// A report cannot be read; or a host was asked and reported nothing, so that nothing is known of it.
    pub fn finish_observation(self) -> Result<Observed, String> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let silent: Vec<&str> = self.asked.difference(&self.heard).map(|host| &**host).collect();
        match silent.is_empty() {
            true => Ok(self.observed),
            false => Err(format!(
                "{PLAYBOOK} reports nothing in {} for {}\nhint: use the playbooks that belong to this version of \
                 windlass",
                Observation::VARIABLE,
                silent.join(", ")
            )),
        }
    }
}

/// `DIGEST  PATH`
fn file(line: &str) -> Option<(String, String)> {
    let (digest, path) = line.split_once("  ")?;
    Some((format!("file {path}"), digest.to_owned()))
}

/// `MODE:SIZE:TIME  'PATH'` or `MODE:SIZE:TIME  'LINK' -> 'TARGET'`
fn program(line: &str) -> Option<(String, String)> {
    let (look, names) = line.split_once("  ")?;
    let (path, target) = names.split_once(" -> ").unwrap_or((names, ""));
    Some((format!("program {}", path.trim_matches('\'')), format!("{look} {target}")))
}

/// `UNIT LOAD ACTIVE SUB DESCRIPTION`
fn unit(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let words: Vec<&str> = words.take(3).collect();
    // A service that fails and is started again and again is in another of these states at every look.
    let state = match words.as_slice() {
        [load, "active" | "activating", "running" | "auto-restart" | "start-pre" | "start" | "start-post"] => {
            format!("{load} started")
        }
        other => other.join(" "),
    };
    Some((format!("unit {name}"), state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_programs_become_names_and_states() {
        assert_eq!(file("ab12  /etc/a b"), Some(("file /etc/a b".into(), "ab12".into())));
        let link = program("a1ff:7:1763645954  '/opt/current' -> '3.5'");
        assert_eq!(link, Some(("program /opt/current".into(), "a1ff:7:1763645954 '3.5'".into())));
        let found = unit("etcd.service loaded active running etcd, a key-value store");
        assert_eq!(found, Some(("unit etcd.service".into(), "loaded started".into())));
        // The same while it is started again and again, and another one when it ended.
        assert_eq!(unit("etcd.service loaded activating auto-restart etcd"), found);
        assert_eq!(
            unit("etcd.service loaded failed failed etcd"),
            Some(("unit etcd.service".into(), "loaded failed failed".into()))
        );
        assert_eq!(file("sha256sum: /etc/x: Permission denied"), None);
    }

    #[test]
    fn a_host_that_reports_nothing_is_an_error() {
        let mut observer = Observer::default();
        observer.asked.insert("h1".into());
        let error = observer.finish_observation().unwrap_err();
        assert!(error.contains("reports nothing in windlass_observation for h1"), "{error}");
    }
}
