//! Backups of etcd in a directory of this machine: each a directory with the compressed snapshot and a manifest. It gets its name
//! when it is complete.

mod error;
mod staging;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use error::BackupError;
pub(super) use error::io_error;
pub(super) use staging::{PARTIAL, Staging, prepare_directory, remove_abandoned};

use super::contract::{Reported, StatusNumber};
use super::plan::digest_to_hex;

const SNAPSHOT: &str = "snapshot.db.zst";
const MANIFEST: &str = "manifest.json";
/// etcd appends the SHA-256 of the database to a snapshot.
const DIGEST: u64 = 32;
const LAYOUT: u32 = 1;
const LARGEST_MANIFEST: u64 = 1 << 20;

/// What `etcd-backup.yml` reported of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotReport {
    pub layout: u32,
    pub cluster: String,
    pub cluster_id: String,
    pub host: String,
    pub member: String,
    pub is_leader: bool,
    pub members: Vec<String>,
    /// How many members' hashes at the snapshot's revision were compared, and agree.
    pub compared: u64,
    /// How many members are a majority of the cluster, or of the inventory's hosts if these are more.
    pub majority: u64,
    /// Whether the member knows a leader. Without one, the newest writes may be missing in its snapshot.
    pub has_leader: bool,
    pub etcd_version: String,
    pub revision: StatusNumber,
    pub keys: StatusNumber,
    pub sha256: String,
    /// When a host took it as a local backup, in seconds since 1970. None: it was taken now.
    #[serde(default)]
    pub taken: Option<StatusNumber>,
}

impl Reported for SnapshotReport {
    const PLAYBOOK: &'static str = "etcd-backup.yml";
    const VARIABLE: &'static str = "windlass_etcd_backup";
    const LAYOUT: u32 = 3;
}

/// The manifest next to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub layout: u32,
    pub deployment: String,
    pub cluster: String,
    /// In hexadecimal.
    pub cluster_id: String,
    /// The member that the snapshot was taken from.
    pub member: String,
    pub is_leader: bool,
    pub members: Vec<String>,
    pub compared: u64,
    /// Whether the member knew a leader.
    #[serde(default = "yes")]
    pub has_leader: bool,
    pub etcd_version: String,
    pub windlass_version: String,
    /// Seconds since 1970.
    pub taken: u64,
    pub revision: u64,
    pub keys: u64,
    /// Of the snapshot before it was compressed.
    pub size: u64,
    pub sha256: String,
    pub compressed_size: u64,
    pub compressed_sha256: String,
}

fn yes() -> bool {
    true
}

/// A backup in a directory.
#[derive(Debug, Clone)]
pub struct Backup {
    pub name: String,
    pub path: PathBuf,
    /// Why it is not usable otherwise.
    pub manifest: Result<Manifest, String>,
}

/// A backup that was made, and those that were removed.
#[derive(Debug)]
pub struct BackupResult {
    pub backup: Backup,
    pub manifest: Manifest,
    pub removed: Vec<String>,
    /// It was in the directory before: a local backup that had been copied already.
    pub was_there: bool,
    /// Why older backups were kept although they were to be removed.
    pub kept: Option<String>,
    /// What failed besides, for example `HOST: MESSAGE`. The snapshot may still be on that host.
    pub failures: Vec<String>,
    /// Hosts that did not answer: `HOST: MESSAGE`.
    pub silent: Vec<String>,
}

impl BackupResult {
    fn of(backup: Backup, manifest: Manifest) -> BackupResult {
        let (removed, failures, silent) = Default::default();
        BackupResult { backup, manifest, removed, was_there: false, kept: None, failures, silent }
    }
}

fn number(figure: &StatusNumber, what: &str) -> Result<u64, BackupError> {
    let number = match figure {
        StatusNumber::Number(number) => u64::try_from(*number).ok(),
        StatusNumber::Text(text) => text.parse().ok(),
    };
    number.ok_or_else(|| BackupError::Damaged(format!("its {what} is {figure:?}, which is no number of etcd")))
}

