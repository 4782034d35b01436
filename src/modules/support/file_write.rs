//! A file of the host that is to have a certain content: where exactly, what differs, and writing it.
//! What `copy`, `template` and `assemble` have in common.

use std::path::{Path, PathBuf};

use crate::modules::file_attributes::{self, DesiredAttributes, is_empty};
use crate::modules::file_diff::{self, Side};
use crate::modules::file_digest::{self, Digests};
use crate::modules::{Controller, Diff, Error, Outcome, Progress, host_links, host_path};
use crate::remote::{Attributes, Digest, ExpectedDigest, FileKind, Links, Probe, Remote, Stat};

/// Content from the controller.
#[derive(Clone)]
pub(in crate::modules) enum Content {
    Bytes(Vec<u8>),
    Local(PathBuf),
}

impl Content {
    pub(in crate::modules) async fn digests(&self, here: &Controller<'_>) -> Result<Digests, Error> {
        match self {
            Content::Bytes(bytes) => Ok(file_digest::of_bytes(bytes)),
            Content::Local(path) => here.caches.digests.of_file(path).await,
        }
    }

    async fn bytes(self) -> Result<Vec<u8>, Error> {
        match self {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Local(path) => read_controller_file(&path).await,
        }
    }

    async fn size(&self) -> Result<u64, Error> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.len() as u64),
            Content::Local(path) => match tokio::fs::metadata(path).await {
                Ok(meta) => Ok(meta.len()),
                Err(error) => Err(unreadable(path, &error)),
            },
        }
    }
}

/// Reads a file of the controller.
pub(in crate::modules) async fn read_controller_file(path: &Path) -> Result<Vec<u8>, Error> {
    tokio::fs::read(path).await.map_err(|error| unreadable(path, &error))
}

/// The destination of content, and the existing file.
#[derive(Debug)]
pub(in crate::modules) struct Destination {
    /// Never a directory.
    pub path: String,
    /// What is there, and its SHA-1 if it is a file.
    pub there: Option<(Stat, Option<String>)>,
    /// Directories that must be made first, outermost first.
    pub new_directories: Vec<String>,
    /// The missing parent directory that the task does not ask to create.
    missing_parent: Option<String>,
}

impl Destination {
    /// Resolves `dest`: into a directory, under `base_name`, if it is one or ends with a slash (which also
    /// asks for it to be made). `follow`: through a symbolic link to its target; otherwise the link is replaced.
    pub(in crate::modules) async fn find_destination(
        probe: &Probe,
        dest: &str,
        base_name: Option<&str>,
        follow: bool,
    ) -> Result<Destination, Error> {
        let dest = probe.expand_on_host(dest).await?;
        let is_directory = dest.ends_with('/');
        if is_directory {
            host_links::stat_target(probe, &dest).await?;
        }
        let mut path = if is_directory { into(&dest, base_name)? } else { dest };
        let mut there = look(probe, &mut path, follow).await?;
        if !is_directory && leads_to_directory(&there) {
            path = into(&path, base_name)?;
            there = look(probe, &mut path, follow).await?;
        }
        if leads_to_directory(&there) {
            return Err(Error::failed(format!("cannot write {path}: it is a directory")));
        }
        let (mut new_directories, mut missing_parent) = (Vec::new(), None);
        if there.is_none() {
            new_directories = missing_directories(probe, host_path::parent(&path)).await?;
            if !is_directory && !new_directories.is_empty() {
                missing_parent = Some(host_path::parent(&path).to_owned());
                new_directories.clear();
            }
        }
        let there = there.map(|seen| (seen.stat, seen.digest));
        Ok(Destination { path, there, new_directories, missing_parent })
    }

    /// A destination that was looked at already, in a directory that exists or will.
    pub(in crate::modules) fn known(path: String, there: Option<(Stat, Option<String>)>) -> Destination {
        Destination { path, there, new_directories: Vec::new(), missing_parent: None }
    }

    /// An error if the directory that must hold the file is missing. In check mode an earlier task would have created
    /// it, so the caller skips this check.
    pub(in crate::modules) fn check_parent(&self) -> Result<(), Error> {
        let Some(parent) = &self.missing_parent else { return Ok(()) };
        Err(Error::Failed {
            message: format!("cannot write {}: the directory {parent} does not exist", self.path),
            hint: Some(format!("create it with an earlier task: file: {{path: {parent}, state: directory}}")),
        })
    }

    fn stat(&self) -> Option<&Stat> {
        self.there.as_ref().map(|(stat, _)| stat)
    }

    fn digest(&self) -> Option<&str> {
        self.there.as_ref().and_then(|(_, digest)| digest.as_deref())
    }

