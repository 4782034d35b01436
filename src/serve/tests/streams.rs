//! Events as lists and as streams: nothing is lost or sent twice, whoever comes when.

use futures::StreamExt;

use super::*;

fn line(sequence: u64, host: &str, task: u64) -> (u64, String) {
    (sequence, format!(r#"{{"event":"result","sequence":{sequence},"host":"{host}","task":{{"id":{task}}}}}"#))
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// The ids of a stream's events, and whether it ended with the end of the run.
fn ids(text: &str) -> (Vec<u64>, bool) {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
    (ids, text.contains("event: end\ndata: {\"id\""))
}

async fn stream(fixture: &Fixture, path: &str, token: &str, headers: &[(&str, &str)]) -> Answered {
    let mut request = Request::builder().uri(path).header("host", "127.0.0.1:7480");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("accept", "text/event-stream").header("authorization", format!("Bearer {token}"));
    fixture.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_stream_of_a_run_that_has_ended_starts_where_it_is_asked_to() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "apply", Some("prod"), 0);
    for first in [1, 11, 21] {
        let lines: Vec<_> =
            (first..first + 10).map(|at| line(at, if at % 2 == 0 { "h2" } else { "h1" }, at % 3)).collect();
        record(store.as_mut(), run, &lines);
    }
    end_run(store.as_mut(), run);
    let token = fixture.token("see@prod");
    let path = format!("/api/v1/runs/{run}/events");
    let cases: [(&str, Headers<'_>, Vec<u64>); 6] = [
        ("", &[], (1..=30).collect()),
        ("?after=17", &[], (18..=30).collect()),
        ("?after=3", &[("last-event-id", "28")], vec![29, 30]),
        ("?after=30", &[], vec![]),
        ("?host=h2&task=1", &[], vec![4, 10, 16, 22, 28]),
        ("?host=nobody", &[], vec![]),
    ];
    for (query, headers, expected) in cases {
        let answer = stream(&fixture, &format!("{path}{query}"), &token, headers).await;
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        assert_eq!(answer.headers["x-accel-buffering"], "no");
        assert_eq!(ids(&answer.text), (expected, true), "{query} {headers:?}: {}", answer.text);
    }
    let list = fixture.ask("GET", &format!("{path}?after=28"), Some(&token), None).await.json();
    let sequences: Vec<u64> =
        list["items"].as_array().unwrap().iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!((sequences, list["next"].is_null()), (vec![29, 30], true));
}

#[tokio::test]
async fn a_long_list_of_events_comes_in_parts() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "apply", Some("prod"), 0);
    let lines: Vec<_> = (1..=1203).map(|at| line(at, "h1", 1)).collect();
    record(store.as_mut(), run, &lines);
    end_run(store.as_mut(), run);
    let token = fixture.token("see@prod");
    let (mut found, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let path = format!("/api/v1/runs/{run}/events?after={after}");
        let part = fixture.ask("GET", &path, Some(&token), None).await.json();
        let items = part["items"].as_array().unwrap();
        assert!(items.len() <= 500);
        found.extend(items.iter().map(|event| event["sequence"].as_u64().unwrap()));
        match part["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, (1..=1203).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_follow_a_live_run_lose_no_event() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "apply", Some("prod"), 0);
    record(store.as_mut(), run, &[line(1, "h1", 1)]);
    let token = fixture.token("see@prod");
    let path = format!("/api/v1/runs/{run}/events");
    // One that leaves early must not end what others follow.
    let early = Request::builder().uri(&path).header("host", "127.0.0.1:7480").header("accept", "text/event-stream");
    let early = early.header("authorization", format!("Bearer {token}")).body(Body::empty()).unwrap();
    let early = dispatch::router(fixture.server.clone()).oneshot(early).await.unwrap();
    let mut early = early.into_body().into_data_stream();
    assert!(early.next().await.is_some());
    drop(early);
    let followers: Vec<_> = (0..60).map(|_| stream(&fixture, &path, &token, &[])).collect();
    let write = async {
        for batch in 0..10u64 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            let lines: Vec<_> = (batch * 7 + 2..batch * 7 + 9).map(|at| line(at, "h1", 1)).collect();
            record(store.as_mut(), run, &lines);
        }
        end_run(store.as_mut(), run);
    };
    let (streams, ()) = tokio::join!(futures::future::join_all(followers), write);
    for answer in streams {
        assert_eq!(ids(&answer.text), ((1..=71).collect(), true));
    }
    assert!(fixture.server.follow.is_empty(), "a run is still followed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_token() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "apply", Some("prod"), 0);
    record(store.as_mut(), run, &[line(1, "h1", 1)]);
    let token = fixture.token("see@prod");
    let path = format!("/api/v1/runs/{run}/events");
    let revoke = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let name = fixture.server.access.lock().tokens().unwrap()[0].name.clone();
        fixture.server.access.lock().delete_token(&name).unwrap();
    };
    let (answer, ()) = tokio::join!(stream(&fixture, &path, &token, &[]), revoke);
    // The run is still under way.
    assert_eq!(ids(&answer.text), (vec![1], false), "{}", answer.text);
}
