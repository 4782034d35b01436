//! What is wrong with a document, as the API says it.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

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
