//! A request that has passed the checks: what handlers get.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::Server;
use super::access::Login;
use super::problem::Problem;
use super::rights::Right;
use crate::runs::RecordedRun;
use crate::value::mutex::Mutex;

/// Below this path.
pub(super) const API: &str = "/api/v1";

/// Which of its addresses a request came to: an extension of the request.
#[derive(Clone, Copy)]
pub(super) struct LocalAddress(pub SocketAddr);

/// A request that may be answered.
pub(super) struct Call {
    pub server: Arc<Server>,
    /// Where it comes from.
    pub peer: Option<SocketAddr>,
    /// Where it came to.
    pub local: SocketAddr,
    /// Without one: a request that needs none.
    pub login: Option<Login>,
    /// The parts of the path, by name.
    pub path: BTreeMap<String, String>,
    pub query: BTreeMap<String, String>,
    /// The run that the path names.
    pub run: Option<RecordedRun>,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub note: Arc<Mutex<AuditNote>>,
}

/// What the audit log is to say of a request.
#[derive(Default)]
pub(super) struct AuditNote {
    pub who: Option<String>,
    pub target: String,
    pub detail: String,
    /// Written down however many refusals there were.
    pub always: bool,
    /// Written down after the answer, whose time then does not depend on it.
    pub later: bool,
}

impl Call {
    pub(super) fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    pub(super) fn run_of_path(&self) -> &RecordedRun {
        self.run.as_ref().expect("a path with {run} has one")
    }

    /// The body.
    pub(super) fn body_as<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", format!("the body is not valid: {error}"))
        })
    }

    /// A number of the query.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let text = self.query.get(name);
        let number =
            text.map(|text| text.parse().map_err(|_| Problem::bad_request(format!("{name} must be a number"))));
        number.transpose()
    }

    /// How many items a list is to have.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let limit = self.number("limit")?.unwrap_or(50);
        match usize::try_from(limit) {
            Ok(limit @ 1..=200) => Ok(limit),
            _ => Err(Problem::bad_request("limit must be a number from 1 to 200")),
        }
    }

    /// Refuses a login without a right on the deployment that the path names.
    pub(super) fn check_right(&self, right: Right) -> Result<(), Problem> {
        match self.may(right, self.path.get("deployment").map(String::as_str)) {
            true => Ok(()),
            false => Err(Problem::forbidden(right)),
        }
    }

    /// Whether the login has a right on a deployment.
    fn may(&self, right: Right, deployment: Option<&str>) -> bool {
        self.login.as_ref().is_some_and(|login| login.rights.include(right, deployment))
    }
}
