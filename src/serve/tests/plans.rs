//! Plans that are shown and approved, and those that are refused.

use super::*;
use crate::deployment::plan::{LAYOUT, Observed, Plan, PlannedStage, StageState, TargetHosts};
use crate::deployment::stage::Stage;
use crate::serve::processes::StartedCommand;

pub(super) fn plan(states: &[(Stage, StageState, &str)]) -> Plan {
    let stages = states.iter().map(|(stage, state, host)| PlannedStage {
        stage: *stage,
        state: *state,
        hosts: vec![(*host).to_owned()],
        found: Default::default(),
    });
    Plan {
        windlass_plan: LAYOUT,
        deployment: "prod".into(),
        made: 1_800_000_000,
        by: "alice@workstation".into(),
        sources: Vec::new(),
        reach: TargetHosts::default(),
        stages: stages.collect(),
        observed: Observed::new(),
    }
}

pub(super) fn differing_plan() -> Plan {
    plan(&[(Stage::Etcd, StageState::Differs, "h1")])
}

/// Saves a plan as that of a run of `plan`, and returns the run and the digest.
pub(super) fn save(fixture: &Fixture, plan: &Plan, seconds: u64) -> (String, String) {
    save_by(fixture, plan, "alice@workstation", seconds)
}

/// The same, of a run that somebody started.
pub(super) fn save_by(fixture: &Fixture, plan: &Plan, user: &str, seconds: u64) -> (String, String) {
    let mut store = fixture.store();
    let run = start_run_by(store.as_mut(), "plan", Some("prod"), user, seconds);
    end_run(store.as_mut(), run);
    let path = fixture.server.processes.plan_path(run);
    super::super::plans::prepare_directory(&fixture.server, &path).unwrap();
    std::fs::write(path, serde_json::to_vec(plan).unwrap()).unwrap();
    (run.to_string(), plan.digest())
}

async fn approve(fixture: &Fixture, token: &str, plan: &str, digest: &str, removals: &[&str]) -> Answered {
    let body = serde_json::json!({"command": "apply", "plan": plan, "digest": digest, "removals": removals});
    fixture.ask("POST", "/api/v1/deployments/prod/runs", Some(token), Some(body)).await
}

#[tokio::test]
async fn a_plan_is_applied_only_as_it_was_seen() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let wanted = plan(&[(Stage::Etcd, StageState::Differs, "h1"), (Stage::Removals, StageState::Differs, "m2")]);
    let (run, digest) = save(&fixture, &wanted, 0);
    let shown = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json();
    assert_eq!((&shown["digest"], &shown["approvable"]), (&Json::from(digest.clone()), &Json::from(true)), "{shown:#}");
    assert_eq!(shown["removals"], serde_json::json!(["m2"]));

    let codes = async |answer: Answered| format!("{} {}", answer.status.as_u16(), answer.code());
    let other = "0".repeat(64);
    assert_eq!(codes(approve(&fixture, &token, &run, &other, &["m2"]).await).await, "409 OtherDigest");
    assert_eq!(codes(approve(&fixture, &token, &run, &digest, &[]).await).await, "409 RemovalsNotConfirmed");
    assert_eq!(codes(approve(&fixture, &token, &run, &digest, &["m2", "m3"]).await).await, "409 RemovalsNotConfirmed");
    assert_eq!(codes(approve(&fixture, &token, "../../etc/passwd", &digest, &["m2"]).await).await, "404 NoPlan");
    let only_plans = fixture.token("see@prod plan@prod");
    assert_eq!(codes(approve(&fixture, &only_plans, &run, &digest, &["m2"]).await).await, "403 Forbidden");
    // It is let through: what fails is the program of this test.
    assert_eq!(codes(approve(&fixture, &token, &run, &digest, &["m2"]).await).await, "409 NotStarted");
}

#[tokio::test]
async fn a_plan_names_the_hosts_that_it_leaves_out() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod");
    let mut wanted = differing_plan();
    let (whole, _) = save(&fixture, &wanted, 0);
    wanted.reach = TargetHosts {
        limit: None,
        left_out: vec!["h3".into()],
        silent_outside: vec!["h4".into()],
        ..TargetHosts::default()
    };
    let (part, _) = save(&fixture, &wanted, 10);
    let left_out = async |run: &str| {
        fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json()["left_out"].clone()
    };
    assert_eq!(left_out(&whole).await, serde_json::json!([]));
    let expected = serde_json::json!([{"host": "h3", "why": "no_answer"}, {"host": "h4", "why": "no_answer"}]);
    assert_eq!(left_out(&part).await, expected);
}

