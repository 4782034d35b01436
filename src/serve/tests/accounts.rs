//! Log-ins with a password, their limits, and sessions that are listed and ended.

use super::guards::{HOST, JSON, ORIGIN, request};
use super::logins::{Browser, PASSWORD};
use super::*;

#[tokio::test]
async fn a_name_and_a_password_become_a_session_with_the_rights_of_the_account() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod plan@prod");
    let answer = fixture.log_in_from("192.0.2.7", " Alice ", PASSWORD).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let session = answer.json();
    assert_eq!((&session["name"], &session["account"]), (&Json::from("alice"), &Json::from("alice")));
    assert_eq!(session["rights"], serde_json::json!({"prod": ["see", "plan"]}));
    let browser = Browser::of(&answer);
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/deployments/prod", "").await.status, 200);
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/deployments/test", "").await.status, 404);
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/audit", "").await.status, 403);
    assert_eq!(fixture.by(&browser, "DELETE", "/api/v1/session", "").await.status, 204);
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/session", "").await.status, 401);
}

/// OWASP ASVS 5.0, 6.3.8: who guesses does not learn which accounts there are.
#[tokio::test]
async fn a_wrong_name_is_answered_as_a_wrong_password_is_and_costs_the_same() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    let long = "a".repeat(100_000);
    for (at, name) in ["alice", "nobody", "token ci", "alice\u{0}", "\u{430}lice", "", &long].into_iter().enumerate() {
        let begun = std::time::Instant::now();
        let answer = fixture.log_in_from(&format!("192.0.2.{at}"), name, "seven red boats wait").await;
        // An answer without a hash takes less; how much more a busy machine takes says nothing.
        assert!(begun.elapsed() > Duration::from_millis(5), "{name}: no hash was made");
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (403, "WrongPassword"), "{name}");
        assert_eq!(answer.json()["detail"], "the name or the password is wrong");
        assert!(answer.headers.get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn many_tries_have_to_wait_whether_there_is_the_account_or_not() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    let address: std::net::IpAddr = "192.0.2.7".parse().unwrap();
    for name in ["alice", "nobody"] {
        for _ in 0..5 {
            assert_eq!(fixture.log_in_from("192.0.2.7", name, "seven red boats wait").await.code(), "WrongPassword");
        }
        // Further tries, each after the wait of the one before: this machine may be slow, and seconds pass.
        for at in 1..8 {
            let later = std::time::Instant::now() + at * Duration::from_secs(16 * 60);
            assert!(fixture.server.attempts.begin(name, address, later).is_ok());
        }
        for password in ["seven red boats wait", PASSWORD] {
            let answer = fixture.log_in_from("192.0.2.7", name, password).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (429, "TooManyAttempts"), "{name} {password}");
            let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!(wait > 60, "{wait}");
            assert_eq!(
                answer.json()["detail"],
                format!("there were too many attempts to log in: try again in {wait} seconds")
            );
        }
    }
    assert_eq!(fixture.log_in_from("192.0.2.8", "alice", PASSWORD).await.status, 201);
    // Many at once are counted as well as many in a row.
    let tries = (0..12).map(|_| fixture.log_in_from("192.0.2.9", "alice", "seven red boats wait"));
    let answers = futures::future::join_all(tries).await;
    let looked_at = answers.iter().filter(|answer| answer.status == 403).count();
    assert!(looked_at < 12, "{looked_at}");
}

