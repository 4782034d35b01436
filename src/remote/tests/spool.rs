//! Outputs that do not fit, disks that fail, and connections that are cut.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command as Program, Stdio};

use super::commands::gone;
use super::*;

/// The session's own directory on a file system of a few hundred KiB.
struct Small {
    directory: String,
}

impl Small {
    async fn below(remote: &Remote) -> Small {
        let own = remote.session().await.unwrap().ask("printf %s \"$wl_d\"").await.unwrap();
        let directory = text(&own.stdout).to_owned();
        let mounted = Program::new("mount").args(["-t", "tmpfs", "-o", "size=300k", "none", &directory]).status();
        assert!(mounted.unwrap().success());
        Small { directory }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        Program::new("umount").args(["-l", &self.directory]).status().ok();
    }
}

#[tokio::test]
#[ignore = "needs root"]
async fn an_output_that_has_no_room_is_an_error_that_names_the_file_system() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let small = Small::below(&remote).await;
        let error = remote.run(&shell("seq 1 1000000; true")).await.unwrap_err();
        let expected = format!(
            "cannot store the whole output of the shell command on the host: {}: No space left on device",
            small.directory
        );
        assert_eq!(error.to_string(), expected, "{kind}");
        assert!(error.hint().unwrap().starts_with("free disk space on the host"), "{kind}");
        // To stderr as well; and what fits comes whole again.
        let error = remote.run(&shell("seq 1 1000000 >&2; true")).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{kind}");
        assert_eq!(sh(&remote, "seq 1 20000").await.stdout.len(), 108_894, "{kind}");
    }
}

#[tokio::test]
#[ignore = "needs root"]
async fn a_small_output_is_whole_or_an_error_whoever_fills_the_file_system() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let small = Small::below(&remote).await;
        let fill = format!("head -c 1000000 /dev/zero >{}/fill 2>/dev/null", small.directory);
        let got = sh(&remote, &format!("{fill}; echo out; echo err >&2")).await;
        assert_eq!((text(&got.stdout), text(&got.stderr)), ("out\n", "err\n"), "{kind}");
        // Full from the beginning: it is not run.
        let error = remote.run(&shell("echo out; true")).await.unwrap_err().to_string();
        assert!(error.contains("No space left on device"), "{kind}: {error}");
    }
}

#[tokio::test]
async fn an_output_without_end_is_ended_on_the_host() {
    let remote = remote("dash").await;
    let error = remote.run(&Command::program(["yes"])).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot store the output of yes: it is more than 256 MiB");
    // A command that ends before its output is read.
    let error = remote.run(&shell("head -c 300000000 /dev/zero")).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot store the output of the shell command: it is more than 256 MiB");
    assert_eq!(sh(&remote, "seq 1 100000").await.stdout.len(), 588_895);
}

#[tokio::test]
async fn a_program_may_open_its_output_again() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "echo x | tee /dev/stderr; echo y >>/dev/stdout").await;
        assert_eq!((text(&got.stdout), text(&got.stderr)), ("x\ny\n", "x\n"), "{kind}");
    }
}

/// A host on which `sync` and `dd` are these scripts.
fn host_with(kind: &'static str, sync: &str, dd: &str) -> Arc<Host> {
    let host = Host::new(kind);
    for (name, body) in [("sync", sync), ("dd", dd)] {
        let path = host.bin.path().join(name);
        crate::value::testing::write_program(path, format!("#!/bin/sh\n{body}\n"));
    }
    host
}

#[tokio::test]
async fn a_file_that_cannot_be_flushed_is_not_put_in_place() {
    let failing = "echo \"$0: error syncing '$1': Input/output error\" >&2; exit 1";
    let old_dd = "echo \"dd: fsync failed for '$2': Input/output error\" >&2; echo '0+0 records in' >&2; exit 1";
    // busybox has its own programs.
    for kind in ["dash", "bash"] {
        for (sync, dd) in [(failing, "exit 0"), (":", old_dd)] {
            let sessions = Sessions::new(host_with(kind, sync, dd));
            let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
            let place = Place::new();
            for size in [10, 100_000] {
                std::fs::write(place.at("f"), "old").unwrap();
                let error = remote.write(&place.at("f"), &vec![b'x'; size], &Attributes::default()).await.unwrap_err();
                let expected = format!("cannot write {}: Input/output error", place.at("f"));
                assert_eq!(error.to_string(), expected, "{kind}");
                assert_eq!(std::fs::read_to_string(place.at("f")).unwrap(), "old");
                assert_eq!(place.names(), ["f"]);
            }
        }
        // A sync without operands: dd does it.
        let sessions = Sessions::new(host_with(kind, ":", "exec /bin/dd \"$@\""));
        let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
        let place = Place::new();
        remote.write(&place.at("f"), b"new", &Attributes { mode: Some(0), ..Attributes::default() }).await.unwrap();
        assert_eq!(std::fs::read_to_string(place.at("f")).unwrap(), "new");
    }
}

#[tokio::test]
async fn a_session_that_hears_nothing_ends_with_all_that_it_runs() {
    let watch: Vec<&str> = include_str!("../watch.sh").lines().filter(|line| !line.starts_with('#')).collect();
    let prelude = session::prelude("x");
    let impatient = prelude.replace("-lt 45", "-lt 4").replace("-lt 5 ]", "-lt 1 ]");
    assert_ne!(prelude, impatient);
    let mut sessions = Vec::new();
    for kind in ["dash", "bash"] {
        let mut session = Program::new(kind);
        session.args(["-c", &watch.join(" ")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = session.spawn().unwrap();
        let mut requests = session.stdin.take().unwrap();
        // When it ends, it reports success.
        let program = "( wl_go sh -c 'trap \"exit 0\" TERM; echo $$; sleep 1000 & wait' ); wl_q=1; wl_r $?";
        requests.write_all(format!("{impatient}echo $$\n{program}\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(session.stdout.take().unwrap()).lines();
        let pids: Vec<String> = (0..2).map(|_| lines.next().unwrap().unwrap()).collect();
        sessions.push((kind, session, requests, pids, lines));
    }
    // Heartbeats arrive for longer than their timeout.
    for _ in 0..14 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        for (_, _, requests, ..) in &mut sessions {
            requests.write_all(b"\n").unwrap();
        }
    }
    for (kind, session, ..) in &mut sessions {
        assert!(session.try_wait().unwrap().is_none(), "{kind}: it ended although it heard of us");
    }
    for (kind, mut session, _requests, pids, lines) in sessions {
        for pid in pids {
            let mut left = 6;
            while !gone(&pid).await {
                left -= 1;
                assert!(left > 0, "{kind}: it still runs");
            }
        }
        session.wait().unwrap();
        let said: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(!said.iter().any(|line| line.contains("x.1=")), "{kind}: it answered for what was ended: {said:?}");
    }
}