    fn is_link(&self) -> bool {
        self.stat().is_some_and(|stat| stat.kind == FileKind::Link)
    }
}

/// How a file is to be.
pub(in crate::modules) struct DesiredFile<'a> {
    pub content: Content,
    pub wanted: &'a DesiredAttributes,
    /// For directories that are made on the way.
    pub directories: &'a DesiredAttributes,
    pub backup: bool,
    pub validate: Option<&'a str>,
    /// The content must not be shown.
    pub secret: bool,
    /// Whose content it is, for the diff.
    pub source: &'a str,
}

/// What is to be done to a file.
pub(in crate::modules) struct Write {
    pub path: String,
    /// Made first.
    pub directories: Vec<(String, Attributes)>,
    /// None: only the attributes change.
    pub content: Option<Content>,
    pub attributes: Attributes,
    pub back_up: bool,
    pub validate: Option<String>,
}

/// The difference between a write request and the present file.
pub(in crate::modules) struct FileDifference {
    pub digests: Digests,
    /// None: nothing.
    pub write: Option<Write>,
    pub diff: Vec<Diff>,
}

/// Compares a write request with the file at its destination.
pub(in crate::modules) async fn compare_file(
    probe: &Probe,
    here: &Controller<'_>,
    destination: &Destination,
    desired: DesiredFile<'_>,
) -> Result<FileDifference, Error> {
    if !here.check {
        destination.check_parent()?;
    }
    let digests = desired.content.digests(here).await?;
    let same = destination.digest() == Some(digests.sha1.as_str());
    let attributes = match destination.stat() {
        Some(stat) if !destination.is_link() => desired.wanted.lacking(stat),
        _ => desired.wanted.for_new(FileKind::File),
    };
    let mut diff = Vec::new();
    if !same && here.diff && !here.no_log {
        diff.push(content_diff(probe, destination, &desired).await?);
    }
    if let Some(stat) = destination.stat().filter(|_| !destination.is_link()) {
        diff.extend(file_attributes::attributes_diff(&destination.path, stat, &attributes).filter(|_| here.diff));
    }
    let directory = desired.directories.for_new(FileKind::Directory);
    let write = Write {
        path: destination.path.clone(),
        directories: destination.new_directories.iter().map(|path| (path.clone(), directory.clone())).collect(),
        content: (!same).then_some(desired.content),
        attributes,
        back_up: desired.backup && destination.digest().is_some(),
        validate: desired.validate.map(str::to_owned),
    };
    let needed = !same || !is_empty(&write.attributes);
    Ok(FileDifference { digests, write: needed.then_some(write), diff })
}

