//! A Run in the API while a process does it: claimed by one process, kept alive by a heartbeat, and ended once.

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{RunResult, time_text};
use crate::deployment::Outcome;
use crate::kubernetes::{error_text, limited};
use crate::resource::{AgreedPlan, Run, RunStatus, SUCCEEDED};
use crate::value::mutex::Mutex;

/// How often the process says that it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// A process that has said nothing for so long has ended. If it has not, the lock on the hosts keeps it from changing anything.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The reason of a run whose process has ended in the middle and has said so.
pub const INTERRUPTED: &str = "Interrupted";

/// How long to wait before each attempt to write how a run ended, in seconds: the API may be what the run repairs.
const PAUSES: [u64; 10] = [0, 1, 2, 5, 10, 30, 60, 120, 240, 480];

/// How often a write is tried again after the object has changed.
const MOST_TURNS: usize = 5;

/// A Run that this process does.
pub struct RunRecord {
    api: Api<Run>,
    pub run: Run,
    host: String,
    record: String,
    /// The version of the object that this process has seen last.
    version: Mutex<Option<String>>,
}

impl RunRecord {
    /// Claims a Run. `host`: this machine; `record`: the id of this process in the store of runs. None: it has ended, was stopped, or
    /// another process does it, as the text says.
    ///
    /// # Errors
    /// The API does not answer, or has no such Run.
    pub async fn claim(
        client: Client,
        namespace: &str,
        name: &str,
        host: &str,
        record: &str,
    ) -> Result<Result<RunRecord, String>, String> {
        let api: Api<Run> = Api::namespaced(client, namespace);
        let mut seen: Option<(String, Instant)> = None;
        let (run, status) = loop {
            let run = limited(async { api.get(name).await.map_err(|error| error_text(&error)) }).await?;
            let status = run.status.clone().unwrap_or_default();
            if status.has_ended() {
                return Ok(Err(format!("the run {name} has ended")));
            }
            let now = OffsetDateTime::now_utc();
            let Some(worker) = status.worker.as_ref().filter(|worker| is_alive(&worker.heartbeat_time, now)) else {
                break (run, status);
            };
            // Its clock may not be this one: it is there if it says something else after a while.
            match &seen {
                None => seen = Some((worker.heartbeat_time.clone(), Instant::now())),
                Some((before, _)) if *before != worker.heartbeat_time => {
                    return Ok(Err(format!("a process on {} does the run {name}", worker.host)));
                }
                Some((_, since)) if since.elapsed() >= SILENCE => break (run, status),
                Some(_) => {}
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        };
        let now = OffsetDateTime::now_utc();
        let attempt = status.attempts.saturating_add(1);
        let version = Mutex::new(run.resource_version());
        let mut claimed = RunRecord { api, run, host: host.to_owned(), record: record.to_owned(), version };
        let start = status.start_time.unwrap_or_else(|| time_text(now));
        // With the version that was read: of two processes one claims it.
        let patch = json!({
            "attempts": attempt,
            "startTime": start,
            "worker": claimed.worker(now),
            "conditions": [claimed.condition("Unknown", "Running", "a process does it", now)],
        });
        match limited(async { Ok(claimed.patch(&patch).await) }).await? {
            Ok(run) => {
                claimed.run = run;
                Ok(Ok(claimed))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Ok(Err(format!("another process has claimed the run {name}")))
            }
            Err(error) => Err(error_text(&error)),
        }
    }

    /// Keeps what is about to be applied.
    ///
    /// # Errors
    /// The API does not answer, or refuses it.
    pub async fn agree(&self, agreed: &AgreedPlan) -> Result<(), String> {
        match self.write(&json!({"agreed": agreed})).await? {
            Some(_) => Ok(()),
            None => Err("another process does this run, or it is gone".to_owned()),
        }
    }

    /// Says that the process is there, and what it does. Whether it is to stop: None if the API does not answer.
    pub async fn beat(&self, stage: Option<&str>) -> Option<bool> {
        let written = self.write(&json!({"stage": stage, "worker": self.worker(OffsetDateTime::now_utc())})).await;
        Some(written.ok()?.is_none_or(|run| run.spec.stop || run.metadata.deletion_timestamp.is_some()))
    }

    /// Gives the run back, so that another process resumes it. `why`: for people. `attempts`: how many processes have begun it, of those
    /// that count. If the API does not answer, the other process begins after a while.
    pub async fn give_back(&self, why: &str, attempts: i32) {
        let now = OffsetDateTime::now_utc();
        let gone = json!({"host": self.host, "record": self.record, "heartbeatTime": time_text(now - SILENCE)});
        let condition = self.condition("Unknown", INTERRUPTED, &format!("{why}; another process resumes it"), now);
        if let Err(why) = self.write(&json!({"worker": gone, "attempts": attempts, "conditions": [condition]})).await {
            tracing::warn!("cannot give the run back: {why}");
        }
    }

    /// Writes how it ended. `generation`: of the spec that it was about. Whether it could be written: it cannot if another process
    /// has claimed the run since, or the object is gone.
    ///
    /// # Errors
    /// The API refused it, or did not answer for a quarter of an hour.
    pub async fn finish(&self, result: &RunResult, generation: Option<i64>) -> Result<bool, String> {
        let now = OffsetDateTime::now_utc();
        let status = if result.outcome == Outcome::Ok { "True" } else { "False" };
        let patch = json!({
            "stage": null,
            "completionTime": time_text(now),
            "failures": result.failures,
            "backup": result.backup,
            "generation": generation,
            "conditions": [self.condition(status, result.reason, &result.message, now)],
        });
        let mut last = String::new();
        for pause in PAUSES {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            match limited(async { Ok(self.patch_own(&patch).await) }).await {
                Ok(Ok(written)) => return Ok(written.is_some()),
                Ok(Err(error @ kube::Error::Api(_))) if is_refused(&error) => return Err(error_text(&error)),
                Ok(Err(error)) => last = error_text(&error),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// As [`RunRecord::patch_own`], with a limit of time.
    async fn write(&self, status: &serde_json::Value) -> Result<Option<Run>, String> {
        limited(async { self.patch_own(status).await.map_err(|error| error_text(&error)) }).await
    }

    /// Changes the status as long as this process is the one that does the run. None: another one has claimed it, or it is gone.
    async fn patch_own(&self, status: &serde_json::Value) -> kube::Result<Option<Run>> {
        for _ in 0..MOST_TURNS {
            match self.patch(status).await {
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.map(Some),
            }
            let Some(run) = self.api.get_opt(&self.run.name_any()).await? else { return Ok(None) };
            let worker = run.status.as_ref().and_then(|status| status.worker.as_ref());
            let is_open = !run.status.as_ref().is_some_and(RunStatus::has_ended);
            if !is_open || worker.is_none_or(|worker| worker.record != self.record) {
                return Ok(None);
            }
            *self.version.lock() = run.resource_version();
        }
        self.patch(status).await.map(Some)
    }

    /// Changes the status of the version that was seen last, and of no other one.
    async fn patch(&self, status: &serde_json::Value) -> kube::Result<Run> {
        let patch = json!({"metadata": {"resourceVersion": *self.version.lock()}, "status": status});
        let patched =
            self.api.patch_status(&self.run.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        *self.version.lock() = patched.resource_version();
        Ok(patched)
    }

    fn worker(&self, now: OffsetDateTime) -> serde_json::Value {
        json!({"host": self.host, "record": self.record, "heartbeatTime": time_text(now)})
    }

    fn condition(&self, status: &str, reason: &str, message: &str, now: OffsetDateTime) -> serde_json::Value {
        json!({
            "type": SUCCEEDED,
            "status": status,
            "reason": reason,
            // An empty text counts as a missing one for some API servers.
            "message": if message.is_empty() { reason } else { message },
            "lastTransitionTime": time_text(now),
            "observedGeneration": self.run.metadata.generation.unwrap_or_default(),
        })
    }
}

/// Whether a process that said then, by its own clock, that it is there may still be there.
fn is_alive(heartbeat: &str, now: OffsetDateTime) -> bool {
    OffsetDateTime::parse(heartbeat, &Rfc3339).is_ok_and(|heartbeat| now - heartbeat < SILENCE)
}

fn is_refused(error: &kube::Error) -> bool {
    // Rights and tokens may be back in a moment.
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 413 | 422))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_silent_for_a_minute_has_ended() {
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let before = |seconds: i64| time_text(now - time::Duration::seconds(seconds));
        assert!(is_alive(&before(0), now) && is_alive(&before(59), now));
        assert!(!is_alive(&before(60), now) && !is_alive("", now));
        // A clock that is behind, such as another machine's.
        assert!(is_alive(&before(-30), now));
    }
}
