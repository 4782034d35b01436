//! What a Run asks for, done by the core.

use super::backup::{BackupPlace, back_up, failure, read_place};
use crate::deployment::apply::{Agreement, Answer, Proposal, Question};
use crate::deployment::backups::Manifest;
use crate::deployment::destroy::Removal;
use crate::deployment::etcd::defrag::Defragmentation;
use crate::deployment::etcd::restore::{Restoration, RestoreOptions, unpack_backup};
use crate::deployment::lock;
use crate::deployment::operation::{Direction, Operation, PreparedOperation};
use crate::deployment::plan::{Plan, PlanRequest, asked};
use crate::deployment::recorded_operation::RecordedOperation;
use crate::deployment::{Control, Error, LockRequest, Outcome, Site};
use crate::kubernetes::Cluster;
use crate::resource::status::short_message;
use crate::resource::{AgreedPlan, RunBackup, RunOperation, RunSpec};

/// The reason of a run that finds an earlier process of its own at work on the hosts, although the API has not heard of that one for
/// some time.
pub const LOCKED_BY_ITSELF: &str = "LockHeldByItself";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    pub outcome: Outcome,
    /// One word for programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// A line each.
    pub failures: Vec<String>,
    /// The backup that it took.
    pub backup: Option<RunBackup>,
}

impl RunResult {
    /// Nothing was changed.
    pub fn refused(reason: &'static str, message: impl Into<String>) -> RunResult {
        let message = short_message(&message.into());
        RunResult { outcome: Outcome::Refused, reason, message, failures: Vec::new(), backup: None }
    }

    /// It could not continue.
    pub fn of_error(error: &Error) -> RunResult {
        let text = format!("{:#}", ErrorChain(error));
        let reason = match error {
            Error::Lock(_) => "LockHeld",
            Error::Paused { .. } => "Paused",
            Error::Moved { .. } | Error::SpecChanged { .. } | Error::UnplannedRemovals { .. } => "PlanChanged",
            Error::Unfinished { .. } => "OtherOperationUnfinished",
            _ => "Error",
        };
        RunResult::refused(reason, text)
    }

    pub(super) fn of_outcome(outcome: Outcome, done: &str) -> RunResult {
        let (reason, message) = match outcome {
            Outcome::Ok => ("Succeeded", done.to_owned()),
            Outcome::Refused => ("Refused", "a check refused it; nothing was changed".to_owned()),
            Outcome::Failed => ("TaskFailed", "a task failed on a host".to_owned()),
            Outcome::Unreachable => ("HostsUnreachable", "a host could not be reached".to_owned()),
            Outcome::Interrupted => ("Stopped", "it was stopped; another run resumes it".to_owned()),
        };
        RunResult { outcome, reason, message, failures: Vec::new(), backup: None }
    }
}

/// An error with its causes, one line.
struct ErrorChain<'a>(&'a Error);

impl std::fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.0.to_string();
        let mut source = std::error::Error::source(self.0);
        while let Some(cause) = source {
            let words = cause.to_string();
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
            source = cause.source();
        }
        f.write_str(&text)
    }
}

/// A Run that is to be done.
pub struct RunWork<'a, Agree> {
    /// Of the Run, for the lock.
    pub name: &'a str,
    pub spec: &'a RunSpec,
    /// The API with the Run, and its namespace.
    pub cluster: &'a Cluster,
    pub namespace: &'a str,
    /// What an earlier process has begun to apply.
    pub agreed: Option<&'a AgreedPlan>,
    /// When the Run was created, in seconds since 1970.
    pub created: u64,
    /// Keeps what this process is about to apply, before anything is changed.
    pub agree: Agree,
}

/// Does it.
///
/// # Errors
/// It could not be begun, or could not continue.
pub async fn carry_out_run<Agree>(site: &Site, work: RunWork<'_, Agree>, control: &Control) -> Result<RunResult, Error>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    let (name, spec) = (work.name, work.spec);
    let command = format!("windlass {} (the run {name})", spec.operation.command());
    let request = LockRequest { command, breaks: false, abandons: false };
    match operate(site, work, &request, control).await {
        Err(Error::Lock(lock::Error::Held(holder))) if holder.record.command == request.command => {
            let message = format!("{} still runs it on the hosts", holder.record.holder);
            Ok(RunResult::refused(LOCKED_BY_ITSELF, message))
        }
        done => done,
    }
}

