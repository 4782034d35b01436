//! `spec.members`: clusters that the control plane sends work to.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::deployment::not_a_group;
use super::{AddonState, Reference};
use schemars::JsonSchema;

/// A member cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.kubeconfig) != has(self.kubeconfigOnHost)")
        .message("a member needs exactly one of kubeconfig and kubeconfigOnHost"),
    validation = Rule::new("(self.syncMode == 'Pull') == has(self.agent)")
        .message("a member with syncMode Pull needs agent, and a member with Push must not have it: it says where the \
            karmada-agent runs"),
)]
pub struct Member {
    /// The name of its Cluster in the control plane.
    #[schemars(length(min = 1, max = 48))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')")
        .message("a member's name must consist of lowercase letters, digits and dashes, and start and end with a \
            letter or digit"))]
    #[x_kube(validation = not_a_group())]
    pub name: String,
    /// Whether the control plane pushes to it, or an agent in it pulls.
    #[serde(default)]
    pub sync_mode: SyncMode,
    /// Its kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<Reference>,
    /// Its kubeconfig, as a file on a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_on_host: Option<KubeconfigOnHost>,
    /// The context in the kubeconfig (default: the current one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub context: Option<String>,
    /// The agent of a member with syncMode Pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Where the control plane, or the agent, reaches its API (default: as in the kubeconfig).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.startsWith('https://')").message("the endpoint of a member's API must start \
        with https://"))]
    pub api_endpoint: Option<String>,
    /// Cluster.spec.provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub provider: Option<String>,
    /// Cluster.spec.region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub region: Option<String>,
    /// Cluster.spec.zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub zones: Vec<String>,
    /// Labels of the Cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Cluster.spec.taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub taints: Vec<Taint>,
    /// What happens to propagated workloads when it is removed.
    #[serde(default)]
    pub workloads: Workloads,
    /// Whether to remove it even if it does not answer.
    #[serde(default)]
    pub force: bool,
    /// Whether it has a scheduler estimator, if these are enabled.
    #[serde(default = "yes")]
    pub estimator: bool,
    /// Manifests to apply with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub addons: Vec<MemberAddon>,
}

/// How a member gets its workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncMode {
    #[default]
    Push,
    Pull,
}

/// What happens to workloads when a member is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Workloads {
    Keep,
    #[default]
    Remove,
}

/// A kubeconfig on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KubeconfigOnHost {
    /// The host, by its name in spec.hosts.
    #[schemars(length(min = 1, max = 63))]
    pub host: String,
    /// The path of the file on that host.
    #[schemars(length(min = 1, max = 4096))]
    #[x_kube(validation = Rule::new("self.startsWith('/')").message("the path of a file on a host must be absolute"))]
    pub path: String,
}

/// Where the agent of a member runs: as a service of a host, or in the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.host) != has(self.image)")
    .message("an agent runs either on a host or, from an image, in the member: set one of host and image"))]
pub struct Agent {
    /// The host that it runs on as a service, by its name in spec.hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub host: Option<String>,
    /// The image that a Deployment in the member runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Za-z][0-9A-Za-z_.:/@-]*$')")
        .message("an image must look like registry.example.com/karmada/karmada-agent:v1.18.2"))]
    pub image: Option<String>,
}

/// A taint of a Cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    pub effect: TaintEffect,
}

/// The effect of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// Manifests to apply with a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberAddon {
    /// A name for people.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where to apply them: in the member, in the control plane, or both.
    #[serde(default = "in_the_member")]
    #[schemars(length(min = 1, max = 2))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(place, place in ['member', 'control_plane'])")
        .message("the targets of a member's add-on must be member, control_plane, or both"))]
    pub to: Vec<String>,
    /// Files, directories and patterns on the machine that windlass runs on.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 4096)))]
    pub src: Vec<String>,
    /// The namespace of objects that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Whether its objects exist.
    #[serde(default)]
    pub state: AddonState,
    /// Whether to wait until they are ready, or deleted.
    #[serde(default = "yes")]
    pub wait: bool,
    /// Whether to take over fields that others manage.
    #[serde(default)]
    pub force: bool,
}

pub(super) fn yes() -> bool {
    true
}

fn in_the_member() -> Vec<String> {
    vec!["member".to_owned()]
}
