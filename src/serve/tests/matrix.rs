//! Every route with every kind of login, and the document that describes them.

use super::super::call::API;
use super::super::routes::ROUTES;
use super::*;

/// Who asks, in the order of the columns below.
const LOGINS: [Option<&str>; 8] = [
    None,
    Some("see@prod"),
    Some("see@prod plan@prod"),
    Some("see@prod edit@prod"),
    Some("see@prod plan@prod approve@prod stop@prod"),
    Some("see@test plan@test edit@test approve@test stop@test"),
    Some("admin@*"),
    Some("see@* plan@* edit@* approve@* stop@* admin@*"),
];

/// What each answers: of a path of the deployment prod and of a run of it. 409, 404 NoPlan and 422 are what becomes of a request that
/// was let through.
const EXPECTED: [(&str, &str); 34] = [
    ("POST /sessions", "422 422 422 422 422 422 422 422"),
    ("GET /session", "401 200 200 200 200 200 200 200"),
    ("DELETE /session", "401 400 400 400 400 400 400 400"),
    ("POST /session/password", "401 422 422 422 422 422 422 422"),
    ("GET /sessions", "401 200 200 200 200 200 200 200"),
    ("DELETE /sessions/{session}", "401 404 404 404 404 404 404 404"),
    ("GET /deployments", "401 200 200 200 200 200 200 200"),
    ("GET /deployments/{deployment}", "401 200 200 200 200 404 404 200"),
    ("GET /deployments/{deployment}/document", "401 200 200 200 200 404 404 200"),
    ("PUT /deployments/{deployment}/document", "401 403 403 428 403 404 404 428"),
    ("DELETE /deployments/{deployment}/document", "401 403 403 428 403 404 404 428"),
    ("GET /deployments/{deployment}/credentials", "401 200 200 200 200 404 404 200"),
    ("PUT /deployments/{deployment}/credentials/{credential}", "401 403 403 422 403 404 404 422"),
    ("DELETE /deployments/{deployment}/credentials/{credential}", "401 403 403 404 403 404 404 404"),
    ("POST /deployments/{deployment}/host-keys", "401 403 403 422 403 404 404 422"),
    ("GET /allowed", "401 403 403 200 403 200 403 200"),
    ("POST /check", "401 403 403 200 403 200 403 200"),
    (
        "GET /deployments/{deployment}/status",
        "401 404 NoStatus 404 NoStatus 404 NoStatus 404 NoStatus 404 404 404 NoStatus",
    ),
    ("GET /deployments/{deployment}/backups", "401 409 409 409 409 404 404 409"),
    ("POST /deployments/{deployment}/runs", "401 422 422 422 422 404 404 422"),
    ("GET /plans/{run}", "401 404 NoPlan 404 NoPlan 404 NoPlan 404 NoPlan 404 404 404 NoPlan"),
    ("GET /runs", "401 200 200 200 200 200 200 200"),
    ("GET /runs/{run}", "401 200 200 200 200 404 404 200"),
    ("GET /runs/{run}/tasks", "401 200 200 200 200 404 404 200"),
    ("GET /runs/{run}/events", "401 200 200 200 200 404 404 200"),
    ("GET /runs/{run}/log", "401 200 200 200 200 404 404 200"),
    ("POST /runs/{run}/stop", "401 403 403 403 409 404 404 409"),
    ("GET /tokens", "401 403 403 403 403 403 200 200"),
    ("POST /tokens", "401 403 403 403 403 403 422 422"),
    ("DELETE /tokens/{token}", "401 403 403 403 403 403 404 404"),
    ("GET /audit", "401 403 403 403 403 403 200 200"),
    ("GET /webhooks", "401 403 403 403 403 403 200 200"),
    ("GET /proof", "400 400 400 400 400 400 400 400"),
    ("GET /openapi.json", "200 200 200 200 200 200 200 200"),
];

#[tokio::test]
async fn every_route_answers_every_login_as_it_should() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let run = start_run(store.as_mut(), "apply", Some("prod"), 0);
    end_run(store.as_mut(), run);
    let tokens = LOGINS.map(|rights| rights.map(|rights| fixture.token(rights)));
    let mut found = Vec::new();
    for route in ROUTES {
        let path = route.path.replace("{deployment}", "prod").replace("{run}", &run.to_string());
        let path = path.replace("{token}", "none").replace("{session}", "none").replace("{credential}", "login");
        let path = format!("{API}{path}");
        let mut answers = Vec::new();
        for token in &tokens {
            let kind = if route.takes_document { guard::YAML } else { "application/json" };
            let answer = fixture.ask_as(kind, route.method.method().as_str(), &path, token.as_deref(), &[], "").await;
            let code = if answer.text.starts_with('{') { answer.code() } else { String::new() };
            let shown =
                if ["NoStatus", "NoPlan"].contains(&code.as_str()) { format!(" {code}") } else { String::new() };
            answers.push(format!("{}{shown}", answer.status.as_u16()));
        }
        found.push((format!("{} {}", route.method.method(), route.path), answers.join(" ")));
    }
    let expected = EXPECTED.map(|(route, answers)| (route.to_owned(), answers.to_owned()));
    pretty(&found, &expected);
}

