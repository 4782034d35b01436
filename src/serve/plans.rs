//! Plans: what a run of `plan` found, and whether it may be applied.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use super::call::Call;
use super::deployments::DeploymentFile;
use super::file_state::FileState;
use super::plan_kinds::{AnyPlan, PlannedWork};
use super::problem::Problem;
use super::{Server, answers, runs};
use crate::runs::{RecordedRun, RunFilter, RunId, timestamp_text};
use crate::value::mutex::Mutex;

/// A host on which an apply of the plan does nothing.
#[derive(Serialize, JsonSchema)]
pub(super) struct LeftOutHost {
    host: String,
    why: WhyLeftOut,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WhyLeftOut {
    /// It did not answer when the plan was made.
    NoAnswer,
}

/// A plan.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub(super) struct PlanAnswer {
    /// The run that made it.
    run: String,
    deployment: String,
    /// What it is for.
    operation: PlannedWork,
    /// Names exactly this plan.
    digest: String,
    made: String,
    by: String,
    /// Objects with `stage`, `state` (same, differs, waits or refused), `hosts` and what was `found`, as in plan files. The plan of another
    /// operation than an apply has one, with the operation's name.
    stages: Vec<Json>,
    /// The members that leave.
    removals: Vec<String>,
    /// The hosts on which nothing would be done.
    left_out: Vec<LeftOutHost>,
    /// Whether it may be applied, by this login if it has the right.
    approvable: bool,
    why_not: Option<String>,
    /// What `windlass plan` printed, or `windlass upgrade --check` and so on.
    text: String,
}

const TOO_LONG: &str = "[what it printed is too long: windlass logs shows all of it]\n";

/// Creates the directory that a plan is to be saved in, and deletes plans in it whose runs are gone.
pub(super) fn prepare_directory(server: &Server, plan: &Path) -> Result<(), Problem> {
    let directory = plan.parent().unwrap_or(plan);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(Problem::internal)?;
    for entry in std::fs::read_dir(directory).map_err(Problem::internal)?.flatten() {
        let path = entry.path();
        let Some(run) = path.file_stem().and_then(|stem| RunId::parse_id(stem.to_str()?)) else { continue };
        let is_gone = server.stores.with_store(|store| store.read_run(run))?.is_none();
        if is_gone && let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!("cannot delete {}: {error}", path.display());
        }
    }
    Ok(())
}

/// The largest plan that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// The plans that people looked at last, as they were read from files that have not changed.
#[derive(Default)]
pub(super) struct Plans(Mutex<VecDeque<(FileState, Arc<ReadPlan>)>>);

struct ReadPlan {
    plan: AnyPlan,
    digest: String,
}

impl Plans {
    const MOST: usize = 4;

    fn find(&self, state: FileState) -> Option<Arc<ReadPlan>> {
        self.0.lock().iter().find(|(of, _)| *of == state).map(|(_, plan)| plan.clone())
    }

    fn keep(&self, state: FileState, plan: &Arc<ReadPlan>) {
        let mut kept = self.0.lock();
        kept.truncate(Self::MOST - 1);
        kept.push_front((state, plan.clone()));
    }
}

/// The plan of a run. None: it made none, or has not ended, or the plan was deleted.
fn read_plan(server: &Server, run: RunId) -> Result<Option<Arc<ReadPlan>>, Problem> {
    let file = match File::open(server.processes.plan_path(run)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Problem::internal)?,
    };
    let state = FileState::from(&file.metadata().map_err(Problem::internal)?);
    if let Some(known) = server.plans.find(state) {
        return Ok(Some(known));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Problem::internal)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
        let detail = format!("the plan has more than {} MiB", LARGEST >> 20);
        return Err(Problem::conflict("PlanTooLarge", detail).with_hint("make and apply the plan in a terminal"));
    }
    let plan = AnyPlan::parse(&bytes)?;
    let read = Arc::new(ReadPlan { digest: plan.digest_of_plan(), plan });
    server.plans.keep(state, &read);
    Ok(Some(read))
}

