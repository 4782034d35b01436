//! Backups in a directory of this machine: each is a directory, which gets its name when it is complete.

use std::fs;
use std::io;
use std::path::Path;

use super::encryption::Identities;
use super::error::{BackupError, io_error};
use super::files::sync;
use super::history::check_history;
use super::prepare::Prepared;
use super::reading::{files_of, manifest, verify};
use super::retention::Retention;
use super::staging::{Staging, remove_abandoned};
use super::{Backup, BackupResult, MANIFEST};

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
        None => {
            if let Err(error) = prune(earlier, &made.backup, retention, &mut made.removed) {
                made.failures.push(format!("older ones cannot be removed: {error}"));
            }
        }
    }
    Ok(made)
}

/// Removes the complete backups that no rule wants. Never the one that was just verified; nor one that came since it was begun: the run that
/// made that one may remove this one, and then there would be none.
pub(super) fn prune(
    earlier: Vec<Backup>,
    newest: &Backup,
    retention: &Retention,
    removed: &mut Vec<String>,
) -> io::Result<()> {
    let mut old = retention.superseded(earlier, newest, is_whole);
    // A link leads to what is somewhere else.
    old.retain(|backup| backup.path.symlink_metadata().is_ok_and(|found| found.is_dir()));
    for backup in old {
        // It loses its manifest first: one that is half removed is no backup.
        match fs::remove_file(backup.path.join(MANIFEST)).and_then(|()| fs::remove_dir_all(&backup.path)) {
            Ok(()) => removed.push(backup.name),
            // Another run removes it at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
        let has_any = files_of(&entry.path()).any(|file| file.symlink_metadata().is_ok());
        if name.starts_with('.') || !entry.path().is_dir() || !has_any {
            continue;
        }
        backups.push(Backup { manifest: manifest(&entry.path()), name, path: entry.path() });
    }
    super::sort_backups(&mut backups);
    Ok(backups)
}

fn is_whole(backup: &Backup) -> bool {
    verify(&backup.path, &Identities::default()).is_ok()
}
