//! Sends spans in batches, in the background: a run neither waits for the collector nor fails because of it.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value as Plain, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::settings::OtlpSettings;
use super::span::{Attribute, Span, attribute};
use crate::http::{self, Request, Tls, Url};

/// Spans that go in one request.
const BATCH: usize = 512;

/// How long a span waits for others.
const LINGER: Duration = Duration::from_secs(1);

/// What the last spans get when the run has ended.
const PARTING: Duration = Duration::from_secs(5);

/// Requests that failed one after the other, after which the collector is given up.
const PATIENCE: usize = 3;

/// Takes spans; never waits.
pub(super) struct Outbox(UnboundedSender<Span>);

impl Outbox {
    pub(super) fn send(&self, span: Span) {
        #[expect(clippy::let_underscore_must_use, reason = "the sending thread may have given up")]
        let _ = self.0.send(span);
    }
}

/// What sends in the background.
pub struct Exporter {
    work: JoinHandle<Vec<String>>,
    address: String,
}

impl Exporter {
    /// Waits for the last spans, for some seconds at the most. The outbox must be gone. The result is warnings.
    pub async fn flush(self) -> Vec<String> {
        match timeout(PARTING, self.work).await {
            Ok(Ok(warnings)) => warnings,
            Ok(Err(error)) => vec![format!("cannot send traces: {error}")],
            Err(_) => vec![format!(
                "cannot send all traces: {} did not accept them within {PARTING:?} after the run",
                self.address
            )],
        }
    }
}

/// Begins to send, on the runtime that this is called on.
pub(super) fn start_exporter(settings: OtlpSettings) -> (Outbox, Exporter) {
    let (sender, receiver) = unbounded_channel();
    let address = settings.url.address();
    let work = tokio::spawn(Sending::new(settings).run(receiver));
    (Outbox(sender), Exporter { work, address })
}

struct Sending {
    settings: OtlpSettings,
    tls: Result<Tls, String>,
    resource: Plain,
    lost: usize,
    /// The first reason for a loss.
    reason: Option<String>,
    failures: usize,
}

impl Sending {
    fn new(settings: OtlpSettings) -> Self {
        let tls = match settings.url.secure {
            true => trusted(settings.authorities.as_ref()),
            false => Ok(Tls::none()),
        };
        let resource = resource(&settings);
        Sending { settings, tls, resource, lost: 0, reason: None, failures: 0 }
    }

    async fn run(mut self, mut spans: UnboundedReceiver<Span>) -> Vec<String> {
        let mut batch = Vec::new();
        while spans.recv_many(&mut batch, BATCH).await > 0 {
            let until = Instant::now() + LINGER;
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                match timeout_at(until, spans.recv_many(&mut batch, room)).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
            self.send(&batch).await;
            batch.clear();
        }
        self.warnings()
    }

    async fn send(&mut self, batch: &[Span]) {
        if self.failures >= PATIENCE {
            self.lost += batch.len();
            return;
        }
        match self.post(batch).await {
            Ok(refused) => {
                self.failures = 0;
                if let Some((count, why)) = refused {
                    self.lost += count;
                    self.reason.get_or_insert(why);
                }
            }
            Err(why) => {
                self.failures += 1;
                self.lost += batch.len();
                self.reason.get_or_insert(why);
            }
        }
    }

    /// One request. Ok: how many spans the collector refused, and why.
    async fn post(&self, batch: &[Span]) -> Result<Option<(usize, String)>, String> {
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let request = self.request(batch);
        let answer = http::from_here(tls, &request, self.settings.timeout).await.map_err(|error| error.to_string())?;
        match answer.status {
            200..300 => Ok(refused(&answer.body)),
            status => Err(format!("it responded {status} {}", answer.reason)),
        }
    }

    fn request(&self, batch: &[Span]) -> Request {
        let spans: Plain = batch.iter().map(Span::span_json).collect();
        let scope = json!({"name": "windlass", "version": env!("CARGO_PKG_VERSION")});
        let body =
            json!({"resourceSpans": [{"resource": self.resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]});
        let mut headers = vec![("content-type".to_string(), "application/json".to_string())];
        headers.extend(login(&self.settings.url));
        headers.extend(self.settings.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_string())));
        let url = self.settings.url.clone();
        Request { method: "POST".to_string(), headers, body: body.to_string().into_bytes(), ..Request::get(url) }
    }

    fn warnings(self) -> Vec<String> {
        let mut warnings = self.settings.remarks;
        if self.lost > 0 {
            let why = self.reason.unwrap_or_default();
            let spans = if self.lost == 1 { "1 span".to_string() } else { format!("{} spans", self.lost) };
            warnings.push(format!("cannot send {spans} to {}: {why}", self.settings.url.address()));
        }
        warnings
    }
}

fn resource(settings: &OtlpSettings) -> Plain {
    let mut attributes =
        vec![("service.name", settings.service.as_str()), ("service.version", env!("CARGO_PKG_VERSION"))];
    attributes.extend(settings.resource.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let attributes: Plain = attributes.iter().map(|(key, value)| attribute(key, &Attribute::from(*value))).collect();
    json!({"attributes": attributes})
}

/// `user:password@` of an address, as a header.
fn login(url: &Url) -> Option<(String, String)> {
    let (user, password) = url.login.as_ref()?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    Some(("authorization".to_string(), format!("Basic {encoded}")))
}

/// What is trusted, and how to say so.
fn trusted(file: Option<&PathBuf>) -> Result<Tls, String> {
    let hint = |why| format!("{why}; set OTEL_EXPORTER_OTLP_CERTIFICATE to a file");
    Tls::from_here(file.map(PathBuf::as_path)).map_err(|why| if file.is_none() { hint(why) } else { why })
}

/// What a collector says of spans that it did not keep.
fn refused(body: &[u8]) -> Option<(usize, String)> {
    let answer: Plain = serde_json::from_slice(body).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = partial.get("rejectedSpans")?;
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)?;
    let why = partial.get("errorMessage").and_then(Plain::as_str).unwrap_or("it rejected them");
    Some((usize::try_from(count).unwrap_or(usize::MAX), why.to_string()))
}
