//! Whom we talk to: what `known_hosts` says, against real host keys and certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use windlass::connection::{HostKeys, Target};

use crate::channels::run;
use crate::login::Agent;
use crate::server::{PASSWORD, Server, User, at, by_password, keygen, open, refusal};

/// A server whose host key is also certified by `ca`; `more` goes to ssh-keygen.
fn certified(more: &'static [&'static str]) -> Server {
    Server::prepared("HostCertificate DIR/host_ed25519-cert.pub", move |path: &Path| {
        keygen(&["-t", "ecdsa", "-N", "", "-f", &at(path, "ca")]);
        let (ca, key) = (at(path, "ca"), at(path, "host_ed25519.pub"));
        keygen(&[&["-s", &ca, "-h", "-I", "host"], more, &[&key]].concat());
    })
}

#[tokio::test]
async fn an_unknown_key_is_refused_with_its_fingerprint_and_what_to_do() {
    let server = Server::start();
    server
        .known("other.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ\n");
    let message = refusal(&server.target()).await;
    assert!(message.starts_with("the host key of web1 (127.0.0.1) is not known: ssh-ed25519 SHA256:"), "{message}");
    assert!(message.contains(&format!("ssh-keyscan -p {} 127.0.0.1 >> ", server.port)), "{message}");
    assert!(message.contains("StrictHostKeyChecking=accept-new"), "{message}");

    fs::remove_file(server.path("known_hosts")).unwrap();
    assert!(refusal(&server.target()).await.contains("is not known"));
    assert!(!server.path("known_hosts").exists());
}

#[tokio::test]
async fn a_changed_key_is_refused_with_the_line_that_has_the_old_one() {
    let server = Server::start();
    let other = server.public("id.pub");
    server.known(&format!("# a comment\n\nelsewhere {other}\n{} {other}\n", server.name()));
    for policy in [HostKeys::Strict, HostKeys::AcceptNew] {
        let message = refusal(&server.target_checking(policy)).await;
        assert!(message.starts_with("WARNING: the host key of web1 (127.0.0.1) has changed"), "{message}");
        assert!(message.contains(&format!("{}:4", server.path("known_hosts").display())), "{message}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_even_if_it_is_recorded_too() {
    let server = Server::start();
    let (name, key) = (server.name(), server.public("host_ed25519.pub"));
    server.known(&format!("{name} {key}\n@revoked * {key}\n"));
    for policy in [HostKeys::Strict, HostKeys::AcceptNew] {
        let message = refusal(&server.target_checking(policy)).await;
        assert!(message.contains("is revoked") && message.contains("known_hosts:2"), "{message}");
    }
}

#[tokio::test]
async fn hashed_wildcard_and_aliased_names_are_found() {
    let server = Server::start();
    let key = server.public("host_ed25519.pub");
    keygen(&["-H", "-f", &server.path("known_hosts").display().to_string()]);
    assert!(server.read("known_hosts").starts_with("|1|"));
    open(&server.target()).await;

    server.known(&format!("[127.0.0.*]:*,!10.0.0.1\t{key} with a comment\n"));
    open(&server.target()).await;

    // A key recorded for the address alone counts for its other ports, as OpenSSH has it.
    server.known(&format!("127.0.0.1 {key}\n"));
    open(&server.target()).await;

    server.known(&format!("the-alias {key}\n"));
    assert!(refusal(&server.target()).await.contains("is not known"));
    let mut aliased = server.target();
    aliased.arguments = "-o HostKeyAlias=The-Alias".to_owned();
    open(&aliased).await;
}

#[tokio::test]
async fn the_server_is_asked_for_the_type_of_key_that_is_recorded() {
    let server = Server::prepared("HostKey DIR/host_rsa\nHostKey DIR/host_ecdsa", |path| {
        keygen(&["-t", "rsa", "-b", "2048", "-N", "", "-f", &at(path, "host_rsa")]);
        keygen(&["-t", "ecdsa", "-N", "", "-f", &at(path, "host_ecdsa")]);
    });
    for file in ["host_rsa.pub", "host_ecdsa.pub", "host_ed25519.pub"] {
        server.known(&format!("{} {}\n", server.name(), server.public(file)));
        open(&server.target()).await;
    }
}

#[tokio::test]
async fn accept_new_records_once_and_holds_to_it() {
    let server = Server::start();
    let mut target = server.target_checking(HostKeys::AcceptNew);
    let known = server.path("fresh/.ssh/known_hosts");
    target.arguments = format!("-o UserKnownHostsFile={}", known.display());
    // Several at once must not record it several times.
    let all = futures::future::join_all((0..5).map(|_| open(&target))).await;
    assert_eq!(run(&*all[4], "echo in").await.0, "in\n");
    let text = fs::read_to_string(&known).unwrap();
    assert_eq!(text, format!("{} {}\n", server.name(), server.public("host_ed25519.pub")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&known), mode(known.parent().unwrap())), (0o600, 0o700));

    // OpenSSH reads it as we wrote it.
    let found =
        std::process::Command::new("ssh-keygen").args(["-F", &server.name(), "-f"]).arg(&known).output().unwrap();
    assert!(found.status.success());

    target.host_keys = Some(HostKeys::Strict);
    open(&target).await;
}

#[tokio::test]
async fn accept_new_adds_a_line_after_one_without_its_end_and_hashes_if_asked() {
    let server = Server::start();
    server.known(&format!("other {}", server.public("id.pub")));
    let mut target = server.target_checking(HostKeys::AcceptNew);
    target.arguments = "-o HashKnownHosts=yes".to_owned();
    open(&target).await;
    let text = server.read("known_hosts");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("|1|") && !text.contains("127.0.0.1"), "{text}");
    open(&server.target()).await;
}

