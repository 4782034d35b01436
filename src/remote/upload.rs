//! Uploading files of the controller. The digest of what arrived is compared before it takes its place.

use std::path::Path;

use tokio::io::AsyncReadExt;

use super::session::Content;
use super::write::{INLINE, Target, written};
use super::{Attributes, Digest, Error, Remote, Stat, quote};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

impl Remote {
    /// As [`Remote::write`], from a file of the controller. `sha1` is its digest, lower-case hex: what arrived must have
    /// it, or the old file stays. `progress` is told now and then how many bytes of how many are sent.
    pub async fn upload(
        &self,
        from: &Path,
        sha1: &str,
        path: &str,
        attributes: &Attributes,
        progress: &(dyn Fn(u64, u64) + Send + Sync),
    ) -> Result<Stat, Error> {
        let here = |error: std::io::Error| Error::Refused {
            what: format!("read {} on the controller", from.display()),
            reason: error.to_string(),
        };
        let mut file = tokio::fs::File::open(from).await.map_err(here)?;
        file.set_max_buf_size(CHUNK);
        let size = file.metadata().await.map_err(here)?.len();
        if size <= INLINE as u64 {
            let mut content = Vec::new();
            file.read_to_end(&mut content).await.map_err(here)?;
            let stat = self.write_and_stat(path, &content, attributes).await?;
            progress(content.len() as u64, size);
            return Ok(stat);
        }
        let target = Target::of(path)?;
        let mut session = self.session().await?;
        let mut sent = 0;
        let mut each = |chunk: &[u8]| {
            sent += chunk.len() as u64;
            progress(sent, size);
        };
        let content = Content { reader: &mut file, size, each: &mut each };
        let digest = Digest::Sha1.command("\"$wl_t\"");
        let own = target.own(size, attributes)?;
        let end = format!("wl_sum {} $({digest}) && {own} && wl_mv || wl_drop", quote::word(sha1));
        written(path, &session.pass(&target.begin(attributes), "\"$wl_t\"", content, &end).await?)
    }
}
