//! The kinds of plans: of an apply, and of an operation that a person approves too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::problem::Problem;
use crate::deployment::changes::TaskFailure;
use crate::deployment::operation::{OPERATION_LAYOUT, OperationPlan};
use crate::deployment::plan::{LAYOUT, Plan, TargetHosts};

/// What a plan is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlannedWork {
    /// To make the hosts what the document says.
    #[default]
    Apply,
    /// To the version in the bundle that the document names.
    Upgrade,
    /// To the version before the last upgrade.
    Rollback,
    /// To renew the control plane's certificates that are due.
    Certificates,
    /// To give the unused space of etcd's databases back.
    EtcdDefrag,
    /// To the next minor version of etcd, in the bundle that the document names.
    EtcdUpgrade,
    /// To the minor version of etcd before, in the bundle that the document names.
    EtcdDowngrade,
}

impl PlannedWork {
    pub(super) const EVERY: [PlannedWork; 7] = [
        PlannedWork::Apply,
        PlannedWork::Upgrade,
        PlannedWork::Rollback,
        PlannedWork::Certificates,
        PlannedWork::EtcdDefrag,
        PlannedWork::EtcdUpgrade,
        PlannedWork::EtcdDowngrade,
    ];

    /// The sub-command that does it.
    pub(super) fn sub_command(self) -> &'static str {
        match self {
            PlannedWork::Apply => "apply",
            PlannedWork::Upgrade => "upgrade",
            PlannedWork::Rollback => "rollback",
            PlannedWork::Certificates => "certificates",
            PlannedWork::EtcdDefrag => "etcd defrag",
            PlannedWork::EtcdUpgrade => "etcd upgrade",
            PlannedWork::EtcdDowngrade => "etcd downgrade",
        }
    }

    /// Its name in the API.
    pub(super) fn api_name(self) -> String {
        self.sub_command().replace(' ', "_")
    }

    /// The sub-command whose runs make plans for it, and whether these are dry runs of the same name.
    pub(super) fn planning_command(self) -> (&'static str, bool) {
        match self {
            PlannedWork::Apply => ("plan", false),
            other => (other.sub_command(), true),
        }
    }

    /// The command that makes a plan, without the deployment and the file.
    pub(super) fn planning_words(self) -> Vec<&'static str> {
        let (command, is_check) = self.planning_command();
        command.split(' ').chain(is_check.then_some("--check")).collect()
    }

    /// The command that carries a plan out, without the file.
    pub(super) fn carrying_out(self, most_removals: usize, plan: String) -> Vec<String> {
        let most = most_removals.to_string();
        let options: &[&str] = match self {
            PlannedWork::Apply => &["--max-removals", &most],
            _ => &["--plan"],
        };
        let words = self.sub_command().split(' ').chain(["--yes"]).chain(options.iter().copied());
        words.map(str::to_owned).chain([plan]).collect()
    }
}

/// A plan of any kind.
pub(super) enum AnyPlan {
    Apply(Plan),
    Operation(PlannedWork, OperationPlan),
}

/// What every layout has: one of the two.
#[derive(Deserialize)]
struct PlanHead {
    windlass_plan: Option<u32>,
    windlass_operation: Option<u32>,
}

impl AnyPlan {
    /// Reads a plan file.
    ///
    /// # Errors
    /// It is not whole, or another version of windlass wrote it.
    pub(super) fn parse(bytes: &[u8]) -> Result<AnyPlan, Problem> {
        let damaged = || Problem::conflict("PlanDamaged", "the plan was not saved whole").with_hint("make a new plan");
        let other = || {
            let detail = "another version of windlass made this plan";
            Problem::conflict("PlanIsOld", detail).with_hint("make a new plan")
        };
        let head: PlanHead = serde_json::from_slice(bytes).map_err(|_| damaged())?;
        match (head.windlass_plan, head.windlass_operation) {
            (Some(LAYOUT), None) => Ok(AnyPlan::Apply(serde_json::from_slice(bytes).map_err(|_| damaged())?)),
            (None, Some(OPERATION_LAYOUT)) => {
                let plan: OperationPlan = serde_json::from_slice(bytes).map_err(|_| damaged())?;
                let operation = plan.planned_operation().ok_or_else(damaged)?;
                let work = PlannedWork::EVERY.into_iter().find(|work| work.sub_command() == operation.name());
                Ok(AnyPlan::Operation(work.ok_or_else(damaged)?, plan))
            }
            (None, None) => Err(damaged()),
            _ => Err(other()),
        }
    }

    pub(super) fn work(&self) -> PlannedWork {
        match self {
            AnyPlan::Apply(_) => PlannedWork::Apply,
            AnyPlan::Operation(work, _) => *work,
        }
    }

