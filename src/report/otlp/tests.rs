//! The tree of spans, and a collector that works, refuses, hangs or does not run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value as Plain, json};

use super::super::example_run;
use super::*;

/// What a collector was sent: the head of each request, and its body.
type Requests = std::sync::mpsc::Receiver<(String, Plain)>;

/// A collector that gives every request the same answer. Its address, and what it gets.
fn collector(status: &'static str, answer: &'static str) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).unwrap();
            }
            let length = head.to_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            stream.get_mut().write_all(reply.as_bytes()).unwrap();
            if sender.send((head, serde_json::from_slice(&body).unwrap())).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn settings(address: &str, variables: &[(&str, &str)]) -> OtlpSettings {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
    OtlpSettings::from_option(Some(address), find).unwrap().unwrap()
}

/// Reports a run; returns the warnings at its end.
async fn reported(settings: OtlpSettings, events: Vec<crate::engine::TimedEvent>) -> Vec<String> {
    let (mut traces, exporter) = open_traces(settings);
    events.iter().for_each(|reported| traces.event(reported.at, &reported.event).unwrap());
    traces.end().unwrap();
    drop(traces);
    exporter.flush().await
}

fn spans(request: &Plain) -> Vec<Plain> {
    request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn named<'a>(spans: &'a [Plain], name: &str) -> &'a Plain {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
}

fn attribute(span: &Plain, key: &str) -> Plain {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|pair| pair["key"] == key).unwrap_or_else(|| panic!("no {key} in {span:#}"))["value"].clone()
}

