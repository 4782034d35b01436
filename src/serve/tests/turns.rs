//! Requests that work for long: what a login that sends many of them leaves to others.

use super::super::documents::hold_documents;
use super::*;

const PATH: &str = "/api/v1/deployments/new/document";

/// Sends a document, and does not wait for the answer.
fn put(fixture: &Arc<Fixture>, token: &str, text: &str) -> tokio::task::JoinHandle<Answered> {
    let (fixture, token, text) = (fixture.clone(), token.to_owned(), text.to_owned());
    tokio::spawn(async move {
        fixture.ask_as("application/yaml", "PUT", PATH, Some(&token), &[("if-none-match", "*")], &text).await
    })
}

/// A check takes long, and those who write credentials wait for the same lock.
#[tokio::test]
async fn a_document_is_checked_before_others_have_to_wait() {
    let fixture = Arc::new(Fixture::new());
    let token = fixture.token("see@new edit@new");
    let held = hold_documents(&fixture.server).unwrap();
    let wrong = STORED_DOCUMENT.replace("bundle: karmada", "bundel: karmada");
    let refused = tokio::time::timeout(Duration::from_secs(60), put(&fixture, &token, &wrong)).await;
    drop(held);
    assert_eq!(shown(&refused.expect("it waits for the lock").unwrap()), "422 InvalidDocument");
}

#[tokio::test]
async fn a_login_with_many_requests_keeps_nobody_out() {
    let fixture = Arc::new(Fixture::new());
    let [one, other] = [(); 2].map(|()| fixture.token("see@* edit@* stop@*"));
    let held = hold_documents(&fixture.server).unwrap();
    let mut sent: Vec<_> = (0..33).map(|_| put(&fixture, &one, STORED_DOCUMENT)).collect();
    let refused = loop {
        if let Some(at) = sent.iter().position(|sent| sent.is_finished()) {
            break sent.swap_remove(at).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(
        (shown(&refused).as_str(), &refused.headers["retry-after"]),
        ("429 TooManyRequests", &"5".parse().unwrap())
    );
    let session = fixture.ask("GET", "/api/v1/session", Some(&one), None).await;
    assert_eq!(session.status, 200);
    let run = start_run(fixture.store().as_mut(), "apply", Some("new"), 0);
    end_run(fixture.store().as_mut(), run);
    let stopped = fixture.ask("POST", &format!("/api/v1/runs/{run}/stop"), Some(&one), None).await;
    assert_eq!(shown(&stopped), "409 NotRunning");
    let list = fixture.ask("GET", "/api/v1/deployments", Some(&other), None).await;
    assert_eq!(list.status, 200);
    // A client that leaves counts until its request has been answered.
    sent.iter().for_each(tokio::task::JoinHandle::abort);
    let again = async || fixture.ask("GET", "/api/v1/deployments", Some(&one), None).await.status.as_u16();
    assert_eq!(again().await, 429);
    drop(held);
    let free = async {
        while again().await != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), free).await.expect("it has no turn");
}
