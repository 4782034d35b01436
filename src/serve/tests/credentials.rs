//! Credentials that come through the API: they are used, and shown nowhere.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

const LIST: &str = "/api/v1/deployments/new/credentials";
const PASSWORD: &str = "/api/v1/deployments/new/credentials/login";
const SECRET: &str = "correct-horse-battery-staple";

fn key_file(directory: &std::path::Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// 32 bytes in base64.
fn key_text(byte: u8) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode([byte; 32])
}

fn sealing_fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = key_file(directory.path(), "key", &key_text(7), 0o600);
    Fixture::with_key(SealingKey::find(Some(&path), None).unwrap())
}

fn password(value: &str) -> Option<Json> {
    Some(serde_json::json!({"kind": "password", "value": value}))
}

/// All that the server has written, one after the other.
fn everything_written(directory: &std::path::Path) -> Vec<u8> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(everything_written(&path)),
            false => found.extend(std::fs::read(&path).unwrap()),
        }
    }
    found
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_credential_is_written_listed_and_shown_nowhere() {
    let fixture = sealing_fixture();
    let token = fixture.token("see@new edit@new");
    let mut answers = Vec::new();
    answers.push(fixture.ask("PUT", PASSWORD, Some(&token), password(SECRET)).await);
    assert_eq!(shown(&answers[0]), "201", "{}", answers[0].text);
    answers.push(fixture.ask("PUT", PASSWORD, Some(&token), password(SECRET)).await);
    assert_eq!(shown(&answers[1]), "200");
    answers.push(fixture.ask("GET", LIST, Some(&token), None).await);
    let list = answers[2].json();
    assert_eq!(list["writable"], true);
    let one = &list["items"][0];
    assert_eq!((&one["name"], &one["kind"], &one["key"]), (&"login".into(), &"password".into(), &"password".into()));
    assert_eq!((&one["fingerprint"], list["items"].as_array().unwrap().len()), (&Json::Null, 1));
    for (method, path) in [("GET", PASSWORD), ("POST", PASSWORD), ("GET", "/api/v1/audit")] {
        answers.push(fixture.ask(method, path, Some(&fixture.token("see@* edit@* admin@*")), None).await);
    }
    for answer in &answers {
        assert!(!answer.text.contains(SECRET), "{}", answer.text);
    }
    let written = everything_written(&fixture.directory.path().join("state"));
    use base64::Engine;
    let encoded = base64::prelude::BASE64_STANDARD.encode(SECRET);
    assert!(!has(&written, SECRET) && !has(&written, &encoded) && has(&written, "\"sealed\""));
    let path = fixture.directory.path().join("state/credentials/new/login.json");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // A process that works on the deployment gets it.
    let handed = fixture.server.credentials.handed_credentials("new").unwrap();
    // A plan names this text: one that is set again counts as another one, as nobody can see whether it is.
    let again = || fixture.server.credentials.handed_credentials("new").unwrap();
    assert_eq!(again().generation(), handed.generation());
    assert_eq!(shown(&fixture.ask("PUT", PASSWORD, Some(&token), password(SECRET)).await), "200");
    assert_ne!(again().generation(), handed.generation());
    assert!(!format!("{handed:?}").contains(SECRET));
    let mut input = String::new();
    std::io::Read::read_to_string(&mut handed.as_input().unwrap(), &mut input).unwrap();
    assert!(input.contains(SECRET));

    assert_eq!(shown(&fixture.ask("DELETE", PASSWORD, Some(&token), None).await), "204");
    assert_eq!(shown(&fixture.ask("DELETE", PASSWORD, Some(&token), None).await), "404 NotFound");
    let entries = fixture.server.access.lock().audit_entries(None, 10).unwrap();
    let deleted = entries.iter().find(|entry| entry.outcome == "204").unwrap();
    assert_eq!((deleted.target.as_str(), deleted.detail.as_str()), ("new", "credential login"));
}

