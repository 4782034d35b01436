//! All that the API can do: a row for each method of each path, with the right that it needs. The router, the check of rights and the
//! OpenAPI document come from these rows.

use std::pin::Pin;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::access::AuditEntry;
use super::answers::{self, List};
use super::backups::{self, EtcdBackup};
use super::call::Call;
use super::check::{self, Allowed, Checked};
use super::credentials::{self, Credential, CredentialList, NewCredential};
use super::deployments::{self, Deployment, StatusAnswer};
use super::documents::{self, StoredDocument};
use super::host_keys::{self, AskedHosts, HostKey};
use super::openapi;
use super::plans::{self, PlanAnswer};
use super::problem::Problem;
use super::proof::{self, Proof};
use super::rights::Right::{self, Admin, Edit, See, Stop};
use super::runs::{self, EventList, StartRun};
use super::sessions::{self, CreatedSession, NewPassword, NewSession, Session, SessionItem};
use super::tasks::{self, RunTasks};
use super::tokens::{self, CreatedToken, NewToken, TokenAnswer};
use super::verb::Verb;
use super::webhooks::{self, WebhookState};
use crate::runs::RecordedRun;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: anybody who reaches the server.
    Nothing,
    /// A login, with whatever rights: the answer has only what these show.
    Login,
    /// This right on the deployment that the path names, or to which the run in the path belongs; if there is neither, on all.
    Right(Right),
}

/// What the body of an answer is.
#[derive(Clone, Copy)]
pub(super) enum AnswerBody {
    Json(SchemaOf),
    Text,
    /// Server-sent events, or this as JSON.
    Events(SchemaOf),
    Empty,
}

pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;
type Handled = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;

/// A method of a path.
pub(super) struct Route {
    pub method: Verb,
    /// Below `/api/v1`, with the names of its parts in braces.
    pub path: &'static str,
    /// What it does, as the audit log and the reference name it.
    pub action: &'static str,
    pub needs: Needs,
    /// Parameters of the query: name and meaning.
    pub query: &'static [(&'static str, &'static str)],
    pub body: Option<SchemaOf>,
    /// The body is a document in YAML, and no JSON.
    pub takes_document: bool,
    pub status: StatusCode,
    pub answer: AnswerBody,
    pub handler: fn(Call) -> Handled,
}

impl Route {
    /// It only has a body as it is long: nothing is changed.
    pub(super) fn is_check(&self) -> bool {
        self.takes_document && self.method == Verb::Post
    }
}

const fn route(
    method: Verb,
    path: &'static str,
    action: &'static str,
    needs: Needs,
    answer: AnswerBody,
    handler: fn(Call) -> Handled,
) -> Route {
    Route {
        method,
        path,
        action,
        needs,
        query: &[],
        body: None,
        takes_document: false,
        status: StatusCode::OK,
        answer,
        handler,
    }
}

fn schema<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

