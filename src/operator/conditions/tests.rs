//! What makes a deployment ready, and what does not.

use super::super::window::Window;
use super::*;
use crate::operator::decide::{LookView, decide};
use crate::resource::DeletionPolicy;
use crate::resource::status::{EtcdMemberStatus, LookSummary, PlanStatus};

const LIMITS: Limits = Limits { look_every: 600, may_run: true, may_look: true };

fn at(seconds: Seconds) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000 + seconds).unwrap()
}

/// A deployment that is as it should be, looked at a minute ago.
fn healthy() -> (DeploymentView, Look) {
    let host = |name: &str| HostStatus {
        name: name.into(),
        reachable: true,
        ready: "etcd apiserver".into(),
        message: String::new(),
    };
    let member = |name: &str| EtcdMemberStatus { host: name.into(), healthy: true, ..EtcdMemberStatus::default() };
    let look = Look {
        generation: 1,
        time: time_text(at(-60)),
        summary: LookSummary {
            hosts: "3/3".into(),
            etcd: "3/3".into(),
            components: "9/9".into(),
            members: "0/0".into(),
        },
        hosts: ["h1", "h2", "h3"].map(host).into(),
        etcd_members: ["h1", "h2", "h3"].map(member).into(),
        plan: Some(PlanStatus::default()),
        ..Look::default()
    };
    let view = DeploymentView {
        generation: 1,
        apply: ApplyPolicy::Approve,
        paused: false,
        window: Window::Open,
        deleted: false,
        deletion_policy: DeletionPolicy::Keep,
        look: Some(LookView { at: at(-60).unix_timestamp(), generation: 1, failed: false, plan: None }),
        changed_since_run: false,
        destroyed: false,
        changed_since_destroyed: false,
        looking: false,
        runs: Vec::new(),
    };
    (view, look)
}

