//! The tasks of a run with the result of each host: what its events come to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::problem::Problem;
use super::{Server, answers, follow};
use crate::runs::{RecordedRun, RunId};
use crate::value::mutex::Mutex;

/// The tasks of a run by now.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunTasks {
    run: RecordedRun,
    #[serde(flatten)]
    folded: FoldedTasks,
}

/// What events come to.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct FoldedTasks {
    /// The number of the last event that is in it.
    sequence: u64,
    /// In the order in which they appeared.
    hosts: Vec<String>,
    tasks: Vec<TaskRow>,
    /// The same, to find them.
    #[serde(skip)]
    known: HashSet<String>,
    #[serde(skip)]
    places: HashMap<u64, usize>,
    #[serde(skip)]
    play: Option<String>,
}

/// A task.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TaskRow {
    id: u64,
    stage: Option<String>,
    play: Option<String>,
    name: String,
    role: Option<String>,
    action: String,
    path: String,
    handler: bool,
    started: String,
    /// None: it is running.
    seconds: Option<f64>,
    /// By host.
    results: BTreeMap<String, HostResult>,
}

/// What a host made of a task.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct HostResult {
    /// `running`, or as in a result event.
    status: String,
    /// None: it is running.
    seconds: Option<f64>,
    /// The number of the event.
    sequence: u64,
    /// Of a host that failed or was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// How much of a message is shown here, in characters.
const LONGEST_TEXT: usize = 2000;

/// What is needed of an event; the rest, such as what a program printed, is passed over.
#[derive(Deserialize)]
struct EventHead<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    sequence: Option<u64>,
    #[serde(borrow, default)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    stage: Option<Cow<'a, str>>,
    #[serde(borrow)]
    play: Option<Cow<'a, str>>,
    #[serde(borrow)]
    host: Option<Cow<'a, str>>,
    #[serde(borrow)]
    task: Option<TaskHead<'a>>,
    #[serde(borrow)]
    result: Option<ResultHead<'a>>,
}

#[derive(Deserialize)]
struct TaskHead<'a> {
    id: u64,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(default)]
    handler: bool,
}

#[derive(Deserialize)]
struct ResultHead<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    seconds: Option<f64>,
    #[serde(default)]
    msg: serde_json::Value,
    #[serde(default)]
    hint: serde_json::Value,
}

impl FoldedTasks {
    /// Adds the next event.
    fn add_event(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<EventHead<'_>>(line) else { return };
        self.sequence = event.sequence.unwrap_or(self.sequence);
        if event.event == "play_start" {
            self.play = event.play.as_deref().map(str::to_owned);
        }
        let Some(task) = &event.task else { return };
        match &*event.event {
            "task_start" => {
                self.row(&event, task);
            }
            "task_end" => {
                let row = self.row(&event, task);
                row.seconds = seconds_between(&row.started, &event.time);
            }
            "host_start" | "result" => self.set_result(&event, task),
            _ => {}
        }
    }

    fn row(&mut self, event: &EventHead<'_>, task: &TaskHead<'_>) -> &mut TaskRow {
        let place = *self.places.entry(task.id).or_insert(self.tasks.len());
        if place == self.tasks.len() {
            self.tasks.push(TaskRow {
                id: task.id,
                stage: event.stage.as_deref().map(str::to_owned),
                play: self.play.clone(),
                name: task.name.to_string(),
                role: task.role.as_deref().map(str::to_owned),
                action: task.action.to_string(),
                path: task.path.as_deref().unwrap_or_default().to_owned(),
                handler: task.handler,
                started: event.time.to_string(),
                seconds: None,
                results: BTreeMap::new(),
            });
        }
        &mut self.tasks[place]
    }

    /// Sets what a host made of a task, or that it has begun it.
    fn set_result(&mut self, event: &EventHead<'_>, task: &TaskHead<'_>) {
        let Some(host) = &event.host else { return };
        if !self.known.contains(&**host) {
            self.known.insert(host.to_string());
            self.hosts.push(host.to_string());
        }
        let sequence = self.sequence;
        let found = match &event.result {
            None => HostResult { status: "running".to_owned(), seconds: None, sequence, msg: None, hint: None },
            Some(result) => {
                let status = result.status.as_deref().unwrap_or("ok").to_owned();
                let bad = ["failed", "unreachable", "ignored"].contains(&status.as_str());
                let text = |text: &serde_json::Value| {
                    Some(text.as_str().filter(|_| bad)?.chars().take(LONGEST_TEXT).collect())
                };
                let seconds = result.seconds.map(|seconds| (seconds * 1000.0).round() / 1000.0);
                HostResult { seconds, sequence, msg: text(&result.msg), hint: text(&result.hint), status }
            }
        };
        self.row(event, task).results.insert(host.to_string(), found);
    }
}