#[tokio::test]
async fn each_login_has_a_new_session_and_ends_that_of_the_browser_before() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    let first = fixture.log_in("alice").await;
    // A session that somebody else chose.
    let planted = ("cookie", "windlass_session=planted");
    let body = serde_json::json!({"name": "alice", "password": PASSWORD}).to_string();
    let headers = [HOST, JSON, ORIGIN, planted, ("windlass-key", "planted")];
    let second = Browser::of(&fixture.send(request("POST", "/api/v1/sessions", &headers, &body)).await);
    assert!(!second.cookie.contains("planted") && second.cookie != first.cookie && second.key != first.key);
    assert_eq!(fixture.by(&first, "GET", "/api/v1/session", "").await.status, 200, "another browser");
    let third = Browser::of(&fixture.by(&first, "POST", "/api/v1/sessions", &body).await);
    assert_eq!(fixture.by(&first, "GET", "/api/v1/session", "").await.status, 401);
    assert_eq!(fixture.by(&third, "GET", "/api/v1/session", "").await.status, 200);
    // Halves of two sessions are none.
    let mixed = Browser { cookie: second.cookie.clone(), key: third.key.clone() };
    assert_eq!(fixture.by(&mixed, "GET", "/api/v1/session", "").await.status, 401);
    // A try that fails ends nothing.
    let wrong = r#"{"name":"alice","password":"seven red boats wait"}"#;
    assert_eq!(fixture.by(&third, "POST", "/api/v1/sessions", wrong).await.code(), "WrongPassword");
    assert_eq!(fixture.by(&third, "GET", "/api/v1/session", "").await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_neither_a_link_nor_an_account_is_refused_without_its_secrets() {
    let fixture = Fixture::new();
    for body in [
        r#"{"name":"alice"}"#,
        r#"{"password":"seven green boats wait"}"#,
        r#"{"name":"alice","password":"seven green boats wait","rights":{"*":["admin"]}}"#,
        r#"{"name":"alice","password":["seven green boats wait"]}"#,
        r#"{"secret":"seven green boats wait","name":"alice","password":"seven green boats wait"}"#,
        r#""seven green boats wait""#,
    ] {
        let answer = fixture.send(request("POST", "/api/v1/sessions", &[HOST, JSON, ORIGIN], body)).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (422, "InvalidBody"), "{body}");
        assert!(!answer.text.contains("boats"), "{}", answer.text);
    }
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions_and_an_admin_those_of_all() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    fixture.account("bob", "see@prod");
    fixture.account("root", "admin@*");
    let (alice, other, bob, root) = (
        fixture.log_in("alice").await,
        fixture.log_in("alice").await,
        fixture.log_in("bob").await,
        fixture.log_in("root").await,
    );
    let list = async |browser: &Browser| {
        let list = fixture.by(browser, "GET", "/api/v1/sessions", "").await.json();
        list["items"].as_array().unwrap().clone()
    };
    let own = list(&alice).await;
    assert_eq!(own.len(), 2, "{own:?}");
    assert!(own.iter().all(|item| item["name"] == "alice" && item["address"] == "192.0.2.7"));
    assert_eq!(own.iter().filter(|item| item["current"] == true).count(), 1);
    let all = list(&root).await;
    assert_eq!(all.len(), 4);
    let text = serde_json::json!(all).to_string();
    for browser in [&alice, &other, &bob, &root] {
        let secret = browser.cookie.split_once('=').unwrap().1;
        assert!(!text.contains(secret) && !text.contains(&browser.key));
    }

    let id = |items: &[Json], found: &dyn Fn(&Json) -> bool| {
        let item = items.iter().find(|item| found(item)).unwrap();
        format!("/api/v1/sessions/{}", item["id"].as_str().unwrap())
    };
    let of_bob = id(&all, &|item| item["name"] == "bob");
    assert_eq!(fixture.by(&alice, "DELETE", &of_bob, "").await.code(), "NotFound", "that of another");
    assert_eq!(fixture.by(&bob, "GET", "/api/v1/session", "").await.status, 200);
    assert_eq!(fixture.by(&root, "DELETE", &of_bob, "").await.status, 204);
    assert_eq!(fixture.by(&bob, "GET", "/api/v1/session", "").await.status, 401);
    let of_other = id(&own, &|item| item["current"] == false);
    assert_eq!(fixture.by(&alice, "DELETE", &of_other, "").await.status, 204);
    assert_eq!(fixture.by(&other, "GET", "/api/v1/session", "").await.status, 401);
    assert_eq!(fixture.by(&alice, "GET", "/api/v1/session", "").await.status, 200);

    // A token has no sessions, whatever its name.
    let token = fixture.token("see@prod");
    let list = fixture.ask("GET", "/api/v1/sessions", Some(&token), None).await.json();
    assert_eq!(list["items"], serde_json::json!([]));
    let entries = fixture.server.access.lock().audit_entries(None, 10).unwrap();
    let ended = entries.iter().find(|entry| entry.action == "end a session" && entry.who == "root").unwrap();
    assert_eq!((ended.detail.as_str(), ended.outcome.as_str()), ("of bob", "204"));
}