#[tokio::test]
async fn a_run_is_a_tree_of_run_play_task_and_hosts_with_its_real_times() {
    let (address, requests) = collector("200 OK", "{}");
    let variables = [
        ("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k1"),
        ("OTEL_SERVICE_NAME", "nightly"),
    ];
    assert_eq!(reported(settings(&address, &variables), example_run::example_events()).await, Vec::<String>::new());
    let (head, request) = requests.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("x-key: k1\r\n") && head.contains("content-type: application/json\r\n"), "{head}");
    assert_eq!(attribute(&request["resourceSpans"][0]["resource"], "service.name"), json!({"stringValue": "nightly"}));
    let spans = spans(&request);
    assert_eq!(spans.len(), 5);
    let [run, play, task] = ["windlass", "play Cluster", "etcd : Start it"].map(|name| named(&spans, name));
    let [h1, h2] = ["h1: etcd : Start it", "h2: etcd : Start it"].map(|name| named(&spans, name));
    assert_eq!(run["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(play["parentSpanId"], run["spanId"]);
    assert_eq!(task["parentSpanId"], play["spanId"]);
    assert_eq!((&h1["parentSpanId"], &h2["parentSpanId"]), (&task["spanId"], &task["spanId"]));
    assert!(spans.iter().all(|span| span["traceId"] == "0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(h1["startTimeUnixNano"], "1700000002000000000");
    assert_eq!(h1["endTimeUnixNano"], "1700000004000000000");
    assert_eq!(task["endTimeUnixNano"], "1700000006000000000");
    assert_eq!(attribute(h1, "windlass.status"), json!({"stringValue": "changed"}));
    assert_eq!(attribute(h1, "windlass.changed"), json!({"boolValue": true}));
    assert_eq!(attribute(h2, "windlass.host"), json!({"stringValue": "h2"}));
    assert_eq!(attribute(task, "windlass.module"), json!({"stringValue": "command"}));
    assert_eq!(attribute(task, "code.line.number"), json!({"intValue": "4"}));
    assert!(h1["status"].is_null());
    assert_eq!(h2["status"], json!({"code": 2, "message": "no <such> unit & no hope"}));
    assert_eq!(run["status"], json!({"code": 2, "message": "a task failed"}));
}

#[tokio::test]
async fn a_run_that_was_cut_short_has_all_its_spans_too() {
    let (address, requests) = collector("200 OK", "{}");
    reported(settings(&address, &[]), example_run::example_events().into_iter().take(5).collect()).await;
    let spans = spans(&requests.recv_timeout(Duration::from_secs(60)).unwrap().1);
    assert_eq!(spans.len(), 5);
    assert_eq!(named(&spans, "windlass")["status"], json!({"code": 2, "message": "stopped"}));
    assert!(named(&spans, "windlass")["parentSpanId"].is_null());
}

#[tokio::test]
async fn many_spans_go_in_several_requests() {
    let (address, requests) = collector("200 OK", "{}");
    let task = Arc::new(example_run::task(1, "T"));
    let results = (0..600)
        .map(|number| example_run::ended(&task, &format!("h{number}"), example_run::result(crate::engine::Status::Ok)));
    let events = [example_run::play("p"), Event::TaskStart(task.clone())].into_iter().chain(results).collect();
    assert_eq!(reported(settings(&address, &[]), example_run::apart(events)).await, Vec::<String>::new());
    let counts = [(); 2].map(|()| spans(&requests.recv_timeout(Duration::from_secs(60)).unwrap().1).len());
    assert_eq!(counts, [512, 91]);
}

#[tokio::test]
async fn a_collector_that_is_down_is_one_warning() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let warnings = reported(settings(&format!("http://{free}"), &[]), example_run::example_events()).await;
    assert_eq!(warnings.len(), 1);
    let expected = format!("cannot send 5 spans to {free}: cannot connect to {free}: Connection refused");
    assert!(warnings[0].starts_with(&expected), "{warnings:?}");
}

#[tokio::test]
async fn a_collector_that_refuses_is_one_warning() {
    let (address, _requests) = collector("401 Unauthorized", "");
    let warnings = reported(settings(&address, &[]), example_run::example_events()).await;
    assert!(warnings.len() == 1 && warnings[0].ends_with(": it responded 401 Unauthorized"), "{warnings:?}");
    let (address, _requests) =
        collector("200 OK", r#"{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}"#);
    let warnings = reported(settings(&address, &[]), example_run::example_events()).await;
    assert!(
        warnings.len() == 1 && warnings[0].contains("2 spans") && warnings[0].ends_with(": too old"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_collector_that_hangs_holds_nobody_up_for_longer_than_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let ends_after = |limit: &'static str| {
        reported(settings(&address, &[("OTEL_EXPORTER_OTLP_TIMEOUT", limit)]), example_run::example_events())
    };
    let warnings = tokio::select! {
        warnings = ends_after("300") => warnings,
        _ = ends_after("60000") => panic!("300 ms took longer than a minute"),
    };
    let slow = warnings.len() == 1
        && warnings[0].starts_with("cannot send 5 spans")
        && warnings[0].ends_with(" timed out after 300ms");
    assert!(slow, "{warnings:?}");
}

/// A collector behind TLS with its own certificate; its address and the certificate.
async fn secure_collector() -> (String, String) {
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Who does not trust the certificate leaves here.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = vec![0; 65536];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(bytes[..count].starts_with(b"POST /v1/traces "));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            stream.shutdown().await.ok();
        }
    });
    (address, own.cert.pem())
}

#[tokio::test]
async fn a_collector_behind_tls_is_trusted_by_the_named_authority_and_by_no_other() {
    let (address, certificate) = secure_collector().await;
    let (_, stranger) = secure_collector().await;
    let directory = tempfile::tempdir().unwrap();
    let warnings = async |text: &str| {
        let path = directory.path().join("ca.pem");
        std::fs::write(&path, text).unwrap();
        let variables = [("OTEL_EXPORTER_OTLP_CERTIFICATE", path.to_str().unwrap())];
        reported(settings(&address, &variables), example_run::example_events()).await
    };
    assert_eq!(warnings(&certificate).await, Vec::<String>::new());
    assert!(warnings(&stranger).await[0].contains("invalid peer certificate"));
    assert!(warnings("nothing").await[0].ends_with("ca.pem has no certificate in PEM format"));
}
