//! Digests of the controller's files: a run hashes each file once, however many hosts ask for it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha1::{Digest, Sha1};
use tokio::sync::OnceCell;

use crate::modules::Error;
use crate::modules::file_write::unreadable;
use crate::value::mutex::Mutex;

/// SHA-1 (Ansible's `checksum`) and MD5 (its `md5sum`), lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) struct Digests {
    pub sha1: String,
    pub md5: String,
}

/// A file as it was when it was hashed: a changed one has another key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::modules) struct Key {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

/// Digests of the files that were hashed. Hosts run at the same time, and share it.
#[derive(Debug, Default)]
pub(in crate::modules) struct FileDigests(Mutex<HashMap<Key, Arc<OnceCell<Digests>>>>);

impl FileDigests {
    /// Digests of a file of the controller. The first caller computes it; others wait.
    pub(in crate::modules) async fn of_file(&self, path: &Path) -> Result<Digests, Error> {
        let key = key(path).map_err(|error| unreadable(path, &error))?;
        let cell = Arc::clone(self.0.lock().entry(key).or_default());
        let digests = cell.get_or_try_init(|| async {
            let owned = path.to_owned();
            let hashed = tokio::task::spawn_blocking(move || hash(&owned)).await;
            hashed.map_err(std::io::Error::other).flatten().map_err(|error| unreadable(path, &error))
        });
        digests.await.cloned()
    }
}

/// Digests of bytes at hand.
pub(in crate::modules) fn of_bytes(bytes: &[u8]) -> Digests {
    Digests { sha1: hex(&Sha1::digest(bytes)), md5: hex(&md5::Md5::digest(bytes)) }
}

/// What a file looks like now.
pub(in crate::modules) fn key(path: &Path) -> std::io::Result<Key> {
    let meta = std::fs::metadata(path)?;
    Ok(Key {
        path: path.to_owned(),
        device: meta.dev(),
        inode: meta.ino(),
        size: meta.size(),
        mtime: (meta.mtime(), meta.mtime_nsec()),
        ctime: (meta.ctime(), meta.ctime_nsec()),
    })
}

fn hash(path: &Path) -> std::io::Result<Digests> {
    let (mut sha1, mut md5) = (Sha1::new(), md5::Md5::new());
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digests { sha1: hex(&sha1.finalize()), md5: hex(&md5.finalize()) }),
            count => {
                sha1.update(&buffer[..count]);
                md5.update(&buffer[..count]);
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_has_the_digests_of_its_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let digests = FileDigests::default().of_file(file.path()).await.unwrap();
        assert_eq!(digests.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(digests.md5, "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(digests, of_bytes(b"abc"));
    }

    #[tokio::test]
    async fn a_changed_file_is_hashed_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let known = FileDigests::default();
        let first = known.of_file(file.path()).await.unwrap();
        std::fs::write(file.path(), "abcd").unwrap();
        assert_ne!(first, known.of_file(file.path()).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_is_hashed_once_for_many_hosts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 1 << 20]).unwrap();
        let known = FileDigests::default();
        let all = futures::future::join_all((0..20).map(|_| known.of_file(file.path()))).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(known.0.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_missing_file_is_named() {
        let error = FileDigests::default().of_file(Path::new("/no/such/file")).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot read /no/such/file on the controller: "), "{error}");
    }
}