fn pretty(found: &[(String, String)], expected: &[(String, String)]) {
    let lines = |rows: &[(String, String)]| {
        let rows = rows.iter().map(|(route, answers)| format!("{route}: {answers}"));
        rows.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(lines(found), lines(expected));
}

#[tokio::test]
async fn each_kind_of_run_needs_its_right() {
    let fixture = Fixture::new();
    let plan = serde_json::json!({"command": "plan"});
    let apply = serde_json::json!({"command": "apply", "plan": "none", "digest": ""});
    for (rights, for_plan, for_apply) in [
        ("see@prod", "Forbidden", "Forbidden"),
        ("see@prod plan@prod", "NotStarted", "Forbidden"),
        ("see@prod approve@prod", "Forbidden", "NoPlan"),
        ("see@prod plan@test approve@test", "Forbidden", "Forbidden"),
        ("plan@prod approve@prod", "NotFound", "NotFound"),
    ] {
        let token = fixture.token(rights);
        let code = async |body: &Json| {
            let path = "/api/v1/deployments/prod/runs";
            fixture.ask("POST", path, Some(&token), Some(body.clone())).await.code()
        };
        assert_eq!((code(&plan).await.as_str(), code(&apply).await.as_str()), (for_plan, for_apply), "{rights}");
    }
}

/// Programs go by codes: all are on the page of the docs.
#[test]
fn every_code_of_a_problem_is_described() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/how-to/serve.md")).unwrap();
    let code = regex::Regex::new(r#"(?:conflict\(|StatusCode::[A-Z_]+,|Some\(\()\s*"([A-Z][A-Za-z]+)""#).unwrap();
    let mut found = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(root.join("src/serve")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        found.extend(code.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    assert!(found.len() > 15, "{found:?}");
    let missing: Vec<&String> = found.iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/how-to/serve.md lacks {missing:?}");
}

#[tokio::test]
async fn lists_have_only_what_a_login_may_see() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    for (at, deployment) in [Some("prod"), Some("test"), None].into_iter().enumerate() {
        let run = start_run(store.as_mut(), "apply", deployment, at as u64);
        end_run(store.as_mut(), run);
    }
    for (rights, deployments, runs) in
        [("see@prod", "prod", "prod"), ("plan@prod", "", ""), ("see@*", "prod test", "- test prod")]
    {
        let token = fixture.token(rights);
        let items = async |path: &str, field: &str| {
            let list = fixture.ask("GET", path, Some(&token), None).await.json();
            let names =
                list["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap_or("-").to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(items("/api/v1/deployments", "name").await, deployments, "{rights}");
        assert_eq!(items("/api/v1/runs", "deployment").await, runs, "{rights}");
    }
}

#[tokio::test]
async fn lists_of_runs_come_in_parts_without_gap_or_double() {
    let fixture = Fixture::new();
    let mut store = fixture.store();
    let mut ids: Vec<String> = Vec::new();
    for at in 0..23 {
        let run = start_run(store.as_mut(), "plan", Some(if at % 3 == 0 { "test" } else { "prod" }), at);
        end_run(store.as_mut(), run);
        if at % 3 != 0 {
            ids.insert(0, run.to_string());
        }
    }
    let token = fixture.token("see@prod");
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let part = fixture.ask("GET", &format!("/api/v1/runs?limit=4{after}"), Some(&token), None).await.json();
        let items = part["items"].as_array().unwrap();
        found.extend(items.iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        match part["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, ids);
}

#[test]
fn the_document_describes_every_route() {
    let document = openapi_document();
    let described = document["paths"].as_object().unwrap().iter();
    let described = described.flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let mut described: Vec<String> = described.collect();
    let mut routes: Vec<String> =
        ROUTES.iter().map(|route| format!("{} {API}{}", route.method.method(), route.path)).collect();
    described.sort();
    routes.sort();
    assert_eq!(described, routes);
    let mut ids: Vec<&Json> = Vec::new();
    for methods in document["paths"].as_object().unwrap().values() {
        ids.extend(methods.as_object().unwrap().values().map(|operation| &operation["operationId"]));
    }
    ids.sort_by_key(|id| id.to_string());
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "two operations with one id: {ids:?}");
}

/// Programs are generated from it: what it says may grow and not change.
#[test]
fn the_document_is_the_one_in_the_docs() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/openapi.json");
    let text = format!("{:#}\n", openapi_document());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/reference/openapi.json is old: UPDATE_DOCS=1 cargo test --lib serve:: writes it");
}
