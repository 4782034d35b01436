//! The lock of a deployment on one host: two never hold it, and whoever it was taken from changes nothing any more.

use std::collections::HashSet;

use super::lock::{Claimed, Record};
use super::*;

fn record(token: u64, run: &str) -> Record {
    Record {
        token,
        run: Some(run.to_owned()),
        holder: format!("{run}@ws"),
        pid: 7,
        process: "boot 1".into(),
        command: "windlass apply -f 'a: b'".into(),
        since: 1_763_645_954,
    }
}

fn taken(claimed: Result<Claimed, Error>) -> bool {
    matches!(claimed.unwrap(), Claimed::Taken { .. })
}

fn confirmed() -> Arc<Lease> {
    let lease = Lease::unconfirmed();
    lease.confirm(uptime());
    lease
}

/// A host on which changes are made under a record's hold.
async fn holding(kind: &'static str, directory: &str, record: &Record, lease: &Arc<Lease>) -> (Remote, Arc<Sessions>) {
    let hold = Hold {
        directory: directory.into(),
        record: Arc::new(record.clone()),
        hosts: Arc::new(HashSet::from(["h1".into()])),
        lease: lease.clone(),
    };
    let sessions = Sessions::sharing(Host::new(kind), None, Some(hold.on("h1")));
    (Remote::open(&sessions, None, &IndexMap::new()).await.unwrap(), sessions)
}

#[tokio::test]
async fn of_two_claims_one_is_granted_and_tokens_only_rise() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, here) = (place.at("lock dir"), remote(kind).await);
        assert_eq!(here.lock(&directory).await.unwrap(), None);
        let (ann, bob) = (record(1, "ann"), record(1, "bob"));
        assert!(taken(here.claim_lock(&directory, &ann, None).await), "{kind}");
        assert!(taken(here.claim_lock(&directory, &ann, None).await), "{kind}: it is its own");
        let refused = here.claim_lock(&directory, &bob, None).await.unwrap();
        assert_eq!(refused, Claimed::Held(ann.clone()), "{kind}");
        let seen = here.lock(&directory).await.unwrap().unwrap();
        assert_eq!((seen.record, seen.sessions), (ann.clone(), 0), "{kind}");
        here.release_lock(&directory, &bob).await.unwrap();
        assert_eq!(here.lock(&directory).await.unwrap().unwrap().record, ann, "it is not bob's to give back");
        here.release_lock(&directory, &ann).await.unwrap();
        assert_eq!(here.lock(&directory).await.unwrap().unwrap().record.run, None, "{kind}");
        assert_eq!(here.claim_lock(&directory, &bob, None).await.unwrap(), Claimed::Low(1), "{kind}");
        let bob = record(2, "bob");
        assert!(taken(here.claim_lock(&directory, &bob, None).await), "{kind}");
    }
}

#[tokio::test]
async fn many_claims_at_once_are_granted_to_one() {
    let place = Place::new();
    let directory = place.at("lock");
    let claims = (0..8).map(|n| {
        let directory = directory.clone();
        async move {
            let own = record(1, &format!("run{n}"));
            taken(remote("dash").await.claim_lock(&directory, &own, None).await)
        }
    });
    let granted = futures::future::join_all(claims).await;
    assert_eq!(granted.iter().filter(|taken| **taken).count(), 1, "{granted:?}");
}

#[tokio::test]
async fn whoever_takes_a_lock_over_learns_how_long_its_holder_was_silent() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, here) = (place.at("lock"), remote(kind).await);
        let (ann, bob) = (record(1, "ann"), record(2, "bob"));
        assert!(matches!(here.claim_lock(&directory, &ann, None).await.unwrap(), Claimed::Taken { .. }), "{kind}");
        sh(&here, &format!("touch -d '-40 seconds' '{directory}/beat'")).await;
        assert_eq!(here.claim_lock(&directory, &bob, None).await.unwrap(), Claimed::Held(ann.clone()), "{kind}");
        let taken = here.claim_lock(&directory, &bob, Some(&ann)).await.unwrap();
        let Claimed::Taken { silent } = taken else { panic!("{kind}: {taken:?}") };
        assert!((39..=60).contains(&silent.as_secs()), "{kind}: {silent:?}");
    }
}

