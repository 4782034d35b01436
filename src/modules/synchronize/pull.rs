//! From the host: many small files come in one archive, large ones separately. All is kept in one directory at the
//! destination until it is whole, then renamed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::compare::{Action, SyncPlan, SyncStep};
use super::tree::TreeEntryKind;
use crate::modules::{Error, host_path};
use crate::remote::{Command, Remote};

/// A larger file is sent separately.
const LARGE: u64 = 2 << 20;
/// Content of one request, in bytes.
const BATCH: u64 = 16 << 20;

/// Files of the host on their way to a directory of the controller.
pub(crate) struct Pull {
    /// The directory of the host that the paths are below, or that of the one file.
    pub from: String,
    /// The name of the one file, if it is one.
    pub single: Option<String>,
    /// Whether what links lead to is taken.
    pub follow: bool,
    /// Exists.
    pub root: PathBuf,
    pub difference: SyncPlan,
}

impl Pull {
    pub(crate) async fn apply_pull(self, remote: &Remote) -> Result<(), Error> {
        for path in &self.difference.first_removed {
            remove(&self.root.join(path))?;
        }
        let new = self.difference.steps.iter().filter(|step| step.action == Action::MakeDirectory);
        for step in new.filter(|step| !step.path.is_empty()) {
            let path = self.root.join(&step.path);
            fs::DirBuilder::new().mode(0o700).create(&path).map_err(failed("make", &path))?;
        }
        let stage = tempfile::Builder::new().prefix(".windlass.").tempdir_in(&self.root);
        let stage = stage.map_err(failed("write to", &self.root))?;
        let files: Vec<&SyncStep> = self.sent().filter(|step| step.what == TreeEntryKind::File).collect();
        let (small, large): (Vec<&SyncStep>, Vec<&SyncStep>) = files.into_iter().partition(|step| step.size <= LARGE);
        let mut batch = Vec::new();
        let mut bytes = 0;
        for step in small {
            batch.push(step);
            bytes += step.size;
            if bytes >= BATCH {
                self.fetch(remote, stage.path(), &batch).await?;
                (batch, bytes) = (Vec::new(), 0);
            }
        }
        self.fetch(remote, stage.path(), &batch).await?;
        for step in large {
            let new = stage.path().join("large");
            remote.download(&host_path::join_path(&self.from, self.source(step)), &new).await?;
            self.place(&new, step)?;
        }
        for step in self.sent() {
            if let TreeEntryKind::Link(target) = &step.what {
                let new = stage.path().join("link");
                symlink(target, &new).map_err(failed("make", &new))?;
                self.place(&new, step)?;
            }
        }
        drop(stage);
        self.finish()?;
        flush(&self.root).map_err(failed("write to the disk", &self.root))
    }

    fn sent(&self) -> impl Iterator<Item = &SyncStep> {
        self.difference.steps.iter().filter(|step| step.action == Action::Send)
    }

    /// The path of a step on the host.
    fn source<'a>(&'a self, step: &'a SyncStep) -> &'a str {
        self.single.as_deref().unwrap_or(&step.path)
    }

