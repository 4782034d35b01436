//! One host: [`Probe`] looks at it, [`Remote`] touches it. Below both is one long-lived `sh` per (host, become
//! user), which needs nothing on the host but POSIX sh and the usual small tools (coreutils or busybox).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::connection::{Connection, Stream};
use crate::value::{Secret, Vars};

/// Another user on the host, and how to become it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Become {
    pub method: Method,
    pub user: String,
    pub password: Option<Secret>,
    /// Instead of `sudo` or `su`.
    pub executable: Option<String>,
    /// Further arguments, as written in `become_flags`.
    pub flags: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Sudo,
    Su,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host is gone: unreachable, or lost in the middle.
    #[error(transparent)]
    Connection(#[from] crate::connection::Error),
    /// sudo or su said no.
    #[error("cannot become {user}: {reason}")]
    Become { user: String, reason: String, hint: Option<String> },
    /// The host answered that it cannot: `cannot write /etc/x: No space left on device`.
    #[error("cannot {what}: {reason}")]
    Refused { what: String, reason: String },
    #[error("{what} did not end within {limit:?}")]
    TimedOut { what: String, limit: Duration },
}

/// All sessions of one host. An idle session is used again; while all are busy a further one is opened,
/// up to what the connection allows.
pub struct Sessions {}

impl Sessions {
    pub fn new(connection: Arc<dyn Connection>) -> Arc<Self> {
        let _ = connection;
        todo!()
    }

    pub fn connection(&self) -> &Arc<dyn Connection> {
        todo!()
    }

    /// Ends every session, and what still runs in them.
    pub async fn close(&self) {
        todo!()
    }
}

/// Looks at a host as a user of it. Has no verb that writes.
#[derive(Clone)]
pub struct Probe {}

/// Touches a host: all that [`Probe`] can, and writing.
pub struct Remote {}

impl std::ops::Deref for Remote {
    type Target = Probe;
    fn deref(&self) -> &Probe {
        todo!()
    }
}

/// What a path is.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    pub kind: FileKind,
    /// The lower 12 bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    pub group: String,
    pub size: u64,
    pub inode: u64,
    pub device: u64,
    pub links: u64,
    /// Seconds since 1970.
    pub atime: f64,
    pub mtime: f64,
    pub ctime: f64,
    /// Of a symbolic link.
    pub link_target: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Character,
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct Command {
    pub what: What,
    pub directory: Option<String>,
    /// On top of the session's own environment (the task's `environment`).
    pub environment: IndexMap<String, String>,
    pub stdin: Option<Vec<u8>>,
    /// Its process group is ended when it takes longer.
    pub limit: Option<Duration>,
}

#[derive(Debug, Clone)]
pub enum What {
    /// A program and its arguments, no shell.
    Program(Vec<String>),
    /// A line for a shell (`/bin/sh` unless named).
    Shell { line: String, executable: Option<String> },
}

impl Default for What {
    fn default() -> Self {
        What::Program(Vec::new())
    }
}

impl Command {
    pub fn program<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Command { what: What::Program(argv.into_iter().map(Into::into).collect()), ..Command::default() }
    }
    pub fn shell(line: impl Into<String>) -> Self {
        Command { what: What::Shell { line: line.into(), executable: None }, ..Command::default() }
    }
}

/// What a command left. A program that is not there gives code 127 and the shell's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Owner, group and permissions to set; `None`: leave as they are (or the umask's for a new file).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Name or number.
    pub owner: Option<String>,
    pub group: Option<String>,
    pub mode: Option<u32>,
}

impl Probe {
    /// None: there is nothing at the path (or a part of it is missing).
    pub async fn stat(&self, path: &str, links: Links) -> Result<Option<Stat>, Error> {
        let _ = (path, links);
        todo!()
    }

    /// Stat and digest in one request; the digest only of a regular file.
    pub async fn stat_and_digest(
        &self,
        path: &str,
        links: Links,
        digest: Digest,
    ) -> Result<Option<(Stat, Option<String>)>, Error> {
        let _ = (path, links, digest);
        todo!()
    }

    /// Lower-case hex. None: no such file.
    pub async fn digest(&self, path: &str, digest: Digest) -> Result<Option<String>, Error> {
        let _ = (path, digest);
        todo!()
    }