#[tokio::test]
async fn a_person_changes_the_own_password_with_the_one_before() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    let (alice, other) = (fixture.log_in("alice").await, fixture.log_in("alice").await);
    let change = async |before: &str, new: &str| {
        let body = serde_json::json!({"password": before, "new_password": new}).to_string();
        fixture.by(&alice, "POST", "/api/v1/session/password", &body).await
    };
    assert_eq!(change("seven red boats wait", "eight blue boats sail").await.code(), "WrongPassword");
    for weak in ["too short", "passwordpassword", "alice-alice-alice-7"] {
        let answer = change(PASSWORD, weak).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (422, "WeakPassword"));
        assert!(!answer.text.contains(weak), "{}", answer.text);
    }
    assert_eq!(change(PASSWORD, "eight blue boats sail").await.status, 204);
    assert_eq!(fixture.by(&alice, "GET", "/api/v1/session", "").await.status, 200);
    assert_eq!(fixture.by(&other, "GET", "/api/v1/session", "").await.status, 401, "the other sessions end");
    assert_eq!(fixture.log_in_from("192.0.2.9", "alice", PASSWORD).await.status, 403);
    assert_eq!(fixture.log_in_from("192.0.2.9", "alice", "eight blue boats sail").await.status, 201);
    // Neither a token nor a link has a password.
    let token = fixture.token("admin@*");
    let body = serde_json::json!({"password": PASSWORD, "new_password": "nine white boats sail"});
    let answer = fixture.ask("POST", "/api/v1/session/password", Some(&token), Some(body)).await;
    assert_eq!(answer.code(), "BadRequest");
    // A stolen session cannot try passwords without a limit.
    let mut codes = Vec::new();
    for _ in 0..12 {
        codes.push(change("seven red boats wait", "nine white boats sail").await.code());
    }
    assert!(codes.contains(&"TooManyAttempts".to_owned()), "{codes:?}");
}

#[tokio::test]
async fn a_removed_account_is_out_at_once_with_its_tokens() {
    let fixture = Fixture::new();
    fixture.account("root", "see@* admin@*");
    let root = fixture.log_in("root").await;
    let body = r#"{"name":"ci","rights":{"*":["see","admin"]},"days":1}"#;
    let token = fixture.by(&root, "POST", "/api/v1/tokens", body).await.json()["token"].as_str().unwrap().to_owned();
    let session = fixture.ask("GET", "/api/v1/session", Some(&token), None).await.json();
    assert_eq!((&session["name"], &session["account"]), (&Json::from("token ci of root"), &Json::from("root")));
    // A token that a token creates goes too.
    let body = serde_json::json!({"name": "second", "rights": {"*": ["see"]}, "days": 1});
    let second = fixture.ask("POST", "/api/v1/tokens", Some(&token), Some(body)).await.json();
    let second = second["token"].as_str().unwrap().to_owned();
    assert_eq!(fixture.ask("GET", "/api/v1/runs", Some(&second), None).await.status, 200);
    assert!(fixture.server.access.lock().remove_account("root").unwrap());
    assert_eq!(fixture.by(&root, "GET", "/api/v1/session", "").await.status, 401);
    for token in [&token, &second] {
        assert_eq!(fixture.ask("GET", "/api/v1/runs", Some(token), None).await.status, 401);
    }
    assert_eq!(fixture.log_in_from("192.0.2.7", "root", PASSWORD).await.code(), "WrongPassword");
}

