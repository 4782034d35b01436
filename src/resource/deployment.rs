//! `KarmadaDeployment`: everything about one control plane and its members.

use std::collections::BTreeMap;

use kube::core::{Message, Rule};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::members::yes;
use super::policy::{ApplyPolicy, DeletionPolicy, MaintenanceWindow};
use super::{
    Components, ControlPlane, Deployment, Etcd, FileReference, KarmadaDeploymentStatus, Member, Reference, place,
};
use crate::value::origin::Diagnostic;

/// A Karmada control plane on bare hosts, and the clusters that are its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "KarmadaDeployment",
    plural = "karmadadeployments",
    shortname = "kd",
    category = "windlass",
    namespaced,
    status = "KarmadaDeploymentStatus",
    derive = "PartialEq",
    doc = "A Karmada control plane on bare hosts, and the clusters that are its members",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Up to date", type_ = "string", json_path = ".status.conditions[?(@.type==\"UpToDate\")].status"),
    printcolumn(name = "Hosts", type_ = "string", json_path = ".status.look.summary.hosts"),
    printcolumn(name = "Etcd", type_ = "string", json_path = ".status.look.summary.etcd"),
    printcolumn(name = "Members", type_ = "string", json_path = ".status.look.summary.members"),
    printcolumn(name = "Certificates", type_ = "integer", json_path = ".status.look.certificateDaysLeft", priority = 1),
    printcolumn(name = "Last run", type_ = "string", json_path = ".status.lastRun", priority = 1),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused", priority = 1),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.controlPlane.endpoint", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$') && self.metadata.name.size() <= 63")
        .message("a deployment's name must consist of at most 63 lowercase letters, digits and dashes, because it \
            becomes a label of the members' Clusters")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = in_hosts(".controlPlane.hosts", "", "self.controlPlane.hosts"),
    validation = in_hosts(".controlPlane.loadBalancer.hosts",
        "!has(self.controlPlane.loadBalancer) || !has(self.controlPlane.loadBalancer.hosts) || ",
        "self.controlPlane.loadBalancer.hosts"),
    validation = in_hosts(".etcd.managed.hosts", "!has(self.etcd.managed) || ", "self.etcd.managed.hosts"),
    validation = Rule { field_path: Some(".members".into()), ..named_in(
        "!has(self.members) || ",
        "self.members.filter(member, has(member.kubeconfigOnHost)).map(member, member.kubeconfigOnHost.host)",
        "self.hosts.map(host, host.name)",
        "kubeconfigOnHost.host of a member is ", ", which is not in spec.hosts") },
    validation = Rule { field_path: Some(".members".into()), ..named_in(
        "!has(self.members) || ",
        "self.members.filter(member, has(member.agent) && has(member.agent.host)).map(member, member.agent.host)",
        "self.hosts.map(host, host.name)",
        "agent.host of a member is ", ", which is not in spec.hosts") },
    validation = Rule { field_path: Some(".members".into()), ..Rule::new(
        "!has(self.members) || !self.members.exists(member, self.hosts.exists(host, host.name == member.name))"
    ).message("a member has the same name as a host: both are hosts of the inventory, so their names must differ") },
    validation = Rule { field_path: Some(".removeByForce".into()), ..Rule::new(
        "!has(self.removeByForce) || !has(self.members) || !self.members.exists(member, member.name in self.removeByForce)"
    ).message("a member that is removed by force is still in members: remove it there, or here") },
    validation = Rule { field_path: Some(".hosts".into()), ..Rule::new(
        "!has(self.etcd.managed) || !self.hosts.exists(host, host.reset && host.name in self.etcd.managed.hosts)"
    ).message("a host with reset: true cannot be an etcd member: remove it from etcd.managed.hosts first") },
    validation = Rule { field_path: Some(".hosts".into()), ..Rule::new(
        "self.controlPlane.hosts.exists(name, self.hosts.exists(host, host.name == name && !host.reset))"
    ).message("every host of the control plane has reset: true: at least one must stay") },
    validation = Rule { field_path: Some(".hosts".into()), ..Rule::new(
        "!has(self.controlPlane.loadBalancer) || !has(self.controlPlane.loadBalancer.hosts) || \
         self.controlPlane.loadBalancer.hosts.exists(name, !self.hosts.exists(host, host.name == name && host.reset))"
    ).message("every host of the load balancer has reset: true: at least one must stay") },
    validation = Rule { field_path: Some(".controlPlane.loadBalancer.virtualAddress".into()), ..Rule::new(
        "!has(self.controlPlane.loadBalancer) || !has(self.controlPlane.loadBalancer.virtualAddress) || \
         !self.hosts.exists(host, has(host.address) && host.address == self.controlPlane.loadBalancer.virtualAddress)"
    ).message("the virtual address is the address of a host: use an unused address") },
    validation = Rule { field_path: Some(".addons".into()), ..Rule::new(
        "!has(self.addons) || self.addons.all(addon, addon.to.all(name, name in ['control_plane', 'host_cluster', 'members'] \
         || (has(self.members) && self.members.exists(member, member.name == name))))"
    ).message("the target of an add-on must be control_plane, host_cluster, members or the name of a member") },
    validation = Rule { field_path: Some(".addons".into()), ..Rule::new(
        "!has(self.addons) || has(self.hostCluster) || !self.addons.exists(addon, 'host_cluster' in addon.to)"
    ).message("an add-on targets host_cluster, and spec.hostCluster is not set") },
)]
pub struct KarmadaDeploymentSpec {
    /// The version of Karmada, or its beginning, such as 1.18 (default: the one in the bundle).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^v?[0-9]+([.][0-9]+){0,2}(-[0-9A-Za-z.-]+)?$')")
        .message("a version must look like 1.18 or 1.18.2"))]
    pub version: Option<String>,
    /// The programs: a directory or an archive on the machine that windlass runs on, absolute or relative to the directory of
    /// this document. In an API server: a name that the settings of windlass know (resource_bundles).
    #[schemars(length(min = 1, max = 4096))]
    pub bundle: String,
    /// The name that services, users and directories on the hosts get.
    #[serde(default = "karmada")]
    #[schemars(length(max = 11))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z][a-z0-9-]*[a-z0-9]$')")
        .message("an instance's name must consist of lowercase letters, digits and dashes, start with a letter, and \
            not end with a dash"))]
    pub instance: String,
    /// All hosts that are mentioned below.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub hosts: Vec<Host>,
    /// How windlass connects to the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<Ssh>,
    /// The control plane.
    pub control_plane: ControlPlane,
    /// Where it keeps its data.
    pub etcd: Etcd,
    /// Settings of single components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
    /// Its certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Certificates>,
    /// The Kubernetes cluster that add-ons for host_cluster go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cluster: Option<HostCluster>,
    /// Manifests to apply in addition to the control plane itself, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub addons: Vec<Addon>,
    /// The clusters that run the workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub members: Vec<Member>,
    /// Members to remove even if they do not answer; their entries in `members` must be gone. What they run stays in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), inner(length(min = 1, max = 48)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub remove_by_force: Vec<String>,
    /// Your own playbooks before and after the stages of an apply, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub hooks: Vec<Hook>,
    /// Whether to change nothing for the time being.
    #[serde(default)]
    pub paused: bool,
    /// Whether the operator applies a plan. The command line does not look at this.
    #[serde(default)]
    pub apply: ApplyPolicy,
    /// When the operator may begin a change (default: always). It looks at the hosts at any time, and a change that has begun is not
    /// interrupted. The command line does not look at this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub maintenance_windows: Vec<MaintenanceWindow>,
    /// What the operator does with the hosts when this object is deleted. The command line does not look at this.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// A host that windlass reaches by SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Host {
    /// Its name here and in the inventory.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')")
        .message("a host's name must consist of lowercase letters, digits, dashes and dots, and start and end with a \
            letter or digit"))]
    #[x_kube(validation = not_a_group())]
    pub name: String,
    /// Where to connect: an address, a name, or an alias of ~/.ssh/config (default: its name).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = address())]
    pub address: Option<String>,
    /// The port of its SSH server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The user to log in as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = login())]
    pub user: Option<String>,
    /// The SHA-256 fingerprint of its host key, as `ssh-keygen -lf` prints it; used instead of known hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = fingerprint())]
    pub fingerprint: Option<String>,
    /// The architecture that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Architecture>,
    /// Labels, for your own playbooks and hooks: the variable host_labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The address at which the other hosts reach it, if it differs from the one that the host reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Za-z:][0-9A-Za-z.:-]*$')").message("an address must be an IP address or a name"))]
    pub private_address: Option<String>,
    /// The jump host for connections to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
    /// Whether to remove everything of the control plane from it.
    #[serde(default)]
    pub reset: bool,
}

