//! Deployments through the core that all faces share, without the command line. Three are planned, cancelled and applied at the same
//! time in one process.
//!
//! `tests/e2e/cases/57_three_deployments_are_applied_at_once.sh` runs what is ignored here, as it needs hosts. `DEPLOYMENTS` names
//! directories, separated by commas, each with `hosts.yml` and the vault password `password`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use tokio::sync::{mpsc, watch};
use windlass::deployment::apply::{Agreement, Answer, Proposal, Question};
use windlass::deployment::plan::PlanRequest;
use windlass::deployment::stage::Stage;
use windlass::deployment::{Control, Error, LockRequest, Outcome, Progress, Run, Site, planning};
use windlass::engine::{Defaults, TimedEvent};
use windlass::launch;
use windlass::runs::RunId;
use windlass::settings::Settings;
use windlass::value::ProcessEnvironment;
use windlass::value::Secret;
use windlass::value::mutex::Mutex;
use windlass::value::vault::Keyring;
use windlass::value::yaml::Duplicates;

#[path = "shared/program.rs"]
mod program;
use program::write_program;

/// A site in a directory with `hosts.yml`, or with the inventory script `hosts`.
fn site(directory: &Path) -> Site {
    let password = std::fs::read_to_string(directory.join("password")).unwrap();
    let keyring = Keyring::new(vec![("default".to_owned(), Secret::new(password.trim().to_owned()))]);
    let script = directory.join("hosts");
    let inventory = if script.exists() { script } else { directory.join("hosts.yml") };
    let site = Site {
        settings: Settings::load(&ProcessEnvironment::of_process()).expect("the settings of this repository"),
        sources: vec![inventory.display().to_string()],
        keyring: Arc::new(keyring),
        duplicates: Duplicates::default(),
        extra_vars: Arc::default(),
        defaults: Defaults::default(),
        own_login: None,
        playbooks: Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks"),
        directory: directory.to_owned(),
        forks: None,
        offline: None,
        verbosity: 0,
        caches: Arc::default(),
    };
    site.checked().expect("an inventory is named")
}

/// What a face is told, and a control that nobody ends.
fn control() -> (Control, Arc<Mutex<Vec<Progress>>>, mpsc::UnboundedReceiver<TimedEvent>) {
    let (events, receiver) = mpsc::unbounded_channel();
    let reported: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let at_once = watch::channel(false).1;
    let run = launch::Control { events, stopping: Arc::new(AtomicBool::new(false)), at_once };
    let progress = reported.clone();
    let progress = Arc::new(move |one: Progress| progress.lock().push(one));
    (Control { id: RunId::new_at(SystemTime::now()), run, progress }, reported, receiver)
}

/// How a face ends a request.
#[derive(Debug, Clone, Copy)]
enum End {
    /// After the tasks that run.
    AfterTasks,
    AtOnce,
}

/// A control whose face ends the request when `when` happens.
fn ending(when: fn(&Progress) -> bool, end: End) -> Control {
    let (events, _) = mpsc::unbounded_channel();
    let (now, at_once) = watch::channel(false);
    let stopping = Arc::new(AtomicBool::new(false));
    let run = launch::Control { events, stopping: stopping.clone(), at_once };
    let progress = Arc::new(move |one: Progress| {
        if when(&one) {
            match end {
                End::AfterTasks => stopping.store(true, Ordering::Relaxed),
                End::AtOnce => assert!(now.send(true).is_ok(), "nobody waits for it"),
            }
        }
    });
    Control { id: RunId::new_at(SystemTime::now()), run, progress }
}

/// Ends a plan, and then an apply. Nothing is changed, and the lock is released; the journal says at which stage the apply was.
async fn cancelled(site: &Site, request: &LockRequest, end: End) {
    let (control, ..) = control();
    let planning = ending(|one| matches!(one, Progress::Planning(_)), end);
    assert!(
        planning::plan(site, PlanRequest::default(), &planning).await.unwrap().is_none(),
        "{end:?}: there is a plan"
    );
    // While another run holds the lock, this would be refused.
    let proposal = Proposal::make(site, None, PlanRequest::default(), request, &control).await.unwrap().unwrap();
    let agreed = Agreement { plan: true, removals: 0 };
    let applying = ending(|one| matches!(one, Progress::Applying { .. }), end);
    let answer = proposal.apply(agreed, request, &applying).await.unwrap();
    assert_eq!(answer, Answer::Done(Outcome::Interrupted), "{end:?}");
    let next = Proposal::make(site, None, PlanRequest::default(), request, &control).await.unwrap().unwrap();
    let journal = next.interrupted.expect("the journal is not closed");
    assert_eq!(journal.open_stage(), Some(Stage::Etcd), "{end:?}: {journal:?}");
    assert!(!journal.done && !journal.failed, "{end:?}: {journal:?}");
}

