//! A private directory in memory for the files of a Secret. One that a killed run left is removed by the next.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::value::ProcessEnvironment;
use crate::value::ownership::written_by_others;

const PREFIX: &str = "windlass-credentials-";

/// Locked as long as the run lives that made the directory.
const LOCK: &str = ".lock";

/// The directory. It is removed with this.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: TempDir,
    lock: File,
}

impl Scratch {
    /// Makes one, in memory where this machine has a place for that.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn make(around: &ProcessEnvironment) -> io::Result<Scratch> {
        let place = place(around)?;
        remove_left(&place);
        let private = std::fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(&place)?;
        // It has its name only once it is locked, so that nobody takes this directory for one that was left.
        let (new, named) = (directory.path().join(".lock-new"), directory.path().join(LOCK));
        let lock = File::create_new(&new)?;
        lock.lock()?;
        std::fs::rename(&new, named)?;
        Ok(Scratch { directory, lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Whether it is whole, and still the directory that was made. A program that cleans up temporary directories may have removed
    /// files.
    pub(super) fn is_there(&self) -> bool {
        let identity = |found: std::io::Result<std::fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
        let own = identity(self.lock.metadata());
        own.is_some() && own == identity(std::fs::symlink_metadata(self.path().join(LOCK)))
    }
}

/// A directory in memory, or else one for temporary files, where only root and this user can put another directory in the place of
/// one of this user.
///
/// # Errors
/// There is none.
fn place(around: &ProcessEnvironment) -> io::Result<PathBuf> {
    let runtime = around.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let temporary = PathBuf::from(around.variable("TMPDIR").unwrap_or("/tmp"));
    let own = |path: &PathBuf| written_by_others(path).is_ok_and(|other| other.is_none());
    let writable = |path: &PathBuf| tempfile::tempfile_in(path).is_ok();
    let mut places = runtime.into_iter().chain([PathBuf::from("/dev/shm"), temporary]);
    places.find(|path| own(path) && writable(path)).ok_or_else(|| {
        let message =
            "found no directory for the files that other users cannot change (XDG_RUNTIME_DIR, /dev/shm, TMPDIR)";
        io::Error::other(message)
    })
}

/// Removes directories of runs of this user that have ended without doing so.
fn remove_left(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_one = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if !is_one || !entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own) {
            continue;
        }
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        match lock.try_lock() {
            Ok(()) => {
                if let Err(error) = std::fs::remove_dir_all(&path) {
                    tracing::warn!("cannot remove {}, which a run left behind: {error}", path.display());
                }
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_with_its_run_or_by_the_next_one() {
        let place = tempfile::tempdir().unwrap();
        let variables = [("XDG_RUNTIME_DIR".to_owned(), place.path().display().to_string())].into();
        let around = ProcessEnvironment { variables, ..ProcessEnvironment::default() };
        let there = || std::fs::read_dir(place.path()).unwrap().count();
        let first = Scratch::make(&around).unwrap();
        assert_eq!(std::fs::metadata(first.path()).unwrap().mode() & 0o777, 0o700);
        // As after kill -9: the directory stays, the lock does not.
        let left = place.path().join("windlass-credentials-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let second = Scratch::make(&around).unwrap();
        assert!(!left.exists() && first.is_there() && second.is_there());
        // Another directory in its place is not taken for it.
        let moved = place.path().join("moved");
        std::fs::rename(second.path(), &moved).unwrap();
        std::fs::create_dir(second.path()).unwrap();
        std::fs::write(second.path().join(LOCK), "").unwrap();
        assert!(!second.is_there());
        std::fs::remove_dir_all(second.path()).unwrap();
        std::fs::rename(&moved, second.path()).unwrap();
        assert_eq!(there(), 2);
        drop((first, second));
        assert_eq!(there(), 0);
    }
}
