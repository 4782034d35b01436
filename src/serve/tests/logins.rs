//! What tests of log-ins share: accounts, and requests of a browser.

use axum::extract::ConnectInfo;

use super::super::passwords::hash_password;
use super::guards::{HOST, JSON, ORIGIN, request};
use super::*;

pub(super) const PASSWORD: &str = "seven green boats wait";

/// A browser with a session.
pub(super) struct Browser {
    pub cookie: String,
    pub key: String,
}

impl Fixture {
    /// Creates an account with this password and these rights: `see@prod`, several behind each other.
    pub(super) fn account(&self, name: &str, rights: &str) {
        let hash = hash_password(PASSWORD).unwrap();
        assert!(self.server.access.lock().create_account(name, &hash, &rights_of(rights), SystemTime::now()).unwrap());
    }

    /// A log-in from an address.
    pub(super) async fn log_in_from(&self, from: &str, name: &str, password: &str) -> Answered {
        let body = serde_json::json!({"name": name, "password": password}).to_string();
        let mut request = request("POST", "/api/v1/sessions", &[HOST, JSON, ORIGIN], &body);
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(from.parse().unwrap(), 40_000)));
        self.send(request).await
    }

    pub(super) async fn log_in(&self, name: &str) -> Browser {
        let answer = self.log_in_from("192.0.2.7", name, PASSWORD).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        Browser::of(&answer)
    }

    pub(super) async fn by(&self, browser: &Browser, method: &str, path: &str, body: &str) -> Answered {
        let (cookie, key) = (("cookie", browser.cookie.as_str()), ("windlass-key", browser.key.as_str()));
        self.send(request(method, path, &[HOST, JSON, ORIGIN, cookie, key], body)).await
    }
}

impl Browser {
    pub(super) fn of(answer: &Answered) -> Browser {
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        Browser { cookie: cookie.split(';').next().unwrap().to_owned(), key }
    }
}