#[tokio::test]
async fn a_body_that_is_refused_is_not_repeated() {
    let fixture = sealing_fixture();
    let token = fixture.token("see@new edit@new");
    let long = "x".repeat(65_537);
    for body in [
        serde_json::json!({"kind": "password", "value": {"text": SECRET}}),
        serde_json::json!({"kind": SECRET, "value": "x"}),
        serde_json::json!({"kind": "password", "value": "x", SECRET: "x"}),
        serde_json::json!({"kind": "sshKey", "value": SECRET}),
        serde_json::json!({"kind": "password", "value": " "}),
        serde_json::json!({"kind": "password", "value": long}),
    ] {
        let answer = fixture.ask("PUT", PASSWORD, Some(&token), Some(body)).await;
        assert_eq!(shown(&answer), "422 InvalidBody", "{}", answer.text);
        assert!(!answer.text.contains(SECRET), "{}", answer.text);
    }
    for path in ["/api/v1/deployments/new/credentials/..%2fa", "/api/v1/deployments/%2e%2e/credentials/a"] {
        let answer = fixture.ask("PUT", path, Some(&fixture.token("see@* edit@*")), password(SECRET)).await;
        assert_eq!(shown(&answer), "422 InvalidName", "{path}");
    }
    let own = "/api/v1/deployments/prod/credentials/login";
    let answer = fixture.ask("PUT", own, Some(&fixture.token("see@* edit@*")), password(SECRET)).await;
    assert_eq!(shown(&answer), "409 OwnFile");
}

#[tokio::test]
async fn an_ssh_key_is_known_by_its_fingerprint() {
    let fixture = sealing_fixture();
    let token = fixture.token("see@new edit@new");
    let path = fixture.directory.path().join("id");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "a passphrase", "-C", "me", "-f", path.to_str().unwrap()])
        .status();
    assert!(made.unwrap().success());
    let printed = std::process::Command::new("ssh-keygen").args(["-lf", path.to_str().unwrap()]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let value = std::fs::read_to_string(&path).unwrap();
    let body = serde_json::json!({"kind": "sshKey", "value": value});
    let answer = fixture.ask("PUT", PASSWORD, Some(&token), Some(body)).await.json();
    assert_eq!(answer["key"], "ssh-privatekey", "{answer:#}");
    assert!(printed.contains(answer["fingerprint"].as_str().unwrap()), "{printed} {answer:#}");
}

#[tokio::test]
async fn without_a_key_or_with_another_one_none_is_used() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let answer = fixture.ask("PUT", PASSWORD, Some(&token), password(SECRET)).await;
    assert_eq!(shown(&answer), "409 NoCredentialsKey");
    assert!(answer.json()["hint"].as_str().unwrap().contains("--credentials-key"), "{}", answer.text);
    assert_eq!(fixture.ask("GET", LIST, Some(&token), None).await.json()["writable"], false);
    assert!(!fixture.directory.path().join("state/credentials").exists());

    use crate::serve::sealed::CredentialStore;
    let sealing = sealing_fixture();
    fixture_put(&sealing).await;
    let state = sealing.directory.path().join("state/credentials");
    let other = key_file(sealing.directory.path(), "other", &key_text(8), 0o400);
    let store = CredentialStore::new(state.clone(), SealingKey::find(Some(&other), None).unwrap());
    let why = store.handed_credentials("new").err().unwrap().to_string();
    assert!(why.contains("cannot be opened with this key"), "{why}");
    // Sealed for one deployment and name, it cannot be put in another's place.
    let server = &sealing.server.credentials;
    std::fs::create_dir(state.join("thief")).unwrap();
    std::fs::copy(state.join("new/login.json"), state.join("thief/login.json")).unwrap();
    assert!(server.handed_credentials("thief").is_err());
    std::fs::rename(state.join("new/login.json"), state.join("new/other.json")).unwrap();
    assert!(server.handed_credentials("new").is_err());
}

