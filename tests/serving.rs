//! `windlass serve` as a process: to whom a link is given, and a socket that systemd passes on.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn prepare(directory: &Path) {
    std::fs::create_dir(directory.join("deployments")).unwrap();
}

fn set_up(command: &mut Command, directory: &Path) {
    command.env("NO_COLOR", "1").env("WINDLASS_RUNS", "true").env("WINDLASS_RUNS_DIRECTORY", directory.join("runs"));
    command.current_dir(directory).stdin(Stdio::null());
}

fn windlass(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    set_up(&mut command, directory);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// A server on a socket that somebody else has opened.
fn serve_on(socket: &TcpListener, directory: &Path, listen: &str) -> Child {
    let socket: OwnedFd = socket.try_clone().unwrap().into();
    let mut command = Command::new("/bin/sh");
    set_up(&mut command, directory);
    command.args(["-c", r#"exec 3<&0 0<&-; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@""#, "sh"]);
    command.args([env!("CARGO_BIN_EXE_windlass"), "serve", "-d", "deployments", "--listen", listen]);
    command.stdin(socket).stderr(Stdio::piped()).spawn().unwrap()
}

fn health(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn first_line(server: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_socket_that_was_passed_on_is_served_and_kept_while_the_server_is_down() {
    let scratch = tempfile::tempdir().unwrap();
    prepare(scratch.path());
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    for _ in 0..2 {
        let mut server = serve_on(&socket, scratch.path(), &address.to_string());
        // It waits in the queue of the socket until the server is there.
        assert!(health(address).ends_with("ok\n"));
        let (done, said) = windlass(scratch.path(), &["serve", "link", "--listen", &address.to_string()]);
        assert!(done && said.contains("/#link="), "{said}");
        server.kill().unwrap();
        server.wait().unwrap();
        let taken = TcpListener::bind(address).unwrap_err();
        assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    }
    let mut server = serve_on(&socket, scratch.path(), "127.0.0.1:1");
    let said = first_line(&mut server);
    assert!(!server.wait().unwrap().success());
    let expected = format!("cannot listen on 127.0.0.1:1: the socket that was passed on listens on {address}");
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn no_link_is_made_for_a_server_of_somebody_else() {
    let scratch = tempfile::tempdir().unwrap();
    let squatter = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = squatter.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = squatter.accept().unwrap();
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"proof\":\"00\"}").unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    });
    let (done, said) = windlass(scratch.path(), &["serve", "link", "--listen", &address]);
    assert!(!done && !said.contains("#link="), "{said}");
    assert!(said.contains(&format!("what listens on {address} does not prove")), "{said}");
    let asked = answers.join().unwrap();
    assert!(asked.starts_with("GET /api/v1/proof?nonce="), "{asked}");
    let (done, said) = windlass(scratch.path(), &["serve", "link", "--listen", &address]);
    assert!(!done && said.contains("cannot ask the server") && said.contains("--listen"), "{said}");
    let (done, said) = windlass(scratch.path(), &["serve", "link", "--url", "http://ops-1:7480", "--listen", &address]);
    assert!(!done && !said.contains("#link="), "{said}");
    // A browser checks whose it is.
    let (done, said) = windlass(scratch.path(), &["serve", "link", "--url", "https://ops-1:7480"]);
    assert!(done && said.starts_with("https://ops-1:7480/#link="), "{said}");
    let (_, entries) = windlass(scratch.path(), &["serve", "audit"]);
    assert_eq!(entries.matches("create a link").count(), 1, "{entries}");
}
