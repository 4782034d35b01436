//! When backups begin, and whether they are recent.

use serde_json::json;

use super::*;

fn backup(spec: serde_json::Value, status: serde_json::Value) -> Arc<EtcdBackup> {
    let mut whole = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "EtcdBackup",
        "metadata": {"name": "daily", "namespace": "n", "uid": "01234567-89ab", "creationTimestamp": "2026-11-20T00:00:00Z"},
        "spec": {"deployment": "prod", "keep": 7, "storage": {"s3": {
            "endpoint": "https://s3.example.org", "bucket": "backups",
            "accessKey": {"secret": {"name": "s3", "key": "id"}}, "secretKey": {"secret": {"name": "s3", "key": "secret"}}}}},
        "status": status,
    });
    whole["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(whole).unwrap())
}

fn at(text: &str) -> Seconds {
    seconds_of(text)
}

#[test]
fn a_backup_without_a_schedule_is_taken_once() {
    let once = &backup(json!({}), json!(null)).spec;
    assert_eq!(due(once, 100, None, 200), Due { begin: Some(200), ..Due::default() });
    assert_eq!(due(once, 100, Some(Last { time: 200, is_open: false, failed: None }), 300), Due::default());
    let suspended = &backup(json!({"suspend": true}), json!(null)).spec;
    assert_eq!(due(suspended, 100, None, 200), Due::default());
}

#[test]
fn a_scheduled_backup_begins_at_its_time_and_once_for_all_that_were_missed() {
    let spec = &backup(json!({"schedule": "0 * * * *"}), json!(null)).spec;
    let created = at("2026-11-20T00:10:00Z");
    let decided = |last: Option<&str>, is_open, now: &str| {
        let last = last.map(|last| Last { time: at(last), is_open, failed: None });
        due(spec, created, last, at(now))
    };
    let waits = |next: &str| Due { next: Some(at(next)), ..Due::default() };
    assert_eq!(decided(None, false, "2026-11-20T00:59:59Z"), waits("2026-11-20T01:00:00Z"));
    let first = decided(None, false, "2026-11-20T01:00:00Z");
    let since = Some(at("2026-11-20T01:00:00Z"));
    assert_eq!(first, Due { begin: since, since, ..waits("2026-11-20T02:00:00Z") });
    let last = Some("2026-11-20T01:00:00Z");
    assert_eq!(decided(last, false, "2026-11-20T01:30:00Z"), waits("2026-11-20T02:00:00Z"));
    let missed = decided(last, false, "2026-11-20T07:20:00Z");
    let since = Some(at("2026-11-20T02:00:00Z"));
    let begin = Some(at("2026-11-20T07:00:00Z"));
    assert_eq!(missed, Due { begin, since, ..waits("2026-11-20T08:00:00Z") });
    // The one before is still under way.
    assert_eq!(decided(last, true, "2026-11-20T07:20:00Z"), Due { since, ..waits("2026-11-20T08:00:00Z") });
    // A clock that was wrong does not stop the schedule.
    assert_eq!(decided(Some("2036-01-01T00:00:00Z"), false, "2026-11-20T07:20:00Z"), waits("2026-11-20T08:00:00Z"));
    let wrong = due(&backup(json!({"schedule": "61 * * * *"}), json!(null)).spec, created, None, created);
    assert!(wrong.problem.unwrap().starts_with("invalid schedule"));
    let never = due(&backup(json!({"schedule": "0 0 31 2 *"}), json!(null)).spec, created, None, created);
    assert_eq!(never.problem.unwrap(), "the schedule \"0 0 31 2 *\" names no time");
}