/// What a host's programs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    Amd64,
    Arm64,
}

/// A jump host. Keys and known hosts for it are those of ~/.ssh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bastion {
    /// Its address, name, or alias in ~/.ssh/config.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Za-z_:][0-9A-Za-z_.:-]*$')").message("an address must be an IP address or a name"))]
    pub address: String,
    /// The port of its SSH server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The user to log in as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = user())]
    pub user: Option<String>,
}

/// How to connect to hosts. The settings of a host override these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ssh {
    /// The user to log in as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = login())]
    pub user: Option<String>,
    /// The port of the SSH servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The private key to log in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<Reference>,
    /// The passphrase of that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<Reference>,
    /// The socket of the SSH agent (default: SSH_AUTH_SOCK); `none` uses no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub agent: Option<String>,
    /// The password to log in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Reference>,
    /// The password that sudo asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub become_password: Option<Reference>,
    /// Files of known hosts, instead of those of ~/.ssh; absolute, or relative to the directory of this document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 4096)))]
    pub known_hosts: Vec<String>,
    /// What to do about a host whose key is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_keys: Option<HostKeys>,
    /// The jump host for connections to all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bastion: Option<Bastion>,
}

/// What to do about host keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostKeys {
    Strict,
    AcceptNew,
}

