//! The API as a program sees it: requests to the router, without a port.

mod accounts;
mod backups;
mod credentials;
mod documents;
mod guards;
mod logins;
mod looks;
mod matrix;
mod names;
mod operations;
mod plans;
mod proofs;
mod reads;
mod scans;
mod stops;
mod streams;
mod tls;
mod turns;
mod webhooks;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value as Json;
use tower::ServiceExt;

use super::sealed::SealingKey;
use super::*;
use crate::runs::{RecordedEvent, RunEnd, RunId, RunOutcome, RunStart, RunStore, RunSummary, open_store};
use crate::value::testing::write_program;

const DOCUMENT: &str = "apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: NAME}
spec:
  bundle: bundle
  hosts: [{name: cp-1, address: 192.0.2.1}]
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
";

/// One that may come through the API.
const STORED_DOCUMENT: &str = "apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: new}
spec:
  bundle: karmada
  hosts:
    - {name: cp-1, address: 192.0.2.1, fingerprint: 'SHA256:0123456789012345678901234567890123456789012'}
  ssh:
    password: {secret: {name: login, key: password}}
    hostKeys: strict
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
";

/// What the configuration allows to documents that come through the API.
fn limits() -> ForeignResourceLimits {
    ForeignResourceLimits {
        bundles: [("karmada".to_owned(), "/srv/karmada".into())].into(),
        ..ForeignResourceLimits::default()
    }
}

/// A server with the deployments prod and test, and a program that cannot start.
pub(super) struct Fixture {
    pub directory: tempfile::TempDir,
    pub server: Arc<Server>,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::with(|_| {})
    }

    /// With a key for credentials.
    pub(super) fn with_key(credentials_key: Option<SealingKey>) -> Fixture {
        Fixture::with(|options| options.credentials_key = credentials_key)
    }

    /// With other options.
    pub(super) fn with(change: impl FnOnce(&mut ServeOptions)) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let deployments = directory.path().join("deployments");
        std::fs::create_dir(&deployments).unwrap();
        for name in ["prod", "test"] {
            std::fs::write(deployments.join(format!("{name}.yaml")), DOCUMENT.replace("NAME", name)).unwrap();
        }
        let program = directory.path().join("program");
        write_program(&program, "#!/bin/sh\necho it cannot start >&2\nexit 1\n");
        let mut options = ServeOptions {
            listen: "127.0.0.1:7480".parse().unwrap(),
            socket: None,
            tls: None,
            hosts: Vec::new(),
            deployments,
            documents: directory.path().join("state/documents"),
            backups: None,
            keep_backups: None,
            backup_recipients: None,
            credentials_key: None,
            limits: limits(),
            directory: directory.path().join("state"),
            program,
            process_options: Vec::new(),
            max_runs: 4,
            author_may_not_approve: false,
            webhooks: Vec::new(),
        };
        change(&mut options);
        let tls = options.tls.clone().map(|files| super::tls::ServerTls::read_certificate(files).unwrap());
        let server = Server::open(options, "127.0.0.1:7480".parse().unwrap(), tls).unwrap();
        Fixture { directory, server }
    }

    pub(super) fn store(&self) -> Box<dyn RunStore> {
        open_store(&self.directory.path().join("state")).unwrap()
    }

    /// A token with these rights: `see@prod`, several behind each other.
    pub(super) fn token(&self, rights: &str) -> String {
        let all = rights_of(rights);
        let name = format!("t{}", rand::random::<u64>());
        let token = new_token(&name, all, 1, SystemTime::now()).unwrap();
        self.server.access.lock().create_token(&token).unwrap().unwrap()
    }

    /// A request with a token, if there is one.
    pub(super) async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: Option<Json>) -> Answered {
        let body = body.map_or_else(String::new, |body| body.to_string());
        self.ask_as("application/json", method, path, token, &[], &body).await
    }

    /// A request with a body of some type, and further headers.
    pub(super) async fn ask_as(
        &self,
        kind: &str,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        request = request.header("host", "127.0.0.1:7480").header("content-type", kind);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answered {
        let response = dispatch::router(self.server.clone()).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answered { status: parts.status, headers: parts.headers, text }
    }
}

fn rights_of(words: &str) -> Rights {
    let mut all = Rights::default();
    for word in words.split(' ') {
        let (right, deployment) = word.split_once('@').unwrap();
        all.0.entry(deployment.to_owned()).or_default().insert(Right::right_named(right).unwrap());
    }
    all
}

pub(super) struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answered {
    pub(super) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The status, and the code of a problem.
pub(super) fn shown(answer: &Answered) -> String {
    let code = if answer.text.starts_with('{') { answer.code() } else { String::new() };
    format!("{} {code}", answer.status.as_u16()).trim_end().to_owned()
}

/// Records the start of a run of a deployment, `seconds` after a fixed time.
pub(super) fn start_run(store: &mut dyn RunStore, command: &str, deployment: Option<&str>, seconds: u64) -> RunId {
    start_run_by(store, command, deployment, "alice@workstation", seconds)
}

fn start_run_by(store: &mut dyn RunStore, command: &str, deployment: Option<&str>, user: &str, seconds: u64) -> RunId {
    start_command(store, (command, false), deployment, user, seconds)
}

/// Records the start of a run of a command, which may be a dry run.
fn start_command(
    store: &mut dyn RunStore,
    (command, check): (&str, bool),
    deployment: Option<&str>,
    user: &str,
    seconds: u64,
) -> RunId {
    let started = UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds);
    let id = RunId::new_at(started);
    let start = RunStart {
        id,
        command: command.into(),
        command_line: format!("windlass {command}"),
        user: user.into(),
        pid: std::process::id(),
        version: "0.1.0".into(),
        check,
        started,
    };
    store.record_start(&start).unwrap();
    let summary = RunSummary { deployment: deployment.map(str::to_owned), ..RunSummary::default() };
    store.record_events(id, &[], &summary).unwrap();
    id
}

pub(super) fn record(store: &mut dyn RunStore, run: RunId, lines: &[(u64, String)]) {
    let events: Vec<RecordedEvent> =
        lines.iter().map(|(sequence, line)| RecordedEvent { sequence: *sequence, line: line.clone() }).collect();
    let summary = RunSummary { deployment: Some("prod".into()), ..RunSummary::default() };
    store.record_events(run, &events, &summary).unwrap();
}

pub(super) fn end_run(store: &mut dyn RunStore, run: RunId) {
    let end = RunEnd { ended: SystemTime::now(), outcome: RunOutcome::Succeeded, exit_code: 0, complete: true };
    store.record_end(run, &end).unwrap();
}
