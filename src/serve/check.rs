//! The check of a document that is stored nowhere, and what documents may name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::sha256_hex;
use super::answers;
use super::call::Call;
use super::complaints::{Complaint, judged};
use super::problem::Problem;
use super::rights::Right;

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
