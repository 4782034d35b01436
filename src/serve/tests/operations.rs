//! Upgrades, rollbacks and renewals of certificates: planned, shown, and carried out only as they were seen.

use super::plans::differing_plan;
use super::*;
use crate::deployment::changes::{ChangeKind, Changes, PlannedChange, TaskFailure};
use crate::deployment::operation::{OPERATION_LAYOUT, OperationPlan};

fn operation_plan(operation: &str) -> OperationPlan {
    let change = PlannedChange {
        host: "cp-1".into(),
        kind: ChangeKind::File,
        what: "/etc/systemd/system/karmada-webhook.service".into(),
        task: "t".into(),
        diff: String::new(),
    };
    let notes = vec!["upgrading to Karmada 1.18.0: webhook".to_owned()];
    OperationPlan {
        windlass_operation: OPERATION_LAYOUT,
        operation: operation.to_owned().try_into().unwrap(),
        bundle: None,
        defragmentation: (operation == "etcd defrag").then(Default::default),
        skip: Vec::new(),
        deployment: "prod".into(),
        made: 1_800_000_000,
        by: "alice@workstation".into(),
        sources: Vec::new(),
        resumes: false,
        found: Changes { changes: vec![change], notes, ..Changes::default() },
        observed: Default::default(),
    }
}

/// Saves a plan as that of a dry run of its operation that somebody started, and returns the run and the digest.
fn save_by(fixture: &Fixture, plan: &OperationPlan, user: &str, seconds: u64) -> (String, String) {
    let mut store = fixture.store();
    let command = plan.planned_operation().unwrap().name();
    let run = start_command(store.as_mut(), (command, true), Some("prod"), user, seconds);
    end_run(store.as_mut(), run);
    let path = fixture.server.processes.plan_path(run);
    super::super::plans::prepare_directory(&fixture.server, &path).unwrap();
    std::fs::write(path, serde_json::to_vec(plan).unwrap()).unwrap();
    (run.to_string(), plan.operation_digest())
}

fn save(fixture: &Fixture, plan: &OperationPlan, seconds: u64) -> (String, String) {
    save_by(fixture, plan, "alice@workstation", seconds)
}

async fn start(fixture: &Fixture, token: &str, body: Json) -> Answered {
    fixture.ask("POST", "/api/v1/deployments/prod/runs", Some(token), Some(body)).await
}

async fn carry_out(fixture: &Fixture, token: &str, command: &str, (plan, digest): (&str, &str)) -> Answered {
    start(fixture, token, serde_json::json!({"command": command, "plan": plan, "digest": digest})).await
}

/// A program that prints its arguments and does not begin.
fn echoing() -> Fixture {
    Fixture::with(|options| write_program(&options.program, "#!/bin/sh\necho \"$@\" >&2\nexit 1\n"))
}

#[tokio::test]
async fn an_operation_is_carried_out_only_as_it_was_seen() {
    for (command, of_run) in [
        ("upgrade", "upgrade"),
        ("rollback", "rollback"),
        ("certificates", "certificates"),
        ("upgrade", "upgrade --component webhook"),
        ("etcd_defrag", "etcd defrag"),
        ("etcd_upgrade", "etcd upgrade"),
        ("etcd_downgrade", "etcd downgrade"),
    ] {
        let fixture = echoing();
        let token = fixture.token("see@prod plan@prod approve@prod");
        let (run, digest) = save(&fixture, &operation_plan(of_run), 0);
        let shown = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json();
        assert_eq!(
            (&shown["digest"], &shown["approvable"], &shown["operation"]),
            (&Json::from(digest.clone()), &Json::from(true), &Json::from(command)),
            "{shown:#}"
        );
        let stage = &shown["stages"][0];
        assert_eq!((&stage["stage"], &stage["state"]), (&Json::from(command), &Json::from("differs")));
        assert_eq!(stage["hosts"], serde_json::json!(["cp-1"]));
        assert_eq!(stage["found"]["notes"][0], "upgrading to Karmada 1.18.0: webhook");

        assert_eq!(carry_out(&fixture, &token, command, (&run, &"0".repeat(64))).await.code(), "OtherDigest");
        for other in ["apply", "upgrade", "rollback", "certificates", "etcd_defrag", "etcd_upgrade", "etcd_downgrade"] {
            let expected = if other == command { "NotStarted" } else { "OtherOperation" };
            let answer = carry_out(&fixture, &token, other, (&run, &digest)).await;
            assert_eq!(answer.code(), expected, "{other} of {command}");
            if other == command {
                let printed = answer.json()["detail"].as_str().unwrap().to_owned();
                let path = fixture.server.processes.plan_path(RunId::parse_id(&run).unwrap());
                let expected = format!("{} --yes --plan {} --run-id=", command.replace('_', " "), path.display());
                assert!(printed.starts_with(&expected), "{printed}");
            }
        }
        let only_plans = fixture.token("see@prod plan@prod");
        assert_eq!(carry_out(&fixture, &only_plans, command, (&run, &digest)).await.code(), "Forbidden");
    }
}

