//! Messages about runs and plans to other programs and to chats. What a message says, and its id, is stored before it is sent, so that it
//! is delivered at least once, also when the server or the receiver was down; receivers tell repeated messages by their id.

mod message;
mod settings;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::response::Response;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::{Attempted, WebhookRecord};
use super::answers::{self, List};
use super::call::Call;
use super::problem::Problem;
use super::{Server, plans, runs};
use crate::runs::{RecordedRun, RunFilter, RunOutcome, timestamp_text};
use message::{Delivery, Occurrence, deliver};

pub use settings::{Webhook, WebhookError, read_webhooks};
use settings::{WebhookEvent, WebhookFormat};

/// How often the store of runs is looked at.
const INTERVAL: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(2) };

/// The end of a run may be stored later than that of another one that ended after it, and clocks step.
const OVERLAP: Duration = Duration::from_secs(120);

/// For how long back runs are looked up after the server was down.
const LONGEST_GAP: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// When a message that was not delivered is sent again, in seconds after the attempt: for about 28 hours in all.
const PAUSES: &[u64] = &[5, 30, 2 * 60, 10 * 60, 30 * 60, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 12 * 3600];

/// A webhook as the API shows it: without its address and its secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Webhook")]
pub(super) struct WebhookState {
    name: String,
    format: WebhookFormat,
    events: Vec<WebhookEvent>,
    /// Null: all.
    deployments: Option<Vec<String>>,
    /// The host and the port that messages go to.
    address: String,
    /// How many messages have not been delivered yet.
    waiting: usize,
    /// How many messages of the last 30 days were given up: they are not sent again.
    given_up: usize,
    /// When the last message was delivered. Null: none was.
    last_delivered: Option<String>,
    /// Why the last attempt failed. Null: it did not.
    last_error: Option<String>,
}

impl WebhookState {
    fn new(webhook: &Webhook, record: WebhookRecord) -> WebhookState {
        WebhookState {
            name: webhook.name.clone(),
            format: webhook.format,
            events: webhook.events.iter().copied().collect(),
            deployments: webhook.deployments.as_ref().map(|names| names.iter().cloned().collect()),
            address: webhook.url.address(),
            waiting: record.waiting,
            given_up: record.given_up,
            last_delivered: record.last_delivered.map(timestamp_text),
            last_error: record.last_error,
        }
    }
}

pub(super) async fn list_webhooks(call: Call) -> Result<Response, Problem> {
    let list = |server: &Server| {
        let state = |webhook| {
            Ok(WebhookState::new(webhook, server.access.lock().webhook_record(&webhook.name, SystemTime::now())?))
        };
        server.webhooks.iter().map(state).collect::<Result<Vec<_>, Problem>>()
    };
    Ok(answers::ok(&List::whole(call.server.blocking(list).await?)))
}

/// Sends a webhook one message, to show whether it arrives.
///
/// # Errors
/// Why it was not received.
pub async fn send_test_message(webhook: &Webhook) -> Result<(), String> {
    let now = SystemTime::now();
    let id = format!("test-{}", crate::runs::RunId::new_at(now));
    match deliver(webhook, &id, &message::test_body(webhook, now), now).await {
        Delivery::Delivered => Ok(()),
        Delivery::Failed(why) | Delivery::Gone(why) => Err(why),
    }
}

/// Sends messages, for ever. Receivers do not wait for each other.
pub(super) async fn send_messages(server: Arc<Server>) {
    join_all((0..server.webhooks.len()).map(|index| send_to_one(&server, index))).await;
    std::future::pending().await
}

async fn send_to_one(server: &Arc<Server>, index: usize) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let collected = server.blocking(move |server| collect(server, &server.webhooks[index], SystemTime::now()));
        if let Err(problem) = collected.await {
            tracing::error!(
                "webhook {}: cannot look for what happened: {}",
                server.webhooks[index].name,
                problem.detail
            );
        }
        while attempt_one(server, index, SystemTime::now()).await {}
    }
}

/// Stores the messages about what happened since the last time. May block.
fn collect(server: &Server, webhook: &Webhook, now: SystemTime) -> Result<(), Problem> {
    let Some((created, seen_until)) = server.access.lock().webhook_times(&webhook.name)? else { return Ok(()) };
    // Clocks step: what was ahead counts as now.
    let earliest = created.min(now).max(now - LONGEST_GAP);
    let begin = (seen_until.min(now) - OVERLAP).max(earliest);
    let filter = RunFilter { ended_since: Some(begin), ..RunFilter::default() };
    let found = server.stores.with_store(|store| store.find_runs(&filter))?;
    let mut messages = Vec::new();
    for run in found.iter().rev() {
        // Of a process that died, only the last event has a time, which may be long before its end.
        let begin = if run.exit_code.is_none() { earliest } else { begin };
        if run.running || run.ended.is_none_or(|ended| ended < begin) {
            continue;
        }
        let Some(occurrence) = occurrence(server, webhook, run) else { continue };
        let id = occurrence.message_id();
        if !server.access.lock().has_webhook_message(&webhook.name, &id)? {
            messages.push((id, occurrence.body(webhook.format, now)));
        }
    }
    Ok(server.access.lock().add_webhook_messages(&webhook.name, &messages, now)?)
}

