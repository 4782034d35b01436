//! Reading, writing and comparing the files of a backup.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::age_format::encrypt_file;
use super::encryption::Encryption;
use super::error::{BackupError, io_error};
use crate::deployment::plan::digest_to_hex;

/// etcd appends the SHA-256 of the database to a snapshot.
const DIGEST: u64 = 32;

/// The size and SHA-256 of a snapshot, whose end is the digest of the rest.
pub(super) fn verify_raw(path: &Path) -> Result<(u64, String), BackupError> {
    let read = || -> io::Result<(u64, String, bool)> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut whole = Sha256::new();
        let database = copy_into(&mut (&mut file).take(size.saturating_sub(DIGEST)), &mut whole)?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        whole.update(&end);
        Ok((size, digest_to_hex(whole), database.finalize().as_slice() == end.as_slice()))
    };
    match read().map_err(io_error(path))? {
        (size, sha256, true) => Ok((size, sha256)),
        _ => Err(BackupError::Damaged("its checksum does not match".to_owned())),
    }
}

/// Reads all of it into `digest`, and returns a separate digest.
fn copy_into(from: &mut impl Read, digest: &mut Sha256) -> io::Result<Sha256> {
    let mut own = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(own),
            count => {
                own.update(&piece[..count]);
                digest.update(&piece[..count]);
            }
        }
    }
}

/// The size of what can be read, and its SHA-256.
pub(super) fn digest_of(mut from: impl Read) -> io::Result<(u64, String)> {
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut piece = vec![0; 1 << 16];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok((size, digest_to_hex(digest))),
            count => {
                digest.update(&piece[..count]);
                size += count as u64;
            }
        }
    }
}

pub(super) fn digest(path: &Path) -> io::Result<(u64, String)> {
    digest_of(BufReader::new(File::open(path)?))
}

/// Others may have put a pipe or a link there.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a file")),
    }
}

/// Compresses a file, and encrypts it if that is wanted. Gives the size and the SHA-256 of what was written.
pub(super) fn pack(from: &Path, to: &Path, encryption: Option<&Encryption>) -> io::Result<(u64, String)> {
    let mut from = File::open(from)?;
    write_packed(to, encryption, |to| io::copy(&mut from, to).map(drop))
}

/// Compresses what `write` writes, and encrypts it if that is wanted. Gives the size and the SHA-256 of what was written.
pub(super) fn write_packed(
    path: &Path,
    encryption: Option<&Encryption>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<(u64, String)> {
    let compress = |to: &mut dyn Write| {
        let mut encoder = zstd::Encoder::new(to, 3)?;
        write(&mut encoder)?;
        encoder.finish().map(drop)
    };
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut to = Digesting { to: file, size: 0, digest: Sha256::new() };
    match encryption {
        None => compress(&mut to)?,
        Some(encryption) => to = encrypt_file(to, encryption, compress)?,
    }
    to.to.sync_all()?;
    Ok((to.size, digest_to_hex(to.digest)))
}

/// Remembers what went through.
struct Digesting<W> {
    to: W,
    size: u64,
    digest: Sha256,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let count = self.to.write(piece)?;
        self.digest.update(&piece[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

pub(super) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
