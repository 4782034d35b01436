//! Files that the command line writes: whole or not at all, never readable by more people than before.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;

/// Who may read a file that replaces another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Its owner alone.
    Private,
    /// The same users as before: owner, group and mode are kept.
    AsBefore,
}

/// Writes a file that only its owner may read, or replaces one by such a file. A device or a pipe, such as /dev/stdout, takes the
/// content and stays what it is.
///
/// # Errors
/// It cannot be written, or another user controls where its symbolic link points.
pub(super) fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    match stream(path) {
        Some(mut stream) => {
            let written = stream.write_all(content).and_then(|()| stream.flush());
            written.with_context(|| format!("cannot write {}", path.display()))
        }
        None if path.exists() => replace(path, content, Access::Private),
        None => create(path, content),
    }
}

/// The open stream of this process that a path names. Opened again by its name, a file behind it would be written at another place
/// than what is printed before and after.
fn stream(path: &Path) -> Option<Box<dyn Write>> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Box::new(std::io::stdout())),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Box::new(std::io::stderr())),
        _ => None,
    }
}

/// Refuses a file of a user other than root and this one: a link could point to a file of this user, a pipe to the other user.
fn refuse_others(found: &std::fs::Metadata) -> std::io::Result<()> {
    match [0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
        true => Ok(()),
        false => Err(std::io::Error::other("another user has put it there")),
    }
}

/// Writes a file that was not there.
pub(super) fn create(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        // Another process may have created it meanwhile.
        file.persist_noclobber(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Puts new content in a file's place.
pub(super) fn replace(path: &Path, content: &[u8], access: Access) -> anyhow::Result<()> {
    let write = || -> std::io::Result<()> {
        let before = std::fs::metadata(path)?;
        let link = path.symlink_metadata()?;
        if !before.is_file() {
            refuse_others(&link).and_then(|()| refuse_others(&before))?;
            return std::fs::OpenOptions::new().append(true).open(path)?.write_all(content);
        }
        if link.is_symlink() {
            refuse_others(&link)?;
        }
        // A symbolic link is kept: its target gets the new content.
        let path = path.canonicalize()?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        let mode = match access {
            Access::Private => 0o600,
            Access::AsBefore => {
                let now = file.as_file().metadata()?;
                if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
                    std::os::unix::fs::fchown(file.as_file(), Some(before.uid()), Some(before.gid()))?;
                }
                before.mode() & 0o7777
            }
        };
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode_or_becomes_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"y", Access::AsBefore).unwrap();
        assert_eq!((mode(&path), std::fs::read(&path).unwrap()), (0o640, b"y".to_vec()));
        replace(&path, b"z", Access::Private).unwrap();
        assert_eq!(mode(&path), 0o600);
        // Nothing is left beside it.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_is_private_and_takes_nobodys_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        create(&path, b"x").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(create(&path, b"y").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }

    #[test]
    fn a_pipe_takes_the_content_and_stays_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reading = path.clone();
        let reader = std::thread::spawn(move || std::fs::read(reading).unwrap());
        write_file(&path, b"x").unwrap();
        assert_eq!(reader.join().unwrap(), b"x");
        assert!(std::os::unix::fs::FileTypeExt::is_fifo(&std::fs::metadata(&path).unwrap().file_type()));
    }

    #[test]
    fn links_and_pipes_of_others_are_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let [victim, link, pipe] = ["victim", "link", "pipe"].map(|name| directory.path().join(name));
        std::fs::write(&victim, "x").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        write_file(&link, b"y").unwrap();
        assert_eq!((std::fs::read(&victim).unwrap(), link.is_symlink()), (b"y".to_vec(), true));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&link, &pipe] {
            std::os::unix::fs::lchown(path, Some(65534), None).unwrap();
            let error = format!("{:#}", write_file(path, b"z").unwrap_err());
            assert!(error.contains("another user"), "{error}");
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"y");
    }
}
