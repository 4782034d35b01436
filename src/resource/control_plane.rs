//! `spec.controlPlane`: the hosts that serve, and how clients reach them.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::load_balancer::LoadBalancer;

/// The control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule { field_path: Some(".loadBalancer".into()), ..Rule::new(
    "!has(self.loadBalancer) || has(self.loadBalancer.virtualAddress) || has(self.endpoint)"
).message("clients cannot reach the load balancer: set its virtualAddress, or set controlPlane.endpoint to a name or \
    address of its hosts") })]
pub struct ControlPlane {
    /// Its hosts, by their names in spec.hosts. Every component runs on each of them unless `components` says otherwise.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Vec<String>,
    /// Your own virtual address or name in front of all API servers, with or without a port (default: the load balancer's
    /// virtual address, or else the address of the first API server).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 260))]
    #[x_kube(validation = Rule::new(r"self.matches('^([a-zA-Z0-9][a-zA-Z0-9.-]*|\\[[0-9a-fA-F:]+\\])(:[0-9]+)?$')")
        .message("an endpoint must be a name or an address, with or without a port: karmada.example.com, \
            192.0.2.10:6443, [2001:db8::10]"))]
    pub endpoint: Option<String>,
    /// haproxy in front of the API servers, and keepalived for a virtual address (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// More names and addresses in the API servers' certificates.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = super::subject_names())]
    pub cert_sans: Vec<String>,
    /// The address range of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-fA-F.:]+/[0-9]+$')").message("a subnet must look like 10.96.0.0/12"))]
    pub service_subnet: Option<String>,
}
