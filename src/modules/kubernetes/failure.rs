//! What the API, or the way to it, said no to, in words.

use std::error::Error as _;

use kube::core::Status;
use kube::core::response::StatusCause;

use crate::connection;
use crate::http;
use crate::modules::Error;
use crate::remote;
use crate::value::{Value, Vars};

/// `what` is what was to be done: `read Deployment default/web`.
pub(super) fn explain(error: kube::Error, what: &str) -> Error {
    match error {
        kube::Error::Api(status) => of_status(&status, what),
        kube::Error::Service(_) | kube::Error::HyperError(_) => of_the_way(&error, what),
        other => Error::failed(format!("cannot {what}: {other}")),
    }
}

fn of_status(status: &Status, what: &str) -> Error {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let conflicts: Vec<String> =
        causes.iter().filter(|cause| cause.reason == "FieldManagerConflict").map(conflict).collect();
    if !conflicts.is_empty() {
        return Error::Failed {
            message: format!("cannot {what}: {}", conflicts.join(", ")),
            hint: Some("take over these fields with server_side_apply: {force_conflicts: true}".to_owned()),
        };
    }
    let message = status.message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let message = if message.is_empty() { format!("HTTP {} {}", status.code, status.reason) } else { message };
    let hint = match status.code {
        401 => Some(
            "the API server rejected the credentials: are the certificate or the token from this cluster, and not expired"
                .to_owned(),
        ),
        _ => None,
    };
    let values = [("status".into(), Value::from(status.code)), ("reason".into(), Value::from(&*status.reason))];
    Error::Answered { message: format!("cannot {what}: {}", message.trim_end()), hint, values: Vars::from(values) }
}

/// `.spec.replicas belongs to "kubectl"`
fn conflict(cause: &StatusCause) -> String {
    let owner = cause.message.split('"').nth(1);
    match owner {
        Some(owner) => format!("{} belongs to {owner:?}", cause.field),
        None => format!("{}: {}", cause.field, cause.message),
    }
}

/// No response: the connection to the host is lost, or the host cannot reach the API.
fn of_the_way(error: &kube::Error, what: &str) -> Error {
    let mut source = error.source();
    let mut deepest = error.to_string();
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<http::HttpError>() {
            return match failure {
                http::HttpError::Host(remote::Error::Connection(gone)) => lost(gone),
                reason => Error::failed(format!("cannot {what}: {reason}")),
            };
        }
        deepest = inner.to_string();
        source = inner.source();
    }
    Error::failed(format!("cannot {what}: {deepest}"))
}

fn lost(error: &connection::Error) -> Error {
    let again = match error {
        connection::Error::Unreachable { message, hint } => {
            connection::Error::Unreachable { message: message.clone(), hint: hint.clone() }
        }
        connection::Error::Lost { name, reason } => {
            connection::Error::Lost { name: name.clone(), reason: reason.clone() }
        }
        connection::Error::NoTunnels { what, reason } => {
            connection::Error::NoTunnels { what: what.clone(), reason: reason.clone() }
        }
        connection::Error::Start { what, reason } => {
            connection::Error::Start { what: what.clone(), reason: reason.clone() }
        }
    };
    Error::Remote(remote::Error::Connection(again))
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::*;

    fn reported(status: Status) -> (String, Option<String>) {
        match explain(kube::Error::Api(Box::new(status)), "apply Deployment default/web") {
            Error::Failed { message, hint } | Error::Answered { message, hint, .. } => (message, hint),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_conflict_names_every_field_and_its_owner() {
        let cause = |field: &str, owner: &str| StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with \"{owner}\" using apps/v1"),
            field: field.to_owned(),
        };
        let causes = vec![cause(".spec.replicas", "kubectl"), cause(".spec.paused", "other")];
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        };
        let status = Status::failure("Apply failed with 2 conflicts", "Conflict").with_code(409).with_details(details);
        let (message, hint) = reported(status);
        assert_eq!(
            message,
            "cannot apply Deployment default/web: .spec.replicas belongs to \"kubectl\", .spec.paused belongs to \"other\""
        );
        assert!(hint.unwrap().contains("force_conflicts"));
    }

    #[test]
    fn other_refusals_are_reported_in_one_line() {
        let (message, _) = reported(Status::failure("it is\n  not valid", "Invalid").with_code(422));
        assert_eq!(message, "cannot apply Deployment default/web: it is not valid");
        let (_, hint) = reported(Status::failure("Unauthorized", "Unauthorized").with_code(401));
        assert!(hint.unwrap().contains("certificate"));
        let unauthorized = Status::failure("", "Unauthorized").with_code(401);
        match explain(kube::Error::Api(Box::new(unauthorized)), "read it") {
            Error::Answered { values, .. } => assert_eq!(values["status"], Value::from(401)),
            other => panic!("{other}"),
        }
    }
}
