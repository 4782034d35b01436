//! Sessions of people: begun with a link or a password, ended by logout or by somebody else.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Instant, SystemTime};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Server;
use super::access::{Account, Login, OpenSession, sha256_hex};
use super::answers::{self, List};
use super::attempts::{Attempt, Wait};
use super::call::Call;
use super::guard::{self, Credential, address_text, credential};
use super::passwords::{hash_of_nobody, hash_password, is_password, password_fault};
use super::problem::Problem;
use super::rights::{Right, Rights};
use crate::runs::timestamp_text;

/// How a person logs in: with a link, or with an account.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum NewSession {
    /// With a link.
    Link {
        /// What follows `#link=` in a link of `windlass serve link`.
        secret: String,
    },
    /// With an account.
    Account {
        /// The name of the account.
        name: String,
        password: String,
    },
}

/// A new password for the own account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPassword {
    /// The current password.
    password: String,
    /// At least 15 characters.
    new_password: String,
}

/// The own login.
#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    name: String,
    /// The account that it belongs to. Null: it began with a link, or is a token that no account created.
    account: Option<String>,
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

/// A session, without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenSession")]
pub(super) struct SessionItem {
    /// For the path that ends it.
    id: String,
    name: String,
    /// Null: it began with a link.
    account: Option<String>,
    /// Where it began.
    address: String,
    created: String,
    /// To the minute.
    last_used: String,
    /// When it ends without another request.
    ends: String,
    /// Whether this request belongs to it.
    current: bool,
}

