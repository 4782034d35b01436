//! `Run`: one piece of work on a deployment, and what became of it.

#![expect(clippy::duplicated_attributes, reason = "columns of one type have the same attribute")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;

/// The type of the condition that says how a run went: Unknown until it has ended.
pub const SUCCEEDED: &str = "Succeeded";

/// One piece of work on a KarmadaDeployment. The user who creates it has agreed to that work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "Run",
    plural = "runs",
    shortname = "wrun",
    category = "windlass",
    namespaced,
    status = "RunStatus",
    derive = "PartialEq",
    doc = "One piece of work on a KarmadaDeployment",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deployment"),
    printcolumn(name = "Operation", type_ = "string", json_path = ".spec.operation"),
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].status"
    ),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Succeeded\")].reason"),
    printcolumn(name = "Stage", type_ = "string", json_path = ".status.stage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("self.deployment == oldSelf.deployment && self.operation == oldSelf.operation && \
        has(self.planDigest) == has(oldSelf.planDigest) && (!has(self.planDigest) || self.planDigest == oldSelf.planDigest) && \
        has(self.confirm) == has(oldSelf.confirm) && (!has(self.confirm) || self.confirm == oldSelf.confirm) && \
        has(self.backup) == has(oldSelf.backup) && (!has(self.backup) || self.backup == oldSelf.backup) && \
        has(self.snapshot) == has(oldSelf.snapshot) && (!has(self.snapshot) || self.snapshot == oldSelf.snapshot)")
        .message("only stop may change in the spec of a run: create another Run"),
    validation = Rule::new("!oldSelf.stop || self.stop").message("a run that was stopped stays stopped: create another Run"),
    validation = Rule::new("self.operation == 'Apply' || !has(self.planDigest)").message("planDigest is for the operation Apply only"),
    validation = Rule::new("!(self.operation in ['Destroy', 'Restore', 'UndoRestore', 'ReleaseRestore']) || \
        (has(self.confirm) && self.confirm == self.deployment)")
        .message("to destroy a deployment, or to restore its etcd, undo or release that, confirm must be the deployment's name"),
    validation = Rule::new("(self.operation in ['Backup', 'Restore']) == has(self.backup)")
        .message("the operations Backup and Restore need backup, the name of an EtcdBackup, and no other operation has it"),
    validation = Rule::new("self.operation == 'Restore' || !has(self.snapshot)").message("snapshot is for the operation Restore only"),
)]
pub struct RunSpec {
    /// The KarmadaDeployment in the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub deployment: String,
    /// What to do.
    pub operation: RunOperation,
    /// The plan that is applied: its digest in status.look.plan.digest of the deployment. The run is refused if the plan has become
    /// another one. Without it, whatever plan there is then is applied, except that no member is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-f]{64}$')").message("a plan's digest must have 64 hexadecimal digits"))]
    pub plan_digest: Option<String>,
    /// To destroy, and for a restore and what ends it: the name of the deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub confirm: Option<String>,
    /// To back up or restore etcd: the name of the EtcdBackup in the same namespace that says where the backups are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup: Option<String>,
    /// To restore: the name of the backup in that place, such as 20261128T090737Z-r20-12406398 (default: the newest that was taken before
    /// this Run was created).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9]{8}T[0-9]{6}Z-r[0-9a-f-]+$')")
        .message("a snapshot must be the name of a backup, such as 20261128T090737Z-r20-12406398"))]
    pub snapshot: Option<String>,
    /// Whether to stop: it ends after the tasks that are running, or does not begin.
    #[serde(default)]
    pub stop: bool,
}

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RunOperation {
    /// Makes the hosts what the spec says.
    Apply,
    /// Upgrades the control plane to the version in the bundle.
    Upgrade,
    /// Goes back to the version before the last upgrade.
    Rollback,
    /// Renews the control plane's certificates that are due.
    RenewCertificates,
    /// Upgrades etcd to the next minor version, that of the bundle.
    UpgradeEtcd,
    /// Takes etcd back to the minor version before, that of the bundle.
    DowngradeEtcd,
    /// Gives the unused space of etcd's databases back, where it pays.
    DefragmentEtcd,
    /// Removes the deployment from its hosts, with all its data.
    Destroy,
    /// Takes a backup of etcd. It changes nothing on the hosts.
    Backup,
    /// Restores etcd from a backup. The controllers wait until UndoRestore or ReleaseRestore.
    Restore,
    /// Moves the data from before the last restore back.
    UndoRestore,
    /// Starts the controllers that the last restore holds. It can no longer be undone then.
    ReleaseRestore,
}

impl RunSpec {
    /// An operation without anything that it may have besides.
    pub fn of_operation(deployment: &str, operation: RunOperation) -> RunSpec {
        let deployment = deployment.to_owned();
        RunSpec { deployment, operation, plan_digest: None, confirm: None, backup: None, snapshot: None, stop: false }
    }
}

