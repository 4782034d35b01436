//! Each event has the fields that the documentation names, and a run's lines can be put in order.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::event_fields::{ENVELOPE, EVENTS, RESULT_FIELDS, TASK_FIELDS};
use super::super::example_run;
use super::super::profile::Timings;
use super::*;
use crate::engine::Stream;
use crate::modules::question::Question;
use crate::modules::{Diff, Progress};
use crate::value::Value;

/// An example of each event but `profile`.
fn examples() -> Vec<Event> {
    let task = std::sync::Arc::new(example_run::task(1, "etcd : Start"));
    let host = || std::sync::Arc::<str>::from("h1");
    let result = std::sync::Arc::new(TaskResult {
        message: Some("m".into()),
        hint: Some("h".into()),
        values: Vars::from([("rc".into(), Value::from(1))]),
        diff: vec![Diff::default()],
        ..example_run::result(Status::Failed)
    });
    let start = example_run::command_start(0);
    let stage = || "etcd".to_owned();
    vec![
        Event::Command(CommandEvent::Start(start)),
        Event::Command(CommandEvent::Deployment { name: "prod".into(), hosts: vec!["h1".into()] }),
        Event::Command(CommandEvent::Message { stream: Stream::Stderr, text: "t".into() }),
        Event::Command(CommandEvent::StageStart { stage: stage(), playbook: "etcd.yml".into(), check: true }),
        example_run::play("p"),
        Event::NextBatch,
        Event::NoHosts { pattern: "x".into() },
        Event::TaskStart(task.clone()),
        Event::HostStart { task: task.clone(), host: host() },
        Event::Meta { task: task.clone(), host: host(), skipped: true },
        Event::Item { task: task.clone(), host: host(), delegated: None, label: "i".into(), result: result.clone() },
        Event::Retry { task: task.clone(), host: host(), attempt: 1, left: 2, result: result.clone() },
        Event::AsyncPoll {
            task: task.clone(),
            host: host(),
            job: "j".into(),
            elapsed: Duration::ZERO,
            limit: Duration::ZERO,
        },
        Event::Progress { host: host(), progress: Progress { what: "w".into(), done: 1, total: 2 } },
        Event::Question(Question::new("q".into(), true, None).0),
        Event::Result { task: task.clone(), host: host(), delegated: None, looped: false, result },
        Event::Included { what: "w".into(), path: None, item: None, hosts: vec![host()] },
        Event::TaskEnd(task),
        Event::NoHostsLeft { percentage: false },
        Event::Warning("w".into()),
        Event::Recap(Recap::default()),
        Event::Command(CommandEvent::StageEnd { stage: stage(), outcome: "failed", changes: None }),
        Event::Command(CommandEvent::End { outcome: "failed", exit_code: 2 }),
    ]
}

fn lines() -> Vec<Plain> {
    let mut lines = EventLines::of_run(RunId::new_at(example_run::example_start()));
    let at = example_run::example_start();
    let mut all: Vec<RecordedEvent> = examples().iter().map(|event| lines.event_line(at, event)).collect();
    all.push(lines.profile_line(at, &Timings::default().finish_profile(Duration::ZERO)));
    let parsed = all.iter().map(|event| serde_json::from_str(&event.line).unwrap());
    parsed.collect()
}

fn names_of(object: &Plain) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_event_has_the_fields_that_are_documented() {
    let lines = lines();
    let documented: BTreeSet<&str> = EVENTS.iter().map(|event| event.name).collect();
    let written: BTreeSet<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(written, documented);
    assert!(EVENTS.iter().map(|event| event.name).is_sorted());
    let fields_of =
        |fields: &[(&'static str, &'static str)]| fields.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>();
    for line in &lines {
        let name = line["event"].as_str().unwrap();
        let event = EVENTS.iter().find(|event| event.name == name).unwrap();
        let expected: BTreeSet<&str> = fields_of(ENVELOPE).union(&fields_of(event.fields)).copied().collect();
        assert_eq!(names_of(line), expected, "{name}");
        if let Some(task) = line.get("task") {
            assert_eq!(names_of(task), fields_of(TASK_FIELDS), "{name}");
        }
    }
    let result =
        |event: &str| lines.iter().find(|line| line["event"] == event).map(|line| line["result"].clone()).unwrap();
    let mut fields = fields_of(RESULT_FIELDS);
    assert!(fields.remove("censored"));
    assert_eq!(names_of(&result("result")), fields);
    let hidden = TaskResult { no_log: true, ..example_run::result(Status::Ok) };
    assert_eq!(names_of(&result_fields(&hidden)), ["censored", "changed", "seconds", "status"].into());
}

#[test]
fn sequence_numbers_have_no_gaps_and_a_stage_has_its_events() {
    let lines = lines();
    let numbers: Vec<u64> = lines.iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    let in_stage = |line: &&Plain| line["stage"] == "etcd";
    let stages: Vec<&str> = lines.iter().filter(in_stage).map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!((stages[0], *stages.last().unwrap(), stages.len()), ("stage_start", "stage_end", lines.len() - 5));
    let result = lines.iter().find(|line| line["event"] == "result").unwrap();
    assert_eq!(
        (&result["started"], &result["time"]),
        (&json!("2023-11-14T22:13:19.000Z"), &json!("2023-11-14T22:13:20.000Z"))
    );
}

#[test]
fn no_two_tasks_of_a_run_have_the_same_id() {
    let mut lines = EventLines::of_run(RunId::new_at(example_run::example_start()));
    let mut ids = Vec::new();
    for _ in 0..3 {
        for told in example_run::example_events() {
            let line: Plain = serde_json::from_str(&lines.event_line(told.at, &told.event).line).unwrap();
            if line["event"] == "task_start" {
                ids.push(line["task"]["id"].as_u64().unwrap());
            }
        }
    }
    let different: BTreeSet<&u64> = ids.iter().collect();
    assert_eq!(different.len(), 3, "{ids:?}");
}

/// The tables of the page: what is below its first heading of the second level.
fn tables() -> String {
    let row = |(name, meaning): &(&str, &str)| format!("| `{name}` | {meaning} |\n");
    let table = |fields: &[(&'static str, &'static str)]| {
        format!("| field | meaning |\n|---|---|\n{}\n", fields.iter().map(row).collect::<String>())
    };
    let mut text = format!("## All events\n\n{}", table(ENVELOPE));
    text += "| event | meaning |\n|---|---|\n";
    for event in EVENTS {
        text += &format!("| [`{0}`](#{0}) | {1} |\n", event.name, event.meaning);
    }
    text += &format!("\n## Tasks\n\n{}", table(TASK_FIELDS));
    text += "## Results\n\nThe first three fields are always there.\n\n";
    text += &table(RESULT_FIELDS);
    text += "## Fields\n\n";
    for event in EVENTS {
        let fields = if event.fields.is_empty() { "No fields of its own.\n\n".to_owned() } else { table(event.fields) };
        text +=
            &format!("### {}\n\n{}{}.\n\n{fields}", event.name, event.meaning[..1].to_uppercase(), &event.meaning[1..]);
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
fn the_documentation_has_every_event() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/events.md");
    let text = std::fs::read_to_string(path).unwrap();
    let head = text.split_once("\n## ").map_or(&*text, |(head, _)| head).trim_end();
    let right = format!("{head}\n\n{}", tables());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, right).unwrap();
        return;
    }
    assert!(text == right, "docs/reference/events.md is outdated: UPDATE_DOCS=1 cargo test --lib the_documentation");
}
