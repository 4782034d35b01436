//! What is news, and what is not.

use super::*;
use crate::resource::{RunOperation, RunSpec, RunStatus, SUCCEEDED};

fn conditions(all: &[(&str, &str, &str)]) -> Vec<Condition> {
    let condition = |(kind, status, reason): &(&str, &str, &str)| Condition {
        r#type: (*kind).to_owned(),
        status: (*status).to_owned(),
        reason: (*reason).to_owned(),
        message: format!("about {reason}"),
        last_transition_time: String::new(),
        observed_generation: 1,
    };
    all.iter().map(condition).collect()
}

fn reasons(before: &[(&str, &str, &str)], now: &[(&str, &str, &str)], was_installed: bool) -> Vec<String> {
    let found = news(&conditions(before), &conditions(now), was_installed, &[]);
    found.into_iter().map(|news| format!("{}{}", if news.is_warning { "!" } else { "" }, news.reason)).collect()
}

#[test]
fn what_begins_and_what_ends_is_news_once() {
    let well = [("EtcdHealthy", "True", "AllHealthy"), ("Drifted", "False", "NoDrift")];
    let ill = [("EtcdHealthy", "False", "SomeUnhealthy"), ("Drifted", "True", "HostsDiffer")];
    let unknown = [("EtcdHealthy", "Unknown", "LookTooOld"), ("Drifted", "Unknown", "NotLooked")];
    assert_eq!(reasons(&well, &ill, true), ["!EtcdUnhealthy", "!Drifted"]);
    assert_eq!(reasons(&unknown, &ill, true), ["!EtcdUnhealthy", "!Drifted"]);
    assert_eq!(reasons(&ill, &well, true), ["EtcdHealthy", "DriftEnded"]);
    for same in [(&well, &well), (&ill, &ill), (&ill, &unknown), (&well, &unknown), (&unknown, &well)] {
        assert!(reasons(same.0, same.1, true).is_empty(), "{same:?}");
    }
}

#[test]
fn before_the_first_run_only_hosts_that_do_not_answer_are_news() {
    let ill = [("EtcdHealthy", "False", "SomeUnhealthy"), ("HostsReachable", "False", "HostsUnreachable")];
    assert_eq!(reasons(&[], &ill, false), ["!HostsUnreachable"]);
}

#[test]
fn what_a_deployment_waits_for_is_news_when_it_changes() {
    let waits = |reason| [("Blocked", "True", reason)];
    assert_eq!(reasons(&[], &waits("AwaitingApproval"), false), ["AwaitingApproval"]);
    assert_eq!(reasons(&waits("AwaitingApproval"), &waits("PlanRefused"), true), ["!PlanRefused"]);
    assert!(reasons(&waits("Paused"), &waits("Paused"), true).is_empty());
    assert!(reasons(&[], &waits("Looking"), true).is_empty());
}

#[test]
fn a_run_that_starts_and_one_that_ends_are_news() {
    let (idle, at_work) = ([("Progressing", "False", "Idle")], [("Progressing", "True", "Applying")]);
    assert_eq!(reasons(&idle, &at_work, true), ["RunStarted"]);
    let mut run = Run::new("install", RunSpec::of_operation("prod", RunOperation::Apply));
    for (status, expected) in [("True", "RunSucceeded"), ("False", "RunFailed")] {
        let result = Condition { r#type: SUCCEEDED.into(), ..conditions(&[("", status, "TaskFailed")]).remove(0) };
        run.status = Some(RunStatus { conditions: vec![result], ..RunStatus::default() });
        let found = news(&conditions(&at_work), &conditions(&idle), true, &[Arc::new(run.clone())]);
        assert_eq!(found[0].reason, expected);
        assert_eq!(found[0].note, "install: TaskFailed: about TaskFailed");
        assert_eq!(found[0].is_warning, status == "False");
    }
}

#[test]
fn a_note_is_cut_where_a_character_ends() {
    assert_eq!(cut(&"ü".repeat(600)).len(), 1000);
    assert_eq!(cut(&format!("x{}", "ü".repeat(600))).len(), 999);
    assert_eq!(cut("short"), "short");
}
