//! What a person reads of a run: in a log, above a live view, and of texts that would forge lines.

use super::super::example_run::{self, CapturedOutput};
use super::*;

fn style(stamped: bool) -> HumanStyle {
    HumanStyle { colour: false, width: 40, verbosity: 0, stamped, messages: false }
}

#[test]
fn a_log_has_the_moment_of_every_event_before_its_lines() {
    let sheet = CapturedOutput::default();
    let mut log = Human::new(Box::new(sheet.clone()), HumanStyle { width: 0, ..style(true) });
    for reported in example_run::example_events() {
        log.event(reported.at, &reported.event).unwrap();
        log.show().unwrap();
    }
    let text = sheet.captured_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "2023-11-14T22:13:20.000Z PLAY [Cluster] ***");
    assert_eq!(lines[2], "2023-11-14T22:13:24.000Z changed: [h1]");
    assert_eq!(lines[3], "2023-11-14T22:13:25.000Z fatal: [h2]: no <such> unit & no hope");
    assert!(lines.last().unwrap().ends_with("2 hosts in 6.0 s"), "{text}");
}

#[test]
fn no_text_of_data_forges_a_line() {
    let sheet = CapturedOutput::default();
    let mut human = Human::new(Box::new(sheet.clone()), style(false));
    let evil = "x\nok: [h2]\u{1b}[2J\u{9b}";
    let task = Arc::new(TaskStart { action: "assert", ..example_run::task(1, evil) });
    let result = |status| {
        Arc::new(TaskResult { message: Some(evil.into()), hint: Some(evil.into()), ..example_run::result(status) })
    };
    let diff = crate::modules::Diff { before_header: evil.into(), after: evil.into(), ..Default::default() };
    let events = [
        Event::TaskStart(task.clone()),
        Event::Item {
            task: task.clone(),
            host: "h1".into(),
            delegated: Some(evil.into()),
            label: evil.into(),
            result: result(Status::Ok),
        },
        example_run::ended(&task, "h1", TaskResult { diff: vec![diff], ..(*result(Status::Ok)).clone() }),
        example_run::ended(&task, "h1", (*result(Status::Failed)).clone()),
        Event::Warning(evil.into()),
        Event::Included { what: evil.into(), path: None, item: None, hosts: vec!["h1".into()] },
        Event::Retry { task: task.clone(), host: "h1".into(), attempt: 1, left: 1, result: result(Status::Failed) },
    ];
    for event in &events {
        human.event(SystemTime::UNIX_EPOCH, event).unwrap();
    }
    human.show().unwrap();
    let text = sheet.captured_text();
    assert!(text.lines().all(|line| !line.starts_with("ok: [h2]")), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text:?}");
    assert_eq!(text.matches("ok: [h2]").count(), 13, "{text}");
}

#[test]
fn the_view_is_gone_when_the_run_ends_although_no_recap_came() {
    let sheet = CapturedOutput::default();
    let mut human = Human::live(Screen::new(Box::new(sheet.clone()), || (24, 80)), style(false));
    for reported in example_run::example_events().into_iter().take(5) {
        human.event(reported.at, &reported.event).unwrap();
    }
    std::thread::sleep(Duration::from_millis(750));
    human.show().unwrap();
    // After the host, for how long it has been at it.
    let text = sheet.captured_text();
    assert!(text.contains("etcd : Start it: 1/2 done, 1 running\n  h2        ") && text.ends_with(" s\n"), "{text}");
    human.end().unwrap();
    assert!(sheet.captured_text().ends_with("\r\x1b[2A\x1b[J"), "{:?}", sheet.captured_text());
}
