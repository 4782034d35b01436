//! Backups of etcd: each is a compressed snapshot and a manifest, in a directory of this machine or of another host, or in a bucket. It is
//! there when it is complete.

#[cfg_attr(not(feature = "age"), path = "without_age.rs")]
mod age_format;
mod bucket;
mod credentials;
mod directory;
mod documented;
mod encryption;
mod error;
mod fetched;
mod files;
mod history;
mod host;
mod prepare;
mod prune;
mod reading;
mod retention;
mod staging;
mod store;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use bucket::BackupBucket;
pub use directory::list_backups;
pub use documented::{DocumentAccess, documented_recipients, documented_retention};
pub use encryption::{Encryption, Identities, Recipients};
pub use error::BackupError;
pub use fetched::FetchedBackup;
pub use host::{BackupHost, SSH_SCHEME};
pub(super) use prepare::prepare_backup;
pub(super) use reading::unpack_backup;
pub use reading::{files_of, manifest, unpack_credentials, verify};
pub use retention::Retention;
pub(super) use staging::{PARTIAL, Staging};
pub(super) use store::blocking;
pub use store::{BackupSource, BackupStore, BackupStores, Decryption};

use super::contract::{Reported, StatusNumber};

const SNAPSHOT: &str = "snapshot.db.zst";
const ENCRYPTED_SNAPSHOT: &str = "snapshot.db.zst.age";
const CREDENTIALS: &str = "credentials.tar.zst.age";
const MANIFEST: &str = "manifest.json";
/// What the files of a backup may be called, except the manifest.
const PARTS: [&str; 3] = [SNAPSHOT, ENCRYPTED_SNAPSHOT, CREDENTIALS];
/// Why a backup is not good.
const DIFFERS: &str = "damaged: its digest differs from the manifest's";
/// Of a manifest. Versions that know nothing of encryption read the first one only.
const LAYOUT: u32 = 1;
const ENCRYPTED_LAYOUT: u32 = 2;
/// In bytes.
const LARGEST_MANIFEST: usize = 1 << 20;

/// What `etcd-backup.yml` reported of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotReport {
    pub layout: u32,
    pub cluster: String,
    pub cluster_id: String,
    pub host: String,
    pub member: String,
    pub is_leader: bool,
    pub members: Vec<String>,
    /// How many members' hashes at the snapshot's revision were compared, and agree.
    pub compared: u64,
    /// How many members are a majority of the cluster, or of the inventory's hosts if these are more.
    pub majority: u64,
    /// Whether the member knows a leader. Without one, the newest writes may be missing in its snapshot.
    pub has_leader: bool,
    pub etcd_version: String,
    pub revision: StatusNumber,
    pub keys: StatusNumber,
    pub sha256: String,
    /// Of the members' keys at the snapshot's revision. None: nobody asked a member.
    #[serde(default)]
    pub hash: Option<KeyHash>,
    /// None: it was not restored.
    #[serde(default)]
    pub rehearsal: Option<Rehearsal>,
    /// When a host took it as a local backup, in seconds since 1970. None: it was taken now.
    #[serde(default)]
    pub taken: Option<StatusNumber>,
}

impl Reported for SnapshotReport {
    const PLAYBOOK: &'static str = "etcd-backup.yml";
    const VARIABLE: &'static str = "windlass_etcd_backup";
    const LAYOUT: u32 = 3;
}

/// The manifest next to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub layout: u32,
    pub deployment: String,
    pub cluster: String,
    /// In hexadecimal.
    pub cluster_id: String,
    /// The member that the snapshot was taken from.
    pub member: String,
    pub is_leader: bool,
    pub members: Vec<String>,
    pub compared: u64,
    /// Whether the member knew a leader.
    #[serde(default = "yes")]
    pub has_leader: bool,
    pub etcd_version: String,
    pub windlass_version: String,
    /// Seconds since 1970.
    pub taken: u64,
    pub revision: u64,
    pub keys: u64,
    /// Of the snapshot before it was compressed.
    pub size: u64,
    pub sha256: String,
    /// Of the file: compressed, and encrypted if it is.
    pub compressed_size: u64,
    pub compressed_sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<KeyHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// The file with the credentials of the deployment. None: the backup has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<PackedCredentials>,
}

/// etcd's hash of all keys at one revision. It covers what was written since the last compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHash {
    pub hash: u64,
    /// -1: nothing was ever compacted.
    pub compact_revision: i64,
}

/// A restore of the snapshot into a separate etcd, when the backup was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// How many keys there were, without their history.
    pub live_keys: u64,
    pub seconds: u64,
    /// Whether the hash of the restored keys could be compared with the member's; then it is the same.
    pub compared: bool,
}

/// The size and the digest of the file with the credentials, which is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedCredentials {
    /// How many files it holds.
    pub files: u64,
    pub compressed_size: u64,
    pub compressed_sha256: String,
}

/// A file of a backup besides its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BackupFile {
    name: &'static str,
    size: u64,
    sha256: String,
}

fn snapshot_name(encryption: Option<&Encryption>) -> &'static str {
    if encryption.is_some() { ENCRYPTED_SNAPSHOT } else { SNAPSHOT }
}

fn yes() -> bool {
    true
}

impl Manifest {
    /// `20261124T043000Z-r164`
    fn backup_name(&self) -> String {
        format!("{}-r{}", timestamp(self.taken), self.revision)
    }

