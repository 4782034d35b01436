//! The playbooks and roles that the program carries. Playbooks, roles and templates are read by path, so they are unpacked before
//! they are used: into the user's cache, one directory for each build.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use include_dir::Dir;

use crate::value::ProcessEnvironment;
use crate::value::ownership::written_by_others;

/// What `src/main.rs` compiles in.
#[derive(Debug)]
pub struct EmbeddedPlaybooks {
    pub playbooks: Dir<'static>,
    pub roles: Dir<'static>,
}

/// Why they could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "cannot unpack the playbooks of windlass: no home directory\nhint: set XDG_CACHE_HOME, or name a directory with --playbooks"
    )]
    NoCache,
    #[error("cannot unpack the playbooks of windlass to {}: {error}\nhint: set XDG_CACHE_HOME, or name a directory with --playbooks", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    /// A user who can write there could replace the playbooks.
    #[error(
        "cannot unpack the playbooks of windlass to {}: another user can write to {}\nhint: set XDG_CACHE_HOME to a directory of your own, \
         or name a directory with --playbooks", path.display(), writable.display()
    )]
    Shared { path: PathBuf, writable: PathBuf },
}

impl EmbeddedPlaybooks {
    /// Whether there is a playbook of this name.
    pub fn has_file(&self, name: &Path) -> bool {
        self.playbooks.get_file(name).is_some()
    }

    /// The directory with `playbooks/` and `roles/`, unpacked if it is not there as the program carries it.
    ///
    /// # Errors
    /// There is no cache, it cannot be written, or another user can write to it.
    pub fn unpack_playbooks(&self, around: &ProcessEnvironment) -> Result<PathBuf, Error> {
        let cache = around.cache().ok_or(Error::NoCache)?.join("windlass");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Error::Io { path, error }
        };
        let is_own = |cache: &Path| match written_by_others(cache).map_err(failed(cache))? {
            Some(writable) => Err(Error::Shared { path: cache.to_owned(), writable }),
            None => Ok(()),
        };
        // Nothing is created in another user's directory: root with another user's HOME would lock that user out.
        is_own(&cache)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).map_err(failed(&cache))?;
        // From now on without links, which others could lead elsewhere.
        let cache = cache.canonicalize().map_err(failed(&cache))?;
        is_own(&cache)?;
        let directory = cache.join(format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), self.hash()));
        if self.is_at(&directory) {
            return Ok(directory);
        }
        // Another run may have found the same, and be faster.
        let lock = fs::File::create(cache.join(".lock")).map_err(failed(&cache))?;
        lock.lock().map_err(failed(&cache))?;
        if !self.is_at(&directory) {
            let fresh = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(&cache).map_err(failed(&cache))?;
            let (new, former) = (fresh.path().join("new"), fresh.path().join("former"));
            // Whatever the umask lets others do below it, they cannot enter it.
            let made = fs::DirBuilder::new().mode(0o700).create(&new);
            made.and_then(|()| self.export(&new)).map_err(failed(&new))?;
            match fs::rename(&directory, &former) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&directory)(error)),
                _ => fs::rename(&new, &directory).map_err(failed(&directory))?,
            }
        }
        Ok(directory)
    }

    /// Writes `playbooks/` and `roles/` below a directory.
    ///
    /// # Errors
    /// One of them is there already, or cannot be written.
    pub fn export(&self, directory: &Path) -> std::io::Result<()> {
        for (name, contents) in self.parts() {
            let top = directory.join(name);
            fs::create_dir(&top)?;
            for (path, bytes) in files(contents) {
                let path = top.join(path);
                fs::create_dir_all(path.parent().unwrap_or(&top))?;
                fs::write(path, bytes)?;
            }
        }
        Ok(())
    }

    fn parts(&self) -> [(&'static str, &Dir<'static>); 2] {
        [("playbooks", &self.playbooks), ("roles", &self.roles)]
    }

    /// Names a build; not for security.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, contents) in self.parts() {
            for (path, bytes) in files(contents) {
                hasher.write(name.as_bytes());
                hasher.write(path.as_os_str().as_encoded_bytes());
                hasher.write(bytes);
            }
        }
        hasher.finish()
    }

    /// Whether a directory has exactly these files: a run may have been killed while it wrote them, and a file more could be
    /// variables of all hosts.
    fn is_at(&self, directory: &Path) -> bool {
        let is_own = directory.metadata().is_ok_and(|found| found.mode() & 0o077 == 0);
        is_own
            && self.parts().into_iter().all(|(name, contents)| {
                let top = directory.join(name);
                let wanted = files(contents);
                count(&top) == Some(wanted.len())
                    && wanted.iter().all(|(path, bytes)| fs::read(top.join(path)).is_ok_and(|found| found == *bytes))
            })
    }
}

