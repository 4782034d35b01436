//! Backups: when one is due, a function of what is known; and the Runs that take them.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ObjectMeta, PostParams};
use kube::runtime::controller::Action as Requeue;
use kube::{Api, Resource, ResourceExt};
use time::OffsetDateTime;

use super::decide::Seconds;
use super::reconcile::{DEPLOYMENT, Error, is_written};
use super::schedule::Schedule;
use super::view::{Context, seconds_of};
use crate::resource::status::short_message;
use crate::resource::{EtcdBackup, EtcdBackupSpec, EtcdBackupStatus, KarmadaDeployment, Run, RunOperation, RunSpec};
use crate::worker::time_text;

/// How much later than scheduled a backup may end and still be recent.
const GRACE: Seconds = 3600;

/// How soon to look again, at the latest.
const AGAIN: Seconds = 300;

/// How long the name of a Run may be, without the time at its end.
const NAMED: usize = 200;

/// What to do for a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Due {
    /// Begin one, of this time.
    begin: Option<Seconds>,
    /// The first time at which one had to begin, of those that none has begun for.
    since: Option<Seconds>,
    /// When the next one is due.
    next: Option<Seconds>,
    /// Why none begins.
    problem: Option<String>,
}

/// Whether a backup is due. `last`: the time of the last one that was begun. `is_open`: it has not ended.
fn due(spec: &EtcdBackupSpec, created: Seconds, last: Option<Seconds>, is_open: bool, now: Seconds) -> Due {
    if spec.suspend {
        return Due::default();
    }
    let Some(text) = &spec.schedule else {
        return Due { begin: last.is_none().then_some(now), ..Due::default() };
    };
    let schedule = match Schedule::parse_schedule(text, spec.time_zone.as_deref()) {
        Ok(schedule) => schedule,
        Err(why) => return Due { problem: Some(why), ..Due::default() },
    };
    // A time in the future is of a clock that was wrong.
    let first = schedule.next_after(last.map_or(created, |last| last.min(now)).max(created));
    if first.is_none_or(|first| first > now) {
        let problem = first.is_none().then(|| format!("the schedule {text:?} names no time"));
        return Due { next: first, problem, ..Due::default() };
    }
    // Of several that were missed, one is taken.
    let begin = schedule.last_until(now).filter(|_| !is_open);
    Due { begin, since: first, next: schedule.next_after(now), problem: None }
}

/// Why the backups of a deployment are not recent.
pub(super) enum Recency {
    /// There is nothing to say anything about.
    None,
    /// No backup has ended yet.
    NotYet,
    Recent(Seconds),
    Overdue(String),
    Failed(String),
}

/// Whether all backups of a deployment are as recent as their schedules say.
pub(super) fn recency(backups: &[Arc<EtcdBackup>], now: Seconds) -> Recency {
    let mut newest = None;
    for backup in backups {
        let status = backup.status.clone().unwrap_or_default();
        let success = status.last_success_time.as_deref().map(seconds_of);
        newest = newest.max(success);
        let ended = status.completion_time.as_deref().map(seconds_of);
        if let (Some(why), true) = (&status.message, ended > success) {
            return Recency::Failed(format!("{}: {why}", backup.name_any()));
        }
        if backup.spec.suspend {
            continue;
        }
        let since = success.unwrap_or_else(|| created(backup));
        let due = due(&backup.spec, created(backup), Some(since), false, now);
        if let Some(why) = status.problem.or(due.problem) {
            return Recency::Failed(format!("{}: {why}", backup.name_any()));
        }
        if due.since.is_some_and(|since| since + GRACE < now) {
            let last = status.last_success_time.as_deref().unwrap_or("never");
            return Recency::Overdue(format!("{}: its newest good backup: {last}", backup.name_any()));
        }
    }
    match (backups.is_empty(), newest) {
        (true, _) => Recency::None,
        (false, Some(newest)) => Recency::Recent(newest),
        (false, None) => Recency::NotYet,
    }
}

fn created(backup: &EtcdBackup) -> Seconds {
    backup.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second())
}

