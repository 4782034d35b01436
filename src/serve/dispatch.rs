//! From a request to an answer: the router, the checks of every request, the audit log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};

use super::access::AuditEntry;
use super::call::{API, AuditNote, Call, LocalAddress};
use super::places::Visitor;
use super::problem::Problem;
use super::rights::Right;
use super::routes::{Needs, ROUTES, Route};
use super::turns::takes_turn;
use super::{Server, guard, page};
use crate::runs::{RecordedRun, RunId, timestamp_text};
use crate::value::mutex::Mutex;

/// How long the body of a request may take.
const LONGEST_READ: Duration = Duration::from_secs(30);

/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 1 << 20;

/// The API, the page, and what watches the server.
pub(super) fn router(server: Arc<Server>) -> Router {
    let mut methods: BTreeMap<&str, MethodRouter> = BTreeMap::new();
    for route in ROUTES {
        let filter = MethodFilter::try_from(route.method.method()).expect("a method of HTTP");
        let server = server.clone();
        let handler = move |request: Request| answer(server, route, request);
        let router = methods.remove(route.path).unwrap_or_default();
        methods.insert(route.path, router.on(filter, handler));
    }
    let mut api = Router::new();
    for (path, router) in methods {
        api = api.route(&format!("{API}{path}"), router.fallback(async || wrong_method()));
    }
    let healthy = server.clone();
    let health = async move |headers: HeaderMap| {
        let checked = guard::check_host(&healthy, &headers).map(|()| "ok\n");
        let mut response = checked.into_response();
        guard::add_headers(response.headers_mut());
        response
    };
    let api = api.route("/healthz", axum::routing::get(health));
    api.fallback(move |request: Request| {
        let server = server.clone();
        async move { page::answer_page(&server, &request) }
    })
}

fn wrong_method() -> Response {
    let mut response =
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "WrongMethod", "this path does not have this method")
            .into_response();
    guard::add_headers(response.headers_mut());
    response
}

/// Answers a request, or says why not; writes the audit log. All of it also happens if the client does not wait for the answer.
async fn answer(server: Arc<Server>, route: &'static Route, request: Request) -> Response {
    let answered = tokio::spawn(answer_and_log(server, route, request)).await;
    answered.unwrap_or_else(|error| Problem::internal(error).into_response())
}

async fn answer_and_log(server: Arc<Server>, route: &'static Route, request: Request) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let changes = ![Method::GET, Method::HEAD].contains(request.method()) && !route.is_check();
    let note: Arc<Mutex<AuditNote>> = Arc::default();
    let answered = checked(&server, route, request, &note).await;
    let seen = std::mem::take(&mut *note.lock());
    let outcome = match &answered {
        Ok(response) => response.status().as_str().to_owned(),
        Err(problem) => problem.code.to_owned(),
    };
    let refused =
        matches!(&answered, Err(problem) if ["Forbidden", "NotLoggedIn", "OtherOrigin"].contains(&problem.code));
    // A page that is open asks again and again after its session has ended.
    let is_noise = !changes && seen.who.is_none();
    let may_log =
        || seen.who.is_some() || seen.always || server.refusals.may_log(peer.map(|peer| peer.ip()), Instant::now());
    let mut response = if (changes || refused) && !is_noise && may_log() {
        let entry = AuditEntry {
            sequence: 0,
            time: timestamp_text(SystemTime::now()),
            who: seen.who.unwrap_or_else(|| "-".to_owned()),
            from: guard::address_text(peer),
            action: route.action.to_owned(),
            target: seen.target,
            detail: seen.detail,
            outcome,
        };
        let written = tokio::spawn(write_entry(server, entry));
        if !seen.later
            && let Err(error) = written.await
        {
            tracing::error!("cannot write the audit log: {error}");
        }
        answered.into_response()
    } else {
        answered.into_response()
    };
    guard::add_headers(response.headers_mut());
    response
}

