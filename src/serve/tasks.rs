//! The tasks of a run with the result of each host: what its events come to.

use std::collections::{BTreeMap, HashMap};

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use super::call::Call;
use super::problem::Problem;
use super::{Server, answers, follow};
use crate::runs::RecordedRun;

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

impl FoldedTasks {
    /// Adds the next event.
    fn add_event(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Json>(line) else { return };
        self.sequence = event["sequence"].as_u64().unwrap_or(self.sequence);
        match event["event"].as_str().unwrap_or_default() {
            "play_start" => self.play = event["play"].as_str().map(str::to_owned),
            "task_start" => {
                self.row(&event);
            }
            "task_end" => {
                let seconds =
                    seconds_between(event["task"]["id"].as_u64().and_then(|id| self.started(id)), &event["time"]);
                self.row(&event).seconds = seconds;
            }
            "host_start" => self.set_result(&event, None),
            "result" => self.set_result(&event, Some(&event["result"])),
            _ => {}
        }
    }

    fn started(&self, id: u64) -> Option<&str> {
        self.places.get(&id).map(|place| self.tasks[*place].started.as_str())
    }

    fn row(&mut self, event: &Json) -> &mut TaskRow {
        let task = &event["task"];
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let place = *self.places.entry(task["id"].as_u64().unwrap_or_default()).or_insert(self.tasks.len());
        if place == self.tasks.len() {
            self.tasks.push(TaskRow {
                id: task["id"].as_u64().unwrap_or_default(),
                stage: event["stage"].as_str().map(str::to_owned),
                play: self.play.clone(),
                name: text(&task["name"]),
                role: task["role"].as_str().map(str::to_owned),
                action: text(&task["action"]),
                path: text(&task["path"]),
                handler: task["handler"].as_bool().unwrap_or(false),
                started: text(&event["time"]),
                seconds: None,
                results: BTreeMap::new(),
            });
        }
        &mut self.tasks[place]
    }

    /// Sets what a host made of a task; None: it has begun it.
    fn set_result(&mut self, event: &Json, result: Option<&Json>) {
        let Some(host) = event["host"].as_str().map(str::to_owned) else { return };
        if !self.hosts.contains(&host) {
            self.hosts.push(host.clone());
        }
        let sequence = self.sequence;
        let row = self.row(event);
        let found = match result {
            None => HostResult { status: "running".to_owned(), seconds: None, sequence, msg: None, hint: None },
            Some(result) => {
                let status = result["status"].as_str().unwrap_or("ok").to_owned();
                let bad = ["failed", "unreachable", "ignored"].contains(&status.as_str());
                let text = |name: &str| {
                    let text = result[name].as_str().filter(|_| bad)?;
                    Some(text.chars().take(LONGEST_TEXT).collect())
                };
                let seconds = result["seconds"].as_f64().map(|seconds| (seconds * 1000.0).round() / 1000.0);
                HostResult { seconds, sequence, msg: text("msg"), hint: text("hint"), status }
            }
        };
        row.results.insert(host, found);
    }
}

fn seconds_between(from: Option<&str>, to: &Json) -> Option<f64> {
    let moment = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    let passed = moment(to.as_str()?)? - moment(from?)?;
    Some(passed.num_milliseconds() as f64 / 1000.0)
}

pub(super) async fn show_tasks(call: Call) -> Result<Response, Problem> {
    let run = call.run_of_path().clone();
    let fold = move |server: &Server| {
        let mut folded = FoldedTasks::default();
        follow::for_each_event(server, run.start.id, |line| folded.add_event(line))?;
        Ok(answers::ok(&RunTasks { run, folded }))
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
