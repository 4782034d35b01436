//! The way to a host: addresses, jump hosts, proxy commands, retries, and what is said when there is none.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass::connection::Target;

use crate::channels::run;
use crate::port::free_port;
use crate::server::{Server, open, refusal};

/// Client configuration by which the first server is a jump host named `bastion`.
fn bastion(jump: &Server, server: &Server) -> String {
    format!(
        "Host bastion\n HostName 127.0.0.1\n Port {}\n User root\n IdentityFile {}\n UserKnownHostsFile {}\nHost *\n \
         IdentityFile {}\n",
        jump.port,
        jump.path("id").display(),
        jump.path("known_hosts").display(),
        server.path("id").display()
    )
}

#[tokio::test]
async fn a_jump_host_is_the_way_to_another() {
    let (jump, server) = (Server::start(), Server::start());
    let mut target = server.target_with(&bastion(&jump, &server));
    target.arguments = "-J bastion".to_owned();
    let connection = open(&target).await;
    let (out, _, _) = run(&*connection, "echo $SSH_CONNECTION").await;
    assert!(out.trim().ends_with(&format!("127.0.0.1 {}", server.port)), "{out}");
    assert!(jump.log().contains("Accepted publickey for root"), "{}", jump.log());
    connection.close().await;
}

#[tokio::test]
async fn several_jump_hosts_follow_each_other() {
    let (jump, server) = (Server::start(), Server::start());
    let config = bastion(&jump, &server)
        + &format!(
            "Host inner\n HostName localhost\n HostKeyAlias [127.0.0.1]:{0}\n Port {0}\n User root\n",
            server.port
        );
    let mut target = server.target_with(&config);
    target.arguments = "-o ProxyJump=bastion,inner".to_owned();
    let connection = open(&target).await;
    assert_eq!(run(&*connection, "echo far").await.0, "far\n");
}

#[tokio::test]
async fn a_jump_host_that_is_not_trusted_or_not_there_is_named() {
    let (jump, server) = (Server::start(), Server::start());
    jump.known("");
    let mut target = server.target_with(&bastion(&jump, &server));
    target.arguments = "-J bastion".to_owned();
    let message = refusal(&target).await;
    assert!(message.starts_with("the host key of web1's jump host bastion (127.0.0.1) is not known"), "{message}");

    target.arguments = format!("-J root@127.0.0.1:{}", free_port());
    let message = refusal(&target).await;
    assert!(message.starts_with("cannot connect to web1's jump host 127.0.0.1 (127.0.0.1:"), "{message}");

    jump.trust();
    target.arguments = "-J bastion".to_owned();
    target.port = Some(free_port());
    let message = refusal(&target).await;
    assert!(message.contains("through jump host bastion") && message.contains("cannot connect"), "{message}");
}

#[tokio::test]
async fn jump_hosts_in_a_circle_are_an_error() {
    let server = Server::start();
    let target = server.target_with("Host *\n ProxyJump bastion\n HostName 127.0.0.1\n");
    assert!(refusal(&target).await.contains("form a loop"));
}

#[tokio::test]
async fn a_proxy_command_is_the_way_and_its_complaint_is_passed_on() {
    let (jump, server) = (Server::start(), Server::start());
    let mut target = server.target();
    target.arguments = format!(
        "-o ProxyCommand=\"ssh -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
         -i {} -p {} -W %h:%p root@127.0.0.1\"",
        jump.path("id").display(),
        jump.port
    );
    let connection = open(&target).await;
    assert_eq!(run(&*connection, "echo proxied").await.0, "proxied\n");

    target.arguments = "-o ProxyCommand='echo no way to %h >&2; exit 1'".to_owned();
    let message = refusal(&target).await;
    assert!(message.contains("output of the proxy command: no way to 127.0.0.1"), "{message}");
}

#[tokio::test]
async fn names_that_a_shell_would_understand_are_refused_before_any_command_runs() {
    let server = Server::start();
    let touched = server.path("touched");
    let command = format!("$(touch${{IFS}}{})", touched.display());
    let proxied = || server.target_with("ProxyCommand sh -c 'exec nc %h %p' %n %r");
    let refused = |target: Target| async move { refusal(&target).await };
    let message = refused(Target { address: command.clone(), ..proxied() }).await;
    let begin = "cannot connect to web1: ansible_host ";
    assert!(message.starts_with(begin) && message.contains("contains '$'"), "{message}");
    let message = refused(Target { name: command.clone(), address: command.clone(), ..proxied() }).await;
    assert!(message.contains("its name ") && message.contains("contains '$'"), "{message}");
    let message = refused(Target { user: Some(format!("x`touch {}`", touched.display())), ..proxied() }).await;
    assert!(message.contains("ansible_user ") && message.contains("contains '`'"), "{message}");
    for (address, user) in [("-oProxyCommand=x", "root"), ("127.0.0.1", "-l")] {
        let message = refused(Target { address: address.into(), user: Some(user.into()), ..proxied() }).await;
        assert!(message.contains("starts with a dash"), "{message}");
    }
    for jump in ["root@a;b", "x;y@bastion", "-v@bastion", "root@-x"] {
        let target = Target { arguments: format!("-o 'ProxyJump={jump}'"), ..server.target() };
        let message = refused(target).await;
        assert!(message.contains("the jump host"), "{jump}: {message}");
    }
    assert!(!touched.exists());

    // A name in a path leads to no other directory.
    let target = Target { address: "../../etc".into(), ..server.target_with("UserKnownHostsFile ~/known/%h") };
    assert!(refused(target).await.contains("would point to another directory"));
}

