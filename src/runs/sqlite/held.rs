//! Which runs are held by a living process: each run has a file that its process locks. The kernel unlocks it when the process ends,
//! however it ends.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::RunId;
use super::{create_private_directory, create_private_file};

/// The runs that this process holds, and the directory with the files of all.
pub(super) struct HeldRuns {
    directory: PathBuf,
    own: HashMap<RunId, File>,
}

impl HeldRuns {
    /// The files are in a directory `running` in this one.
    pub(super) fn below(directory: &Path) -> HeldRuns {
        HeldRuns { directory: directory.join("running"), own: HashMap::new() }
    }

    /// Holds a run until it is released or this process ends. The file says which process it is.
    pub(super) fn hold_run(&mut self, run: RunId, process: Option<String>) -> io::Result<()> {
        create_private_directory(&self.directory)?;
        let path = self.path_of(run);
        loop {
            let mut file = create_private_file(&path)?;
            file.lock()?;
            // Another process may have taken it for a file of a dead one, and deleted it.
            let is_there = path.metadata().is_ok_and(|found| file.metadata().is_ok_and(|own| own.ino() == found.ino()));
            if is_there {
                file.set_len(0)?;
                file.write_all(process.unwrap_or_default().as_bytes())?;
                self.own.insert(run, file);
                return Ok(());
            }
        }
    }

    pub(super) fn release_run(&mut self, run: RunId) {
        if self.own.remove(&run).is_some() {
            #[expect(clippy::let_underscore_must_use, reason = "without its lock it is deleted later")]
            let _ = std::fs::remove_file(self.path_of(run));
        }
    }

    /// Which process holds a run, as it said itself. None: it did not, or none holds it.
    pub(super) fn process_of(&self, run: RunId) -> Option<String> {
        std::fs::read_to_string(self.path_of(run)).ok().filter(|process| !process.is_empty())
    }

    /// Whether a living process holds a run.
    pub(super) fn is_held(&self, run: RunId) -> bool {
        if self.own.contains_key(&run) {
            return true;
        }
        match File::open(self.path_of(run)) {
            Ok(file) => is_locked(&file),
            // What cannot be looked at, as with too many open files, is not taken for dead.
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    /// Deletes the files of processes that died.
    pub(super) fn delete_dead(&self) {
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(run) = name.to_str().and_then(RunId::parse_id) else { continue };
            let dead = |file: &File| !self.own.contains_key(&run) && file.try_lock_shared().is_ok();
            // Deleted while it is locked here: see `hold_run`.
            if let Ok(file) = File::open(entry.path())
                && dead(&file)
            {
                #[expect(clippy::let_underscore_must_use, reason = "the next run tries again")]
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn path_of(&self, run: RunId) -> PathBuf {
        self.directory.join(run.to_string())
    }
}

fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => error.kind() == ErrorKind::WouldBlock,
    }
}
