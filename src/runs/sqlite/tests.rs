//! The store in a scratch directory: what is read back, upgrades, what is deleted, several processes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::runs::{HostCounts, StageRecord};

fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open_database(directory).unwrap()
}

fn start_at(command: &str, started: SystemTime) -> RunStart {
    RunStart {
        id: RunId::new_at(started),
        command: command.to_owned(),
        command_line: format!("windlass {command} -f karmada.yaml"),
        user: "alice@ws".to_owned(),
        pid: 7,
        version: "0.1.0".to_owned(),
        check: false,
        started: moment(millis(started)),
    }
}

fn days_ago(days: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60)
}

fn summary(deployment: &str) -> RunSummary {
    let stage = StageRecord {
        stage: "etcd".to_owned(),
        check: false,
        started: "2026-11-20T13:40:01.123Z".to_owned(),
        ended: None,
        outcome: None,
        changes: Some(3),
    };
    let hosts = BTreeMap::from([("h1".to_owned(), HostCounts { ok: 2, changed: 1, ..HostCounts::default() })]);
    RunSummary { deployment: Some(deployment.to_owned()), stages: vec![stage], hosts }
}

fn events(numbers: std::ops::RangeInclusive<u64>) -> Vec<RecordedEvent> {
    numbers.map(|sequence| RecordedEvent { sequence, line: format!("{{\"sequence\":{sequence}}}") }).collect()
}

fn end(outcome: RunOutcome) -> RunEnd {
    RunEnd { ended: SystemTime::now(), outcome, exit_code: 0, complete: true }
}

/// A run that came to its end.
fn run(store: &mut SqliteStore, start: &RunStart, deployment: &str, outcome: RunOutcome) {
    store.record_start(start).unwrap();
    store.record_events(start.id, &events(1..=3), &summary(deployment)).unwrap();
    store.record_end(start.id, &end(outcome)).unwrap();
}

fn all(store: &mut SqliteStore) -> Vec<RecordedRun> {
    store.find_runs(&RunFilter::default()).unwrap()
}

#[test]
fn a_run_is_read_back_as_it_was_recorded_by_the_owner_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("state/windlass");
    let mut store = open(&directory);
    let start = start_at("apply", SystemTime::now());
    store.record_start(&start).unwrap();
    store.record_events(start.id, &events(1..=2), &RunSummary::default()).unwrap();
    store.record_events(start.id, &events(3..=700), &summary("prod")).unwrap();
    let [found] = &open(&directory).find_runs(&RunFilter::default()).unwrap()[..] else { panic!("not one run") };
    assert!(found.running && found.outcome.is_none() && found.ended.is_none(), "{found:?}");
    store.record_end(start.id, &end(RunOutcome::Failed)).unwrap();

    let mut other = open(&directory);
    let [found] = &all(&mut other)[..] else { panic!("not one run") };
    assert_eq!((&found.start, &found.summary, found.last_sequence), (&start, &summary("prod"), 700));
    assert_eq!((found.running, found.outcome, found.exit_code), (false, Some(RunOutcome::Failed), Some(0)));
    assert_eq!(other.read_events(start.id, 0).unwrap(), events(1..=700));
    assert_eq!(other.read_events(start.id, 2).unwrap(), events(3..=700));
    assert_eq!(other.read_events(start.id, 699).unwrap(), events(700..=700));
    assert_eq!(other.read_events(start.id, 700).unwrap(), []);

    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn runs_are_found_by_deployment_and_by_the_beginning_of_their_id() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    let starts = [3, 2, 1].map(|days| start_at("apply", days_ago(days)));
    for (start, deployment) in starts.iter().zip(["a", "b", "a"]) {
        run(&mut store, start, deployment, RunOutcome::Succeeded);
    }
    let ids = |found: Vec<RecordedRun>| found.iter().map(|run| run.start.id).collect::<Vec<_>>();
    assert_eq!(ids(all(&mut store)), [starts[2].id, starts[1].id, starts[0].id]);
    let of_a = RunFilter { deployment: Some("a".to_owned()), ..RunFilter::default() };
    assert_eq!(ids(store.find_runs(&of_a).unwrap()), [starts[2].id, starts[0].id]);
    let prefix = starts[1].id.to_string()[..11].to_uppercase();
    assert_eq!(ids(store.find_runs(&RunFilter { prefix: Some(prefix), ..of_a.clone() }).unwrap()), []);
    let newest = RunFilter { limit: Some(1), prefix: Some("0".to_owned()), ..RunFilter::default() };
    assert_eq!(ids(store.find_runs(&newest).unwrap()), [starts[2].id]);
    // A wildcard of LIKE is none here.
    assert_eq!(ids(store.find_runs(&RunFilter { prefix: Some("%".to_owned()), ..RunFilter::default() }).unwrap()), []);
}