async fn applied(directory: PathBuf) -> (String, Vec<Progress>) {
    let site = site(&directory);
    let (control, reported, mut events) = control();
    let request = LockRequest { command: format!("a test of {}", directory.display()), breaks: false, abandons: false };
    for end in [End::AfterTasks, End::AtOnce] {
        cancelled(&site, &request, end).await;
    }
    let plan = planning::plan(&site, PlanRequest::default(), &control).await.expect("a plan").expect("nobody ended it");
    assert_eq!(plan.stages_to_run(), [Stage::Etcd]);
    let proposal =
        Proposal::make(&site, Some(plan), PlanRequest::default(), &request, &control).await.unwrap().unwrap();
    let none = Agreement { plan: false, removals: 0 };
    let asked = proposal.apply(none, &request, &control).await.unwrap();
    assert_eq!(asked, Answer::Asks(vec![Question::Apply]));
    assert!(events.try_recv().is_err(), "something was run before it was agreed to");
    let answer = proposal.apply(Agreement { plan: true, ..none }, &request, &control).await.unwrap();
    assert_eq!(answer, Answer::Done(Outcome::Ok));
    assert!(events.try_recv().is_ok(), "no event was sent");
    let again = Proposal::make(&site, None, PlanRequest::default(), &request, &control).await.unwrap().unwrap();
    assert!(again.interrupted.is_none(), "the journal is not closed");
    assert_eq!(again.apply(none, &request, &control).await.unwrap(), Answer::Nothing);
    let reported = reported.lock().clone();
    (proposal.plan.deployment.clone(), reported)
}

#[test]
#[ignore = "needs hosts, see above"]
fn three_deployments_are_applied_at_once() {
    let directories = std::env::var("DEPLOYMENTS").expect("DEPLOYMENTS names directories");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(64 << 20).build().unwrap();
    let all = runtime.block_on(async {
        let tasks: Vec<_> = directories.split(',').map(|one| tokio::spawn(applied(one.into()))).collect();
        futures::future::join_all(tasks).await
    });
    let all: Vec<_> = all.into_iter().map(|one| one.expect("no panic")).collect();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    for (name, reported) in &all {
        let applied: Vec<_> = reported.iter().filter(|one| matches!(one, Progress::Applying { .. })).collect();
        assert_eq!(applied.len(), 1, "{name}: {reported:?}");
    }
}

/// An inventory script that notes in the file `reads` that it was called. Its host refuses connections.
const SCRIPT: &str = r#"#!/bin/sh
echo read >>"$(dirname "$0")/reads"
echo '{"etcd": {"hosts": ["h1"]}, "_meta": {"hostvars": {"h1": {"ansible_host": "127.0.0.1", "ansible_port": 1}}}}'
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_phase_reads_the_inventory_once() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("hosts");
    std::fs::write(directory.path().join("password"), "password").unwrap();
    write_program(&script, SCRIPT);
    let reads = || std::fs::read_to_string(directory.path().join("reads")).unwrap().lines().count();
    let (site, (control, ..)) = (site(directory.path()), control());

    let phase = site.read_inventory().await.unwrap();
    phase.deployment(&control).await.unwrap();
    let playbook = site.playbook_path(Stage::Etcd.playbook());
    for check in [true, false] {
        phase.job(Run { playbook: Some(&playbook), check, ..Run::default() }, &control).await.unwrap();
    }
    assert_eq!(reads(), 1);

    let plan = planning::plan(&site, PlanRequest::default(), &control).await.unwrap().expect("nobody ended it");
    assert!(plan.refused().is_some(), "the host cannot be reached");
    let unknown = PlanRequest { remove_by_force: vec!["nobody".into()], ..PlanRequest::default() };
    let refused = planning::plan(&site, unknown, &control).await.unwrap_err();
    assert!(matches!(refused, Error::NoSuchMember { member } if member == "nobody"));
    assert_eq!(reads(), 3);
}
