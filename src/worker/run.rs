//! What a Run asks for, done by the core.

use crate::deployment::apply::{Agreement, Answer, Proposal, Question};
use crate::deployment::destroy::Removal;
use crate::deployment::operation::{Operation, PreparedOperation};
use crate::deployment::plan::asked;
use crate::deployment::{Control, Error, LockRequest, Outcome, Site};
use crate::resource::status::short_message;
use crate::resource::{RunOperation, RunSpec};

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
}

impl RunResult {
    /// Nothing was changed.
    pub fn refused(reason: &'static str, message: impl Into<String>) -> RunResult {
        RunResult { outcome: Outcome::Refused, reason, message: short_message(&message.into()), failures: Vec::new() }
    }

    /// It could not continue.
    pub fn of_error(error: &Error) -> RunResult {
        let text = format!("{:#}", ErrorChain(error));
        let reason = match error {
            Error::Lock(_) => "LockHeld",
            Error::Paused { .. } => "Paused",
            Error::Moved { .. } | Error::UnplannedRemovals { .. } => "PlanChanged",
            Error::Unfinished { .. } => "OtherOperationUnfinished",
            _ => "Error",
        };
        RunResult::refused(reason, text)
    }

    fn ended(outcome: Outcome, done: &str) -> RunResult {
        let (reason, message) = match outcome {
            Outcome::Ok => ("Succeeded", done.to_owned()),
            Outcome::Refused => ("Refused", "a check refused it; nothing was changed".to_owned()),
            Outcome::Failed => ("TaskFailed", "a task failed on a host".to_owned()),
            Outcome::Unreachable => ("HostsUnreachable", "a host could not be reached".to_owned()),
            Outcome::Interrupted => ("Stopped", "it was stopped; another run resumes it".to_owned()),
        };
        RunResult { outcome, reason, message, failures: Vec::new() }
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

/// Does it. `name`: of the Run, for the lock; `again`: an earlier process has begun it.
///
/// # Errors
/// It could not be begun, or could not continue.
pub async fn carry_out_run(
    site: &Site,
    (name, spec): (&str, &RunSpec),
    again: bool,
    control: &Control,
) -> Result<RunResult, Error> {
    let command = format!("windlass {} (the run {name})", spec.operation.command());
    let request = LockRequest { command, breaks: false, abandons: false };
    match spec.operation {
        RunOperation::Apply => apply(site, spec, again, &request, control).await,
        RunOperation::Upgrade => {
            operation(site, Operation::Upgrade { component: None, bundle: None }, &request, control).await
        }
        RunOperation::Rollback => operation(site, Operation::Rollback { component: None }, &request, control).await,
        RunOperation::RenewCertificates => operation(site, Operation::RenewCertificates, &request, control).await,
        RunOperation::Destroy => {
            let removal = Removal::prepare(site, control).await?;
            let name = spec.confirm.as_deref().unwrap_or_default();
            let outcome = removal.carry_out(name, &request, control).await?;
            Ok(RunResult::ended(outcome, "nothing is left of the deployment on its hosts"))
        }
    }
}

async fn apply(
    site: &Site,
    spec: &RunSpec,
    again: bool,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error> {
    let Some(proposal) = Proposal::make(site, None, None, request, control).await? else {
        return Ok(RunResult::ended(Outcome::Interrupted, ""));
    };
    let plan = &proposal.plan;
    // What an earlier process of this run has done is not in the plan any more. Its journal says that the request is the same.
    let resumes = again
        && (plan.is_empty()
            || proposal.interrupted.as_ref().is_some_and(|journal| {
                journal.is_apply() && asked(&plan.observed).is_some_and(|asked| asked == journal.digest)
            }));
    if let Some(agreed) = &spec.plan_digest {
        let digest = plan.digest();
        if *agreed != digest && !resumes {
            let now =
                if plan.is_empty() { "there is nothing to do now".to_owned() } else { format!("it is {digest} now") };
            let message = format!("the plan {agreed} has become another one: {now}; nothing was changed");
            return Ok(RunResult::refused("PlanChanged", message));
        }
    }
    let removals = if spec.plan_digest.is_some() { plan.removals().len() } else { 0 };
    match proposal.apply(Agreement { plan: true, removals }, request, control).await? {
        Answer::Nothing => Ok(RunResult::ended(plan.outcome(), "there was nothing to do")),
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
        Answer::Done(outcome) => Ok(RunResult::ended(outcome, "the hosts are as the spec says")),
    }
}

async fn operation(
    site: &Site,
    operation: Operation,
    request: &LockRequest,
    control: &Control,
) -> Result<RunResult, Error> {
    let Some(prepared) = PreparedOperation::make(site, operation, request, true, control).await? else {
        return Ok(RunResult::ended(Outcome::Interrupted, ""));
    };
    if !prepared.found.failures.is_empty() {
        let hide = |line: String| short_message(&site.keyring.hidden.hide(&line));
        let failures = prepared.found.failures.iter().take(20);
        let failures =
            failures.map(|failure| hide(format!("{}: {}: {}", failure.host, failure.task, failure.message))).collect();
        return Ok(RunResult { failures, ..RunResult::refused("Refused", "its dry run failed; nothing was changed") });
    }
    if prepared.is_empty() {
        return Ok(RunResult::ended(Outcome::Ok, "there was nothing to do"));
    }
    Ok(RunResult::ended(prepared.carry_out(request, control).await?, "it was carried out on all hosts"))
}