#[tokio::test]
async fn there_are_not_too_many_credentials() {
    let fixture = sealing_fixture();
    let token = fixture.token("see@* edit@*");
    let put = async |deployment: &str, name: &str| {
        let path = format!("/api/v1/deployments/{deployment}/credentials/{name}");
        shown(&fixture.ask("PUT", &path, Some(&token), password(SECRET)).await)
    };
    for at in 0..32 {
        assert_eq!(put("new", &format!("c{at}")).await, "201");
    }
    assert_eq!(put("new", "one-more").await, "409 TooManyCredentials");
    assert_eq!(put("new", "c7").await, "200");
    let delete = async |path: &str| shown(&fixture.ask("DELETE", path, Some(&token), None).await);
    assert_eq!(delete(&format!("{LIST}/c7")).await, "204");
    assert_eq!(put("new", "one-more").await, "201");
    // Without a document, few deployments have any; also with some that cannot be opened.
    for at in 1..32 {
        assert_eq!(put(&format!("d{at}"), "login").await, "201");
    }
    let state = fixture.directory.path().join("state");
    std::fs::write(state.join("credentials/d1/login.json"), "{").unwrap();
    assert_eq!(put("d32", "login").await, "409 TooManyCredentials");
    assert!(!state.join("credentials/d32").exists());
    assert_eq!(put("d1", "second").await, "201");
    // One with a document does not count.
    std::fs::write(state.join("documents/d32.document"), "").unwrap();
    assert_eq!(put("d32", "login").await, "201");
    assert_eq!(put("d33", "login").await, "409 TooManyCredentials");
    assert_eq!(delete("/api/v1/deployments/d2/credentials/login").await, "204");
    assert_eq!(put("d33", "login").await, "201");
}

async fn fixture_put(fixture: &Fixture) {
    let token = fixture.token("see@new edit@new");
    assert_eq!(shown(&fixture.ask("PUT", PASSWORD, Some(&token), password(SECRET)).await), "201");
}

#[test]
fn a_key_that_others_can_read_or_that_is_none_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let find = |text: &str, mode: u32| {
        let path = key_file(directory.path(), "key", text, mode);
        SealingKey::find(Some(&path), None).map(|key| key.is_some()).map_err(|error| error.to_string())
    };
    assert_eq!(find(&key_text(1), 0o600), Ok(true));
    for (text, mode, why) in [
        (key_text(1), 0o640, "only its owner"),
        (key_text(1), 0o604, "only its owner"),
        ("password".to_owned(), 0o600, "32 random bytes"),
        (String::new(), 0o600, "32 random bytes"),
        (format!("{}AAAA", key_text(1).trim_end_matches('=')), 0o600, "32 random bytes"),
    ] {
        std::fs::remove_file(directory.path().join("key")).ok();
        let found = find(&text, mode).unwrap_err();
        assert!(found.contains(why), "{text:?} {mode:o}: {found}");
    }
    let missing = directory.path().join("missing");
    assert!(SealingKey::find(Some(&missing), None).is_err());
    // A unit without the credential has no key.
    assert!(SealingKey::find(None, Some(directory.path())).unwrap().is_none());
    key_file(directory.path(), "windlass-credentials-key", &key_text(1), 0o400);
    assert!(SealingKey::find(None, Some(directory.path())).unwrap().is_some());
    // As systemd shows a file with an ACL; it belongs to root.
    std::fs::remove_file(directory.path().join("windlass-credentials-key")).unwrap();
    key_file(directory.path(), "windlass-credentials-key", &key_text(1), 0o440);
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(SealingKey::find(None, Some(directory.path())).is_ok(), is_root);
    let named = directory.path().join("windlass-credentials-key");
    assert_eq!(SealingKey::find(Some(&named), Some(directory.path())).is_ok(), is_root);
    assert!(SealingKey::find(Some(&named), None).is_err());
}

#[tokio::test]
async fn hosts_are_asked_for_their_keys_within_the_limits_only() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let path = "/api/v1/deployments/new/host-keys";
    let body = serde_json::json!({"hosts": [{"name": "a", "address": "127.0.0.1"}, {"name": "b", "address": "169.254.169.254"}]});
    let answer = fixture.ask("POST", path, Some(&token), Some(body)).await.json();
    let problems: Vec<&str> =
        answer["items"].as_array().unwrap().iter().map(|item| item["problem"].as_str().unwrap()).collect();
    assert!(problems[0].contains("it is a loopback address"), "{problems:?}");
    assert!(problems[1].contains("it is a metadata service") || problems[1].contains("link-local"), "{problems:?}");
    for hosts in [
        serde_json::json!([]),
        serde_json::json!([{"name": "a", "address": "-oProxyCommand=id x"}]),
        serde_json::json!([{"name": "a", "address": ""}]),
    ] {
        let body = serde_json::json!({"hosts": hosts});
        assert_eq!(shown(&fixture.ask("POST", path, Some(&token), Some(body)).await), "422 InvalidBody", "{hosts}");
    }
}
