//! Where a backup is written: a directory for backups that nobody else can write to, and one in it for the backup in progress.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use super::error::{BackupError, io_error};
use crate::value::ownership::is_own;

/// The beginning of the name of a backup that is being written.
pub(in crate::deployment) const PARTIAL: &str = ".partial-";
/// The lock of a partial backup's process is taken after it was made: so long it counts as in use without one.
const NOT_LOCKED_YET: Duration = Duration::from_secs(60);

/// Creates a directory for backups that only its owner can read, or uses one that nobody else can write.
pub(in crate::deployment) fn prepare_directory(directory: &Path) -> Result<(), BackupError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io_error(directory))?;
    check_owner(directory)
}

/// Refuses a directory that others can write to.
pub(super) fn check_owner(directory: &Path) -> Result<(), BackupError> {
    let found = fs::metadata(directory).map_err(io_error(directory))?;
    let open = |why: String| Err(BackupError::OpenDirectory { path: directory.to_owned(), why });
    match is_own(&found) {
        true => Ok(()),
        false => open(format!("others can write to it (user {}, mode {:04o})", found.uid(), found.mode() & 0o7777)),
    }
}

/// A directory for a backup that is being written. It exists until it gets its name, or is removed with everything in it.
pub(in crate::deployment) struct Staging {
    pub(super) directory: tempfile::TempDir,
    /// Locked for as long as this process lives, so that others can see which ones were abandoned.
    _lock: File,
}

impl Staging {
    /// In a directory that is created if it is missing, without what processes have left there that were killed.
    pub(in crate::deployment) fn clean_in(parent: &Path) -> Result<Staging, BackupError> {
        prepare_directory(parent)?;
        remove_abandoned(parent).map_err(io_error(parent))?;
        Staging::in_directory(parent).map_err(io_error(parent))
    }

    /// Only its owner can read it, whatever the umask is.
    pub(in crate::deployment) fn in_directory(directory: &Path) -> io::Result<Staging> {
        let open = fs::Permissions::from_mode(0o700);
        let staging = tempfile::Builder::new().prefix(PARTIAL).permissions(open).tempdir_in(directory)?;
        let lock = File::open(staging.path())?;
        lock.lock()?;
        Ok(Staging { directory: staging, _lock: lock })
    }

    pub(in crate::deployment) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the partial backups of processes that were killed.
pub(in crate::deployment) fn remove_abandoned(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let is_partial = entry.file_name().to_string_lossy().starts_with(PARTIAL) && entry.file_type()?.is_dir();
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|then| then.elapsed().ok());
        if is_partial && age.is_some_and(|age| age > NOT_LOCKED_YET) && File::open(entry.path())?.try_lock().is_ok() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