#[tokio::test]
async fn accept_new_may_record_nowhere() {
    let server = Server::start();
    for nowhere in ["none", "/dev/null"] {
        let mut target = server.target_checking(HostKeys::AcceptNew);
        target.arguments = format!("-o UserKnownHostsFile={nowhere}");
        open(&target).await;
    }
}

#[tokio::test]
async fn checking_can_be_switched_off_in_so_many_words() {
    let server = Server::start();
    server.known(&format!("{} {}\n", server.name(), server.public("id.pub")));
    open(&server.target_checking(HostKeys::Off)).await;
    let mut target = server.target();
    target.arguments = "-o StrictHostKeyChecking=no".to_owned();
    open(&target).await;
    // What the inventory says counts first.
    target.host_keys = Some(HostKeys::Strict);
    assert!(refusal(&target).await.contains("has changed"));
}

#[tokio::test]
async fn with_checking_off_a_host_whose_key_changed_gets_no_password_and_nothing_signed_by_an_agent() {
    let user = User::create("c");
    let server = Server::with("UsePAM yes\nPasswordAuthentication yes\nKbdInteractiveAuthentication yes");
    let agent = Agent::start(server.path("").as_path());
    agent.add(&at(&server.path(""), "id"));
    let by_password = Target { host_keys: Some(HostKeys::Off), ..by_password(&server, &user, PASSWORD) };
    let by_agent = Target {
        host_keys: Some(HostKeys::Off),
        arguments: format!("-o IdentityAgent={}", agent.socket),
        ..server.target_with("IdentityFile none")
    };
    // A host that is not known yet, and one whose key is as recorded, get both.
    for records in ["", &format!("{} {}\n", server.name(), server.public("host_ed25519.pub"))] {
        server.known(records);
        open(&by_password).await;
        open(&by_agent).await;
    }
    server.known(&format!("{} {}\n", server.name(), server.public("id.pub")));
    for target in [by_password, by_agent] {
        let message = refusal(&target).await;
        let why = format!("its host key differs from the one at {}:1", server.path("known_hosts").display());
        assert!(message.contains(&format!("windlass uses no password and no SSH agent, because {why}")), "{message}");
        assert!(message.contains("found no key and no password to try"), "{message}");
    }
    assert!(!server.log().contains("Failed password"), "{}", server.log());
    let connection = open(&server.target_checking(HostKeys::Off)).await;
    assert!(connection.distrust().is_some_and(|why| why.contains("host key")));
    server.trust();
    assert_eq!(open(&server.target_checking(HostKeys::Off)).await.distrust(), None);
}