#[test]
fn a_run_whose_process_died_is_interrupted() {
    let scratch = tempfile::tempdir().unwrap();
    let start = start_at("apply", SystemTime::now());
    let mut store = open(scratch.path());
    store.record_start(&start).unwrap();
    store.record_events(start.id, &events(1..=3), &summary("prod")).unwrap();
    assert!(all(&mut open(scratch.path()))[0].running);
    // As when its process ends: nothing is recorded, and its files are closed.
    drop(store);
    let mut other = open(scratch.path());
    let [found] = &all(&mut other)[..] else { panic!("not one run") };
    assert!(!found.running && !found.complete && found.ended.is_some(), "{found:?}");
    assert_eq!((found.outcome, found.exit_code), (Some(RunOutcome::Interrupted), None));
    assert_eq!(other.read_events(start.id, 0).unwrap(), events(1..=3));
    other.delete_old_runs(&Retention { count: 100, age: Duration::from_secs(1000) }).unwrap();
    assert_eq!(fs::read_dir(scratch.path().join("running")).unwrap().count(), 0, "the file of the dead one is left");
}

#[test]
fn old_runs_are_deleted_but_none_under_way_and_no_newest_success_or_failure() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    let mut recorded = |command: &str, days: u64, deployment: &str, outcome| {
        let start = start_at(command, days_ago(days));
        run(&mut store, &start, deployment, outcome);
        start.id
    };
    use RunOutcome::{Failed, Succeeded};
    let old_failure = recorded("apply", 500, "prod", Failed);
    let old_success = recorded("apply", 499, "prod", Succeeded);
    let applies: Vec<RunId> = (10..14).rev().map(|days| recorded("apply", days, "prod", Succeeded)).collect();
    let plans: Vec<RunId> = (1..9).rev().map(|days| recorded("plan", days, "prod", Succeeded)).collect();
    let other = recorded("apply", 600, "other", Succeeded);
    let mut under_way = open(scratch.path());
    let started = start_at("apply", days_ago(700));
    under_way.record_start(&started).unwrap();

    let deleted = store.delete_old_runs(&Retention { count: 3, age: Duration::from_secs(365 * 24 * 60 * 60) }).unwrap();
    let left: Vec<RunId> = all(&mut store).iter().map(|run| run.start.id).collect();
    let kept = [&plans[5..], &applies[1..]].concat();
    assert!(kept.iter().all(|id| left.contains(id)), "{left:?}");
    assert!(left.contains(&old_failure) && left.contains(&other) && left.contains(&started.id), "{left:?}");
    assert!(!left.contains(&old_success));
    assert_eq!((left.len(), deleted), (kept.len() + 3, 1 + 1 + 5));
    let orphans: i64 = store
        .connection
        .query_row("SELECT count(*) FROM events WHERE run NOT IN (SELECT id FROM runs)", (), |row| row.get(0))
        .unwrap();
    assert_eq!(orphans, 0);
}