/// The hosts that a plan leaves out.
fn left_out(plan: &AnyPlan) -> Vec<LeftOutHost> {
    let hosts = plan.reach().into_iter().flat_map(|reach| reach.left_out.iter().chain(&reach.silent_outside));
    hosts.map(|host| LeftOutHost { host: host.clone(), why: WhyLeftOut::NoAnswer }).collect()
}

/// The newest run of a command, if it began after another one. `check`: of its dry runs, or of its others.
fn later_run(
    server: &Server,
    (deployment, command): (&str, &str),
    run: RunId,
    check: Option<bool>,
) -> Result<Option<RecordedRun>, Problem> {
    let filter = RunFilter {
        deployment: Some(deployment.to_owned()),
        command: Some(command.to_owned()),
        check,
        limit: Some(1),
        ..RunFilter::default()
    };
    let found = server.stores.with_store(|store| store.find_runs(&filter))?;
    Ok(found.into_iter().find(|newest| newest.start.id > run))
}

/// Why a plan may not be carried out. None: it may.
fn why_not(server: &Server, run: RunId, plan: &AnyPlan) -> Result<Option<(&'static str, String)>, Problem> {
    if let Some((what, failures)) = plan.why_refused() {
        let reasons = failures.iter().map(|failure| format!("{}: {}", failure.host, failure.message));
        let reasons = reasons.take(3).collect::<Vec<_>>().join("; ");
        let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
        return Ok(Some(("PlanRefused", format!("{what} is refused{reasons}"))));
    }
    if plan.is_empty() {
        return Ok(Some(("NothingToDo", "the plan changes nothing".to_owned())));
    }
    let (command, is_check) = plan.work().planning_command();
    if let Some(later) = later_run(server, (plan.deployment(), command), run, is_check.then_some(true))? {
        let detail = format!("there is a later plan (run {})", later.start.id);
        return Ok(Some(("PlanIsOld", detail)));
    }
    if let Some(later) = later_run(server, (plan.deployment(), "destroy"), run, Some(false))? {
        let detail =
            format!("the deployment was destroyed since it was made, or is being destroyed (run {})", later.start.id);
        return Ok(Some((if later.running { "AlreadyRunning" } else { "PlanIsOld" }, detail)));
    }
    for work in PlannedWork::EVERY {
        let command = work.sub_command();
        if let Some(later) = later_run(server, (plan.deployment(), command), run, Some(false))? {
            let what = match work {
                PlannedWork::Apply => "an apply",
                PlannedWork::Upgrade => "an upgrade",
                PlannedWork::Rollback => "a rollback",
                PlannedWork::Certificates => "a renewal of certificates",
                PlannedWork::EtcdDefrag => "a defragmentation of etcd",
                PlannedWork::EtcdUpgrade => "an upgrade of etcd",
                PlannedWork::EtcdDowngrade => "a downgrade of etcd",
            };
            let id = later.start.id;
            return Ok(Some(match later.running {
                true => ("AlreadyRunning", format!("{what} is under way (run {id})")),
                false => ("PlanIsOld", format!("{what} has begun since it was made (run {id})")),
            }));
        }
    }
    Ok(None)
}

/// The person who made a plan through a server. None: it was made in a terminal.
fn author(user: &str) -> Option<&str> {
    let (by, _) = user.rsplit_once(" by ")?;
    let of_token = by.strip_prefix("token ").and_then(|token| token.split_once(" of "));
    Some(of_token.map_or(by, |(_, account)| account))
}

/// Why this login may not approve a plan that it made itself. None: another made it, or that is allowed.
fn own_plan(server: &Server, user: &str, person: &str) -> Option<&'static str> {
    let is_own = server.author_may_not_approve && author(user) == Some(person);
    is_own.then_some("you made this plan: somebody else must approve it")
}

/// A plan that somebody approves.
pub(super) struct Approval<'a> {
    /// What is to be done.
    pub work: PlannedWork,
    /// The id of the run that made the plan.
    pub plan: &'a str,
    pub digest: &'a str,
    pub removals: &'a BTreeSet<String>,
    pub person: &'a str,
}

