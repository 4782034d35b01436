//! The cache of downloaded files, named by their SHA-256, shared by all bundles of a user.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::bundle::{Error, bytes_to_hex, file_digest};
use crate::value::ProcessEnvironment;
use crate::value::ownership::written_by_others;

#[derive(Debug)]
pub(super) struct Blobs {
    root: PathBuf,
}

/// A download that is not complete yet. Only one process has it.
pub(super) struct Partial {
    pub file: File,
    path: PathBuf,
}

impl Blobs {
    pub(super) fn of_user(around: &ProcessEnvironment) -> Result<Blobs, Error> {
        let cache = around.cache();
        let cache = cache.ok_or_else(|| Error::new("cannot keep downloads: neither XDG_CACHE_HOME nor HOME is set"))?;
        Blobs::below(cache.join("windlass/blobs"))
    }

    pub(super) fn below(root: PathBuf) -> Result<Blobs, Error> {
        for directory in [root.join("sha256"), root.join("partial")] {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
            made.map_err(|error| Error::io("create", &directory, &error))?;
            // Another user who can write there could exchange a file after its digest was compared.
            if let Some(open) =
                written_by_others(&directory).map_err(|error| Error::io("look at", &directory, &error))?
            {
                let message = format!(
                    "cannot keep downloads in {}: another user can write to {}",
                    directory.display(),
                    open.display()
                );
                return Err(Error::new(message).hint("set XDG_CACHE_HOME to a directory of your own"));
            }
        }
        Ok(Blobs { root })
    }

    fn path(&self, sha256: &str) -> PathBuf {
        self.root.join("sha256").join(sha256)
    }

    /// A file that is there already, read again and compared. One that was altered is removed.
    pub(super) fn find_blob(&self, sha256: &str) -> Result<Option<PathBuf>, Error> {
        let path = self.path(sha256);
        if !path.is_file() {
            return Ok(None);
        }
        if file_digest(&path)? == sha256 {
            return Ok(Some(path));
        }
        std::fs::remove_file(&path).map_err(|error| Error::io("remove", &path, &error))?;
        Ok(None)
    }

    /// The begun download of this name, or a new one. Waits for another process that has it.
    pub(super) async fn partial(&self, name: &str) -> Result<Partial, Error> {
        let path = self.root.join("partial").join(bytes_to_hex(&Sha256::digest(name)));
        let cannot = |error: std::io::Error| Error::io("write", &path, &error);
        loop {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = file.map_err(cannot)?;
            while let Err(error) = file.try_lock() {
                match error {
                    std::fs::TryLockError::WouldBlock => tokio::time::sleep(Duration::from_millis(200)).await,
                    std::fs::TryLockError::Error(error) => return Err(cannot(error)),
                }
            }
            // The process that had it may have finished, and given the file its final name.
            let same = |meta: std::fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == meta.ino());
            if std::fs::metadata(&path).is_ok_and(same) {
                return Ok(Partial { file, path });
            }
        }
    }

    /// Gives a complete download its final name.
    pub(super) fn store_blob(&self, partial: Partial, sha256: &str) -> Result<PathBuf, Error> {
        let path = self.path(sha256);
        partial.file.sync_all().map_err(|error| Error::io("write", &partial.path, &error))?;
        std::fs::rename(&partial.path, &path).map_err(|error| Error::io("write", &path, &error))?;
        partial.forget_validator();
        Ok(path)
    }

    /// Stores what is read, which must have this digest. `name` is for messages.
    pub(super) fn store(&self, mut from: impl Read, sha256: &str, name: &str) -> Result<PathBuf, Error> {
        if let Some(path) = self.find_blob(sha256)? {
            return Ok(path);
        }
        let path = self.path(sha256);
        let cannot = |error: std::io::Error| Error::io("write", &path, &error);
        let mut file = tempfile::NamedTempFile::new_in(self.root.join("partial")).map_err(cannot)?;
        let mut sum = Sha256::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            let count = from.read(&mut buffer).map_err(|error| Error::new(format!("cannot read {name}: {error}")))?;
            if count == 0 {
                break;
            }
            sum.update(&buffer[..count]);
            file.write_all(&buffer[..count]).map_err(cannot)?;
        }
        let found = bytes_to_hex(&sum.finalize());
        if found != sha256 {
            return Err(Error::new(format!("{name} has SHA-256 {found}, expected {sha256}")));
        }
        file.as_file().sync_all().map_err(cannot)?;
        file.persist(&path).map_err(|error| cannot(error.error))?;
        Ok(path)
    }
}

impl Partial {
    fn beside(&self) -> PathBuf {
        self.path.with_extension("validator")
    }

    /// What the server called the version of the file that was begun.
    pub(super) fn validator(&self) -> Option<String> {
        std::fs::read_to_string(self.beside()).ok().filter(|text| !text.is_empty() && !text.contains(['\r', '\n']))
    }

    pub(super) fn set_validator(&self, validator: Option<&str>) {
        match validator {
            // Without it the next attempt begins again, which is safe.
            Some(text) => drop(std::fs::write(self.beside(), text)),
            None => self.forget_validator(),
        }
    }

    fn forget_validator(&self) {
        drop(std::fs::remove_file(self.beside()));
    }

    /// The digest of the existing file.
    pub(super) fn partial_digest(&self) -> Result<String, Error> {
        file_digest(&self.path)
    }

    pub(super) fn partial_path(&self) -> &Path {
        &self.path
    }
}
