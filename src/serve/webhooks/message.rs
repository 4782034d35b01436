//! What a message says, and its signature.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value as Json, json};
use sha2::Sha256;

use super::super::plans::PlanSummary;
use super::settings::{Webhook, WebhookEvent, WebhookFormat};
use crate::http::{HttpError, Request, head_from_here};
use crate::runs::{RecordedRun, timestamp_text};
use crate::value::terminal::alters_display;

/// How long an attempt to deliver a message may take.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(15);

/// The longest reason for a failure, in characters.
const LONGEST_REASON: usize = 200;

/// What happened.
pub(super) struct Occurrence<'a> {
    pub event: WebhookEvent,
    pub run: &'a RecordedRun,
    /// Of a plan: what is planned, its digest, and the members that it removes.
    pub plan: Option<PlanSummary>,
    /// Where the page shows it.
    pub url: String,
}

impl Occurrence<'_> {
    /// The same for each attempt, so that receivers can tell repeated messages. It has no dots: they separate what is signed.
    pub(super) fn message_id(&self) -> String {
        format!("{}-{}", self.event.event_name().replace('.', "-"), self.run.start.id)
    }

    /// The body of the message.
    pub(super) fn body(&self, format: WebhookFormat, now: SystemTime) -> String {
        match format {
            WebhookFormat::Standard => {
                let plan = self
                    .plan
                    .as_ref()
                    .map(|plan| json!({"operation": plan.operation, "digest": plan.digest, "removals": plan.removals}));
                let data = json!({"url": self.url, "run": self.run, "plan": plan});
                standard_body(self.event, &data, now)
            }
            WebhookFormat::Chat => chat_body(&self.sentence()),
        }
    }

    fn sentence(&self) -> String {
        let start = &self.run.start;
        let deployment = self.run.summary.deployment.as_deref().unwrap_or_default();
        let dry = if start.check { "dry run of " } else { "" };
        let what = format!("{dry}{} by {}", start.command, start.user);
        let planned = self.plan.as_ref().map(|plan| plan.operation.replace('_', " ")).unwrap_or_default();
        let ended = match (self.event, &self.plan) {
            (WebhookEvent::PlanReady, Some(plan)) if plan.removals.is_empty() => {
                return format!(
                    "{deployment}: a plan for {planned} by {} waits for approval: {}",
                    start.user, self.url
                );
            }
            (WebhookEvent::PlanReady, Some(plan)) => {
                let leaving = plan.removals.join(", ");
                return format!(
                    "{deployment}: a plan for {planned} by {} waits for approval; it removes {leaving}: {}",
                    start.user, self.url
                );
            }
            (WebhookEvent::RunSucceeded, _) => "succeeded".to_owned(),
            _ => match (self.run.outcome, self.run.exit_code) {
                (Some(outcome), Some(code)) => format!("ended: {} (exit code {code})", outcome.outcome_word()),
                (Some(outcome), None) => format!("ended: {}, its process died", outcome.outcome_word()),
                (None, _) => "ended".to_owned(),
            },
        };
        format!("{deployment}: {what} {ended}: {}", self.url)
    }
}

/// A message that only shows whether messages arrive.
pub(super) fn test_body(webhook: &Webhook, now: SystemTime) -> String {
    match webhook.format {
        WebhookFormat::Standard => standard_body(WebhookEvent::Test, &json!({}), now),
        WebhookFormat::Chat => chat_body("windlass: this message is a test"),
    }
}

fn standard_body(event: WebhookEvent, data: &Json, now: SystemTime) -> String {
    json!({"type": event, "timestamp": timestamp_text(now), "data": data}).to_string()
}

/// Chat services read `&`, `<` and `>` as their own: links and mentions are made of them.
fn chat_body(sentence: &str) -> String {
    let plain: String = sentence.chars().map(|c| if alters_display(c) { ' ' } else { c }).collect();
    let text = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({ "text": text }).to_string()
}

/// The value of the header `webhook-signature`.
fn signature(secret: &[u8], id: &str, seconds: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of HMAC may have any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

/// How a message was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    Delivered,
    /// It may be tried again.
    Failed(String),
    /// The receiver wants no more messages like it.
    Gone(String),
}

