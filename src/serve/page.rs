//! The page: files that are in the program.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};

use super::access::sha256_hex;
use super::problem::Problem;
use super::{Server, guard};

/// What `npm run build` in `web` writes.
static PAGE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/web/dist");

/// Answers what is not the API.
pub(super) fn answer_page(server: &Server, request: &Request) -> Response {
    let answered = guard::check_host(server, request.headers()).and_then(|()| file_of(request));
    let mut response = answered.into_response();
    guard::add_headers(response.headers_mut());
    response
}

fn file_of(request: &Request) -> Result<Response, Problem> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "WrongMethod", "this path can only be read"));
    }
    let path = request.uri().path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let missing = || Problem::new(StatusCode::NOT_FOUND, "NotFound", "there is nothing here");
    let file = PAGE.get_file(path).ok_or_else(missing)?;
    let tag = format!("\"{}\"", sha256_hex(file.contents()));
    // The names of assets have digests in them.
    let keep = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let is_known = request.headers().get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(file.contents()) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind_of(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).map_err(Problem::internal)?);
    Ok(response)
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "map") => "application/json",
        Some("md" | "txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
