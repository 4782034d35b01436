//! Runs: the list, one of them, its events and its log; starting and stopping.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Server;
use super::access::{Login, sha256_hex};
use super::answers::{self, List};
use super::backup_directory::backups_of;
use super::call::{API, Call};
use super::deployments::{DeploymentFile, usable_deployment};
use super::follow::{self, EventFilter};
use super::plan_kinds::PlannedWork;
use super::plans::{self, Approval};
use super::problem::Problem;
use super::processes::StartedCommand;
use super::rights::Right;
use crate::report::{Colour, DisplayOptions, Replay};
use crate::runs::{RecordedRun, RunFilter, RunId};
use crate::value::ProcessEnvironment;
use crate::value::mutex::Mutex;

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StartRun {
    /// Look at the hosts. Needs the right plan.
    Status {},
    /// Check whether etcd may be changed, and print a table: `windlass etcd check`. Needs the right plan.
    EtcdCheck {},
    /// Compare the data of etcd's members, and print a table: `windlass etcd verify`. Needs the right plan.
    EtcdVerify {},
    /// Find out what an apply, or another operation, would change. Needs the right plan.
    Plan {
        #[serde(default)]
        operation: PlannedWork,
    },
    /// Apply a plan. Needs the right approve.
    Apply {
        /// The id of the run that made the plan.
        plan: String,
        /// The digest of the plan that was looked at.
        digest: String,
        /// The names of the members that the plan removes, as the person typed them.
        #[serde(default)]
        removals: BTreeSet<String>,
    },
    /// Carry out the plan of an upgrade. Needs the right approve.
    Upgrade { plan: String, digest: String },
    /// Carry out the plan of a rollback. Needs the right approve.
    Rollback { plan: String, digest: String },
    /// Carry out the plan of a renewal of certificates. Needs the right approve.
    Certificates { plan: String, digest: String },
    /// Carry out the plan of a defragmentation of etcd. Needs the right approve.
    EtcdDefrag { plan: String, digest: String },
    /// Carry out the plan of an upgrade of etcd. Needs the right approve.
    EtcdUpgrade { plan: String, digest: String },
    /// Carry out the plan of a downgrade of etcd. Needs the right approve.
    EtcdDowngrade { plan: String, digest: String },
    /// Take a backup of etcd, in the server's directory of backups. Needs the right approve.
    EtcdBackup {},
    /// Remove the deployment from its hosts: members, the control plane, etcd and all data in it. Needs the right destroy, and a session that
    /// began in the last 15 minutes, or a token. Backups and the document stay.
    Destroy {
        /// The name of the deployment, as the person typed it.
        confirm: String,
        /// SHA-256 of the document that the person saw, which names the hosts: its ETag without the quotes.
        document: String,
    },
}

impl StartRun {
    /// The plan that it carries out.
    fn approval<'a>(&'a self, person: &'a str) -> Option<Approval<'a>> {
        static NO_REMOVALS: BTreeSet<String> = BTreeSet::new();
        let (work, plan, digest, removals) = match self {
            StartRun::Status {}
            | StartRun::EtcdCheck {}
            | StartRun::EtcdVerify {}
            | StartRun::Plan { .. }
            | StartRun::EtcdBackup {}
            | StartRun::Destroy { .. } => return None,
            StartRun::Apply { plan, digest, removals } => (PlannedWork::Apply, plan, digest, removals),
            StartRun::Upgrade { plan, digest } => (PlannedWork::Upgrade, plan, digest, &NO_REMOVALS),
            StartRun::Rollback { plan, digest } => (PlannedWork::Rollback, plan, digest, &NO_REMOVALS),
            StartRun::Certificates { plan, digest } => (PlannedWork::Certificates, plan, digest, &NO_REMOVALS),
            StartRun::EtcdDefrag { plan, digest } => (PlannedWork::EtcdDefrag, plan, digest, &NO_REMOVALS),
            StartRun::EtcdUpgrade { plan, digest } => (PlannedWork::EtcdUpgrade, plan, digest, &NO_REMOVALS),
            StartRun::EtcdDowngrade { plan, digest } => (PlannedWork::EtcdDowngrade, plan, digest, &NO_REMOVALS),
        };
        Some(Approval { work, plan, digest, removals, person })
    }