/// Begins a backup if one is due, and says in the status what became of the last ones.
pub(super) async fn reconcile_backup(backup: Arc<EtcdBackup>, context: Arc<Context>) -> Result<Requeue, Error> {
    let now = OffsetDateTime::now_utc();
    let (namespace, name) = (backup.namespace().unwrap_or_default(), backup.name_any());
    if backup.metadata.deletion_timestamp.is_some() {
        return Ok(Requeue::await_change());
    }
    let runs = runs_of(&context, &backup);
    let status = backup.status.clone().unwrap_or_default();
    let last = status.last_time.as_deref().map(seconds_of);
    let is_open = runs.last().is_some_and(|run| !run.status.as_ref().is_some_and(|status| status.has_ended()));
    let mut due = due(&backup.spec, created(&backup), last, is_open, now.unix_timestamp());
    if due.begin.is_some()
        && let Some(why) = not_there(&context, &namespace, &backup.spec.deployment, &status).await?
    {
        (due.begin, due.problem) = (None, Some(why));
    }
    let mut wanted = told(&status, &runs);
    if let Some(time) = due.begin {
        let time = OffsetDateTime::from_unix_timestamp(time).unwrap_or(now);
        let run = run_of(&backup, time);
        let api: Api<Run> = Api::namespaced(context.client.clone(), &namespace);
        wanted.last_run = run.metadata.name.clone();
        match api.create(&PostParams::default(), &run).await {
            // It was created before its time could be written, or somebody else has one of this name.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let there = api.get_opt(&run.name_any()).await?;
                let is_own =
                    |run: &Run| run.owner_references().iter().any(|owner| Some(&owner.uid) == backup.uid().as_ref());
                if there.is_some_and(|run| !is_own(&run)) {
                    due.problem = Some(format!("a different Run has the name {}", run.name_any()));
                }
            }
            created => tracing::info!(namespace, run = created?.name_any(), "created a run for a backup"),
        }
        wanted.last_time = Some(time_text(time));
    }
    wanted.observed_generation = backup.metadata.generation;
    wanted.next_time = due.next.and_then(|next| OffsetDateTime::from_unix_timestamp(next).ok()).map(time_text);
    wanted.problem = due.problem.as_deref().map(short_message);
    if wanted != status {
        let api: Api<EtcdBackup> = Api::namespaced(context.client.clone(), &namespace);
        let mut object = (*backup).clone();
        object.status = Some(wanted);
        is_written(api.replace_status(&name, &PostParams::default(), &object).await)?;
    }
    let again = due.next.map_or(AGAIN, |next| (next - now.unix_timestamp()).clamp(1, AGAIN));
    Ok(Requeue::requeue(Duration::from_secs(u64::try_from(again).unwrap_or(1))))
}

/// Why no backup of a deployment can be taken yet.
async fn not_there(
    context: &Context,
    namespace: &str,
    name: &str,
    status: &EtcdBackupStatus,
) -> Result<Option<String>, Error> {
    let deployments: Api<KarmadaDeployment> = Api::namespaced(context.client.clone(), namespace);
    let Some(deployment) = deployments.get_opt(name).await? else {
        return Ok(Some(format!("there is no KarmadaDeployment {name} in the namespace {namespace}")));
    };
    let look = deployment.status.and_then(|status| status.look);
    let runs = look.is_some_and(|look| look.etcd_members.iter().any(|member| member.healthy));
    // Once there was a backup, an etcd that does not run is a failure.
    let is_waiting = !runs && status.last_success_time.is_none();
    Ok(is_waiting.then(|| format!("no etcd member of {name} is healthy yet, as far as the operator has seen")))
}

/// In the order of their creation.
fn runs_of(context: &Context, backup: &EtcdBackup) -> Vec<Arc<Run>> {
    let is_of = |run: &Arc<Run>| {
        run.namespace() == backup.namespace()
            && run.spec.operation == RunOperation::Backup
            && run.spec.backup.as_deref() == Some(&*backup.name_any())
            // One of another deployment is never done.
            && run.spec.deployment == backup.spec.deployment
            && run.metadata.creation_timestamp >= backup.metadata.creation_timestamp
    };
    let mut runs: Vec<Arc<Run>> = context.runs.state().into_iter().filter(is_of).collect();
    runs.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.name_any()));
    runs
}

/// What became of the backups, also of those whose Runs are gone.
fn told(before: &EtcdBackupStatus, runs: &[Arc<Run>]) -> EtcdBackupStatus {
    let mut status = before.clone();
    status.last_run = runs.last().map(|run| run.name_any()).or(status.last_run);
    let ended = |run: &&Arc<Run>| run.status.as_ref().is_some_and(|status| status.has_ended());
    let Some(last) = runs.iter().rev().find(ended).and_then(|run| run.status.as_ref()) else {
        return status;
    };
    status.completion_time = last.completion_time.clone();
    let is_good = last.succeeded().is_some_and(|condition| condition.is_true());
    status.message = match last.succeeded() {
        Some(condition) if !is_good => Some(format!("{}: {}", condition.reason, condition.message)),
        _ => last.failures.first().cloned(),
    };
    let good = runs.iter().rev().filter_map(|run| run.status.as_ref()).find(|status| status.backup.is_some());
    if let Some(good) = good.filter(|good| good.completion_time > status.last_success_time) {
        status.last_success_time = good.completion_time.clone();
        status.last_success = good.backup.as_ref().map(|backup| backup.address.clone());
    }
    status
}

fn run_of(backup: &EtcdBackup, time: OffsetDateTime) -> Run {
    let deployment = backup.spec.deployment.clone();
    let name: String = backup.name_any().chars().take(NAMED).collect();
    let time = match backup.spec.schedule {
        Some(_) => format!(
            "{:04}{:02}{:02}{:02}{:02}",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute()
        ),
        // Not that of an earlier object with this name.
        None => backup.uid().unwrap_or_default().chars().take(8).collect(),
    };
    Run {
        metadata: ObjectMeta {
            name: Some(format!("{}-{time}", name.trim_end_matches(['-', '.']))),
            namespace: backup.namespace(),
            labels: Some([(DEPLOYMENT.to_owned(), deployment.clone())].into()),
            owner_references: backup.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: RunSpec { backup: Some(backup.name_any()), ..RunSpec::of_operation(&deployment, RunOperation::Backup) },
        status: None,
    }
}

#[cfg(test)]
mod tests;
