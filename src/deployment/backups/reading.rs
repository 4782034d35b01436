//! Reads a backup in a directory: its manifest, whether it is what was written, its snapshot and its credentials.

use std::fs::{self, DirBuilder};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::age_format::decrypt_file;
use super::credentials::read_credentials;
use super::encryption::Identities;
use super::error::{BackupError, io_error};
use super::files::{digest_of, open_regular, verify_raw};
use super::{DIFFERS, ENCRYPTED_LAYOUT, LARGEST_MANIFEST, LAYOUT, MANIFEST, Manifest, PARTS};
use crate::credentials::write_files_for;

/// The files that a backup may consist of.
pub fn files_of(backup: &Path) -> impl Iterator<Item = PathBuf> {
    PARTS.into_iter().chain([MANIFEST]).map(|file| backup.join(file))
}

/// The manifest of the backup in a directory; why it cannot be used otherwise.
pub fn manifest(backup: &Path) -> Result<Manifest, String> {
    let mut text = Vec::new();
    let file = open_regular(&backup.join(MANIFEST)).map_err(|error| format!("no manifest: {error}"))?;
    file.take(LARGEST_MANIFEST as u64).read_to_end(&mut text).map_err(|error| format!("no manifest: {error}"))?;
    parse_manifest(&text)
}

/// Why a manifest cannot be used otherwise.
pub(super) fn parse_manifest(text: &[u8]) -> Result<Manifest, String> {
    let manifest: Manifest = serde_json::from_slice(text).map_err(|error| format!("damaged manifest: {error}"))?;
    match manifest.layout {
        LAYOUT if manifest.encryption.is_none() => Ok(manifest),
        ENCRYPTED_LAYOUT if manifest.encryption.is_some() => Ok(manifest),
        other => Err(format!("made by another version of windlass (layout {other})")),
    }
}

/// Reads all of a backup and compares it with its manifest. What is encrypted is decrypted if there are identities.
///
/// # Errors
/// Why it is not good.
pub fn verify(backup: &Path, identities: &Identities) -> Result<Manifest, String> {
    let manifest = manifest(backup)?;
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    if let Some(encryption) = &manifest.encryption {
        for file in manifest.files() {
            let read = open_regular(&backup.join(file.name)).and_then(digest_of).map_err(unreadable)?;
            if read != (file.size, file.sha256) {
                return Err(DIFFERS.to_owned());
            }
        }
        if identities.is_empty() {
            return Ok(manifest);
        }
        if let Some(packed) = &manifest.credentials {
            read_credentials(backup, packed, encryption, identities)?;
        }
    }
    let read = digest_of(open_snapshot(backup, &manifest, identities)?).map_err(unreadable)?;
    match read == (manifest.size, manifest.sha256.clone()) {
        true => Ok(manifest),
        false => Err(DIFFERS.to_owned()),
    }
}

/// The snapshot, decrypted and unpacked: one byte more than the manifest says at most.
fn open_snapshot(backup: &Path, manifest: &Manifest, identities: &Identities) -> Result<Box<dyn Read>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let name = super::snapshot_name(manifest.encryption.as_ref());
    let file = BufReader::new(open_regular(&backup.join(name)).map_err(unreadable)?);
    let packed: Box<dyn Read> = match &manifest.encryption {
        None => Box::new(file),
        Some(encryption) => decrypt_file(file, encryption, identities)?,
    };
    let unpacked = zstd::Decoder::new(packed).map_err(unreadable)?;
    Ok(Box::new(unpacked.take(manifest.size.saturating_add(1))))
}

/// Unpacks a backup's snapshot into a file that only its owner can read, and verifies it.
///
/// # Errors
/// It is damaged, cannot be decrypted, or cannot be written.
pub(in crate::deployment) fn unpack_backup(
    backup: &Path,
    to: &Path,
    identities: &Identities,
) -> Result<Manifest, BackupError> {
    let manifest = manifest(backup).map_err(BackupError::Damaged)?;
    let mut snapshot = open_snapshot(backup, &manifest, identities).map_err(BackupError::Damaged)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(io_error(to))?;
    io::copy(&mut snapshot, &mut file).and_then(|_| file.sync_all()).map_err(io_error(to))?;
    let (size, sha256) = verify_raw(to)?;
    match (size, &sha256) == (manifest.size, &manifest.sha256) {
        true => Ok(manifest),
        false => Err(BackupError::Damaged(DIFFERS.to_owned())),
    }
}

/// Writes the credentials of the backup in a directory into the directory `to`, which must not exist, or be empty. Gives their paths in it.
/// They are all there, or none is.
///
/// # Errors
/// The backup has none, they cannot be decrypted, or are damaged; `to` has files, or cannot be written.
pub fn unpack_credentials(backup: &Path, to: &Path, identities: &Identities) -> Result<Vec<PathBuf>, BackupError> {
    let unusable = |why: String| BackupError::Unusable { path: backup.to_owned(), why };
    let unwritten = |path: &Path| {
        let path = path.to_owned();
        move |error| BackupError::Unwritten { path, error }
    };
    let found = manifest(backup).map_err(unusable)?;
    let (Some(encryption), Some(packed)) = (&found.encryption, &found.credentials) else {
        return Err(BackupError::HoldsNoCredentials { path: backup.to_owned() });
    };
    // Also the snapshot: a backup that is damaged is not what anybody made.
    verify(backup, &Identities::default()).map_err(unusable)?;
    let files = read_credentials(backup, packed, encryption, identities).map_err(unusable)?;
    let is_empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(unwritten(to)(error)),
    };
    if !is_empty {
        return Err(BackupError::NotEmpty { path: to.to_owned() });
    }
    let beside = to.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(beside).map_err(unwritten(beside))?;
    let mut partial = tempfile::Builder::new();
    let partial = partial.prefix(".credentials-").permissions(fs::Permissions::from_mode(0o700));
    let partial = partial.tempdir_in(beside).map_err(unwritten(beside))?;
    let whole = fs::canonicalize(beside).map_err(unwritten(beside))?.join(to.file_name().unwrap_or_default());
    write_files_for(partial.path(), &whole.to_string_lossy(), &files).map_err(unwritten(to))?;
    // A directory takes the place of an empty one.
    fs::rename(partial.path(), to).map_err(unwritten(to))?;
    // It has another name by now, so that nothing is removed with it.
    drop(partial.keep());
    fs::File::open(beside).and_then(|beside| beside.sync_all()).map_err(unwritten(beside))?;
    Ok(files.into_keys().collect())
}
