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
        .message("a member's kubeconfig is given by exactly one of kubeconfig and kubeconfigOnHost"),
    validation = Rule::new("(self.syncMode == 'Pull') == has(self.agent)")
        .message("agent says where the karmada-agent of a member with syncMode Pull runs: Pull needs it, and Push has none"),
)]
pub struct Member {
    /// The name of its Cluster in the control plane.
    #[schemars(length(min = 1, max = 48))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')")
        .message("a member's name is of small letters, digits and dashes, and begins and ends with a letter or digit"))]
    #[x_kube(validation = not_a_group())]
    pub name: String,
    /// Whether the control plane pushes to it, or an agent pulls for it.
    #[serde(default)]
    pub sync_mode: SyncMode,
    /// Its kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<Reference>,
    /// Its kubeconfig, as a file of a host that is reached by SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_on_host: Option<KubeconfigOnHost>,
    /// The context in the kubeconfig; the current one if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub context: Option<String>,
    /// The agent of a member with syncMode Pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// How the control plane, or an agent that pulls, reaches its API; as the kubeconfig says if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.startsWith('https://')").message("the endpoint of a member's API begins with https://"))]
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
    /// What becomes of what was propagated to it when it leaves.
    #[serde(default)]
    pub workloads: Workloads,
    /// Whether it may be removed although it does not answer.
    #[serde(default)]
    pub force: bool,
    /// Whether it has a scheduler estimator, where these are enabled.
    #[serde(default = "yes")]
    pub estimator: bool,
    /// Manifests that come with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub addons: Vec<MemberAddon>,
}

/// How a member gets its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncMode {
    #[default]
    Push,
    Pull,
}

/// What becomes of workloads at the end of a membership.
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
    /// The file there.
    #[schemars(length(min = 1, max = 4096))]
    #[x_kube(validation = Rule::new("self.startsWith('/')").message("the path of a file of a host is absolute"))]
    pub path: String,
}

/// Where the agent of a member runs: as a service of a host, or in the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.host) != has(self.image)")
    .message("an agent runs either on a host or, from an image, in the member: give one of host and image"))]
pub struct Agent {
    /// The host that it runs on as a service, by its name in spec.hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub host: Option<String>,
    /// The image that a Deployment in the member runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Za-z][0-9A-Za-z_.:/@-]*$')")
        .message("an image is named like registry.example.com/karmada/karmada-agent:v1.18.2"))]
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

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// Manifests that come with a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberAddon {
    /// What people call it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where they are applied: in the member, in the control plane, or both.
    #[serde(default = "in_the_member")]
    #[schemars(length(min = 1, max = 2))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(place, place in ['member', 'control_plane'])")
        .message("an add-on of a member goes to member, to control_plane, or to both"))]
    pub to: Vec<String>,
    /// Files, directories and patterns on the machine that windlass runs on.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 4096)))]
    pub src: Vec<String>,
    /// For objects that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Whether its objects are there.
    #[serde(default)]
    pub state: AddonState,
    /// Whether to wait until they are ready, or gone.
    #[serde(default = "yes")]
    pub wait: bool,
    /// Whether fields of others are taken over.
    #[serde(default)]
    pub force: bool,
}

pub(super) fn yes() -> bool {
    true
}

fn in_the_member() -> Vec<String> {
    vec!["member".to_owned()]
}
