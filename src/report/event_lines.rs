//! Events as JSON lines, format 1: for `--output json`, and for the store of runs. Each has the run's id, a sequence number without
//! gaps, its time and its stage. [`event_fields`](super::event_fields) describes them.

use std::time::SystemTime;

use serde_json::{Map, Value as Plain, json};

use super::json::to_json;
use super::paint::plain_json;
use super::profile::Profile;
use crate::engine::{CommandEvent, CommandStart, Event, Recap, Status, TaskResult, TaskStart};
use crate::runs::{RUN_FORMAT, RecordedEvent, RunId, timestamp_text};
use crate::value::Vars;

/// Numbers the events of a run, and writes them.
pub(super) struct EventLines {
    run: RunId,
    sequence: u64,
    stage: Option<String>,
    tasks: TaskIds,
}

/// Task ids that no other task of the run has: the engine starts to count again for every playbook of a deployment.
#[derive(Default)]
struct TaskIds {
    /// Added to those of the engine.
    before: usize,
    highest: usize,
}

impl TaskIds {
    fn unique(&mut self, id: usize) -> usize {
        let id = self.before + id;
        self.highest = self.highest.max(id);
        id
    }

    fn end_playbooks(&mut self) {
        self.before = self.highest + 1;
    }
}

impl EventLines {
    pub(super) fn of_run(run: RunId) -> EventLines {
        EventLines { run, sequence: 0, stage: None, tasks: TaskIds::default() }
    }

    /// The next line.
    pub(super) fn event_line(&mut self, at: SystemTime, event: &Event) -> RecordedEvent {
        if let Event::Command(CommandEvent::StageStart { stage, .. }) = event {
            self.stage = Some(stage.clone());
        }
        let (name, fields) = self.named_fields(at, event);
        let line = self.line(at, name, fields);
        match event {
            Event::Command(CommandEvent::StageEnd { .. }) => self.stage = None,
            Event::Recap(_) => self.tasks.end_playbooks(),
            _ => {}
        }
        line
    }

    /// The line of the timings.
    pub(super) fn profile_line(&mut self, at: SystemTime, profile: &Profile) -> RecordedEvent {
        self.line(at, "profile", profile.profile_json())
    }

    fn line(&mut self, at: SystemTime, name: &str, fields: Plain) -> RecordedEvent {
        self.sequence += 1;
        let mut line = json!({"event": name, "format": RUN_FORMAT, "run": self.run, "sequence": self.sequence,
            "time": timestamp_text(at), "stage": self.stage});
        if let (Plain::Object(line), Plain::Object(fields)) = (&mut line, fields) {
            // A stage's own events name it, too.
            line.extend(fields);
        }
        RecordedEvent { sequence: self.sequence, line: plain_json(&line.to_string()).into_owned() }
    }

