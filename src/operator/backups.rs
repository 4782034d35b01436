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
use crate::resource::status::{Condition, short_message};
use crate::resource::{EtcdBackup, EtcdBackupSpec, EtcdBackupStatus, KarmadaDeployment, Run, RunOperation, RunSpec};
use crate::worker::time_text;

/// How much later than scheduled a backup may end and still be recent.
const GRACE: Seconds = 3600;

/// How soon to look again, at the latest.
const AGAIN: Seconds = 300;

/// How long the name of a Run may be, without the time at its end.
const NAMED: usize = 200;

/// How long after a backup failed it is tried again, in seconds: at most so often for one time of its schedule.
const RETRIES: [Seconds; 4] = [60, 300, 900, 3600];

/// The last Run of a backup, if it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Failed {
    /// How many retries there were. If this Run is one, it counts.
    retries: usize,
    ended: Seconds,
}

/// What to do for a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Due {
    /// Begin one, of this time.
    begin: Option<Seconds>,
    /// Which retry of it this is. 0: it is the first attempt.
    retry: usize,
    /// The first time at which one had to begin, of those that none has begun for.
    since: Option<Seconds>,
    /// When the next one is due.
    next: Option<Seconds>,
    /// Why none begins.
    problem: Option<String>,
}

/// The last backup that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    /// Of the schedule, or when it was begun.
    time: Seconds,
    is_open: bool,
    failed: Option<Failed>,
}

impl Last {
    /// When it is tried again, and which retry that is.
    fn retry(&self) -> Option<(Seconds, usize)> {
        let Failed { retries, ended } = self.failed?;
        Some((ended + RETRIES.get(retries)?, retries + 1))
    }
}

/// Whether a backup is due.
fn due(spec: &EtcdBackupSpec, created: Seconds, last: Option<Last>, now: Seconds) -> Due {
    if spec.suspend {
        return Due::default();
    }
    // Not at a time that has a backup of its own.
    let retry = |next: Option<Seconds>| {
        let (time, retry) = last?.retry().filter(|(time, _)| next.is_none_or(|next| *time < next))?;
        let begin = (time <= now).then_some(last?.time);
        Some(Due { begin, retry, next: if begin.is_some() { next } else { Some(time) }, ..Due::default() })
    };
    let Some(text) = &spec.schedule else {
        let first = Due { begin: last.is_none().then_some(now), ..Due::default() };
        return retry(None).unwrap_or(first);
    };
    let schedule = match Schedule::parse_schedule(text, spec.time_zone.as_deref()) {
        Ok(schedule) => schedule,
        Err(why) => return Due { problem: Some(why), ..Due::default() },
    };
    // A time in the future is of a clock that was wrong.
    let first = schedule.next_after(last.map_or(created, |last| last.time.min(now)).max(created));
    if first.is_none_or(|first| first > now) {
        if let Some(retry) = retry(first) {
            return retry;
        }
        let problem = first.is_none().then(|| format!("the schedule {text:?} names no time"));
        return Due { next: first, problem, ..Due::default() };
    }
    // Of several that were missed, one is taken.
    let begin = schedule.last_until(now).filter(|_| !last.is_some_and(|last| last.is_open));
    Due { begin, since: first, next: schedule.next_after(now), ..Due::default() }
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
        if backup.spec.suspend {
            continue;
        }
        let ended = status.completion_time.as_deref().map(seconds_of);
        if let (Some(why), true) = (&status.message, ended > success) {
            return Recency::Failed(format!("{}: {why}", backup.name_any()));
        }
        let since = success.unwrap_or_else(|| created(backup));
        let last = Last { time: since, is_open: false, failed: None };
        let due = due(&backup.spec, created(backup), Some(last), now);
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
    let last = status.last_time.as_deref().map(seconds_of).map(|time| last_backup(&backup, time, &status, &runs));
    let mut due = due(&backup.spec, created(&backup), last, now.unix_timestamp());
    if due.begin.is_some()
        && let Some(why) = not_there(&context, &namespace, &backup.spec.deployment, &status).await?
    {
        (due.begin, due.problem) = (None, Some(why));
    }
    let mut wanted = told(&status, &runs);
    if let Some(time) = due.begin {
        let time = OffsetDateTime::from_unix_timestamp(time).unwrap_or(now);
        let run = run_of(&backup, time, due.retry);
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
        wanted.retries = i32::try_from(due.retry).ok().filter(|retries| *retries > 0);
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

/// What the last of the Runs says of the backup that was begun for a time.
fn last_backup(backup: &EtcdBackup, time: Seconds, before: &EtcdBackupStatus, runs: &[Arc<Run>]) -> Last {
    let mut last = Last { time, is_open: false, failed: None };
    let Some(run) = runs.last() else { return last };
    let status = run.status.clone().unwrap_or_default();
    last.is_open = !status.has_ended();
    // One that was taken is no failure, whatever failed besides; one that somebody stopped is not wanted.
    let is_failure = |condition: &Condition| !condition.is_true() && condition.reason != "Stopped";
    if !last.is_open && status.backup.is_none() && status.succeeded().is_some_and(is_failure) {
        let at = OffsetDateTime::from_unix_timestamp(time).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let named = |retry| run_name(backup, at, retry) == run.name_any();
        let ended = status.completion_time.as_deref().map(seconds_of);
        // Of a retry that somebody deleted, the one before is the last: that is no reason for another one.
        let known = before.retries.and_then(|retries| usize::try_from(retries).ok()).unwrap_or(0);
        let retries = (known..=RETRIES.len()).find(|retry| named(*retry));
        last.failed = retries.zip(ended).map(|(retries, ended)| Failed { retries, ended });
    }
    last
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

/// The name of the Run for a time. `retry`: 0 for the first.
fn run_name(backup: &EtcdBackup, time: OffsetDateTime, retry: usize) -> String {
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
    let retry = if retry == 0 { String::new() } else { format!("-retry-{retry}") };
    format!("{}-{time}{retry}", name.trim_end_matches(['-', '.']))
}

fn run_of(backup: &EtcdBackup, time: OffsetDateTime, retry: usize) -> Run {
    let deployment = backup.spec.deployment.clone();
    Run {
        metadata: ObjectMeta {
            name: Some(run_name(backup, time, retry)),
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