/// Every method of every path.
pub(super) static ROUTES: &[Route] = &[
    Route {
        body: Some(schema::<NewSession>),
        status: StatusCode::CREATED,
        ..route(Verb::Post, "/sessions", "log in", Needs::Nothing, AnswerBody::Json(schema::<CreatedSession>), |call| {
            Box::pin(sessions::create_session(call))
        })
    },
    route(Verb::Get, "/session", "show the own login", Needs::Login, AnswerBody::Json(schema::<Session>), |call| {
        Box::pin(sessions::show_session(call))
    }),
    Route {
        status: StatusCode::NO_CONTENT,
        ..route(Verb::Delete, "/session", "log out", Needs::Login, AnswerBody::Empty, |call| {
            Box::pin(sessions::delete_session(call))
        })
    },
    Route {
        body: Some(schema::<NewPassword>),
        status: StatusCode::NO_CONTENT,
        ..route(
            Verb::Post,
            "/session/password",
            "change the own password, which ends the other sessions",
            Needs::Login,
            AnswerBody::Empty,
            |call| Box::pin(sessions::change_password(call)),
        )
    },
    route(
        Verb::Get,
        "/sessions",
        "list own sessions, or with the right admin all sessions",
        Needs::Login,
        AnswerBody::Json(schema::<List<SessionItem>>),
        |call| Box::pin(sessions::list_sessions(call)),
    ),
    Route {
        status: StatusCode::NO_CONTENT,
        ..route(Verb::Delete, "/sessions/{session}", "end a session", Needs::Login, AnswerBody::Empty, |call| {
            Box::pin(sessions::end_session(call))
        })
    },
    route(
        Verb::Get,
        "/deployments",
        "list deployments",
        Needs::Login,
        AnswerBody::Json(schema::<List<Deployment>>),
        |call| Box::pin(deployments::list_deployments(call)),
    ),
    route(
        Verb::Get,
        "/deployments/{deployment}",
        "show a deployment",
        Needs::Right(See),
        AnswerBody::Json(schema::<Deployment>),
        |call| Box::pin(deployments::show_deployment(call)),
    ),
    route(
        Verb::Get,
        "/deployments/{deployment}/document",
        "show the file of a deployment",
        Needs::Right(See),
        AnswerBody::Text,
        |call| Box::pin(documents::show_document(call)),
    ),
    Route {
        takes_document: true,
        ..route(
            Verb::Put,
            "/deployments/{deployment}/document",
            "write the document of a deployment",
            Needs::Right(Edit),
            AnswerBody::Json(schema::<StoredDocument>),
            |call| Box::pin(documents::put_document(call)),
        )
    },
    Route {
        status: StatusCode::NO_CONTENT,
        ..route(
            Verb::Delete,
            "/deployments/{deployment}/document",
            "delete the document of a deployment",
            Needs::Right(Edit),
            AnswerBody::Empty,
            |call| Box::pin(documents::delete_document(call)),
        )
    },
    route(
        Verb::Get,
        "/deployments/{deployment}/credentials",
        "list the credentials of a deployment",
        Needs::Right(See),
        AnswerBody::Json(schema::<CredentialList>),
        |call| Box::pin(credentials::list_credentials(call)),
    ),
    Route {
        body: Some(schema::<NewCredential>),
        ..route(
            Verb::Put,
            "/deployments/{deployment}/credentials/{credential}",
            "write a credential of a deployment",
            Needs::Right(Edit),
            AnswerBody::Json(schema::<Credential>),
            |call| Box::pin(credentials::put_credential(call)),
        )
    },
    Route {
        status: StatusCode::NO_CONTENT,
        ..route(
            Verb::Delete,
            "/deployments/{deployment}/credentials/{credential}",
            "delete a credential of a deployment",
            Needs::Right(Edit),
            AnswerBody::Empty,
            |call| Box::pin(credentials::delete_credential(call)),
        )
    },
    Route {
        body: Some(schema::<AskedHosts>),
        ..route(
            Verb::Post,
            "/deployments/{deployment}/host-keys",
            "ask hosts for their keys",
            Needs::Right(Edit),
            AnswerBody::Json(schema::<List<HostKey>>),
            |call| Box::pin(host_keys::scan_hosts(call)),
        )
    },
    route(
        Verb::Get,
        "/allowed",
        "show what documents may name",
        Needs::Login,
        AnswerBody::Json(schema::<Allowed>),
        |call| Box::pin(check::show_allowed(call)),
    ),
    Route {
        takes_document: true,
        query: &[("deployment", "the deployment that it is to be of")],
        ..route(
            Verb::Post,
            "/check",
            "check a document without storing it",
            Needs::Login,
            AnswerBody::Json(schema::<Checked>),
            |call| Box::pin(check::check_document(call)),
        )
    },
    route(
        Verb::Get,
        "/deployments/{deployment}/status",
        "show what the last look at the hosts found",
        Needs::Right(See),
        AnswerBody::Json(schema::<StatusAnswer>),
        |call| Box::pin(deployments::show_status(call)),
    ),
    route(
        Verb::Get,
        "/deployments/{deployment}/backups",
        "list the backups of etcd, the newest first",
        Needs::Right(See),
        AnswerBody::Json(schema::<List<EtcdBackup>>),
        |call| Box::pin(backups::list_backups(call)),
    ),
    Route {
        body: Some(schema::<StartRun>),
        status: StatusCode::CREATED,
        ..route(
            Verb::Post,
            "/deployments/{deployment}/runs",
            "start a run",
            Needs::Right(See),
            AnswerBody::Json(schema::<RecordedRun>),
            |call| Box::pin(runs::start_run(call)),
        )
    },
    route(
        Verb::Get,
        "/plans/{run}",
        "show a plan",
        Needs::Right(See),
        AnswerBody::Json(schema::<PlanAnswer>),
        |call| Box::pin(plans::show_plan(call)),
    ),
    Route {
        query: &[
            ("deployment", "runs of this deployment only"),
            ("command", "runs of this command only, such as apply"),
            ("limit", "how many, at most 200 (default 50)"),
            ("after", "the value of next of the list before"),
        ],
        ..route(
            Verb::Get,
            "/runs",
            "list runs, the newest first",
            Needs::Login,
            AnswerBody::Json(schema::<List<RecordedRun>>),
            |call| Box::pin(runs::list_runs(call)),
        )
    },
    route(Verb::Get, "/runs/{run}", "show a run", Needs::Right(See), AnswerBody::Json(schema::<RecordedRun>), |call| {
        Box::pin(runs::show_run(call))
    }),
    route(
        Verb::Get,
        "/runs/{run}/tasks",
        "show the tasks of a run, with the result of each host",
        Needs::Right(See),
        AnswerBody::Json(schema::<RunTasks>),
        |call| Box::pin(tasks::show_tasks(call)),
    ),
    Route {
        query: &[
            ("after", "from the event after this sequence number; the header Last-Event-ID wins"),
            ("host", "events of this host only"),
            ("task", "events of the task with this id only"),
        ],
        ..route(
            Verb::Get,
            "/runs/{run}/events",
            "follow the events of a run",
            Needs::Right(See),
            AnswerBody::Events(schema::<EventList>),
            |call| Box::pin(runs::follow_events(call)),
        )
    },
    route(Verb::Get, "/runs/{run}/log", "show what a run printed", Needs::Right(See), AnswerBody::Text, |call| {
        Box::pin(runs::show_log(call))
    }),
    Route {
        status: StatusCode::ACCEPTED,
        ..route(
            Verb::Post,
            "/runs/{run}/stop",
            "stop a run when its running tasks have ended",
            Needs::Right(Stop),
            AnswerBody::Json(schema::<RecordedRun>),
            |call| Box::pin(runs::stop_run(call)),
        )
    },
    route(
        Verb::Get,
        "/tokens",
        "list tokens",
        Needs::Right(Admin),
        AnswerBody::Json(schema::<List<TokenAnswer>>),
        |call| Box::pin(tokens::list_tokens(call)),
    ),
    Route {
        body: Some(schema::<NewToken>),
        status: StatusCode::CREATED,
        ..route(
            Verb::Post,
            "/tokens",
            "create a token",
            Needs::Right(Admin),
            AnswerBody::Json(schema::<CreatedToken>),
            |call| Box::pin(tokens::create_token(call)),
        )
    },
    Route {
        status: StatusCode::NO_CONTENT,
        ..route(Verb::Delete, "/tokens/{token}", "revoke a token", Needs::Right(Admin), AnswerBody::Empty, |call| {
            Box::pin(tokens::delete_token(call))
        })
    },
    Route {
        query: &[("limit", "how many, at most 200 (default 50)"), ("after", "the value of next of the list before")],
        ..route(
            Verb::Get,
            "/audit",
            "list the audit log, the newest entries first",
            Needs::Right(Admin),
            AnswerBody::Json(schema::<List<AuditEntry>>),
            |call| Box::pin(tokens::list_audit(call)),
        )
    },
    route(
        Verb::Get,
        "/webhooks",
        "list the webhooks, and what was delivered to them",
        Needs::Right(Admin),
        AnswerBody::Json(schema::<List<WebhookState>>),
        |call| Box::pin(webhooks::list_webhooks(call)),
    ),
    Route {
        query: &[("nonce", "64 digits from 0 to f, other ones each time")],
        ..route(
            Verb::Get,
            "/proof",
            "prove to have the store that the key of proofs is in",
            Needs::Nothing,
            AnswerBody::Json(schema::<Proof>),
            |call| Box::pin(proof::show_proof(call)),
        )
    },
    route(
        Verb::Get,
        "/openapi.json",
        "show this description of the API",
        Needs::Nothing,
        AnswerBody::Json(schema::<serde_json::Value>),
        |_| Box::pin(async { Ok(answers::ok(&openapi::openapi_document())) }),
    ),
];
