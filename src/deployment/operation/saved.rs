//! The dry run of an operation, saved so that somebody can approve it. It is carried out later only if it would still do the same.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Changes, Control, Error, LockRequest, Observed, Operation, PreparedOperation, Site};
use crate::deployment::etcd::defrag::Defragmentation;
use crate::deployment::lock::holder;
use crate::deployment::plan::digest_to_hex;
use crate::deployment::recorded_operation::RecordedOperation;

/// The layout that this program writes and reads.
pub const OPERATION_LAYOUT: u32 = 1;

/// A dry run that was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationPlan {
    /// Of this layout.
    pub windlass_operation: u32,
    pub operation: RecordedOperation,
    /// Of an upgrade of Karmada or etcd, if it is not the one that the inventory names. Absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<PathBuf>,
    /// Of a defragmentation: what is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmentation: Option<Defragmentation>,
    /// Of a change of etcd's version: the checks to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    pub deployment: String,
    /// Seconds since 1970.
    pub made: u64,
    /// `alice@workstation`.
    pub by: String,
    /// The inventories that it is for, absolute.
    pub sources: Vec<String>,
    /// The same operation did not come to its end, so that this one resumes it.
    pub resumes: bool,
    pub found: Changes,
    pub observed: Observed,
}

impl OperationPlan {
    /// What is to be done. None: dry runs of this operation are not saved.
    pub fn planned_operation(&self) -> Option<Operation> {
        match (&self.operation, &self.bundle, &self.defragmentation) {
            (RecordedOperation::Upgrade { component }, bundle, None) => {
                Some(Operation::Upgrade { component: component.clone(), bundle: bundle.clone() })
            }
            (RecordedOperation::Rollback { component }, None, None) => {
                Some(Operation::Rollback { component: component.clone() })
            }
            (RecordedOperation::RenewCertificates, None, None) => Some(Operation::RenewCertificates),
            (RecordedOperation::ChangeEtcdVersion(direction), bundle, None) => Some(Operation::ChangeEtcdVersion {
                direction: *direction,
                bundle: bundle.clone(),
                skip: self.skip.clone(),
            }),
            (RecordedOperation::DefragmentEtcd, None, Some(wanted)) => Some(Operation::DefragmentEtcd(wanted.clone())),
            _ => None,
        }
    }

    /// Whether there is nothing to carry out.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && !self.resumes
    }

    /// Names exactly this plan, as the digest of a plan of an apply does: what it would do, what was asked for, what the hosts were like,
    /// and what it says to the person who approves it.
    pub fn operation_digest(&self) -> String {
        let mut plan = OperationPlan { made: 0, by: String::new(), sources: Vec::new(), ..self.clone() };
        let mut notes = std::mem::take(&mut plan.found.notes);
        notes.sort();
        plan.found = ordered(&plan.found);
        plan.found.notes = notes;
        let mut digest = Sha256::new();
        digest.update(serde_json::to_vec(&plan).expect("a plan is JSON"));
        digest_to_hex(digest)
    }
}

/// What a dry run found, without diffs and notes, and without the order in which hosts answered.
pub(super) fn ordered(found: &Changes) -> Changes {
    let mut found = Changes { notes: Vec::new(), warnings: Vec::new(), ..found.clone() };
    found.changes.iter_mut().for_each(|change| change.diff.clear());
    found.changes.sort_by(|a, b| (&a.host, &a.kind, &a.what, &a.task).cmp(&(&b.host, &b.kind, &b.what, &b.task)));
    found.failures.sort_by(|a, b| (&a.host, &a.task).cmp(&(&b.host, &b.task)));
    found.waits.sort_by(|a, b| (&a.host, &a.reason).cmp(&(&b.host, &b.reason)));
    found.services.sort_by(|a, b| (&a.host, &a.unit).cmp(&(&b.host, &b.unit)));
    found
}

/// Whether nothing but states of services differs: one that fails and restarts again and again changes its state between any two looks.
pub(super) fn only_services_moved(before: &Observed, now: &Observed) -> bool {
    let rest = |observed: &Observed| {
        let mut rest = observed.clone();
        rest.values_mut().for_each(|found| found.retain(|name, _| !name.starts_with("unit ")));
        rest
    };
    rest(before) == rest(now)
}