impl RunOperation {
    /// Whether it can destroy what nobody can bring back, so that the name of the deployment confirms it.
    pub fn needs_confirm(self) -> bool {
        use RunOperation::{Destroy, ReleaseRestore, Restore, UndoRestore};
        matches!(self, Destroy | Restore | UndoRestore | ReleaseRestore)
    }

    /// Whether it changes hosts.
    pub fn changes_hosts(self) -> bool {
        self != RunOperation::Backup
    }

    /// Whether it begins in a maintenance window only. What ends a restore does not: the controllers are stopped until then.
    pub fn waits_for_window(self) -> bool {
        self.changes_hosts() && !matches!(self, RunOperation::UndoRestore | RunOperation::ReleaseRestore)
    }

    /// As the sub-command of the command line is called.
    pub fn command(self) -> &'static str {
        match self {
            RunOperation::Apply => "apply",
            RunOperation::Upgrade => "upgrade",
            RunOperation::Rollback => "rollback",
            RunOperation::RenewCertificates => "certificates",
            RunOperation::UpgradeEtcd => "etcd upgrade",
            RunOperation::DowngradeEtcd => "etcd downgrade",
            RunOperation::DefragmentEtcd => "etcd defrag",
            RunOperation::Destroy => "destroy",
            RunOperation::Backup => "etcd backup",
            RunOperation::Restore => "etcd restore",
            RunOperation::UndoRestore => "etcd restore --undo",
            RunOperation::ReleaseRestore => "etcd restore --release",
        }
    }
}

/// What became of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// Succeeded: Unknown until it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The stage that it is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The process that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerStatus>,
    /// What the Run is about to do, once it was permitted: a process that resumes it keeps to this. Absent: no host was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<AgreedPlan>,
    /// When it began (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When it ended (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// How many processes have begun it: more than one after a process has ended in the middle.
    #[serde(default)]
    pub attempts: i32,
    /// The generation of the deployment's spec that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// What went wrong, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The backup that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<RunBackup>,
}

/// A backup of etcd that a Run took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunBackup {
    /// Where it is: s3://BUCKET/PREFIX/NAME or ssh://USER@ADDRESS:PORT/DIRECTORY/NAME, for windlass etcd restore.
    pub address: String,
    /// Of etcd.
    pub revision: i64,
    /// Of the snapshot, in bytes.
    pub size: i64,
}

/// What a Run does on the hosts, written before it changes anything there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgreedPlan {
    /// The digest of what was asked for: of the spec, the bundle and the playbooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The members that leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<String>,
    /// The backup that is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The processes that may have begun it, by their ids in the store of runs: the journal on the hosts has the id of one of them.
    pub records: Vec<String>,
}

/// A process that does a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// The machine or pod that it is on.
    pub host: String,
    /// Its id in the store of runs there: windlass logs ID shows what it printed.
    pub record: String,
    /// When it last said that it is there (RFC 3339).
    pub heartbeat_time: String,
}

impl RunStatus {
    /// The condition that says how it went.
    pub fn succeeded(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == SUCCEEDED)
    }

    /// Whether it has ended, well or not.
    pub fn has_ended(&self) -> bool {
        self.succeeded().is_some_and(|condition| condition.status != "Unknown")
    }
}

#[cfg(test)]
mod tests {
    use kube::core::cel::validate_cel_update;

    use super::*;

    fn run(spec: RunSpec) -> Run {
        Run::new("r", spec)
    }

    fn apply() -> RunSpec {
        let of_plan = Some("0".repeat(64));
        RunSpec { plan_digest: of_plan, ..RunSpec::of_operation("prod", RunOperation::Apply) }
    }

    #[test]
    fn of_a_run_only_stop_changes_and_only_once() {
        let refused = |old: &RunSpec, new: RunSpec| {
            validate_cel_update(&run(new), &run(old.clone())).err().map(|errors| errors.to_string())
        };
        let stopped = RunSpec { stop: true, ..apply() };
        assert_eq!(refused(&apply(), apply()), None);
        assert_eq!(refused(&apply(), stopped.clone()), None);
        for changed in [
            RunSpec { deployment: "other".into(), ..apply() },
            RunSpec { operation: RunOperation::Rollback, plan_digest: None, ..apply() },
            RunSpec { plan_digest: None, ..apply() },
            RunSpec { plan_digest: Some("1".repeat(64)), ..apply() },
            RunSpec { confirm: Some("prod".into()), ..apply() },
            RunSpec { backup: Some("daily".into()), ..apply() },
            RunSpec { snapshot: Some("20261128T090737Z-r20-12406398".into()), ..apply() },
        ] {
            let why = refused(&apply(), changed.clone());
            assert!(why.as_ref().is_some_and(|why| why.contains("only stop may change")), "{changed:?}: {why:?}");
        }
        assert!(refused(&stopped, apply()).is_some_and(|why| why.contains("stays stopped")));
    }
}