    /// The whole file. None: no such file.
    pub async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let _ = path;
        todo!()
    }

    /// Copies a file of the host to the controller, through a temporary file beside `to`.
    pub async fn download(&self, path: &str, to: &Path) -> Result<(), Error> {
        let _ = (path, to);
        todo!()
    }

    /// The names in a directory, sorted, without `.` and `..`. None: no such directory.
    pub async fn list(&self, path: &str) -> Result<Option<Vec<String>>, Error> {
        let _ = path;
        todo!()
    }

    /// Runs a command that only asks. The type cannot know: it is the caller's word.
    pub async fn query(&self, command: &Command) -> Result<Output, Error> {
        let _ = command;
        todo!()
    }

    /// Absolute path of a program, if it is in the session's PATH (with the sbin directories).
    pub async fn which(&self, program: &str) -> Result<Option<String>, Error> {
        let _ = program;
        todo!()
    }

    /// `~` and `~user` at the beginning, as the session's user has them.
    pub async fn expand(&self, path: &str) -> Result<String, Error> {
        let _ = path;
        todo!()
    }

    /// The user that the session runs as.
    pub fn user(&self) -> &str {
        todo!()
    }

    /// A TCP connection from the host.
    pub async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        let _ = (host, port);
        todo!()
    }

    /// Facts under Ansible's names, with the `ansible_` prefix. `subset` as `gather_subset` has it; empty: all.
    pub async fn facts(&self, subset: &[String]) -> Result<Vars, Error> {
        let _ = subset;
        todo!()
    }
}

impl Remote {
    /// Opens a session for a user of the host. `environment` goes to every command.
    pub async fn open(
        sessions: &Arc<Sessions>,
        user: Option<&Become>,
        environment: &IndexMap<String, String>,
    ) -> Result<Remote, Error> {
        let _ = (sessions, user, environment);
        todo!()
    }

    /// Only the looking half, for check mode and `plan`.
    pub fn probe(&self) -> &Probe {
        self
    }

    /// Runs a command.
    pub async fn run(&self, command: &Command) -> Result<Output, Error> {
        let _ = command;
        todo!()
    }

    /// Writes a file whole or not at all: temporary file beside it, attributes set, flushed, renamed over.
    /// A file that was there keeps its owner and mode where `attributes` say nothing.
    pub async fn write(&self, path: &str, content: &[u8], attributes: &Attributes) -> Result<(), Error> {
        let _ = (path, content, attributes);
        todo!()
    }

    /// As [`Remote::write`], from a file of the controller; its digest is checked on arrival.
    pub async fn upload(&self, from: &Path, path: &str, attributes: &Attributes) -> Result<(), Error> {
        let _ = (from, path, attributes);
        todo!()
    }

    /// As [`Remote::write`], but runs `validate` (`%s` is the new file's path) before the rename; its failure leaves
    /// the old file as it was.
    pub async fn write_validated(
        &self,
        path: &str,
        content: &[u8],
        attributes: &Attributes,
        validate: &str,
    ) -> Result<(), Error> {
        let _ = (path, content, attributes, validate);
        todo!()
    }

    pub async fn set_attributes(&self, path: &str, attributes: &Attributes, links: Links) -> Result<(), Error> {
        let _ = (path, attributes, links);
        todo!()
    }

    /// Copies a file aside: `path.PID.2026-11-20@10:00:00~`, as Ansible names it. Gives the new path.
    pub async fn back_up(&self, path: &str) -> Result<String, Error> {
        let _ = path;
        todo!()
    }

    /// With parents.
    pub async fn make_directory(&self, path: &str, attributes: &Attributes) -> Result<(), Error> {
        let _ = (path, attributes);
        todo!()
    }

    /// A new directory that only this user can enter, removed when the session ends.
    pub async fn temporary_directory(&self) -> Result<String, Error> {
        todo!()
    }

    /// Replaces whatever non-directory is at `path`.
    pub async fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        let _ = (target, path);
        todo!()
    }

    /// Removes a file, a link, or a directory with all that is in it. Nothing there is no error.
    pub async fn remove(&self, path: &str) -> Result<(), Error> {
        let _ = path;
        todo!()
    }
}