async fn operate<Agree>(
    site: &Site,
    work: RunWork<'_, Agree>,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    let spec = work.spec;
    match spec.operation {
        RunOperation::Apply => apply(site, work, request, control).await,
        RunOperation::Upgrade => {
            operation(site, work, Operation::Upgrade { component: None, bundle: None }, request, control).await
        }
        RunOperation::Rollback => {
            operation(site, work, Operation::Rollback { component: None }, request, control).await
        }
        RunOperation::RenewCertificates => operation(site, work, Operation::RenewCertificates, request, control).await,
        RunOperation::UpgradeEtcd => operation(site, work, etcd_version(Direction::Up), request, control).await,
        RunOperation::DowngradeEtcd => operation(site, work, etcd_version(Direction::Down), request, control).await,
        RunOperation::DefragmentEtcd => {
            operation(site, work, Operation::DefragmentEtcd(Defragmentation::default()), request, control).await
        }
        RunOperation::Backup => back_up(site, work.cluster, work.namespace, spec, control).await,
        RunOperation::Restore => restore(site, work, request, control).await,
        RunOperation::UndoRestore => {
            operation(site, work, Operation::RestoreEtcd(Restoration::Undo), request, control).await
        }
        RunOperation::ReleaseRestore => {
            operation(site, work, Operation::RestoreEtcd(Restoration::Release), request, control).await
        }
        RunOperation::Destroy => {
            let removal = Removal::prepare(site, control).await?;
            if let Err(why) = agree_to_operation(&work, None, control).await {
                return Ok(not_agreed(&why));
            }
            let name = spec.confirm.as_deref().unwrap_or_default();
            let outcome = removal.carry_out(name, request, control).await?;
            Ok(RunResult::of_outcome(outcome, "nothing is left of the deployment on its hosts"))
        }
    }
}

/// To the version in the bundle that the deployment names.
fn etcd_version(direction: Direction) -> Operation {
    Operation::ChangeEtcdVersion { direction, bundle: None, skip: Vec::new() }
}

async fn apply<Agree>(
    site: &Site,
    work: RunWork<'_, Agree>,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    let Some(proposal) = Proposal::make(site, None, PlanRequest::default(), request, control).await? else {
        return Ok(RunResult::of_outcome(Outcome::Interrupted, ""));
    };
    let plan = &proposal.plan;
    let journal = proposal.interrupted.as_ref().filter(|journal| journal.is_apply());
    let journal = journal.map(|journal| (journal.apply.as_str(), journal.digest.as_str()));
    let removals = match permitted(work.spec, work.agreed, plan, journal) {
        Ok(removals) => removals,
        Err(refused) => return Ok(refused),
    };
    let agreed = AgreedPlan {
        asked: asked(&plan.observed),
        removals: removals.clone(),
        snapshot: None,
        records: records(work.agreed, control),
    };
    if let Err(why) = (work.agree)(agreed).await {
        return Ok(not_agreed(&why));
    }
    let removals = removals.len();
    match proposal.apply(Agreement { plan: true, removals }, request, control).await? {
        Answer::Nothing => Ok(RunResult::of_outcome(plan.outcome(), "there was nothing to do")),
        Answer::Refused(stage) => {
            let found = plan.refused().map(|planned| &planned.found.failures);
            let failures = found.into_iter().flatten();
            let failures: Vec<String> = failures
                .map(|failure| {
                    let line = format!("{}: {}: {}", failure.host, failure.task, failure.message);
                    short_message(&site.keyring.hidden.hide(&line))
                })
                .take(20)
                .collect();
            let message = format!("stage {} is refused, so nothing was changed", stage.name());
            Ok(RunResult { failures, ..RunResult::refused("Refused", message) })
        }
        Answer::Asks(questions) => {
            let members = questions.into_iter().find_map(|question| match question {
                Question::Remove(members) => Some(members),
                Question::Apply => None,
            });
            let members = members.unwrap_or_default().join(", ");
            let message = format!(
                "it would remove the members {members}: a Run must name the digest of that plan in planDigest; nothing was changed"
            );
            Ok(RunResult::refused("RemovalsNotApproved", message))
        }
        Answer::Done(outcome) => Ok(RunResult::of_outcome(outcome, "the hosts are as the spec says")),
    }
}

/// The processes of this run that may have changed something: those before this one, and this one.
fn records(agreed: Option<&AgreedPlan>, control: &Control) -> Vec<String> {
    let before = agreed.map(|agreed| agreed.records.clone()).unwrap_or_default();
    before.into_iter().chain([control.id.to_string()]).collect()
}

fn not_agreed(why: &str) -> RunResult {
    RunResult::refused("Error", format!("cannot write what is about to be done, so nothing was changed: {why}"))
}

