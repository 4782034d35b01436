//! From a snapshot that arrived to the files of a backup.

use std::fs::{self, File};

use super::credentials::pack_credentials;
use super::encryption::Recipients;
use super::error::{BackupError, io_error};
use super::files::{digest_of, pack, sync, verify_raw, write_whole};
use super::staging::Staging;
use super::{ENCRYPTED_LAYOUT, LAYOUT, MANIFEST, Manifest, SnapshotReport, now, number, snapshot_name};
use crate::credentials::CredentialFiles;

/// A backup whose files are verified, and which is kept nowhere yet.
#[derive(Debug, Clone)]
pub(in crate::deployment) struct Prepared {
    pub(in crate::deployment) manifest: Manifest,
    /// A host took it as a local backup.
    pub(super) is_local: bool,
    /// Why no older backup is removed for it: it may lack what the other members have.
    pub(super) doubt: Option<String>,
}

/// Verifies the snapshot in `staging`, compresses and perhaps encrypts it, and writes the manifest. `credentials`: what is encrypted
/// beside it.
///
/// # Errors
/// It is not what the host sent, or cannot be written.
pub(in crate::deployment) fn prepare_backup(
    staging: &Staging,
    taken: SnapshotReport,
    deployment: String,
    recipients: &Recipients,
    credentials: Option<&CredentialFiles>,
) -> Result<Prepared, BackupError> {
    let raw = staging.path().join("snapshot.db");
    let encryption = recipients.encryption();
    let packed = staging.path().join(snapshot_name(encryption.as_ref()));
    let (size, sha256) = verify_raw(&raw)?;
    if sha256 != taken.sha256 {
        return Err(BackupError::Damaged(format!(
            "its SHA-256 is {sha256}, and on {} it was {}",
            taken.host, taken.sha256
        )));
    }
    let keys = number(&taken.keys, "number of keys")?;
    let revision = number(&taken.revision, "revision")?;
    let time = match &taken.taken {
        Some(time) => number(time, "time")?,
        None => now(),
    };
    let (compressed_size, compressed_sha256) = pack(&raw, &packed, encryption.as_ref()).map_err(io_error(&packed))?;
    // What was written is read again. Nothing here decrypts it.
    let file = File::open(&packed).map_err(io_error(&packed))?;
    let is_same = match &encryption {
        Some(_) => digest_of(file).map(|read| read == (compressed_size, compressed_sha256.clone())),
        None => zstd::Decoder::new(file).and_then(digest_of).map(|read| read == (size, sha256.clone())),
    };
    if !is_same.map_err(io_error(&packed))? {
        return Err(BackupError::Damaged("the compressed file differs from it".to_owned()));
    }
    fs::remove_file(&raw).map_err(io_error(&raw))?;
    let credentials = match (credentials, &encryption) {
        (None, _) => None,
        (Some(files), Some(encryption)) => Some(pack_credentials(staging.path(), files, encryption)?),
        (Some(_), None) => return Err(BackupError::CredentialsInClear),
    };
    let doubt = (taken.compared < taken.majority || !taken.has_leader).then(|| {
        let (compared, majority) = (taken.compared, taken.majority);
        format!("the data of {compared} members could be compared, and a majority is {majority}")
    });
    let manifest = Manifest {
        layout: if encryption.is_some() { ENCRYPTED_LAYOUT } else { LAYOUT },
        deployment,
        cluster: taken.cluster,
        cluster_id: taken.cluster_id,
        member: taken.member,
        is_leader: taken.is_leader,
        members: taken.members,
        compared: taken.compared,
        has_leader: taken.has_leader,
        etcd_version: taken.etcd_version,
        windlass_version: env!("CARGO_PKG_VERSION").to_owned(),
        taken: time,
        revision,
        keys,
        size,
        sha256,
        compressed_size,
        compressed_sha256,
        encryption,
        hash: taken.hash,
        rehearsal: taken.rehearsal,
        credentials,
    };
    let at = staging.path().join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).expect("it is text and numbers");
    write_whole(&at, text.as_bytes()).map_err(io_error(&at))?;
    sync(staging.path()).map_err(io_error(staging.path()))?;
    Ok(Prepared { manifest, is_local: taken.taken.is_some(), doubt })
}
