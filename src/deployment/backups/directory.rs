//! Backups in a directory of this machine: each is a directory, which gets its name when it is complete.

use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::age_format::decrypt_file;
use super::encryption::Identities;
use super::error::{BackupError, io_error};
use super::files::{digest_of, open_regular, sync, verify_raw};
use super::history::check_history;
use super::prepare::Prepared;
use super::retention::Retention;
use super::staging::{Staging, remove_abandoned};
use super::{
    Backup, BackupResult, CREDENTIALS, ENCRYPTED_LAYOUT, ENCRYPTED_SNAPSHOT, LARGEST_MANIFEST, LAYOUT, MANIFEST,
    Manifest, SNAPSHOT,
};

/// What the files of a backup may be called.
const FILES: [&str; 4] = [SNAPSHOT, ENCRYPTED_SNAPSHOT, CREDENTIALS, MANIFEST];

/// Gives a backup its name. `staging` is in the directory, and has its files.
pub(super) fn keep_in_directory(
    directory: &Path,
    staging: Staging,
    prepared: &Prepared,
    retention: &Retention,
) -> Result<BackupResult, BackupError> {
    let earlier = list_backups(directory).map_err(io_error(directory))?;
    let manifest = &prepared.manifest;
    let copied = check_history(directory, &earlier, prepared, is_whole)?;
    if let Some((backup, found)) = copied.and_then(|backup| Some((backup, backup.manifest.as_ref().ok()?))) {
        return Ok(BackupResult::of_earlier(backup.clone(), found.clone(), manifest));
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
    match &prepared.doubt {
        _ if retention.keeps_all() => {}
        Some(doubt) => made.kept = Some(doubt.clone()),
        None => match prune(directory, &made.backup, retention) {
            Ok(removed) => made.removed = removed,
            Err(error) => made.failures.push(format!("older ones cannot be removed: {error}")),
        },
    }
    Ok(made)
}

/// Removes the complete backups that no rule wants. Never the one that was just verified.
fn prune(directory: &Path, newest: &Backup, retention: &Retention) -> io::Result<Vec<String>> {
    let old = retention.superseded(list_backups(directory)?, newest, is_whole);
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
        let has_any = files_of(&entry.path()).iter().any(|file| file.symlink_metadata().is_ok());
        if name.starts_with('.') || !entry.path().is_dir() || !has_any {
            continue;
        }
        backups.push(Backup { manifest: manifest(&entry.path()), name, path: entry.path() });
    }
    let time = |backup: &Backup| backup.manifest.as_ref().map_or(0, |manifest| manifest.taken);
    backups.sort_by(|one, other| (time(other), &other.name).cmp(&(time(one), &one.name)));
    Ok(backups)
}

/// The files that a backup may consist of.
pub fn files_of(backup: &Path) -> [PathBuf; FILES.len()] {
    FILES.map(|file| backup.join(file))
}

fn is_whole(backup: &Backup) -> bool {
    verify(&backup.path, &Identities::default()).is_ok()
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
        LAYOUT if manifest.encryption.is_none() => Ok(manifest),
        ENCRYPTED_LAYOUT if manifest.encryption.is_some() => Ok(manifest),
        other => Err(format!("made by another version of windlass (layout {other})")),
    }
}

/// Reads all of a backup and compares it with its manifest. What is encrypted is decrypted if there are identities.
///
/// # Errors
/// Why it is not good.
pub fn verify(backup: &Path, identities: &Identities) -> Result<Manifest, String> {
    let manifest = manifest(backup)?;
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let damaged = "damaged: its digest differs from the manifest's";
    if manifest.encryption.is_some() {
        for file in manifest.files() {
            let read = open_regular(&backup.join(file.name)).and_then(digest_of).map_err(unreadable)?;
            if read != (file.size, file.sha256) {
                return Err(damaged.to_owned());
            }
        }
        if identities.is_empty() {
            return Ok(manifest);
        }
    }
    let read = digest_of(open_snapshot(backup, &manifest, identities)?).map_err(unreadable)?;
    match read == (manifest.size, manifest.sha256.clone()) {
        true => Ok(manifest),
        false => Err(damaged.to_owned()),
    }
}

/// The snapshot, decrypted and unpacked: one byte more than the manifest says at most.
fn open_snapshot(backup: &Path, manifest: &Manifest, identities: &Identities) -> Result<Box<dyn Read>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let name = super::snapshot_name(manifest.encryption.as_ref());
    let file = BufReader::new(open_regular(&backup.join(name)).map_err(unreadable)?);
    let packed: Box<dyn Read> = match &manifest.encryption {
        None => Box::new(file),
        Some(encryption) => decrypt_file(file, encryption, identities)?,
    };
    let unpacked = zstd::Decoder::new(packed).map_err(unreadable)?;
    Ok(Box::new(unpacked.take(manifest.size.saturating_add(1))))
}

/// Unpacks a backup's snapshot into a file that only its owner can read, and verifies it.
///
/// # Errors
/// It is damaged, cannot be decrypted, or cannot be written.
pub(in crate::deployment) fn unpack_backup(
    backup: &Path,
    to: &Path,
    identities: &Identities,
) -> Result<Manifest, BackupError> {
    let manifest = manifest(backup).map_err(BackupError::Damaged)?;
    let mut snapshot = open_snapshot(backup, &manifest, identities).map_err(BackupError::Damaged)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(io_error(to))?;
    io::copy(&mut snapshot, &mut file).and_then(|_| file.sync_all()).map_err(io_error(to))?;
    let (size, sha256) = verify_raw(to)?;
    match (size, &sha256) == (manifest.size, &manifest.sha256) {
        true => Ok(manifest),
        false => Err(BackupError::Damaged("its digest differs from the manifest's".to_owned())),
    }
}