/// Certificates of the control plane and of a managed etcd. The defaults are those of roles/karmada_settings and roles/etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.renewBeforeDays) || self.renewBeforeDays < (has(self.leafCertValidityDays) ? self.leafCertValidityDays : 365)")
    .message("every run would renew the certificates: renewBeforeDays must be less than leafCertValidityDays (default 365)"))]
pub struct Certificates {
    /// Your own certificate authority, used instead of one that windlass creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CustomAuthority>,
    /// How many days certificates are valid (default 365).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 3650))]
    pub leaf_cert_validity_days: Option<i32>,
    /// How many days before they expire certificates are renewed (default 60).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3649))]
    pub renew_before_days: Option<i32>,
}

/// A certificate authority: its certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomAuthority {
    pub cert: FileReference,
    pub key: Reference,
}

/// A Kubernetes cluster next to the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostCluster {
    /// Its kubeconfig.
    pub kubeconfig: FileReference,
}

/// Manifests that are applied besides the control plane itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Addon {
    /// A name for people.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where to apply them: control_plane, host_cluster, members, or single members by name.
    #[schemars(length(min = 1, max = 8), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub to: Vec<String>,
    /// Files, directories and patterns on the machine that windlass runs on, absolute or relative to the directory of this
    /// document.
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

/// Whether objects exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AddonState {
    #[default]
    Present,
    Absent,
}

/// A playbook before or after a stage of an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    pub stage: Stage,
    pub when: HookTime,
    /// The playbook, absolute or relative to the directory of this document.
    #[schemars(length(min = 1, max = 4096))]
    pub playbook: String,
}

/// The stages of an apply, in their order. Each is a part of the deployment that one playbook installs or updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    Etcd,
    ControlPlane,
    Members,
    Removals,
    Addons,
}