#[tokio::test]
async fn a_deployment_is_destroyed_by_its_name_and_by_the_document_that_was_seen() {
    let fixture = echoing();
    let token = fixture.token("see@prod plan@prod edit@prod approve@prod stop@prod destroy@prod");
    let answer = fixture.ask("GET", "/api/v1/deployments/prod/document", Some(&token), None).await;
    let seen = super::super::access::sha256_hex(answer.text.as_bytes());
    let body = |confirm: &str, document: &str| serde_json::json!({"command": "destroy", "confirm": confirm, "document": document});
    // All other rights are not enough.
    let others = fixture.token("see@prod plan@prod edit@prod approve@prod stop@prod destroy@other");
    assert_eq!(start(&fixture, &others, body("prod", &seen)).await.code(), "Forbidden");
    for wrong in ["", "Prod", "prod ", "other", "--force"] {
        assert_eq!(start(&fixture, &token, body(wrong, &seen)).await.code(), "NameNotConfirmed", "{wrong:?}");
    }
    assert_eq!(start(&fixture, &token, body("prod", &"0".repeat(64))).await.code(), "OtherDocument");
    let printed = start(&fixture, &token, body("prod", &seen)).await.json()["detail"].as_str().unwrap().to_owned();
    let root = fixture.directory.path().canonicalize().unwrap();
    let expected = format!("destroy --name prod -f {}/deployments/prod.yaml --run-id=", root.display());
    assert!(printed.starts_with(&expected), "{printed}");

    // While it is destroyed, and afterwards, no older plan is carried out, and nothing else is begun meanwhile.
    let (run, digest) = save(&fixture, &operation_plan("upgrade"), 0);
    let mut store = fixture.store();
    let destroy = start_run(store.as_mut(), "destroy", Some("prod"), 10);
    assert_eq!(carry_out(&fixture, &token, "upgrade", (&run, &digest)).await.code(), "AlreadyRunning");
    assert_eq!(start(&fixture, &token, body("prod", &seen)).await.code(), "AlreadyRunning");
    end_run(store.as_mut(), destroy);
    assert_eq!(carry_out(&fixture, &token, "upgrade", (&run, &digest)).await.code(), "PlanIsOld");
}

#[tokio::test]
async fn nobody_destroys_alone_where_two_must_agree() {
    let fixture = Fixture::with(|options| options.author_may_not_approve = true);
    let token = fixture.token("see@prod destroy@prod");
    let answer = fixture.ask("GET", "/api/v1/deployments/prod/document", Some(&token), None).await;
    let document = super::super::access::sha256_hex(answer.text.as_bytes());
    let body = serde_json::json!({"command": "destroy", "confirm": "prod", "document": document});
    let answer = start(&fixture, &token, body).await;
    assert_eq!(answer.code(), "OwnPlan");
    assert!(answer.json()["hint"].as_str().unwrap().contains("windlass destroy"));
}

#[tokio::test]
async fn a_plan_is_made_by_the_dry_run_of_its_operation() {
    let fixture = echoing();
    let (may, may_not) = (fixture.token("see@prod plan@prod"), fixture.token("see@prod approve@prod"));
    let root = fixture.directory.path().canonicalize().unwrap();
    for (body, words) in [
        (serde_json::json!({"command": "plan"}), "plan"),
        (serde_json::json!({"command": "plan", "operation": "apply"}), "plan"),
        (serde_json::json!({"command": "plan", "operation": "upgrade"}), "upgrade --check"),
        (serde_json::json!({"command": "plan", "operation": "rollback"}), "rollback --check"),
        (serde_json::json!({"command": "plan", "operation": "certificates"}), "certificates --check"),
        (serde_json::json!({"command": "plan", "operation": "etcd_defrag"}), "etcd defrag --check"),
        (serde_json::json!({"command": "plan", "operation": "etcd_upgrade"}), "etcd upgrade --check"),
        (serde_json::json!({"command": "plan", "operation": "etcd_downgrade"}), "etcd downgrade --check"),
    ] {
        let printed = start(&fixture, &may, body.clone()).await.json()["detail"].as_str().unwrap().to_owned();
        let expected = format!("{words} -f {}/deployments/prod.yaml --out ", root.display());
        assert!(printed.starts_with(&expected) && printed.contains("/plans/"), "{printed}");
        assert_eq!(start(&fixture, &may_not, body).await.code(), "Forbidden", "{words}");
    }
    for wrong in ["destroy", "etcd restore", ""] {
        let body = serde_json::json!({"command": "plan", "operation": wrong});
        assert_eq!(start(&fixture, &may, body).await.code(), "InvalidBody", "{wrong:?}");
    }
}