/// The path of a plan that may be carried out.
///
/// # Errors
/// It may not, or it is not the plan that was looked at, or its removals are not confirmed.
pub(super) fn approved_plan(
    server: &Server,
    file: &DeploymentFile,
    approval: &Approval<'_>,
) -> Result<String, Problem> {
    let no_plan = || Problem::new(StatusCode::NOT_FOUND, "NoPlan", "there is no such plan of this deployment");
    let run = RunId::parse_id(approval.plan).ok_or_else(no_plan)?;
    let read = read_plan(server, run)?.filter(|read| read.plan.deployment() == file.name).ok_or_else(no_plan)?;
    let plan = &read.plan;
    if plan.work() != approval.work {
        let (made, asked) = (plan.work().sub_command(), approval.work.sub_command());
        let detail = format!("the plan is for the command {made}, not {asked}");
        return Err(Problem::conflict("OtherOperation", detail));
    }
    if read.digest != approval.digest {
        return Err(Problem::conflict("OtherDigest", "the digest is not the one of this plan"));
    }
    // A stored document must not be applied as a person's file that had its name before, or the other way round.
    if plan.sources().iter().any(|source| *source != file.source()) {
        return Err(Problem::conflict("PlanIsOld", "the plan was made from another file").with_hint("make a new plan"));
    }
    if let Some((code, detail)) = why_not(server, run, plan)? {
        let hint = match code {
            "PlanIsOld" => "make a new plan",
            "AlreadyRunning" => "wait until it has ended, and make a new plan",
            _ => "mend what it says, and make a new plan",
        };
        return Err(Problem::conflict(code, detail).with_hint(hint));
    }
    let made = server.stores.with_store(|store| store.read_run(run))?.ok_or_else(no_plan)?;
    if let Some(why) = own_plan(server, &made.start.user, approval.person) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "OwnPlan", why));
    }
    let leaving: BTreeSet<String> = plan.removals().iter().cloned().collect();
    if leaving != *approval.removals {
        let names = plan.removals().join(", ");
        let detail = match names.is_empty() {
            true => "the plan removes no member".to_owned(),
            false => format!("the plan removes {names}: confirm exactly these names"),
        };
        return Err(Problem::conflict("RemovalsNotConfirmed", detail));
    }
    Ok(server.processes.plan_path(run).display().to_string())
}

/// A plan that waits for approval.
pub(super) struct PlanSummary {
    pub operation: String,
    pub digest: String,
    pub removals: Vec<String>,
}

/// The plan of a run, if it waits for approval.
pub(super) fn waiting_plan(server: &Server, run: RunId) -> Result<Option<PlanSummary>, Problem> {
    let Some(read) = read_plan(server, run)? else { return Ok(None) };
    let plan = &read.plan;
    let waits = why_not(server, run, plan)?.is_none();
    let summary = || PlanSummary {
        operation: plan.work().api_name(),
        digest: read.digest.clone(),
        removals: plan.removals().to_vec(),
    };
    Ok(waits.then(summary))
}

pub(super) async fn show_plan(call: Call) -> Result<Response, Problem> {
    let run = call.run_of_path().clone();
    let person = call.login.as_ref().map(|login| login.person().to_owned()).unwrap_or_default();
    let show = move |server: &Server| {
        let id = run.start.id;
        let read = read_plan(server, id)?.filter(|_| !run.running);
        let no_plan = || Problem::new(StatusCode::NOT_FOUND, "NoPlan", "this run has made no plan, or has not ended");
        let read = read.ok_or_else(no_plan)?;
        let plan = &read.plan;
        let own = || own_plan(server, &run.start.user, &person).map(str::to_owned);
        let why_not = why_not(server, id, plan)?.map(|(_, why)| why).or_else(own);
        Ok(PlanAnswer {
            run: id.to_string(),
            digest: read.digest.clone(),
            operation: plan.work(),
            made: timestamp_text(UNIX_EPOCH + Duration::from_secs(plan.made())),
            by: run.start.user.clone(),
            stages: plan.stages(),
            removals: plan.removals().to_vec(),
            left_out: left_out(plan),
            approvable: why_not.is_none(),
            why_not,
            text: runs::printed_text(server, &run)?.unwrap_or_else(|| TOO_LONG.to_owned()),
            deployment: plan.deployment().to_owned(),
        })
    };
    Ok(answers::ok(&call.server.blocking(show).await?))
}
