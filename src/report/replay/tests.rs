//! A recorded run is shown as the run itself was.

use super::super::event_lines::EventLines;
use super::super::example_run::{self, CapturedOutput};
use super::super::profile::Timings;
use super::*;
use crate::engine::TimedEvent;
use crate::runs::RunId;
use crate::value::mapping;

fn style(verbosity: u8) -> HumanStyle {
    HumanStyle { colour: false, width: 80, verbosity, stamped: false, messages: true }
}

/// The text of events as they happen, and of their lines afterwards.
fn both(events: &[TimedEvent], verbosity: u8) -> (String, String) {
    let (live, replayed) = (CapturedOutput::default(), CapturedOutput::default());
    let mut human = Human::new(Box::new(live.clone()), style(verbosity));
    let around = ProcessEnvironment::default();
    let out = Box::new(replayed.clone());
    let mut replay = Replay::to_writer(out, Colour::Never, 0, DisplayOptions::default(), &around);
    let mut lines = EventLines::of_run(RunId::new_at(SystemTime::UNIX_EPOCH));
    let start = example_run::command_start(verbosity);
    let start = TimedEvent { at: SystemTime::UNIX_EPOCH, event: Event::Command(CommandEvent::Start(start)) };
    let mut timings = Timings::default();
    for told in std::iter::once(&start).chain(events) {
        timings.event(told.at, &told.event);
        if let Event::Recap(recap) = &told.event {
            let profile = timings.finish_profile(recap.took);
            human.profile(told.at, &profile).unwrap();
            replay.show_event(&lines.profile_line(told.at, &profile).line).unwrap();
        }
        human.event(told.at, &told.event).unwrap();
        replay.show_event(&lines.event_line(told.at, &told.event).line).unwrap();
    }
    human.show().unwrap();
    replay.print_shown().unwrap();
    (live.captured_text(), replayed.captured_text())
}

#[test]
fn a_replayed_run_reads_as_the_run_did() {
    let task = |action: &'static str, name: &str| Arc::new(TaskStart { action, ..example_run::task(3, name) });
    let full = |status| TaskResult {
        message: Some("two\nlines".into()),
        hint: Some("do this".into()),
        values: Vars::from([
            ("cmd".into(), Value::from(vec!["ls", "a b"])),
            ("stderr".into(), Value::from("no such file")),
            ("rc".into(), Value::from(2)),
            ("nested".into(), mapping([("x", Value::from(vec![1.5])), ("y", Value::from(()))])),
        ]),
        diff: vec![Diff { before: "a\n".into(), after: "b\n".into(), ..Diff::default() }],
        ..example_run::result(status)
    };
    let (debug, command) = (task("debug", "Show"), task("command", "etcd : Run"));
    let item = |status| Event::Item {
        task: command.clone(),
        host: "h1".into(),
        delegated: Some("h2".into()),
        label: "one".into(),
        result: Arc::new(full(status)),
    };
    let whole = |status, looped| Event::Result {
        task: command.clone(),
        host: "h1".into(),
        delegated: None,
        looped,
        result: Arc::new(full(status)),
    };
    let hidden = TaskResult { no_log: true, ..example_run::result(Status::Failed) };
    let mut events = example_run::apart(vec![
        Event::Command(CommandEvent::Message {
            stream: Stream::Stdout,
            text: "Plan for prod\n\nTo do: 1 file.\n".into(),
        }),
        Event::Command(CommandEvent::StageStart { stage: "etcd".into(), playbook: "etcd.yml".into(), check: false }),
        Event::NoHosts { pattern: "none".into() },
        Event::TaskStart(debug.clone()),
        example_run::ended(&debug, "h1", full(Status::Ok)),
        Event::TaskStart(command.clone()),
        example_run::begun(&command, "h1"),
        Event::Retry {
            task: command.clone(),
            host: "h1".into(),
            attempt: 1,
            left: 2,
            result: Arc::new(full(Status::Failed)),
        },
        Event::AsyncPoll {
            task: command.clone(),
            host: "h1".into(),
            job: "j1".into(),
            elapsed: Duration::from_secs(1),
            limit: Duration::from_secs(9),
        },
        item(Status::Changed),
        item(Status::Skipped),
        item(Status::Ignored),
        whole(Status::Ignored, true),
        whole(Status::Ok, true),
        whole(Status::Unreachable, false),
        example_run::ended(&command, "h2", hidden),
        Event::Included { what: "x.yml".into(), path: None, item: Some("i".into()), hosts: vec!["h1".into()] },
        Event::Warning("odd\nthing".into()),
        Event::NoHostsLeft { percentage: true },
    ]);
    events.extend(example_run::example_events());
    for verbosity in 0..=2 {
        let (live, replayed) = both(&events, verbosity);
        assert_eq!(replayed, live, "-v {verbosity} times");
        assert!(
            live.contains("PLAY RECAP") && live.contains("To do: 1 file.") && live.contains("TIME BY TASK"),
            "{live}"
        );
    }
}

#[test]
fn what_is_not_known_is_skipped() {
    let sheet = CapturedOutput::default();
    let mut replay = Replay::to_writer(
        Box::new(sheet.clone()),
        Colour::Never,
        0,
        DisplayOptions::default(),
        &ProcessEnvironment::default(),
    );
    for line in ["{}", "no json", "[]", r#"{"event":"later","x":1}"#, r#"{"event":"result"}"#] {
        replay.show_event(line).unwrap();
    }
    replay.print_shown().unwrap();
    assert_eq!(sheet.captured_text(), "ok: []\n");
}
