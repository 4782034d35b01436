//! The forms of answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

/// A part of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}s")]
pub(super) struct List<T> {
    pub items: Vec<T>,
    /// For the next part: the value of `after`. Null: there are no more.
    pub next: Option<String>,
}

impl<T> List<T> {
    pub(super) fn whole(items: Vec<T>) -> List<T> {
        List { items, next: None }
    }
}

/// JSON.
pub(super) fn json_answer(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = json_text(serde_json::to_string(value).expect("answers are JSON"));
    *response.status_mut() = status;
    response
}

/// JSON that is a text already.
pub(super) fn json_text(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn ok(value: &impl Serialize) -> Response {
    json_answer(StatusCode::OK, value)
}

/// Text of a file or of a run. Whatever it holds, a browser shows it as text.
pub(super) fn text(content: String) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    response
}

pub(super) fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
