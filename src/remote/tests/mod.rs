//! Sessions against this very computer, in every kind of shell that a host may have.

mod commands;
mod distrust;
mod files;
mod jobs;
mod locks;
mod spool;
mod users;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use async_trait::async_trait;

use super::*;
use crate::connection::local::Local;
use crate::connection::{self, Connection, Process, Stream};
use crate::value::ProcessEnvironment;

/// The kinds of `sh` that hosts have.
pub(super) const SHELLS: [&str; 3] = ["dash", "bash", "busybox"];

/// This computer, with another `sh` in front of its PATH.
#[derive(Debug)]
pub(super) struct Host {
    local: Local,
    shell: &'static str,
    bin: tempfile::TempDir,
    /// What the login's start files do.
    start: &'static str,
}

impl Host {
    pub(super) fn new(shell: &'static str) -> Arc<Host> {
        let bin = tempfile::tempdir().unwrap();
        // Each is called `sh`, and behaves so.
        std::os::unix::fs::symlink(format!("/usr/bin/{shell}"), bin.path().join("sh")).unwrap();
        std::fs::set_permissions(bin.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Arc::new(Host { local: Local::new("here", Arc::new(ProcessEnvironment::of_process())), shell, bin, start: ":" })
    }

    fn starting_with(start: &'static str) -> Arc<Host> {
        let host = Arc::into_inner(Host::new("dash")).unwrap();
        Arc::new(Host { start, ..host })
    }
}

#[async_trait]
impl Connection for Host {
    async fn start(&self, line: &str) -> Result<Process, connection::Error> {
        self.local.start(&format!("PATH={}:$PATH; {}; {line}", self.bin.path().display(), self.start)).await
    }
    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, connection::Error> {
        self.local.tunnel(host, port).await
    }
    fn capacity(&self) -> usize {
        self.local.capacity()
    }
    fn is_closed(&self) -> bool {
        self.local.is_closed()
    }
    fn description(&self) -> String {
        format!("local {}", self.shell)
    }
    async fn close(&self) {
        self.local.close().await;
    }
}

pub(super) async fn remote(shell: &'static str) -> Remote {
    Remote::open(&Sessions::new(Host::new(shell)), None, &IndexMap::new()).await.unwrap()
}

/// A directory, and paths in it as text.
pub(super) struct Place(tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
    pub(super) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
    /// Names in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Uploads a file under the digest that it has.
pub(super) async fn upload(remote: &Remote, from: &Path, path: &str, attributes: &Attributes) -> Result<Stat, Error> {
    remote
        .upload(
            from,
            ExpectedDigest::Sha1(&sha1(&std::fs::read(from).unwrap_or_default())),
            path,
            attributes,
            &|_, _| (),
        )
        .await
}

pub(super) fn sha1(content: &[u8]) -> String {
    use sha1::Digest;
    sha1::Sha1::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn shell(line: &str) -> Command {
    Command::shell(line)
}

pub(super) async fn sh(remote: &Remote, line: &str) -> Output {
    remote.run(&shell(line)).await.unwrap()
}

pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
