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
