//! Programs and tunnels through one connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use windlass::connection::{Connection, Error, Exit, Process};

use crate::server::{PASSWORD, Server, User, by_password, open};

const MEGABYTE: usize = 1 << 20;

/// Runs a line to its end; gives its output, its error output and how it ended.
pub(crate) async fn run(connection: &dyn Connection, line: &str) -> (String, String, Exit) {
    let Process { stdin, mut stdout, mut stderr, exit } = connection.start(line).await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    let (_, _, exit) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err), exit);
    (out, err, exit.unwrap())
}

#[tokio::test]
async fn output_error_output_and_exit_code_come_back_apart() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let (out, err, exit) = run(&*connection, "echo out; echo err >&2; exit 7").await;
    assert_eq!((out.as_str(), err.as_str(), exit), ("out\n", "err\n", Exit::Code(7)));
    assert_eq!(connection.description(), format!("ssh root@127.0.0.1:{}", server.port));
    assert_eq!(run(&*connection, "exit 255").await.2, Exit::Code(255));
}

#[tokio::test]
async fn a_program_that_a_signal_ended_says_which() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    for (sent, named) in [("TERM", "TERM"), ("KILL", "KILL"), ("USR2", "USR2")] {
        let (_, _, exit) = run(&*connection, &format!("kill -{sent} $$; sleep 5")).await;
        // What OpenSSH has no name for, it tells as a code.
        assert!(exit == Exit::Signal(named.to_owned()) || matches!(exit, Exit::Code(code) if code != 0), "{exit:?}");
    }
    assert_eq!(run(&*connection, "kill -TERM $$; sleep 5").await.2, Exit::Signal("TERM".to_owned()));
}

#[tokio::test]
async fn ten_megabytes_go_there_and_come_back_unharmed() {
    there_and_back(&Server::start()).await;
}

#[tokio::test]
async fn a_change_of_keys_in_the_middle_harms_nothing() {
    let server = Server::with("RekeyLimit 1M\nLogLevel DEBUG1");
    there_and_back(&server).await;
    assert!(server.log().matches("rekey").count() >= 5, "{}", server.log());
}

async fn there_and_back(server: &Server) {
    let connection = open(&server.target()).await;
    let Process { mut stdin, mut stdout, exit, .. } = connection.start("cat").await.unwrap();
    let sent: Vec<u8> = (0..=252).cycle().take(10 * MEGABYTE).collect();
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        stdin.write_all(&sent).await.unwrap();
        stdin.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    stdout.read_to_end(&mut got).await.unwrap();
    writing.await.unwrap();
    assert!(got == expected, "{} bytes came back", got.len());
    assert_eq!(exit.await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn output_that_nobody_reads_yet_holds_up_nothing_and_is_kept() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let line = format!("head -c {} /dev/zero; head -c {} /dev/zero >&2", 20 * MEGABYTE, 5 * MEGABYTE);
    let mut unread = connection.start(&line).await.unwrap();
    let other = timeout(Duration::from_secs(60), run(&*connection, "echo through")).await.unwrap();
    assert_eq!(other.0, "through\n");

    // It ends although nobody read a byte of it.
    assert_eq!(timeout(Duration::from_secs(60), &mut unread.exit).await.unwrap().unwrap(), Exit::Code(0));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    unread.stdout.read_to_end(&mut out).await.unwrap();
    unread.stderr.read_to_end(&mut err).await.unwrap();
    assert_eq!((out.len(), err.len()), (20 * MEGABYTE, 5 * MEGABYTE));
}

#[tokio::test]
async fn twenty_commands_at_once_stay_within_the_servers_sessions() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    assert!(connection.capacity() < 10, "OpenSSH's MaxSessions");
    let line = |index| format!("sleep 0.1; echo {index}");
    let lines: Vec<String> = (0..20).map(line).collect();
    let outputs = futures::future::join_all(lines.iter().map(|line| run(&*connection, line))).await;
    for (index, (out, err, exit)) in outputs.into_iter().enumerate() {
        assert_eq!((out, err, exit), (format!("{index}\n"), String::new(), Exit::Code(0)));
    }
}

#[tokio::test]
async fn a_dropped_input_is_end_of_file() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let mut process = connection.start("cat; echo end").await.unwrap();
    process.stdin.write_all(b"half").await.unwrap();
    drop(process.stdin);
    let mut out = String::new();
    process.stdout.read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "halfend\n");
}

