//! `spec.components`: what can be said of each program of the control plane. Names are those of Karmada's operator.

use std::collections::BTreeMap;

use kube::KubeSchema;
use kube::core::Rule;
use serde::{Deserialize, Serialize};

use crate::value::unit_file;

/// The components of the control plane. The four optional ones run only if they are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("[has(self.karmadaAPIServer) && has(self.karmadaAPIServer.enabled) && !self.karmadaAPIServer.enabled, \
        has(self.karmadaAggregatedAPIServer) && has(self.karmadaAggregatedAPIServer.enabled) && !self.karmadaAggregatedAPIServer.enabled, \
        has(self.kubeControllerManager) && has(self.kubeControllerManager.enabled) && !self.kubeControllerManager.enabled, \
        has(self.karmadaControllerManager) && has(self.karmadaControllerManager.enabled) && !self.karmadaControllerManager.enabled, \
        has(self.karmadaScheduler) && has(self.karmadaScheduler.enabled) && !self.karmadaScheduler.enabled, \
        has(self.karmadaWebhook) && has(self.karmadaWebhook.enabled) && !self.karmadaWebhook.enabled].all(off, !off)")
        .message("only karmadaDescheduler, karmadaSearch, karmadaMetricsAdapter and karmadaSchedulerEstimator can be \
            disabled"),
    validation = Rule::new("[has(self.karmadaAggregatedAPIServer) && has(self.karmadaAggregatedAPIServer.hosts), \
        has(self.karmadaWebhook) && has(self.karmadaWebhook.hosts), has(self.karmadaSearch) && has(self.karmadaSearch.hosts), \
        has(self.karmadaMetricsAdapter) && has(self.karmadaMetricsAdapter.hosts)].all(placed, !placed)")
        .message("karmadaAggregatedAPIServer, karmadaWebhook, karmadaSearch and karmadaMetricsAdapter cannot have \
            hosts of their own: each API server calls them on its own host, so they run on every host with an API server"),
    validation = Rule::new("!has(self.karmadaSchedulerEstimator) || !has(self.karmadaSchedulerEstimator.hosts)")
        .message("karmadaSchedulerEstimator cannot have hosts of its own: estimators run on every host with a \
            scheduler or a descheduler"),
)]
pub struct Components {
    /// kube-apiserver.
    #[serde(default, rename = "karmadaAPIServer", skip_serializing_if = "Option::is_none")]
    pub karmada_api_server: Option<Component>,
    /// karmada-aggregated-apiserver.
    #[serde(default, rename = "karmadaAggregatedAPIServer", skip_serializing_if = "Option::is_none")]
    pub karmada_aggregated_api_server: Option<Component>,
    /// kube-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_controller_manager: Option<Component>,
    /// karmada-controller-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_controller_manager: Option<Component>,
    /// karmada-scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_scheduler: Option<Component>,
    /// karmada-webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_webhook: Option<Component>,
    /// karmada-descheduler; optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_descheduler: Option<Component>,
    /// karmada-search; optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_search: Option<Component>,
    /// karmada-metrics-adapter; optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_metrics_adapter: Option<Component>,
    /// karmada-scheduler-estimator, one for each member; optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_scheduler_estimator: Option<Component>,
}

/// Settings of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Whether an optional component runs (default true). With false, its settings are kept for later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The hosts that it runs on, by their names in spec.hosts (default: all of controlPlane.hosts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<Vec<String>>,
    /// More flags, by name without dashes. They override those that windlass sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = super::flags())]
    pub extra_args: BTreeMap<String, String>,
    /// Feature gates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = Rule::new("self.all(name, name.matches('^[0-9A-Za-z][0-9A-Za-z:]*$'))")
        .message("the name of a feature gate must consist of letters and digits"))]
    pub feature_gates: BTreeMap<String, bool>,
    /// Limits of the service, in systemd's terms: `MemoryMax: 2G`, `CPUQuota: 200%`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = limits())]
    pub resources: BTreeMap<String, String>,
}

/// Limits, and no other directive of a unit.
fn limits() -> Rule {
    let names: Vec<String> = unit_file::LIMITS.iter().map(|name| format!("'{name}'")).collect();
    Rule::new(format!("self.all(name, name in [{}] && self[name].matches('^[0-9A-Za-z%:./ _,-]+$'))", names.join(", ")))
        .message("resources must be service limits in systemd's terms, such as MemoryMax: 2G and CPUQuota: 200%")
}

impl Component {
    /// Whether an optional one that is named is there.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}
