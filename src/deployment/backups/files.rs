//! Reading, writing and comparing the files of a backup.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

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

fn digest_of(mut from: impl Read) -> io::Result<(u64, String)> {
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

/// Reads one byte more than `size` at most.
pub(super) fn digest_unpacked(path: &Path, size: u64) -> io::Result<(u64, String)> {
    digest_of(zstd::Decoder::new(open_regular(path)?)?.take(size.saturating_add(1)))
}

/// Others may have put a pipe or a link there.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a file")),
    }
}

pub(super) fn pack(from: &Path, to: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut encoder = zstd::Encoder::new(file, 3)?;
    io::copy(&mut File::open(from)?, &mut encoder)?;
    encoder.finish()?.sync_all()
}

pub(super) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
