//! What Prometheus gets.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use kube::ResourceExt;
use kube::runtime::reflector::Store;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::view::seconds_of;
use crate::resource::{EtcdBackup, KarmadaDeployment, KarmadaDeploymentStatus};

/// Which deployment a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDeployment {
    namespace: String,
    deployment: String,
}

/// Which backup a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBackup {
    namespace: String,
    deployment: String,
    backup: String,
}

/// Which condition of a deployment a figure is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCondition {
    namespace: String,
    deployment: String,
    condition: String,
}

/// All figures.
#[derive(Clone)]
pub(super) struct Metrics {
    registry: Arc<Registry>,
    pub leader: Gauge,
    pub runs_active: Gauge,
    pub reconciles: Counter,
    pub reconcile_errors: Counter,
    pub api_last_success: Gauge<f64, AtomicU64>,
    /// Set once the deployments are watched.
    pub deployments: Arc<OnceLock<Store<KarmadaDeployment>>>,
    /// Set once the backups are watched.
    pub backups: Arc<OnceLock<Store<EtcdBackup>>>,
    conditions: Family<OfCondition, Gauge>,
    hosts_reachable: Family<OfDeployment, Gauge>,
    drift_changes: Family<OfDeployment, Gauge>,
    etcd_members_healthy: Family<OfDeployment, Gauge>,
    certificate_days_left: Family<OfDeployment, Gauge>,
    backup_last_success: Family<OfBackup, Gauge>,
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("windlass");
        let mut metrics = Metrics {
            registry: Arc::default(),
            leader: Gauge::default(),
            runs_active: Gauge::default(),
            reconciles: Counter::default(),
            reconcile_errors: Counter::default(),
            api_last_success: Gauge::default(),
            deployments: Arc::default(),
            backups: Arc::default(),
            conditions: Family::default(),
            hosts_reachable: Family::default(),
            drift_changes: Family::default(),
            etcd_members_healthy: Family::default(),
            certificate_days_left: Family::default(),
            backup_last_success: Family::default(),
        };
        registry.register("leader", "Whether this operator is the leader", metrics.leader.clone());
        registry.register("runs_active", "Runs whose process was started here", metrics.runs_active.clone());
        registry.register("reconcile", "Decisions about deployments", metrics.reconciles.clone());
        registry.register(
            "reconcile_errors",
            "Decisions that could not be carried out",
            metrics.reconcile_errors.clone(),
        );
        registry.register(
            "api_last_success_seconds",
            "When the API last answered, in seconds since 1970",
            metrics.api_last_success.clone(),
        );
        registry.register(
            "condition",
            "Conditions of deployments: 1 is True, 0 is False, -1 is Unknown",
            metrics.conditions.clone(),
        );
        registry.register("hosts_reachable", "Hosts that answered the last look", metrics.hosts_reachable.clone());
        registry.register("drift_changes", "What an apply would change", metrics.drift_changes.clone());
        registry.register(
            "etcd_members_healthy",
            "etcd members that were healthy at the last look",
            metrics.etcd_members_healthy.clone(),
        );
        registry.register(
            "certificate_days_left",
            "Days until the first certificate expires",
            metrics.certificate_days_left.clone(),
        );
        registry.register(
            "backup_last_success_seconds",
            "When the newest good backup of etcd ended, in seconds since 1970",
            metrics.backup_last_success.clone(),
        );
        metrics.registry = Arc::new(registry);
        metrics
    }

    fn put_deployment(&self, namespace: &str, deployment: &str, status: &KarmadaDeploymentStatus) {
        let of = || OfDeployment { namespace: namespace.to_owned(), deployment: deployment.to_owned() };
        for condition in &status.conditions {
            let labels = OfCondition {
                namespace: namespace.to_owned(),
                deployment: deployment.to_owned(),
                condition: condition.r#type.clone(),
            };
            self.conditions.get_or_create(&labels).set(match condition.status.as_str() {
                "True" => 1,
                "False" => 0,
                _ => -1,
            });
        }
        let Some(look) = status.look.as_ref().filter(|look| look.error.is_none()) else { return };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let reachable = look.hosts.iter().filter(|host| host.reachable).count();
        self.hosts_reachable.get_or_create(&of()).set(count(reachable));
        let healthy = look.etcd_members.iter().filter(|member| member.healthy).count();
        self.etcd_members_healthy.get_or_create(&of()).set(count(healthy));
        self.drift_changes.get_or_create(&of()).set(look.plan.as_ref().map_or(0, |plan| plan.changes));
        if let Some(days) = look.certificate_days_left {
            self.certificate_days_left.get_or_create(&of()).set(days);
        }
    }

    /// The text that Prometheus reads. The figures of deployments are those of the moment, so that none stays of one that is gone.
    pub(super) fn text(&self) -> String {
        self.conditions.clear();
        for family in
            [&self.hosts_reachable, &self.drift_changes, &self.etcd_members_healthy, &self.certificate_days_left]
        {
            family.clear();
        }
        for deployment in self.deployments.get().map(Store::state).into_iter().flatten() {
            if let Some(status) = &deployment.status {
                self.put_deployment(&deployment.namespace().unwrap_or_default(), &deployment.name_any(), status);
            }
        }
        self.backup_last_success.clear();
        for backup in self.backups.get().map(Store::state).into_iter().flatten() {
            let status = backup.status.as_ref();
            if let Some(time) = status.and_then(|status| status.last_success_time.as_deref()) {
                let of = OfBackup {
                    namespace: backup.namespace().unwrap_or_default(),
                    deployment: backup.spec.deployment.clone(),
                    backup: backup.name_any(),
                };
                self.backup_last_success.get_or_create(&of).set(seconds_of(time));
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String takes any text");
        text
    }
}
