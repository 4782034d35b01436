//! Jobs: they outlive their session, keep their limit and tell no secrets.

use std::time::Duration;

use super::*;

/// Starts a job below `place` on a separate host, whose sessions are closed at once.
async fn started(kind: &'static str, place: &Place, command: &Command, limit: Duration) -> JobPlace {
    let sessions = Sessions::new(Host::new(kind));
    let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
    let job = remote.place_for_job(&place.at("jobs")).await.unwrap();
    remote.start_job(&job, command, limit, "notes").await.unwrap();
    sessions.close().await;
    job
}

async fn ended(kind: &'static str, job: &JobPlace) -> JobResult {
    let remote = remote(kind).await;
    for _ in 0..1200 {
        match remote.job(&job.directory).await.unwrap().expect("there is such a job") {
            JobState::Ended(ended) => return ended,
            JobState::Running => tokio::time::sleep(Duration::from_millis(50)).await,
            JobState::Lost => panic!("{kind}: lost"),
        }
    }
    panic!("{kind}: does not end")
}

#[tokio::test]
async fn a_job_continues_when_its_session_ends_and_another_reads_its_result() {
    for kind in SHELLS {
        let place = Place::new();
        let line = "cat; pwd; echo err >&2; sleep 0.5; exit 3";
        let stdin = Some(b"in\n".to_vec());
        let environment = IndexMap::from([("S".to_owned(), "it's".to_owned())]);
        let command = Command { stdin, environment, directory: Some("/usr".into()), ..shell(line) };
        let clock = std::time::Instant::now();
        let job = started(kind, &place, &command, Duration::from_secs(60)).await;
        let mode = std::fs::metadata(&job.directory).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o700, "{kind}");
        let ended = ended(kind, &job).await;
        assert_eq!((ended.output.code, ended.late), (3, false), "{kind}");
        assert_eq!((text(&ended.output.stdout), text(&ended.output.stderr)), ("in\n/usr\n", "err\n"), "{kind}");
        assert_eq!(ended.notes, "notes");
        let took = ended.ended.since_epoch.checked_sub(ended.begun.since_epoch).unwrap();
        // The date of busybox knows whole seconds only.
        let least = if kind == "busybox" { 0 } else { 400 };
        // A date in whole seconds adds up to one.
        let most = clock.elapsed() + Duration::from_secs(1);
        assert!(took >= Duration::from_millis(least) && took < most, "{kind}: {took:?}");
        let left = |name: &str| Path::new(&job.directory).join(name).exists();
        assert!(!left("run") && !left("in"), "{kind}: what may hold secrets is left");
    }
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_ended_with_all_its_children() {
    for kind in SHELLS {
        let place = Place::new();
        let line =
            format!("trap '' TERM; sleep 300 & echo $! $$ | tr ' ' '\\n' >{}; wait; sleep 300", place.at("pids"));
        let job = started(kind, &place, &shell(&line), Duration::from_secs(4)).await;
        let ended = ended(kind, &job).await;
        assert!(ended.late, "{kind}");
        for pid in std::fs::read_to_string(place.at("pids")).unwrap().lines() {
            assert!(commands::gone(pid).await, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_job_that_was_killed_is_lost_and_one_that_never_was_is_none() {
    let place = Place::new();
    let job = started("dash", &place, &shell("sleep 300"), Duration::from_secs(300)).await;
    let remote = remote("dash").await;
    assert_eq!(remote.job(&job.directory).await.unwrap(), Some(JobState::Running));
    let pid = std::fs::read_to_string(format!("{}/pid", job.directory)).unwrap();
    let supervisor = pid.split_whitespace().next().unwrap();
    let children = sh(&remote, &format!("cat /proc/{supervisor}/task/{supervisor}/children")).await;
    sh(&remote, &format!("kill -KILL {supervisor} {}", text(&children.stdout))).await;
    assert!(commands::gone(supervisor).await);
    assert_eq!(remote.job(&job.directory).await.unwrap(), Some(JobState::Lost));
    assert_eq!(remote.job(&place.at("no")).await.unwrap(), None);
}

#[tokio::test]
async fn a_job_whose_files_were_removed_ends_at_its_limit() {
    for kind in SHELLS {
        let place = Place::new();
        let command = shell(&format!("echo $$ >{}; sleep 60", place.at("pid")));
        let job = started(kind, &place, &command, Duration::from_secs(10)).await;
        let pid = loop {
            match std::fs::read_to_string(place.at("pid")) {
                Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        std::fs::remove_dir_all(&job.directory).unwrap();
        let process = format!("/proc/{pid}");
        assert!(Path::new(&process).exists(), "{kind}: it ended before its limit");
        let mut turns = 0;
        while Path::new(&process).exists() {
            turns += 1;
            assert!(turns < 1200, "{kind}: it goes on after its limit");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