/// Sends a message once.
pub(super) async fn deliver(webhook: &Webhook, id: &str, body: &str, now: SystemTime) -> Delivery {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut headers = vec![
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("User-Agent".to_owned(), format!("windlass/{}", env!("CARGO_PKG_VERSION"))),
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), seconds.to_string()),
    ];
    if let Some(secret) = &webhook.secret {
        headers.push(("webhook-signature".to_owned(), signature(secret, id, seconds, body)));
    }
    let mut request = Request::get(webhook.url.clone());
    request.method = "POST".to_owned();
    request.headers = headers;
    request.body = body.as_bytes().to_vec();
    request.proxy.clone_from(&webhook.proxy);
    match head_from_here(&webhook.tls, &request, LONGEST_ATTEMPT).await {
        Ok(answer) => match answer.status {
            200..=299 => Delivery::Delivered,
            410 => Delivery::Gone("it responded 410 Gone".to_owned()),
            // Its words may repeat the address.
            status => Delivery::Failed(format!("it responded {status}")),
        },
        // What the other side wrote into its answer is no part of these.
        Err(HttpError::Protocol { address, .. }) => Delivery::Failed(format!("invalid response from {address}")),
        // A proxy may say much.
        Err(error) => Delivery::Failed(error.to_string().chars().take(LONGEST_REASON).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{RunId, RunOutcome, RunStart, RunSummary};

    fn run(user: &str, outcome: RunOutcome, exit_code: Option<u8>) -> RecordedRun {
        let started = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        RecordedRun {
            start: RunStart {
                id: RunId::new_at(started),
                command: "apply".into(),
                command_line: "windlass apply".into(),
                user: user.into(),
                pid: 1,
                version: "0.1.0".into(),
                check: false,
                started,
            },
            summary: RunSummary { deployment: Some("prod".into()), ..RunSummary::default() },
            running: false,
            ended: Some(started),
            outcome: Some(outcome),
            exit_code,
            complete: true,
            last_sequence: 1,
        }
    }

    fn sentence(event: WebhookEvent, run: &RecordedRun, removals: Option<&[&str]>) -> String {
        let plan = removals.map(|removals| PlanSummary {
            operation: "apply".into(),
            digest: "d".into(),
            removals: removals.iter().map(|name| (*name).to_owned()).collect(),
        });
        Occurrence { event, run, plan, url: "https://ops-1/#/runs/1".into() }.sentence()
    }

    /// The key, message and signature are an example of the Standard Webhooks' own specification.
    #[test]
    fn the_signature_is_that_of_the_specification() {
        let secret = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_sentence_says_what_happened() {
        let failed = run("alice", RunOutcome::Unreachable, Some(4));
        assert_eq!(
            sentence(WebhookEvent::RunFailed, &failed, None),
            "prod: apply by alice ended: unreachable (exit code 4): https://ops-1/#/runs/1"
        );
        let died = run("alice", RunOutcome::Interrupted, None);
        assert_eq!(
            sentence(WebhookEvent::RunFailed, &died, None),
            "prod: apply by alice ended: interrupted, its process died: https://ops-1/#/runs/1"
        );
        let fine = run("alice", RunOutcome::Succeeded, Some(0));
        assert_eq!(
            sentence(WebhookEvent::PlanReady, &fine, Some(&["north", "south"])),
            "prod: a plan for apply by alice waits for approval; it removes north, south: https://ops-1/#/runs/1"
        );
    }

    #[test]
    fn names_make_no_links_in_a_chat() {
        let run = run("<!channel> & <https://evil|x>\n\u{202e}", RunOutcome::Succeeded, Some(0));
        let occurrence = Occurrence {
            event: WebhookEvent::RunSucceeded,
            run: &run,
            plan: None,
            url: "https://ops-1/#/runs/1".into(),
        };
        let body: Json = serde_json::from_str(&occurrence.body(WebhookFormat::Chat, UNIX_EPOCH)).unwrap();
        assert_eq!(
            body["text"],
            "prod: apply by &lt;!channel&gt; &amp; &lt;https://evil|x&gt;   succeeded: https://ops-1/#/runs/1"
        );
    }

    #[test]
    fn an_id_stays_the_same_and_has_no_dots() {
        let run = run("alice", RunOutcome::Failed, Some(2));
        let of = |event| Occurrence { event, run: &run, plan: None, url: String::new() }.message_id();
        assert_eq!(of(WebhookEvent::RunFailed), format!("run-failed-{}", run.start.id));
        assert!(!of(WebhookEvent::PlanReady).contains('.'));
    }
}
