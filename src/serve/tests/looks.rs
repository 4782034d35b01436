//! Looks at deployments: what they found is read once, and not if it is too long.

use super::*;

fn look(fixture: &Fixture, printed: &str, seconds: u64) -> RunId {
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "status", Some("prod"), seconds);
    print(store.as_mut(), run, printed);
    end_run(store.as_mut(), run);
    run
}

fn print(store: &mut dyn RunStore, run: RunId, text: &str) {
    let line = serde_json::json!({"event": "message", "stream": "stdout", "text": text}).to_string();
    record(store, run, &[(1, line)]);
}

#[tokio::test]
async fn a_look_is_read_once() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod");
    let status = async || {
        let list = fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await.json();
        list["items"][0]["status"].clone()
    };
    let run = look(&fixture, r#"{"healthy": false, "wrong": ["etcd on h1: no leader"]}"#, 0);
    let found = status().await;
    let expected = serde_json::json!(["etcd on h1: no leader"]);
    assert_eq!((&found["wrong"], &found["run"]), (&expected, &Json::from(run.to_string())));
    // What is recorded now would be read if it were read again.
    let line = serde_json::json!({"event": "message", "stream": "stdout", "text": "no JSON"}).to_string();
    record(fixture.store().as_mut(), run, &[(2, line)]);
    assert_eq!(status().await, found);
    let later = look(&fixture, r#"{"healthy": true, "wrong": []}"#, 10);
    assert_eq!(
        (&status().await["healthy"], &status().await["run"]),
        (&Json::from(true), &Json::from(later.to_string()))
    );
}

#[tokio::test]
async fn a_look_that_is_too_long_has_no_result() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod");
    let long = serde_json::json!({"healthy": true, "wrong": ["x".repeat(4 << 20)]}).to_string();
    let run = look(&fixture, &long, 0);
    let list = fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await;
    assert!(list.text.len() < 10_000, "{}", list.text.len());
    let status = &list.json()["items"][0]["status"];
    assert_eq!((&status["healthy"], &status["run"]), (&Json::from(false), &Json::from(run.to_string())));
    let answer = fixture.ask("GET", "/api/v1/deployments/prod/status", Some(&token), None).await;
    assert_eq!(answer.code(), "NoStatus");
}

#[tokio::test]
async fn what_a_plan_printed_is_left_out_if_it_is_too_long() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod");
    let (run, _) = super::plans::save_by(&fixture, &super::plans::differing_plan(), "alice", 0);
    print(fixture.store().as_mut(), RunId::parse_id(&run).unwrap(), &"x".repeat(5 << 20));
    let shown = fixture.ask("GET", &format!("/api/v1/plans/{run}"), Some(&token), None).await.json();
    assert_eq!(shown["text"], "[what it printed is too long: windlass logs shows all of it]\n");
}
