//! Work on a running deployment that an apply does not do: an upgrade, its rollback, the renewal of certificates, the removal of
//! a host, the removal and replacement of etcd members, the defragmentation of their databases, the replacement of their CA, a change of
//! their version. Each is a playbook that is tried out in check mode first, then run under the deployment's lock, with a journal.

mod saved;

use std::path::PathBuf;

pub use saved::{OPERATION_LAYOUT, OperationPlan};

use super::changes::Changes;
use super::control::{Control, LockRequest, Outcome, Progress};
use super::etcd::{self, check::skipping, defrag::Defragmentation, restore::Restoration};
use super::journal::{self, Journal, JournalEntry};
use super::lock::Lock;
use super::plan::{ASKED, Observed, asked, moved};
pub use super::recorded_operation::Direction;
use super::recorded_operation::RecordedOperation;
use super::stage::Stage;
use super::{Deployment, Error, Phase, Run, Site, planning, waiting};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// To the version in the bundle: of all components, or of one. Bundle None: the one that the inventory names.
    Upgrade { component: Option<String>, bundle: Option<PathBuf> },
    /// To the version before the last upgrade: of all components, or of one.
    Rollback { component: Option<String> },
    /// Of the control plane's certificates that are due.
    RenewCertificates,
    /// Removes a healthy host from the control plane.
    RemoveHost(String),
    /// Removes members from the etcd cluster, by name or id. `even`: healthy ones too, if an even number stays.
    RemoveEtcdMembers { names: Vec<String>, even: bool, skip: Vec<String> },
    /// Removes dead etcd members, and adds hosts of the inventory that are no members.
    ReplaceEtcdMembers { names: Vec<String>, skip: Vec<String> },
    /// Gives the unused space of etcd's databases back.
    DefragmentEtcd(Defragmentation),
    /// Replaces etcd's CA by one with another key. `keeps_trust`: it ends while the earlier one is trusted, too, for clients that are not
    /// windlass's.
    RotateEtcdCa { keeps_trust: bool, skip: Vec<String> },
    /// To the etcd in the bundle, another minor version. Bundle None: the one that the inventory names.
    ChangeEtcdVersion { direction: Direction, bundle: Option<PathBuf>, skip: Vec<String> },
    /// Exchanges the data of the etcd cluster as a whole, or starts its members.
    RestoreEtcd(Restoration),
}