/// What was done stays done, and is answered; the server's log names a missing entry.
async fn write_entry(server: Arc<Server>, entry: AuditEntry) {
    let written = server.blocking(move |server| Ok(server.access.lock().add_audit_entry(entry)?)).await;
    if let Err(problem) = written {
        tracing::error!("cannot write the audit log: {}", problem.detail);
    }
}

async fn checked(
    server: &Arc<Server>,
    route: &'static Route,
    request: Request,
    note: &Arc<Mutex<AuditNote>>,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let local = parts.extensions.get::<LocalAddress>().map_or(server.address, |local| local.0);
    guard::check_host(server, &parts.headers)?;
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let params = params.map_err(|_| Problem::bad_request("the path is not valid UTF-8"))?;
    let path: BTreeMap<String, String> =
        params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    note.lock().target = path.get("deployment").or_else(|| path.values().next()).cloned().unwrap_or_default();
    let login = guard::login_of(server, &parts.headers).await?;
    note.lock().who = login.as_ref().map(|login| login.name.clone());
    if let Some(visitor) = parts.extensions.get::<Arc<Visitor>>() {
        visitor.set_known(login.is_some());
    }
    guard::check_change(server, &parts.method, &parts.headers, route.takes_document)?;
    if login.is_none() && route.needs != Needs::Nothing {
        let hint = "windlass serve user add creates an account, windlass serve token create a token for a program";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "NotLoggedIn", "this needs a login").with_hint(hint));
    }
    let run = match path.get("run") {
        Some(named) => Some(named_run(server, named).await?),
        None => None,
    };
    if let (Needs::Right(right), Some(login)) = (route.needs, &login) {
        let of_run = run.as_ref().and_then(|run| run.summary.deployment.as_deref());
        let deployment = path.get("deployment").map(String::as_str).or(of_run);
        if !login.rights.include(right, deployment) {
            // A login that may not see a deployment does not learn whether it is there.
            let sees = login.rights.include(Right::See, deployment);
            let concerns_one = path.contains_key("deployment") || path.contains_key("run");
            return Err(match concerns_one && !sees {
                true => Problem::not_found(if run.is_some() { "such run" } else { "such deployment" }),
                false => Problem::forbidden(right),
            });
        }
    }
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let query: BTreeMap<String, String> = query.into_owned().collect();
    if let Some(unknown) = query.keys().find(|name| !route.query.iter().any(|(known, _)| known == name)) {
        return Err(Problem::bad_request(format!("unknown parameter {unknown:?}")));
    }
    let read = tokio::time::timeout(LONGEST_READ, to_bytes(body, LONGEST_BODY)).await;
    let read =
        read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", "the body did not arrive in time"))?;
    let body = read.map_err(|_| {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", format!("a body has at most {LONGEST_BODY} bytes"))
    })?;
    let person = login.as_ref().map_or_else(String::new, |login| login.person().to_owned());
    let turn = if takes_turn(route) { Some(server.turns.wait_for_turn(&person).await?) } else { None };
    let (shared, note) = (server.clone(), note.clone());
    let call = Call { server: shared, peer, local, login, path, query, run, headers: parts.headers, body, note };
    let answered = (route.handler)(call).await;
    drop(turn);
    answered
}

async fn named_run(server: &Arc<Server>, named: &str) -> Result<RecordedRun, Problem> {
    let id = RunId::parse_id(named).ok_or_else(|| Problem::not_found("such run"))?;
    let find = move |server: &Server| {
        let mut run = server.stores.with_store(|store| store.read_run(id))?;
        if let Some(run) = &mut run {
            // It says itself which deployment it is about when it has read the file.
            run.summary.deployment = run.summary.deployment.take().or_else(|| server.processes.deployment_of(id));
        }
        Ok(run)
    };
    server.blocking(find).await?.ok_or_else(|| Problem::not_found("such run"))
}