/// `STATUS REASON` of conditions, after what `change` does to a deployment that is well.
fn said(kinds: &[&str], failed: Option<&str>, change: impl Fn(&mut DeploymentView, &mut Look)) -> Vec<String> {
    let (mut view, mut look) = healthy();
    change(&mut view, &mut look);
    let decision = decide(&view, LIMITS, at(0).unix_timestamp());
    let known = Known { view: &view, look: Some(&look), decision: &decision, limits: LIMITS, backups: &Recency::None };
    let all = conditions("prod", &known, failed, at(0));
    let found = kinds.iter().map(|kind| all.iter().find(|condition| condition.r#type == *kind).unwrap());
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).collect()
}

fn run(operation: RunOperation, state: RunState, has_changed: bool) -> RunView {
    RunView {
        name: "r".into(),
        operation,
        plan_digest: None,
        stop: false,
        deleted: false,
        attempts: 1,
        has_changed,
        state,
    }
}

#[test]
fn a_deployment_is_ready_if_all_is_well() {
    let all = ["Ready", "Available", "UpToDate", "Degraded", "EtcdHealthy", "Blocked"];
    let wanted =
        ["True Ready", "True Serving", "True UpToDate", "False Healthy", "True AllHealthy", "False NotBlocked"];
    assert_eq!(said(&all, None, |_, _| ()), wanted);
}

#[test]
fn one_thing_that_is_wrong_is_enough() {
    type Change = fn(&mut DeploymentView, &mut Look);
    let wrong: [(&str, Change); 8] = [
        ("False HostsUnreachable", |_, look| look.hosts[2].reachable = false),
        ("False EtcdHasNoMajority", |_, look| look.summary.etcd = "1/3".into()),
        ("False NoApiServer", |_, look| look.hosts.iter_mut().for_each(|host| host.ready = "etcd".into())),
        ("False Unhealthy", |_, look| look.problems = vec!["h2: karmadaScheduler is not active".into()]),
        ("False ChangesPending", |_, look| look.plan.as_mut().unwrap().digest = Some("d".into())),
        // A member that cannot join holds up nothing else, but the hosts are not as the spec says.
        ("False MembersRefused", |_, look| look.plan.as_mut().unwrap().refused_members = vec!["m1: no route".into()]),
        ("Unknown NotLooked", |view, _| view.generation = 2),
        ("False Deleting", |view, _| view.deleted = true),
    ];
    for (reason, change) in wrong {
        assert_eq!(said(&["Ready"], None, change), [reason]);
    }
}

#[test]
fn a_look_from_before_a_run_says_nothing_about_what_the_run_has_made_of_the_hosts() {
    let kinds = ["Ready", "UpToDate", "Available"];
    let after = |operation, state, has_changed| {
        said(&kinds, None, move |view, _| view.runs = vec![run(operation, state, has_changed)])
    };
    let ended = |seconds| RunState::Ended { well: true, at: at(seconds).unix_timestamp() };
    let since = ["Unknown ChangedSince", "Unknown ChangedSince", "True Serving"];
    assert_eq!(after(RunOperation::Apply, RunState::Running, true), since);
    assert_eq!(after(RunOperation::Apply, RunState::Lost, true), since);
    assert_eq!(after(RunOperation::Apply, ended(-30), true), since);
    // Nothing is left of what was destroyed.
    assert_eq!(after(RunOperation::Destroy, ended(-30), true), ["Unknown ChangedSince"; 3]);
    // A run that has ended before, or has changed nothing.
    let well = ["True Ready", "True UpToDate", "True Serving"];
    assert_eq!(after(RunOperation::Apply, ended(-90), true), well);
    assert_eq!(after(RunOperation::Apply, ended(-30), false), well);
    assert_eq!(after(RunOperation::Apply, RunState::Waiting, false), well);
}

#[test]
fn a_look_that_is_too_old_says_nothing() {
    let old = |view: &mut DeploymentView, _: &mut Look| {
        view.look.as_mut().unwrap().at = at(-3001).unix_timestamp();
    };
    assert_eq!(said(&["Ready", "Available", "EtcdHealthy"], None, old), ["Unknown LookTooOld"; 3]);
}

#[test]
fn what_could_not_be_done_is_said() {
    assert_eq!(said(&["Blocked"], Some("no quota is left"), |_, _| ()), ["True ActionFailed"]);
}

#[test]
fn a_backup_that_fails_or_is_late_is_a_condition_and_runs_that_take_one_change_nothing() {
    let (mut view, look) = healthy();
    view.runs.push(run(RunOperation::Apply, RunState::Ended { well: true, at: at(-3600).unix_timestamp() }, true));
    view.runs.push(run(RunOperation::Backup, RunState::Running, false));
    let decision = decide(&view, LIMITS, at(0).unix_timestamp());
    let condition = |kind: &str, backups: &Recency| {
        let known = Known { view: &view, look: Some(&look), decision: &decision, limits: LIMITS, backups };
        let all = conditions("prod", &known, None, at(0));
        let found = all.into_iter().find(|condition| condition.r#type == kind).unwrap();
        format!("{} {} {}", found.status, found.reason, found.message)
    };
    let time = at(-60).unix_timestamp();
    for (backups, said) in [
        (Recency::None, "Unknown NoBackups no EtcdBackup is for this deployment"),
        (Recency::NotYet, "Unknown NoBackupYet no backup has ended yet"),
        (Recency::Recent(time), "True Recent the newest good backup is of 2027-01-15T07:59:00Z"),
        (Recency::Overdue("daily: never".into()), "False BackupOverdue daily: never"),
        (Recency::Failed("daily: full".into()), "False BackupFailed daily: full"),
    ] {
        assert_eq!(condition("BackupRecent", &backups), said);
    }
    assert_eq!(condition("Progressing", &Recency::None), "True BackingUp the run r is under way");
    assert!(condition("UpToDate", &Recency::None).starts_with("True"));
    assert!(condition("Ready", &Recency::None).starts_with("True"));
}
