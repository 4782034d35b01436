//! Secrets that a report would show.

use crate::lint::project::{Task, node_items, pairs};
use crate::lint::text::{expressions, split_words};
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::Origin;
use crate::value::doc::ArgumentKind;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

pub(super) const RULE: Rule = Rule {
    id: "no-log-missing",
    level: Level::Advice,
    about: "A task that handles a password, token or key without no_log shows it in reports, logs and diffs.",
    check,
};

/// What the names of secrets have in them, as whole words between underscores.
const SECRETS: &[&str] = &[
    "apikey",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// Last words of names that say something about a secret and hold none.
const ABOUT: &[&str] = &[
    "days",
    "dest",
    "dir",
    "directory",
    "enabled",
    "file",
    "files",
    "length",
    "mode",
    "name",
    "path",
    "policy",
    "rounds",
    "src",
    "stat",
    "ttl",
];
/// Modules that only look, decide or name files.
const HARMLESS: &[&str] = &["assert", "fail", "file", "include_vars", "meta", "pause", "stat"];

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some(doc) = task.doc else { continue };
        if task.is_quiet
            || HARMLESS.contains(&doc.name)
            || doc.name.starts_with("include")
            || doc.name.starts_with("import")
        {
            continue;
        }
        if let Some((name, origin)) = secret_of(&task) {
            let complaint = Diagnostic::new(format!("{name:?} looks like a secret and would be shown"), Some(&origin));
            found.add_finding(complaint.hint("add no_log: true to the task"));
        }
    }
}

/// The first secret that a task would show, by its name.
fn secret_of(task: &Task<'_>) -> Option<(String, Origin)> {
    if let Some(text) = task.module_text() {
        return in_node(text);
    }
    task.arguments().find_map(|(key, value)| {
        let name = key.as_str()?;
        let argument = task.doc?.argument(name);
        // The report never shows those; a path says where a secret is, not what it is.
        if argument.is_some_and(|argument| argument.secret || argument.kind == ArgumentKind::Path) {
            return None;
        }
        in_pair(key, value)
    })
}

fn in_pair(key: &Node, value: &Node) -> Option<(String, Origin)> {
    let name = key.as_str().unwrap_or_default();
    let is_text = value.as_str().is_some_and(|text| !text.is_empty()) && value.tag.as_deref() != Some("!vault");
    if is_text && is_secret(name) {
        return Some((name.to_owned(), key.origin.clone()));
    }
    in_node(value)
}

fn in_node(node: &Node) -> Option<(String, Origin)> {
    match &node.kind {
        NodeKind::Str(text) => {
            let mut all = expressions(text).into_iter().flat_map(without_filters);
            all.find(|word| is_secret(word)).map(|word| (word.to_owned(), node.origin.clone()))
        }
        NodeKind::Seq(_) => node_items(node).iter().find_map(in_node),
        NodeKind::Map(_) => pairs(node).iter().find_map(|(key, value)| in_pair(key, value)),
        _ => None,
    }
}

/// The names of an expression, without filters and quoted text.
fn without_filters(expression: &str) -> Vec<&str> {
    let outside = expression.split(['\'', '"']).step_by(2);
    outside
        .flat_map(|part| part.split('|').enumerate())
        .flat_map(|(index, part)| split_words(part).skip(usize::from(index > 0)))
        .collect()
}

/// Whether a name is that of a secret: `db_password`, `api_token`, not `password_file`.
fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    let parts: Vec<&str> = lower.split('_').collect();
    let secret =
        parts.iter().any(|part| SECRETS.contains(part)) || lower.contains("private_key") || lower.contains("api_key");
    secret && !parts.last().is_some_and(|last| ABOUT.contains(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_distinguished_from_names_about_secrets() {
        assert!(["db_password", "API_TOKEN", "vault_secret", "tls_private_key"].into_iter().all(is_secret));
        assert!(!["password_file", "tokenize", "key", "private_key_path", "secretary"].into_iter().any(is_secret));
    }

    #[test]
    fn names_of_filters_and_quoted_words_are_no_variables() {
        assert_eq!(without_filters(" x | password_hash(salt) "), ["x", "salt"]);
        assert_eq!(without_filters(" lookup('password', p) "), ["lookup", "p"]);
    }
}