/// Verifies the snapshot in `staging`, compresses it, and gives it its name.
pub(super) fn finish_backup(
    directory: &Path,
    staging: Staging,
    taken: SnapshotReport,
    deployment: String,
    keep: Option<usize>,
) -> Result<BackupResult, BackupError> {
    let raw = staging.path().join("snapshot.db");
    let packed = staging.path().join(SNAPSHOT);
    let (size, sha256) = verify_raw(&raw)?;
    if sha256 != taken.sha256 {
        return Err(BackupError::Damaged(format!(
            "its SHA-256 is {sha256}, and on {} it was {}",
            taken.host, taken.sha256
        )));
    }
    let keys = number(&taken.keys, "number of keys")?;
    let earlier = list_backups(directory).map_err(io_error(directory))?;
    let known = || earlier.iter().filter_map(|backup| Some((backup, backup.manifest.as_ref().ok()?)));
    if let Some((_, other)) =
        known().find(|(_, other)| other.cluster != taken.cluster || other.deployment != deployment)
    {
        let (found, wanted) =
            (format!("{} ({})", other.cluster, other.deployment), format!("{} ({deployment})", taken.cluster));
        return Err(BackupError::OtherCluster { path: directory.to_owned(), found, wanted });
    }
    let revision = number(&taken.revision, "revision")?;
    let copied = known().find(|(_, other)| taken.taken.is_some() && other.sha256 == sha256);
    if let Some((backup, manifest)) = copied.filter(|(backup, _)| verify(&backup.path).is_ok()) {
        return Ok(BackupResult { was_there: true, ..BackupResult::of(backup.clone(), manifest.clone()) });
    }
    let newest =
        known().filter(|(_, other)| other.cluster_id == taken.cluster_id).max_by_key(|(_, other)| other.revision);
    if let Some((backup, other)) = newest.filter(|(_, other)| other.revision > revision) {
        let (path, newest, known) = (directory.to_owned(), backup.name.clone(), other.revision);
        return Err(match taken.taken {
            Some(_) => BackupError::Older { path, revision, newest, known },
            None => BackupError::WentBack { path, revision, newest, known },
        });
    }
    pack(&raw, &packed).map_err(io_error(&packed))?;
    // What was written is read again.
    let (read_size, read_sha256) = digest_unpacked(&packed, size).map_err(io_error(&packed))?;
    if (read_size, &read_sha256) != (size, &sha256) {
        return Err(BackupError::Damaged("the compressed file differs from it".to_owned()));
    }
    fs::remove_file(&raw).map_err(io_error(&raw))?;
    let (compressed_size, compressed_sha256) = digest(&packed).map_err(io_error(&packed))?;
    let time = match &taken.taken {
        Some(time) => number(time, "time")?,
        None => now(),
    };
    let manifest = Manifest {
        layout: LAYOUT,
        deployment,
        cluster: taken.cluster,
        cluster_id: taken.cluster_id,
        member: taken.member,
        is_leader: taken.is_leader,
        members: taken.members,
        compared: taken.compared,
        has_leader: taken.has_leader,
        etcd_version: taken.etcd_version,
        windlass_version: env!("CARGO_PKG_VERSION").to_owned(),
        taken: time,
        revision,
        keys,
        size,
        sha256,
        compressed_size,
        compressed_sha256,
    };
    let at = staging.path().join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).expect("it is text and numbers");
    write_whole(&at, text.as_bytes()).map_err(io_error(&at))?;
    sync(staging.path()).map_err(io_error(staging.path()))?;
    let name = format!("{}-r{revision}", timestamp(time));
    let path = directory.join(&name);
    // Of a local backup: a good copy would have been found by its digest.
    if taken.taken.is_some() && path.symlink_metadata().is_ok() {
        return Err(BackupError::DamagedCopy { path });
    }
    fs::rename(staging.path(), &path).map_err(io_error(&path))?;
    // Its directory has another name by now, so that nothing is removed with it.
    drop(staging.directory.keep());
    sync(directory).map_err(io_error(directory))?;
    let backup = Backup { name, path, manifest: Ok(manifest.clone()) };
    let mut made = BackupResult::of(backup, manifest);
    if let Err(error) = remove_abandoned(directory) {
        made.failures.push(format!("an abandoned backup cannot be removed: {error}"));
    }
    // The snapshot of a member that stands alone may lack what the others have: nothing older goes for it.
    match keep {
        Some(_) if taken.compared < taken.majority || !taken.has_leader => {
            let (compared, majority) = (taken.compared, taken.majority);
            made.kept = Some(format!("the data of {compared} members could be compared, and a majority is {majority}"));
        }
        Some(keep) => match prune(directory, &made.backup, keep) {
            Ok(removed) => made.removed = removed,
            Err(error) => made.failures.push(format!("older ones cannot be removed: {error}")),
        },
        None => {}
    }
    Ok(made)
}

