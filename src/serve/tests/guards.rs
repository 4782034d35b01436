//! Requests that other web pages may send, sessions, and the headers of answers.

use super::super::guard::COOKIE;
use super::*;

pub(super) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

type Headers<'a> = &'a [(&'a str, &'a str)];

pub(super) const HOST: (&str, &str) = ("host", "127.0.0.1:7480");
pub(super) const JSON: (&str, &str) = ("content-type", "application/json");
pub(super) const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:7480");

#[tokio::test]
async fn a_link_becomes_a_session_until_logout() {
    let fixture = Fixture::new();
    let link = fixture.server.access.lock().create_link("alice", SystemTime::now()).unwrap();
    let body = format!(r#"{{"secret":"{link}"}}"#);
    let answer = fixture.send(request("POST", "/api/v1/sessions", &[HOST, JSON, ORIGIN], &body)).await;
    assert_eq!((answer.status.as_u16(), answer.json()["name"].as_str()), (201, Some("alice")), "{}", answer.text);
    let cookie = answer.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!answer.text.contains(cookie.split(['=', ';']).nth(1).unwrap()), "the session's secret is in the body");
    let key = answer.json()["key"].as_str().unwrap().to_owned();
    assert!(!cookie.contains(&key), "the cookie is enough");
    let cookie = cookie.split(';').next().unwrap();
    let own = [HOST, JSON, ORIGIN, ("cookie", cookie), ("windlass-key", key.as_str())];
    for half in [[HOST, JSON, ORIGIN, ("cookie", cookie)], [HOST, JSON, ORIGIN, ("windlass-key", key.as_str())]] {
        assert_eq!(fixture.send(request("GET", "/api/v1/tokens", &half, "")).await.status, 401, "{half:?}");
    }
    assert_eq!(fixture.send(request("GET", "/api/v1/tokens", &own, "")).await.status, 200);
    let again = fixture.send(request("POST", "/api/v1/sessions", &[HOST, JSON, ORIGIN], &body)).await;
    assert_eq!((again.status.as_u16(), again.code().as_str()), (403, "LinkUsed"));
    assert_eq!(fixture.send(request("DELETE", "/api/v1/session", &own, "")).await.status, 204);
    assert_eq!(fixture.send(request("GET", "/api/v1/session", &own, "")).await.status, 401);
}

