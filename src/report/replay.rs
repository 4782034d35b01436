//! A recorded run as it was shown: JSON lines back to events, for the report for a person. What a newer windlass has beside them is
//! skipped.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indexmap::IndexMap;
use serde_json::Value as Plain;

use super::human::{Human, HumanStyle};
use super::profile::Profile;
use super::{Colour, DisplayOptions, Report, coloured};
use crate::engine::{CommandEvent, Counts, Event, Recap, Stats, Status, Stream, TaskResult, TaskStart};
use crate::modules::{Diff, find_module};
use crate::value::{Origin, ProcessEnvironment, Source, Value, Vars};

/// Shows the events of a recorded run.
pub struct Replay {
    human: Human,
    /// As many `-v` as the caller has; the run may have had more.
    verbosity: u8,
}

impl Replay {
    pub fn to_writer(
        out: Box<dyn Write + Send>,
        colour: Colour,
        verbosity: u8,
        shows: DisplayOptions,
        around: &ProcessEnvironment,
    ) -> Replay {
        let style =
            HumanStyle { colour: coloured(colour, around), width: 80, verbosity, stamped: false, messages: true };
        Replay { human: Human::new(out, style).showing(shows), verbosity }
    }

    /// Shows an event.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn show_event(&mut self, line: &str) -> io::Result<()> {
        let Ok(object) = serde_json::from_str::<Plain>(line) else { return Ok(()) };
        let at = object["time"].as_str().and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok());
        let at = at.map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
        match object["event"].as_str() {
            Some("run_start") => {
                let verbosity = object["verbosity"].as_u64().and_then(|level| u8::try_from(level).ok());
                self.human.set_verbosity(self.verbosity.max(verbosity.unwrap_or_default()));
                Ok(())
            }
            Some("profile") => self.human.profile(at, &Profile::of_json(&object)),
            Some(name) => parse_event(name, &object).map_or(Ok(()), |event| self.human.event(at, &event)),
            None => Ok(()),
        }
    }

    /// Prints what was shown so far.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn print_shown(&mut self) -> io::Result<()> {
        self.human.show()
    }
}

/// None: it shows nothing, or is not known here.
pub(super) fn parse_event(name: &str, object: &Plain) -> Option<Event> {
    let host = || Arc::<str>::from(text(&object["host"]));
    let delegated = || object["delegated_to"].as_str().map(str::to_owned);
    Some(match name {
        "play_start" => Event::PlayStart {
            name: text(&object["play"]),
            origin: origin(&object["path"]),
            hosts: names(&object["hosts"]),
            check: truth(&object["check"]),
        },
        "no_hosts_matched" => Event::NoHosts { pattern: text(&object["pattern"]) },
        "next_batch" => Event::NextBatch,
        "task_start" => Event::TaskStart(task(object)),
        "task_end" => Event::TaskEnd(task(object)),
        "host_start" => Event::HostStart { task: task(object), host: host() },
        "item" => Event::Item {
            task: task(object),
            host: host(),
            delegated: delegated(),
            label: text(&object["item"]),
            result: result(&object["result"]),
        },
        "result" => Event::Result {
            task: task(object),
            host: host(),
            delegated: delegated(),
            looped: truth(&object["looped"]),
            result: result(&object["result"]),
        },
        "retry" => Event::Retry {
            task: task(object),
            host: host(),
            attempt: object["attempt"].as_u64().unwrap_or_default(),
            left: object["retries_left"].as_u64().unwrap_or_default(),
            result: result(&object["result"]),
        },
        "async_poll" => Event::AsyncPoll {
            task: task(object),
            host: host(),
            job: text(&object["job"]),
            elapsed: seconds(&object["seconds"]),
            limit: seconds(&object["limit"]),
        },
        "included" => Event::Included {
            what: text(&object["what"]),
            path: object["path"].as_str().map(PathBuf::from),
            item: object["item"].as_str().map(str::to_owned),
            hosts: names(&object["hosts"]),
        },
        "no_hosts_left" => Event::NoHostsLeft { percentage: truth(&object["percentage"]) },
        "warning" => Event::Warning(text(&object["message"])),
        "recap" => Event::Recap(recap(object)),
        "message" => {
            let stream = if object["stream"] == "stdout" { Stream::Stdout } else { Stream::Stderr };
            Event::Command(CommandEvent::Message { stream, text: text(&object["text"]) })
        }
        _ => return None,
    })
}