/// The members that may leave, if the plan may be applied: it is the one that the Run names, or what is left of it.
///
/// `journal`: of an apply that did not come to its end, its id and the digest of what was asked for.
fn permitted(
    spec: &RunSpec,
    agreed: Option<&AgreedPlan>,
    plan: &Plan,
    journal: Option<(&str, &str)>,
) -> Result<Vec<String>, RunResult> {
    let Some(named) = &spec.plan_digest else { return Ok(Vec::new()) };
    let digest = plan.digest();
    if *named == digest {
        return Ok(plan.removals().to_vec());
    }
    // What an earlier process of this run has done is not in the plan any more. Its journal says that it was this run, and that
    // the request is the same.
    let asked = asked(&plan.observed);
    let resumed = agreed.filter(|agreed| {
        asked.is_some()
            && asked == agreed.asked
            && (plan.is_empty()
                || journal.is_some_and(|(record, digest)| {
                    Some(digest) == agreed.asked.as_deref() && agreed.records.iter().any(|it| it == record)
                }))
    });
    let Some(agreed) = resumed else {
        let now = if plan.is_empty() { "there is nothing to do now".to_owned() } else { format!("it is {digest} now") };
        // An earlier process of this run may have begun: what it did is still there.
        let done =
            if agreed.is_some() { "what this run did before it was interrupted stays" } else { "nothing was changed" };
        let message = format!("the plan {named} has become another one: {now}; {done}");
        return Err(RunResult::refused("PlanChanged", message));
    };
    let more: Vec<&str> =
        plan.removals().iter().filter(|name| !agreed.removals.contains(name)).map(String::as_str).collect();
    if !more.is_empty() {
        let message = format!("the plan was approved without the removal of {}", more.join(", "));
        return Err(RunResult::refused("RemovalsNotApproved", message));
    }
    Ok(agreed.removals.clone())
}

/// Keeps that hosts are about to be changed: from now on the run is resumed, if this process ends in the middle, at any time.
/// `snapshot`: the backup that is restored.
async fn agree_to_operation<Agree>(
    work: &RunWork<'_, Agree>,
    snapshot: Option<String>,
    control: &Control,
) -> Result<(), String>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    (work.agree)(AgreedPlan { records: records(work.agreed, control), snapshot, ..AgreedPlan::default() }).await
}

/// Restores a backup of the place that an `EtcdBackup` names: the one that the Run names, or the newest from before the Run was created. A
/// process that resumes the Run takes the same.
async fn restore<Agree>(
    site: &Site,
    work: RunWork<'_, Agree>,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    let refused = |why: String| Ok(RunResult::refused("RestoreRefused", site.keyring.hidden.hide(&why)));
    let BackupPlace { store, scratch, identities, .. } =
        match read_place(site, work.cluster, work.namespace, work.spec).await {
            Ok(place) => place,
            Err(why) => return refused(why),
        };
    let named = work.agreed.and_then(|agreed| agreed.snapshot.clone()).or_else(|| work.spec.snapshot.clone());
    let name = match named {
        Some(name) => name,
        None => match store.list().await {
            Ok(backups) => {
                // While the Run waited, others may have backed up what is to be replaced.
                let is_earlier = |manifest: &Manifest| manifest.taken <= work.created;
                match backups.into_iter().find(|backup| backup.manifest.as_ref().is_ok_and(is_earlier)) {
                    Some(newest) => newest.name,
                    None => {
                        let place = store.place().display().to_string();
                        return refused(format!("{place} has no backup from before this Run was created"));
                    }
                }
            }
            Err(why) => return refused(failure(&why)),
        },
    };
    let downloaded = match store.fetch_backup(&name, &scratch).await {
        Ok(downloaded) => downloaded,
        Err(why) => return refused(failure(&why)),
    };
    let options = RestoreOptions::default();
    let unpacked = match unpack_backup(site, &downloaded.path, &scratch, &identities, options, control).await {
        Err(Error::Backup(why)) => return refused(failure(&downloaded.with_address(why))),
        unpacked => unpacked?,
    };
    let result = operation(site, work, unpacked.operation.clone(), request, control).await?;
    if result.outcome != Outcome::Ok {
        return Ok(result);
    }
    let message = format!(
        "etcd has the data of {name}, and the controllers wait: look at the data, then release or undo it by a Run with the operation \
         ReleaseRestore or UndoRestore"
    );
    Ok(RunResult { message: short_message(&message), ..result })
}

