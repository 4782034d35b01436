//! Sessions of people: begun with a link, ended by logout.

use std::time::SystemTime;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Login;
use super::answers;
use super::call::Call;
use super::guard::{COOKIE, Credential, credential};
use super::problem::Problem;
use super::rights::Rights;
use crate::runs::timestamp_text;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSession {
    /// What follows `#link=` in a link of `windlass serve link`.
    secret: String,
}

/// The own login.
#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    name: String,
    /// By the name of a deployment, or `*` for all.
    rights: Rights,
    /// When it ends at the latest.
    ends: String,
    /// Of windlass.
    version: &'static str,
}

/// A session that has begun.
#[derive(Serialize, JsonSchema)]
pub(super) struct CreatedSession {
    #[serde(flatten)]
    session: Session,
    /// For the header `Windlass-Key` of every request, beside the cookie. It cannot be shown again.
    key: String,
}

impl Session {
    fn of_login(login: &Login) -> Session {
        let (name, rights) = (login.name.clone(), login.rights.clone());
        Session { name, rights, ends: timestamp_text(login.ends), version: env!("CARGO_PKG_VERSION") }
    }
}

pub(super) async fn create_session(call: Call) -> Result<Response, Problem> {
    let NewSession { secret } = call.body_as()?;
    let used =
        call.server.blocking(move |server| Ok(server.access.lock().use_link(&secret, SystemTime::now())?)).await?;
    let Some((session, login)) = used else {
        let detail = "this link was used before, or is older than 15 minutes";
        return Err(
            Problem::new(StatusCode::FORBIDDEN, "LinkUsed", detail).with_hint("windlass serve link prints a new one")
        );
    };
    call.note.lock().who = Some(login.name.clone());
    let (in_cookie, key) = session.split_once('.').ok_or_else(|| Problem::internal("a session has two halves"))?;
    let answer = CreatedSession { session: Session::of_login(&login), key: key.to_owned() };
    let mut response = answers::json_answer(StatusCode::CREATED, &answer);
    response.headers_mut().insert(header::SET_COOKIE, cookie(in_cookie));
    Ok(response)
}

pub(super) async fn show_session(call: Call) -> Result<Response, Problem> {
    let login = call.login.as_ref().ok_or_else(|| Problem::internal("a session without a login"))?;
    Ok(answers::ok(&Session::of_login(login)))
}

pub(super) async fn delete_session(call: Call) -> Result<Response, Problem> {
    let Some(Credential::Session(secret)) = credential(&call.headers) else {
        return Err(Problem::bad_request("only a session can log out; revoke a token instead"));
    };
    call.server.blocking(move |server| Ok(server.access.lock().end_session(&secret)?)).await?;
    let mut response = answers::no_content();
    response.headers_mut().insert(header::SET_COOKIE, cookie(""));
    Ok(response)
}

/// An empty one is deleted.
fn cookie(session: &str) -> HeaderValue {
    let ends = if session.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{COOKIE}={session}; Path=/; HttpOnly; SameSite=Strict{ends}");
    HeaderValue::from_str(&text).expect("a secret has letters, digits, - and _")
}