    /// The right that it needs, and what the audit log says.
    fn needs(&self) -> (Right, String) {
        match (self, self.approval("")) {
            (_, Some(approval)) => {
                (Right::Approve, format!("{} of the plan {}", approval.work.sub_command(), approval.plan))
            }
            (StartRun::Plan { operation: PlannedWork::Apply }, None) => (Right::Plan, "plan".to_owned()),
            (StartRun::Plan { operation }, None) => (Right::Plan, format!("plan of {}", operation.sub_command())),
            // With a limit for how many are kept, a new one is the end of an old one.
            (StartRun::EtcdBackup {}, None) => (Right::Approve, "etcd backup".to_owned()),
            (StartRun::Destroy { .. }, None) => (Right::Destroy, "destroy".to_owned()),
            (StartRun::EtcdCheck {}, None) => (Right::Plan, "etcd check".to_owned()),
            (StartRun::EtcdVerify {}, None) => (Right::Plan, "etcd verify".to_owned()),
            (_, None) => (Right::Plan, "status".to_owned()),
        }
    }
}

/// A part of the events of a run.
#[derive(Serialize, JsonSchema)]
pub(super) struct EventList {
    items: Vec<Json>,
    /// For the next part: the value of `after`. Null: there are no more by now.
    next: Option<String>,
}

/// How many events a list has at most.
const MOST_EVENTS: usize = 500;

/// The longest log that is shown, in bytes.
const LONGEST_LOG: usize = 16 << 20;

/// The runs of a deployment that are under way.
pub(super) fn running_runs(server: &Server, deployment: &str) -> Result<Vec<RecordedRun>, Problem> {
    let filter = RunFilter { deployment: Some(deployment.to_owned()), open: true, ..RunFilter::default() };
    let runs = server.stores.with_store(|store| store.find_runs(&filter))?;
    Ok(runs.into_iter().filter(|run| run.running).collect())
}

/// The longest text that a run printed and that is shown or read, in bytes.
const LONGEST_PRINTED: usize = 4 << 20;

/// What a run printed to standard output. None: it is too long.
pub(super) fn printed_text(server: &Server, run: &RecordedRun) -> Result<Option<String>, Problem> {
    let (mut printed, mut is_whole) = (String::new(), true);
    follow::until_event(server, run.start.id, |line| {
        // Most events are of other kinds.
        if !line.contains("\"event\":\"message\"") {
            return true;
        }
        is_whole = printed.len() + line.len() <= LONGEST_PRINTED;
        if is_whole
            && let Ok(event) = serde_json::from_str::<Json>(line)
            && event["event"] == "message"
            && event["stream"] == "stdout"
        {
            printed.push_str(event["text"].as_str().unwrap_or_default());
            if !printed.ends_with('\n') {
                printed.push('\n');
            }
        }
        is_whole
    })?;
    Ok(is_whole.then_some(printed))
}

pub(super) async fn list_runs(call: Call) -> Result<Response, Problem> {
    let limit = call.limit()?;
    let mut before = match call.query.get("after") {
        None => None,
        Some(text) => Some(RunId::parse_id(text).ok_or_else(|| Problem::bad_request("after is not the id of a run"))?),
    };
    let (deployment, command) = (call.query.get("deployment").cloned(), call.query.get("command").cloned());
    let rights = call.login.map(|login| login.rights).unwrap_or_default();
    let list = move |server: &Server| {
        let mut items: Vec<RecordedRun> = Vec::new();
        // Runs of other deployments are passed over, so that a part may need several looks.
        loop {
            let filter = RunFilter {
                deployment: deployment.clone(),
                command: command.clone(),
                before,
                limit: Some(200),
                ..RunFilter::default()
            };
            let found = server.stores.with_store(|store| store.find_runs(&filter))?;
            before = found.last().map(|run| run.start.id);
            let is_last = found.len() < 200;
            items.extend(found.into_iter().filter(|run| rights.include(Right::See, run.summary.deployment.as_deref())));
            if is_last || items.len() > limit {
                break;
            }
        }
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|run| run.start.id.to_string());
        Ok(List { items, next })
    };
    Ok(answers::ok(&call.server.blocking(list).await?))
}

pub(super) async fn show_run(call: Call) -> Result<Response, Problem> {
    Ok(answers::ok(call.run_of_path()))
}

