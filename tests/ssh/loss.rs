//! Connections that are lost: each must be noticed, and never look like success.

use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use windlass::connection::{Connection, Error, Process};

use crate::channels::run;
use crate::server::{Server, open};

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
}

/// The process of sshd that serves this connection.
async fn session_pid(connection: &dyn Connection) -> String {
    run(connection, "echo $PPID").await.0.trim().to_owned()
}

fn impatient(server: &Server) -> windlass::connection::Target {
    let key = server.path("id");
    server.target_with(&format!("IdentityFile {}\nServerAliveInterval 1\nServerAliveCountMax 2", key.display()))
}

fn lost(error: Error) -> String {
    match error {
        Error::Lost { ref name, .. } => {
            assert_eq!(name, "web1");
            error.to_string()
        }
        other => panic!("it should be lost: {other}"),
    }
}

#[tokio::test]
async fn a_killed_server_is_a_lost_connection() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let pid = session_pid(&*connection).await;
    let Process { mut stdout, exit, stdin: _stdin, .. } = connection.start("echo begun; exec sleep 30").await.unwrap();
    let mut line = [0; 6];
    stdout.read_exact(&mut line).await.unwrap();
    signal("-KILL", &pid);
    let message = lost(timeout(Duration::from_secs(60), exit).await.unwrap().unwrap_err());
    assert_eq!(message, "lost the connection to web1: the host closed it");
    let broken = stdout.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionAborted, "no end of file");
    assert!(connection.is_closed());
    lost(connection.start("true").await.err().unwrap());
}

#[tokio::test]
async fn a_frozen_server_is_noticed() {
    let server = Server::start();
    let connection = open(&impatient(&server)).await;
    let pid = session_pid(&*connection).await;
    let process = connection.start("exec sleep 30").await.unwrap();
    signal("-STOP", &pid);
    let ended = timeout(Duration::from_secs(60), process.exit).await;
    signal("-CONT", &pid);
    let message = lost(ended.unwrap().unwrap_err());
    assert_eq!(message, "lost the connection to web1: the host no longer answers");
}

#[tokio::test]
async fn a_server_that_freezes_while_we_write_is_noticed() {
    let server = Server::start();
    let connection = open(&impatient(&server)).await;
    let pid = session_pid(&*connection).await;
    let mut process = connection.start("cat >/dev/null").await.unwrap();
    process.stdin.write_all(b"begun").await.unwrap();
    let mut stdin = process.stdin;
    let writing = tokio::spawn(async move {
        let chunk = vec![0; 1 << 20];
        loop {
            if let Err(error) = stdin.write_all(&chunk).await {
                return error;
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal("-STOP", &pid);
    let ended = timeout(Duration::from_secs(60), process.exit).await;
    let written = timeout(Duration::from_secs(60), writing).await;
    signal("-CONT", &pid);
    lost(ended.unwrap().unwrap_err());
    assert_eq!(written.unwrap().unwrap().kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_program_without_an_exit_status_is_no_success() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    // The shell that sshd waits for is gone with its server, but a grandchild still holds the output.
    let pid = session_pid(&*connection).await;
    let process = connection.start("(sleep 1; echo late) & wait").await.unwrap();
    signal("-KILL", &pid);
    let mut lines = BufReader::new(process.stdout).lines();
    assert!(!matches!(lines.next_line().await, Ok(Some(_))));
    lost(process.exit.await.unwrap_err());
}

#[tokio::test]
async fn an_idle_connection_lives_on() {
    let server = Server::start();
    let connection = open(&impatient(&server)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(run(&*connection, "echo awake").await.0, "awake\n");
}
