//! Runs that are asked to stop.

use std::process::{Child, Command};

use super::super::processes::Processes;
use super::*;

/// Records a run of a process.
fn run_of(fixture: &Fixture, store: &mut dyn RunStore, process: &Child) -> RunId {
    let started = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let run = RunId::new_at(started);
    let start = RunStart {
        id: run,
        command: "apply".into(),
        command_line: "windlass apply".into(),
        user: "alice".into(),
        pid: process.id(),
        version: "0.1.0".into(),
        check: false,
        started,
    };
    store.record_start(&start).unwrap();
    record(store, run, &[]);
    assert!(fixture.directory.path().join("state/running").join(run.to_string()).exists());
    run
}

async fn stop(fixture: &Fixture, run: RunId) -> Answered {
    let token = fixture.token("see@prod stop@prod");
    fixture.ask("POST", &format!("/api/v1/runs/{run}/stop"), Some(&token), None).await
}

/// Whatever it takes for a second Ctrl-C ends tasks in the middle.
#[tokio::test]
async fn a_run_that_is_asked_again_and_by_another_server_gets_no_second_ctrl_c() {
    for (ignored, signal) in [("", "HUP"), ("trap '' HUP; ", "INT")] {
        let fixture = Fixture::new();
        let mut store = fixture.store();
        let seen = fixture.directory.path().join("seen");
        let script = format!(
            "trap 'echo HUP >>seen' HUP; trap 'echo INT >>seen' INT; {ignored}touch seen; while :; do sleep 0.05; done"
        );
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", &script]).current_dir(fixture.directory.path()).spawn().unwrap();
        while !seen.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let run = run_of(&fixture, store.as_mut(), &child);
        assert_eq!(stop(&fixture, run).await.status, 202);
        assert_eq!(stop(&fixture, run).await.status, 202);
        if ignored.is_empty() {
            // A server that was started since.
            let state = fixture.directory.path().join("state");
            let processes = Processes::new("program".into(), Vec::new(), &state, 1);
            let recorded = store.read_run(run).unwrap().unwrap();
            processes.stop_run(&fixture.server.stores, &recorded).unwrap();
        }
        let begun = std::time::Instant::now();
        while std::fs::read_to_string(&seen).unwrap().is_empty() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        let seen = std::fs::read_to_string(&seen).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.lines().all(|line| line == signal) && !seen.is_empty(), "{seen:?}");
        assert!(signal == "HUP" || seen.lines().count() == 1, "{seen:?}");
        end_run(store.as_mut(), run);
        assert_eq!(stop(&fixture, run).await.code(), "NotRunning");
    }
}

#[tokio::test]
async fn a_process_that_only_has_the_same_number_gets_no_signal() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let run = run_of(&fixture, store.as_mut(), &child);
    let held = fixture.directory.path().join("state/running").join(run.to_string());
    let mark = std::fs::read_to_string(&held).unwrap();
    let (machine, start) = mark.split_once(' ').unwrap();
    let (boot, space) = machine.split_once('/').unwrap();
    for other in [
        format!("0a1b/{space} {start}"),
        format!("{boot}/pid:[1] {start}"),
        format!("{machine} 1"),
        // An earlier windlass said nothing.
        String::new(),
    ] {
        std::fs::write(&held, &other).unwrap();
        assert_eq!(stop(&fixture, run).await.code(), "OtherProcess", "{other}");
    }
    assert!(child.try_wait().unwrap().is_none());
    std::fs::write(&held, &mark).unwrap();
    assert_eq!(stop(&fixture, run).await.status, 202);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.wait().unwrap().signal(), Some(1));
    assert_eq!(stop(&fixture, run).await.code(), "OtherProcess", "it has ended");
}