#[tokio::test]
async fn each_way_not_to_be_there_has_its_words() {
    let server = Server::start();
    let port = free_port();
    let refused = refusal(&Target { port: Some(port), ..server.target() }).await;
    let begin = format!("cannot connect to web1 (127.0.0.1:{port}): connection refused | ");
    assert!(refused.starts_with(&begin), "{refused}");

    let unresolved = refusal(&Target { address: "no-such-host.invalid".to_owned(), ..server.target() }).await;
    assert!(unresolved.contains("cannot resolve the name \"no-such-host.invalid\""), "{unresolved}");

    // It takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let limit = Some(Duration::from_secs(2));
    let message = refusal(&Target { port: Some(port), connect_timeout: limit, ..server.target() }).await;
    assert!(message.contains("no SSH greeting within 2s"), "{message}");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let message = refusal(&Target { port: Some(port), ..server.target() }).await;
    assert!(message.contains("cannot connect to web1"), "{message}");
}

#[tokio::test]
async fn a_host_that_refuses_is_tried_again_and_one_that_says_no_is_not() {
    let server = Server::start();
    // It closes each connection before the handshake.
    let busy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = Some(busy.local_addr().unwrap().port());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let counting = tokio::spawn(async move {
        while busy.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    for retries in [0, 2] {
        refusal(&Target { port, retries, ..server.target() }).await;
        assert_eq!(connections.swap(0, Ordering::Relaxed), retries as usize + 1);
    }
    counting.abort();

    let attempts = || server.log().matches("Connection closed by authenticating user").count();
    server.known("");
    refusal(&Target { retries: 3, ..server.target() }).await;
    server.trust();
    std::fs::write(server.path("authorized_keys"), "").unwrap();
    refusal(&Target { retries: 3, ..server.target() }).await;
    for _ in 0..600 {
        if attempts() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(attempts(), 1, "{}", server.log());
}

#[tokio::test]
async fn a_host_that_comes_up_meanwhile_is_reached() {
    let server = Server::start();
    let port = free_port();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
        tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
        server
    });
    let known = tempfile::NamedTempFile::new().unwrap();
    let key = Server::start();
    let mut target = key.target();
    target.arguments = format!("-o UserKnownHostsFile={} -o StrictHostKeyChecking=no", known.path().display());
    target.port = Some(port);
    target.retries = 2;
    // It is another server, which does not know our key: that it says so is enough.
    assert!(refusal(&target).await.contains("cannot log in to web1"));
    drop(late.await.unwrap());
}

#[tokio::test]
async fn all_addresses_of_a_name_are_tried_and_ipv6_works() {
    let server = Server::with("ListenAddress ::1");
    let mut target = server.target();
    target.arguments = format!("-o HostKeyAlias={}", server.name());
    // The server listens on both, another on one only: by name either way must do.
    target.address = "localhost".to_owned();
    open(&target).await;
    target.address = "::1".to_owned();
    let connection = open(&target).await;
    assert_eq!(connection.description(), format!("ssh root@[::1]:{}", server.port));
    target.address = "localhost".to_owned();
    target.arguments.push_str(" -4");
    open(&target).await;
}

#[tokio::test]
async fn arguments_that_are_not_understood_are_named() {
    let server = Server::start();
    for (arguments, named) in [
        ("-o ForwardAgent=yes", "unsupported SSH option ForwardAgent"),
        ("-oRemoteForward='1 2'", "unsupported SSH option RemoteForward"),
        ("-L 1:2:3", "unsupported SSH argument -L"),
        ("-o", "the SSH argument -o has no value"),
        ("somewhere", "unsupported SSH argument \"somewhere\""),
    ] {
        let message = refusal(&Target { arguments: arguments.to_owned(), ..server.target() }).await;
        assert_eq!(message, format!("cannot connect to web1: {named} | "));
    }
    let usual = "-C -o ControlMaster=auto -o ControlPersist=60s -o ControlPath=/tmp/x -vvv";
    open(&Target { arguments: usual.to_owned(), ..server.target() }).await;
}
