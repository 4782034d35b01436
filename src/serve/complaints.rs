//! What is wrong with a document, as the API says it; and the check of a document that is stored nowhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::sha256_hex;
use super::answers;
use super::call::Call;
use super::problem::Problem;
use super::rights::Right;
use crate::resource::{self, ForeignResourceLimits};
use crate::value::origin::{Diagnostic, Source};
use crate::value::yaml::{self, Node, NodeKind};

/// What complaints call a document that came in a request.
const SHOWN: &str = "document";

/// Something that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Complaint {
    pub message: String,
    /// The field, such as `spec.hosts[0].address`.
    path: Option<String>,
    /// From 1, as all lines and columns.
    line: Option<usize>,
    column: Option<usize>,
    /// What to do about it.
    hint: Option<String>,
}

/// What a check found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// Whether it may be stored.
    valid: bool,
    /// The deployment's name, if it could be read.
    name: Option<String>,
    /// SHA-256 of the text: what the ETag of the document would be.
    digest: String,
    complaints: Vec<Complaint>,
    warnings: Vec<Complaint>,
}

/// What documents that come through the API may name.
#[derive(Serialize, JsonSchema)]
pub(super) struct Allowed {
    /// For `spec.bundle`.
    bundles: Vec<String>,
    files: Vec<String>,
    hooks: Vec<String>,
    bastions: Vec<String>,
}

/// The text of a request with a document.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn document_text(call: &Call) -> Result<String, Problem> {
    let text = String::from_utf8(call.body.to_vec());
    text.map_err(|_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", "the document is not UTF-8 text"))
}

/// Reads a document as it is read when it is stored: with the trust of a resource from an API.
///
/// # Errors
/// All that is wrong with it.
pub(super) fn judged(
    text: &str,
    name: Option<&str>,
    limits: &ForeignResourceLimits,
) -> Result<(String, Vec<Complaint>), Vec<Complaint>> {
    match resource::read_stored_text(SHOWN, text, name, limits) {
        Ok((deployment, warnings)) => Ok((deployment.name, of_diagnostics(text, &warnings))),
        Err(complaints) => Err(of_diagnostics(text, &complaints)),
    }
}

fn of_diagnostics(text: &str, diagnostics: &[Diagnostic]) -> Vec<Complaint> {
    let mut fields = Vec::new();
    let source = std::sync::Arc::new(Source::new(SHOWN, text));
    for node in yaml::parse_with(&source, &mut Vec::new()).unwrap_or_default() {
        add_fields(&node, String::new(), &mut fields);
    }
    let complaint = |diagnostic: &Diagnostic| {
        let place = diagnostic.origin.as_ref().map(|origin| (origin.line, origin.column));
        // What is written later in the list is deeper.
        let field = fields.iter().rev().find(|(at, _)| Some(*at) == place);
        Complaint {
            message: diagnostic.message.clone(),
            path: field.map(|(_, path)| path.clone()).filter(|path| !path.is_empty()),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            hint: diagnostic.hint.clone(),
        }
    };
    diagnostics.iter().map(complaint).collect()
}

type FieldPlace = ((usize, usize), String);

/// The places of all fields below a node, each with its path.
fn add_fields(node: &Node, path: String, fields: &mut Vec<FieldPlace>) {
    fields.push(((node.origin.line, node.origin.column), path.clone()));
    match &node.kind {
        NodeKind::Map(pairs) => {
            for (key, value) in pairs {
                let key_text = key.as_str().unwrap_or("?");
                let below = if path.is_empty() { key_text.to_owned() } else { format!("{path}.{key_text}") };
                fields.push(((key.origin.line, key.origin.column), below.clone()));
                add_fields(value, below, fields);
            }
        }
        NodeKind::Seq(items) => {
            for (index, item) in items.iter().enumerate() {
                add_fields(item, format!("{path}[{index}]"), fields);
            }
        }
        _ => {}
    }
}

/// Names what the settings allow by name, without the paths.
pub(super) async fn show_allowed(call: Call) -> Result<Response, Problem> {
    if !call.login.as_ref().is_some_and(|login| login.rights.include_somewhere(Right::Edit)) {
        return Err(Problem::forbidden(Right::Edit));
    }
    let names = |named: &BTreeMap<String, PathBuf>| named.keys().cloned().collect();
    let limits = &call.server.limits;
    Ok(answers::ok(&Allowed {
        bundles: names(&limits.bundles),
        files: names(&limits.files),
        hooks: names(&limits.hooks),
        bastions: limits.bastions.clone(),
    }))
}

/// Says what is wrong with a document. Nothing is stored.
pub(super) async fn check_document(call: Call) -> Result<Response, Problem> {
    let name = call.query.get("deployment").cloned();
    let may = call.login.as_ref().is_some_and(|login| match &name {
        Some(name) => login.rights.include(Right::Edit, Some(name)),
        None => login.rights.include_somewhere(Right::Edit),
    });
    if !may {
        return Err(Problem::forbidden(Right::Edit));
    }
    let text = document_text(&call)?;
    let check = move |server: &super::Server| {
        let digest = sha256_hex(text.as_bytes());
        Ok(match judged(&text, name.as_deref(), &server.limits) {
            Ok((name, warnings)) => Checked { valid: true, name: Some(name), digest, complaints: Vec::new(), warnings },
            Err(complaints) => Checked { valid: false, name: None, digest, complaints, warnings: Vec::new() },
        })
    };
    Ok(answers::ok(&call.server.blocking(check).await?))
}