impl Session {
    fn of_login(login: &Login) -> Session {
        Session {
            name: login.name.clone(),
            account: login.account.clone(),
            rights: login.rights.clone(),
            ends: timestamp_text(login.ends),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

pub(super) async fn create_session(call: Call) -> Result<Response, Problem> {
    let (session, login) = match call.body_as()? {
        NewSession::Link { secret } => by_link(&call, secret).await?,
        NewSession::Account { name, password } => by_password(&call, &name, password).await?,
    };
    // A browser that logs in again has one session, and its secret is new.
    if let Some(Credential::Session(before)) = credential(&call.server, &call.headers) {
        call.server.blocking(move |server| Ok(server.access.lock().end_session(&before)?)).await?;
    }
    call.note.lock().who = Some(login.name.clone());
    let (in_cookie, key) = session.split_once('.').ok_or_else(|| Problem::internal("a session has two halves"))?;
    let answer = CreatedSession { session: Session::of_login(&login), key: key.to_owned() };
    let mut response = answers::json_answer(StatusCode::CREATED, &answer);
    response.headers_mut().insert(header::SET_COOKIE, cookie(&call.server, in_cookie));
    Ok(response)
}

async fn by_link(call: &Call, secret: String) -> Result<(String, Login), Problem> {
    call.note.lock().detail = "with a link".to_owned();
    let from = address_text(call.peer);
    let exchange = move |server: &Server| Ok(server.access.lock().use_link(&secret, &from, SystemTime::now())?);
    call.server.blocking(exchange).await?.ok_or_else(|| {
        let detail = "this link was used before, or is older than 15 minutes";
        Problem::new(StatusCode::FORBIDDEN, "LinkUsed", detail).with_hint("windlass serve link prints a new one")
    })
}

async fn by_password(call: &Call, name: &str, password: String) -> Result<(String, Login), Problem> {
    call.note.lock().detail = "with a password".to_owned();
    let name = name.trim().to_ascii_lowercase();
    let (hash, attempt) = checked_password(call, &name, password).await?;
    let from = address_text(call.peer);
    let begin = move |server: &Server| {
        let begun = server.access.lock().begin_account_session(&name, &hash, &from, SystemTime::now())?;
        begun.ok_or_else(wrong_password)
    };
    let begun = call.server.blocking(begin).await?;
    call.server.attempts.succeeded(attempt, Instant::now());
    Ok(begun)
}

/// The same for a wrong password and for a name without an account.
fn wrong_password() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "WrongPassword", "the name or the password is wrong")
}

/// The hash of an account's password, if this is its password. Who gets it says when it succeeded.
async fn checked_password(call: &Call, name: &str, password: String) -> Result<(String, Attempt), Problem> {
    let server = &call.server;
    let known = {
        // What can be no name is looked for too, so that every answer takes the same time.
        let name = name.to_owned();
        server.blocking(move |server| Ok(server.access.lock().password_hash(&name)?)).await?
    };
    call.note.lock().later = true;
    if known.is_some() {
        let mut note = call.note.lock();
        // Other names may be passwords that were typed into the wrong field.
        note.target = name.to_owned();
        // Its number is limited below.
        note.always = true;
    }
    let address = call.peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    let too_many = |Wait(wait): Wait| {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let detail = format!("there were too many attempts to log in: try again in {seconds} seconds");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyAttempts", detail).with_retry_after(seconds)
    };
    // Names that can be none may be long.
    let counted = if Account::name_fault(name).is_none() { name.to_owned() } else { sha256_hex(name.as_bytes()) };
    let attempt = server.attempts.begin(&counted, address, Instant::now()).map_err(|wait| {
        // Who tries again and again fills the log otherwise.
        call.note.lock().always = false;
        too_many(wait)
    })?;
    let Some(place) = server.hashing.enter().await else {
        server.attempts.not_tried(attempt);
        return Err(too_many(Wait(super::hashing::BUSY)));
    };
    let hash = known.clone().unwrap_or_else(hash_of_nobody);
    let is_right = server
        .blocking(move |_| {
            let is_right = is_password(&password, &hash);
            drop(place);
            Ok(is_right)
        })
        .await?;
    match known.filter(|_| is_right) {
        Some(hash) => {
            call.note.lock().later = false;
            Ok((hash, attempt))
        }
        None => Err(wrong_password()),
    }
}

pub(super) async fn show_session(call: Call) -> Result<Response, Problem> {
    let login = call.login.as_ref().ok_or_else(|| Problem::internal("a session without a login"))?;
    Ok(answers::ok(&Session::of_login(login)))
}

pub(super) async fn delete_session(call: Call) -> Result<Response, Problem> {
    let Some(Credential::Session(secret)) = credential(&call.server, &call.headers) else {
        return Err(Problem::bad_request("only a session can log out; revoke a token instead"));
    };
    call.server.blocking(move |server| Ok(server.access.lock().end_session(&secret)?)).await?;
    let mut response = answers::no_content();
    response.headers_mut().insert(header::SET_COOKIE, cookie(&call.server, ""));
    Ok(response)
}

/// The own sessions; with the right admin, those of everybody.
pub(super) async fn list_sessions(call: Call) -> Result<Response, Problem> {
    let login = call.login.as_ref().ok_or_else(|| Problem::internal("a list without a login"))?;
    let sees_all = login.rights.include(Right::Admin, None);
    let item = |session: OpenSession| SessionItem {
        current: login.session.as_ref() == Some(&session.id),
        created: timestamp_text(session.created),
        last_used: timestamp_text(session.last_used),
        ends: timestamp_text(session.ends()),
        id: session.id,
        name: session.name,
        account: session.account,
        address: session.address,
    };
    let open =
        call.server.blocking(|server| Ok(server.access.lock().open_sessions(SystemTime::now())?)).await?.into_iter();
    let items = open.filter(|session| sees_all || session.name == login.name).map(item).collect();
    Ok(answers::ok(&List::whole(items)))
}

/// Ends an own session; with the right admin, any.
pub(super) async fn end_session(call: Call) -> Result<Response, Problem> {
    let login = call.login.as_ref().ok_or_else(|| Problem::internal("a session without a login"))?;
    let of = (!login.rights.include(Right::Admin, None)).then(|| login.name.clone());
    let id = call.part("session").to_owned();
    let end = move |server: &Server| Ok(server.access.lock().end_session_with_id(&id, of.as_deref())?);
    match call.server.blocking(end).await? {
        None => Err(Problem::not_found("such session")),
        Some(name) => {
            call.note.lock().detail = format!("of {name}");
            Ok(answers::no_content())
        }
    }
}

/// Changes the password of the own account, which ends its other sessions.
pub(super) async fn change_password(call: Call) -> Result<Response, Problem> {
    let NewPassword { password, new_password } = call.body_as()?;
    let login = call.login.as_ref().ok_or_else(|| Problem::internal("an account without a login"))?;
    let (Some(account), Some(session)) = (login.account.clone(), login.session.clone()) else {
        return Err(Problem::bad_request("only the session of an account can change its password"));
    };
    if let Some(fault) = password_fault(&account, &new_password) {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "WeakPassword", fault));
    }
    let (before, attempt) = checked_password(&call, &account, password).await?;
    let change = move |server: &Server| {
        let hash = hash_password(&new_password).map_err(Problem::internal)?;
        let mut access = server.access.lock();
        access.set_password(&account, &hash, Some(&before), Some(&session), SystemTime::now()).map_err(Problem::from)
    };
    match call.server.blocking(change).await? {
        true => {
            call.server.attempts.succeeded(attempt, Instant::now());
            Ok(answers::no_content())
        }
        false => Err(wrong_password()),
    }
}

/// An empty one is deleted.
fn cookie(server: &Server, session: &str) -> HeaderValue {
    let name = guard::cookie_name(server);
    let secure = if server.hosts.is_secure() { "; Secure" } else { "" };
    let ends = if session.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict{secure}{ends}");
    HeaderValue::from_str(&text).expect("a secret has letters, digits, - and _")
}