impl Operation {
    /// The sub-command of the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Upgrade { .. } => "upgrade",
            Operation::Rollback { .. } => "rollback",
            Operation::RenewCertificates => "certificates",
            Operation::RemoveHost(_) => "remove-host",
            Operation::RemoveEtcdMembers { .. } => "etcd remove-member",
            Operation::ReplaceEtcdMembers { .. } => "etcd replace-member",
            Operation::DefragmentEtcd(_) => "etcd defrag",
            Operation::RotateEtcdCa { .. } => "etcd rotate-ca",
            Operation::ChangeEtcdVersion { direction: Direction::Up, .. } => "etcd upgrade",
            Operation::ChangeEtcdVersion { direction: Direction::Down, .. } => "etcd downgrade",
            Operation::RestoreEtcd(restoration) => restoration.name(),
        }
    }

    /// As the journal names it.
    pub fn recorded(&self) -> RecordedOperation {
        match self.clone() {
            Operation::Upgrade { component, .. } => RecordedOperation::Upgrade { component },
            Operation::Rollback { component } => RecordedOperation::Rollback { component },
            Operation::RenewCertificates => RecordedOperation::RenewCertificates,
            Operation::RemoveHost(host) => RecordedOperation::RemoveHost(host),
            Operation::RemoveEtcdMembers { names, even, .. } => RecordedOperation::RemoveEtcdMembers { names, even },
            Operation::ReplaceEtcdMembers { names, .. } => RecordedOperation::ReplaceEtcdMembers { names },
            Operation::DefragmentEtcd(_) => RecordedOperation::DefragmentEtcd,
            Operation::RotateEtcdCa { keeps_trust, .. } => RecordedOperation::RotateEtcdCa { keeps_trust },
            Operation::ChangeEtcdVersion { direction, .. } => RecordedOperation::ChangeEtcdVersion(direction),
            Operation::RestoreEtcd(restoration) => restoration.recorded(),
        }
    }

    /// Whether it may be run after an operation that did not come to its end: the same one, which it resumes; or one whose work it
    /// includes. An apply is not in its way, as the next plan shows what was left undone; nor is a defragmentation, which leaves nothing half done.
    fn may_follow(&self, unfinished: &Journal) -> bool {
        if matches!(self, Operation::RestoreEtcd(restoration) if restoration.may_follow(&unfinished.operation)) {
            return true;
        }
        let is_whole =
            matches!(self, Operation::Upgrade { component: None, .. } | Operation::Rollback { component: None });
        let operation = &unfinished.operation;
        let of_versions = matches!(operation, RecordedOperation::Upgrade { .. } | RecordedOperation::Rollback { .. });
        let of_etcd_versions = matches!(self, Operation::ChangeEtcdVersion { .. })
            && matches!(operation, RecordedOperation::ChangeEtcdVersion(_));
        unfinished.is_apply()
            || self.resumes(unfinished)
            || *operation == RecordedOperation::DefragmentEtcd
            || is_whole && of_versions
            || of_etcd_versions
    }

    /// Whether it resumes the work of the journal. A replacement of etcd's CA may be resumed to another end.
    fn resumes(&self, journal: &Journal) -> bool {
        let replaces = |operation: &RecordedOperation| matches!(operation, RecordedOperation::RotateEtcdCa { .. });
        let recorded = self.recorded();
        journal.operation == recorded || replaces(&journal.operation) && replaces(&recorded)
    }

    fn refuse_unfinished(&self, unfinished: Option<&Journal>, abandons: bool) -> Result<(), Error> {
        match unfinished {
            Some(journal) if !abandons && !self.may_follow(journal) => Err(Error::Unfinished {
                operation: journal.operation.to_string(),
                who: journal.who.clone(),
                fate: journal.fate(),
                resume: format!(
                    "{}{}",
                    journal.how_to_resume(),
                    if self.can_abandon() { "; --abandon gives it up" } else { "" }
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the journal of an operation that did not come to its end stays: starting members completes nothing of it.
    fn keeps_journal(&self, unfinished: &Journal) -> bool {
        matches!(self, Operation::RestoreEtcd(Restoration::Recover)) && unfinished.operation != self.recorded()
    }

    /// Whether its command has the option --abandon.
    fn can_abandon(&self) -> bool {
        !matches!(self, Operation::RestoreEtcd(Restoration::Recover))
    }

    /// Whether it changes members of etcd.
    fn is_of_etcd(&self) -> bool {
        use Operation::{
            ChangeEtcdVersion, DefragmentEtcd, RemoveEtcdMembers, ReplaceEtcdMembers, RestoreEtcd, RotateEtcdCa,
        };
        let is_of_members = matches!(self, RemoveEtcdMembers { .. } | ReplaceEtcdMembers { .. } | RotateEtcdCa { .. });
        is_of_members || matches!(self, DefragmentEtcd(_) | ChangeEtcdVersion { .. } | RestoreEtcd(_))
    }

    /// The file of its playbook.
    pub fn playbook(&self) -> &'static str {
        match self {
            Operation::Upgrade { .. } => "upgrade.yml",
            Operation::Rollback { .. } => "rollback.yml",
            Operation::RenewCertificates => "certificates.yml",
            Operation::RemoveHost(_) => "remove-host.yml",
            Operation::RemoveEtcdMembers { .. } => "etcd-remove-member.yml",
            Operation::ReplaceEtcdMembers { .. } => "etcd-replace-member.yml",
            Operation::DefragmentEtcd(_) => "etcd-defrag.yml",
            Operation::RotateEtcdCa { .. } => "etcd-rotate-ca.yml",
            Operation::ChangeEtcdVersion { direction: Direction::Up, .. } => "etcd-upgrade.yml",
            Operation::ChangeEtcdVersion { direction: Direction::Down, .. } => "etcd-downgrade.yml",
            Operation::RestoreEtcd(restoration) => restoration.playbook(),
        }
    }

    /// The runs of its playbook, one after the other: what each of them is called, and its variables.
    fn runs(&self) -> Vec<(&'static str, Vars)> {
        let Operation::RotateEtcdCa { keeps_trust, skip } = self else {
            return vec![(self.name(), self.vars())];
        };
        let of_phase = |(phase, name): &(&'static str, &'static str)| {
            let mut vars = skipping(skip);
            vars.insert(variable::ETCD_CA_PHASES.into(), Value::from(vec![*phase]));
            (*name, vars)
        };
        ca_phases(*keeps_trust).iter().map(of_phase).collect()
    }

    /// The variables that its playbook takes; in a dry run all phases.
    fn vars(&self) -> Vars {
        if let Operation::RemoveEtcdMembers { names, skip, .. } | Operation::ReplaceEtcdMembers { names, skip } = self {
            let mut vars = skipping(skip);
            vars.insert(variable::ETCD_REMOVED_MEMBERS.into(), Value::from(names.clone()));
            if matches!(self, Operation::RemoveEtcdMembers { even: true, .. }) {
                vars.insert(variable::ETCD_ALLOW_EVEN.into(), Value::from(true));
            }
            return vars;
        }
        match self {
            Operation::DefragmentEtcd(wanted) => return wanted.defrag_variables(),
            Operation::RotateEtcdCa { keeps_trust, skip } => {
                let mut vars = skipping(skip);
                let phases: Value = ca_phases(*keeps_trust).iter().map(|(phase, _)| *phase).collect();
                vars.insert(variable::ETCD_CA_PHASES.into(), phases);
                return vars;
            }
            Operation::ChangeEtcdVersion { bundle, skip, .. } => {
                let mut vars = skipping(skip);
                let bundle = bundle.iter().map(|bundle| Value::from(bundle.display().to_string()));
                bundle.for_each(|bundle| drop(vars.insert(variable::ETCD_BUNDLE.into(), bundle)));
                return vars;
            }
            Operation::RestoreEtcd(restoration) => return restoration.playbook_variables(),
            _ => {}
        }
        let mut vars = Vars::default();
        let mut set = |name: &str, value: &str| {
            vars.insert(name.into(), Value::from(value));
        };
        match self {
            Operation::Upgrade { component, bundle } => {
                component.iter().for_each(|component| set(variable::COMPONENT, component));
                bundle.iter().for_each(|bundle| set(variable::KARMADA_BUNDLE, &bundle.display().to_string()));
            }
            Operation::Rollback { component } => {
                component.iter().for_each(|component| set(variable::COMPONENT, component))
            }
            Operation::RemoveHost(host) => set(variable::HOST, host),
            _ => {}
        }
        vars
    }
}

/// The phases in which etcd's CA is replaced, and what their runs are called: see `playbooks/etcd-rotate-ca.yml`.
const CA_PHASES: [(&str, &str); 3] =
    [("trust", "etcd rotate-ca: trust"), ("sign", "etcd rotate-ca: sign"), ("drop", "etcd rotate-ca: drop")];

fn ca_phases(keeps_trust: bool) -> &'static [(&'static str, &'static str)] {
    if keeps_trust { &CA_PHASES[..2] } else { &CA_PHASES }
}

/// An operation that was tried out, and can be carried out once that was agreed to.
pub struct PreparedOperation<'s> {
    site: &'s Site,
    pub deployment: Deployment,
    pub operation: Operation,
    /// What it would change. With failures: the operation is refused.
    pub found: Changes,
    /// An earlier operation, or apply, that did not come to its end. See [`PreparedOperation::resumes`].
    pub interrupted: Option<Journal>,
    /// What the hosts were like when it was tried out.
    observed: Observed,
    /// An earlier request has tried it out, and somebody has approved what that found.
    saved: bool,
}

impl<'s> PreparedOperation<'s> {
    /// Tries the operation out. `locks`: it is to be carried out, too, as the request says. None: the caller cancelled it.
    ///
    /// # Errors
    /// The deployment cannot be read, is paused, locked by another run, its hosts' names were exchanged, or another operation did
    /// not come to its end.
    pub async fn make(
        site: &'s Site,
        operation: Operation,
        request: &LockRequest,
        locks: bool,
        control: &Control,
    ) -> Result<Option<PreparedOperation<'s>>, Error> {
        let phase = site.read_inventory().await?;
        let (deployment, interrupted) = Self::begin(&phase, &operation, request, locks, control).await?;
        let Some(observed) = planning::observe(&phase, &deployment, operation.vars(), control).await? else {
            return Ok(None);
        };
        let Some(found) = Self::dry_run(site, &phase, &operation, control).await? else { return Ok(None) };
        Ok(Some(PreparedOperation { site, deployment, operation, found, interrupted, observed, saved: false }))
    }

    /// The deployment, and an operation on it that did not come to its end.
    async fn begin(
        phase: &Phase<'_>,
        operation: &Operation,
        request: &LockRequest,
        locks: bool,
        control: &Control,
    ) -> Result<(Deployment, Option<Journal>), Error> {
        // Otherwise the next operation would not see an interrupted one.
        if !operation.recorded().can_be_read() {
            return Err(Error::InvalidName { command: operation.recorded().to_string() });
        }
        let deployment = phase.deployment(control).await?;
        deployment.refuse_paused()?;
        if operation.is_of_etcd() {
            etcd::refuse_without_hosts(phase)?;
        }
        if locks {
            deployment.refuse_held(request).await?;
        }
        let interrupted = deployment.journal_of_same_hosts().await?.filter(|journal| !journal.done);
        operation.refuse_unfinished(interrupted.as_ref(), request.abandons)?;
        Ok((deployment, interrupted))
    }

    pub fn site(&self) -> &'s Site {
        self.site
    }

    /// Whether there is nothing to carry out.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && !self.resumes() && !self.takes_back()
    }

    /// Whether it takes an interrupted change of etcd's version back. Even if no member was changed yet, its journal is to be closed.
    fn takes_back(&self) -> bool {
        matches!(self.operation, Operation::ChangeEtcdVersion { .. })
            && self
                .interrupted
                .as_ref()
                .is_some_and(|journal| matches!(journal.operation, RecordedOperation::ChangeEtcdVersion(_)))
    }

    /// Whether it is the interrupted one, and so resumes it. Of the same kind, but for another host or component, it is not.
    pub fn resumes(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|journal| self.operation.resumes(journal))
    }

    /// Carries it out.
    ///
    /// # Errors
    /// Its dry run failed; the lock is held; the hosts have changed since then; the run could not continue.
    pub async fn carry_out(&self, request: &LockRequest, control: &Control) -> Result<Outcome, Error> {
        if !self.found.failures.is_empty() {
            return Err(Error::Refused { operation: self.operation.name() });
        }
        let mut lock = self.deployment.lock(request, control).await?;
        let outcome = self.locked(&mut lock, request, control).await;
        lock.release().await;
        outcome
    }

    async fn locked(&self, lock: &mut Lock, request: &LockRequest, control: &Control) -> Result<Outcome, Error> {
        let phase = self.site.read_inventory().await?;
        self.deployment.recheck(&phase, control).await?;
        // Somebody may have come and gone before the lock was taken.
        let newest =
            journal::read_journals(lock.hosts(), &self.deployment.directory, lock.hold().hosts.len()).await.newest();
        let unfinished = newest.filter(|journal| !journal.done);
        self.operation.refuse_unfinished(unfinished.as_ref(), request.abandons)?;
        let keeps_journal = unfinished.is_some_and(|journal| self.operation.keeps_journal(&journal));
        let Some(now) = planning::observe(&phase, &self.deployment, self.operation.vars(), control).await? else {
            return Ok(Outcome::Interrupted);
        };
        let what = moved(&self.observed, &now);
        if !what.is_empty() && !self.same_changes(&phase, &now, control).await? {
            let since = if self.saved { "the plan was saved" } else { "it was tried out" };
            return Err(Error::Moved { since, what });
        }
        let playbook = self.operation.playbook();
        let mut journal =
            Journal::new_journal(self.operation.recorded(), &self.deployment.name, asked(&now).as_deref(), lock);
        let entry = JournalEntry { stage: self.operation.name().into(), playbook: playbook.into(), done: false };
        journal.stages.push(entry);
        if !keeps_journal {
            journal::write_journal(lock, &journal).await.map_err(Error::Journal)?;
        }
        let path = self.site.playbook_path(playbook);
        control.report_progress(Progress::Running(path.clone()));
        let mut outcome = Outcome::Ok;
        for (name, vars) in self.operation.runs() {
            let job = Self::job(self.site, &phase, &self.operation, vars, Some(lock), control).await?;
            outcome = control.run_stage(name, path.clone(), job).await?;
            if outcome != Outcome::Ok {
                break;
            }
        }
        journal.finish_journal(outcome);
        journal.stages.iter_mut().for_each(|entry| entry.done = journal.done);
        if !keeps_journal {
            journal.write_end(outcome, lock, control).await?;
        }
        if outcome == Outcome::Ok {
            // With etcd on it, it is still one of the hosts that hold the lock.
            if let Operation::RemoveHost(host) = &self.operation
                && !Stage::Etcd.hosts(phase.inventory()).iter().any(|other| **other == **host)
            {
                lock.forget_on(host).await;
            }
        }
        Ok(outcome)
    }

    /// Whether the request is the same, and a second dry run finds the same changes. A service that fails and restarts again and
    /// again changes its state between any two looks, and a rollback may be what ends that. What was saved may be old: of it, nothing
    /// but such states may have changed.
    async fn same_changes(&self, phase: &Phase<'_>, now: &Observed, control: &Control) -> Result<bool, Error> {
        let is_saved_and_moved = self.saved && !saved::only_services_moved(&self.observed, now);
        if self.observed.get(ASKED) != now.get(ASKED) || is_saved_and_moved {
            return Ok(false);
        }
        let again = Self::dry_run(self.site, phase, &self.operation, control).await?;
        Ok(again.is_some_and(|again| match self.saved {
            true => saved::ordered(&again) == saved::ordered(&self.found),
            false => again == self.found,
        }))
    }

    /// What the operation would change. None: the caller cancelled it.
    async fn dry_run(
        site: &Site,
        phase: &Phase<'_>,
        operation: &Operation,
        control: &Control,
    ) -> Result<Option<Changes>, Error> {
        let (stage, playbook) = (operation.name(), site.playbook_path(operation.playbook()));
        control.report_progress(Progress::StageStart { stage, playbook: playbook.clone(), check: true });
        control.report_progress(Progress::DryRun(playbook));
        let job = Self::job(site, phase, operation, operation.vars(), None, control).await?;
        let mut found = Changes::default();
        let credentials = job.inventory.credentials.clone();
        let recap = waiting::watch(control, job, |event| found.add_event(event)).await?;
        found.name_credentials(credentials.as_ref());
        let is_whole = recap.is_some() && !control.run.is_stopping();
        let (outcome, changes) = match is_whole {
            true => (found.outcome(), Some(found.changes.len())),
            false => (Outcome::Interrupted, None),
        };
        control.report_progress(Progress::StageEnd { stage, outcome, changes });
        Ok(is_whole.then_some(found))
    }

    /// The playbook as a run: under the lock, or without one in check mode.
    async fn job(
        site: &Site,
        phase: &Phase<'_>,
        operation: &Operation,
        vars: Vars,
        lock: Option<&Lock>,
        control: &Control,
    ) -> Result<crate::engine::Job, Error> {
        let playbook = site.playbook_path(operation.playbook());
        let hold = lock.map(|lock| lock.hold().clone());
        let run = Run { playbook: Some(&playbook), check: lock.is_none(), vars, hold, ..Run::default() };
        phase.job(run, control).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Operation; 11] {
        let component = || Some("scheduler".to_owned());
        [
            Operation::Upgrade { component: component(), bundle: Some("/srv/bundle".into()) },
            Operation::Rollback { component: component() },
            Operation::RenewCertificates,
            Operation::RemoveHost("h4".into()),
            Operation::RemoveEtcdMembers {
                names: vec!["h4".into(), "h5".into()],
                even: true,
                skip: vec!["fsync".into()],
            },
            Operation::ReplaceEtcdMembers { names: vec!["h4".into()], skip: Vec::new() },
            Operation::RestoreEtcd(etcd::restore::tests::restore_of("20261124T043051Z-r164")),
            Operation::DefragmentEtcd(Defragmentation {
                compacts: true,
                unused_percent: Some(10),
                unused_mb: Some(0),
                skip: vec!["fsync".into()],
            }),
            Operation::ChangeEtcdVersion {
                direction: Direction::Up,
                bundle: Some("/srv/etcd".into()),
                skip: vec!["fsync".into()],
            },
            Operation::ChangeEtcdVersion { direction: Direction::Down, bundle: None, skip: Vec::new() },
            Operation::RotateEtcdCa { keeps_trust: false, skip: vec!["fsync".into()] },
        ]
    }

    #[test]
    fn playbooks_and_roles_read_what_an_operation_gives_them() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let readers = [
            ("component", text("roles/karmada_upgrade/defaults/main.yml")),
            (
                "karmada_bundle",
                text("roles/karmada_settings/tasks/query.yml") + &text("roles/karmada_settings/defaults/main.yml"),
            ),
            ("host", text("playbooks/remove-host.yml")),
            ("etcd_removed_members", text("roles/etcd/defaults/main.yml")),
            ("etcd_allow_even", text("roles/etcd/defaults/main.yml")),
            ("etcd_skip_checks", text("roles/etcd/defaults/main.yml")),
            ("etcd_defrag_compact", text("roles/etcd/defaults/main.yml")),
            ("etcd_defrag_unused_percent", text("roles/etcd/defaults/main.yml")),
            ("etcd_defrag_unused_mb", text("roles/etcd/defaults/main.yml")),
            ("etcd_bundle", text("roles/etcd/defaults/main.yml")),
            ("etcd_ca_phases", text("roles/etcd/defaults/main.yml")),
            ("etcd_restore_snapshot", text("roles/etcd/tasks/restore_prepare.yml")),
            ("etcd_restore_backup", text("roles/etcd/vars/restore.yml")),
            ("etcd_restore_id", text("roles/etcd/vars/restore.yml")),
            ("etcd_restore_lost", text("roles/etcd/defaults/main.yml")),
            ("etcd_restore_releases", text("roles/etcd/defaults/main.yml")),
            ("etcd_restore_abandons", text("roles/etcd/defaults/main.yml")),
        ];
        for operation in all() {
            assert!(root.join("playbooks").join(operation.playbook()).is_file(), "{operation:?}");
            for name in operation.vars().keys() {
                let reader = readers.iter().find(|(known, _)| *known == &**name).map(|(_, text)| text);
                assert!(
                    reader.is_some_and(|text| [format!("{{{{ {name} "), format!("{name}:"), format!("{name}.name")]
                        .iter()
                        .any(|way| text.contains(way))),
                    "{name}"
                );
            }
        }
    }

    fn unfinished_journal(operation: &str) -> Journal {
        let text = format!(
            r#"{{"token":7,"apply":"r","deed":"{operation}","deployment":"d","digest":"0","who":"a@b","begun":1,"stages":[],"done":false}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn starting_members_leaves_the_journal_of_an_interrupted_operation() {
        let recover = Operation::RestoreEtcd(Restoration::Recover);
        let upgrade = unfinished_journal("upgrade");
        assert!(recover.refuse_unfinished(Some(&upgrade), false).is_ok() && recover.keeps_journal(&upgrade));
        assert!(!recover.keeps_journal(&unfinished_journal(&recover.recorded().to_string())));
        assert!(!Operation::RenewCertificates.keeps_journal(&unfinished_journal("apply")));
    }

    #[test]
    fn no_other_operation_hides_one_that_did_not_come_to_its_end() {
        let after = |unfinished: &str, next: Operation| {
            next.refuse_unfinished(Some(&unfinished_journal(unfinished)), false).map_err(|error| error.to_string())
        };
        let whole = || Operation::Upgrade { component: None, bundle: None };
        let back = || Operation::Rollback { component: None };
        let [upgrade_one, _, certificates, remove, ..] = all();
        assert!(after("upgrade", whole()).is_ok() && after("upgrade", back()).is_ok());
        assert!(after("upgrade --component webhook", whole()).is_ok() && after("rollback", whole()).is_ok());
        assert!(after("remove-host h4", remove.clone()).is_ok() && after("apply", certificates.clone()).is_ok());
        assert!(after("etcd defrag", certificates.clone()).is_ok(), "it leaves nothing half done");
        let etcd = |direction| Operation::ChangeEtcdVersion { direction, bundle: None, skip: Vec::new() };
        assert!(
            after("etcd upgrade", etcd(Direction::Up)).is_ok() && after("etcd upgrade", etcd(Direction::Down)).is_ok()
        );
        assert!(after("etcd upgrade", whole()).is_err() && after("upgrade", etcd(Direction::Up)).is_err());
        let refused = after("upgrade", upgrade_one).unwrap_err();
        assert!(refused.contains("run windlass upgrade to resume it") && refused.contains("or windlass rollback"));
        assert!(after("upgrade", certificates).is_err() && after("remove-host h3", remove).is_err());
        assert!(after("remove-host h3", whole()).is_err() && after("certificates", back()).is_err());
    }

    #[test]
    fn a_journal_names_the_host_or_component_that_an_operation_is_for() {
        let names: Vec<String> = all().iter().map(|operation| operation.recorded().to_string()).collect();
        assert!(all().iter().zip(&names).all(|(operation, command)| command.starts_with(operation.name())));
        assert_eq!(
            names,
            [
                "upgrade --component scheduler",
                "rollback --component scheduler",
                "certificates",
                "remove-host h4",
                "etcd remove-member h4 h5 --allow-even",
                "etcd replace-member h4",
                "etcd restore 20261124T043051Z-r164",
                "etcd defrag",
                "etcd upgrade",
                "etcd downgrade",
                "etcd rotate-ca",
            ]
        );
    }

    #[test]
    fn each_phase_of_the_replacement_of_a_ca_is_a_run() {
        let phases = |keeps_trust| {
            let runs = Operation::RotateEtcdCa { keeps_trust, skip: vec!["fsync".into()] }.runs();
            let of_run =
                |(name, vars): &(&str, Vars)| format!("{name} {} {}", vars["etcd_ca_phases"], vars["etcd_skip_checks"]);
            runs.iter().map(of_run).collect::<Vec<_>>()
        };
        let run = |phase: &str| format!("etcd rotate-ca: {phase} ['{phase}'] ['fsync']");
        assert_eq!(phases(false), [run("trust"), run("sign"), run("drop")]);
        assert_eq!(phases(true), [run("trust"), run("sign")]);
        assert_eq!(Operation::RenewCertificates.runs().len(), 1);
    }

    #[test]
    fn the_playbook_takes_only_what_was_given() {
        let bare = Operation::Upgrade { component: None, bundle: None };
        assert!(bare.vars().is_empty());
        let names: Vec<String> = all()[0].vars().keys().map(ToString::to_string).collect();
        assert_eq!(names, ["component", "karmada_bundle"]);
    }
}