/// Removes all complete backups except the newest `keep`. Never the one that was just verified.
fn prune(directory: &Path, newest: &Backup, keep: usize) -> io::Result<Vec<String>> {
    // Those of an earlier cluster stay: they may be all that is left of it. So do damaged ones, which do not count either.
    let cluster_of = |backup: &Backup| backup.manifest.as_ref().ok().map(|manifest| manifest.cluster_id.clone());
    let mut complete = list_backups(directory)?;
    complete.retain(|backup| backup.name != newest.name && cluster_of(backup) == cluster_of(newest));
    complete.retain(|backup| verify(&backup.path).is_ok());
    // The newest ones come first. Clocks can be wrong; revisions only grow.
    let age = |backup: &Backup| backup.manifest.as_ref().map_or((0, 0), |found| (found.revision, found.taken));
    complete.sort_by_key(|backup| std::cmp::Reverse(age(backup)));
    let old = complete.split_off(keep.saturating_sub(1).min(complete.len()));
    for backup in &old {
        // It loses its manifest first: one that is half removed is no backup.
        fs::remove_file(backup.path.join(MANIFEST))?;
        fs::remove_dir_all(&backup.path)?;
    }
    Ok(old.into_iter().map(|backup| backup.name).collect())
}

/// The backups in a directory, the newest first.
///
/// # Errors
/// The directory cannot be read.
pub fn list_backups(directory: &Path) -> io::Result<Vec<Backup>> {
    let mut backups = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let has = |file| entry.path().join(file).symlink_metadata().is_ok();
        if name.starts_with('.') || !entry.path().is_dir() || !has(SNAPSHOT) && !has(MANIFEST) {
            continue;
        }
        backups.push(Backup { manifest: manifest(&entry.path()), name, path: entry.path() });
    }
    let time = |backup: &Backup| backup.manifest.as_ref().map_or(0, |manifest| manifest.taken);
    backups.sort_by(|one, other| (time(other), &other.name).cmp(&(time(one), &one.name)));
    Ok(backups)
}

/// The files that a backup consists of: its snapshot and its manifest.
pub fn files_of(backup: &Path) -> [PathBuf; 2] {
    [backup.join(SNAPSHOT), backup.join(MANIFEST)]
}

/// The manifest of the backup in a directory; why it cannot be used otherwise.
pub fn manifest(backup: &Path) -> Result<Manifest, String> {
    let mut text = Vec::new();
    let file = open_regular(&backup.join(MANIFEST)).map_err(|error| format!("no manifest: {error}"))?;
    file.take(LARGEST_MANIFEST).read_to_end(&mut text).map_err(|error| format!("no manifest: {error}"))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| format!("damaged manifest: {error}"))?;
    match manifest.layout {
        LAYOUT => Ok(manifest),
        other => Err(format!("made by another version of windlass (layout {other})")),
    }
}

