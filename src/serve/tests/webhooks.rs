//! Messages to webhooks, received by a server of the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::runs::RecordedRun;
use crate::serve::access::Attempted;
use crate::serve::webhooks::send_messages;
use crate::value::ProcessEnvironment;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A request that arrived: its headers, in lower case, and its body.
struct Arrived {
    headers: Vec<(String, String)>,
    body: String,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver that answers with these codes in turn, and with 204 afterwards.
fn receiver(codes: &[u16]) -> (u16, Receiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, arrived) = channel();
    let codes = codes.to_vec();
    std::thread::spawn(move || {
        let mut codes = codes.into_iter();
        for stream in listener.incoming() {
            receive(stream.unwrap(), codes.next().unwrap_or(204), &sender);
        }
    });
    (port, arrived)
}

fn receive(mut stream: TcpStream, code: u16, sender: &Sender<Arrived>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.push((name.to_lowercase(), value.to_owned()));
        }
    }
    let mut arrived = Arrived { headers, body: String::new() };
    let mut body = vec![0; arrived.header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    arrived.body = String::from_utf8(body).unwrap();
    write!(stream, "HTTP/1.1 {code} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    // The test may be over.
    drop(sender.send(arrived));
}

fn write_webhooks(directory: &std::path::Path, text: &str) -> PathBuf {
    let path = directory.join("webhooks.yaml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A server with webhooks, written as in the file.
fn fixture_with(webhooks: &str) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = write_webhooks(directory.path(), webhooks);
    let webhooks = read_webhooks(&path, &ProcessEnvironment::default()).unwrap();
    Fixture::with(|options| options.webhooks = webhooks)
}

fn standard(port: u16, more: &str) -> String {
    format!("webhooks: [{{name: ops, url: 'http://127.0.0.1:{port}/in/SeCrEt', secret: {SECRET}{more}}}]\n")
}

/// Records the end of a run that has just started.
fn ended_run(store: &mut dyn RunStore, command: &str, deployment: Option<&str>, outcome: RunOutcome) -> RecordedRun {
    let run = start_run(store, command, deployment, 0);
    let exit_code = if outcome == RunOutcome::Succeeded { 0 } else { 2 };
    store.record_end(run, &RunEnd { ended: SystemTime::now(), outcome, exit_code, complete: true }).unwrap();
    store.read_run(run).unwrap().unwrap()
}

fn next(arrived: &Receiver<Arrived>) -> Arrived {
    arrived.recv_timeout(LONGEST_WAIT).expect("a message arrives")
}

/// What `GET /webhooks` says, when a condition holds.
async fn state_when(fixture: &Fixture, holds: impl Fn(&Json) -> bool) -> Json {
    let token = fixture.token("admin@*");
    let begun = std::time::Instant::now();
    loop {
        let answer = fixture.ask("GET", "/api/v1/webhooks", Some(&token), None).await;
        assert!(!answer.text.contains("SeCrEt") && !answer.text.contains("whsec"), "{}", answer.text);
        let state = answer.json()["items"][0].clone();
        if holds(&state) {
            return state;
        }
        assert!(begun.elapsed() < LONGEST_WAIT, "{state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_is_told_once_and_signed() {
    let (port, arrived) = receiver(&[]);
    let fixture = fixture_with(&standard(port, ", deployments: [prod]"));
    let mut store = fixture.store();
    ended_run(store.as_mut(), "apply", Some("prod"), RunOutcome::Succeeded);
    ended_run(store.as_mut(), "apply", Some("test"), RunOutcome::Failed);
    ended_run(store.as_mut(), "playbook", None, RunOutcome::Failed);
    let failed = ended_run(store.as_mut(), "etcd backup", Some("prod"), RunOutcome::Unreachable);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));

    let message = next(&arrived);
    let id = format!("run-failed-{}", failed.start.id);
    assert_eq!(message.header("webhook-id"), id);
    let json = message.json();
    assert_eq!(json["type"], "run.failed");
    assert_eq!(json["data"]["run"]["outcome"], "unreachable");
    assert_eq!(json["data"]["run"]["command"], "etcd backup");
    assert_eq!(json["data"]["url"], format!("http://127.0.0.1:7480/#/runs/{}", failed.start.id));
    // As a receiver checks it.
    let signed = format!("{id}.{}.{}", message.header("webhook-timestamp"), message.body);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"01234567890123456789012345678901");
    let encoded = message.header("webhook-signature").strip_prefix("v1,").unwrap();
    let signature = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, encoded).unwrap();
    ring::hmac::verify(&key, signed.as_bytes(), &signature).unwrap();

    // Another one shows that nothing was to come before it.
    let second = ended_run(store.as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    assert_eq!(next(&arrived).header("webhook-id"), format!("run-failed-{}", second.start.id));
    let state = state_when(&fixture, |state| state["waiting"] == 0 && !state["last_delivered"].is_null()).await;
    assert_eq!(state["name"], "ops");
    assert_eq!(state["address"], format!("127.0.0.1:{port}"));
    assert_eq!(state["last_error"], Json::Null);
    sending.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_waits_until_the_receiver_is_back() {
    let (port, arrived) = receiver(&[503]);
    let fixture = fixture_with(&standard(port, ""));
    let run = ended_run(fixture.store().as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    let first = next(&arrived);
    let state = state_when(&fixture, |state| !state["last_error"].is_null()).await;
    assert_eq!(state["last_error"], "it responded 503");
    assert_eq!(state["waiting"], 1);
    assert_eq!(state["last_delivered"], Json::Null);
    // The pause after a first attempt is five seconds.
    let again = next(&arrived);
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(again.body, first.body);
    let state = state_when(&fixture, |state| state["waiting"] == 0).await;
    assert_eq!((&state["last_error"], &state["given_up"]), (&Json::Null, &Json::from(0)));
    assert_eq!(again.header("webhook-id"), format!("run-failed-{}", run.start.id));
    sending.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_gets_a_message_once() {
    let (port, arrived) = receiver(&[410]);
    let fixture = fixture_with(&standard(port, ", events: [run.succeeded]"));
    ended_run(fixture.store().as_mut(), "apply", Some("prod"), RunOutcome::Succeeded);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    assert_eq!(next(&arrived).json()["type"], "run.succeeded");
    let state = state_when(&fixture, |state| state["given_up"] == 1).await;
    assert_eq!(state["waiting"], 0);
    sending.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_process_died_is_told() {
    let (port, arrived) = receiver(&[]);
    let fixture = fixture_with(&standard(port, ""));
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "upgrade", Some("prod"), 0);
    // The store that held it is gone with its process.
    drop(store);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    let json = next(&arrived).json();
    assert_eq!(json["data"]["run"]["id"], run.to_string());
    assert_eq!(json["data"]["run"]["outcome"], "interrupted");
    assert_eq!(json["data"]["run"]["exit_code"], Json::Null);
    sending.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_while_the_server_was_down_is_told_and_what_was_before_is_not() {
    let (port, arrived) = receiver(&[]);
    let plain = Fixture::new();
    ended_run(plain.store().as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    std::thread::sleep(Duration::from_millis(5));
    let now = SystemTime::now();
    let mut access = plain.server.access.lock();
    access.keep_webhooks(&["ops"], now).unwrap();
    drop(access);
    let later = ended_run(plain.store().as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    // The next server, with the same store.
    let state = plain.directory.path().join("state");
    let path = write_webhooks(plain.directory.path(), &standard(port, ""));
    let webhooks = read_webhooks(&path, &ProcessEnvironment::default()).unwrap();
    let fixture = Fixture::with(|options| (options.webhooks, options.directory) = (webhooks, state));
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    assert_eq!(next(&arrived).header("webhook-id"), format!("run-failed-{}", later.start.id));
    sending.abort();
}

#[tokio::test]
async fn a_webhook_that_is_removed_from_the_file_is_forgotten_after_a_month() {
    let fixture = fixture_with(&standard(9, ""));
    let mut access = fixture.server.access.lock();
    let now = SystemTime::now();
    let days = |days: u64| now + Duration::from_secs(days * 24 * 60 * 60);
    access.add_webhook_messages("ops", &[("a".into(), "{}".into())], now).unwrap();
    // A second server has none, or others.
    access.keep_webhooks(&[], days(29)).unwrap();
    access.keep_webhooks(&["other"], days(29)).unwrap();
    assert_eq!(access.webhook_record("ops", now).unwrap().waiting, 1);
    access.record_webhook_attempt("ops", "a", &Attempted::GivenUp("why".into()), now).unwrap();
    let given_up = |access: &mut AccessStore, at| access.webhook_record("ops", at).unwrap().given_up;
    assert_eq!((given_up(&mut access, days(29)), given_up(&mut access, days(31))), (1, 0));
    access.keep_webhooks(&["other"], days(31)).unwrap();
    assert_eq!(access.webhook_times("ops").unwrap(), None);
    assert!(!access.has_webhook_message("ops", "a").unwrap());
}

#[tokio::test]
async fn a_clock_that_was_ahead_keeps_no_message_back() {
    let fixture = fixture_with(&standard(9, ""));
    let mut access = fixture.server.access.lock();
    let now = SystemTime::now();
    let ahead = now + Duration::from_secs(400 * 24 * 60 * 60);
    access.add_webhook_messages("ops", &[("a".into(), "{}".into())], ahead).unwrap();
    assert_eq!(access.due_webhook_message("ops", now, DAY).unwrap().unwrap().id, "a");
    let soon = now + Duration::from_secs(60);
    access.record_webhook_attempt("ops", "a", &Attempted::Later(soon, "why".into()), now).unwrap();
    assert_eq!(access.due_webhook_message("ops", now, DAY).unwrap(), None);
    assert!(access.due_webhook_message("ops", soon, DAY).unwrap().is_some());
}

/// A receiver that answers, and then sends a body without an end.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, arrived) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = [0; 16];
            stream.read_exact(&mut first).unwrap();
            if sender.send(()).is_err() {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n").unwrap();
            std::thread::spawn(move || while stream.write_all(&[b'x'; 65536]).is_ok() {});
        }
    });
    let fixture = fixture_with(&standard(port, ""));
    ended_run(fixture.store().as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    arrived.recv_timeout(LONGEST_WAIT).unwrap();
    let state = state_when(&fixture, |state| !state["last_delivered"].is_null()).await;
    assert_eq!((&state["waiting"], &state["last_error"]), (&Json::from(0), &Json::Null));
    sending.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_waits_for_approval_is_told_with_its_digest() {
    use crate::deployment::plan::StageState;
    use crate::deployment::stage::Stage;
    let (port, arrived) = receiver(&[]);
    let fixture = fixture_with(&standard(port, ""));
    // A plan that is no longer the newest, one that changes nothing, and one that is damaged: nobody needs to approve these.
    super::plans::save(&fixture, &super::plans::differing_plan(), 0);
    super::plans::save(&fixture, &super::plans::plan(&[(Stage::Etcd, StageState::Same, "h1")]), 10);
    let (damaged, _) = super::plans::save(&fixture, &super::plans::differing_plan(), 20);
    let damaged = fixture.server.processes.plan_path(RunId::parse_id(&damaged).unwrap());
    std::fs::write(damaged, "{").unwrap();
    let wanted = super::plans::plan(&[(Stage::Removals, StageState::Differs, "m2")]);
    let (run, digest) = super::plans::save(&fixture, &wanted, 30);
    let sending = tokio::spawn(send_messages(fixture.server.clone()));
    let message = next(&arrived);
    assert_eq!(message.header("webhook-id"), format!("plan-ready-{run}"));
    let expected = serde_json::json!({"operation": "apply", "digest": digest, "removals": ["m2"]});
    assert_eq!(message.json()["data"]["plan"], expected);
    // Another one shows that nothing was to come before it.
    let failed = ended_run(fixture.store().as_mut(), "apply", Some("prod"), RunOutcome::Failed);
    assert_eq!(next(&arrived).header("webhook-id"), format!("run-failed-{}", failed.start.id));
    sending.abort();
}