impl Write {
    /// Does it. Gives the path of the backup, if one was made.
    pub(in crate::modules) async fn apply_write(
        self,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> Result<Option<String>, Error> {
        Ok(self.put(remote, here).await?.0)
    }

    /// Applies the write, and returns the attributes of the file.
    pub(in crate::modules) async fn apply_and_tell(
        self,
        remote: &Remote,
        here: &Controller<'_>,
        digests: &Digests,
    ) -> Result<Outcome, Error> {
        let path = self.path.clone();
        let (backup, stat) = self.put(remote, here).await?;
        let outcome = write_outcome(&path, digests, backup, stat.is_none().then_some(&**remote)).await?;
        Ok(match stat {
            Some(stat) => file_attributes::add_attributes(outcome, &stat),
            None => outcome,
        })
    }

    /// The path of the backup, and the attributes of the file now, if the write returned them.
    async fn put(self, remote: &Remote, here: &Controller<'_>) -> Result<(Option<String>, Option<Stat>), Error> {
        for (path, attributes) in &self.directories {
            remote.make_directory(path, attributes).await?;
        }
        let Some(content) = self.content else {
            remote.set_attributes(&self.path, &self.attributes, Links::Follow).await?;
            return Ok((None, None));
        };
        let backup = match self.back_up {
            true => Some(remote.back_up(&self.path).await?),
            false => None,
        };
        let stat = match (content, self.validate) {
            (content, Some(validate)) => {
                let bytes = content.bytes().await?;
                remote.write_validated(&self.path, &bytes, &self.attributes, &validate).await?;
                None
            }
            (Content::Bytes(bytes), None) => Some(remote.write_and_stat(&self.path, &bytes, &self.attributes).await?),
            (Content::Local(file), None) => Some(upload(remote, here, &file, &self.path, &self.attributes).await?),
        };
        Ok((backup, stat))
    }
}

/// Sends a file of the controller, telling how far it is.
pub(in crate::modules) async fn upload(
    remote: &Remote,
    here: &Controller<'_>,
    file: &Path,
    path: &str,
    attributes: &Attributes,
) -> Result<Stat, Error> {
    let host = here.scope.get("inventory_hostname").map(ToString::to_string).unwrap_or_default();
    let what = format!("{} → {host}", file.file_name().unwrap_or_default().to_string_lossy());
    let tell = |done, total| (here.progress)(Progress { what: what.clone(), done, total });
    let digests = here.caches.digests.of_file(file).await?;
    Ok(remote.upload(file, ExpectedDigest::Sha1(&digests.sha1), path, attributes, &tell).await?)
}

/// What Ansible returns of a file that was or would be written. `probe`: None if it is not written yet.
pub(in crate::modules) async fn write_outcome(
    path: &str,
    digests: &Digests,
    backup: Option<String>,
    probe: Option<&Probe>,
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default().with("dest", path).with("checksum", digests.sha1.as_str());
    if let Some(backup) = backup {
        outcome = outcome.with("backup_file", backup);
    }
    let stat = match probe {
        Some(probe) => probe.stat(path, Links::Keep).await?,
        None => None,
    };
    Ok(match stat {
        Some(stat) => file_attributes::add_attributes(outcome, &stat),
        None => outcome,
    })
}

/// A directory that does not exist and those above it that do not, outermost first.
pub(in crate::modules) async fn missing_directories(probe: &Probe, path: &str) -> Result<Vec<String>, Error> {
    // Most are there; to know that needs no program on the host.
    if probe.is_directory(path).await? {
        return Ok(Vec::new());
    }
    let mut missing = Vec::new();
    let mut path = path;
    loop {
        match probe.stat(path, Links::Follow).await? {
            Some(stat) if stat.kind == FileKind::Directory => break,
            Some(_) => return Err(Error::failed(format!("{path} is not a directory"))),
            None => missing.push(path.to_owned()),
        }
        if matches!(path, "/" | ".") {
            break;
        }
        path = host_path::parent(path);
    }
    missing.reverse();
    Ok(missing)
}

struct Seen {
    stat: Stat,
    digest: Option<String>,
    to_directory: bool,
}

/// Reads the state of a path; `follow` replaces it by the target of a link.
async fn look(probe: &Probe, path: &mut String, follow: bool) -> Result<Option<Seen>, Error> {
    let Some((stat, digest)) = probe.stat_and_digest(path, Links::Keep, Digest::Sha1).await? else { return Ok(None) };
    if stat.kind != FileKind::Link {
        return Ok(Some(Seen { to_directory: stat.kind == FileKind::Directory, stat, digest }));
    }
    let target = probe.stat_and_digest(path, Links::Follow, Digest::Sha1).await?;
    let to_directory = target.as_ref().is_some_and(|(stat, _)| stat.kind == FileKind::Directory);
    if !follow && !to_directory {
        return Ok(Some(Seen { stat, digest: None, to_directory }));
    }
    // Also files in a directory that the link leads to.
    let real = host_links::real_path(probe, path).await?;
    if to_directory {
        return Ok(Some(Seen { stat, digest: None, to_directory }));
    }
    *path = real;
    Ok(target.map(|(stat, digest)| Seen { stat, digest, to_directory: false }))
}

fn leads_to_directory(seen: &Option<Seen>) -> bool {
    seen.as_ref().is_some_and(|seen| seen.to_directory)
}

fn into(directory: &str, base_name: Option<&str>) -> Result<String, Error> {
    match base_name {
        Some(name) => Ok(host_path::join_path(directory, name)),
        None => Err(Error::failed(format!("cannot write content to {directory}: it is a directory"))),
    }
}

async fn content_diff(probe: &Probe, destination: &Destination, desired: &DesiredFile<'_>) -> Result<Diff, Error> {
    if desired.secret {
        return Ok(file_diff::hidden(&destination.path));
    }
    let old = match destination.there.as_ref() {
        Some((stat, Some(_))) if stat.size <= file_diff::LONGEST => probe.read_file(&destination.path).await?,
        _ => None,
    };
    let before = match (destination.there.as_ref(), &old) {
        (_, Some(old)) => Side::Text(old),
        (Some((stat, Some(_))), None) => Side::Long(stat.size),
        _ => Side::Nothing,
    };
    let size = desired.content.size().await?;
    let new = match size <= file_diff::LONGEST {
        true => Some(desired.content.clone().bytes().await?),
        false => None,
    };
    let after = new.as_deref().map_or(Side::Long(size), Side::Text);
    Ok(file_diff::content(&destination.path, &before, desired.source, &after))
}

/// A file of the controller that cannot be read.
pub(in crate::modules) fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot read {} on the controller: {error}", path.display()))
}
