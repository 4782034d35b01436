//! The files that vaults are in: read whole, written whole or not at all, never readable by more people than before.

use std::fs::Permissions;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::cli::print;

/// Standard input or output, as a name of a file.
pub(super) const STANDARD: &str = "-";

/// Who may read a file that is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Its owner alone.
    Private,
    /// Whoever could before, with the owner and group that it had.
    AsBefore,
}

/// The content of a file, or of standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path != Path::new(STANDARD) {
        return std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    }
    if std::io::stdin().is_terminal() {
        crate::cli::note("reading standard input; press Ctrl-D to end it");
    }
    let mut content = Vec::new();
    std::io::stdin().read_to_end(&mut content).context("cannot read standard input")?;
    Ok(content)
}

/// Puts the content where it belongs: into `output` if that was named, else into the file that it came from; what came
/// from standard input goes to standard output.
pub(super) fn write(content: &[u8], from: &Path, output: Option<&Path>) -> anyhow::Result<()> {
    match output.unwrap_or(from) {
        standard if standard == Path::new(STANDARD) => print(content),
        path if path.exists() => replace(path, content, Access::Private),
        path => create(path, content),
    }
}

/// Writes a file that was not there.
pub(super) fn create(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        // Somebody may have made it meanwhile.
        file.persist_noclobber(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Puts new content in a file's place.
pub(super) fn replace(path: &Path, content: &[u8], access: Access) -> anyhow::Result<()> {
    // A symbolic link stays one: what it leads to gets the new content.
    let path: &PathBuf = &path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let write = || -> std::io::Result<()> {
        let before = std::fs::metadata(path)?;
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
}
