//! A real OpenSSH server on 127.0.0.1 for one test, with its own keys and files; it ends with the value.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windlass::connection::{Connection, Error, HostKeys, Method, Target};
use windlass::value::Secret;

use crate::port::free_port;

pub(crate) struct Server {
    pub port: u16,
    directory: TempDir,
    sshd: Child,
}

impl Server {
    /// Starts with one user key, `id`, and an Ed25519 host key.
    pub(crate) fn start() -> Server {
        Server::with("")
    }

    /// With further lines of `sshd_config`; `DIR` in them is the server's directory.
    pub(crate) fn with(lines: &str) -> Server {
        Server::prepared(lines, |_| {})
    }

    /// As [`Server::with`]; `prepare` makes files in the directory before the server starts.
    pub(crate) fn prepared(lines: &str, prepare: impl FnOnce(&Path)) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        keygen(&["-t", "ed25519", "-N", "", "-f", &at(path, "host_ed25519")]);
        keygen(&["-t", "ed25519", "-N", "", "-f", &at(path, "id")]);
        fs::copy(path.join("id.pub"), path.join("authorized_keys")).unwrap();
        prepare(path);
        // OpenSSH's own separation of privileges needs it.
        fs::create_dir_all("/run/sshd").unwrap();
        let port = free_port();
        let defaults = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n\
             HostKey {0}\nAuthorizedKeysFile {1}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             MaxStartups 100:30:200\nSetEnv HOME={2}\n",
            at(path, "host_ed25519"),
            at(path, "authorized_keys"),
            // Without the start-up files of whoever runs the tests: they print, and race.
            at(path, "")
        );
        // The first value counts in sshd_config, too.
        fs::write(path.join("sshd_config"), format!("{}\n{defaults}", lines.replace("DIR", &at(path, "")))).unwrap();
        let log = fs::File::create(path.join("log")).unwrap();
        let sshd = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &at(path, "sshd_config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("openssh-server is installed");
        let mut server = Server { port, directory, sshd };
        server.wait_until_it_listens();
        server.trust();
        server
    }

    fn wait_until_it_listens(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(self.sshd.try_wait().unwrap().is_none() && Instant::now() < deadline, "sshd: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap().trim().to_owned()
    }

    /// The name under which its key is recorded.
    pub(crate) fn name(&self) -> String {
        format!("[127.0.0.1]:{}", self.port)
    }

    /// Type and base64 of a public key file.
    pub(crate) fn public(&self, name: &str) -> String {
        self.read(name).split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Replaces the records of host keys.
    pub(crate) fn known(&self, lines: &str) {
        fs::write(self.path("known_hosts"), lines).unwrap();
    }

    /// Records the server's key as it should be.
    pub(crate) fn trust(&self) {
        self.known(&format!("{} {}\n", self.name(), self.public("host_ed25519.pub")));
    }

    /// A target that logs in with the key `id`, and knows nothing of the machine's own configuration.
    pub(crate) fn target(&self) -> Target {
        self.target_with(&format!("IdentityFile {}\n", self.path("id").display()))
    }

    /// As [`Server::target`], with these lines of client configuration instead of the key.
    pub(crate) fn target_with(&self, lines: &str) -> Target {
        let known = self.path("known_hosts");
        let config = self.path(&format!("config-{}", fs::read_dir(self.directory.path()).unwrap().count()));
        let text = format!(
            "{lines}\nMatch all\nIdentityAgent none\nUserKnownHostsFile {}\nGlobalKnownHostsFile none\n",
            known.display()
        );
        fs::write(&config, text).unwrap();
        Target {
            method: Method::Ssh,
            name: "web1".to_owned(),
            address: "127.0.0.1".to_owned(),
            port: Some(self.port),
            user: Some("root".to_owned()),
            connect_timeout: Some(Duration::from_secs(20)),
            config_file: Some(config),
            ..Target::default()
        }
    }

    /// Policy on host keys other than the default.
    pub(crate) fn target_checking(&self, policy: HostKeys) -> Target {
        Target { host_keys: Some(policy), ..self.target() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.sshd.kill().ok();
        self.sshd.wait().ok();
    }
}

/// A user of this machine with a password; it is removed with the value.
pub(crate) struct User {
    pub name: String,
}

pub(crate) const PASSWORD: &str = "a pass-word';$";

impl User {
    pub(crate) fn create(name: &str) -> User {
        let name = format!("wl{}{name}", std::process::id() % 100_000);
        Command::new("userdel").args(["-f", &name]).output().ok();
        let mut command = Command::new("useradd");
        let output = command.args(["-M", "-d", "/", "-s", "/bin/sh", &name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut chpasswd = Command::new("chpasswd").stdin(Stdio::piped()).spawn().unwrap();
        let line = format!("{name}:{PASSWORD}\n");
        chpasswd.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        assert!(chpasswd.wait().unwrap().success());
        User { name }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        Command::new("userdel").args(["-f", &self.name]).output().ok();
    }
}

/// A target that has a password and no key.
pub(crate) fn by_password(server: &Server, user: &User, password: &str) -> Target {
    Target {
        user: Some(user.name.clone()),
        password: Some(Secret::new(password)),
        ..server.target_with("IdentityFile none")
    }
}

pub(crate) fn keygen(arguments: &[&str]) {
    let output = Command::new("ssh-keygen").arg("-q").args(arguments).output().expect("openssh-client is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn at(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) async fn open(target: &Target) -> std::sync::Arc<dyn Connection> {
    windlass::connection::open(target).await.unwrap_or_else(|error| panic!("{error}: {error:?}"))
}

/// The words of the refusal, its hint after them.
pub(crate) async fn refusal(target: &Target) -> String {
    match windlass::connection::open(target).await.map(|connection| connection.description()) {
        Err(Error::Unreachable { message, hint }) => format!("{message} | {}", hint.unwrap_or_default()),
        other => panic!("it should be unreachable: {other:?}"),
    }
}
