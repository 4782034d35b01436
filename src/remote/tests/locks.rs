//! The lock of a deployment on one host: two runs never hold it, and a run that lost it can change nothing more.

use std::collections::HashSet;

use super::lock::{LockAttempt, Record};
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

fn taken(claimed: Result<LockAttempt, Error>) -> bool {
    matches!(claimed.unwrap(), LockAttempt::Taken { .. })
}

fn confirmed() -> Arc<Lease> {
    let lease = Lease::unconfirmed();
    lease.confirm(uptime());
    lease
}

fn hold(directory: &str, record: &Record, lease: &Arc<Lease>) -> DeploymentLease {
    DeploymentLease {
        directory: directory.into(),
        record: Arc::new(record.clone()),
        hosts: Arc::new(HashSet::from(["h1".into()])),
        lease: lease.clone(),
        roots: Arc::new(RootSessions::default()),
    }
}

/// A host on which changes are made under a record's hold.
async fn holding(kind: &'static str, directory: &str, record: &Record, lease: &Arc<Lease>) -> (Remote, Arc<Sessions>) {
    let hold = hold(directory, record, lease);
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
        assert_eq!(refused, LockAttempt::Held(ann.clone()), "{kind}");
        let seen = here.lock(&directory).await.unwrap().unwrap();
        assert_eq!((seen.record, seen.sessions), (ann.clone(), Some(0)), "{kind}");
        here.release_lock(&directory, &bob).await.unwrap();
        assert_eq!(here.lock(&directory).await.unwrap().unwrap().record, ann, "it is not bob's to give back");
        here.release_lock(&directory, &ann).await.unwrap();
        assert_eq!(here.lock(&directory).await.unwrap().unwrap().record.run, None, "{kind}");
        assert_eq!(here.claim_lock(&directory, &bob, None).await.unwrap(), LockAttempt::Low(1), "{kind}");
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
        assert!(matches!(here.claim_lock(&directory, &ann, None).await.unwrap(), LockAttempt::Taken { .. }), "{kind}");
        sh(&here, &format!("touch -d '-40 seconds' '{directory}/beat'")).await;
        assert_eq!(here.claim_lock(&directory, &bob, None).await.unwrap(), LockAttempt::Held(ann.clone()), "{kind}");
        let taken = here.claim_lock(&directory, &bob, Some(&ann)).await.unwrap();
        let LockAttempt::Taken { silent } = taken else { panic!("{kind}: {taken:?}") };
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
        assert_eq!(other.lock(&directory).await.unwrap().unwrap().sessions, Some(1), "{kind}");

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
        assert_eq!(remote.read_file(&at("f")).await.unwrap().unwrap(), b"1", "{kind}");
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
        // Another session of the same run ends nothing.
        let (_more, more) = holding(kind, &directory, &ann, &lease).await;
        assert_eq!(running(), 2, "{kind}");
        more.close().await;
        other.claim_lock(&directory, &bob, Some(&ann)).await.unwrap();
        let (_bob, after) = holding(kind, &directory, &bob, &lease).await;
        assert_eq!(running(), 0, "{kind}");
        after.close().await;
        run.await.unwrap().unwrap_err();
        sessions.close().await;
        assert_eq!(std::fs::read_dir(place.at("lock/sessions")).unwrap().count(), 0, "{kind}");
    }
}

/// What windlass 0.1.0 left next to a lock: a directory for sessions that every user can write to, with a file of another user.
/// The second path is the target of a link in it.
fn former_layout(place: &Place, run: &str) -> (String, String) {
    let (directory, victim) = (place.at("lock"), place.at("victim"));
    let at = |name: &str| format!("{directory}/{name}");
    std::fs::create_dir_all(at("sessions")).unwrap();
    std::fs::set_permissions(at("sessions"), std::fs::Permissions::from_mode(0o1733)).unwrap();
    std::fs::write(at("lock"), format!("7 {run}\nholder ann@ws\npid 7\nprocess gone 1\nsince 1\ncommand x\n")).unwrap();
    std::fs::write(at("mutex"), "").unwrap();
    std::fs::write(&victim, "precious").unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let own = std::process::id();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let began = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
    let entry = |name: &str| at(&format!("sessions/{}.{name}", boot.trim()));
    std::fs::write(entry(&format!("{own}.{began}.{run}")), "-\n").unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(entry("1.1.pipe")).status().unwrap();
    assert!(pipe.success());
    std::os::unix::fs::symlink(&victim, entry("2.2.ann")).unwrap();
    std::fs::create_dir(at("sessions/directory")).unwrap();
    (directory, victim)
}