impl<'s> PreparedOperation<'s> {
    /// What is saved of it. None: dry runs of this operation are not saved.
    pub fn operation_plan(&self) -> Option<OperationPlan> {
        let me = holder::this_run(&self.deployment.surroundings, "plan");
        let bundle = match &self.operation {
            Operation::Upgrade { bundle, .. } | Operation::ChangeEtcdVersion { bundle, .. } => bundle.clone(),
            _ => None,
        };
        let defragmentation = match &self.operation {
            Operation::DefragmentEtcd(wanted) => Some(wanted.clone()),
            _ => None,
        };
        let skip = match &self.operation {
            Operation::ChangeEtcdVersion { skip, .. } => skip.clone(),
            _ => Vec::new(),
        };
        let plan = OperationPlan {
            windlass_operation: OPERATION_LAYOUT,
            operation: self.operation.recorded(),
            bundle,
            defragmentation,
            skip,
            deployment: self.deployment.name.clone(),
            made: me.since,
            by: me.holder,
            sources: self.site.absolute_sources(),
            resumes: self.resumes(),
            found: self.found.clone(),
            observed: self.observed.clone(),
        };
        plan.planned_operation().is_some().then_some(plan)
    }

    /// Takes a dry run that was saved, to be carried out.
    ///
    /// # Errors
    /// As [`PreparedOperation::make`]; or dry runs of this operation are not saved.
    pub async fn of_plan(
        site: &'s Site,
        plan: OperationPlan,
        request: &LockRequest,
        control: &Control,
    ) -> Result<PreparedOperation<'s>, Error> {
        let operation =
            plan.planned_operation().ok_or_else(|| Error::InvalidName { command: plan.operation.to_string() })?;
        let phase = site.read_inventory().await?;
        let (deployment, interrupted) = Self::begin(&phase, &operation, request, true, control).await?;
        let (found, observed) = (plan.found, plan.observed);
        Ok(PreparedOperation { site, deployment, operation, found, interrupted, observed, saved: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::changes::{ChangeKind, PlannedChange};
    use crate::deployment::operation::Direction;

    fn change(host: &str, what: &str) -> PlannedChange {
        PlannedChange {
            host: host.into(),
            kind: ChangeKind::File,
            what: what.into(),
            task: "t".into(),
            diff: String::new(),
        }
    }

    fn observed(entries: &[(&str, &str)]) -> Observed {
        let of_host = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        [("h1".to_owned(), of_host.collect())].into()
    }

    fn plan(operation: RecordedOperation, changes: Vec<PlannedChange>, notes: &[&str]) -> OperationPlan {
        let notes = notes.iter().map(ToString::to_string).collect();
        OperationPlan {
            windlass_operation: OPERATION_LAYOUT,
            operation,
            bundle: None,
            defragmentation: None,
            skip: Vec::new(),
            deployment: "d".into(),
            made: 1,
            by: "a@b".into(),
            sources: vec!["/d.yaml".into()],
            resumes: false,
            found: Changes { changes, notes, ..Changes::default() },
            observed: observed(&[("file /a", "1")]),
        }
    }

    fn upgrade() -> RecordedOperation {
        RecordedOperation::Upgrade { component: None }
    }

    #[test]
    fn a_digest_is_of_what_would_be_done_and_of_what_was_said() {
        let one = plan(upgrade(), vec![change("h1", "/a"), change("h2", "/b")], &["to 1.18"]);
        let mut same = plan(upgrade(), vec![change("h2", "/b"), change("h1", "/a")], &["to 1.18"]);
        (same.made, same.by, same.sources) = (2, "c@d".into(), Vec::new());
        assert_eq!((one.operation_digest(), one.operation_digest().len()), (same.operation_digest(), 64));
        let changes = || one.found.changes.clone();
        for other in [
            plan(upgrade(), changes(), &["to 1.19"]),
            plan(upgrade(), vec![change("h1", "/a")], &["to 1.18"]),
            plan(RecordedOperation::Upgrade { component: Some("webhook".into()) }, changes(), &["to 1.18"]),
            plan(RecordedOperation::Rollback { component: None }, changes(), &["to 1.18"]),
            OperationPlan { bundle: Some("/srv/other".into()), ..one.clone() },
            OperationPlan { resumes: true, ..one.clone() },
            OperationPlan { defragmentation: Some(Defragmentation::default()), ..one.clone() },
            OperationPlan { deployment: "e".into(), ..one.clone() },
            OperationPlan { skip: vec!["fsync".into()], ..one.clone() },
            plan(RecordedOperation::ChangeEtcdVersion(Direction::Up), changes(), &["to 1.18"]),
            plan(RecordedOperation::ChangeEtcdVersion(Direction::Down), changes(), &["to 1.18"]),
            OperationPlan { observed: observed(&[("file /a", "2")]), ..one.clone() },
        ] {
            assert_ne!(one.operation_digest(), other.operation_digest(), "{other:?}");
        }
    }

    #[test]
    fn only_operations_that_people_approve_are_saved() {
        let planned = |operation, bundle: Option<&str>| {
            OperationPlan { bundle: bundle.map(Into::into), ..plan(operation, Vec::new(), &[]) }.planned_operation()
        };
        let wanted = Operation::Upgrade { component: None, bundle: Some("/srv/b".into()) };
        assert_eq!(planned(upgrade(), Some("/srv/b")), Some(wanted));
        assert_eq!(planned(RecordedOperation::RenewCertificates, None), Some(Operation::RenewCertificates));
        assert_eq!(planned(RecordedOperation::RenewCertificates, Some("/srv/b")), None);
        let compacting = Defragmentation { compacts: true, ..Defragmentation::default() };
        let wanted = OperationPlan {
            defragmentation: Some(compacting.clone()),
            ..plan(RecordedOperation::DefragmentEtcd, Vec::new(), &[])
        };
        let read: OperationPlan = serde_json::from_str(&serde_json::to_string(&wanted).unwrap()).unwrap();
        assert_eq!(read.planned_operation(), Some(Operation::DefragmentEtcd(compacting)));
        let skipping = OperationPlan {
            bundle: Some("/srv/b".into()),
            skip: vec!["fsync".into()],
            ..plan(RecordedOperation::ChangeEtcdVersion(Direction::Down), Vec::new(), &[])
        };
        let read: OperationPlan = serde_json::from_str(&serde_json::to_string(&skipping).unwrap()).unwrap();
        let (direction, bundle) = (Direction::Down, Some("/srv/b".into()));
        let wanted = Operation::ChangeEtcdVersion { direction, bundle, skip: vec!["fsync".into()] };
        assert_eq!(read.planned_operation(), Some(wanted));
        for other in [RecordedOperation::Apply, RecordedOperation::DefragmentEtcd, RecordedOperation::UndoRestore] {
            assert_eq!(planned(other, None), None);
        }
    }

    #[test]
    fn what_is_resumed_is_not_empty() {
        let empty = plan(upgrade(), Vec::new(), &[]);
        assert!(empty.is_empty());
        assert!(!OperationPlan { resumes: true, ..empty.clone() }.is_empty());
        assert!(!plan(upgrade(), vec![change("h1", "/a")], &[]).is_empty());
        let text = serde_json::to_string(&empty).unwrap();
        assert_eq!(serde_json::from_str::<OperationPlan>(&text).unwrap(), empty);
    }

    #[test]
    fn a_service_may_move_and_a_file_may_not() {
        let before = observed(&[("file /a", "1"), ("unit etcd.service", "loaded started")]);
        let service = observed(&[("file /a", "1"), ("unit etcd.service", "loaded failed failed")]);
        let file = observed(&[("file /a", "2"), ("unit etcd.service", "loaded started")]);
        assert!(only_services_moved(&before, &service) && only_services_moved(&before, &before));
        assert!(!only_services_moved(&before, &file) && !only_services_moved(&before, &observed(&[])));
    }
}