    pub(super) fn deployment(&self) -> &str {
        match self {
            AnyPlan::Apply(plan) => &plan.deployment,
            AnyPlan::Operation(_, plan) => &plan.deployment,
        }
    }

    pub(super) fn digest_of_plan(&self) -> String {
        match self {
            AnyPlan::Apply(plan) => plan.digest(),
            AnyPlan::Operation(_, plan) => plan.operation_digest(),
        }
    }

    /// Seconds since 1970.
    pub(super) fn made(&self) -> u64 {
        match self {
            AnyPlan::Apply(plan) => plan.made,
            AnyPlan::Operation(_, plan) => plan.made,
        }
    }

    pub(super) fn sources(&self) -> &[String] {
        match self {
            AnyPlan::Apply(plan) => &plan.sources,
            AnyPlan::Operation(_, plan) => &plan.sources,
        }
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            AnyPlan::Apply(plan) => plan.is_empty(),
            AnyPlan::Operation(_, plan) => plan.is_empty(),
        }
    }

    pub(super) fn removals(&self) -> &[String] {
        match self {
            AnyPlan::Apply(plan) => plan.removals(),
            AnyPlan::Operation(..) => &[],
        }
    }

    /// The hosts that it is for. None: all of them.
    pub(super) fn reach(&self) -> Option<&TargetHosts> {
        match self {
            AnyPlan::Apply(plan) => Some(&plan.reach),
            AnyPlan::Operation(..) => None,
        }
    }

    /// What cannot be carried out, and why.
    pub(super) fn why_refused(&self) -> Option<(String, &[TaskFailure])> {
        match self {
            AnyPlan::Apply(plan) => {
                let refused = plan.refused()?;
                Some((format!("the stage {}", refused.stage.name()), &refused.found.failures))
            }
            AnyPlan::Operation(_, plan) if plan.found.failures.is_empty() => None,
            AnyPlan::Operation(work, plan) => Some((format!("the {}", work.sub_command()), &plan.found.failures)),
        }
    }

    /// Objects with `stage`, `state`, `hosts` and `found`. An operation is one stage, with its own name.
    pub(super) fn stages(&self) -> Vec<Json> {
        match self {
            AnyPlan::Apply(plan) => plan.stages.iter().map(|stage| serde_json::json!(stage)).collect(),
            AnyPlan::Operation(work, plan) => {
                let state = match (plan.found.failures.is_empty(), plan.is_empty()) {
                    (false, _) => "refused",
                    (true, true) => "same",
                    (true, false) => "differs",
                };
                let mut hosts: Vec<&str> =
                    plan.found.counts().into_keys().filter(|host| *host != "localhost").collect();
                hosts.sort_unstable();
                let stage = work.api_name();
                vec![serde_json::json!({"stage": stage, "state": state, "hosts": hosts, "found": plan.found})]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_file_is_read_as_what_it_is() {
        let operation = |layout: u32, operation: &str| {
            let found = serde_json::json!({"changes": [], "failures": [], "waits": [], "services": [], "notes": []});
            serde_json::json!({
                "windlass_operation": layout, "operation": operation, "deployment": "prod", "made": 1, "by": "a@b",
                "sources": [], "resumes": false, "found": found, "observed": {},
            })
            .to_string()
        };
        let read = |text: &str| AnyPlan::parse(text.as_bytes()).map(|plan| plan.work()).map_err(|problem| problem.code);
        assert_eq!(read(&operation(1, "upgrade")), Ok(PlannedWork::Upgrade));
        assert_eq!(read(&operation(1, "rollback --component webhook")), Ok(PlannedWork::Rollback));
        assert_eq!(read(&operation(1, "certificates")), Ok(PlannedWork::Certificates));
        assert_eq!(read(&operation(2, "upgrade")), Err("PlanIsOld"));
        for damaged in [
            operation(1, "etcd defrag"),
            operation(1, "etcd recover"),
            operation(1, "apply"),
            operation(1, "x"),
            "{}".to_owned(),
        ] {
            assert_eq!(read(&damaged), Err("PlanDamaged"), "{damaged}");
        }
        assert_eq!(read(r#"{"windlass_plan": 5, "stages": {}}"#), Err("PlanIsOld"));
        assert_eq!(read(r#"{"windlass_plan": 4, "windlass_operation": 1}"#), Err("PlanIsOld"));
    }

    #[test]
    fn what_a_plan_is_for_is_named_as_its_sub_command() {
        for work in PlannedWork::EVERY {
            assert_eq!(serde_json::json!(work), work.api_name());
            let words = work.carrying_out(2, "p".into()).join(" ");
            assert!(words.starts_with(&format!("{} --yes", work.sub_command())), "{words}");
            assert!(work.planning_words().join(" ").starts_with(work.planning_command().0));
        }
    }
}
