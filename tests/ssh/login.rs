//! Every way to log in, and what is said when none works.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use windlass::connection::{Target, open as try_open};
use windlass::value::{ProcessEnvironment, Secret};

use crate::channels::run;
use crate::server::{PASSWORD, Server, User, at, by_password, keygen, open, refusal, set_mode};

/// An agent of the test's own; it ends with the value.
pub(crate) struct Agent {
    pub socket: String,
    process: Child,
}

impl Agent {
    pub(crate) fn start(directory: &Path) -> Agent {
        let socket = at(directory, "agent");
        let process =
            Command::new("ssh-agent").args(["-D", "-a", &socket]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let agent = Agent { socket, process: process.unwrap() };
        while !Path::new(&agent.socket).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        agent
    }

    pub(crate) fn add(&self, key: &str) {
        let mut command = Command::new("ssh-add");
        let output = command.args(["-q", key]).env("SSH_AUTH_SOCK", &self.socket).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn authorize(server: &Server, names: &[&str]) {
    let keys: Vec<String> = names.iter().map(|name| server.read(name)).collect();
    fs::write(server.path("authorized_keys"), keys.join("\n")).unwrap();
}

#[tokio::test]
async fn keys_of_every_type_and_format_log_in() {
    let server = Server::start();
    let kinds: [(&str, &[&str]); 6] = [
        ("ecdsa", &["-t", "ecdsa", "-b", "256"]),
        ("ecdsa384", &["-t", "ecdsa", "-b", "384"]),
        ("ecdsa521", &["-t", "ecdsa", "-b", "521"]),
        ("rsa", &["-t", "rsa", "-b", "2048"]),
        ("rsa-pem", &["-t", "rsa", "-b", "2048", "-m", "PEM"]),
        ("rsa-pkcs8", &["-t", "rsa", "-b", "2048", "-m", "PKCS8"]),
    ];
    for (name, options) in kinds {
        let file = server.path(name).display().to_string();
        keygen(&[options, &["-N", "", "-f", &file]].concat());
        authorize(&server, &[&format!("{name}.pub")]);
        let target = server.target_with(&format!("IdentityFile {file}"));
        assert_eq!(run(&*open(&target).await, "echo in").await.0, "in\n", "{name}");
    }
}

#[tokio::test]
async fn the_inventorys_key_file_is_used() {
    let server = Server::start();
    let target = Target { private_key_file: Some(server.path("id")), ..server.target_with("") };
    open(&target).await;
    let argument = format!("-i {}", server.path("id").display());
    open(&Target { arguments: argument, ..server.target_with("") }).await;
}

#[tokio::test]
async fn a_key_that_stands_in_a_variable_is_no_file() {
    let server = Server::start();
    let text = fs::read_to_string(server.path("id")).unwrap();
    let mut target = Target { private_key_file: None, ..server.target_with("IdentityFile none") };
    refusal(&target).await;
    target.private_key = Some(Secret::new(text));
    open(&target).await;
    target.private_key = Some(Secret::new("-----BEGIN NOTHING-----"));
    let message = refusal(&target).await;
    assert!(
        message.contains("in ansible_private_key is not a valid private key") && !message.contains("BEGIN"),
        "{message}"
    );
}

#[tokio::test]
async fn a_fingerprint_counts_instead_of_known_hosts() {
    let server = Server::start();
    let shown = refusal(&server.target_with("UserKnownHostsFile none")).await;
    let fingerprint: String = shown[shown.find("SHA256:").unwrap()..].chars().take(50).collect();
    let key = server.path("id").display().to_string();
    let mut target = server.target_with(&format!("UserKnownHostsFile none\nIdentityFile {key}"));
    target.fingerprint = Some(fingerprint.clone());
    open(&target).await;
    // Whoever gave one means it, even where nothing would be checked, or where the known hosts have another.
    let other = fingerprint.replace(&fingerprint[10..12], "xx");
    for options in ["UserKnownHostsFile none", ""] {
        let target = Target {
            fingerprint: Some(other.clone()),
            host_keys: Some(windlass::connection::HostKeys::Off),
            ..server.target_with(options)
        };
        let message = refusal(&target).await;
        assert!(message.contains(&format!("{fingerprint}, and {other} is expected")), "{message}");
    }
}

#[tokio::test]
async fn an_encrypted_key_needs_its_passphrase() {
    let server = Server::start();
    for (name, options) in [("new", vec!["-t", "ed25519"]), ("old", vec!["-t", "rsa", "-b", "2048", "-m", "PEM"])] {
        let file = server.path(name).display().to_string();
        keygen(&[&options[..], &["-N", "open sesame", "-f", &file]].concat());
        authorize(&server, &[&format!("{name}.pub")]);
        let mut target = server.target_with(&format!("IdentityFile {file}"));
        let message = refusal(&target).await;
        assert!(message.contains(&format!("the key {file} needs a passphrase")), "{message}");

        target.private_key_passphrase = Some(Secret::new("wrong sesame"));
        let message = refusal(&target).await;
        assert!(message.contains(&format!("the passphrase of the key {file} is wrong")), "{message}");
        assert!(!message.contains("sesame"), "{message}");

        target.private_key_passphrase = Some(Secret::new("open sesame"));
        open(&target).await;
    }
}

#[tokio::test]
async fn a_wrong_a_missing_and_an_open_key_file_are_distinguished() {
    let server = Server::start();
    let other = server.path("other").display().to_string();
    keygen(&["-t", "ed25519", "-N", "", "-f", &other]);
    let message = refusal(&server.target_with(&format!("IdentityFile {other}"))).await;
    let expected = format!(
        "cannot log in to web1 (127.0.0.1:{}) as root: permission denied (the host accepts publickey); tried key {other}",
        server.port
    );
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("authorized_keys"), "{message}");

    let message = refusal(&server.target_with("IdentityFile /no/such/key")).await;
    assert!(message.contains("no such key file: /no/such/key"), "{message}");
    assert!(message.contains("found no key and no password to try"), "{message}");

    set_mode(&server.path("id"), 0o644);
    let message = refusal(&server.target()).await;
    assert!(message.contains("other users can read it (mode 0644); run chmod 600"), "{message}");

    let message = refusal(&server.target_with(&format!("IdentityFile {}", server.path("id.pub").display()))).await;
    assert!(message.contains("id.pub is a public key, and the SSH agent does not have its private key"), "{message}");

    fs::write(server.path("garbage"), "no key\n").unwrap();
    set_mode(&server.path("garbage"), 0o600);
    let message = refusal(&server.target_with(&format!("IdentityFile {}", at(&server.path(""), "garbage")))).await;
    assert!(message.contains("is not a valid private key"), "{message}");
}

#[tokio::test]
async fn a_users_certificate_beside_its_key_logs_in() {
    let server = Server::prepared("TrustedUserCAKeys DIR/ca.pub", |path| {
        keygen(&["-t", "ed25519", "-N", "", "-f", &at(path, "ca")]);
        for (name, kind) in [("cert-ed", "ed25519"), ("cert-rsa", "rsa"), ("cert-ec", "ecdsa")] {
            keygen(&["-t", kind, "-N", "", "-f", &at(path, name)]);
            let public = at(path, &format!("{name}.pub"));
            keygen(&["-s", &at(path, "ca"), "-I", name, "-n", "root", &public]);
        }
    });
    for name in ["cert-ed", "cert-rsa", "cert-ec"] {
        let file = server.path(name).display().to_string();
        open(&server.target_with(&format!("IdentityFile {file}"))).await;
        let agent = Agent::start(server.path("").as_path());
        agent.add(&file);
        let mut target = server.target_with("IdentityFile none");
        target.arguments = format!("-o IdentityAgent={}", agent.socket);
        open(&target).await;
        drop(agent);
        fs::remove_file(server.path("agent")).ok();
    }
}

#[tokio::test]
async fn the_agents_keys_log_in() {
    let server = Server::start();
    let agent = Agent::start(server.path("").as_path());
    let with_agent = |server: &Server, lines: &str| Target {
        arguments: format!("-o IdentityAgent={}", agent.socket),
        ..server.target_with(lines)
    };
    let message = refusal(&with_agent(&server, "IdentityFile none")).await;
    let expected = "permission denied (the host accepts publickey); found no key and no password to try; the SSH agent has no keys | \
                    set ansible_ssh_private_key_file, load a key into ssh-agent, or set ansible_password";
    assert!(message.ends_with(expected), "{message}");

    keygen(&["-t", "rsa", "-b", "2048", "-N", "", "-f", &at(&server.path(""), "rsa")]);
    for name in ["id", "rsa"] {
        authorize(&server, &[&format!("{name}.pub")]);
        agent.add(&at(&server.path(""), name));
        open(&with_agent(&server, "IdentityFile none")).await;
    }
    let missing =
        Target { arguments: "-o IdentityAgent=/no/agent".to_owned(), ..server.target_with("IdentityFile none") };
    let message = refusal(&missing).await;
    assert!(message.contains("cannot query the SSH agent at /no/agent"), "{message}");
}

#[tokio::test]
async fn an_agent_full_of_keys_does_not_stand_in_the_way_of_the_named_one() {
    let server = Server::start();
    let agent = Agent::start(server.path("").as_path());
    for index in 0..8 {
        let file = at(&server.path(""), &format!("many{index}"));
        keygen(&["-t", "ed25519", "-N", "", "-f", &file]);
        agent.add(&file);
    }
    let arguments = format!("-o IdentityAgent={}", agent.socket);
    open(&Target { arguments: arguments.clone(), ..server.target() }).await;

    let message = refusal(&Target { arguments: arguments.clone(), ..server.target_with("IdentityFile none") }).await;
    assert!(message.contains("too many attempts") && message.contains("tried agent key"), "{message}");

    // A public key names one of the agent's.
    agent.add(&at(&server.path(""), "id"));
    let lines = format!("IdentityFile {}", server.path("id.pub").display());
    open(&Target { arguments: arguments.clone(), ..server.target_with(&lines) }).await;

    // The key is in the agent, too, and its file cannot be read: it is still offered first, and alone.
    let public_only = server.path("elsewhere");
    fs::copy(server.path("id.pub"), server.path("elsewhere.pub")).unwrap();
    let lines = format!("IdentitiesOnly yes\nIdentityFile {}", public_only.display());
    open(&Target { arguments, ..server.target_with(&lines) }).await;
}

#[tokio::test]
async fn a_password_logs_in_and_is_never_shown() {
    let user = User::create("p");
    let server = Server::with("PasswordAuthentication yes");
    let connection = open(&by_password(&server, &user, PASSWORD)).await;
    assert_eq!(run(&*connection, "id -un").await.0, format!("{}\n", user.name));

    let target = by_password(&server, &user, "wrong-word");
    let message = refusal(&target).await;
    assert!(message.contains("permission denied") && message.contains("tried password"), "{message}");
    assert!(!message.contains("wrong-word") && !format!("{target:?}").contains("wrong-word"), "{message}");

    let message = refusal(&Target { password: None, ..by_password(&server, &user, "") }).await;
    assert!(message.contains("(the host accepts publickey, password)"), "{message}");
    assert!(message.contains("set ansible_password"), "{message}");
}

#[tokio::test]
async fn keyboard_interactive_takes_the_password_once() {
    let user = User::create("k");
    let server = Server::with("UsePAM yes\nKbdInteractiveAuthentication yes\nPasswordAuthentication no");
    let connection = open(&by_password(&server, &user, PASSWORD)).await;
    assert_eq!(run(&*connection, "id -un").await.0, format!("{}\n", user.name));

    let message = refusal(&by_password(&server, &user, "wrong-word")).await;
    assert!(message.contains("tried keyboard-interactive"), "{message}");
    assert!(!message.contains("wrong-word"), "{message}");
}

#[tokio::test]
async fn the_password_still_has_its_turn_after_too_many_keys() {
    let user = User::create("t");
    let server = Server::with("PasswordAuthentication yes\nMaxAuthTries 3");
    let agent = Agent::start(server.path("").as_path());
    for index in 0..5 {
        let file = at(&server.path(""), &format!("many{index}"));
        keygen(&["-t", "ed25519", "-N", "", "-f", &file]);
        agent.add(&file);
    }
    let mut target = by_password(&server, &user, PASSWORD);
    target.arguments = format!("-o IdentityAgent={}", agent.socket);
    open(&target).await;
}

#[tokio::test]
async fn a_key_and_a_password_can_both_be_asked_for() {
    let user = User::create("b");
    let server = Server::with("PasswordAuthentication yes\nAuthenticationMethods publickey,password");
    let target = Target { user: Some(user.name.clone()), password: Some(Secret::new(PASSWORD)), ..server.target() };
    open(&target).await;
    let message = refusal(&Target { password: None, ..target }).await;
    assert!(message.contains("(the host accepts password)"), "{message}");
}

#[tokio::test]
async fn default_keys_of_the_home_directory_are_tried() {
    let server = Server::start();
    let ssh = server.path("home/.ssh");
    fs::create_dir_all(&ssh).unwrap();
    fs::copy(server.path("id"), ssh.join("id_ed25519")).unwrap();
    fs::copy(server.path("known_hosts"), ssh.join("known_hosts")).unwrap();
    fs::write(ssh.join("config"), "Host here\n HostName 127.0.0.1\n User root\n").unwrap();
    let around = ProcessEnvironment { home: Some(server.path("home")), ..ProcessEnvironment::default() };
    let target = Target {
        method: windlass::connection::Method::Ssh,
        name: "web1".to_owned(),
        address: "here".to_owned(),
        port: Some(server.port),
        surroundings: Arc::new(around),
        ..Target::default()
    };
    let connection = try_open(&target).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(run(&*connection, "echo home").await.0, "home\n");
}