#[tokio::test]
async fn an_operation_that_is_refused_empty_or_old_is_not_carried_out() {
    let fixture = echoing();
    let token = fixture.token("see@prod plan@prod approve@prod");
    let wanted = operation_plan("upgrade");
    let (old, old_digest) = save(&fixture, &wanted, 0);
    let mut refused = wanted.clone();
    refused.found.failures = vec![TaskFailure {
        host: "cp-1".into(),
        task: "t".into(),
        message: "skips a version".into(),
        unreachable: false,
    }];
    let mut empty = wanted.clone();
    empty.found.changes.clear();
    for (at, (plan, code, why)) in [
        (refused, "PlanRefused", "the upgrade is refused (cp-1: skips a version)"),
        (empty, "NothingToDo", "the plan changes nothing"),
    ]
    .into_iter()
    .enumerate()
    {
        let (run, digest) = save(&fixture, &plan, 10 + at as u64);
        let shown = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json();
        assert_eq!((&shown["approvable"], shown["why_not"].as_str()), (&Json::from(false), Some(why)));
        assert_eq!(carry_out(&fixture, &token, "upgrade", (&run, &digest)).await.code(), code);
    }
    assert_eq!(carry_out(&fixture, &token, "upgrade", (&old, &old_digest)).await.code(), "PlanIsOld");
    let (newest, digest) = save(&fixture, &wanted, 20);
    let newest_run = async || carry_out(&fixture, &token, "upgrade", (&newest, &digest)).await.code();
    // Plans of other work leave it as it is.
    save(&fixture, &operation_plan("rollback"), 21);
    super::plans::save(&fixture, &differing_plan(), 22);
    assert_eq!(newest_run().await, "NotStarted");
    let mut store = fixture.store();
    for (at, command) in ["apply", "upgrade", "rollback", "certificates"].into_iter().enumerate() {
        let (run, digest) = save(&fixture, &wanted, 30 + 10 * at as u64);
        let later = start_run(store.as_mut(), command, Some("prod"), 35 + 10 * at as u64);
        end_run(store.as_mut(), later);
        assert_eq!(carry_out(&fixture, &token, "upgrade", (&run, &digest)).await.code(), "PlanIsOld", "{command}");
    }
    // A plan of an apply is old by then, too.
    let (apply, digest) = super::plans::save(&fixture, &differing_plan(), 80);
    let upgrade = start_run(store.as_mut(), "upgrade", Some("prod"), 90);
    end_run(store.as_mut(), upgrade);
    assert_eq!(carry_out(&fixture, &token, "apply", (&apply, &digest)).await.code(), "PlanIsOld");
}

#[tokio::test]
async fn the_author_of_an_upgrade_does_not_approve_it_if_another_person_must() {
    for allowed in [true, false] {
        let fixture = Fixture::with(|options| options.author_may_not_approve = !allowed);
        let token = fixture.token("see@prod plan@prod approve@prod");
        let name = fixture.server.access.lock().tokens().unwrap()[0].name.clone();
        let by = |who: &str| format!("{who} by windlass@h1");
        let (own, digest) = save_by(&fixture, &operation_plan("upgrade"), &by(&format!("token {name}")), 0);
        let expected = if allowed { "NotStarted" } else { "OwnPlan" };
        assert_eq!(carry_out(&fixture, &token, "upgrade", (&own, &digest)).await.code(), expected);
        let (other, digest) = save_by(&fixture, &operation_plan("upgrade"), &by("alice"), 10);
        assert_eq!(carry_out(&fixture, &token, "upgrade", (&other, &digest)).await.code(), "NotStarted");
    }
}
