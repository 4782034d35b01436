//! Ways to a host: `ssh` and `local`. Moves bytes; knows no tasks, variables, become or check mode.

mod address;
mod config;
mod confinement;
pub mod known_hosts;
pub mod local;
mod network;
mod offline;
mod ssh;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

pub use address::SshAddress;
pub use config::CONNECT_TIMEOUT;
pub use confinement::Confinement;
pub use offline::Fence;
pub use ssh::{ShownHostKey, SigningKey, key_fingerprint_of, scan_host_key};

use crate::value::{ProcessEnvironment, Secret};

/// How a host is reached, all variables already looked up. What is `None` comes from `~/.ssh/config`, then from defaults.
///
/// The default reaches nothing: name and address are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Target {
    pub method: Method,
    /// The inventory's name of the host, for messages.
    pub name: String,
    /// Address or alias, as one would give it to `ssh`.
    pub address: String,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub private_key_file: Option<PathBuf>,
    pub private_key_passphrase: Option<Secret>,
    /// A key as text, offered before all others.
    pub private_key: Option<Secret>,
    /// What the host's key must be: `SHA256:...`. Known hosts are not asked then.
    pub fingerprint: Option<String>,
    pub host_keys: Option<HostKeys>,
    /// `-o` options and the like of `ansible_ssh_common_args` and `ansible_ssh_extra_args`, as written.
    pub arguments: String,
    pub connect_timeout: Option<Duration>,
    pub retries: u32,
    /// Instead of `~/.ssh/config`; for tests and `-F`.
    pub config_file: Option<PathBuf>,
    /// The run is for a foreign resource: only these settings apply, no file, key, agent or program of this
    /// side; the host's key must be pinned; and the connection goes to addresses that are within only.
    pub confined: Option<Arc<Confinement>>,
    /// The environment and the home directory that OpenSSH's configuration refers to.
    pub surroundings: Arc<ProcessEnvironment>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Method {
    #[default]
    Ssh,
    Local,
}

/// What to do about host keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostKeys {
    /// An unknown key is refused.
    Strict,
    /// An unknown key is recorded; a changed one is refused.
    AcceptNew,
    /// Any key except a revoked one is accepted, because the user explicitly configured it. A host whose key has changed
    /// gets no password, and the agent is not asked.
    Off,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host cannot be reached or does not let us in: Ansible's "unreachable".
    #[error("{message}")]
    Unreachable { message: String, hint: Option<String> },
    /// The connection was lost in the middle.
    #[error("lost the connection to {name}: {reason}")]
    Lost { name: String, reason: String },
    #[error("cannot start {what:?}: {reason}")]
    Start { what: String, reason: String },
    /// The host's SSH server opens no tunnels for this login.
    #[error("cannot start {what:?}: {reason}")]
    NoTunnels { what: String, reason: String },
}

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Both directions of a byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A program started on the far end.
pub struct Process {
    /// Dropping it, or shutting it down, is end of file over there.
    pub stdin: Writer,
    pub stdout: Reader,
    pub stderr: Reader,
    /// Resolves when the program ended. No exit status at all is [`Error::Lost`].
    pub exit: BoxFuture<'static, Result<Exit, Error>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(String),
}

/// An open way to a host. Dropping the last of it ends what was started through it, as dropping a [`Process`] ends that
/// one: it gets end of file and, if it still runs, a signal. (OpenSSH passes no signals on to programs of root, so what
/// is to end for certain must read its input.)
#[async_trait]
pub trait Connection: Send + Sync + fmt::Debug {
    /// Starts a program from a line for the login user's shell.
    async fn start(&self, line: &str) -> Result<Process, Error>;

    /// Opens a TCP connection from the host to an address as the host sees it. Nothing on the host is needed for it.
    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error>;

    /// Refuses an address that a run may not connect to ([`Fence`]). [`Connection::tunnel`] does not check this: whether an
    /// address is a target of the run is known only to the caller.
    fn may_reach(&self, _host: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Whether a server of the host's runs what is started, and ends it all when it ends.
    fn is_ssh(&self) -> bool {
        false
    }

    /// Why no password may be sent to the host, although the connection was allowed: its key has changed.
    fn distrust(&self) -> Option<&str> {
        None
    }

    /// Whether it serves a foreign resource: then nothing that is read over it or given with it may have this
    /// machine run programs or read files.
    fn is_confined(&self) -> bool {
        false
    }

    /// How many programs may run through it at once.
    fn capacity(&self) -> usize;

    /// Whether it was lost or closed.
    fn is_closed(&self) -> bool;

    /// `ssh deploy@10.0.0.1:22`, for messages.
    fn description(&self) -> String;

    async fn close(&self);
}

/// Opens connections for a run. [`Connectors`] is what runs use; hosts that exist in memory only are for benchmarks.
#[async_trait]
pub trait Open: Send + Sync {
    async fn open(&self, target: &Target) -> Result<Arc<dyn Connection>, Error>;

    /// Receives an address that a host of the inventory reports as its own.
    fn admit(&self, _address: &str) {}
}

/// The ways of this folder.
pub struct Connectors;

#[async_trait]
impl Open for Connectors {
    async fn open(&self, target: &Target) -> Result<Arc<dyn Connection>, Error> {
        open(target).await
    }
}

/// Opens a connection.
///
/// For SSH, what the target says counts before the options in `arguments`, these before `~/.ssh/config` and
/// `/etc/ssh/ssh_config`, and those before the defaults.
pub async fn open(target: &Target) -> Result<Arc<dyn Connection>, Error> {
    match target.method {
        Method::Local => Ok(Arc::new(local::Local::of_target(target))),
        Method::Ssh => ssh::connect_ssh(target).await,
    }
}
