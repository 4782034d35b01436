//! A Run in the API while a process does it: claimed by one process, kept alive by a heartbeat, and ended once.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{RunResult, time_text};
use crate::deployment::Outcome;
use crate::kubernetes::{error_text, limited};
use crate::resource::{AgreedPlan, Run, SUCCEEDED};

/// How often the process says that it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// A process that has said nothing for so long has ended. If it has not, the lock on the hosts keeps it from changing anything.
const SILENCE: Duration = Duration::from_secs(60);

/// How long to wait before each attempt to write how a run ended, in seconds: the API may be what the run repairs.
const PAUSES: [u64; 10] = [0, 1, 2, 5, 10, 30, 60, 120, 240, 480];

/// A Run that this process does.
#[derive(Clone)]
pub struct RunRecord {
    api: Api<Run>,
    pub run: Run,
    /// Of how many processes this is.
    pub attempt: i32,
    host: String,
    record: String,
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
        let run = limited(async { api.get(name).await.map_err(|error| error_text(&error)) }).await?;
        let status = run.status.clone().unwrap_or_default();
        if status.has_ended() {
            return Ok(Err(format!("the run {name} has ended")));
        }
        let now = OffsetDateTime::now_utc();
        if let Some(worker) = status.worker.as_ref().filter(|worker| is_alive(&worker.heartbeat_time, now)) {
            return Ok(Err(format!("a process on {} does the run {name}", worker.host)));
        }
        let attempt = status.attempts.saturating_add(1);
        let mut claimed =
            RunRecord { api, run: run.clone(), attempt, host: host.to_owned(), record: record.to_owned() };
        let start = status.start_time.unwrap_or_else(|| time_text(now));
        // With the version that was read: of two processes one claims it.
        let patch = json!({
            "metadata": {"resourceVersion": run.resource_version()},
            "status": {
                "attempts": attempt,
                "startTime": start,
                "worker": claimed.worker(now),
                "conditions": [claimed.condition("Unknown", "Running", "a process does it", now)],
            },
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
        let patch = json!({"status": {"agreed": agreed}});
        let patched = limited(async { Ok(self.patch(&patch).await) }).await?;
        patched.map(drop).map_err(|error| error_text(&error))
    }

    /// Says that the process is there, and what it does. Whether the run is to be stopped: None if the API does not answer.
    pub async fn beat(&self, stage: Option<&str>) -> Option<bool> {
        let patch = json!({"status": {"stage": stage, "worker": self.worker(OffsetDateTime::now_utc())}});
        match limited(async { Ok(self.patch(&patch).await) }).await.ok()? {
            Ok(run) => Some(run.spec.stop || run.metadata.deletion_timestamp.is_some()),
            Err(kube::Error::Api(status)) if status.code == 404 => Some(true),
            Err(_) => None,
        }
    }

    /// Gives the run back, so that another process resumes it at once. If the API does not answer, it does so after a while.
    pub async fn give_back(&self) {
        let now = OffsetDateTime::now_utc();
        let gone = json!({"host": self.host, "record": self.record, "heartbeatTime": time_text(now - SILENCE)});
        let words = "its process was stopped; another one resumes it";
        let patch =
            json!({"status": {"worker": gone, "conditions": [self.condition("Unknown", "Interrupted", words, now)]}});
        let given = limited(async { Ok(self.patch(&patch).await) }).await;
        if let Err(why) = given.and_then(|patched| patched.map_err(|error| error_text(&error))) {
            tracing::warn!("cannot give the run back: {why}");
        }
    }

    /// Writes how it ended. `generation`: of the spec that it was about.
    ///
    /// # Errors
    /// The API refused it, or did not answer for a quarter of an hour.
    pub async fn finish(&self, result: &RunResult, generation: Option<i64>) -> Result<(), String> {
        let now = OffsetDateTime::now_utc();
        let status = if result.outcome == Outcome::Ok { "True" } else { "False" };
        let patch = json!({
            "status": {
                "stage": null,
                "completionTime": time_text(now),
                "failures": result.failures,
                "generation": generation,
                "conditions": [self.condition(status, result.reason, &result.message, now)],
            },
        });
        let mut last = String::new();
        for pause in PAUSES {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            match limited(async { Ok(self.patch(&patch).await) }).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(()),
                Ok(Err(error @ kube::Error::Api(_))) if is_refused(&error) => return Err(error_text(&error)),
                Ok(Err(error)) => last = error_text(&error),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    async fn patch(&self, patch: &serde_json::Value) -> kube::Result<Run> {
        self.api.patch_status(&self.run.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await
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

/// Whether a process that said then that it is there may still be there.
pub fn is_alive(heartbeat: &str, now: OffsetDateTime) -> bool {
    OffsetDateTime::parse(heartbeat, &Rfc3339).is_ok_and(|heartbeat| now - heartbeat < SILENCE)
}

fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 && status.code != 409)
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
