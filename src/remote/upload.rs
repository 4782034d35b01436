//! Uploading files of the controller. The digest of what arrived is compared before it takes its place.

use std::path::Path;

use sha2::Digest as _;
use tokio::io::AsyncReadExt;

use super::session::InputStream;
use super::write::{INLINE, TEMPORARY, Target, written};
use super::{Attributes, Digest, Error, Remote, Stat, quote};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

/// The digest that a file has to have when it has arrived, lower-case hex.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedDigest<'a> {
    Sha1(&'a str),
    Sha256(&'a str),
}

impl ExpectedDigest<'_> {
    fn parts(&self) -> (Digest, &str) {
        match self {
            ExpectedDigest::Sha1(hex) => (Digest::Sha1, hex),
            ExpectedDigest::Sha256(hex) => (Digest::Sha256, hex),
        }
    }

    fn of(&self, content: &[u8]) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            ExpectedDigest::Sha1(_) => hex(&sha1::Sha1::digest(content)),
            ExpectedDigest::Sha256(_) => hex(&sha2::Sha256::digest(content)),
        }
    }
}

impl Remote {
    /// As [`Remote::write`], from a file of the controller. What arrived must be what is expected,
    /// or the old file stays. `progress` gets the sent and the total number of bytes now and then.
    pub async fn upload(
        &self,
        from: &Path,
        expected: ExpectedDigest<'_>,
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
            let (digest, wanted) = expected.parts();
            let found = expected.of(&content);
            if found != wanted {
                let reason = format!("its {} is {found}, not {wanted}", digest.algorithm_name());
                return Err(Error::Refused { what: format!("send {}", from.display()), reason });
            }
            let stat = self.write_and_stat(path, &content, attributes).await?;
            progress(content.len() as u64, size);
            return Ok(stat);
        }
        let target = Target::of_path(path)?;
        let mut session = self.to_change().await?;
        let mut sent = 0;
        let mut each = |chunk: &[u8]| {
            sent += chunk.len() as u64;
            progress(sent, size);
        };
        let content = InputStream { reader: &mut file, size, each: &mut each };
        let (digest, wanted) = expected.parts();
        let (name, found) = (digest.algorithm_name(), digest.command(TEMPORARY.1));
        let own = target.own(size, attributes)?;
        let end = format!("wl_sum {name} {} $({found}) && {own} && wl_mv || wl_drop", quote::quote_word(wanted));
        written(path, &session.pass(&target.begin_script(attributes), TEMPORARY, content, &end).await?)
    }
}
