//! `spec.controlPlane.loadBalancer`: haproxy and keepalived in front of the API servers.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A load balancer on hosts of the deployment. Its port is 6443.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.virtualAddress) || !(has(self.interface) || has(self.routerID))")
        .message("interface and routerID need a virtualAddress"),
)]
pub struct LoadBalancer {
    /// Its hosts, by their names in spec.hosts (default: those of the control plane).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<Vec<String>>,
    /// An unused address in the hosts' own network. One of the hosts holds it at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    #[x_kube(validation = Rule::new("self.matches('^([0-9]{1,3}([.][0-9]{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:.]+)$')")
        .message("a virtual address must be an IP address, such as 192.0.2.10 or 2001:db8::10"))]
    pub virtual_address: Option<String>,
    /// The network interface for it (default: the one of the default route).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Za-z_][0-9A-Za-z_.@-]*$')").message("an interface must be a name such as eth0"))]
    pub interface: Option<String>,
    /// The number of the virtual router, unique in the network (default: the last part of an IPv4 address,
    /// 51 for an IPv6 address).
    #[serde(default, rename = "routerID", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255))]
    pub router_id: Option<i32>,
    /// haproxy, keepalived, socat and what they depend on as .deb or .rpm files on the machine that windlass runs on, for
    /// hosts without a package repository; absolute, or relative to the directory of this document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(min = 1, max = 4096)))]
    pub package_files: Vec<String>,
}
