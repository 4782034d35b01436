//! From a snapshot that arrived to the files of a backup.

use std::fs;

use super::error::{BackupError, io_error};
use super::files::{digest, digest_unpacked, pack, sync, verify_raw, write_whole};
use super::staging::Staging;
use super::{LAYOUT, MANIFEST, Manifest, SNAPSHOT, SnapshotReport, now, number};

/// A backup whose files are verified, and which is kept nowhere yet.
#[derive(Debug, Clone)]
pub(in crate::deployment) struct Prepared {
    pub(in crate::deployment) manifest: Manifest,
    /// A host took it as a local backup.
    pub(super) is_local: bool,
    /// Why no older backup is removed for it: it may lack what the other members have.
    pub(super) doubt: Option<String>,
}

/// Verifies the snapshot in `staging`, compresses it, and writes the manifest.
///
/// # Errors
/// It is not what the host sent, or cannot be written.
pub(in crate::deployment) fn prepare_backup(
    staging: &Staging,
    taken: SnapshotReport,
    deployment: String,
) -> Result<Prepared, BackupError> {
    let raw = staging.path().join("snapshot.db");
    let packed = staging.path().join(SNAPSHOT);
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
    pack(&raw, &packed).map_err(io_error(&packed))?;
    // What was written is read again.
    let (read_size, read_sha256) = digest_unpacked(&packed, size).map_err(io_error(&packed))?;
    if (read_size, &read_sha256) != (size, &sha256) {
        return Err(BackupError::Damaged("the compressed file differs from it".to_owned()));
    }
    fs::remove_file(&raw).map_err(io_error(&raw))?;
    let (compressed_size, compressed_sha256) = digest(&packed).map_err(io_error(&packed))?;
    let doubt = (taken.compared < taken.majority || !taken.has_leader).then(|| {
        let (compared, majority) = (taken.compared, taken.majority);
        format!("the data of {compared} members could be compared, and a majority is {majority}")
    });
    let manifest = Manifest {
        layout: LAYOUT,
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
    };
    let at = staging.path().join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).expect("it is text and numbers");
    write_whole(&at, text.as_bytes()).map_err(io_error(&at))?;
    sync(staging.path()).map_err(io_error(staging.path()))?;
    Ok(Prepared { manifest, is_local: taken.taken.is_some(), doubt })
}