#[test]
fn a_backup_that_failed_is_tried_again_until_the_next_one_is_due() {
    let time = at("2026-11-20T01:00:00Z");
    let failed =
        |retries, ended: &str| Last { time, is_open: false, failed: Some(Failed { retries, ended: at(ended) }) };
    let hourly = &backup(json!({"schedule": "0 * * * *"}), json!(null)).spec;
    let decided = |spec, last, now: &str| due(spec, time, Some(last), at(now));
    let waits = |until: &str, retry| Due { next: Some(at(until)), retry, ..Due::default() };
    let last = failed(0, "2026-11-20T01:02:00Z");
    assert_eq!(decided(hourly, last, "2026-11-20T01:02:30Z"), waits("2026-11-20T01:03:00Z", 1));
    let again = Due { begin: Some(time), ..waits("2026-11-20T02:00:00Z", 1) };
    assert_eq!(decided(hourly, last, "2026-11-20T01:03:00Z"), again);
    let open = Last { time, is_open: true, failed: None };
    assert_eq!(decided(hourly, open, "2026-11-20T01:03:00Z"), waits("2026-11-20T02:00:00Z", 0));
    // The fourth retry would be an hour later: the next backup is due before.
    assert_eq!(
        decided(hourly, failed(3, "2026-11-20T01:30:00Z"), "2026-11-20T01:59:00Z"),
        waits("2026-11-20T02:00:00Z", 0)
    );
    let since = Some(at("2026-11-20T02:00:00Z"));
    let next = Due { begin: since, since, ..waits("2026-11-20T03:00:00Z", 0) };
    assert_eq!(decided(hourly, failed(3, "2026-11-20T01:30:00Z"), "2026-11-20T02:00:00Z"), next);
    // Once, and four times more.
    let once = &backup(json!({}), json!(null)).spec;
    let fourth = Due { begin: Some(time), retry: 4, ..Due::default() };
    assert_eq!(decided(once, failed(3, "2026-11-20T01:30:00Z"), "2026-11-20T02:30:00Z"), fourth);
    assert_eq!(decided(once, failed(4, "2026-11-20T02:40:00Z"), "2026-11-21T02:30:00Z"), Due::default());
}

#[test]
fn only_a_run_of_its_own_that_took_no_backup_is_tried_again() {
    let backup = backup(json!({"schedule": "30 2 * * *"}), json!(null));
    let time = at("2026-11-28T02:30:00Z");
    let last_of = |retries: Option<i32>, name: &str, reason: &str, more: serde_json::Value| {
        let before = EtcdBackupStatus { retries, ..EtcdBackupStatus::default() };
        let mut status = json!({"completionTime": "2026-11-28T02:31:00Z", "conditions": [{
            "type": "Succeeded", "status": "False", "reason": reason, "message": "m", "lastTransitionTime": "2026-11-28T02:31:00Z", "observedGeneration": 1}]});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let run = json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "Run", "metadata": {"name": name, "namespace": "n"},
            "spec": {"deployment": "prod", "operation": "Backup", "backup": "daily"}, "status": status});
        last_backup(&backup, time, &before, &[Arc::new(serde_json::from_value(run).unwrap())])
    };

    let last = |name: &str, reason: &str, more| last_of(None, name, reason, more);
    let failed = |retries| Some(Failed { retries, ended: at("2026-11-28T02:31:00Z") });
    assert_eq!(last("daily-202611280230", "BackupFailed", json!({})).failed, failed(0));
    assert_eq!(last("daily-202611280230-retry-3", "BackupFailed", json!({})).failed, failed(3));
    for (name, reason) in
        [("daily-202611270230", "BackupFailed"), ("mine", "BackupFailed"), ("daily-202611280230", "Stopped")]
    {
        assert_eq!(last(name, reason, json!({})).failed, None, "{name} {reason}");
    }
    // Somebody deleted the second retry.
    assert_eq!(last_of(Some(2), "daily-202611280230-retry-1", "BackupFailed", json!({})).failed, None);
    assert_eq!(last_of(Some(2), "daily-202611280230-retry-2", "BackupFailed", json!({})).failed, failed(2));
    let taken = json!({"backup": {"address": "s3://b/p/n", "revision": 5, "size": 40}});
    assert_eq!(last("daily-202611280230", "BackupDegraded", taken).failed, None);
    let open = json!({"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running", "message": "m",
        "lastTransitionTime": "2026-11-28T02:31:00Z", "observedGeneration": 1}]});
    let open = last("daily-202611280230", "", open);
    assert!(open.is_open && open.failed.is_none());
}

