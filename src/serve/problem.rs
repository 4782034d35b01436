//! What an API answer says when it cannot do what was asked for: a problem of RFC 9457.

use std::num::NonZeroU32;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::complaints::Complaint;
use super::rights::Right;
use crate::runs;

/// A problem. Programs go by `code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// Stays the same, such as `PlanIsOld`.
    pub code: &'static str,
    pub detail: String,
    /// What to do about it.
    hint: Option<String>,
    /// For the header Retry-After, in seconds.
    #[serde(skip)]
    retry_after: Option<NonZeroU32>,
    #[serde(flatten)]
    document: Option<Box<DocumentProblem>>,
}

/// What is wrong with a document that was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
struct DocumentProblem {
    /// Of `DocumentChanged`: the digest that the request named, and that of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    digests: Option<Digests>,
    /// Of `InvalidDocument`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    complaints: Vec<Complaint>,
}

/// Two documents of one deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Digests {
    given: Option<String>,
    /// Null: there is no document.
    current: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            hint: None,
            retry_after: None,
            document: None,
        }
    }

    pub(super) fn with_digests(mut self, given: Option<String>, current: Option<String>) -> Problem {
        let digests = Some(Digests { given, current });
        self.document = Some(Box::new(DocumentProblem { digests, complaints: Vec::new() }));
        self
    }

    /// A document that cannot be stored.
    pub(super) fn of_complaints(complaints: Vec<Complaint>) -> Problem {
        let detail = complaints.first().map_or_else(String::new, |first| first.message.clone());
        let document = Some(Box::new(DocumentProblem { complaints, ..DocumentProblem::default() }));
        Problem { document, ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidDocument", detail) }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with_retry_after(mut self, seconds: u64) -> Problem {
        // A short type keeps answers small.
        self.retry_after = u32::try_from(seconds).ok().and_then(NonZeroU32::new);
        self
    }

    pub(super) fn not_found(what: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "NotFound", format!("there is no {what}, or this login may not see it"))
    }

    pub(super) fn forbidden(right: Right) -> Problem {
        let detail = format!("this login does not have the right {:?} here", right.right_name());
        Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "BadRequest", detail)
    }

    pub(super) fn conflict(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// What went wrong is logged; who asked learns only that it did.
    pub(super) fn internal(why: impl std::fmt::Display) -> Problem {
        tracing::error!("{why}");
        let detail = "the server could not do this; its log says why";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", detail)
    }
}

impl From<runs::Error> for Problem {
    fn from(error: runs::Error) -> Problem {
        Problem::internal(error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self).expect("a problem is text and numbers");
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::from_u16(self.status).expect("it was one");
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        response
    }
}
