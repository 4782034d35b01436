//! What the backups that are there say about a new one. It does not matter where they are.

use std::path::Path;

use super::prepare::Prepared;
use super::{Backup, BackupError, Manifest};

/// Refuses a backup that does not belong to those that are there. Of a local backup: the one that is the same, if it is good.
///
/// # Errors
/// The others are of another cluster, or newer.
pub(super) fn check_history<'a>(
    place: &Path,
    earlier: &'a [Backup],
    prepared: &Prepared,
    is_good: impl Fn(&Backup) -> bool,
) -> Result<Option<&'a Backup>, BackupError> {
    let Prepared { manifest, is_local, .. } = prepared;
    let known = || earlier.iter().filter_map(|backup| Some((backup, backup.manifest.as_ref().ok()?)));
    if let Some((_, other)) =
        known().find(|(_, other)| other.cluster != manifest.cluster || other.deployment != manifest.deployment)
    {
        let of = |manifest: &Manifest| format!("{} ({})", manifest.cluster, manifest.deployment);
        return Err(BackupError::OtherCluster { path: place.to_owned(), found: of(other), wanted: of(manifest) });
    }
    let copied = known().find(|(_, other)| *is_local && other.sha256 == manifest.sha256);
    if let Some((backup, _)) = copied.filter(|(backup, _)| is_good(backup)) {
        return Ok(Some(backup));
    }
    let of_cluster = known().filter(|(_, other)| other.cluster_id == manifest.cluster_id);
    let mut newer: Vec<_> = of_cluster.filter(|(_, other)| other.revision > manifest.revision).collect();
    newer.sort_by_key(|(_, other)| std::cmp::Reverse(other.revision));
    match newer.into_iter().find(|(backup, _)| is_good(backup)) {
        None => Ok(None),
        Some((backup, other)) => {
            let (path, newest) = (place.to_owned(), backup.name.clone());
            let (revision, known) = (manifest.revision, other.revision);
            Err(match is_local {
                true => BackupError::Older { path, revision, newest, known },
                false => BackupError::WentBack { path, revision, newest, known },
            })
        }
    }
}