#[tokio::test]
async fn another_web_page_can_change_nothing() {
    let fixture = Fixture::new();
    let link = fixture.server.access.lock().create_link("alice", SystemTime::now()).unwrap();
    let (session, _) = fixture.server.access.lock().use_link(&link, "-", SystemTime::now()).unwrap().unwrap();
    let (cookie, key) = session.split_once('.').unwrap();
    let cookie = format!("{COOKIE}={cookie}");
    let (cookie, key) = (("cookie", cookie.as_str()), ("windlass-key", key));
    let cases: [(Headers<'_>, u16, &str); 9] = [
        (&[HOST, JSON, cookie, key, ORIGIN], 201, ""),
        (&[HOST, JSON, cookie, key, ("sec-fetch-site", "same-origin")], 201, ""),
        (&[HOST, JSON, cookie, key, ("origin", "http://evil.example")], 403, "OtherOrigin"),
        (&[HOST, JSON, cookie, key, ("origin", "null")], 403, "OtherOrigin"),
        (&[HOST, JSON, cookie, key, ("sec-fetch-site", "cross-site")], 403, "OtherOrigin"),
        (&[HOST, JSON, cookie, key], 403, "OtherOrigin"),
        (&[HOST, cookie, key, ORIGIN, ("content-type", "text/plain")], 415, "NotJson"),
        (&[("host", "evil.example:7480"), JSON, cookie, key, ORIGIN], 421, "UnknownHost"),
        (&[HOST, ("host", "evil.example:7480"), JSON, cookie, key, ORIGIN], 421, "UnknownHost"),
    ];
    for (headers, status, code) in cases {
        let body = r#"{"name":"new","rights":{"*":["see"]},"days":1}"#;
        let answer = fixture.send(request("POST", "/api/v1/tokens", headers, body)).await;
        let found = if answer.status == 201 { String::new() } else { answer.code() };
        assert_eq!((answer.status.as_u16(), found.as_str()), (status, code), "{headers:?}");
        let was_created = fixture.server.access.lock().delete_token("new").unwrap();
        assert_eq!(was_created, status == 201, "{headers:?}");
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_the_page() {
    let fixture = Fixture::new();
    let token = fixture.token("see@*");
    let paths = [
        "/",
        "/healthz",
        "/nothing",
        "/api/v1/nothing",
        "/api/v1/runs",
        "/api/v1/tokens",
        "/api/v1/deployments/prod/document",
    ];
    for (method, path) in paths.iter().map(|path| ("GET", *path)).chain([("PUT", "/api/v1/runs"), ("POST", "/")]) {
        let answer = fixture.ask(method, path, Some(&token), None).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        let is_text = path.ends_with("/document");
        assert!(policy == if is_text { "sandbox" } else { super::super::guard::POLICY }, "{method} {path}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{method} {path}");
        }
        assert!(answer.headers.get("access-control-allow-origin").is_none());
    }
}

#[tokio::test]
async fn what_is_not_understood_is_refused() {
    let fixture = Fixture::new();
    let token = fixture.token("see@* plan@* admin@*");
    let cases = [
        ("POST", "/api/v1/deployments/prod/runs", r#"{"command":"destroy"}"#, 422, "InvalidBody"),
        ("POST", "/api/v1/deployments/prod/runs", r#"{"command":"plan","limit":"h1"}"#, 422, "InvalidBody"),
        ("POST", "/api/v1/tokens", r#"{"name":"A b","rights":{"*":["see"]},"days":1}"#, 422, "InvalidBody"),
        ("POST", "/api/v1/tokens", r#"{"name":"a","rights":{"*":["see"]},"days":367}"#, 422, "InvalidBody"),
        ("POST", "/api/v1/tokens", r#"{"name":"a","rights":{"prod":["admin"]},"days":1}"#, 422, "InvalidBody"),
        ("POST", "/api/v1/tokens", r#"{"name":"a","rights":{"prod":["root"]},"days":1}"#, 422, "InvalidBody"),
        ("GET", "/api/v1/runs?limit=0", "", 400, "BadRequest"),
        ("GET", "/api/v1/runs?limit=201", "", 400, "BadRequest"),
        ("GET", "/api/v1/runs?after=x", "", 400, "BadRequest"),
        ("GET", "/api/v1/runs?deploymnet=prod", "", 400, "BadRequest"),
        ("GET", "/api/v1/runs/x", "", 404, "NotFound"),
        ("GET", "/api/v1/deployments/..%2fprod", "", 404, "NotFound"),
    ];
    for (method, path, body, status, code) in cases {
        let headers = [HOST, JSON, ("authorization", &format!("Bearer {token}"))];
        let answer = fixture.send(request(method, path, &headers, body)).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code), "{method} {path} {body}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    let long = " ".repeat((1 << 20) + 1);
    let headers = [HOST, JSON, ("authorization", &format!("Bearer {token}"))];
    let answer = fixture.send(request("POST", "/api/v1/tokens", &headers, &long)).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (413, "TooLarge"));
}

#[tokio::test]
async fn changes_and_refusals_are_in_the_audit_log() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod plan@prod");
    fixture.ask("GET", "/api/v1/runs", Some(&token), None).await;
    fixture.ask("GET", "/api/v1/audit", Some(&token), None).await;
    fixture.ask("GET", "/api/v1/audit", None, None).await;
    let start = serde_json::json!({"command": "plan"});
    let answer = fixture.ask("POST", "/api/v1/deployments/prod/runs", Some(&token), Some(start)).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (409, "NotStarted"));
    assert_eq!(answer.json()["detail"], "it cannot start");
    fixture.ask("POST", "/api/v1/deployments/prod/runs", Some("wl_wrong"), None).await;
    let entries = fixture.server.access.lock().audit_entries(None, 10).unwrap();
    let seen: Vec<String> = entries
        .iter()
        .map(|entry| {
            let who = entry.who.split(' ').next().unwrap();
            format!("{who}: {} {:?} {:?} {}", entry.action, entry.target, entry.detail, entry.outcome)
        })
        .collect();
    let expected = [
        "-: start a run \"prod\" \"\" NotLoggedIn",
        "token: start a run \"prod\" \"plan\" NotStarted",
        "token: list the audit log, the newest entries first \"\" \"\" Forbidden",
    ];
    assert_eq!(seen, expected);
}

/// Its owner could exchange the file.
#[tokio::test]
async fn a_link_into_a_directory_of_others_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let fixture = Fixture::new();
    let at = |path: &str| fixture.directory.path().join(path);
    for (name, mode) in [("own", 0o755), ("open", 0o777)] {
        std::fs::create_dir(at(name)).unwrap();
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::write(at("own/a.yaml"), DOCUMENT.replace("NAME", "direct")).unwrap();
    std::fs::write(at("own/b.yaml"), DOCUMENT.replace("NAME", "hop")).unwrap();
    std::fs::write(at("open/c.yaml"), DOCUMENT.replace("NAME", "away")).unwrap();
    symlink("../own/a.yaml", at("deployments/direct.yaml")).unwrap();
    symlink("../own/b.yaml", at("open/hop.yaml")).unwrap();
    symlink("../open/hop.yaml", at("deployments/hop.yaml")).unwrap();
    symlink("../open/c.yaml", at("deployments/away.yaml")).unwrap();
    let token = fixture.token("see@*");
    let list = fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await.json();
    let problem = |file: &str| {
        let found = list["items"].as_array().unwrap().iter().find(|item| item["file"] == file);
        found.unwrap_or_else(|| panic!("{list}"))["problem"].clone()
    };
    let refused = Json::from("it is a link into a directory that another user owns or can write to");
    assert_eq!([problem("away.yaml"), problem("hop.yaml")], [refused.clone(), refused]);
    assert_eq!(problem("direct.yaml"), Json::Null);
}

/// Without a right or a login, nobody fills the audit log.
#[tokio::test]
async fn what_is_refused_leaves_little_in_the_audit_log() {
    let fixture = Fixture::new();
    let token = fixture.token("see@prod");
    let path = "/api/v1/deployments/prod/runs";
    let long = serde_json::json!({"command": "apply", "plan": "x".repeat(1 << 19), "digest": ""});
    assert_eq!(fixture.ask("POST", path, Some(&token), Some(long)).await.code(), "Forbidden");
    for _ in 0..20 {
        fixture.ask("POST", path, None, None).await;
    }
    super::super::refusals::write_rest(&fixture.server).await;
    let entries = fixture.server.access.lock().audit_entries(None, 100).unwrap();
    let seen: Vec<String> =
        entries.iter().map(|entry| format!("{} {:?} {}", entry.action, entry.detail, entry.outcome)).collect();
    let expected = [
        "ask without a login \"19 more, which have no entries\" refused",
        "start a run \"\" NotLoggedIn",
        "start a run \"\" Forbidden",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_audit_log_comes_in_parts() {
    let fixture = Fixture::new();
    let token = fixture.token("admin@*");
    for at in 0..5 {
        fixture.ask("DELETE", &format!("/api/v1/tokens/t{at}"), Some(&token), None).await;
    }
    let (mut targets, mut after) = (Vec::new(), String::new());
    loop {
        let part = fixture.ask("GET", &format!("/api/v1/audit?limit=2{after}"), Some(&token), None).await.json();
        let items = part["items"].as_array().unwrap();
        targets.extend(items.iter().map(|entry| entry["target"].as_str().unwrap().to_owned()));
        match part["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(targets, ["t4", "t3", "t2", "t1", "t0"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_says_why() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let directory = fixture.directory.path().join("deployments");
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write("broken.yaml", &DOCUMENT.replace("NAME", "broken").replace("bundle: bundle", "bundel: bundle"));
    write("double.yaml", &DOCUMENT.replace("NAME", "test"));
    write("two.yaml", &format!("{}---\n{}", DOCUMENT.replace("NAME", "one"), DOCUMENT.replace("NAME", "two")));
    write("open.yaml", &DOCUMENT.replace("NAME", "open"));
    std::fs::set_permissions(directory.join("open.yaml"), std::fs::Permissions::from_mode(0o666)).unwrap();
    write("notes.txt", "not read");
    write(".hidden.yaml", "not read");
    write("other.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    let token = fixture.token("see@* plan@*");
    let list = fixture.ask("GET", "/api/v1/deployments", Some(&token), None).await.json();
    let items = list["items"].as_array().unwrap().iter().map(|item| {
        let problem = item["problem"].as_str().unwrap_or("-");
        format!("{} {}: {problem}", item["name"].as_str().unwrap(), item["file"].as_str().unwrap())
    });
    let items: Vec<String> = items.collect();
    let find = |start: &str| items.iter().find(|item| item.starts_with(start)).unwrap_or_else(|| panic!("{items:#?}"));
    let broken = find("broken.yaml broken.yaml: ");
    assert!(broken.contains("broken.yaml:5:") && broken.contains("bundel") && !broken.contains('/'), "{items:#?}");
    assert_eq!(find("open.yaml"), "open.yaml open.yaml: another user owns the file or can write to it");
    assert_eq!(
        find("one two.yaml"),
        "one two.yaml: the file has more than one KarmadaDeployment: give each its own file"
    );
    assert_eq!(find("test double.yaml"), "test double.yaml: test.yaml has a deployment of this name too");
    assert_eq!(find("test test.yaml"), "test test.yaml: double.yaml has a deployment of this name too");
    assert_eq!(find("prod"), "prod prod.yaml: -");
    assert_eq!(items.len(), 6, "{items:#?}");
    let start = serde_json::json!({"command": "plan"});
    let answer = fixture.ask("POST", "/api/v1/deployments/test/runs", Some(&token), Some(start)).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (409, "InvalidDocument"));
    // Keys of an earlier version that several files would use.
    std::fs::create_dir_all(directory.join("credentials/etcd/hosts")).unwrap();
    let prod = fixture.ask("GET", "/api/v1/deployments/prod", Some(&token), None).await.json();
    let problem = prod["problem"].as_str().unwrap();
    assert!(
        problem.contains("credentials/etcd has the keys of a deployment, and nothing says whose they are"),
        "{problem}"
    );
    assert!(!problem.contains(&*directory.to_string_lossy()), "{problem}");
}