#[tokio::test]
async fn log_ins_refusals_and_logouts_are_in_the_audit_log() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@prod");
    // Somebody fills the log with names that are none, and with a password in the wrong field.
    for at in 0..70 {
        fixture.log_in_from(&format!("198.51.100.{at}"), PASSWORD, "alice").await;
    }
    fixture.log_in_from("192.0.2.66", "alice", "seven red boats wait").await;
    let alice = fixture.log_in("alice").await;
    fixture.by(&alice, "DELETE", "/api/v1/session", "").await;
    let written = || {
        let mut entries = fixture.server.access.lock().audit_entries(None, 200).unwrap();
        // Refused log-ins are written after their answers.
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.time.clone(), entry.sequence)));
        entries
    };
    let begun = std::time::Instant::now();
    while written().len() < 63 && begun.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let entries = written();
    assert!(entries.len() >= 63, "{entries:#?}");
    assert!(!serde_json::json!(entries).to_string().contains("boats"));
    let shown = |entry: &AuditEntry| {
        format!(
            "{} {}: {} {:?} {:?} {}",
            entry.from, entry.who, entry.action, entry.target, entry.detail, entry.outcome
        )
    };
    let newest: Vec<String> = entries.iter().take(3).map(shown).collect();
    let expected = [
        "- alice: log out \"\" \"\" 204",
        "192.0.2.7 alice: log in \"alice\" \"with a password\" 201",
        "192.0.2.66 -: log in \"alice\" \"with a password\" WrongPassword",
    ];
    assert_eq!(newest, expected, "{entries:#?}");
}

#[tokio::test]
async fn a_person_who_made_a_plan_may_not_approve_it_if_that_is_not_allowed() {
    use super::plans::{differing_plan, save_by};
    for allowed in [true, false] {
        let fixture = Fixture::with(|options| options.author_may_not_approve = !allowed);
        let rights = "see@* plan@* approve@* admin@*";
        fixture.account("alice", rights);
        fixture.account("bob", rights);
        let (alice, bob) = (fixture.log_in("alice").await, fixture.log_in("bob").await);
        let body = r#"{"name":"ci","rights":{"*":["see","plan","approve"]},"days":1}"#;
        let token = fixture.by(&alice, "POST", "/api/v1/tokens", body).await.json();
        let token = token["token"].as_str().unwrap().to_owned();
        let cases = [
            ("alice by windlass@h1", false, true),
            ("token ci of alice by windlass@h1", false, true),
            ("bob by windlass@h1", true, false),
            ("alice@h1", true, true),
            ("alice bob by windlass@h1", true, true),
        ];
        for (at, (user, by_alice, by_bob)) in cases.into_iter().enumerate() {
            let (run, digest) = save_by(&fixture, &differing_plan(), user, u64::try_from(at).unwrap());
            let body = serde_json::json!({"command": "apply", "plan": run, "digest": digest});
            let (plan, path) = (format!("/api/v1/plans/{run}"), "/api/v1/deployments/prod/runs");
            let text = body.to_string();
            let answers = [
                (fixture.by(&alice, "GET", &plan, "").await, fixture.by(&alice, "POST", path, &text).await, by_alice),
                (
                    fixture.ask("GET", &plan, Some(&token), None).await,
                    fixture.ask("POST", path, Some(&token), Some(body.clone())).await,
                    by_alice,
                ),
                (fixture.by(&bob, "GET", &plan, "").await, fixture.by(&bob, "POST", path, &text).await, by_bob),
            ];
            for (shown, approved, may) in answers {
                let may = may || allowed;
                assert_eq!(shown.json()["approvable"], may, "{user}: {}", shown.text);
                let why = if may { Json::Null } else { "you made this plan: somebody else must approve it".into() };
                assert_eq!(shown.json()["why_not"], why);
                // What is let through fails with the program of this test.
                let expected = if may { (409, "NotStarted") } else { (403, "OwnPlan") };
                assert_eq!((approved.status.as_u16(), approved.code().as_str()), expected, "{user}");
            }
        }
    }
}
