//! What every request passes: whose it is, and that no other web page sent it; and the headers of every answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::Server;
use super::access::{Login, TOKEN_PREFIX};
use super::problem::Problem;

/// The cookie of a session. Without TLS it cannot have the prefix `__Host-`, with which browsers take it from this server alone.
pub(super) const COOKIE: &str = "windlass_session";
const SECURE_COOKIE: &str = "__Host-windlass_session";

pub(super) fn cookie_name(server: &Server) -> &'static str {
    if server.hosts.is_secure() { SECURE_COOKIE } else { COOKIE }
}

/// The page has nothing from elsewhere, no inline script or style, and makes no HTML out of text.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The headers of all answers that do not have their own.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

pub(super) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// The header with the second half of a session's secret. A browser sends a cookie to every port of this machine, also to a server of
/// another local user; only the page has this half.
pub(super) const KEY: &str = "windlass-key";

/// How a request says whose it is.
pub(super) enum Credential {
    Session(String),
    Token(String),
}

/// The credential of a request. A token counts before a cookie.
pub(super) fn credential(server: &Server, headers: &HeaderMap) -> Option<Credential> {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(authorization) = authorization {
        let token = authorization.strip_prefix("Bearer ").unwrap_or_default().trim();
        return Some(Credential::Token(token.to_owned()));
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, cookie) = pairs.find(|(name, _)| *name == cookie_name(server))?;
    let key = headers.get(KEY).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Some(Credential::Session(format!("{cookie}.{key}")))
}

/// Whose a request is. None: nobody's that is known.
pub(super) async fn login_of(server: &Arc<Server>, headers: &HeaderMap) -> Result<Option<Login>, Problem> {
    let Some(credential) = credential(server, headers) else { return Ok(None) };
    let find = move |server: &Server| {
        let (mut access, now) = (server.access.lock(), SystemTime::now());
        Ok(match credential {
            Credential::Session(secret) => access.find_session(&secret, now)?,
            Credential::Token(secret) if secret.starts_with(TOKEN_PREFIX) => access.find_token(&secret, now)?,
            Credential::Token(_) => None,
        })
    };
    server.blocking(find).await
}

/// Refuses a request that names another server: a page of a domain whose address was changed to this machine's.
pub(super) fn check_host(server: &Server, headers: &HeaderMap) -> Result<(), Problem> {
    // Two of them could be read as one or the other.
    let mut named = headers.get_all(header::HOST).iter();
    let host = named.next().filter(|_| named.next().is_none());
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    match server.hosts.is_known(host) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "UnknownHost",
            format!("this server is not {}", if host.is_empty() { "named" } else { host }),
        )
        .with_hint(format!("use {}; the option --host adds a name", server.hosts.url()))),
    }
}

/// The type of a document. No form has it, so that a browser asks before another web page may send it.
pub(super) const YAML: &str = "application/yaml";

/// Refuses a change that another web page may have sent: it has a form's type, or comes from another origin.
pub(super) fn check_change(
    server: &Server,
    method: &Method,
    headers: &HeaderMap,
    takes_document: bool,
) -> Result<(), Problem> {
    if [Method::GET, Method::HEAD].contains(method) {
        return Ok(());
    }
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let kind = text(header::CONTENT_TYPE).and_then(|kind| kind.split(';').next()).map(str::trim);
    if takes_document && kind != Some(YAML) {
        let detail = "a document needs the header Content-Type: application/yaml";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NotYaml", detail));
    }
    if !takes_document && kind != Some("application/json") {
        let detail = "a change needs the header Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NotJson", detail));
    }
    let foreign = |detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, "OtherOrigin", detail));
    let site = text(HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| site != "same-origin") {
        return foreign("the request comes from another web page");
    }
    let origin = text(header::ORIGIN);
    if origin.is_some_and(|origin| !server.hosts.is_own_origin(origin)) {
        return foreign("the request comes from another web page");
    }
    // A program says who it is by a token, which no browser adds by itself.
    let by_cookie = matches!(credential(server, headers), Some(Credential::Session(_)));
    if by_cookie && site.is_none() && origin.is_none() {
        return foreign("a request with a session must have the header Origin; programs use a token");
    }
    Ok(())
}

/// The address that a request came from.
pub(super) fn address_text(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "-".to_owned(), |peer| peer.ip().to_canonical().to_string())
}
