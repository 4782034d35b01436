//! `EtcdBackup`: when backups of etcd are taken, where they are, and which are kept.

#![expect(clippy::duplicated_attributes, reason = "columns of one type have the same attribute")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Reference;
use super::deployment::{address, fingerprint, login};

/// Snapshots of a deployment's etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "EtcdBackup",
    plural = "etcdbackups",
    shortname = "eb",
    category = "windlass",
    namespaced,
    status = "EtcdBackupStatus",
    derive = "PartialEq",
    doc = "Snapshots of the etcd of a KarmadaDeployment",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deployment"),
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspend", priority = 1),
    printcolumn(name = "Last good", type_ = "date", json_path = ".status.lastSuccessTime"),
    printcolumn(name = "Failure", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Problem", type_ = "string", json_path = ".status.problem"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextTime", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("self.deployment == oldSelf.deployment").message("the deployment of a backup cannot change: \
        create another EtcdBackup"),
    validation = Rule::new("!has(self.timeZone) || has(self.schedule)").message("a time zone is for a schedule"),
)]
pub struct EtcdBackupSpec {
    /// The KarmadaDeployment in the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub deployment: String,
    /// When, in cron's fields: minute, hour, day of month, month, day of week (default: once).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9*/,-]+( [0-9A-Za-z*/,-]+){4}$')")
        .message("a schedule must have cron's five fields: minute, hour, day of month, month, day of week"))]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as Asia/Shanghai (default: UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_+/-]+$')").message("a time zone must be a name such as Asia/Shanghai"))]
    pub time_zone: Option<String>,
    /// Whether no backup begins.
    #[serde(default)]
    pub suspend: bool,
    /// How many of the newest snapshots to keep.
    #[serde(default = "seven")]
    #[schemars(range(min = 1, max = 10_000))]
    pub keep: i32,
    /// Which older snapshots to keep besides (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionRules>,
    /// Who can decrypt the snapshots: public keys of age (default: they are not encrypted).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 128)))]
    #[x_kube(validation = Rule::new("self.all(key, key.matches('^age1[02-9ac-hj-np-z]+$'))")
        .message("a recipient must be a public key of age, which begins with age1"))]
    pub recipients: Vec<String>,
    /// The secret key of one of the recipients, as age-keygen writes it. Only a Run that restores reads it: the Secret may be created then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Reference>,
    /// Whether each snapshot is restored into a separate etcd on its host first; one that cannot be restored is no backup.
    #[serde(default)]
    pub rehearse: bool,
    /// Where to store them.
    pub storage: Storage,
}

/// Of which times snapshots are kept: of each period that has some, the newest. Hours and days are those of UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionRules {
    /// Keep all that are at most so many days older than the one before the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub within_days: Option<i32>,
    /// Keep the newest snapshot of each of the last so many hours that have one (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub hourly: Option<i32>,
    /// Keep the newest snapshot of each of the last so many days that have one (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub daily: Option<i32>,
    /// Keep the newest snapshot of each of the last so many weeks that have one; a week begins on Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub weekly: Option<i32>,
    /// Keep the newest snapshot of each of the last so many months that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub monthly: Option<i32>,
    /// Keep the newest snapshot of each of the last so many years that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub yearly: Option<i32>,
}

/// Where snapshots are stored: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("(has(self.path) ? 1 : 0) + (has(self.s3) ? 1 : 0) + (has(self.ssh) ? 1 : 0) == 1")
    .message("the storage of snapshots must be exactly one of path, s3 and ssh"))]
pub struct Storage {
    /// A directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    #[x_kube(validation = Rule::new("!self.matches('^[^/]*:')")
        .message("a path of snapshots must be a directory: buckets and other hosts are s3 and ssh; put ./ before a name with a colon"))]
    pub path: Option<String>,
    /// A bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Bucket>,
    /// A directory on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshDirectory>,
}

/// A directory on another host, reached by SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshDirectory {
    /// The host: an IP address or a name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = address())]
    pub address: String,
    /// The port of its SSH server (default: 22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The user to log in as.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = login())]
    pub user: String,
    /// The SHA-256 fingerprint of its host key, as `ssh-keygen -lf` prints it.
    #[schemars(length(max = 64))]
    #[x_kube(validation = fingerprint())]
    pub fingerprint: String,
    /// The user's private key, without a passphrase.
    pub private_key: Reference,
    /// An absolute path. The directory belongs to the user, or is created.
    #[schemars(length(min = 2, max = 4096))]
    #[x_kube(validation = Rule::new("self.matches('^(/[0-9A-Za-z_+=-][0-9A-Za-z_.+=-]*)+$')").message("the directory of snapshots must be an absolute path of \
        letters, digits and _.+=-, without . at the beginning of a name"))]
    pub directory: String,
}

/// A bucket of an S3 service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct S3Bucket {
    /// Its URL.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.startsWith('https://')").message("an S3 endpoint must start with https://"))]
    pub endpoint: String,
    #[schemars(length(min = 3, max = 63))]
    pub bucket: String,
    /// The prefix of snapshot names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub prefix: Option<String>,
    /// Its region (default: us-east-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_-]+$')").message("a region must consist of letters, digits, dashes and underscores"))]
    pub region: Option<String>,
    /// Whether the bucket's name is part of the host's name, and not of the path.
    #[serde(default)]
    pub virtual_host: bool,
    /// How the service encrypts what it stores: AES256, aws:kms or aws:kms:KEY (default: as the bucket says).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^(AES256|aws:kms(:[!-~]+)?)$')").message("an encryption must be AES256, aws:kms or aws:kms:KEY"))]
    pub encryption: Option<String>,
    /// The certificate authorities to trust, in PEM format (default: those of the machine).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<Reference>,
    pub access_key: Reference,
    pub secret_key: Reference,
    /// Of temporary keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<Reference>,
}

/// What became of the backups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The Run of the newest backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// When a backup was last begun: of a schedule, the time that it names (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_time: Option<String>,
    /// How often it was tried again after it failed, for this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<i32>,
    /// When the newest backup ended, good or not (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// When the newest good backup ended (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<String>,
    /// Where the newest good backup is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// When the next backup is due (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_time: Option<String>,
    /// Why the newest backup failed, or what failed besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why no backup begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

fn seven() -> i32 {
    7
}
