//! The report for programs: one JSON object per line, one line per event; every object has `event` and `time`.

use std::io::{self, Write};
use std::time::SystemTime;

use minijinja::value::ValueKind;
use serde_json::{Map, Value as Plain, json};

use super::Report;
use super::log::stamp;
use super::paint::plain_json;
use super::profile::Profile;
use crate::engine::{Event, Status, TaskResult, TaskStart};
use crate::value::{Value, Vars};

pub(super) struct Json<W> {
    out: W,
    /// Lines that are not printed yet.
    pending: String,
}

impl<W: Write + Send> Json<W> {
    pub(super) fn new(out: W) -> Self {
        Json { out, pending: String::new() }
    }

    fn line(&mut self, at: SystemTime, mut line: Plain) {
        line["time"] = json!(stamp(at));
        self.pending.push_str(&plain_json(&line.to_string()));
        self.pending.push('\n');
    }
}

impl<W: Write + Send> Report for Json<W> {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        if let Some(line) = object(event) {
            self.line(at, line);
        }
        Ok(())
    }

    fn show(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(self.pending.as_bytes()).and_then(|()| self.out.flush());
        self.pending.clear();
        written
    }

    fn profile(&mut self, at: SystemTime, profile: &Profile) -> io::Result<()> {
        let mut line = profile.profile_json();
        line["event"] = json!("profile");
        self.line(at, line);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.show()
    }
}

/// The event as an object; None: not worth a line.
fn object(event: &Event) -> Option<Plain> {
    Some(match event {
        Event::PlayStart { name, origin, hosts, check } => {
            json!({"event": "play_start", "play": name, "path": origin.to_string(), "hosts": names(hosts),
                "check": check})
        }
        Event::NoHosts { pattern } => json!({"event": "no_hosts_matched", "pattern": pattern}),
        Event::TaskStart(task) => json!({"event": "task_start", "task": described(task)}),
        Event::HostStart { .. } | Event::TaskEnd(_) | Event::Meta { .. } | Event::NextBatch => return None,
        Event::Item { task, host, delegated, label, result } => {
            json!({"event": "item", "task": described(task), "host": &**host, "delegated_to": delegated,
                "item": label, "result": told(result)})
        }
        Event::Result { task, host, delegated, result, .. } => {
            json!({"event": "result", "task": described(task), "host": &**host, "delegated_to": delegated,
                "result": told(result)})
        }
        Event::Retry { task, host, attempt, left, result } => {
            json!({"event": "retry", "task": described(task), "host": &**host, "attempt": attempt,
                "retries_left": left, "result": told(result)})
        }
        Event::AsyncPoll { task, host, job, elapsed, limit } => {
            json!({"event": "async_poll", "task": described(task), "host": &**host, "job": job,
                "seconds": elapsed.as_secs_f64(), "limit": limit.as_secs_f64()})
        }
        Event::Progress { host, progress } => {
            json!({"event": "progress", "host": &**host, "what": progress.what, "done": progress.done,
                "total": progress.total})
        }
        Event::Question(question) => json!({"event": "question", "words": question.words}),
        Event::Included { what, hosts, .. } => json!({"event": "included", "what": what, "hosts": names(hosts)}),
        Event::NoHostsLeft { .. } => json!({"event": "no_hosts_left"}),
        Event::Warning(text) => json!({"event": "warning", "message": text}),
        Event::Recap(recap) => {
            let hosts: Map<String, Plain> = recap
                .hosts
                .iter()
                .map(|(host, counts)| {
                    let counts = json!({"ok": counts.ok, "changed": counts.changed, "unreachable": counts.unreachable,
                        "failed": counts.failed, "skipped": counts.skipped, "rescued": counts.rescued,
                        "ignored": counts.ignored});
                    (host.to_string(), counts)
                })
                .collect();
            let of_hosts = recap.stats.hosts.iter().map(|(host, stats)| (host.to_string(), values(stats)));
            let of_hosts: serde_json::Map<_, _> = of_hosts.collect();
            json!({"event": "recap", "hosts": hosts, "stats": values(&recap.stats.run), "host_stats": of_hosts,
                "seconds": recap.took.as_secs_f64(), "interrupted": recap.interrupted})
        }
    })
}

fn names(hosts: &[std::sync::Arc<str>]) -> Vec<&str> {
    hosts.iter().map(AsRef::as_ref).collect()
}

fn described(task: &TaskStart) -> Plain {
    json!({"name": task.name, "role": task.role.as_deref(), "action": task.action, "path": task.origin.to_string(), "handler": task.handler})
}

/// The word for a status in reports for programs.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Changed => "changed",
        Status::Skipped => "skipped",
        Status::Ignored => "ignored",
        Status::Failed => "failed",
        Status::Unreachable => "unreachable",
    }
}

fn told(result: &TaskResult) -> Plain {
    let mut object =
        json!({"status": status_word(result.status), "changed": result.changed, "seconds": result.took.as_secs_f64()});
    if result.no_log {
        object["censored"] = json!("hidden by no_log");
        return object;
    }
    if let Some(message) = &result.message {
        object["msg"] = json!(message);
    }
    if let Some(hint) = &result.hint {
        object["hint"] = json!(hint);
    }
    if !result.values.is_empty() {
        object["values"] = values(&result.values);
    }
    if !result.diff.is_empty() {
        let parts = result.diff.iter().map(|diff| {
            json!({"before_header": diff.before_header, "after_header": diff.after_header,
                "before": diff.before, "after": diff.after})
        });
        object["diff"] = parts.collect();
    }
    object
}

fn values(vars: &Vars) -> Plain {
    Plain::Object(vars.iter().map(|(name, value)| (name.to_string(), to_json(value))).collect())
}

/// A dynamic value as JSON; what JSON does not know becomes its text.
pub fn to_json(value: &Value) -> Plain {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Plain::Null,
        ValueKind::Map => Plain::Object(
            value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|key| (key.to_string(), to_json(&value.get_item(&key).unwrap_or_default())))
                .collect(),
        ),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().into_iter().flatten().map(|item| to_json(&item)).collect()
        }
        ValueKind::Bytes => json!(String::from_utf8_lossy(value.as_bytes().unwrap_or_default())),
        ValueKind::Bool | ValueKind::Number | ValueKind::String => {
            serde_json::to_value(value).unwrap_or_else(|_| json!(value.to_string()))
        }
        _ => json!(value.to_string()),
    }
}