pub(super) async fn start_run(call: Call) -> Result<Response, Problem> {
    let start: StartRun = call.body_as()?;
    let deployment = call.part("deployment").to_owned();
    let (right, detail) = start.needs();
    call.check_right(right)?;
    call.note.lock().detail = detail;
    if matches!(start, StartRun::Destroy { .. }) {
        check_fresh_login(call.login.as_ref().and_then(Login::session_began), SystemTime::now())?;
    }
    let by = call.login.as_ref().map_or_else(String::new, |login| login.name.clone());
    let person = call.login.as_ref().map(|login| login.person().to_owned()).unwrap_or_default();
    let id = RunId::new_at(SystemTime::now());
    if let Some(key) = call.headers.get("idempotency-key") {
        let key = key.to_str().map_err(|_| Problem::bad_request("Idempotency-Key must be ASCII"))?;
        if let Some(earlier) = call.server.repeats.earlier_run((&by, key), &deployment, &call.body, id)? {
            return run_answer(&begun_run(&call.server, earlier).await?, &deployment);
        }
    }
    let server = call.server.clone();
    let begin = move |server: &Server| {
        let file = usable_deployment(server, &deployment)?;
        let approval = start.approval(&person);
        let arguments = arguments(server, &file, &start, approval.as_ref(), id)?;
        let changes = approval.is_some() || matches!(start, StartRun::EtcdBackup {} | StartRun::Destroy { .. });
        // Only a stored document gets secrets: those of a person's file are where the file says.
        let handed = match file.stored {
            true => Some(server.credentials.handed_credentials(&deployment)?),
            false => None,
        };
        let (deployment, by, person) = (deployment.as_str(), by.as_str(), person.as_str());
        let command = StartedCommand { deployment, by, person, arguments: &arguments, changes, handed };
        server.processes.start_command(&server.stores, id, &command)
    };
    let begun = server.blocking(begin).await.inspect_err(|_| server.repeats.forget(id))?;
    call.note.lock().detail.push_str(&format!(", run {id}"));
    run_answer(&begun, call.part("deployment"))
}

/// The command of a run, without what is the same for all.
fn arguments(
    server: &Server,
    file: &DeploymentFile,
    start: &StartRun,
    approval: Option<&Approval<'_>>,
    id: RunId,
) -> Result<Vec<String>, Problem> {
    let file_option = ["-f".to_owned(), file.source()];
    let words = |words: &[&str]| words.iter().map(ToString::to_string).chain(file_option).collect::<Vec<_>>();
    match (start, approval) {
        (_, Some(approval)) => {
            let approved = plans::approved_plan(server, file, approval)?;
            refuse_others(server, &file.name)?;
            Ok(approval.work.carrying_out(approval.removals.len(), approved))
        }
        (StartRun::EtcdBackup {}, None) => {
            let directory = backups_of(server, &file.name)?.display().to_string();
            refuse_others(server, &file.name)?;
            let keep = server.keep_backups.map(|keep| format!("--keep={keep}"));
            let recipients = server.backup_recipients.as_ref();
            let recipients = recipients.map(|file| format!("--recipients-file={}", file.display()));
            Ok(words(&["etcd", "backup", &directory]).into_iter().chain(keep).chain(recipients).collect())
        }
        (StartRun::Plan { operation }, None) => {
            plans::prepare_directory(server, &server.processes.plan_path(id))?;
            let out = ["--out".to_owned(), server.processes.plan_path(id).display().to_string()];
            Ok(words(&operation.planning_words()).into_iter().chain(out).collect())
        }
        (StartRun::Destroy { confirm, document }, None) => {
            check_destroy(server, file, confirm, document)?;
            refuse_others(server, &file.name)?;
            Ok(words(&["destroy", "--name", confirm]))
        }
        (StartRun::EtcdCheck {}, None) => Ok(words(&["etcd", "check"])),
        (StartRun::EtcdVerify {}, None) => Ok(words(&["etcd", "verify"])),
        (_, None) => Ok(words(&["status", "--format", "json"])),
    }
}

/// How long ago a session may have begun whose person destroys a deployment.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// Refuses a session that began too long ago: somebody else may sit before it. `began`: None for a token.
fn check_fresh_login(began: Option<SystemTime>, now: SystemTime) -> Result<(), Problem> {
    match began {
        Some(began) if now.duration_since(began).is_ok_and(|age| age > FRESH) => {
            let detail = format!("this login began more than {} minutes ago", FRESH.as_secs() / 60);
            Err(Problem::new(StatusCode::FORBIDDEN, "LoginTooOld", detail).with_hint("log out, and log in again"))
        }
        _ => Ok(()),
    }
}

/// Refuses to destroy what the person has not named or seen, and what two people must agree to.
fn check_destroy(server: &Server, file: &DeploymentFile, confirm: &str, document: &str) -> Result<(), Problem> {
    if server.author_may_not_approve {
        let detail = "two people must agree to each change here, and nothing can be planned and approved that destroys";
        return Err(
            Problem::new(StatusCode::FORBIDDEN, "OwnPlan", detail).with_hint("use windlass destroy in a terminal")
        );
    }
    if confirm != file.name {
        let detail = format!("confirm must be the name of the deployment, {}", file.name);
        return Err(Problem::conflict("NameNotConfirmed", detail));
    }
    let text = std::fs::read(&file.path).map_err(Problem::internal)?;
    if sha256_hex(&text) != document {
        let detail = "the document is not the one whose digest was given";
        return Err(Problem::conflict("OtherDocument", detail).with_hint("read the document again, with its hosts"));
    }
    Ok(())
}

