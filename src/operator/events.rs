//! Events about deployments, for `kubectl describe` and `kubectl get events`: what has changed between two states of the conditions.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::kubernetes::{error_text, limited};
use crate::resource::status::short_message;
use crate::resource::{Condition, Run};

/// A condition, its status when something is wrong, and the reasons of the events when that begins and ends.
const HEALTH: [(&str, &str, &str, &str); 8] = [
    ("Available", "False", "Unavailable", "Available"),
    ("HostsReachable", "False", "HostsUnreachable", "HostsReachable"),
    ("EtcdHealthy", "False", "EtcdUnhealthy", "EtcdHealthy"),
    ("ComponentsHealthy", "False", "ComponentsUnhealthy", "ComponentsHealthy"),
    ("MembersJoined", "False", "MembersNotReady", "MembersReady"),
    ("CertificatesValid", "False", "CertificatesExpire", "CertificatesValid"),
    ("Degraded", "True", "Degraded", "Recovered"),
    ("Drifted", "True", "Drifted", "DriftEnded"),
];

/// The event that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub is_warning: bool,
    pub reason: String,
    pub note: String,
}

/// What has happened between two states of the conditions of a deployment, with its Runs, the newest last. `was_installed`: a Run has
/// ended; before that, whatever is not installed yet is unhealthy, which is no news.
pub(super) fn news(before: &[Condition], now: &[Condition], was_installed: bool, runs: &[Arc<Run>]) -> Vec<News> {
    let find = |all: &[Condition], kind: &str| all.iter().find(|condition| condition.r#type == kind).cloned();
    let mut found = Vec::new();
    for (kind, wrong, begins, ends) in HEALTH {
        let Some(now) = find(now, kind) else { continue };
        let before = find(before, kind).map_or_else(|| "Unknown".to_owned(), |condition| condition.status);
        let is_news = was_installed || kind == "HostsReachable";
        if now.status == wrong && before != wrong && is_news {
            found.push(News { is_warning: true, reason: begins.to_owned(), note: now.message });
        } else if before == wrong && now.status != wrong && now.status != "Unknown" {
            found.push(News { is_warning: false, reason: ends.to_owned(), note: now.message });
        }
    }
    let (blocked, earlier) = (find(now, "Blocked"), find(before, "Blocked"));
    if let Some(blocked) = blocked.filter(|condition| condition.status == "True")
        && earlier.is_none_or(|earlier| (&earlier.reason, &earlier.message) != (&blocked.reason, &blocked.message))
        && !["Looking", "Queued"].contains(&blocked.reason.as_str())
    {
        let is_warning = ["PlanRefused", "BackOff", "ActionFailed"].contains(&blocked.reason.as_str());
        found.push(News { is_warning, reason: blocked.reason, note: blocked.message });
    }
    let is_progressing = |all: &[Condition]| find(all, "Progressing").is_some_and(|it| it.status == "True");
    match (is_progressing(before), is_progressing(now)) {
        (false, true) => {
            let note = find(now, "Progressing").map(|condition| condition.message).unwrap_or_default();
            found.push(News { is_warning: false, reason: "RunStarted".to_owned(), note });
        }
        (true, false) => found.extend(runs.iter().rev().find_map(|run| ended(run))),
        _ => {}
    }
    found
}

fn ended(run: &Run) -> Option<News> {
    let result = run.status.as_ref()?.succeeded()?;
    let name = run.metadata.name.as_deref().unwrap_or_default();
    let note = format!("{name}: {}: {}", result.reason, result.message);
    match result.status.as_str() {
        "True" => Some(News { is_warning: false, reason: "RunSucceeded".to_owned(), note }),
        "False" => Some(News { is_warning: true, reason: "RunFailed".to_owned(), note }),
        _ => None,
    }
}

/// As much of a text as an event may have.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(1000);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Sends events.
#[derive(Clone)]
pub(super) struct Sender(Recorder);

impl Sender {
    /// `host`: this machine, as others see it.
    pub(super) fn new(client: Client, host: &str) -> Sender {
        Sender(Recorder::new(
            client,
            Reporter { controller: "windlass-operator".to_owned(), instance: Some(host.to_owned()) },
        ))
    }

    /// Sends events in the background: nothing waits for them, and without the right to send them there are none.
    pub(super) fn send_events(&self, about: ObjectReference, news: Vec<News>) {
        if news.is_empty() {
            return;
        }
        let recorder = self.0.clone();
        tokio::spawn(async move {
            for News { is_warning, reason, note } in news {
                let event = Event {
                    type_: if is_warning { EventType::Warning } else { EventType::Normal },
                    reason,
                    note: Some(cut(&short_message(&note)).to_owned()),
                    action: "Reconcile".to_owned(),
                    secondary: None,
                };
                let sent = limited(async { Ok(recorder.publish(&event, &about).await) }).await;
                if let Err(error) = sent.and_then(|sent| sent.map_err(|error| error_text(&error))) {
                    tracing::debug!(error, "cannot send an event");
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