/// A layout after the newest, as a later version will have.
fn next_layouts() -> Vec<&'static str> {
    let mut layouts = schema::LAYOUTS.to_vec();
    layouts.push("ALTER TABLE runs ADD COLUMN note TEXT; UPDATE runs SET note = 'upgraded';");
    layouts
}

#[test]
fn an_older_database_is_upgraded_after_a_backup_and_a_newer_one_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let start = start_at("apply", SystemTime::now());
    run(&mut open(scratch.path()), &start, "prod", RunOutcome::Succeeded);
    let layouts = next_layouts();
    let mut upgraded = SqliteStore::open_with(scratch.path(), &layouts).unwrap();
    let note: String = upgraded.connection.query_row("SELECT note FROM runs", (), |row| row.get(0)).unwrap();
    assert_eq!(note, "upgraded");
    assert_eq!(upgraded.read_events(start.id, 0).unwrap(), events(1..=3));
    drop(upgraded);

    let backup = schema::backup_path(&scratch.path().join(FILE_NAME), schema::LAYOUTS.len() as i64);
    assert_eq!(backup.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(scratch.path().join(FILE_NAME)).unwrap();
    let error = SqliteStore::open_database(scratch.path()).err().unwrap().to_string();
    assert!(error.contains("runs.db: a newer windlass wrote it (layout 2; this one reads up to 1)"), "{error}");
    assert_eq!(fs::read(scratch.path().join(FILE_NAME)).unwrap(), before, "a newer database was touched");

    // The backup is a database as it was.
    fs::rename(&backup, scratch.path().join(FILE_NAME)).unwrap();
    let mut old = open(scratch.path());
    assert_eq!((all(&mut old).len(), old.read_events(start.id, 0).unwrap()), (1, events(1..=3)));
}

#[test]
fn an_upgrade_that_fails_leaves_the_database_as_it_was() {
    let scratch = tempfile::tempdir().unwrap();
    run(&mut open(scratch.path()), &start_at("apply", SystemTime::now()), "prod", RunOutcome::Succeeded);
    let mut layouts = schema::LAYOUTS.to_vec();
    layouts.push("DROP TABLE events; SELECT no_such_function();");
    assert!(SqliteStore::open_with(scratch.path(), &layouts).is_err());
    let mut store = open(scratch.path());
    let id = all(&mut store)[0].start.id;
    assert_eq!(store.read_events(id, 0).unwrap(), events(1..=3));
}

#[test]
fn what_is_no_store_of_runs_or_of_another_user_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join(FILE_NAME);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open_database(scratch.path()).err().unwrap().to_string();
    assert!(error.ends_with("runs.db: it is not a database of windlass"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let error = SqliteStore::open_database(&shared).err().unwrap().to_string();
    assert!(error.contains("another user owns it or can write to it"), "{error}");
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
}

#[test]
fn several_writers_at_once_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let write = |name: &'static str| {
        let mut store = open(directory);
        let start = start_at(name, SystemTime::now());
        store.record_start(&start).unwrap();
        for batch in 0..40 {
            store.record_events(start.id, &events(batch * 5 + 1..=batch * 5 + 5), &summary(name)).unwrap();
        }
        store.record_end(start.id, &end(RunOutcome::Succeeded)).unwrap();
    };
    // The first of them create the database together.
    std::thread::scope(|scope| {
        for name in ["apply", "plan", "upgrade", "playbook"] {
            scope.spawn(move || write(name));
        }
    });
    let mut store = open(directory);
    let found = all(&mut store);
    assert_eq!(found.len(), 4);
    for run in found {
        assert_eq!(store.read_events(run.start.id, 0).unwrap(), events(1..=200), "{}", run.start.command);
        assert_eq!(run.outcome, Some(RunOutcome::Succeeded));
    }
}

/// As a disk of this many pages.
pub(in crate::runs) fn with_room_for(directory: &Path, pages: u32) -> SqliteStore {
    let store = open(directory);
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    store
}

