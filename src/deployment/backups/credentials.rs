//! The credentials of a deployment in an encrypted backup: with them, and with the snapshot, a new controller can restore it.

use std::fs::{self, DirBuilder};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use super::age_format::decrypt_file;
use super::directory::{manifest, verify};
use super::encryption::{Encryption, Identities};
use super::error::{BackupError, io_error};
use super::files::{open_regular, write_packed};
use super::{CREDENTIALS, PackedCredentials};
use crate::credentials::{CredentialFile, CredentialFiles, write_files};

/// Of all files together, in bytes. Everybody who knows a public key can encrypt something large.
const LARGEST: u64 = 64 << 20;

/// Writes the credentials into an encrypted file in `directory`.
pub(super) fn pack_credentials(
    directory: &Path,
    files: &CredentialFiles,
    encryption: &Encryption,
) -> Result<PackedCredentials, BackupError> {
    let at = directory.join(CREDENTIALS);
    let packed = write_packed(&at, Some(encryption), |to| write_archive(to, files));
    let (compressed_size, compressed_sha256) = packed.map_err(io_error(&at))?;
    Ok(PackedCredentials { files: files.len() as u64, compressed_size, compressed_sha256 })
}

fn write_archive(to: &mut dyn Write, files: &CredentialFiles) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    for (path, file) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(file.mode);
        archive.append_data(&mut header, path, file.content.as_slice())?;
    }
    archive.finish()
}

/// Writes the credentials of the backup in a directory into the directory `to`, which must not exist, or be empty. Gives their paths in it.
///
/// # Errors
/// The backup has none, they cannot be decrypted, or are damaged; `to` has files, or cannot be written.
pub fn unpack_credentials(backup: &Path, to: &Path, identities: &Identities) -> Result<Vec<PathBuf>, BackupError> {
    let unusable = |why: String| BackupError::Unusable { path: backup.to_owned(), why };
    let found = manifest(backup).map_err(unusable)?;
    let (Some(encryption), Some(_)) = (&found.encryption, &found.credentials) else {
        return Err(BackupError::HoldsNoCredentials { path: backup.to_owned() });
    };
    // Also the snapshot: a backup that is damaged is not what anybody made.
    verify(backup, &Identities::default()).map_err(unusable)?;
    let file = open_regular(&backup.join(CREDENTIALS)).map_err(|error| unusable(error.to_string()))?;
    let decrypted = decrypt_file(BufReader::new(file), encryption, identities).map_err(unusable)?;
    let files = read_archive(decrypted).map_err(|error| unusable(format!("damaged credentials: {error}")))?;
    let is_empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(io_error(to)(error)),
    };
    if !is_empty {
        return Err(BackupError::NotEmpty { path: to.to_owned() });
    }
    DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(io_error(to))?;
    write_files(to, &files).map_err(io_error(to))?;
    Ok(files.into_keys().collect())
}

fn read_archive(packed: impl Read) -> io::Result<CredentialFiles> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut archive = tar::Archive::new(zstd::Decoder::new(packed)?.take(LARGEST));
    let mut files = CredentialFiles::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !entry.header().entry_type().is_file() {
            return Err(wrong(format!("{:?} is not a file in their directory", path.display().to_string())));
        }
        let mode = entry.header().mode()? & 0o755;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(path, CredentialFile { content, mode });
    }
    Ok(files)
}