/// All files of it, each with its path below.
fn files(directory: &Dir<'static>) -> Vec<(&'static Path, &'static [u8])> {
    let mut all: Vec<_> = directory.files().map(|file| (file.path(), file.contents())).collect();
    directory.dirs().for_each(|below| all.extend(files(below)));
    all
}

/// How many files are in a directory and below. None: it cannot be read.
fn count(directory: &Path) -> Option<usize> {
    let mut number = 0;
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        number += if entry.file_type().ok()?.is_dir() { count(&entry.path())? } else { 1 };
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use include_dir::{DirEntry, File};

    use super::*;

    static PLAYBOOKS: [DirEntry<'static>; 2] = [
        DirEntry::File(File::new("one.yml", b"- hosts: all\n")),
        DirEntry::File(File::new("two.yml", b"- hosts: h1\n")),
    ];
    static TASKS: [DirEntry<'static>; 1] = [DirEntry::File(File::new("r/tasks/main.yml", b"- ping:\n"))];
    static ROLE: [DirEntry<'static>; 1] = [DirEntry::Dir(Dir::new("r/tasks", &TASKS))];
    static ROLES: [DirEntry<'static>; 1] = [DirEntry::Dir(Dir::new("r", &ROLE))];
    static CARRIED: EmbeddedPlaybooks =
        EmbeddedPlaybooks { playbooks: Dir::new("", &PLAYBOOKS), roles: Dir::new("", &ROLES) };

    fn around(cache: &Path) -> ProcessEnvironment {
        let mut around = ProcessEnvironment::default();
        around.variables.insert("XDG_CACHE_HOME".into(), cache.display().to_string());
        around
    }

    #[test]
    fn what_is_carried_is_unpacked_whole_and_again_after_any_change() {
        let cache = tempfile::tempdir().unwrap();
        let around = around(cache.path());
        let directory = CARRIED.unpack_playbooks(&around).unwrap();
        let role = directory.join("roles/r/tasks/main.yml");
        assert_eq!(fs::read(&role).unwrap(), b"- ping:\n");
        assert!(CARRIED.has_file(Path::new("two.yml")) && !CARRIED.has_file(Path::new("r")));
        // As it is, it stays.
        let inode = role.metadata().unwrap().ino();
        assert_eq!(CARRIED.unpack_playbooks(&around).unwrap(), directory);
        assert_eq!(role.metadata().unwrap().ino(), inode);
        // Half a file, a file that is missing, and one that does not belong there.
        let damages: [&dyn Fn(); 4] = [
            &|| fs::write(&role, "- pi").unwrap(),
            &|| fs::remove_file(directory.join("playbooks/one.yml")).unwrap(),
            &|| {
                fs::create_dir(directory.join("playbooks/group_vars"))
                    .and_then(|()| fs::write(directory.join("playbooks/group_vars/all.yml"), "a: 1"))
                    .unwrap()
            },
            &|| fs::remove_dir_all(directory.join("roles")).unwrap(),
        ];
        for damage in damages {
            damage();
            assert!(!CARRIED.is_at(&directory));
            assert_eq!(CARRIED.unpack_playbooks(&around).unwrap(), directory);
            assert!(CARRIED.is_at(&directory));
        }
        let left: Vec<_> = fs::read_dir(cache.path().join("windlass")).unwrap().collect();
        assert_eq!(left.len(), 2, "more than the directory and the lock: {left:?}");
    }

    #[test]
    fn nothing_is_unpacked_where_another_user_can_write() {
        let cache = tempfile::tempdir().unwrap();
        fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = CARRIED.unpack_playbooks(&around(cache.path())).unwrap_err().to_string();
        assert!(refused.contains("another user can write to"), "{refused}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "something was made there");
        // Nor through a link, which its owner could lead elsewhere meanwhile.
        let (own, way) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(own.path(), way.path().join("windlass")).unwrap();
        let unpacked = CARRIED.unpack_playbooks(&around(way.path())).unwrap();
        assert!(unpacked.starts_with(own.path().canonicalize().unwrap()), "{}", unpacked.display());
        assert!(matches!(CARRIED.unpack_playbooks(&ProcessEnvironment::default()), Err(Error::NoCache)));
    }

    #[test]
    fn several_runs_unpack_at_once() {
        let cache = tempfile::tempdir().unwrap();
        let around = around(cache.path());
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| CARRIED.unpack_playbooks(&around).unwrap())).collect();
            for run in runs {
                assert!(CARRIED.is_at(&run.join().unwrap()));
            }
        });
    }
}