#[test]
fn events_that_do_not_fit_are_recorded_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = with_room_for(scratch.path(), 12);
    let start = start_at("apply", SystemTime::now());
    store.record_start(&start).unwrap();
    store.record_events(start.id, &events(1..=2), &summary("prod")).unwrap();
    let noise: String = (0..80_000).map(|_| char::from(rand::random_range(b'a'..=b'z'))).collect();
    let large = RecordedEvent { sequence: 3, line: noise };
    let error = store.record_events(start.id, &[large], &summary("prod")).unwrap_err().to_string();
    assert!(error.contains("runs.db: database or disk is full"), "{error}");
    assert_eq!(store.read_events(start.id, 0).unwrap(), events(1..=2));
}

#[test]
fn space_of_deleted_runs_is_given_back() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    for _ in 0..3 {
        let start = start_at("apply", SystemTime::now());
        store.record_start(&start).unwrap();
        store.record_events(start.id, &events(1..=3000), &summary("apply")).unwrap();
        store.record_end(start.id, &end(RunOutcome::Succeeded)).unwrap();
    }
    let pages = |store: &SqliteStore| -> (i64, i64) {
        let ask = |name| store.connection.pragma_query_value(None, name, |row| row.get(0)).unwrap();
        (ask("page_count"), ask("freelist_count"))
    };
    let before = pages(&store);
    let deleted = store.delete_old_runs(&Retention { count: 1, age: Duration::from_secs(3600) }).unwrap();
    assert_eq!(deleted, 2);
    let after = pages(&store);
    assert!(after.0 < before.0 && after.1 == 0, "{before:?} {after:?}");
}

#[test]
fn dry_runs_are_counted_and_found_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    let mut seconds = 0;
    let mut recorded = |check: bool| {
        seconds += 1;
        let at = SystemTime::now() - Duration::from_secs(600) + Duration::from_secs(seconds);
        let start = RunStart { check, ..start_at("upgrade", at) };
        run(&mut store, &start, "prod", RunOutcome::Succeeded);
        start.id
    };
    let real = [recorded(false), recorded(false)];
    let dry: Vec<RunId> = (0..5).map(|_| recorded(true)).collect();
    store.delete_old_runs(&Retention { count: 2, age: Duration::from_secs(3600) }).unwrap();
    let mut found = |check: Option<bool>| {
        let found = store.find_runs(&RunFilter { check, ..RunFilter::default() }).unwrap();
        found.into_iter().map(|run| run.start.id).collect::<Vec<_>>()
    };
    assert_eq!(found(Some(false)), [real[1], real[0]]);
    assert_eq!(found(Some(true)), [dry[4], dry[3]]);
    assert_eq!(found(None).len(), 4);
}

#[test]
fn a_run_under_way_does_not_take_the_place_of_the_newest_failure() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path());
    let record = |store: &mut SqliteStore, outcome: Option<RunOutcome>| {
        let start = start_at("apply", SystemTime::now());
        store.record_start(&start).unwrap();
        if let Some(outcome) = outcome {
            store.record_end(start.id, &end(outcome)).unwrap();
        }
        start.id
    };
    let failed = record(&mut store, Some(RunOutcome::Failed));
    record(&mut store, None);
    record(&mut store, Some(RunOutcome::Succeeded));
    store.delete_old_runs(&Retention { count: 1, age: Duration::from_secs(3600) }).unwrap();
    assert!(all(&mut store).iter().any(|run| run.start.id == failed), "the only failure was deleted");
}

#[test]
fn nothing_is_created_in_a_directory_of_others() {
    let scratch = tempfile::tempdir().unwrap();
    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let directory = shared.join("state/windlass");
    assert!(matches!(SqliteStore::open_database(&directory), Err(Error::NotOwn { .. })));
    assert!(!shared.join("state").exists());
}