/// Whether a hook runs before or after its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookTime {
    Before,
    After,
}

/// A host or member may not have the name of a group of the inventory, which a play would find first, nor of this machine.
/// Names of other groups have underscores.
pub(super) fn not_a_group() -> Rule {
    Rule::new("!(self in ['all', 'ungrouped', 'etcd', 'members', 'localhost'])")
        .message("the inventory reserves this name (all, ungrouped, etcd, members, localhost): choose another")
}

pub(super) fn address() -> Rule {
    Rule::new("self.matches('^[0-9A-Za-z_:][0-9A-Za-z_.:%-]*$')").message("an address must be an IP address or a name")
}

pub(super) fn fingerprint() -> Rule {
    Rule::new("self.matches('^SHA256:[0-9A-Za-z+/]{43}$')")
        .message("a fingerprint must be SHA256: and 43 characters, as ssh-keygen -lf prints it")
}

/// A user to log in as, also of a directory service: `CORP\\user`, `user@corp.example`.
pub(super) fn login() -> Rule {
    Rule::new(r"self.matches(r'^[0-9A-Za-z_]([0-9A-Za-z_.@+\\-]*[0-9A-Za-z_.@+$-])?$')").message(
        "a user's name must consist of letters, digits, dots, dashes, underscores, @, + and backslashes, start with a \
         letter, digit or underscore, and may end with a dollar sign",
    )
}

/// A user to log in to a bastion as: a word of a shell in `ProxyCommand`, and part of a jump host's `user@address`.
fn user() -> Rule {
    Rule::new("self.matches('^[0-9A-Za-z_][0-9A-Za-z_.-]*$')").message(
        "a user's name must consist of letters, digits, dots, dashes and underscores, and not start with a dot or dash",
    )
}

fn karmada() -> String {
    "karmada".to_owned()
}

/// Every name of `names` is one of `known`, or else the message names the first that is not.
fn named_in(unless: &str, names: &str, known: &str, before: &str, after: &str) -> Rule {
    Rule::new(format!("{unless}{names}.all(name, name in {known})"))
        .message(Message::Expression(format!("'{before}' + {names}.filter(name, !(name in {known}))[0] + '{after}'")))
}

/// The names in a list, where there is one, are hosts.
fn in_hosts(path: &str, unless: &str, names: &str) -> Rule {
    let field = path.trim_start_matches('.');
    let before = format!("{field} names ");
    let rule = named_in(unless, names, "self.hosts.map(host, host.name)", &before, ", which is not in spec.hosts");
    Rule { field_path: Some(path.to_owned()), ..rule }
}

/// The hosts of a component are hosts of the control plane.
pub(super) fn among(component: &str) -> Rule {
    let field = format!("components.{component}.hosts");
    let unless = format!("!has(self.components) || !has(self.components.{component}) || !has(self.{field}) || ");
    let names = format!("self.{field}");
    let before = format!("{field} names ");
    let rule = named_in(&unless, &names, "self.controlPlane.hosts", &before, ", which is not in controlPlane.hosts");
    Rule { field_path: Some(format!(".{field}")), ..rule }
}

/// Allowed settings that are usually a mistake.
pub(super) fn warnings(deployment: &Deployment) -> Vec<Diagnostic> {
    let place = |path: &str| place::field_origin(&deployment.node, path);
    let mut found = Vec::new();
    if deployment.spec.etcd.managed.as_ref().is_some_and(|etcd| etcd.hosts.len() == 1) {
        let message = "etcd has one member: if its host is lost, all data is lost";
        found.push(Diagnostic::new(message, Some(&place("spec.etcd.managed.hosts"))));
    }
    let control_plane = &deployment.spec.control_plane;
    if control_plane.hosts.len() > 1 && control_plane.endpoint.is_none() && control_plane.load_balancer.is_none() {
        let message = "the control plane has several hosts and no endpoint: clients use only the first host";
        found.push(Diagnostic::new(message, Some(&place("spec.controlPlane"))));
    }
    found
}
