//! `spec.etcd`: a cluster on hosts of ours, or one that is there already.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::FileReference;

/// Where the control plane keeps its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.managed) != has(self.external)")
    .message("etcd must be either managed or external: set one of the two"))]
pub struct Etcd {
    /// A cluster that windlass installs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedEtcd>,
    /// A cluster that already exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalEtcd>,
}

/// An etcd cluster on hosts of the deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManagedEtcd {
    /// The etcd members, by their names in spec.hosts. Their number must be odd.
    #[schemars(length(min = 1, max = 9), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.size() % 2 == 1")
        .message("the number of etcd members must be odd: an even number tolerates no more failures than one member less"))]
    pub hosts: Vec<String>,
    /// The data directory on the hosts, used by etcd only (default /var/lib/etcd/data).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^(/[0-9A-Za-z_@+-][0-9A-Za-z_.@+-]*){2,}$')")
        .message("a data directory must be an absolute path, not directly below /, and consist of letters, digits and _.@+-"))]
    pub data_dir: Option<String>,
    /// How many bytes etcd may store (default 8589934592).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16_777_216i64, max = 137_438_953_472i64))]
    pub quota_backend_bytes: Option<i64>,
    /// Backups on the disk of each member's own host, taken by a timer there (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_backup: Option<LocalBackup>,
    /// More names and addresses in the members' server certificates.
    #[serde(default, rename = "serverCertSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = super::subject_names())]
    pub server_cert_sans: Vec<String>,
    /// More flags of etcd, by name without dashes. They override those that windlass sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = super::flags())]
    pub extra_args: BTreeMap<String, String>,
}

/// Local backups of etcd, on every member's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalBackup {
    /// How many minutes after a backup a member takes the next one. It is also how much can be lost.
    #[schemars(range(min = 1, max = 10_080))]
    pub interval_minutes: i32,
    /// How many backups each host keeps (default 24).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub keep: Option<i32>,
    /// The directory on the hosts, used by local backups only (default /var/backups/etcd/local).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^(/[0-9A-Za-z_@+-][0-9A-Za-z_.@+-]*){2,}$')")
        .message("a directory of local backups must be an absolute path, not directly below /, and consist of letters, digits and _.@+-"))]
    pub dir: Option<String>,
}

/// An etcd cluster that windlass does not manage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalEtcd {
    /// Its members' URLs.
    #[schemars(length(min = 1, max = 64), inner(length(max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new(
        r"self.all(endpoint, endpoint.matches('^https://([0-9A-Za-z._-]+|\\[[0-9a-fA-F:.]+\\])(:[0-9]+)?/?$'))")
        .message("an etcd endpoint must be https:// and a name or an address, with or without a port"))]
    pub endpoints: Vec<String>,
    /// The certificate of its certificate authority.
    pub ca_cert: FileReference,
    /// The certificate to log in with.
    pub client_cert: FileReference,
    /// The key of that certificate.
    pub client_key: FileReference,
}
