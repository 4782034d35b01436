//! `remote` over a real SSH connection: many sessions, transfers, and what is left when the connection goes.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use sha1::Digest;
use windlass::remote::{Attributes, Command, ExpectedDigest, Remote, Sessions};

use crate::server::{Server, open};

async fn remote(server: &Server) -> (Arc<Sessions>, Remote) {
    let sessions = Sessions::new(open(&server.target()).await);
    let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
    (sessions, remote)
}

async fn gone(file: &std::path::Path) -> bool {
    let pids = std::fs::read_to_string(file).unwrap();
    for _ in 0..200 {
        let alive =
            |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        if !pids.split_whitespace().any(alive) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn many_commands_share_one_connection() {
    let server = Server::start();
    let (sessions, remote) = remote(&server).await;
    let remote = Arc::new(remote);
    let each = (0..64).map(|i| {
        let remote = remote.clone();
        async move { remote.run(&Command::shell(format!("echo {i}; sleep 0.05"))).await.unwrap().stdout }
    });
    let all = futures::future::join_all(each).await;
    assert!(all.iter().enumerate().all(|(i, got)| got == format!("{i}\n").as_bytes()));
    sessions.close().await;
}

#[tokio::test]
async fn files_travel_in_both_directions() {
    let server = Server::start();
    let (sessions, remote) = remote(&server).await;
    let content: Vec<u8> = (0..20_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (here, there, back) = (server.path("here"), server.path("there"), server.path("back"));
    std::fs::write(&here, &content).unwrap();
    let sha1: String = sha1::Sha1::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    remote
        .upload(&here, ExpectedDigest::Sha1(&sha1), there.to_str().unwrap(), &Attributes::default(), &|_, _| ())
        .await
        .unwrap();
    remote.download(there.to_str().unwrap(), &back).await.unwrap();
    assert!(std::fs::read(&back).unwrap() == content);
    let input = Command { stdin: Some(content.clone()), ..Command::program(["cat"]) };
    assert!(remote.run(&input).await.unwrap().stdout == content);
    sessions.close().await;
}

#[tokio::test]
async fn a_cancelled_command_ends_on_the_host() {
    let server = Server::start();
    let (_sessions, remote) = remote(&server).await;
    let file = server.path("pids");
    let command = Command::shell(format!("sleep 300 & echo $$ $! >{}; wait", file.display()));
    let is_there = async {
        while std::fs::read_to_string(&file).unwrap_or_default().lines().count() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = remote.run(&command) => panic!("it ended"),
        () = is_there => {}
    }
    assert!(gone(&file).await);
    assert_eq!(remote.run(&Command::shell("echo x")).await.unwrap().stdout, b"x\n");
}

#[tokio::test]
async fn a_lost_connection_ends_what_ran_and_leaves_nothing() {
    let server = Server::start();
    let (sessions, remote) = remote(&server).await;
    let file = server.path("pids");
    let command = Command::shell(format!("sleep 300 & echo $$ $! $PPID >{}; wait", file.display()));
    let run = tokio::spawn(async move { remote.run(&command).await });
    while std::fs::read_to_string(&file).unwrap_or_default().lines().count() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // As when the link breaks: nobody says goodbye to anybody.
    sessions.connection().close().await;
    let error = run.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("lost") || error.contains("closed"), "{error}");
    assert!(gone(&file).await);
}