    /// Whether a clock was wrong when it was taken.
    pub fn is_from_future(&self) -> bool {
        self.taken > now() + AHEAD
    }

    /// Whether each file is there with its size. `size`: of the file with a name, in bytes. None: it is not there.
    fn compare_sizes(&self, size: impl Fn(&str) -> Option<u64>) -> Result<(), String> {
        for BackupFile { name, size: wanted, .. } in self.files() {
            match size(name) {
                Some(size) if size == wanted => {}
                Some(size) => return Err(format!("damaged: its {name} has {size} bytes, and had {wanted}")),
                None => return Err(format!("damaged: it has no {name}")),
            }
        }
        Ok(())
    }

    /// All files except the manifest itself.
    fn files(&self) -> Vec<BackupFile> {
        let mut files = vec![BackupFile {
            name: snapshot_name(self.encryption.as_ref()),
            size: self.compressed_size,
            sha256: self.compressed_sha256.clone(),
        }];
        files.extend(self.credentials.as_ref().map(|packed| BackupFile {
            name: CREDENTIALS,
            size: packed.compressed_size,
            sha256: packed.compressed_sha256.clone(),
        }));
        files
    }
}

/// A backup in one of the places.
#[derive(Debug, Clone)]
pub struct Backup {
    pub name: String,
    /// Its directory, `s3://BUCKET/PREFIX/NAME` or `ssh://HOST/DIRECTORY/NAME`.
    pub path: PathBuf,
    /// Why it is not usable otherwise.
    pub manifest: Result<Manifest, String>,
}

/// The newest first; those without a manifest are last.
fn sort_backups(backups: &mut [Backup]) {
    let time = |backup: &Backup| backup.manifest.as_ref().map_or(0, |manifest| manifest.taken);
    backups.sort_by(|one, other| (time(other), &other.name).cmp(&(time(one), &one.name)));
}

/// A backup that was kept in one place, and those that were removed there.
#[derive(Debug)]
pub struct BackupResult {
    pub backup: Backup,
    pub manifest: Manifest,
    pub removed: Vec<String>,
    /// It was there before: a local backup that had been copied already.
    pub was_there: bool,
    /// Why older backups were kept although they were to be removed.
    pub kept: Option<String>,
    /// What failed besides.
    pub failures: Vec<String>,
}

impl BackupResult {
    fn of(backup: Backup, manifest: Manifest) -> BackupResult {
        let (removed, failures) = Default::default();
        BackupResult { backup, manifest, removed, was_there: false, kept: None, failures }
    }

    /// Of a backup that was there instead of one with the manifest `wanted`.
    fn of_earlier(backup: Backup, found: Manifest, wanted: &Manifest) -> BackupResult {
        let mut result = BackupResult { was_there: true, ..BackupResult::of(backup, found) };
        let place = result.backup.path.display();
        let lacks = match (&result.manifest, wanted) {
            (found, wanted) if found.encryption != wanted.encryption => match &found.encryption {
                Some(encryption) => Some(format!("it is encrypted ({encryption})")),
                None => Some("it is not encrypted".to_owned()),
            },
            (found, wanted) if wanted.credentials.is_some() && found.credentials.is_none() => {
                Some("it has no credentials".to_owned())
            }
            _ => None,
        };
        if let Some(lacks) = lacks {
            result.failures.push(format!("{place} was copied before, and {lacks}: remove it, and run this again"));
        }
        result
    }
}

/// A backup that is in at least one of the places that were asked for.
#[derive(Debug)]
pub struct TakenBackup {
    pub copies: Vec<BackupResult>,
    /// What failed, for example `HOST: MESSAGE`. The snapshot may still be on that host.
    pub failures: Vec<String>,
    /// Hosts that did not answer: `HOST: MESSAGE`.
    pub silent: Vec<String>,
}

/// By how many seconds the clock of another machine may be ahead.
const AHEAD: u64 = 600;

/// The newest good one of backups that are sorted so. One that is from the future, as a clock was wrong, only if there is no other.
pub fn newest_backup(backups: &[Backup]) -> Option<&Backup> {
    let good = || backups.iter().filter(|backup| backup.manifest.is_ok());
    let is_past = |backup: &&Backup| backup.manifest.as_ref().is_ok_and(|manifest| !manifest.is_from_future());
    good().find(is_past).or_else(|| good().next())
}

fn number(figure: &StatusNumber, what: &str) -> Result<u64, BackupError> {
    let number = match figure {
        StatusNumber::Number(number) => u64::try_from(*number).ok(),
        StatusNumber::Text(text) => text.parse().ok(),
    };
    number.ok_or_else(|| BackupError::Damaged(format!("its {what} is {figure:?}, which is no number of etcd")))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> chrono::DateTime<chrono::Utc> {
    let at = i64::try_from(seconds).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    at.unwrap_or_default()
}

/// `20261124T043000Z`
pub(super) fn timestamp(seconds: u64) -> String {
    time(seconds).format("%Y%m%dT%H%M%SZ").to_string()
}

/// Seconds since 1970, of what [`timestamp`] gives.
fn parse_timestamp(text: &str) -> Option<u64> {
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok()?;
    u64::try_from(time.and_utc().timestamp()).ok()
}

/// `2026-11-24 04:30:00 UTC`
pub(super) fn time_text(seconds: u64) -> String {
    time(seconds).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod encrypted_tests;
#[cfg(test)]
mod host_tests;
#[cfg(test)]
mod tests;