#[test]
fn backups_are_recent_unless_one_failed_or_is_overdue() {
    let now = at("2026-11-28T03:45:00Z");
    let word = |backups: &[Arc<EtcdBackup>]| match recency(backups, now) {
        Recency::None => "none".to_owned(),
        Recency::NotYet => "not yet".to_owned(),
        Recency::Recent(time) => format!("recent {time}"),
        Recency::Overdue(why) => format!("overdue: {why}"),
        Recency::Failed(why) => format!("failed: {why}"),
    };
    assert_eq!(word(&[]), "none");
    assert_eq!(word(&[backup(json!({}), json!({}))]), "not yet");
    let daily = |success: &str| {
        let status = json!({"lastSuccessTime": success, "completionTime": success});
        backup(json!({"schedule": "30 2 * * *"}), status)
    };
    let good = daily("2026-11-28T02:31:00Z");
    assert_eq!(word(std::slice::from_ref(&good)), format!("recent {}", at("2026-11-28T02:31:00Z")));
    // An hour after its time it is overdue.
    let overdue = word(&[good.clone(), daily("2026-11-27T02:31:00Z")]);
    assert_eq!(overdue, "overdue: daily: its newest good backup: 2026-11-27T02:31:00Z");
    let status = json!({"lastSuccessTime": "2026-11-27T02:31:00Z"});
    let suspended = backup(json!({"schedule": "30 2 * * *", "suspend": true}), status);
    assert!(word(&[suspended]).starts_with("recent"));
    let status = json!({"completionTime": "2026-11-28T02:31:00Z", "message": "BackupFailed: no"});
    let suspended = backup(json!({"schedule": "30 2 * * *", "suspend": true}), status);
    assert!(word(&[good.clone(), suspended]).starts_with("recent"), "nobody tries it again");
    let status = json!({
        "lastSuccessTime": "2026-11-27T02:31:00Z", "completionTime": "2026-11-28T02:31:00Z", "message": "BackupFailed: no",
    });
    assert_eq!(word(&[good.clone(), backup(json!({}), status)]), "failed: daily: BackupFailed: no");
    // A schedule that cannot be used any more is no success for ever.
    let success = json!({"lastSuccessTime": "2026-11-28T02:31:00Z", "completionTime": "2026-11-28T02:31:00Z"});
    for (schedule, why) in
        [("99 * * * *", "failed: daily: invalid schedule"), ("0 0 31 2 *", "failed: daily: the schedule")]
    {
        assert!(word(&[backup(json!({"schedule": schedule}), success.clone())]).starts_with(why), "{schedule}");
    }
    let mut problem = success.clone();
    problem["problem"] = json!("there is no KarmadaDeployment prod");
    assert!(word(&[backup(json!({}), problem)]).starts_with("failed: daily: there is no"));
    // What failed besides a good backup is no failure of it.
    let status = json!({
        "lastSuccessTime": "2026-11-28T02:31:00Z", "completionTime": "2026-11-28T02:31:00Z", "message": "h3: no answer",
    });
    assert!(word(&[backup(json!({}), status)]).starts_with("recent"));
}

fn ended(name: &str, well: bool, backup: Option<&str>) -> Arc<Run> {
    let condition = json!({
        "type": "Succeeded", "status": if well { "True" } else { "False" }, "reason": if well { "Succeeded" } else { "BackupFailed" },
        "message": "why", "lastTransitionTime": "2026-11-28T02:31:00Z", "observedGeneration": 1,
    });
    let backup = backup.map(|address| json!({"address": address, "revision": 7, "size": 40}));
    Arc::new(
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Run", "metadata": {"name": name},
            "spec": {"deployment": "prod", "operation": "Backup", "backup": "daily"},
            "status": {"conditions": [condition], "completionTime": format!("2026-11-28T02:{name}:00Z"), "backup": backup},
        }))
        .unwrap(),
    )
}

#[test]
fn the_status_keeps_what_is_known_of_runs_that_are_gone() {
    let first = told(&EtcdBackupStatus::default(), &[ended("31", true, Some("s3://b/1"))]);
    assert_eq!(first.last_success.as_deref(), Some("s3://b/1"));
    assert_eq!((first.message.as_deref(), first.last_run.as_deref()), (None, Some("31")));
    let failed = told(&first, &[ended("32", false, None)]);
    assert_eq!(failed.message.as_deref(), Some("BackupFailed: why"));
    assert_eq!(failed.completion_time.as_deref(), Some("2026-11-28T02:32:00Z"));
    assert_eq!(failed.last_success_time, first.last_success_time);
    assert_eq!(told(&failed, &[]), failed);
    let again = told(&failed, &[ended("32", false, None), ended("33", true, Some("s3://b/2"))]);
    assert_eq!((again.message, again.last_success.as_deref()), (None, Some("s3://b/2")));
}

#[test]
fn a_run_is_named_by_the_time_and_owned_by_the_backup() {
    let time = OffsetDateTime::from_unix_timestamp(at("2026-11-28T02:30:00Z")).unwrap();
    let run = run_of(&backup(json!({"schedule": "30 2 * * *"}), json!(null)), time, 0);
    assert_eq!(run.metadata.name.as_deref(), Some("daily-202611280230"));
    assert_eq!(run.owner_references()[0].kind, "EtcdBackup");
    assert_eq!(run_of(&backup(json!({}), json!(null)), time, 0).metadata.name.as_deref(), Some("daily-01234567"));
    assert_eq!(run_name(&backup(json!({}), json!(null)), time, 2), "daily-01234567-retry-2");
}