/// Reads all of a backup and compares it with its manifest and with the digest that etcd put into it.
///
/// # Errors
/// Why it is not good.
pub fn verify(backup: &Path) -> Result<Manifest, String> {
    let manifest = manifest(backup)?;
    let snapshot = backup.join(SNAPSHOT);
    let (size, sha256) =
        digest_unpacked(&snapshot, manifest.size).map_err(|error| format!("cannot be read: {error}"))?;
    match (size, &sha256) == (manifest.size, &manifest.sha256) {
        true => Ok(manifest),
        false => Err("damaged: its digest differs from the manifest's".to_owned()),
    }
}

/// Unpacks a backup's snapshot into a file that only its owner can read, and verifies it.
///
/// # Errors
/// It is damaged, or cannot be written.
pub fn unpack_backup(backup: &Path, to: &Path) -> Result<Manifest, BackupError> {
    let manifest = manifest(backup).map_err(BackupError::Damaged)?;
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        io::copy(
            &mut zstd::Decoder::new(open_regular(&backup.join(SNAPSHOT))?)?.take(manifest.size.saturating_add(1)),
            &mut file,
        )?;
        file.sync_all()
    };
    write().map_err(io_error(to))?;
    let (size, sha256) = verify_raw(to)?;
    match (size, &sha256) == (manifest.size, &manifest.sha256) {
        true => Ok(manifest),
        false => Err(BackupError::Damaged("its digest differs from the manifest's".to_owned())),
    }
}

/// The size and SHA-256 of a snapshot, whose end is the digest of the rest.
fn verify_raw(path: &Path) -> Result<(u64, String), BackupError> {
    let read = || -> io::Result<(u64, String, bool)> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut whole = Sha256::new();
        let database = copy_into(&mut (&mut file).take(size.saturating_sub(DIGEST)), &mut whole)?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        whole.update(&end);
        Ok((size, digest_to_hex(whole), database.finalize().as_slice() == end.as_slice()))
    };
    match read().map_err(io_error(path))? {
        (size, sha256, true) => Ok((size, sha256)),
        _ => Err(BackupError::Damaged("its checksum does not match".to_owned())),
    }
}

/// Reads all of it into `digest`, and returns a separate digest.
fn copy_into(from: &mut impl Read, digest: &mut Sha256) -> io::Result<Sha256> {
    let mut own = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(own),
            count => {
                own.update(&piece[..count]);
                digest.update(&piece[..count]);
            }
        }
    }
}

fn digest_of(mut from: impl Read) -> io::Result<(u64, String)> {
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut piece = vec![0; 1 << 16];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok((size, digest_to_hex(digest))),
            count => {
                digest.update(&piece[..count]);
                size += count as u64;
            }
        }
    }
}

fn digest(path: &Path) -> io::Result<(u64, String)> {
    digest_of(BufReader::new(File::open(path)?))
}

/// Reads one byte more than `size` at most.
fn digest_unpacked(path: &Path, size: u64) -> io::Result<(u64, String)> {
    digest_of(zstd::Decoder::new(open_regular(path)?)?.take(size.saturating_add(1)))
}

/// Others may have put a pipe or a link there.
fn open_regular(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a file")),
    }
}

fn pack(from: &Path, to: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut encoder = zstd::Encoder::new(file, 3)?;
    io::copy(&mut File::open(from)?, &mut encoder)?;
    encoder.finish()?.sync_all()
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> chrono::DateTime<chrono::Utc> {
    let at = i64::try_from(seconds).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    at.unwrap_or_default()
}

/// `20261124T043000Z`
pub(super) fn timestamp(seconds: u64) -> String {
    time(seconds).format("%Y%m%dT%H%M%SZ").to_string()
}

/// `2026-11-24 04:30:00 UTC`
pub(super) fn time_text(seconds: u64) -> String {
    time(seconds).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests;
