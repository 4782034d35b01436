//! A run in a few events, for the tests of reports: one play, one role's task on two hosts (one changes, one fails).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::engine::{CommandStart, Counts, Event, HostFailures, Recap, Status, TaskResult, TaskStart, TimedEvent};
use crate::value::mutex::Mutex;
use crate::value::{Origin, Source, Vars};

/// The moment that all tests begin at: 2023-11-14T22:13:20Z.
pub(super) fn example_start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// An apply of a deployment.
pub(super) fn command_start(verbosity: u8) -> CommandStart {
    CommandStart {
        command: "apply".into(),
        command_line: "windlass apply".into(),
        user: "alice@ws".into(),
        pid: 7,
        version: "0.1.0",
        check: false,
        verbosity,
    }
}

pub(super) fn origin(line: usize) -> Origin {
    Origin { source: Arc::new(Source::new("site.yml", "")), line, column: 7 }
}

pub(super) fn task(id: usize, name: &str) -> TaskStart {
    let role = name.split_once(" : ").map(|(role, _)| role.into());
    TaskStart { id, name: name.to_string(), role, action: "command", origin: origin(4), handler: false, hosts: 2 }
}

pub(super) fn result(status: Status) -> TaskResult {
    TaskResult {
        status,
        changed: status == Status::Changed,
        message: None,
        hint: None,
        values: Vars::new(),
        diff: Vec::new(),
        no_log: false,
        took: Duration::from_secs(1),
    }
}

pub(super) fn ended(task: &Arc<TaskStart>, host: &str, result: TaskResult) -> Event {
    Event::Result { task: task.clone(), host: host.into(), delegated: None, looped: false, result: Arc::new(result) }
}

pub(super) fn begun(task: &Arc<TaskStart>, host: &str) -> Event {
    Event::HostStart { task: task.clone(), host: host.into() }
}

pub(super) fn play(name: &str) -> Event {
    Event::PlayStart { name: name.into(), origin: origin(1), hosts: vec!["h1".into(), "h2".into()], check: false }
}

/// The events, a second apart.
pub(super) fn apart(events: Vec<Event>) -> Vec<TimedEvent> {
    let times = (0..).map(|second| example_start() + Duration::from_secs(second));
    times.zip(events).map(|(at, event)| TimedEvent { at, event }).collect()
}

/// Play, task `etcd : Start it`, both hosts begin, h1 changed, h2 failed, task end, recap.
pub(super) fn example_events() -> Vec<TimedEvent> {
    let task = Arc::new(task(1, "etcd : Start it"));
    let failure = TaskResult { message: Some("no <such> unit & no hope".into()), ..result(Status::Failed) };
    let counts = |failed| Counts { ok: 1 - failed, changed: 1 - failed, failed, ..Counts::default() };
    let recap = Recap {
        hosts: [("h1".into(), counts(0)), ("h2".into(), counts(1))].into_iter().collect(),
        lost: HostFailures { failed: ["h2".into()].into(), ..HostFailures::default() },
        took: Duration::from_secs(6),
        ..Recap::default()
    };
    apart(vec![
        play("Cluster"),
        Event::TaskStart(task.clone()),
        begun(&task, "h1"),
        begun(&task, "h2"),
        ended(&task, "h1", result(Status::Changed)),
        ended(&task, "h2", failure),
        Event::TaskEnd(task),
        Event::Recap(recap),
    ])
}

/// Bytes that a report wrote, for assertions.
#[derive(Clone, Default)]
pub(super) struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    pub(super) fn captured_text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl std::io::Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