/// What a webhook gets about a run that has ended. None: nothing.
fn occurrence<'a>(server: &Server, webhook: &Webhook, run: &'a RecordedRun) -> Option<Occurrence<'a>> {
    let deployment = run.summary.deployment.as_deref()?;
    let wants = |event| webhook.wants_event(event, deployment);
    let url = || format!("{}/#/runs/{}", server.hosts.url(), run.start.id);
    let of = |event| wants(event).then(|| Occurrence { event, run, plan: None, url: url() });
    if run.outcome != Some(RunOutcome::Succeeded) {
        return of(WebhookEvent::RunFailed);
    }
    if !runs::is_look(run) {
        return of(WebhookEvent::RunSucceeded);
    }
    let mut occurrence = of(WebhookEvent::PlanReady)?;
    // A plan may be large: it is read once.
    let is_known = server.access.lock().has_webhook_message(&webhook.name, &occurrence.message_id());
    if is_known.is_ok_and(|is_known| is_known) {
        return None;
    }
    // A plan that cannot be read must not keep back messages about others.
    occurrence.plan = plans::waiting_plan(server, run.start.id).unwrap_or_else(|problem| {
        tracing::debug!("cannot read the plan of run {}: {}", run.start.id, problem.detail);
        None
    });
    occurrence.plan.is_some().then_some(occurrence)
}

/// Sends the next message that is due. Whether there may be another one: a receiver that fails gets a pause.
async fn attempt_one(server: &Arc<Server>, index: usize, now: SystemTime) -> bool {
    let name = &server.webhooks[index].name;
    let due = move |server: &Server| {
        Ok(server.access.lock().due_webhook_message(&server.webhooks[index].name, now, longest_pause())?)
    };
    let due = match server.blocking(due).await {
        Ok(due) => due,
        Err(problem) => {
            tracing::error!("webhook {name}: cannot read the messages: {}", problem.detail);
            return false;
        }
    };
    let Some(message) = due else { return false };
    let delivery = deliver(&server.webhooks[index], &message.id, &message.body, now).await;
    let attempted = after_attempt(delivery, message.attempts, SystemTime::now());
    match &attempted {
        Attempted::Delivered => tracing::info!("webhook {name}: delivered {}", message.id),
        Attempted::Later(_, why) => tracing::warn!("webhook {name}: {}: {why}; windlass will try again", message.id),
        Attempted::GivenUp(why) => tracing::error!("webhook {name}: {}: {why}; windlass gives it up", message.id),
    }
    let is_delivered = attempted == Attempted::Delivered;
    let record = move |server: &Server| {
        let name = &server.webhooks[index].name;
        Ok(server.access.lock().record_webhook_attempt(name, &message.id, &attempted, SystemTime::now())?)
    };
    match server.blocking(record).await {
        Ok(()) => is_delivered,
        Err(problem) => {
            tracing::error!("webhook {name}: cannot write down what became of a message: {}", problem.detail);
            false
        }
    }
}

fn longest_pause() -> Duration {
    Duration::from_secs(PAUSES.iter().copied().max().unwrap_or_default())
}

/// `attempts`: those before this one.
fn after_attempt(delivery: Delivery, attempts: u32, now: SystemTime) -> Attempted {
    match delivery {
        Delivery::Delivered => Attempted::Delivered,
        Delivery::Gone(why) => Attempted::GivenUp(why),
        Delivery::Failed(why) => match usize::try_from(attempts).ok().and_then(|attempts| PAUSES.get(attempts)) {
            Some(pause) => Attempted::Later(now + Duration::from_secs(*pause), why),
            None => Attempted::GivenUp(why),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_tried_for_a_day_and_then_given_up() {
        let mut now = SystemTime::UNIX_EPOCH;
        let mut attempts = 0;
        while let Attempted::Later(next, why) = after_attempt(Delivery::Failed("why".into()), attempts, now) {
            assert_eq!(why, "why");
            (now, attempts) = (next, attempts + 1);
        }
        let hours = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 3600;
        assert_eq!((attempts, hours), (10, 27));
        let given_up = Attempted::GivenUp("why".into());
        assert_eq!(after_attempt(Delivery::Failed("why".into()), attempts, now), given_up);
        assert_eq!(after_attempt(Delivery::Gone("why".into()), 0, now), given_up);
        assert_eq!(after_attempt(Delivery::Delivered, 3, now), Attempted::Delivered);
    }
}
