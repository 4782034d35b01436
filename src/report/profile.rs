//! Where a run's time went: by task, by role, by host; from its events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indexmap::IndexMap;
use serde_json::{Value as Plain, json};

use crate::engine::Event;

/// What is shown to a person of each list; programs get all.
const SHOWN: usize = 20;

/// Times as they are seen so far.
#[derive(Debug, Default)]
pub(super) struct Timings {
    /// Tasks that are under way, by id.
    open: HashMap<usize, SystemTime>,
    /// By name and place: a task may be run for several batches of hosts.
    tasks: IndexMap<(String, String), TimeSpent>,
    roles: IndexMap<Arc<str>, TimeSpent>,
    hosts: IndexMap<Arc<str>, TimeSpent>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct TimeSpent {
    time: Duration,
    times: usize,
}

impl TimeSpent {
    fn add(&mut self, time: Duration) {
        self.time += time;
        self.times += 1;
    }
}

/// Three lists, each with the longest first. Tasks and roles: from their first host's beginning to their last host's
/// end. Hosts: the time that their tasks took.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Profile {
    tasks: Vec<Entry>,
    roles: Vec<Entry>,
    hosts: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    /// Where it is written; tasks only.
    path: Option<String>,
    time: Duration,
    /// Of the whole run, 0 to 1; more where things ran side by side.
    share: f64,
    times: usize,
}

impl Timings {
    pub(super) fn event(&mut self, at: SystemTime, event: &Event) {
        match event {
            Event::TaskStart(task) => _ = self.open.insert(task.id, at),
            Event::TaskEnd(task) => {
                let Some(begun) = self.open.remove(&task.id) else { return };
                // What was included counts for itself.
                if matches!(task.action, "include_tasks" | "include_role") {
                    return;
                }
                let took = at.duration_since(begun).unwrap_or_default();
                self.tasks.entry((task.name.clone(), task.origin.to_string())).or_default().add(took);
                if let Some(role) = &task.role {
                    self.roles.entry(role.clone()).or_default().add(took);
                }
            }
            Event::Result { host, result, .. } => self.hosts.entry(host.clone()).or_default().add(result.took),
            _ => {}
        }
    }

    /// The lists, with shares of `took`.
    pub(super) fn finish_profile(&self, took: Duration) -> Profile {
        let whole = took.as_secs_f64().max(0.001);
        let entry = |name: &str, path: Option<&String>, spent: &TimeSpent| Entry {
            name: name.to_string(),
            path: path.cloned(),
            time: spent.time,
            share: spent.time.as_secs_f64() / whole,
            times: spent.times,
        };
        Profile {
            tasks: sorted(self.tasks.iter().map(|((name, path), spent)| entry(name, Some(path), spent))),
            roles: sorted(self.roles.iter().map(|(name, spent)| entry(name, None, spent))),
            hosts: sorted(self.hosts.iter().map(|(name, spent)| entry(name, None, spent))),
        }
    }
}

fn sorted(entries: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.time));
    entries
}

impl Profile {
    /// The lists of an object as [`Profile::profile_json`] makes it.
    pub(super) fn of_json(object: &Plain) -> Profile {
        let entry = |entry: &Plain| Entry {
            name: entry["name"].as_str().unwrap_or_default().to_owned(),
            path: entry["path"].as_str().map(str::to_owned),
            time: Duration::try_from_secs_f64(entry["seconds"].as_f64().unwrap_or_default()).unwrap_or_default(),
            share: entry["share"].as_f64().unwrap_or_default(),
            times: entry["times"].as_u64().and_then(|times| usize::try_from(times).ok()).unwrap_or_default(),
        };
        let list = |name: &str| object[name].as_array().into_iter().flatten().map(entry).collect();
        Profile { tasks: list("tasks"), roles: list("roles"), hosts: list("hosts") }
    }

    /// The lists as a person reads them: a heading and its lines each; empty lists are left out.
    pub(super) fn sections(&self) -> Vec<(&'static str, Vec<String>)> {
        let lists = [("TIME BY TASK", &self.tasks), ("TIME BY ROLE", &self.roles), ("TIME BY HOST", &self.hosts)];
        lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name, lines(list))).collect()
    }

    /// The lists as an object of three.
    pub(super) fn profile_json(&self) -> Plain {
        let list = |entries: &[Entry]| -> Plain {
            let plain = entries.iter().map(|entry| {
                let mut object = json!({"name": entry.name, "seconds": entry.time.as_secs_f64(),
                    "share": (entry.share * 1000.0).round() / 1000.0, "times": entry.times});
                if let Some(path) = &entry.path {
                    object["path"] = json!(path);
                }
                object
            });
            plain.collect()
        };
        json!({"tasks": list(&self.tasks), "roles": list(&self.roles), "hosts": list(&self.hosts)})
    }
}

fn lines(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let times = if entry.times > 1 { format!(" ({} times)", entry.times) } else { String::new() };
        // A host always has several tasks: how many says nothing of its slowness.
        let times = if entry.path.is_some() { times } else { String::new() };
        format!("{:>9.2} s {:>5.1}%  {}{times}", entry.time.as_secs_f64(), entry.share * 100.0, entry.name)
    };
    let mut lines: Vec<String> = entries.iter().take(SHOWN).map(line).collect();
    if let Some(rest) = entries.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let time: Duration = rest.iter().map(|entry| entry.time).sum();
        let share: f64 = rest.iter().map(|entry| entry.share).sum();
        let words = format!("{} more", rest.len());
        lines.push(format!("{:>9.2} s {:>5.1}%  {words}", time.as_secs_f64(), share * 100.0));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::example_run;
    use super::*;

    fn profile(events: Vec<crate::engine::TimedEvent>, took: u64) -> Profile {
        let mut timings = Timings::default();
        events.iter().for_each(|reported| timings.event(reported.at, &reported.event));
        timings.finish_profile(Duration::from_secs(took))
    }

    #[test]
    fn tasks_and_roles_take_from_their_start_to_their_end_and_hosts_what_their_tasks_took() {
        let profile = profile(example_run::example_events(), 10);
        let reported = profile.sections();
        assert_eq!(reported[0], ("TIME BY TASK", vec!["     5.00 s  50.0%  etcd : Start it".to_string()]));
        assert_eq!(reported[1], ("TIME BY ROLE", vec!["     5.00 s  50.0%  etcd".to_string()]));
        assert_eq!(reported[2].1, ["     1.00 s  10.0%  h1", "     1.00 s  10.0%  h2"]);
        let plain = profile.profile_json();
        assert_eq!(plain["tasks"][0]["path"], "site.yml:4:7");
        assert_eq!((&plain["tasks"][0]["share"], &plain["hosts"][1]["name"]), (&json!(0.5), &json!("h2")));
    }

    #[test]
    fn the_longest_come_first_and_what_is_beyond_twenty_is_reported_as_a_sum() {
        let mut events = Vec::new();
        for id in 0..23usize {
            let task = Arc::new(example_run::task(id, &format!("task {id}")));
            let at = example_run::example_start() + Duration::from_secs(id as u64 * 100);
            let reported = |at, event| crate::engine::TimedEvent { at, event };
            events.push(reported(at, Event::TaskStart(task.clone())));
            events.push(reported(at + Duration::from_secs(id as u64), Event::TaskEnd(task)));
        }
        let profile = profile(events, 100);
        let lines = &profile.sections()[0].1;
        assert_eq!(lines.len(), 21);
        assert_eq!((&*lines[0], &*lines[20]), ("    22.00 s  22.0%  task 22", "     3.00 s   3.0%  3 more"));
    }
}
