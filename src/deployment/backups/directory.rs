//! Backups in a directory of this machine: each is a directory, which gets its name when it is complete.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::{BackupError, io_error};
use super::files::{digest_unpacked, open_regular, sync, verify_raw};
use super::history::{check_history, superseded};
use super::prepare::Prepared;
use super::staging::{Staging, remove_abandoned};
use super::{Backup, BackupResult, LARGEST_MANIFEST, LAYOUT, MANIFEST, Manifest, SNAPSHOT};

/// Gives a backup its name. `staging` is in the directory, and has its files.
pub(super) fn keep_in_directory(
    directory: &Path,
    staging: Staging,
    prepared: &Prepared,
    keep: Option<usize>,
) -> Result<BackupResult, BackupError> {
    let earlier = list_backups(directory).map_err(io_error(directory))?;
    let manifest = &prepared.manifest;
    let copied = check_history(directory, &earlier, prepared, |backup| verify(&backup.path).is_ok())?;
    if let Some((backup, found)) = copied.and_then(|backup| Some((backup, backup.manifest.as_ref().ok()?))) {
        return Ok(BackupResult { was_there: true, ..BackupResult::of(backup.clone(), found.clone()) });
    }
    let name = manifest.backup_name();
    let path = directory.join(&name);
    // Of a local backup: a good copy would have been found by its digest.
    if prepared.is_local && path.symlink_metadata().is_ok() {
        return Err(BackupError::DamagedCopy { path });
    }
    fs::rename(staging.path(), &path).map_err(io_error(&path))?;
    // Its directory has another name by now, so that nothing is removed with it.
    drop(staging.directory.keep());
    sync(directory).map_err(io_error(directory))?;
    let backup = Backup { name, path, manifest: Ok(manifest.clone()) };
    let mut made = BackupResult::of(backup, manifest.clone());
    if let Err(error) = remove_abandoned(directory) {
        made.failures.push(format!("an abandoned backup cannot be removed: {error}"));
    }
    match (keep, &prepared.doubt) {
        (Some(_), Some(doubt)) => made.kept = Some(doubt.clone()),
        (Some(keep), None) => match prune(directory, &made.backup, keep) {
            Ok(removed) => made.removed = removed,
            Err(error) => made.failures.push(format!("older ones cannot be removed: {error}")),
        },
        (None, _) => {}
    }
    Ok(made)
}

/// Removes all complete backups except the newest `keep`. Never the one that was just verified.
fn prune(directory: &Path, newest: &Backup, keep: usize) -> io::Result<Vec<String>> {
    let old = superseded(list_backups(directory)?, newest, keep, |backup| verify(&backup.path).is_ok());
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
    file.take(LARGEST_MANIFEST as u64).read_to_end(&mut text).map_err(|error| format!("no manifest: {error}"))?;
    parse_manifest(&text)
}

/// Why a manifest cannot be used otherwise.
pub(super) fn parse_manifest(text: &[u8]) -> Result<Manifest, String> {
    let manifest: Manifest = serde_json::from_slice(text).map_err(|error| format!("damaged manifest: {error}"))?;
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
pub(in crate::deployment) fn unpack_backup(backup: &Path, to: &Path) -> Result<Manifest, BackupError> {
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