#[tokio::test]
async fn a_plan_that_is_too_large_is_not_read_and_one_that_was_read_is_kept() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let (run, digest) = save(&fixture, &differing_plan(), 0);
    let show = async || fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await;
    assert_eq!((show().await.status, show().await.status), (StatusCode::OK, StatusCode::OK));
    // A plan that is exchanged is read again.
    let path = fixture.server.processes.plan_path(RunId::parse_id(&run).unwrap());
    let other = plan(&[(Stage::Etcd, StageState::Differs, "h2")]);
    std::fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
    assert_eq!(show().await.json()["digest"], Json::from(other.digest()));
    assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), "OtherDigest");
    let mut large = other;
    large.by = "x".repeat(16 << 20);
    std::fs::write(&path, serde_json::to_vec(&large).unwrap()).unwrap();
    assert_eq!(show().await.code(), "PlanTooLarge");
    assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), "PlanTooLarge");
}

#[tokio::test]
async fn an_old_or_refused_plan_is_not_applied() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let differs = plan(&[(Stage::Etcd, StageState::Differs, "h1")]);
    let (old, old_digest) = save(&fixture, &differs, 0);
    let cases = [
        (plan(&[(Stage::Etcd, StageState::Same, "h1")]), "NothingToDo", "the plan changes nothing"),
        (plan(&[(Stage::Etcd, StageState::Refused, "h1")]), "PlanRefused", "the stage etcd is refused"),
    ];
    for (at, (wanted, code, why)) in cases.into_iter().enumerate() {
        let (run, digest) = save(&fixture, &wanted, 10 + at as u64);
        let shown = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json();
        assert_eq!((&shown["approvable"], shown["why_not"].as_str()), (&Json::from(false), Some(why)));
        assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), code);
    }
    assert_eq!(approve(&fixture, &token, &old, &old_digest, &[]).await.code(), "PlanIsOld");
    let (newest, digest) = save(&fixture, &differs, 20);
    let mut store = fixture.store();
    let apply = start_run(store.as_mut(), "apply", Some("prod"), 30);
    assert_eq!(approve(&fixture, &token, &newest, &digest, &[]).await.code(), "AlreadyRunning");
    end_run(store.as_mut(), apply);
    assert_eq!(approve(&fixture, &token, &newest, &digest, &[]).await.code(), "PlanIsOld", "an apply has ended");
}

#[tokio::test]
async fn a_plan_waits_for_what_changes_the_deployment() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let mut store = fixture.store();
    let upgrade = start_run(store.as_mut(), "upgrade", Some("prod"), 0);
    let (run, digest) = save(&fixture, &plan(&[(Stage::Etcd, StageState::Differs, "h1")]), 10);
    assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), "AlreadyRunning");
    end_run(store.as_mut(), upgrade);
    assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), "NotStarted");
}

#[tokio::test]
async fn no_more_runs_than_allowed_and_one_that_changes_are_started() {
    let fixture = Fixture::new();
    let directory = fixture.directory.path();
    let program = directory.join("waits");
    write_program(&program, "#!/bin/sh\nwhile [ -e \"$0\" ] && [ ! -e \"${0%/*}/end\" ]; do sleep 0.1; done\n");
    let processes = Processes::new(program, Vec::new(), &directory.join("state"), 2);
    let start = |run, deployment, changes| {
        let command =
            StartedCommand { deployment, by: "alice", person: "alice", arguments: &[], changes, handed: None };
        processes.start_command(&fixture.server.stores, run, &command)
    };
    let mut store = fixture.store();
    // It has not read its file yet, so that its record does not say which deployment it is about.
    let run = start_run(store.as_mut(), "apply", None, 0);
    start(run, "prod", true).unwrap();
    assert_eq!(processes.deployment_of(run).as_deref(), Some("prod"));
    let refused = start(RunId::new_at(UNIX_EPOCH), "prod", true).unwrap_err();
    assert_eq!(refused.code, "AlreadyRunning");
    start(start_run(store.as_mut(), "plan", None, 1), "prod", false).unwrap();
    let refused = start(RunId::new_at(UNIX_EPOCH), "test", true).unwrap_err();
    assert_eq!(refused.code, "TooManyRuns");
    std::fs::write(directory.join("end"), "").unwrap();
    let mut answered = refused;
    while answered.code == "TooManyRuns" {
        tokio::time::sleep(Duration::from_millis(50)).await;
        answered = start(RunId::new_at(UNIX_EPOCH), "test", true).unwrap_err();
    }
    assert_eq!((answered.code, answered.detail.as_str()), ("NotStarted", "the process ended without a message"));
}

