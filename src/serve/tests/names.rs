//! Whose a name is: a person's file keeps its own.

use super::super::documents::prepare_documents;
use super::*;

impl Fixture {
    async fn change(&self, method: &str, name: &str, tag: Option<&str>) -> Answered {
        let kind = if method == "PUT" { "application/yaml" } else { "application/json" };
        let text = if method == "PUT" {
            STORED_DOCUMENT.replace("name: new", &format!("name: {name}"))
        } else {
            String::new()
        };
        let header = tag.map_or(("if-none-match", "*"), |tag| ("if-match", tag));
        let path = format!("/api/v1/deployments/{name}/document");
        self.ask_as(kind, method, &path, Some(&self.token("see@* edit@*")), &[header], &text).await
    }

    fn own_file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("deployments").join(name)
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_keeps_its_name() {
    let fixture = Fixture::new();
    // Half written; with its name in the text only; away; and one with a second deployment.
    std::fs::write(fixture.own_file("half.yaml"), "apiVersion: [").unwrap();
    std::fs::write(fixture.own_file("file.yml"), DOCUMENT.replace("NAME", "inside").replace("bundle:", "bundel:"))
        .unwrap();
    std::os::unix::fs::symlink("/nonexistent/away.yaml", fixture.own_file("away.yaml")).unwrap();
    let two = ["first", "second"].map(|name| DOCUMENT.replace("NAME", name)).join("---\n");
    std::fs::write(fixture.own_file("two.yaml"), two).unwrap();
    for (name, file) in [("half", "half.yaml"), ("inside", "file.yml"), ("away", "away.yaml"), ("second", "two.yaml")] {
        let answer = fixture.change("PUT", name, None).await;
        assert_eq!(shown(&answer), "409 OwnFile", "{name}");
        assert!(answer.json()["detail"].as_str().unwrap().starts_with(file), "{name}: {}", answer.text);
    }
    // A part of a longer word is no mention, and a file that can be used has its own name only.
    for name in ["insid", "inside-2", "cp-1"] {
        let expected = if name == "cp-1" { "409 OwnFile" } else { "201" };
        assert_eq!(shown(&fixture.change("PUT", name, None).await), expected, "{name}");
    }
    for file in ["half.yaml", "file.yml", "away.yaml", "two.yaml"] {
        std::fs::remove_file(fixture.own_file(file)).unwrap();
    }
    for name in ["half", "inside", "away", "second", "cp-1"] {
        assert_eq!(shown(&fixture.change("PUT", name, None).await), "201", "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_read_keeps_its_name() {
    let fixture = Fixture::new();
    for at in 0..1000 {
        std::fs::write(fixture.own_file(&format!("b{at}.yaml")), "- hosts: all\n").unwrap();
    }
    std::fs::write(fixture.own_file("z.yaml"), DOCUMENT.replace("NAME", "last")).unwrap();
    assert_eq!(shown(&fixture.change("PUT", "last", None).await), "409 OwnFile");
    assert_eq!(shown(&fixture.change("PUT", "other", None).await), "201");
}

#[test]
fn documents_and_files_of_people_are_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let deployments = root.join("deployments");
    std::fs::create_dir(&deployments).unwrap();
    std::os::unix::fs::symlink(&deployments, root.join("link")).unwrap();
    for documents in
        ["deployments", "deployments/documents", "", "link", "link/documents", "deployments-2/../deployments"]
    {
        std::fs::create_dir_all(root.join("deployments-2")).unwrap();
        let refused = prepare_documents(&root.join(documents), &deployments).unwrap_err();
        assert!(matches!(refused, ServeError::Overlap { .. }), "{documents}: {refused}");
        assert!(refused.to_string().contains("must be apart"), "{refused}");
    }
    assert_eq!(prepare_documents(&root.join("deployments-2"), &deployments).unwrap(), root.join("deployments-2"));
}

#[tokio::test]
async fn there_are_not_too_many_documents() {
    let fixture = Fixture::new();
    assert_eq!(shown(&fixture.change("PUT", "new", None).await), "201");
    for at in 1..1000 {
        std::fs::write(fixture.directory.path().join(format!("state/documents/d{at}.document")), "").unwrap();
    }
    let refused = fixture.change("PUT", "one-more", None).await;
    assert_eq!(shown(&refused), "409 TooManyDocuments");
    // The others may change and leave.
    let again = fixture.change("PUT", "new", None).await;
    assert_eq!(shown(&again), "200");
    let tag = again.headers["etag"].to_str().unwrap();
    assert_eq!(shown(&fixture.change("DELETE", "new", Some(tag)).await), "204");
    assert_eq!(shown(&fixture.change("PUT", "one-more", None).await), "201");
}

#[tokio::test]
async fn a_document_with_damaged_credentials_can_be_deleted() {
    let fixture = Fixture::new();
    let created = fixture.change("PUT", "new", None).await;
    let sealed = fixture.directory.path().join("state/credentials/new");
    std::fs::create_dir_all(&sealed).unwrap();
    std::fs::write(sealed.join("login.json"), "{").unwrap();
    let tag = created.headers["etag"].to_str().unwrap();
    assert_eq!(shown(&fixture.change("DELETE", "new", Some(tag)).await), "204");
    assert!(!sealed.join("login.json").exists());
}

#[tokio::test]
async fn a_document_does_not_take_the_place_of_a_file() {
    let fixture = Fixture::new();
    let created = fixture.change("PUT", "new", None).await;
    assert_eq!(shown(&created), "201");
    let tag = created.headers["etag"].to_str().unwrap().to_owned();
    std::fs::write(fixture.own_file("mine.yaml"), DOCUMENT.replace("NAME", "new")).unwrap();
    let token = fixture.token("see@* edit@*");
    let list = fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await.json();
    let of_name = |item: &&Json| item["name"] == "new";
    let found: Vec<(&str, Option<&str>)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_name)
        .map(|item| (item["file"].as_str().unwrap(), item["problem"].as_str()))
        .collect();
    assert_eq!(found, [("mine.yaml", None), ("new.document", Some("mine.yaml has a deployment of this name too"))]);
    let one = fixture.ask("GET", "/api/v1/deployments/new", Some(&token), None).await.json();
    assert_eq!((&one["stored"], &one["problem"]), (&Json::from(false), &Json::Null));
    let shown_text = fixture.ask("GET", "/api/v1/deployments/new/document", Some(&token), None).await.text;
    assert_eq!(shown_text, DOCUMENT.replace("NAME", "new"));
    assert_eq!(shown(&fixture.change("PUT", "new", Some(&tag)).await), "409 OwnFile");
    assert_eq!(shown(&fixture.change("DELETE", "new", Some("\"other\"")).await), "412 DocumentChanged");
    assert_eq!(shown(&fixture.change("DELETE", "new", Some(&tag)).await), "204");
    // Then there is the file alone, which stays.
    assert_eq!(shown(&fixture.change("DELETE", "new", Some(&tag)).await), "409 OwnFile");
    assert!(fixture.own_file("mine.yaml").exists());
}