fn mode(path: &str) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn what_others_could_write_is_neither_believed_nor_followed_nor_waited_for() {
    for kind in SHELLS {
        let place = Place::new();
        let (directory, victim) = former_layout(&place, "dead");
        let here = remote(kind).await;
        // The entry of a process that is there proves nothing.
        let seen = here.lock(&directory).await.unwrap().unwrap();
        assert_eq!((seen.record.token, seen.sessions), (7, None), "{kind}");
        // Somebody keeps the mutex of 0.1.0 locked.
        let mutex = std::fs::File::open(format!("{directory}/mutex")).unwrap();
        mutex.lock().unwrap();
        let (ann, lease) = (record(8, "ann"), confirmed());
        let work = async {
            assert!(taken(here.claim_lock(&directory, &ann, Some(&seen.record)).await), "{kind}");
            let (held, sessions) = holding(kind, &directory, &ann, &lease).await;
            held.beat(&directory).await.unwrap();
            assert_eq!(here.lock(&directory).await.unwrap().unwrap().sessions, Some(1), "{kind}");
            sessions.close().await;
        };
        tokio::time::timeout(Duration::from_secs(60), work).await.expect(kind);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{kind}");
        assert_eq!(mode(&format!("{directory}/sessions")), 0o700, "{kind}");
        assert_eq!(mode(&format!("{directory}/.mutex")), 0o600, "{kind}");
        assert_eq!(std::fs::read_dir(format!("{directory}/sessions")).unwrap().count(), 0, "{kind}");
    }
}

#[tokio::test]
async fn a_lock_that_others_can_write_is_refused() {
    let place = Place::new();
    let (directory, here) = (place.at("lock"), remote("dash").await);
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let words = format!("{directory} is not a directory that only ");
    for error in [
        here.lock(&directory).await.unwrap_err(),
        here.claim_lock(&directory, &record(1, "ann"), None).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains(&words), "{error}");
    }
}

#[tokio::test]
async fn only_a_process_of_the_user_is_made_known() {
    let place = Place::new();
    let (directory, here) = (place.at("lock"), remote("dash").await);
    let ann = record(1, "ann");
    here.claim_lock(&directory, &ann, None).await.unwrap();
    let shell = (std::process::id(), began(std::process::id()));
    let own = sh(&here, "id -un").await.stdout;
    for (user, shell, known) in
        [(text(&own).trim(), shell, true), ("nobody", shell, false), (text(&own).trim(), (shell.0, shell.1 + 1), false)]
    {
        let enrol = super::lock::enrol(&directory, &ann, shell, user, false).unwrap();
        let answer = here.session().await.unwrap().ask(&enrol).await.unwrap();
        assert_eq!(answer.code == 0, known, "{user} {shell:?}: {}", text(&answer.stderr));
    }
}

/// The start time of a process, as /proc has it.
fn began(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_process_cannot_choose_its_parent_by_its_name() {
    let place = Place::new();
    let (directory, here) = (place.at("lock"), remote("dash").await);
    let ann = record(1, "ann");
    here.claim_lock(&directory, &ann, None).await.unwrap();
    let spawn = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.as_mut().unwrap()), &mut line).unwrap();
        (process, line.trim().parse::<u32>().unwrap())
    };
    // It stands for the SSH server of somebody else.
    let (mut server, victim) = spawn("echo sshd-other >/proc/$$/comm; echo $$; read -r end");
    let forged = format!("printf 'x) S {victim}\\n' >/proc/$$/comm; sleep 60 & echo $!; read -r end; kill $!");
    let (mut parent, child) = spawn(&forged);
    let first = std::fs::read_to_string(format!("/proc/{}/stat", parent.id())).unwrap();
    assert!(first.lines().next().unwrap().ends_with(&format!(") S {victim}")), "the name is not forged: {first}");
    let user = text(&sh(&here, "id -un").await.stdout).trim().to_owned();
    let enrol = super::lock::enrol(&directory, &ann, (child, began(child)), &user, true).unwrap();
    let answer = here.session().await.unwrap().ask(&enrol).await.unwrap();
    let entry = std::fs::read_to_string(text(&answer.stdout).trim());
    for process in [&mut parent, &mut server] {
        drop(process.stdin.take());
        process.wait().unwrap();
    }
    assert_eq!(answer.code, 0, "{}", text(&answer.stderr));
    let entry = entry.unwrap();
    assert!(!entry.starts_with(&format!("{victim}.")), "{entry}");
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
        // A run with a lower token than the stored one gets an error.
        let late = hold(&directory, &record(4, "late"), &lease);
        let late = Sessions::sharing(Host::new(kind), None, Some(late.on("h1")));
        let Err(error) = Remote::open(&late, None, &IndexMap::new()).await else { panic!("{kind}: it may") };
        assert!(
            error.to_string().ends_with(": the lock of the deployment was taken over by ann@ws"),
            "{kind}: {error}"
        );
    }
}
