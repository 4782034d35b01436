//! `async` and `poll`: a task that runs without the connection, and how windlass follows it.

use std::time::{Duration, Instant};

use super::event::{Event, Status, TaskResult};
use super::item::{Delegate, Item, blank, finished, from_error};
use crate::modules::{self, Async, Effect, ModuleResult, Outcome, async_job};
use crate::remote::Remote;
use crate::value::{Value, Vars, mapping};

/// How often to query a task without `poll`.
const INTERVAL: Duration = Duration::from_secs(15);
/// How long after its limit a job is expected to have been ended by its host.
const GRACE: Duration = Duration::from_secs(1);
/// The timeout of one status query of a job; windlass then reconnects.
const LOOK: Duration = Duration::from_secs(30);

/// What a task says with `async` and `poll`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsyncOptions {
    pub kind: Async,
    pub limit: Duration,
    /// None: `poll: 0`, it is left alone.
    pub poll: Option<Duration>,
}

/// Why a module cannot be run with this `async` and `poll`; None: it can.
pub(super) fn refusal(kind: Async, module: &str, left_alone: bool) -> Option<(String, &'static str)> {
    let only = "only command, shell and script support async; \"timeout\" limits the time of any task";
    match kind {
        Async::Never => Some((format!("{module} does not support async"), only)),
        Async::Limit if left_alone => {
            Some((format!("{module} needs the connection and cannot run in the background (poll: 0)"), only))
        }
        _ => None,
    }
}

impl Item<'_> {
    /// What the task says of going on apart from the connection; None: nothing.
    pub(super) fn apart(&self) -> Result<Option<AsyncOptions>, modules::Error> {
        let Some(limit) = self.number_keyword(("async", self.task.asynchronous.as_ref()))?.and_then(seconds) else {
            return Ok(None);
        };
        let default = self.batch.run.job.options.poll_interval.unwrap_or(INTERVAL);
        let poll = match self.number_keyword(("poll", self.task.poll.as_ref()))? {
            Some(poll) => seconds(poll),
            None => Some(default),
        };
        let entry = modules::entry_of_doc(self.task.action.doc);
        let kind = entry.asynchronous;
        match refusal(kind, entry.doc.name, poll.is_none()) {
            Some((message, hint)) => Err(modules::Error::Failed { message, hint: Some(hint.to_owned()) }),
            None => Ok(Some(AsyncOptions { kind, limit, poll })),
        }
    }

    /// From a job's start to its result, or to the start alone with `poll: 0`.
    pub(super) async fn follow(
        &self,
        delegate: Option<&Delegate>,
        apart: AsyncOptions,
        mut done: ModuleResult,
    ) -> (TaskResult, Vec<Effect>) {
        if apart.kind != Async::Job || done.outcome.failed.is_some() {
            return finished(done);
        }
        let Some(job) = async_job::job_name(&done.outcome) else {
            async_job::name_of_none(&mut done.outcome);
            return finished(done);
        };
        let Some(poll) = apart.poll else { return finished(done) };
        let begun = Instant::now();
        let until = begun + apart.limit + GRACE;
        loop {
            tokio::time::sleep(poll.min(until.saturating_duration_since(Instant::now()))).await;
            let last = Instant::now() >= until;
            let looked = tokio::time::timeout(LOOK, self.look(delegate, &job)).await;
            match looked {
                Ok(Ok((outcome, remote))) if is_finished(&outcome) => {
                    self.forget(&remote, &job).await;
                    return finished(ModuleResult { changed: outcome.changed, diff: Vec::new(), outcome });
                }
                Ok(Ok((outcome, _))) if last => return too_late(apart.limit, outcome),
                Ok(Ok(_)) => self.batch.run.send_event(Event::AsyncPoll {
                    task: self.start.clone(),
                    host: self.host.name.clone(),
                    job: job.clone(),
                    elapsed: begun.elapsed(),
                    limit: apart.limit,
                }),
                Ok(Err(error)) if last || !is_lost(&error) => return (from_error(&error), Vec::new()),
                // The job still runs; the host may become reachable again.
                Ok(Err(error)) => tracing::debug!(job, %error, "retrying the status query"),
                Err(_) if last => return too_late(apart.limit, Outcome::default()),
                Err(_) => {
                    tracing::debug!(job, "no answer; reconnecting");
                    if let Ok(target) = self.target(delegate) {
                        self.batch.run.pool.reset(&target).await;
                    }
                }
            }
        }
    }

    /// Asks how far a job is.
    async fn look(&self, delegate: Option<&Delegate>, job: &str) -> Result<(Outcome, Remote), modules::Error> {
        let remote = self.remote(delegate).await?;
        let parent = async_job::directory(&remote, &self.batch.run.job.templar, &self.scope).await?;
        Ok((async_job::read_job(&remote, &parent, job).await?, remote))
    }

    /// Removes what is left of a job whose result is known.
    async fn forget(&self, remote: &Remote, job: &str) {
        let removed = async {
            let parent = async_job::directory(remote, &self.batch.run.job.templar, &self.scope).await?;
            async_job::forget(remote, &parent, job).await
        };
        if let Err(error) = removed.await {
            self.batch.run.send_event(Event::Warning(format!("{}: {error}", self.host.name)));
        }
    }
}

fn is_finished(outcome: &Outcome) -> bool {
    outcome.values.get("finished").is_some_and(|value| value.is_true())
}

fn is_lost(error: &modules::Error) -> bool {
    matches!(error, modules::Error::Remote(crate::remote::Error::Connection(_)))
}

fn too_late(limit: Duration, outcome: Outcome) -> (TaskResult, Vec<Effect>) {
    let message = format!("async task did not complete within the requested time - {}s", limit.as_secs_f64());
    (TaskResult { message: Some(message), values: outcome.values, ..blank(Status::Failed) }, Vec::new())
}

/// A task that took longer than it may.
pub(super) fn timed_out(limit: Duration) -> TaskResult {
    let period = limit.as_secs_f64();
    let whole = limit.subsec_nanos() == 0;
    let reported = if whole { Value::from(limit.as_secs()) } else { Value::from(period) };
    let values = Vars::from([("timedout".into(), mapping([("period", reported)]))]);
    let message = Some(format!("the task timed out after {period} s"));
    TaskResult { message, values, ..blank(Status::Failed) }
}

/// A configured timeout; None: no timeout.
pub(super) fn seconds(limit: f64) -> Option<Duration> {
    (limit > 0.0).then(|| Duration::from_secs_f64(limit.min(1e9)))
}
