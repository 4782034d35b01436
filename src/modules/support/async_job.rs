//! Commands that run without the connection (`async`): how one is started, and its status. Jobs are below
//! `~/.ansible_async` of the task's user (`ansible_async_dir` sets another directory), each in its own directory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::modules::{Controller, Error, Outcome, execution};
use crate::remote::{Command, JobPlace, JobResult, JobState, Probe, Remote};
use crate::template::{Scope, Templar};
use crate::value::Value;

/// The end of a name that [`name_of_none`] gives; that of a real job is never so.
const NOT_BEGUN: &str = ".0";

/// What of the task its result is made with.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobMetadata {
    /// As the task's result shows it.
    pub cmd: serde_json::Value,
    /// Whether line ends are taken off the outputs.
    pub strip: bool,
    /// The program, where no shell says that it is not there.
    pub program: Option<String>,
    /// The result has no times and no command (`script`).
    pub bare: bool,
}

/// The directory of jobs, as the host's user has it.
pub async fn directory(probe: &Probe, templar: &Templar, scope: &Scope) -> Result<String, Error> {
    let written = match scope.get("ansible_async_dir") {
        Some(raw) => templar.render(raw, scope)?.to_string(),
        None => "~/.ansible_async".to_owned(),
    };
    Ok(probe.expand_on_host(&written).await?)
}

/// A place for a job of this task.
pub async fn job_location(remote: &Remote, here: &Controller<'_>) -> Result<JobPlace, Error> {
    Ok(remote.place_for_job(&directory(remote, here.templar, here.scope).await?).await?)
}

/// Starts a job; the outcome has its ID, and that it still runs.
pub async fn start_job(
    remote: &Remote,
    place: &JobPlace,
    command: &Command,
    limit: Duration,
    notes: &JobMetadata,
) -> Result<Outcome, Error> {
    let notes = serde_json::to_string(notes).map_err(|error| Error::failed(error.to_string()))?;
    remote.start_job(place, command, limit, &notes).await?;
    Ok(Outcome { changed: true, ..reported(&place.id, &place.directory, false) })
}

/// The job that an outcome names.
pub fn job_name(outcome: &Outcome) -> Option<String> {
    outcome.values.get("ansible_job_id").map(ToString::to_string)
}

/// What is known of a job; `failed` where there is none.
pub async fn read_job(probe: &Probe, parent: &str, id: &str) -> Result<Outcome, Error> {
    let directory = place_of(parent, id)?;
    Ok(match probe.job(&directory).await? {
        None => Outcome { failed: Some("could not find job".into()), ..reported(id, &directory, true) },
        Some(JobState::Running) => empty(reported(id, &directory, false)),
        Some(JobState::Lost) => {
            let message = "the job left no result: the host was restarted, or something killed the job";
            empty(Outcome { failed: Some(message.into()), ..reported(id, &directory, true) })
        }
        Some(JobState::Ended(ended)) => {
            let known = reported(id, &directory, true);
            let mut outcome = result(probe, ended).await?;
            known.values.into_iter().for_each(|(name, value)| _ = outcome.values.insert(name, value));
            outcome
        }
    })
}

/// What a task gets for a job that `creates`, `removes` or check mode kept from being begun, so that a later
/// `async_status` has a name to ask for.
pub fn name_of_none(outcome: &mut Outcome) {
    let id = format!("j{:012}{NOT_BEGUN}", rand::random::<u64>() % 1_000_000_000_000);
    for (name, value) in [("ansible_job_id", Value::from(id)), ("started", true.into()), ("finished", true.into())] {
        outcome.values.insert(name.into(), value);
    }
}

/// The result for a job that never started; None: it may have started.
pub fn not_begun(id: &str) -> Option<Outcome> {
    let outcome = Outcome::default().message("the job was not started").with("rc", 0);
    id.ends_with(NOT_BEGUN)
        .then(|| empty(outcome).with("ansible_job_id", id).with("started", true).with("finished", true))
}

/// Removes what is left of a job. Gives its directory.
pub async fn forget(remote: &Remote, parent: &str, id: &str) -> Result<String, Error> {
    let directory = place_of(parent, id)?;
    remote.remove(&directory).await?;
    Ok(directory)
}

/// The directory of a job; its name never points outside `parent`.
pub fn place_of(parent: &str, id: &str) -> Result<String, Error> {
    let unfit = id.is_empty() || id.starts_with('.') || id.contains(['/', '\0']);
    match unfit {
        true => Err(Error::failed(format!("invalid job id {id:?}"))),
        false => Ok(format!("{}/{id}", parent.trim_end_matches('/'))),
    }
}

fn reported(id: &str, directory: &str, finished: bool) -> Outcome {
    Outcome::default()
        .with("ansible_job_id", id)
        .with("results_file", directory)
        .with("started", true)
        .with("finished", finished)
}

fn empty(outcome: Outcome) -> Outcome {
    let none = Vec::<String>::new;
    outcome.with("stdout", "").with("stdout_lines", none()).with("stderr", "").with("stderr_lines", none())
}

/// The result that the task would have had without `async`.
async fn result(probe: &Probe, ended: JobResult) -> Result<Outcome, Error> {
    if ended.late {
        return Ok(empty(Outcome { failed: Some("Timeout exceeded".into()), ..Outcome::default() }));
    }
    let notes: JobMetadata = serde_json::from_str(&ended.notes)
        .map_err(|error| Error::failed(format!("cannot read the files of the job: {error}")))?;
    let code = ended.output.code;
    let outcome = execution::command_outcome(ended.output, notes.strip);
    if notes.bare {
        return Ok(outcome);
    }
    let took = ended.ended.since_epoch.saturating_sub(ended.begun.since_epoch);
    let outcome = outcome
        .with("cmd", Value::from(minijinja::value::Serde(notes.cmd)))
        .with("start", ended.begun.words.as_str())
        .with("end", ended.ended.words.as_str())
        .with("delta", execution::delta(took))
        .message("");
    match notes.program {
        Some(program) => execution::unless_missing(outcome, code, &program, probe).await,
        None => Ok(outcome),
    }
}
