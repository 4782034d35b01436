//! Uploading files of the controller. The digest of what arrived is compared before it takes its place.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;

use super::session::Content;
use super::write::{INLINE, Target, done};
use super::{Attributes, Digest, Error, Remote, probe};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

impl Remote {
    /// As [`Remote::write`], from a file of the controller; its digest is checked on arrival.
    pub async fn upload(&self, from: &Path, path: &str, attributes: &Attributes) -> Result<(), Error> {
        self.upload_with(from, path, attributes, &|_, _| ()).await
    }

    /// As [`Remote::upload`]; `progress` is told now and then how many bytes of how many are sent.
    pub async fn upload_with(
        &self,
        from: &Path,
        path: &str,
        attributes: &Attributes,
        progress: &(dyn Fn(u64, u64) + Send + Sync),
    ) -> Result<(), Error> {
        let here = |error: std::io::Error| Error::Refused {
            what: format!("read {} on the controller", from.display()),
            reason: error.to_string(),
        };
        let mut file = tokio::fs::File::open(from).await.map_err(here)?;
        file.set_max_buf_size(CHUNK);
        let metadata = file.metadata().await.map_err(here)?;
        let size = metadata.len();
        if size <= INLINE as u64 {
            let mut content = Vec::new();
            file.read_to_end(&mut content).await.map_err(here)?;
            self.write(path, &content, attributes).await?;
            progress(content.len() as u64, size);
            return Ok(());
        }
        let target = Target::of(path)?;
        let mut session = self.session().await?;
        let mut sent = 0;
        let mut each = |chunk: &[u8]| {
            sent += chunk.len() as u64;
            progress(sent, size);
        };
        let content = Content { reader: &mut file, size, each: &mut each };
        let digest = Digest::Sha256.command("\"$wl_t\"");
        let begin = target.begin();
        let (arrived, ours) =
            tokio::join!(session.pass(&begin, "\"$wl_t\"", content, &digest), sha256(from, &metadata));
        let arrived = arrived?;
        done(path, &arrived)?;
        let theirs = probe::hex(&arrived.stdout);
        let ours = ours.map_err(here);
        if ours.is_err() || theirs.as_ref() != ours.as_ref().ok() {
            session.ask("wl_drop").await?;
            let (ours, theirs) = (ours?, theirs.unwrap_or_else(|| "unknown".to_owned()));
            let reason = format!("its sha256 is {theirs} after the upload and should be {ours}");
            return Err(Error::Refused { what: format!("write {path}"), reason });
        }
        let end = format!("{} && wl_mv || wl_drop", target.own(size, attributes)?);
        done(path, &session.ask(&end).await?)
    }
}

/// A file in one state of it: device, inode, size, times of its last changes.
type Version = (u64, u64, u64, (i64, i64), (i64, i64));

/// Computed digests: a file often goes to many hosts, most at the same time.
static DIGESTS: LazyLock<Mutex<HashMap<Version, Arc<OnceCell<String>>>>> = LazyLock::new(Mutex::default);

async fn sha256(path: &Path, metadata: &Metadata) -> std::io::Result<String> {
    let version = (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    );
    let cell = DIGESTS.lock().unwrap_or_else(PoisonError::into_inner).entry(version).or_default().clone();
    let path = PathBuf::from(path);
    let compute = || async {
        let computed = tokio::task::spawn_blocking(move || sha256_of(&path)).await;
        computed.map_err(std::io::Error::other)?
    };
    cell.get_or_try_init(compute).await.cloned()
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut sum = Sha256::new();
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match std::io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => sum.update(&buffer[..n]),
        }
    }
}
