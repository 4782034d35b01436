//! Restores etcd from a backup, undoes or releases a restore, and starts the members of a cluster that lost its majority. What is
//! done to the hosts is in the playbooks.

use std::path::{Path, PathBuf};

use rand::RngExt as _;

use crate::deployment::backups::{self, BackupError, Identities, Manifest, Staging};
use crate::deployment::operation::Operation;
use crate::deployment::recorded_operation::RecordedOperation;
use crate::deployment::{Control, Error, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What is done about the data of an etcd cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restoration {
    Restore(Box<Restore>),
    /// Moves the data that the last restore moved away back.
    Undo,
    /// Ends the last restore: controllers start again.
    Release,
    /// Starts members that are stopped.
    Recover,
}

/// A restore of a backup that was unpacked and verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// The name of the backup's directory.
    name: String,
    manifest: Manifest,
    /// The snapshot, unpacked.
    snapshot: PathBuf,
    /// Unique: the cluster gets a new token, so that no member with older data is taken for one of it.
    id: String,
    options: RestoreOptions,
}

/// What the caller wants of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Members of the present cluster whose machines are gone for good.
    pub lost: Vec<String>,
    /// The backup may be of another deployment.
    pub foreign: bool,
    /// Release it immediately.
    pub releases: bool,
    /// An interrupted restore is given up: all members are restored again.
    pub abandons: bool,
}

impl Restoration {
    pub(in crate::deployment) fn name(&self) -> &'static str {
        match self {
            Restoration::Restore(_) => "etcd restore",
            Restoration::Undo => "etcd restore --undo",
            Restoration::Release => "etcd restore --release",
            Restoration::Recover => "etcd recover",
        }
    }

    /// As the journal names it.
    pub(in crate::deployment) fn recorded(&self) -> RecordedOperation {
        match self {
            Restoration::Restore(restore) => RecordedOperation::RestoreEtcd { backup: restore.name.clone() },
            Restoration::Undo => RecordedOperation::UndoRestore,
            Restoration::Release => RecordedOperation::ReleaseRestore,
            Restoration::Recover => RecordedOperation::RecoverEtcd,
        }
    }

    pub(in crate::deployment) fn playbook(&self) -> &'static str {
        match self {
            Restoration::Restore(_) => "etcd-restore.yml",
            Restoration::Undo => "etcd-restore-undo.yml",
            Restoration::Release => "etcd-restore-release.yml",
            Restoration::Recover => "etcd-recover.yml",
        }
    }

    /// Whether it ends an operation that did not come to its end. A restore is what is left when nothing else works.
    pub(in crate::deployment) fn may_follow(&self, unfinished: &RecordedOperation) -> bool {
        use RecordedOperation::{ReleaseRestore, RestoreEtcd, UndoRestore};
        let is_restore = matches!(unfinished, RestoreEtcd { .. } | UndoRestore | ReleaseRestore);
        match self {
            Restoration::Restore(_) | Restoration::Recover => !is_restore,
            Restoration::Undo | Restoration::Release => is_restore,
        }
    }

    pub(in crate::deployment) fn playbook_variables(&self) -> Vars {
        let restore = match self {
            Restoration::Restore(restore) => restore,
            Restoration::Recover => return Vars::default(),
            Restoration::Undo | Restoration::Release => return Vars::default(),
        };
        let Restore { name, manifest, snapshot, id, options } = &**restore;
        let backup = Value::from_pairs([
            ("name", Value::from(name.as_str())),
            ("taken", Value::from(backups::time_text(manifest.taken))),
            ("cluster_id", Value::from(manifest.cluster_id.as_str())),
            ("etcd_version", Value::from(manifest.etcd_version.as_str())),
            ("revision", Value::from(manifest.revision)),
            ("size", Value::from(manifest.size)),
            ("sha256", Value::from(manifest.sha256.as_str())),
        ]);
        Vars::from([
            (variable::ETCD_RESTORE_BACKUP.into(), backup),
            (variable::ETCD_RESTORE_SNAPSHOT.into(), Value::from(snapshot.display().to_string())),
            (variable::ETCD_RESTORE_ID.into(), Value::from(id.as_str())),
            (variable::ETCD_RESTORE_LOST.into(), Value::from(options.lost.clone())),
            (variable::ETCD_RESTORE_RELEASES.into(), Value::from(options.releases)),
            (variable::ETCD_RESTORE_ABANDONS.into(), Value::from(options.abandons)),
        ])
    }
}

/// A restore that can be tried out and carried out. Its unpacked snapshot is removed with it.
pub struct UnpackedBackup {
    pub operation: Operation,
    _snapshot: Staging,
}