async fn operation<Agree>(
    site: &Site,
    work: RunWork<'_, Agree>,
    operation: Operation,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error>
where
    Agree: AsyncFn(AgreedPlan) -> Result<(), String>,
{
    let snapshot = match operation.recorded() {
        RecordedOperation::RestoreEtcd { backup } => Some(backup),
        _ => None,
    };
    let Some(prepared) = PreparedOperation::make(site, operation, request, true, control).await? else {
        return Ok(RunResult::of_outcome(Outcome::Interrupted, ""));
    };
    if !prepared.found.failures.is_empty() {
        let hide = |line: String| short_message(&site.keyring.hidden.hide(&line));
        let failures = prepared.found.failures.iter().take(20);
        let failures =
            failures.map(|failure| hide(format!("{}: {}: {}", failure.host, failure.task, failure.message))).collect();
        return Ok(RunResult { failures, ..RunResult::refused("Refused", "its dry run failed; nothing was changed") });
    }
    if prepared.is_empty() {
        return Ok(RunResult::of_outcome(Outcome::Ok, "there was nothing to do"));
    }
    if let Err(why) = agree_to_operation(&work, snapshot, control).await {
        return Ok(not_agreed(&why));
    }
    Ok(RunResult::of_outcome(prepared.carry_out(request, control).await?, "it was carried out on all hosts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::changes::{ChangeKind, Changes, PlannedChange};
    use crate::deployment::plan::{ASKED, LAYOUT, PlannedStage, StageState, TargetHosts};
    use crate::deployment::stage::Stage;

    /// A plan that changes these files and removes these members.
    fn plan(request: &str, files: &[&str], removals: &[&str]) -> Plan {
        let change = |what: &&str| PlannedChange {
            host: "h1".into(),
            kind: ChangeKind::File,
            what: (*what).to_owned(),
            task: "t".into(),
            diff: String::new(),
        };
        let stage = |stage, names: &[&str], changes: Vec<PlannedChange>| PlannedStage {
            stage,
            state: if changes.is_empty() { StageState::Same } else { StageState::Differs },
            hosts: names.iter().map(ToString::to_string).collect(),
            found: Changes { changes, ..Changes::default() },
        };
        Plan {
            windlass_plan: LAYOUT,
            deployment: "d".into(),
            made: 1,
            by: "a@b".into(),
            sources: Vec::new(),
            reach: TargetHosts::default(),
            stages: vec![
                stage(Stage::Etcd, &["h1"], files.iter().map(change).collect()),
                stage(Stage::Removals, removals, removals.iter().map(change).collect()),
            ],
            observed: [(ASKED.to_owned(), [("resource d".to_owned(), request.to_owned())].into())].into(),
        }
    }

    fn spec(digest: Option<String>) -> RunSpec {
        RunSpec { plan_digest: digest, ..RunSpec::of_operation("d", RunOperation::Apply) }
    }

    #[test]
    fn a_run_applies_the_plan_that_it_names_and_no_other() {
        let named = plan("1", &["/a", "/b"], &["m1"]);
        let run = spec(Some(named.digest()));
        assert_eq!(permitted(&run, None, &named, None).unwrap(), ["m1"]);
        let other = plan("1", &["/a"], &["m1"]);
        assert_eq!(permitted(&run, None, &other, None).unwrap_err().reason, "PlanChanged");
        // Without a digest, no member leaves.
        assert!(permitted(&spec(None), None, &named, None).unwrap().is_empty());
    }

    #[test]
    fn what_is_left_of_a_plan_is_applied_by_the_run_that_has_begun_it_alone() {
        let run = spec(Some(plan("1", &["/a", "/b"], &[]).digest()));
        let left = plan("1", &["/b"], &[]);
        let request = asked(&left.observed).unwrap();
        let agreed = AgreedPlan {
            asked: Some(request.clone()),
            removals: Vec::new(),
            snapshot: None,
            // The second process was killed before it wrote a journal.
            records: vec!["r1".into(), "r2".into()],
        };
        let own = Some(("r1", request.as_str()));
        assert!(permitted(&run, Some(&agreed), &left, own).is_ok());
        assert!(permitted(&run, Some(&agreed), &plan("1", &[], &[]), None).is_ok());
        for (agreed, plan, journal) in [
            // No process of this run came so far as to apply anything.
            (None, left.clone(), own),
            // The journal is of another run, or of another request.
            (Some(&agreed), left.clone(), Some(("r0", request.as_str()))),
            (Some(&agreed), left.clone(), Some(("r1", "other"))),
            (Some(&agreed), left, None),
            // The request has changed.
            (Some(&agreed), plan("2", &["/b"], &[]), own),
        ] {
            assert_eq!(permitted(&run, agreed, &plan, journal).unwrap_err().reason, "PlanChanged");
        }
        // A member that nobody has agreed to lose.
        let more = plan("1", &["/b"], &["m1"]);
        assert_eq!(permitted(&run, Some(&agreed), &more, own).unwrap_err().reason, "RemovalsNotApproved");
    }
}
