//! One host: [`Probe`] looks at it, [`Remote`] touches it. Below both is one long-lived `sh` per (host, become
//! user), which needs nothing on the host but POSIX sh and the usual small tools (coreutils or busybox).
//!
//! What a user may see: programs run with the login's umask and language; `/usr/local/sbin`, `/usr/sbin` and `/sbin` are
//! always in PATH. A session keeps a directory `.windlass.*` while it lives: root in /run, others in their own
//! $XDG_RUNTIME_DIR, or in /dev/shm. A file being written is
//! `.windlass.*` beside its target. Only a power cut, or a `kill -9` of the session's shell, can leave either there.

mod becoming;
mod change;
mod download;
mod execute;
mod facts;
mod frames;
mod job;
mod lease;
pub mod lock;
mod probe;
mod quote;
mod session;
mod sessions;
mod startup_output;
mod stat;
#[cfg(test)]
mod tests;
mod upload;
mod write;

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::value::Secret;

pub use facts::gathers;
pub use job::{HostTime, JobPlace, JobResult, JobState};
pub use lease::{DeploymentLease, Lease, LockProof, RootSessions, uptime};
pub use sessions::Sessions;
pub use upload::ExpectedDigest;

/// The shell function `wl_flush FILE`.
pub const FLUSH: &str = include_str!("flush.sh");

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
    /// The host cannot be used: unreachable, or its connection was lost.
    #[error(transparent)]
    Connection(#[from] crate::connection::Error),
    /// sudo or su said no.
    #[error("cannot become {user}: {reason}")]
    Become { user: String, reason: String, hint: Option<String> },
    /// The host answered that it cannot: `cannot write /etc/x: No space left on device`.
    #[error("cannot {what}: {reason}")]
    Refused { what: String, reason: String },
    #[error("{what} timed out after {limit:?}")]
    TimedOut { what: String, limit: Duration },
}

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Connection(crate::connection::Error::Unreachable { hint, .. }) | Error::Become { hint, .. } => {
                hint.clone()
            }
            Error::Refused { reason, .. } => advice(reason).map(str::to_owned),
            Error::Connection(_) | Error::TimedOut { .. } => None,
        }
    }
}

/// What helps against a tool's reason.
fn advice(reason: &str) -> Option<&'static str> {
    let has = |words: &str| reason.contains(words);
    if has("No space left on device") {
        Some("free disk space on the host (df -h and df -i show which file system is full), then run it again")
    } else if has("Permission denied") || has("Operation not permitted") {
        Some("the task may need become: true, or another become_user")
    } else if has("Read-only file system") {
        Some("the file system is mounted read-only, on purpose or after disk errors (see dmesg)")
    } else if has(" is not a directory that only ") {
        Some("another user may have changed its content: check it, then chown it to root and chmod it to 0755")
    } else if has("invalid user") || has("invalid group") || has("unknown user") || has("unknown group") {
        Some("create it with an earlier task: user or group")
    } else {
        None
    }
}

/// Looks at a host as a user of it. Has no verb that writes.
#[derive(Clone)]
pub struct Probe {
    sessions: Arc<Sessions>,
    user: Option<Become>,
    account: Arc<session::Account>,
    /// For every command.
    environment: Arc<IndexMap<String, String>>,
}

/// Touches a host: all that [`Probe`] can, and writing.
#[derive(Clone)]
pub struct Remote {
    probe: Probe,
}

impl std::ops::Deref for Remote {
    type Target = Probe;
    fn deref(&self) -> &Probe {
        &self.probe
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
    pub what: RemoteErrorKind,
    pub directory: Option<String>,
    /// On top of the session's own environment (the task's `environment`).
    pub environment: IndexMap<String, String>,
    pub stdin: Option<Vec<u8>>,
    /// Its process group is ended when it takes longer.
    pub limit: Option<Duration>,
}

#[derive(Debug, Clone)]
pub enum RemoteErrorKind {
    /// A program and its arguments, no shell.
    Program(Vec<String>),
    /// A line for a shell (`/bin/sh` unless named).
    Shell { line: String, executable: Option<String> },
}

impl Default for RemoteErrorKind {
    fn default() -> Self {
        RemoteErrorKind::Program(Vec::new())
    }
}

impl Command {
    pub fn program<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Command { what: RemoteErrorKind::Program(argv.into_iter().map(Into::into).collect()), ..Command::default() }
    }
    pub fn shell(line: impl Into<String>) -> Self {
        Command { what: RemoteErrorKind::Shell { line: line.into(), executable: None }, ..Command::default() }
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

/// The host's refusal, from a tool's words on stderr: `mv: cannot move 'a' to 'b': Permission denied`.
fn refused(what: impl Into<String>, stderr: &[u8]) -> Error {
    let words = String::from_utf8_lossy(stderr);
    let line = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no error message");
    let reason = match line.rsplit_once(": ") {
        // `chown: invalid user: 'nobody-there'`: the name alone is not a reason.
        Some((before, name)) if name.starts_with(['\'', '‘', '"']) => {
            before.find(": ").map_or(line, |colon| &line[colon + 2..])
        }
        Some((_, reason)) => reason,
        None => line,
    };
    // dash's own words for it.
    let reason = match reason {
        "Directory nonexistent" | "nonexistent directory" => "No such file or directory",
        reason => reason,
    };
    Error::Refused { what: what.into(), reason: reason.to_owned() }
}
