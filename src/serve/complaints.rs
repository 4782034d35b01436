//! What is wrong with a document, as the API says it; and the check of a document that is stored nowhere.

use std::collections::{BTreeMap, HashMap};
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

/// How many complaints an answer has, and how many characters the path of a field.
const MOST: usize = 100;
const LONGEST_PATH: usize = 300;

fn of_diagnostics(text: &str, diagnostics: &[Diagnostic]) -> Vec<Complaint> {
    let diagnostics = &diagnostics[..diagnostics.len().min(MOST)];
    let place = |diagnostic: &Diagnostic| diagnostic.origin.as_ref().map(|origin| (origin.line, origin.column));
    // Of these places only: the paths of all fields are much longer than the document.
    let mut paths: Paths = diagnostics.iter().filter_map(place).map(|place| (place, String::new())).collect();
    if !paths.is_empty() {
        let source = std::sync::Arc::new(Source::new(SHOWN, text));
        for node in yaml::parse_with(&source, &mut Vec::new()).unwrap_or_default() {
            find_paths(&node, &mut Vec::new(), &mut paths);
        }
    }
    let complaint = |diagnostic: &Diagnostic| {
        let place = place(diagnostic);
        let path = place.and_then(|place| paths.get(&place)).filter(|path| !path.is_empty());
        Complaint {
            message: diagnostic.message.clone(),
            path: path.cloned(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            hint: diagnostic.hint.clone(),
        }
    };
    diagnostics.iter().map(complaint).collect()
}

/// By line and column.
type Paths = HashMap<(usize, usize), String>;

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Fills in the paths of the fields below a node whose places are wanted. What is met later is deeper.
fn find_paths<'a>(node: &'a Node, steps: &mut Vec<Step<'a>>, paths: &mut Paths) {
    note_path(node, steps, paths);
    match &node.kind {
        NodeKind::Map(pairs) => {
            for (key, value) in pairs {
                steps.push(Step::Key(key.as_str().unwrap_or("?")));
                note_path(key, steps, paths);
                find_paths(value, steps, paths);
                steps.pop();
            }
        }
        NodeKind::Seq(items) => {
            for (index, item) in items.iter().enumerate() {
                steps.push(Step::Index(index));
                find_paths(item, steps, paths);
                steps.pop();
            }
        }
        _ => {}
    }
}

fn note_path(node: &Node, steps: &[Step<'_>], paths: &mut Paths) {
    if let Some(path) = paths.get_mut(&(node.origin.line, node.origin.column)) {
        path.clear();
        for step in steps {
            match step {
                Step::Key(key) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    path.extend(dot.chars().chain(key.chars().take(LONGEST_PATH)));
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
            if path.chars().count() > LONGEST_PATH {
                *path = path.chars().take(LONGEST_PATH).chain("...".chars()).collect();
                return;
            }
        }
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