/// Refuses to change a deployment that another run changes.
fn refuse_others(server: &Server, deployment: &str) -> Result<(), Problem> {
    match running_runs(server, deployment)?.iter().find(|run| !is_look(run)) {
        None => Ok(()),
        Some(other) => {
            let (command, user, id) = (&other.start.command, &other.start.user, other.start.id);
            let detail = format!("{command} by {user} is under way (run {id})");
            Err(Problem::conflict("AlreadyRunning", detail))
        }
    }
}

/// A run that an earlier request starts: it may be about to.
async fn begun_run(server: &Arc<Server>, id: RunId) -> Result<RecordedRun, Problem> {
    for _ in 0..300 {
        let found = server.blocking(move |server| Ok(server.stores.with_store(|store| store.read_run(id))?)).await?;
        if let Some(run) = found {
            return Ok(run);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(Problem::conflict("NotStarted", "the request with this Idempotency-Key has not started a run yet"))
}

fn run_answer(run: &RecordedRun, deployment: &str) -> Result<Response, Problem> {
    let mut run = run.clone();
    // It says itself which deployment it is about when it has read the file.
    run.summary.deployment.get_or_insert_with(|| deployment.to_owned());
    let place = HeaderValue::from_str(&format!("{API}/runs/{}", run.start.id)).map_err(Problem::internal)?;
    let mut response = answers::json_answer(StatusCode::CREATED, &run);
    response.headers_mut().insert(header::LOCATION, place);
    Ok(response)
}

/// Whether a run changes nothing.
pub(super) fn is_look(run: &RecordedRun) -> bool {
    run.start.check || ["status", "plan", "etcd check", "etcd verify"].contains(&run.start.command.as_str())
}

pub(super) async fn stop_run(call: Call) -> Result<Response, Problem> {
    let run = call.run_of_path().clone();
    call.server.blocking(move |server| server.processes.stop_run(&server.stores, &run)).await?;
    Ok(answers::json_answer(StatusCode::ACCEPTED, call.run_of_path()))
}

pub(super) async fn follow_events(call: Call) -> Result<Response, Problem> {
    let resumed = call.headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
    let after = match resumed {
        Some(Some(after)) => after,
        Some(None) => return Err(Problem::bad_request("Last-Event-ID must be a number")),
        None => call.number("after")?.unwrap_or(0),
    };
    let filter = EventFilter { host: call.query.get("host").cloned(), task: call.number("task")? };
    let accepted = call.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepted.contains("text/event-stream") {
        return Ok(follow::event_stream(call.server.clone(), call.headers.clone(), call.run_of_path(), after, filter)
            .into_response());
    }
    let id = call.run_of_path().start.id;
    let list = move |server: &Server| follow::some_events(server, id, after, &filter, MOST_EVENTS);
    let (events, next) = call.server.blocking(list).await?;
    let items = events.into_iter().filter_map(|event| serde_json::from_str(&event.line).ok()).collect();
    Ok(answers::ok(&EventList { items, next: next.map(|next| next.to_string()) }))
}

/// What is written to, and can be read when the writer is gone.
#[derive(Clone, Default)]
struct Written(std::sync::Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut written = self.0.lock();
        let fits = bytes.len().min(LONGEST_LOG - written.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(std::io::Error::other("the log is too long"));
        }
        written.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) async fn show_log(call: Call) -> Result<Response, Problem> {
    let id = call.run_of_path().start.id;
    let show = move |server: &Server| {
        let written = Written::default();
        let around = ProcessEnvironment::default();
        let shows = DisplayOptions::default();
        let mut replay = Replay::to_writer(Box::new(written.clone()), Colour::Never, 0, shows, &around);
        let mut cut = false;
        follow::until_event(server, id, |line| {
            cut = replay.show_event(line).is_err() || replay.print_shown().is_err();
            !cut
        })?;
        drop(replay);
        let mut text = String::from_utf8_lossy(&written.0.lock()).into_owned();
        if cut {
            text.push_str("\n[the log is longer: windlass logs shows all of it]\n");
        }
        Ok(text)
    };
    Ok(answers::text(call.server.blocking(show).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_began_long_ago_destroys_nothing() {
        let now = SystemTime::now();
        assert!(check_fresh_login(None, now).is_ok() && check_fresh_login(Some(now - FRESH), now).is_ok());
        let refused = check_fresh_login(Some(now - FRESH - Duration::from_secs(1)), now).unwrap_err();
        assert_eq!(refused.code, "LoginTooOld");
        // A clock that went back is no reason.
        assert!(check_fresh_login(Some(now + FRESH), now).is_ok());
    }
}
