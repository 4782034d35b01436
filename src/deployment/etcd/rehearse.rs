//! Whether a backup can be restored: it is, into a separate etcd on one host, whose data is compared with what the members had.

use std::path::Path;

use serde::Deserialize;

use super::ask;
use super::restore::{UnpackedSnapshot, unique_id, unpack_snapshot};
use crate::deployment::backups::{self, BackupError, Identities, KeyHash, Manifest};
use crate::deployment::contract::Reported;
use crate::deployment::{Control, Error, Outcome, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What `etcd-rehearse.yml` reported.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RehearsalReport {
    pub layout: u32,
    /// The host on which it was restored.
    pub host: String,
    /// Of the programs there.
    pub etcd_version: String,
    /// How many keys there are, without their history.
    pub live_keys: u64,
    pub seconds: u64,
    /// Of the restored keys at the backup's revision.
    pub hash: u64,
    pub compact_revision: i64,
}

impl Reported for RehearsalReport {
    const PLAYBOOK: &'static str = "etcd-rehearse.yml";
    const VARIABLE: &'static str = "windlass_etcd_rehearsal";
    const LAYOUT: u32 = 1;
}

/// What the restored data is, compared with what the members had when the backup was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredData {
    Same,
    Differs,
    /// The backup does not say what the members had.
    NoHash,
    /// The hashes of different minor versions of etcd differ, or the member had compacted after the snapshot was taken.
    NotComparable,
}

/// A backup that was restored.
#[derive(Debug)]
pub struct Rehearsed {
    /// Of the backup.
    pub name: String,
    pub manifest: Manifest,
    pub report: RehearsalReport,
    pub data: RestoredData,
    /// What failed besides. The snapshot may be left on the host.
    pub failures: Vec<String>,
    /// Hosts that did not answer: `HOST: MESSAGE`.
    pub silent: Vec<String>,
}

/// The minor version of `3.5.16`.
fn minor(version: &str) -> Option<(&str, &str)> {
    let mut parts = version.split('.');
    parts.next().zip(parts.next())
}

fn compare(manifest: &Manifest, report: &RehearsalReport) -> RestoredData {
    let Some(KeyHash { hash, compact_revision }) = manifest.hash else { return RestoredData::NoHash };
    if minor(&manifest.etcd_version) != minor(&report.etcd_version) || compact_revision != report.compact_revision {
        return RestoredData::NotComparable;
    }
    if hash == report.hash { RestoredData::Same } else { RestoredData::Differs }
}

/// Restores the backup in a directory into a separate etcd on one host. `scratch`: for the unpacked snapshot. None: the caller cancelled it.
///
/// # Errors
/// The backup is damaged, cannot be decrypted or restored, or is of another deployment.
pub async fn rehearse_restore(
    site: &Site,
    backup: &Path,
    scratch: &Path,
    identities: &Identities,
    control: &Control,
) -> Result<Option<Rehearsed>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    super::refuse_without_hosts(&phase)?;
    let (backup, scratch, identities) = (backup.to_owned(), scratch.to_owned(), identities.clone());
    let (name, cluster) = (deployment.name, deployment.etcd_cluster);
    let unpacked = backups::blocking(move || unpack_snapshot(&backup, &scratch, &identities, Some((&name, &cluster))));
    let UnpackedSnapshot { name, manifest, staging, file } = unpacked.await?;
    let about = Value::from_pairs([
        ("id", Value::from(unique_id())),
        ("etcd_version", Value::from(manifest.etcd_version.as_str())),
        ("revision", Value::from(manifest.revision)),
        ("size", Value::from(manifest.size)),
    ]);
    let vars = Vars::from([
        (variable::ETCD_REHEARSED_BACKUP.into(), about),
        (variable::ETCD_REHEARSED_FILE.into(), Value::from(file.display().to_string())),
    ]);
    let Some(reply) = ask::<RehearsalReport>(&phase, vars, None, control).await? else { return Ok(None) };
    drop(staging);
    if reply.outcome == Outcome::Interrupted {
        return Ok(None);
    }
    let silent: Vec<String> = reply.unreachable.into_iter().map(|(host, why)| format!("{host}: {why}")).collect();
    let Some(report) = reply.reported else {
        let failures = reply.failures.into_iter().chain(silent).collect();
        return Err(BackupError::NotRestored { name, failures }.into());
    };
    let data = compare(&manifest, &report);
    Ok(Some(Rehearsed { name, manifest, report, data, failures: reply.failures, silent }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_compared_only_where_a_hash_says_something() {
        let manifest = |version: &str, hash: Option<(u64, i64)>| -> Manifest {
            let mut text = serde_json::json!({
                "layout": 1, "deployment": "karmada", "cluster": "etcd", "cluster_id": "7", "member": "h1", "is_leader": false,
                "members": ["h1"], "compared": 1, "etcd_version": version, "windlass_version": "0.2.0", "taken": 1_795_494_651_u64,
                "revision": 164, "keys": 9, "size": 40, "sha256": "ab", "compressed_size": 20, "compressed_sha256": "cd",
            });
            if let Some((hash, compact_revision)) = hash {
                text["hash"] = serde_json::json!({"hash": hash, "compact_revision": compact_revision});
            }
            serde_json::from_value(text).unwrap()
        };
        let json = r#"{"layout": 1, "host": "h2", "etcd_version": "3.5.34", "live_keys": 4, "seconds": 3, "hash": 17, "compact_revision": -1}"#;
        let report: RehearsalReport = serde_json::from_str(json).unwrap();
        for (manifest, expected) in [
            (manifest("3.5.16", Some((17, -1))), RestoredData::Same),
            (manifest("3.5.16", Some((18, -1))), RestoredData::Differs),
            (manifest("3.5.16", Some((18, 9))), RestoredData::NotComparable),
            (manifest("3.4.23", Some((18, -1))), RestoredData::NotComparable),
            (manifest("3.5.16", None), RestoredData::NoHash),
        ] {
            assert_eq!(compare(&manifest, &report), expected, "{manifest:?}");
        }
    }
}
