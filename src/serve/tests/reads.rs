//! Files of deployments: which are read, and how often.

use super::*;

#[tokio::test]
async fn a_document_that_has_not_changed_is_read_once() {
    let fixture = Fixture::new();
    let token = fixture.token("see@*");
    let list = async || shown(&fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await);
    assert_eq!(list().await, "200");
    let read = fixture.server.documents_read.reads_so_far();
    assert_eq!(list().await, "200");
    assert_eq!(fixture.server.documents_read.reads_so_far(), read);
    let path = fixture.directory.path().join("deployments/prod.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}# changed\n")).unwrap();
    assert_eq!(list().await, "200");
    assert_eq!(fixture.server.documents_read.reads_so_far(), read.map(|count| count + 1));
    // Documents that a login may not see are not read for it.
    let editor = fixture.token("see@new edit@new");
    let (path, absent) = ("/api/v1/deployments/new/document", [("if-none-match", "*")]);
    let put = fixture.ask_as("application/yaml", "PUT", path, Some(&editor), &absent, STORED_DOCUMENT).await;
    assert_eq!(shown(&put), "201");
    let read = fixture.server.documents_read.reads_so_far();
    let other = fixture.token("see@prod");
    assert_eq!(shown(&fixture.ask("GET", "/api/v1/deployments", Some(&other), None).await), "200");
    assert_eq!(shown(&fixture.ask("GET", "/api/v1/deployments/prod", Some(&token), None).await), "200");
    assert_eq!(fixture.server.documents_read.reads_so_far(), read);
    assert_eq!(list().await, "200");
    assert_eq!(fixture.server.documents_read.reads_so_far()[0], read[0] + 1);
}
