//! The credentials of a deployment in an encrypted backup: with them, and with the snapshot, a new controller can restore it.

use std::io::{self, BufReader, Read, Write};
use std::path::{Component, Path};

use super::age_format::decrypt_file;
use super::encryption::{Encryption, Identities};
use super::error::{BackupError, io_error};
use super::files::{open_regular, write_packed};
use super::{CREDENTIALS, PackedCredentials};
use crate::credentials::{CredentialFile, CredentialFiles};

/// Of all files together, in bytes.
const LARGEST_CONTENT: u64 = 48 << 20;
/// Of an archive that is read, in bytes. Everybody who knows a public key can encrypt something large.
const LARGEST: u64 = 64 << 20;

/// Writes the credentials into an encrypted file in `directory`.
pub(super) fn pack_credentials(
    directory: &Path,
    files: &CredentialFiles,
    encryption: &Encryption,
) -> Result<PackedCredentials, BackupError> {
    let at = directory.join(CREDENTIALS);
    let size: u64 = files.values().map(|file| file.content.len() as u64).sum();
    if size > LARGEST_CONTENT {
        return Err(BackupError::LargeCredentials { size });
    }
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

/// The credentials of the backup in a directory.
///
/// # Errors
/// They cannot be decrypted, or are damaged.
pub(super) fn read_credentials(
    backup: &Path,
    packed: &PackedCredentials,
    encryption: &Encryption,
    identities: &Identities,
) -> Result<CredentialFiles, String> {
    let file = open_regular(&backup.join(CREDENTIALS)).map_err(|error| format!("cannot be read: {error}"))?;
    let decrypted = decrypt_file(BufReader::new(file), encryption, identities)?;
    let files = read_archive(decrypted).map_err(|error| format!("damaged credentials: {error}"))?;
    // The end of an archive does not show whether it is the end.
    match files.len() as u64 == packed.files {
        true => Ok(files),
        false => Err(format!("damaged credentials: {} files instead of {}", files.len(), packed.files)),
    }
}

fn read_archive(packed: impl Read) -> io::Result<CredentialFiles> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut archive = tar::Archive::new(zstd::Decoder::new(packed)?.take(LARGEST));
    let mut files = CredentialFiles::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let text = path.display().to_string();
        if !is_plain || !entry.header().entry_type().is_file() || text.contains(char::is_control) {
            return Err(wrong(format!(
                "{:?} is not a file in their directory",
                text.chars().take(200).collect::<String>()
            )));
        }
        let mode = entry.header().mode()? & 0o755;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if files.insert(path, CredentialFile { content, mode }).is_some() {
            return Err(wrong("a file is there twice".to_owned()));
        }
    }
    Ok(files)
}
