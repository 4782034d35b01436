//! The output of `ansible-playbook` for a run.

use std::time::SystemTime;

use super::*;
use crate::report::example_run::{self, CapturedOutput};
use crate::value::Vars;

/// The output for the events: on standard output, on standard error.
fn reported(style: AnsibleStyle, verbosity: u8, shows: DisplayOptions, events: &[Event]) -> (String, String) {
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let surroundings = ProcessEnvironment { directory: "/srv".into(), ..ProcessEnvironment::default() };
    let page = PageStyle { columns: COLUMNS, colour: false, verbosity, surroundings: Arc::new(surroundings) };
    let mut report = Ansible::new(Box::new(out.clone()), Box::new(err.clone()), style, page, shows);
    for event in events {
        report.event(SystemTime::UNIX_EPOCH, event).unwrap();
    }
    report.end().unwrap();
    (out.captured_text(), err.captured_text())
}

fn shown(events: &[Event]) -> String {
    reported(AnsibleStyle::default(), 0, DisplayOptions::default(), events).0
}

fn task(name: &str) -> Arc<TaskStart> {
    Arc::new(example_run::task(1, name))
}

#[test]
fn a_run_is_reported_in_the_lines_of_the_default_callback() {
    let events: Vec<Event> = example_run::example_events().into_iter().map(|reported| reported.event).collect();
    let expected = "
PLAY [Cluster] *****************************************************************

TASK [etcd : Start it] *********************************************************
changed: [h1]
[ERROR]: Task failed: Module failed: no <such> unit & no hope
Origin: /srv/site.yml:4:7

fatal: [h2]: FAILED! => {\"changed\": false, \"msg\": \"no <such> unit & no hope\"}

PLAY RECAP *********************************************************************
h1                         : ok=1    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   
h2                         : ok=0    changed=0    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0   

";
    assert_eq!(shown(&events), expected);
}

#[test]
fn a_banner_fills_79_columns_and_wide_characters_take_two() {
    let banner = |name: &str| shown(&[example_run::play(name)]).trim().to_owned();
    assert_eq!(banner("x").chars().count(), 80);
    assert_eq!(banner("網").chars().count(), 79);
    assert!(banner(&"x".repeat(200)).ends_with("] ***"));
}

#[test]
fn items_have_their_labels_and_the_whole_says_only_that_it_was_skipped_or_ignored() {
    let task = task("Each");
    let item = |status| Event::Item {
        task: task.clone(),
        host: "h1".into(),
        delegated: None,
        label: "a".into(),
        result: Arc::new(example_run::result(status)),
    };
    let whole = |status| Event::Result {
        task: task.clone(),
        host: "h1".into(),
        delegated: None,
        looped: true,
        result: Arc::new(example_run::result(status)),
    };
    assert_eq!(shown(&[item(Status::Changed), whole(Status::Changed)]), "changed: [h1] => (item=a)\n");
    let skipped = shown(&[item(Status::Skipped), whole(Status::Skipped)]);
    assert_eq!(skipped, "skipping: [h1] => (item=a) \nskipping: [h1]\n");
    let ignored = shown(&[item(Status::Failed), whole(Status::Ignored)]);
    assert!(ignored.ends_with("\nfailed: [h1] (item=a) => {\"changed\": false}\n...ignoring\n"), "{ignored}");
}

#[test]
fn what_no_log_hides_is_censored_in_labels_and_results() {
    let result = TaskResult { no_log: true, ..example_run::result(Status::Changed) };
    let item = Event::Item {
        task: task("Secret"),
        host: "h1".into(),
        delegated: Some("h2".into()),
        label: "s3cret".into(),
        result: Arc::new(result),
    };
    let (out, _) = reported(AnsibleStyle::default(), 1, DisplayOptions::default(), &[item]);
    assert!(out.starts_with("changed: [h1 -> h2] => (item=(censored due to no_log)) => {\"censored\": \"the output"));
    assert!(!out.contains("s3cret"), "{out}");
}

#[test]
fn warnings_go_to_standard_error_once() {
    let warning = Event::Warning("odd".into());
    let (out, err) = reported(AnsibleStyle::default(), 0, DisplayOptions::default(), &[warning.clone(), warning]);
    assert_eq!((out.as_str(), err.as_str()), ("", "[WARNING]: odd\n"));
}

#[test]
fn a_task_that_has_nothing_to_tell_has_no_banner_when_ok_hosts_are_not_displayed() {
    let task = task("Quiet");
    let events = |status| {
        [
            Event::TaskStart(task.clone()),
            example_run::ended(&task, "h1", example_run::result(status)),
            Event::TaskEnd(task.clone()),
        ]
    };
    let shows = DisplayOptions { ok: false, ..DisplayOptions::default() };
    assert_eq!(reported(AnsibleStyle::default(), 0, shows, &events(Status::Ok)).0, "");
    let changed = reported(AnsibleStyle::default(), 0, shows, &events(Status::Changed)).0;
    assert!(changed.starts_with("\nTASK [Quiet] ***") && changed.ends_with("changed: [h1]\n"), "{changed}");
}

#[test]
fn the_switches_of_the_callback_are_heard() {
    let style = AnsibleStyle {
        failures_to_stderr: true,
        marks_check_mode: true,
        path_on_failure: true,
        check: true,
        playbooks: vec![("a/site.yml".into(), 1)],
        ..AnsibleStyle::default()
    };
    let play = Event::PlayStart { name: "P".into(), origin: example_run::origin(1), hosts: Vec::new(), check: true };
    let task = task("T");
    let failure = example_run::ended(&task, "h1", example_run::result(Status::Failed));
    let (out, err) = reported(style, 0, DisplayOptions::default(), &[play, Event::TaskStart(task), failure]);
    assert!(out.starts_with("\nDRY RUN ***") && out.contains("PLAY [P] [CHECK MODE] *"), "{out}");
    assert!(out.contains("TASK [T] [CHECK MODE]") && out.contains("task path: /"), "{out}");
    assert!(err.contains("fatal: [h1]: FAILED! => {\"changed\": false}\n"), "{err}");
}

#[test]
fn a_job_that_was_waited_for_is_reported_to_have_ended() {
    let task = task("Long");
    let second = std::time::Duration::from_secs(1);
    let poll =
        Event::AsyncPoll { task: task.clone(), host: "h1".into(), job: "j1".into(), elapsed: second, limit: second };
    let ended = example_run::ended(&task, "h1", example_run::result(Status::Changed));
    let expected = "ASYNC POLL on h1: jid=j1 started=True finished=False\nASYNC OK on h1: jid=j1\nchanged: [h1]\n";
    assert_eq!(shown(&[poll, ended]), expected);
}

#[test]
fn what_a_host_answers_draws_nothing_on_the_terminal() {
    let values = Vars::from([("stdout".into(), Value::from("\u{1b}[2Jx"))]);
    let result = TaskResult { values, message: Some("\u{1b}[31mno".into()), ..example_run::result(Status::Failed) };
    let out = shown(&[example_run::ended(&task("T"), "h1", result)]);
    assert!(!out.contains('\u{1b}'), "{out}");
}
