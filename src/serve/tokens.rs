//! Tokens of programs, and the audit log.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Server;
use super::access::Token;
use super::answers::{self, List};
use super::call::Call;
use super::problem::Problem;
use super::rights::Rights;
use crate::runs::timestamp_text;

/// For how many days a token is good, at most.
const LONGEST_TOKEN: u32 = 366;

/// How much of the audit log is read for one answer, in bytes.
const LARGEST_LIST: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    /// Lower-case letters, digits and dashes.
    name: String,
    /// By the name of a deployment, or `*` for all.
    rights: Rights,
    /// For how many days it is good: 1 to 366.
    days: u32,
}

/// A token, without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub(super) struct TokenAnswer {
    name: String,
    /// The account that created it, and whose removal revokes it. Null: none.
    account: Option<String>,
    rights: Rights,
    created: String,
    ends: String,
    /// To the minute.
    last_used: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CreatedToken {
    #[serde(flatten)]
    shown: TokenAnswer,
    /// The secret, for the header `Authorization: Bearer`. It cannot be shown again.
    token: String,
}

impl TokenAnswer {
    fn of_token(token: &Token) -> TokenAnswer {
        TokenAnswer {
            name: token.name.clone(),
            account: token.account.clone(),
            rights: token.rights.clone(),
            created: timestamp_text(token.created),
            ends: timestamp_text(token.ends),
            last_used: token.last_used.map(timestamp_text),
        }
    }
}

/// A token as asked for, from now on.
///
/// # Errors
/// What is wrong with the name, the rights or the days.
pub fn new_token(name: &str, rights: Rights, days: u32, now: SystemTime) -> Result<Token, String> {
    let is_name = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_name {
        return Err("the name of a token consists of at most 63 lower-case letters, digits and dashes".to_owned());
    }
    if !(1..=LONGEST_TOKEN).contains(&days) {
        return Err(format!("a token is good for 1 to {LONGEST_TOKEN} days"));
    }
    if let Some(fault) = rights.fault() {
        return Err(fault);
    }
    let ends = now + Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    Ok(Token { name: name.to_owned(), account: None, rights, created: now, ends, last_used: None })
}

pub(super) async fn list_tokens(call: Call) -> Result<Response, Problem> {
    let tokens = call.server.blocking(|server| Ok(server.access.lock().tokens()?)).await?;
    Ok(answers::ok(&List::whole(tokens.iter().map(TokenAnswer::of_token).collect())))
}

pub(super) async fn create_token(call: Call) -> Result<Response, Problem> {
    let NewToken { name, rights, days } = call.body_as()?;
    {
        let mut note = call.note.lock();
        (note.target, note.detail) = (name.clone(), format!("{} for {days} days", rights.rights_text()));
    }
    let token = new_token(&name, rights, days, SystemTime::now());
    let mut token = token.map_err(|why| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", why))?;
    token.account = call.login.as_ref().and_then(|login| login.account.clone());
    let shown = TokenAnswer::of_token(&token);
    let secret = call.server.blocking(move |server| Ok(server.access.lock().create_token(&token)?)).await?;
    let token = secret.ok_or_else(|| Problem::conflict("NameTaken", format!("there is a token {name} already")))?;
    Ok(answers::json_answer(StatusCode::CREATED, &CreatedToken { shown, token }))
}

pub(super) async fn delete_token(call: Call) -> Result<Response, Problem> {
    let name = call.part("token").to_owned();
    let was_there = call.server.blocking(move |server| Ok(server.access.lock().delete_token(&name)?)).await?;
    if was_there { Ok(answers::no_content()) } else { Err(Problem::not_found("such token")) }
}

pub(super) async fn list_audit(call: Call) -> Result<Response, Problem> {
    let limit = call.limit()?;
    let before = call.number("after")?;
    let read = move |server: &Server| Ok(server.access.lock().some_audit_entries(before, limit, LARGEST_LIST)?);
    let items = call.server.blocking(read).await?;
    let next = items.last().filter(|last| last.sequence > 1);
    let next = next.map(|last| last.sequence.to_string());
    Ok(answers::ok(&List { items, next }))
}