/// Reads the backup in a directory in full, verifies it, and decrypts and unpacks its snapshot into a private directory
/// below `scratch`.
///
/// # Errors
/// It is damaged, cannot be decrypted, or is of another deployment; the deployment cannot be read.
pub async fn unpack_backup(
    site: &Site,
    backup: &Path,
    scratch: &Path,
    identities: &Identities,
    options: RestoreOptions,
    control: &Control,
) -> Result<UnpackedBackup, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.describe_deployment(control).await?;
    super::refuse_without_hosts(&phase)?;
    let (backup, deployment, cluster) = (backup.to_owned(), deployment.name, deployment.etcd_cluster);
    let (identities, scratch) = (identities.clone(), scratch.to_owned());
    let unpack = backups::blocking(move || {
        let wanted = (!options.foreign).then_some((deployment.as_str(), cluster.as_str()));
        let UnpackedSnapshot { name, manifest, staging, file } =
            unpack_snapshot(&backup, &scratch, &identities, wanted)?;
        let restore = Restore { name, manifest, snapshot: file, id: unique_id(), options };
        let operation = Operation::RestoreEtcd(Restoration::Restore(Box::new(restore)));
        Ok::<_, BackupError>(UnpackedBackup { operation, _snapshot: staging })
    });
    Ok(unpack.await?)
}

/// The snapshot of a backup, verified and in clear. It is removed with its directory.
pub(super) struct UnpackedSnapshot {
    /// Of the backup.
    pub name: String,
    pub manifest: Manifest,
    pub staging: Staging,
    pub file: PathBuf,
}

/// Reads the backup in a directory in full, and unpacks its snapshot into a private directory below `scratch`. `wanted`: the deployment and the
/// cluster that it must be of.
///
/// # Errors
/// It is damaged, cannot be decrypted, or is of another deployment.
pub(super) fn unpack_snapshot(
    backup: &Path,
    scratch: &Path,
    identities: &Identities,
    wanted: Option<(&str, &str)>,
) -> Result<UnpackedSnapshot, BackupError> {
    // A path such as `.` has no name.
    let backup = std::fs::canonicalize(backup).map_err(|error| unusable(backup, error.to_string()))?;
    let manifest = backups::manifest(&backup).map_err(|why| unusable(&backup, why))?;
    if let Some((deployment, cluster)) = wanted
        && (manifest.deployment != deployment || manifest.cluster != cluster)
    {
        let found = format!("{} ({})", manifest.cluster, manifest.deployment);
        let wanted = format!("{cluster} ({deployment})");
        return Err(BackupError::Foreign { path: backup, found, wanted });
    }
    let name = backup.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let staging = Staging::clean_in(scratch)?;
    let file = staging.path().join("snapshot.db");
    let manifest = backups::unpack_backup(&backup, &file, identities).map_err(|error| match error {
        BackupError::Damaged(why) => unusable(&backup, why),
        other => other,
    })?;
    Ok(UnpackedSnapshot { name, manifest, staging, file })
}

/// `20261124T043051Z-0badcafe`
pub(super) fn unique_id() -> String {
    format!("{}-{:08x}", backups::timestamp(backups::now()), rand::rng().random::<u32>())
}

fn unusable(backup: &Path, why: String) -> BackupError {
    BackupError::Unusable { path: backup.to_owned(), why }
}

#[cfg(test)]
pub(in crate::deployment) mod tests {
    use super::*;

    pub(in crate::deployment) fn restore_of(name: &str) -> Restoration {
        let manifest = serde_json::json!({
            "layout": 1, "deployment": "karmada", "cluster": "etcd", "cluster_id": "7", "member": "h1", "is_leader": false,
            "members": ["h1"], "compared": 1, "etcd_version": "3.5.16", "windlass_version": "0.2.0", "taken": 1_795_494_651_u64,
            "revision": 164, "keys": 9, "size": 40, "sha256": "ab", "compressed_size": 20, "compressed_sha256": "cd",
        });
        Restoration::Restore(Box::new(Restore {
            name: name.into(),
            manifest: serde_json::from_value(manifest).unwrap(),
            snapshot: "/srv/backups/.partial-x/snapshot.db".into(),
            id: "20261124T043051Z-0badcafe".into(),
            options: RestoreOptions { lost: vec!["h3".into()], ..RestoreOptions::default() },
        }))
    }

    #[test]
    fn a_restore_follows_anything_but_another_restore_and_undo_and_release_only_that() {
        let restore = restore_of("b");
        let another = restore_of("a").recorded();
        let upgrade = RecordedOperation::Upgrade { component: None };
        assert!(restore.may_follow(&upgrade) && restore.may_follow(&RecordedOperation::RecoverEtcd));
        assert!(!restore.may_follow(&another) && !restore.may_follow(&RecordedOperation::UndoRestore));
        for end in [Restoration::Undo, Restoration::Release] {
            assert!(end.may_follow(&another) && !end.may_follow(&upgrade));
        }
    }

    #[test]
    fn the_playbook_gets_what_the_manifest_says() {
        let vars = restore_of("20261124T043051Z-r164").playbook_variables();
        let backup = &vars[variable::ETCD_RESTORE_BACKUP];
        assert_eq!(backup.get_attr("taken").unwrap().as_str(), Some("2026-11-24 04:30:51 UTC"));
        assert_eq!(backup.get_attr("revision").unwrap().as_i64(), Some(164));
        assert_eq!(vars[variable::ETCD_RESTORE_LOST].get_item_by_index(0).unwrap().as_str(), Some("h3"));
        assert!(Restoration::Undo.playbook_variables().is_empty());
    }
}