    async fn fetch(&self, remote: &Remote, stage: &Path, batch: &[&SyncStep]) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let list: String = batch.iter().map(|step| format!("./{}\0", self.source(step))).collect();
        let follow = if self.follow { "-chf" } else { "-cf" };
        let command = Command {
            directory: Some(self.from.clone()),
            stdin: Some(list.into_bytes()),
            ..Command::program(["xargs", "-0", "tar", follow, "-", "--"])
        };
        let output = remote.query(&command).await?;
        if output.code != 0 {
            let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Err(Error::failed(format!("cannot read {} on the host: {words}", self.from)));
        }
        let asked = batch.iter().map(|step| self.source(step)).collect();
        let mut came = unpack(&output.stdout, stage, &asked).map_err(failed("unpack into", stage))?;
        for step in batch {
            let source = self.source(step);
            let new = came.remove(source).ok_or_else(|| {
                let path = host_path::join_path(&self.from, source);
                Error::failed(format!("the host did not send {path}: it may have been removed meanwhile"))
            })?;
            self.place(&new, step)?;
        }
        Ok(())
    }

    /// Puts what came into its place, with its attributes.
    fn place(&self, new: &Path, step: &SyncStep) -> Result<(), Error> {
        let path = self.root.join(&step.path);
        set_attributes(new, step)?;
        fs::rename(new, &path).map_err(failed("write", &path))
    }

    fn finish(&self) -> Result<(), Error> {
        for path in &self.difference.last_removed {
            remove(&self.root.join(path))?;
        }
        for step in self.difference.steps.iter().filter(|step| step.action != Action::Send).rev() {
            set_attributes(&self.root.join(&step.path), step)?;
        }
        for (path, time) in &self.difference.touched {
            set_time(&self.root.join(path), *time)?;
        }
        Ok(())
    }
}

/// Has all that was written to the file system of a directory written to its disk: once, for thousands of files.
fn flush(directory: &Path) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let directory = fs::File::open(directory)?;
    // SAFETY: syncfs(2) takes a descriptor, which is open for as long as `directory` lives.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    let failed = unsafe { libc::syncfs(directory.as_raw_fd()) } != 0;
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Unpacks archives, one after the other, into files with numbers for names; gives these by the path in the archive.
/// No path in an archive can point elsewhere, and what was not asked for, or comes again, is left out: a link of a few bytes becomes a
/// file of its own here.
pub(super) fn unpack(bytes: &[u8], stage: &Path, asked: &HashSet<&str>) -> std::io::Result<HashMap<String, PathBuf>> {
    let mut archive = tar::Archive::new(bytes);
    archive.set_ignore_zeros(true);
    let mut came: HashMap<String, PathBuf> = HashMap::new();
    let name = |bytes: &[u8]| {
        let path = String::from_utf8_lossy(bytes).into_owned();
        path.strip_prefix("./").map_or(path.clone(), str::to_owned)
    };
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = name(&entry.path_bytes());
        if !asked.contains(path.as_str()) || came.contains_key(&path) {
            continue;
        }
        let new = stage.join(number.to_string());
        let kind = entry.header().entry_type();
        if kind.is_hard_link() {
            // The second name of a file that is in the archive already.
            let first = entry.link_name_bytes().map(|bytes| name(&bytes)).and_then(|first| came.get(&first).cloned());
            let first = first.ok_or_else(|| {
                std::io::Error::other(format!("{path} is a link to a file that the host did not send"))
            })?;
            fs::copy(first, &new)?;
        } else if kind.is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            fs::write(&new, content)?;
        } else {
            continue;
        }
        came.insert(path, new);
    }
    Ok(came)
}

/// Owner before permissions: changing the owner clears bits.
fn set_attributes(path: &Path, step: &SyncStep) -> Result<(), Error> {
    let is_link = matches!(step.what, TreeEntryKind::Link(_));
    if let Some((user, group)) = step.owner {
        let done = if is_link { lchown(path, Some(user), Some(group)) } else { chown(path, Some(user), Some(group)) };
        done.map_err(failed("set the owner of", path))?;
    }
    if is_link {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(step.mode)).map_err(failed("set the mode of", path))?;
    match step.mtime {
        Some(time) if step.what == TreeEntryKind::File => set_time(path, time),
        _ => Ok(()),
    }
}

fn set_time(path: &Path, seconds: i64) -> Result<(), Error> {
    let since = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { SystemTime::UNIX_EPOCH - since } else { SystemTime::UNIX_EPOCH + since };
    let file = fs::File::open(path).map_err(failed("set the time of", path))?;
    file.set_modified(time).map_err(failed("set the time of", path))
}

fn remove(path: &Path) -> Result<(), Error> {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let done = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(failed("remove", path)),
    }
}

fn failed(what: &str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::failed(format!("cannot {what} {} on the controller: {error}", path.display()))
}