fn text(value: &Plain) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn truth(value: &Plain) -> bool {
    value.as_bool().unwrap_or_default()
}

fn seconds(value: &Plain) -> Duration {
    Duration::try_from_secs_f64(value.as_f64().unwrap_or_default()).unwrap_or_default()
}

fn names(value: &Plain) -> Vec<Arc<str>> {
    value.as_array().into_iter().flatten().filter_map(Plain::as_str).map(Arc::from).collect()
}

/// `roles/etcd/tasks/main.yml:4:7`
fn origin(value: &Plain) -> Origin {
    let whole = value.as_str().unwrap_or_default();
    let split = || {
        let (rest, column) = whole.rsplit_once(':')?;
        let (path, line) = rest.rsplit_once(':')?;
        Some((path, line.parse().ok()?, column.parse().ok()?))
    };
    let (path, line, column) = split().unwrap_or((whole, 1, 1));
    Origin { source: Arc::new(Source::new(path, "")), line, column }
}

fn task(object: &Plain) -> Arc<TaskStart> {
    let task = &object["task"];
    let action = task["action"].as_str().and_then(find_module).map_or("", |module| module.doc.name);
    Arc::new(TaskStart {
        id: task["id"].as_u64().and_then(|id| usize::try_from(id).ok()).unwrap_or_default(),
        name: text(&task["name"]),
        role: task["role"].as_str().map(Arc::from),
        action,
        origin: origin(&task["path"]),
        handler: truth(&task["handler"]),
        hosts: 0,
    })
}

fn result(value: &Plain) -> Arc<TaskResult> {
    let status = match value["status"].as_str() {
        Some("changed") => Status::Changed,
        Some("skipped") => Status::Skipped,
        Some("ignored") => Status::Ignored,
        Some("failed") => Status::Failed,
        Some("unreachable") => Status::Unreachable,
        _ => Status::Ok,
    };
    let diff = |part: &Plain| Diff {
        before_header: text(&part["before_header"]),
        after_header: text(&part["after_header"]),
        before: text(&part["before"]),
        after: text(&part["after"]),
    };
    Arc::new(TaskResult {
        status,
        changed: truth(&value["changed"]),
        message: value["msg"].as_str().map(str::to_owned),
        hint: value["hint"].as_str().map(str::to_owned),
        values: vars(&value["values"]),
        diff: value["diff"].as_array().into_iter().flatten().map(diff).collect(),
        no_log: value.get("censored").is_some(),
        took: seconds(&value["seconds"]),
    })
}

fn vars(value: &Plain) -> Vars {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.as_str().into(), Value::from(minijinja::value::Serde(value.clone())))).collect()
}

fn recap(object: &Plain) -> Recap {
    let count = |counts: &Plain, name: &str| {
        counts[name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
    };
    let of_host = |counts: &Plain| Counts {
        ok: count(counts, "ok"),
        changed: count(counts, "changed"),
        unreachable: count(counts, "unreachable"),
        failed: count(counts, "failed"),
        skipped: count(counts, "skipped"),
        rescued: count(counts, "rescued"),
        ignored: count(counts, "ignored"),
    };
    let hosts = object["hosts"].as_object().into_iter().flatten();
    let stats = object["host_stats"].as_object().into_iter().flatten();
    Recap {
        hosts: hosts.map(|(host, counts)| (host.as_str().into(), of_host(counts))).collect::<IndexMap<_, _>>(),
        stats: Stats {
            run: vars(&object["stats"]),
            hosts: stats.map(|(host, stats)| (host.as_str().into(), vars(stats))).collect(),
        },
        took: seconds(&object["seconds"]),
        interrupted: truth(&object["interrupted"]),
        ..Recap::default()
    }
}

#[cfg(test)]
mod tests;