#[tokio::test]
async fn writing_to_a_program_that_ended_is_an_error_and_no_wait() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let mut process = connection.start("exit 3").await.unwrap();
    let endless = vec![0; 16 * MEGABYTE];
    let written = timeout(Duration::from_secs(60), process.stdin.write_all(&endless)).await.unwrap();
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(process.exit.await.unwrap(), Exit::Code(3));
    assert_eq!(run(&*connection, "echo still here").await.0, "still here\n");
}

#[tokio::test]
async fn a_dropped_program_ends_and_gives_its_place_back() {
    // OpenSSH passes signals on to the programs of ordinary users only; root's get end of file.
    let user = User::create("d");
    let server = Server::with("PasswordAuthentication yes");
    for (target, program) in [(by_password(&server, &user, PASSWORD), "exec sleep"), (server.target(), "cat; : ")] {
        let connection = open(&target).await;
        let marks: Vec<String> = (0..connection.capacity()).map(|index| format!("{}7{index}", server.port)).collect();
        let mut held = Vec::new();
        for mark in &marks {
            held.push(connection.start(&format!("{program} {mark}")).await.unwrap());
        }
        drop(held);
        let (out, _, _) = timeout(Duration::from_secs(60), run(&*connection, "echo place")).await.unwrap();
        assert_eq!(out, "place\n");
        assert_all_end(&marks).await;
    }
}

#[tokio::test]
async fn a_dropped_connection_ends_what_it_started() {
    let user = User::create("c");
    let server = Server::with("PasswordAuthentication yes");
    for (target, program) in [(by_password(&server, &user, PASSWORD), "exec sleep"), (server.target(), "cat; : ")] {
        let connection = open(&target).await;
        let mark = format!("{}3", server.port);
        let mut process = connection.start(&format!("echo begun; {program} {mark}")).await.unwrap();
        process.stdout.read_u8().await.unwrap();
        drop(connection);
        let ended = timeout(Duration::from_secs(60), process.exit).await.unwrap();
        assert!(matches!(ended, Err(Error::Lost { .. }) | Ok(Exit::Signal(_) | Exit::Code(0))), "{ended:?}");
        assert_all_end(&[mark]).await;
    }
}

#[tokio::test]
async fn nothing_is_started_on_a_closed_connection() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    assert!(!connection.is_closed());
    connection.close().await;
    assert!(connection.is_closed());
    assert!(matches!(connection.start("true").await, Err(Error::Lost { .. })));
    assert!(matches!(connection.tunnel("127.0.0.1", 1).await, Err(Error::Lost { .. })));
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap()
    });
    let tunnel = connection.tunnel("127.0.0.1", port).await.unwrap();
    let (mut read, mut write) = tokio::io::split(tunnel);
    let sent = vec![b'x'; 3 * MEGABYTE];
    let writing = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(writing, read.read_to_end(&mut got));
    read.unwrap();
    assert!(got == sent);
    assert_eq!(echo.await.unwrap(), sent.len() as u64);
}

#[tokio::test]
async fn a_tunnel_that_leads_nowhere_is_refused_with_the_reason() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let nobody = crate::port::free_port();
    let error = connection.tunnel("127.0.0.1", nobody).await.err().unwrap().to_string();
    assert_eq!(error, format!("cannot start \"tunnel to 127.0.0.1:{nobody}\": the host cannot connect to it"));

    let closed = Server::with("AllowTcpForwarding no");
    let error = open(&closed.target()).await.tunnel("127.0.0.1", nobody).await.err().unwrap().to_string();
    assert!(error.contains("AllowTcpForwarding"), "{error}");
}

#[tokio::test]
async fn a_server_that_allows_fewer_sessions_says_so() {
    let server = Server::with("MaxSessions 1");
    let connection = open(&server.target()).await;
    let _first = connection.start("exec sleep 30").await.unwrap();
    let error = connection.start("true").await.err().unwrap().to_string();
    assert!(error.contains("MaxSessions"), "{error}");
}

/// How many processes of this machine have the mark in their command line.
fn running(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let marked = |path: std::path::PathBuf| std::fs::read_to_string(path).is_ok_and(|line| line.contains(mark));
    processes.filter(|entry| marked(entry.path().join("cmdline"))).count()
}

async fn assert_all_end(marks: &[String]) {
    for _ in 0..100 {
        if marks.iter().all(|mark| running(mark) == 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("still running: {:?}", marks.iter().filter(|mark| running(mark) > 0).collect::<Vec<_>>());
}
