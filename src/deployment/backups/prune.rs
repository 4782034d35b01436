//! Removes older backups from places that take requests: buckets and other hosts.

use std::fmt::Display;

use super::prepare::Prepared;
use super::retention::Retention;
use super::{Backup, BackupResult, Manifest};

/// Removes those of the `earlier` backups that no rule wants after `made`. What fails is recorded in it.
pub(super) async fn remove_superseded<E: Display>(
    made: &mut BackupResult,
    prepared: &Prepared,
    retention: &Retention,
    earlier: Vec<Backup>,
    remove: impl AsyncFn(&Backup, &Manifest) -> Result<(), E>,
) {
    if retention.keeps_all() {
        return;
    }
    if let Some(doubt) = &prepared.doubt {
        made.kept = Some(doubt.clone());
        return;
    }
    for backup in retention.superseded(earlier, &made.backup, |backup| backup.manifest.is_ok()) {
        // One without a manifest that can be read is not among them.
        let Ok(manifest) = &backup.manifest else { continue };
        match remove(&backup, manifest).await {
            Ok(()) => made.removed.push(backup.name),
            Err(error) => {
                made.failures.push(format!("older ones cannot be removed: {error}"));
                return;
            }
        }
    }
}