#[tokio::test]
async fn whoever_was_taken_over_changes_nothing_in_whatever_way() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, other) = (place.at("lock"), remote(kind).await);
        let (ann, bob) = (record(1, "ann"), record(2, "bob"));
        other.claim_lock(&directory, &ann, None).await.unwrap();
        let lease = confirmed();
        let (remote, _sessions) = holding(kind, &directory, &ann, &lease).await;
        std::fs::create_dir(place.at("d")).unwrap();
        let at = |name: &str| place.at(&format!("d/{name}"));
        let plain = Attributes::default();
        let large = vec![b'x'; 100_000];
        std::fs::write(place.at("here"), &large).unwrap();
        remote.write(&at("f"), b"1", &plain).await.unwrap();
        remote.write(&at("large"), &large, &plain).await.unwrap();
        assert_eq!(sh(&remote, "echo 1").await.stdout, b"1\n", "{kind}");
        remote.beat(&directory).await.unwrap();
        assert_eq!(other.lock(&directory).await.unwrap().unwrap().sessions, 1, "{kind}");

        other.claim_lock(&directory, &bob, Some(&ann)).await.unwrap();
        let mode = Attributes { mode: Some(0o600), ..Attributes::default() };
        let stdin = Command { stdin: Some(large.clone()), ..Command::program(["tee", &at("tee")]) };
        let command = Command::shell(format!("echo >{}", at("run")));
        let refusals = [
            remote.write(&at("f"), b"2", &plain).await.unwrap_err(),
            remote.write(&at("large2"), &large, &plain).await.unwrap_err(),
            remote.write_validated(&at("f"), b"2", &plain, "true %s").await.unwrap_err(),
            upload(&remote, Path::new(&place.at("here")), &at("up"), &plain).await.unwrap_err(),
            remote.run(&command).await.unwrap_err(),
            remote.run(&stdin).await.unwrap_err(),
            remote.set_attributes(&at("f"), &mode, Links::Keep).await.unwrap_err(),
            remote.back_up(&at("f")).await.unwrap_err(),
            remote.make_directory(&at("sub/sub"), &plain).await.unwrap_err(),
            remote.temporary_directory().await.unwrap_err(),
            remote.symlink("f", &at("link")).await.unwrap_err(),
            remote.remove(&at("f")).await.unwrap_err(),
            remote.place_for_job(&at("jobs")).await.unwrap_err(),
            remote.beat(&directory).await.unwrap_err(),
            remote.may_change().await.unwrap_err(),
        ];
        for refusal in refusals {
            let words = refusal.to_string();
            assert!(words.ends_with(": the lock of the deployment was taken over by bob@ws"), "{kind}: {words}");
        }
        // It may look as ever.
        assert_eq!(remote.read(&at("f")).await.unwrap().unwrap(), b"1", "{kind}");
        let mut names: Vec<_> =
            std::fs::read_dir(place.at("d")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["f", "large"], "{kind}");
    }
}

#[tokio::test]
async fn what_a_former_run_has_running_is_ended_and_no_others_is() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, other) = (place.at("lock"), remote(kind).await);
        let (ann, bob) = (record(1, "ann"), record(2, "bob"));
        other.claim_lock(&directory, &ann, None).await.unwrap();
        let lease = confirmed();
        let (remote, sessions) = holding(kind, &directory, &ann, &lease).await;
        let command = shell("sleep 98765 & sleep 98765");
        let run = tokio::spawn(async move { remote.run(&command).await });
        let running = || {
            let listed = std::process::Command::new("pgrep").args(["-cf", "^sleep 98765"]).output().unwrap();
            text(&listed.stdout).trim().parse::<u32>().unwrap()
        };
        while running() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        other.claim_lock(&directory, &bob, Some(&ann)).await.unwrap();
        // Its own would be spared.
        other.end_other_runs(&directory, &ann).await.unwrap();
        assert_eq!(running(), 2, "{kind}");
        other.end_other_runs(&directory, &bob).await.unwrap();
        assert_eq!(running(), 0, "{kind}");
        run.await.unwrap().unwrap_err();
        sessions.close().await;
        assert_eq!(std::fs::read_dir(place.at("lock/sessions")).unwrap().count(), 0, "{kind}");
    }
}

#[tokio::test]
async fn an_entry_that_somebody_else_made_ends_nobody_s_process() {
    let place = Place::new();
    let (directory, other) = (place.at("lock"), remote("dash").await);
    other.claim_lock(&directory, &record(1, "ann"), None).await.unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let began = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let entry = place.at(&format!("lock/sessions/{}.{}.{began}.ann", boot.trim(), child.id()));
    std::fs::write(&entry, "-\n").unwrap();
    // As if `nobody` had left it. (Where these tests run as somebody else, nobody's it cannot be, and its owner is ours.)
    let given = std::os::unix::fs::chown(&entry, Some(65534), None).is_ok();
    other.end_other_runs(&directory, &record(2, "bob")).await.unwrap();
    assert_eq!(child.try_wait().unwrap().is_none(), given);
    let _ = child.kill();
    let _ = child.wait();
}

#[tokio::test]
#[ignore = "needs root, whose locks are brought up to date"]
async fn a_host_that_was_away_when_the_lock_was_taken_learns_of_it() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, other) = (place.at("lock"), remote(kind).await);
        let (old, ann) = (record(3, "old"), record(5, "ann"));
        other.claim_lock(&directory, &old, None).await.unwrap();
        let lease = confirmed();
        let (remote, _sessions) = holding(kind, &directory, &ann, &lease).await;
        remote.write(&place.at("f"), b"1", &Attributes::default()).await.unwrap();
        assert_eq!(other.lock(&directory).await.unwrap().unwrap().record, ann, "{kind}");
        // One that is older than what stands there is told so.
        let late = Sessions::sharing(
            Host::new(kind),
            None,
            Some(
                Hold {
                    directory: directory.as_str().into(),
                    record: Arc::new(record(4, "late")),
                    hosts: Arc::new(HashSet::from(["h1".into()])),
                    lease,
                }
                .on("h1"),
            ),
        );
        let Err(error) = Remote::open(&late, None, &IndexMap::new()).await else { panic!("{kind}: it may") };
        assert!(
            error.to_string().ends_with(": the lock of the deployment was taken over by ann@ws"),
            "{kind}: {error}"
        );
    }
}