#[tokio::test]
async fn a_request_that_is_sent_again_starts_nothing() {
    let repeats = super::super::repeats::Repeats::default();
    let (body, other) = (b"{}".as_slice(), b"[]".as_slice());
    let [first, second] = [1, 2].map(|at| RunId::new_at(UNIX_EPOCH + Duration::from_secs(at)));
    let ask = |who, key, path, body: &[u8], run| repeats.earlier_run((who, key), path, body, run);
    assert_eq!(ask("alice", "k", "prod", body, first).unwrap(), None);
    assert_eq!(ask("alice", "k", "prod", body, second).unwrap(), Some(first));
    assert_eq!(ask("alice", "k", "prod", other, second).unwrap_err().code, "KeyReused");
    assert_eq!(ask("alice", "k", "test", body, second).unwrap_err().code, "KeyReused");
    assert_eq!(ask("bob", "k", "prod", body, second).unwrap(), None, "each login has its own keys");
    assert_eq!(ask("alice", "", "prod", body, second).unwrap_err().code, "BadRequest");
    assert_eq!(ask("alice", "long", "prod", &[b' '; (128 << 10) + 1], second).unwrap_err().code, "TooLarge");
    repeats.forget(first);
    assert_eq!(ask("alice", "k", "prod", body, second).unwrap(), None, "it started no run");
}

#[tokio::test]
async fn a_damaged_plan_or_one_of_another_layout_says_so() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let (run, _) = save(&fixture, &plan(&[(Stage::Etcd, StageState::Differs, "h1")]), 0);
    let path = fixture.server.processes.plan_path(RunId::parse_id(&run).unwrap());
    let whole = std::fs::read_to_string(&path).unwrap();
    for (text, code) in [(&whole[..100], "PlanDamaged"), (r#"{"windlass_plan": 5, "stages": {}}"#, "PlanIsOld")] {
        std::fs::write(&path, text).unwrap();
        let answer = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (409, code));
    }
}

#[tokio::test]
async fn plans_whose_runs_are_gone_are_deleted() {
    let fixture = Fixture::new();
    let (kept, _) = save(&fixture, &plan(&[]), 0);
    let gone = fixture.server.processes.plan_path(RunId::new_at(UNIX_EPOCH));
    std::fs::write(&gone, "{}").unwrap();
    super::super::plans::prepare_directory(&fixture.server, &gone).unwrap();
    assert!(!gone.exists());
    assert!(fixture.server.processes.plan_path(RunId::parse_id(&kept).unwrap()).exists());
}

#[tokio::test]
async fn a_run_that_changes_is_known_however_many_came_after_it() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let mut store = fixture.store();
    let upgrade = start_run(store.as_mut(), "upgrade", Some("prod"), 0);
    for at in 1..30 {
        let look = start_run(store.as_mut(), "status", Some("prod"), at);
        end_run(store.as_mut(), look);
    }
    let (run, digest) = save(&fixture, &plan(&[(Stage::Etcd, StageState::Differs, "h1")]), 40);
    assert_eq!(approve(&fixture, &token, &run, &digest, &[]).await.code(), "AlreadyRunning");
    end_run(store.as_mut(), upgrade);
}

#[tokio::test]
async fn who_only_looks_leaves_room_for_others_and_for_a_change() {
    let fixture = Fixture::new();
    let directory = fixture.directory.path();
    let program = directory.join("waits");
    write_program(&program, "#!/bin/sh\nwhile [ -e \"$0\" ] && [ ! -e \"${0%/*}/end\" ]; do sleep 0.1; done\n");
    let processes = Processes::new(program, Vec::new(), &directory.join("state"), 4);
    let mut store = fixture.store();
    let mut start = |person, changes| {
        let run = start_run(store.as_mut(), "status", None, 0);
        let by = format!("token t of {person}");
        let command = StartedCommand { deployment: "prod", by: &by, person, arguments: &[], changes, handed: None };
        processes.start_command(&fixture.server.stores, run, &command).map(drop).map_err(|problem| problem.code)
    };
    assert_eq!(start("alice", false), Ok(()));
    assert_eq!(start("alice", false), Ok(()));
    assert_eq!(start("alice", false), Err("TooManyRuns"));
    assert_eq!(start("bob", false), Ok(()));
    assert_eq!(start("carol", false), Err("TooManyRuns"));
    assert_eq!(start("carol", true), Ok(()));
    std::fs::write(directory.join("end"), "").unwrap();
}

#[tokio::test]
async fn a_run_that_cannot_be_seen_is_stopped_and_makes_room() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let directory = fixture.directory.path();
    let program = directory.join("waits");
    write_program(&program, "#!/bin/sh\necho $$ >\"${0%/*}/pid\"\nexec sleep 60\n");
    let processes = Processes::new(program, Vec::new(), &directory.join("state"), 1);
    let run = RunId::new_at(UNIX_EPOCH);
    let (by, person) = ("alice", "alice");
    let command = StartedCommand { deployment: "prod", by, person, arguments: &[], changes: true, handed: None };
    // The one open store is in use, and no other one can be opened.
    std::fs::set_permissions(directory.join("state"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let stores = &fixture.server.stores;
    let failed = stores.with_store(|_| Ok(processes.start_command(stores, run, &command).unwrap_err())).unwrap();
    assert_eq!(failed.code, "Internal");
    let begun = std::time::Instant::now();
    while processes.deployment_of(run).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(50), "the process was not stopped");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