fn seconds_between(from: &str, to: &str) -> Option<f64> {
    let moment = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    let passed = moment(to)? - moment(from)?;
    Some(passed.num_milliseconds() as f64 / 1000.0)
}

/// The tasks of runs that have ended, as they were sent: the last few that people looked at.
#[derive(Default)]
pub(super) struct EndedTasks(Mutex<VecDeque<(RunId, Arc<str>)>>);

impl EndedTasks {
    const MOST: usize = 4;
    /// Larger ones are made each time, in bytes.
    const LARGEST: usize = 16 << 20;

    fn find(&self, run: RunId) -> Option<Arc<str>> {
        self.0.lock().iter().find(|(id, _)| *id == run).map(|(_, text)| text.clone())
    }

    fn keep(&self, run: RunId, text: &str) {
        let mut kept = self.0.lock();
        if text.len() <= Self::LARGEST && kept.iter().all(|(id, _)| *id != run) {
            kept.truncate(Self::MOST - 1);
            kept.push_front((run, text.into()));
        }
    }
}

pub(super) async fn show_tasks(call: Call) -> Result<Response, Problem> {
    let run = call.run_of_path().clone();
    let fold = move |server: &Server| {
        let id = run.start.id;
        // A run that has ended has all of its events.
        let has_ended = !run.running;
        if let Some(text) = server.ended_tasks.find(id).filter(|_| has_ended) {
            return Ok(answers::json_text(text.to_string()));
        }
        let mut folded = FoldedTasks::default();
        follow::for_each_event(server, id, |line| folded.add_event(line))?;
        let text = serde_json::to_string(&RunTasks { run, folded }).map_err(Problem::internal)?;
        if has_ended {
            server.ended_tasks.keep(id, &text);
        }
        Ok(answers::json_text(text))
    };
    call.server.blocking(fold).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_to_tasks_with_the_results_of_hosts() {
        let task = r#""task":{"id":3,"name":"etcd : Start","role":"etcd","action":"systemd","path":"a.yml:1:1","handler":false}"#;
        let mut folded = FoldedTasks::default();
        for line in [
            r#"{"event":"play_start","sequence":1,"play":"Install etcd"}"#.to_owned(),
            format!(r#"{{"event":"task_start","sequence":2,"stage":"etcd","time":"2026-11-27T09:00:00.000Z",{task}}}"#),
            format!(r#"{{"event":"host_start","sequence":3,"host":"h1",{task}}}"#),
            format!(r#"{{"event":"host_start","sequence":4,"host":"h2",{task}}}"#),
            format!(
                r#"{{"event":"result","sequence":5,"host":"h2",{task},"result":{{"status":"failed","seconds":0.51234,"msg":"no","hint":"try"}}}}"#
            ),
            "a line that is no JSON".to_owned(),
        ] {
            folded.add_event(&line);
        }
        assert_eq!((folded.sequence, folded.hosts.as_slice()), (5, ["h1".to_owned(), "h2".to_owned()].as_slice()));
        let [row] = &folded.tasks[..] else { panic!("not one task") };
        assert_eq!(
            (row.stage.as_deref(), row.play.as_deref(), row.seconds),
            (Some("etcd"), Some("Install etcd"), None)
        );
        assert_eq!(row.results["h1"].status, "running");
        let failed = &row.results["h2"];
        assert_eq!((failed.status.as_str(), failed.seconds, failed.sequence), ("failed", Some(0.512), 5));
        assert_eq!((failed.msg.as_deref(), failed.hint.as_deref()), (Some("no"), Some("try")));
        folded.add_event(&format!(r#"{{"event":"task_end","sequence":6,"time":"2026-11-27T09:00:01.500Z",{task}}}"#));
        assert_eq!(folded.tasks[0].seconds, Some(1.5));
    }
}