#[tokio::test]
async fn a_revoked_key_is_refused_with_checking_off_and_with_its_fingerprint_given() {
    let server = Server::start();
    let key = server.public("host_ed25519.pub");
    let known = format!("{} {key}\n", server.name());
    let fingerprint = known_fingerprint(&server);
    let targets = || {
        let given = Target { fingerprint: Some(fingerprint.clone()), ..server.target() };
        [server.target_checking(HostKeys::Off), server.target(), given]
    };
    server.known(&format!("{known}@revoked * {key}\n"));
    for target in targets() {
        let message = refusal(&target).await;
        assert!(message.contains("is revoked") && message.contains("known_hosts:2"), "{message}");
    }

    // Or by a list of their own.
    server.known(&known);
    let list = server.path("revoked");
    let with = |target: Target| Target { arguments: format!("-o RevokedHostKeys={}", list.display()), ..target };
    fs::write(&list, format!("# lost\n{}\n", server.public("id.pub"))).unwrap();
    for target in targets() {
        open(&with(target)).await;
    }
    fs::write(&list, format!("# lost\n{key} a comment\n")).unwrap();
    for target in targets() {
        let message = refusal(&with(target)).await;
        assert!(message.contains("is revoked") && message.contains("revoked:2"), "{message}");
    }
    for unreadable in ["nonsense\n", "SSHKRL\n\0"] {
        fs::write(&list, unreadable).unwrap();
        assert!(refusal(&with(server.target())).await.contains("cannot check the host key of web1"));
    }
    fs::remove_file(&list).unwrap();
    assert!(refusal(&with(server.target_checking(HostKeys::Off))).await.contains("cannot check the host key of web1"));
}

fn known_fingerprint(server: &Server) -> String {
    let file = server.path("host_ed25519.pub");
    let output = std::process::Command::new("ssh-keygen").arg("-lf").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_certificate_of_a_recorded_authority_is_enough() {
    let server = certified(&["-n", "127.0.0.1,web1.example.com"]);
    let authority = server.public("ca.pub");
    server.known(&format!("@cert-authority [127.0.0.1]:* {authority}\n"));
    open(&server.target()).await;

    server.known(&format!("@cert-authority *.example.com {authority}\n"));
    assert!(refusal(&server.target()).await.contains("is not known"));

    server.known(&format!("@cert-authority * {authority}\n@revoked * {authority}\n"));
    assert!(refusal(&server.target()).await.contains("is revoked"));
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_refused_with_the_reason() {
    let cases: [(&'static [&'static str], &str); 4] = [
        (&["-n", "web2.example.com"], "its certificate is valid for web2.example.com, not for 127.0.0.1"),
        (&["-n", "127.0.0.1", "-V", "20200101:20200102"], "its certificate has expired"),
        (&["-n", "127.0.0.1", "-V", "20450101:20460102"], "its certificate is not valid yet"),
        (&["-n", "127.0.0.1"], "which is not a known CA"),
    ];
    for (options, reason) in cases {
        let server = certified(options);
        let authority = if reason.contains("known CA") { "id.pub" } else { "ca.pub" };
        server.known(&format!("@cert-authority * {}\n", server.public(authority)));
        let message = refusal(&server.target()).await;
        assert!(message.contains("is not known") && message.contains(reason), "{message}");
        // The bare key, if it is recorded, still counts.
        let bare = format!("{} {}\n", server.name(), server.public("host_ed25519.pub"));
        server.known(&format!("@cert-authority * {}\n{bare}", server.public(authority)));
        open(&server.target()).await;
    }
}