    fn named_fields(&mut self, at: SystemTime, event: &Event) -> (&'static str, Plain) {
        match event {
            Event::PlayStart { name, origin, hosts, check } => {
                ("play_start", json!({"play": name, "path": origin.to_string(), "hosts": names(hosts), "check": check}))
            }
            Event::NextBatch => ("next_batch", json!({})),
            Event::NoHosts { pattern } => ("no_hosts_matched", json!({"pattern": pattern})),
            Event::TaskStart(task) => ("task_start", json!({"task": self.task(task)})),
            Event::TaskEnd(task) => ("task_end", json!({"task": self.task(task)})),
            Event::HostStart { task, host } => ("host_start", json!({"task": self.task(task), "host": &**host})),
            Event::Item { task, host, delegated, label, result } => {
                let task = self.task(task);
                (
                    "item",
                    json!({"task": task, "host": &**host, "delegated_to": delegated, "item": label,
                    "result": result_fields(result)}),
                )
            }
            Event::Result { task, host, delegated, looped, result } => {
                let started = timestamp_text(at.checked_sub(result.took).unwrap_or(at));
                let task = self.task(task);
                (
                    "result",
                    json!({"task": task, "host": &**host, "delegated_to": delegated, "looped": looped,
                    "started": started, "result": result_fields(result)}),
                )
            }
            Event::Retry { task, host, attempt, left, result } => {
                let task = self.task(task);
                (
                    "retry",
                    json!({"task": task, "host": &**host, "attempt": attempt, "retries_left": left,
                    "result": result_fields(result)}),
                )
            }
            Event::AsyncPoll { task, host, job, elapsed, limit } => {
                let task = self.task(task);
                (
                    "async_poll",
                    json!({"task": task, "host": &**host, "job": job, "seconds": elapsed.as_secs_f64(),
                    "limit": limit.as_secs_f64()}),
                )
            }
            Event::Progress { host, progress } => (
                "progress",
                json!({"host": &**host, "what": progress.what,
                "done": progress.done, "total": progress.total}),
            ),
            Event::Question(question) => ("question", json!({"words": question.words})),
            Event::Meta { task, host, skipped } => {
                ("meta", json!({"task": self.task(task), "host": &**host, "skipped": skipped}))
            }
            Event::Included { what, path, item, hosts } => {
                let path = path.as_ref().map(|path| path.display().to_string());
                ("included", json!({"what": what, "path": path, "item": item, "hosts": names(hosts)}))
            }
            Event::NoHostsLeft { percentage } => ("no_hosts_left", json!({"percentage": percentage})),
            Event::Warning(text) => ("warning", json!({"message": text})),
            Event::Recap(recap) => ("recap", recap_fields(recap)),
            Event::Command(event) => command_fields(event),
        }
    }

    fn task(&mut self, task: &TaskStart) -> Plain {
        json!({"id": self.tasks.unique(task.id), "name": task.name, "role": task.role.as_deref(), "action": task.action,
            "path": task.origin.to_string(), "handler": task.handler})
    }
}

fn command_fields(event: &CommandEvent) -> (&'static str, Plain) {
    match event {
        CommandEvent::Start(start) => {
            let CommandStart { command, command_line, user, pid, version, check, verbosity } = start;
            (
                "run_start",
                json!({"command": command, "command_line": command_line, "user": user, "pid": pid,
                "version": version, "check": check, "verbosity": verbosity}),
            )
        }
        CommandEvent::Deployment { name, hosts } => ("deployment", json!({"deployment": name, "hosts": hosts})),
        CommandEvent::StageStart { stage, playbook, check } => {
            let playbook = playbook.display().to_string();
            ("stage_start", json!({"stage": stage, "playbook": playbook, "check": check}))
        }
        CommandEvent::StageEnd { stage, outcome, changes } => {
            ("stage_end", json!({"stage": stage, "outcome": outcome, "changes": changes}))
        }
        CommandEvent::Message { stream, text } => ("message", json!({"stream": stream.stream_word(), "text": text})),
        CommandEvent::End { outcome, exit_code } => ("run_end", json!({"outcome": outcome, "exit_code": exit_code})),
    }
}

fn recap_fields(recap: &Recap) -> Plain {
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
    let of_hosts: Map<_, _> = recap.stats.hosts.iter().map(|(host, stats)| (host.to_string(), values(stats))).collect();
    json!({"hosts": hosts, "stats": values(&recap.stats.run), "host_stats": of_hosts,
        "failed_hosts": recap.lost.failed.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        "unreachable_hosts": recap.lost.unreachable.iter().map(AsRef::as_ref).collect::<Vec<&str>>(),
        "seconds": recap.took.as_secs_f64(), "interrupted": recap.interrupted})
}

fn names(hosts: &[std::sync::Arc<str>]) -> Vec<&str> {
    hosts.iter().map(AsRef::as_ref).collect()
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

fn result_fields(result: &TaskResult) -> Plain {
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

#[cfg(test)]
mod tests;
