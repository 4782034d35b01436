//! YAML with places, read as PyYAML reads it (YAML 1.1): the only folder that names the YAML parser.
//! `parse.rs` builds nodes from the parser's events, from a text that `loosen.rs` corrects where needed, `scalar.rs` finds their types, `emit.rs` writes YAML.

mod duplicates;
mod emit;
mod loosen;
mod parse;
mod scalar;

pub use duplicates::{DuplicateKeys, Duplicates, warning};
pub use emit::{FlowStyle, YamlStyle, emit};

use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

use super::origin::{Diagnostic, Origin, Source};
use super::vault::{self, Keyring};
use super::{Template, Value, Vars};

/// A YAML value and where it is.
#[derive(Debug, Clone)]
pub struct Node {
    pub kind: NodeKind,
    /// `!vault`, `!unsafe` and the like, with the exclamation mark.
    pub tag: Option<Arc<str>>,
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that `Int` cannot hold; beyond 128 bits it stays text.
    BigInt(i128),
    Float(f64),
    Str(Arc<str>),
    Seq(Vec<Node>),
    /// In the order written; merge keys (`<<`) are resolved, of two equal keys the last counts.
    Map(Vec<(Node, Node)>),
}

/// Reads and parses a YAML file of one document (None: it is empty); a vault-encrypted file is decrypted first.
/// `duplicates` takes warnings of duplicate keys; [`load_with`] returns them.
pub fn load_yaml(path: &Path, keyring: &Keyring, duplicates: &Duplicates) -> Result<Option<Node>, Diagnostic> {
    let mut warnings = Vec::new();
    let node = load_with(path, path, keyring, &mut warnings)?;
    duplicates.found(warnings)?;
    Ok(node)
}

/// As [`load_yaml`], with warnings added to `warnings`. `shown` is the path in messages.
pub fn load_with(
    path: &Path,
    shown: &Path,
    keyring: &Keyring,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Option<Node>, Diagnostic> {
    let (source, text) = read_source(path, shown, keyring)?;
    let whole = text.as_deref().unwrap_or(&source.text);
    let mut documents = parse::documents(&source, whole, warnings)?;
    // Ansible reads what is JSON as such, where the last one counts without a word.
    if !warnings.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(whole).is_ok() {
        warnings.clear();
    }
    if text.is_some() {
        documents.iter().for_each(|node| node.hide(keyring));
    }
    if let Some(second) = documents.get(1) {
        return Err(Diagnostic::new("expected one document, and a second one starts here", Some(&second.origin))
            .hint("remove the line with ---"));
    }
    Ok(documents.pop().filter(|node| !matches!(node.kind, NodeKind::Null)))
}

/// A file as text; of a vault file the plain text comes second, and is no part of the source that messages show.
fn read_source(path: &Path, shown: &Path, keyring: &Keyring) -> Result<(Arc<Source>, Option<String>), Diagnostic> {
    let unreadable =
        |why: &dyn std::fmt::Display| Diagnostic::new(format!("cannot read {}: {why}", shown.display()), None);
    let bytes = super::read::bytes(path).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))?;
    if !vault::is_vault(&text) {
        return Ok((Arc::new(Source::new(shown, text)), None));
    }
    let source = Arc::new(Source::new(shown, ""));
    let plain = keyring
        .decrypt(&text)
        .map_err(|error| vault_complaint(&error, &Origin { source: source.clone(), line: 1, column: 1 }))?;
    let plain = String::from_utf8(plain).map_err(|_| unreadable(&"the decrypted text is not UTF-8"))?;
    Ok((source, Some(plain)))
}

/// Parses all documents of a source. Warnings go to the log; [`parse_with`] returns them.
pub fn parse_yaml(source: &Arc<Source>) -> Result<Vec<Node>, Diagnostic> {
    let mut warnings = Vec::new();
    let nodes = parse_with(source, &mut warnings);
    log(&warnings);
    nodes
}

/// As [`parse`], with warnings added to `warnings`.
pub fn parse_with(source: &Arc<Source>, warnings: &mut Vec<Diagnostic>) -> Result<Vec<Node>, Diagnostic> {
    parse::documents(source, &source.text, warnings)
}

/// Parses a text that is no file of a person (a filter's input): the first document's value, no templates in it.
pub fn plain_values(text: &str) -> Result<Vec<Value>, Diagnostic> {
    let source = Arc::new(Source::new("<text>", text));
    let documents = parse::documents(&source, text, &mut Vec::new())?;
    documents.iter().map(|node| node.value(&Keyring::default(), false)).collect()
}

fn log(warnings: &[Diagnostic]) {
    for warning in warnings {
        tracing::warn!("{}", duplicates::warning(warning.clone()));
    }
}

fn vault_complaint(error: &vault::Error, origin: &Origin) -> Diagnostic {
    let complaint = Diagnostic::new(format!("cannot decrypt: {error}"), Some(origin));
    match error {
        vault::Error::NoPassword | vault::Error::WrongPassword => {
            complaint.hint("pass the password with --vault-password-file or --ask-vault-pass")
        }
        vault::Error::NotVault | vault::Error::Damaged => complaint,
    }
}

/// A text as a terminal may show it: control characters, which it would obey, are escaped.
pub fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    let control = |c: char| c.is_control() && c != '\t';
    match text.contains(control) {
        false => text.into(),
        true => text.chars().map(|c| if control(c) { c.escape_default().to_string() } else { c.to_string() }).collect(),
    }
}

impl Node {
    /// As data, with nothing in it taken for a template. Names that are no text become their text.
    pub fn to_json(&self) -> Json {
        match &self.kind {
            NodeKind::Null => Json::Null,
            NodeKind::Bool(truth) => Json::Bool(*truth),
            NodeKind::Int(number) => Json::from(*number),
            NodeKind::BigInt(number) => {
                u64::try_from(*number).map_or_else(|_| Json::from(number.to_string()), Json::from)
            }
            NodeKind::Float(number) => Json::from(*number),
            NodeKind::Str(text) => Json::from(&**text),
            NodeKind::Seq(items) => items.iter().map(Node::to_json).collect(),
            NodeKind::Map(pairs) => {
                let name = |node: &Node| match node.to_json() {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                Json::Object(pairs.iter().map(|(key, value)| (name(key), value.to_json())).collect())
            }
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The value under a key, if it is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            NodeKind::Map(pairs) => pairs.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value),
            _ => None,
        }
    }

    /// What it is, in a person's words: `a list`, `a mapping`, `the string "x"`.
    pub fn what(&self) -> String {
        match &self.kind {
            NodeKind::Null => "nothing".into(),
            NodeKind::Bool(value) => format!("the boolean {value}"),
            NodeKind::Int(value) => format!("the number {value}"),
            NodeKind::BigInt(value) => format!("the number {value}"),
            NodeKind::Float(value) => format!("the number {value}"),
            NodeKind::Str(_) if self.tag.as_deref() == Some("!vault") => "an encrypted string".into(),
            NodeKind::Str(text) if text.chars().count() > 40 || text.contains('\n') => {
                let start: String = text.chars().take_while(|c| *c != '\n').take(37).collect();
                format!("the string \"{}...\"", printable(&start))
            }
            NodeKind::Str(text) => format!("the string \"{}\"", printable(text)),
            NodeKind::Seq(_) => "a list".into(),
            NodeKind::Map(_) => "a mapping".into(),
        }
    }

    /// The dynamic value: strings with template marks become [`super::Template`]s (not those tagged `!unsafe`),
    /// `!vault` strings are decrypted with the keyring.
    pub fn to_value(&self, keyring: &Keyring) -> Result<Value, Diagnostic> {
        self.value(keyring, true)
    }

    /// As [`Node::to_value`], for a mapping with string keys; null is an empty mapping.
    pub fn to_vars(&self, keyring: &Keyring) -> Result<Vars, Diagnostic> {
        let pairs = match &self.kind {
            NodeKind::Null => return Ok(Vars::new()),
            NodeKind::Map(pairs) => pairs,
            _ => {
                let message = format!("variables must be a mapping, this is {}", self.what());
                return Err(Diagnostic::new(message, Some(&self.origin)));
            }
        };
        let templates = self.tag.as_deref() != Some("!unsafe");
        let var = |(key, value): &(Node, Node)| match &key.kind {
            NodeKind::Str(name) => Ok((name.clone(), value.value(keyring, templates)?)),
            _ => {
                let message = format!("the name of a variable must be a string, this is {}", key.what());
                Err(Diagnostic::new(message, Some(&key.origin)).hint("put it in quotes"))
            }
        };
        pairs.iter().map(var).collect()
    }

    /// The strings and numbers of an encrypted file are hidden, of those with template marks what is around these.
    fn hide(&self, keyring: &Keyring) {
        match &self.kind {
            NodeKind::Int(number) => keyring.hidden.add_secret(&number.to_string()),
            NodeKind::BigInt(number) => keyring.hidden.add_secret(&number.to_string()),
            NodeKind::Float(number) => keyring.hidden.add_secret(&number.to_string()),
            NodeKind::Str(text) => super::around_marks(text).for_each(|part| keyring.hidden.add_secret(part)),
            NodeKind::Seq(items) => items.iter().for_each(|item| item.hide(keyring)),
            NodeKind::Map(pairs) => pairs.iter().for_each(|(_, value)| value.hide(keyring)),
            _ => {}
        }
    }

    fn value(&self, keyring: &Keyring, templates: bool) -> Result<Value, Diagnostic> {
        let templates = templates && self.tag.as_deref() != Some("!unsafe");
        Ok(match &self.kind {
            NodeKind::Null => Value::from(()),
            NodeKind::Bool(value) => Value::from(*value),
            NodeKind::Int(value) => Value::from(*value),
            NodeKind::BigInt(value) => Value::from(*value),
            NodeKind::Float(value) => Value::from(*value),
            NodeKind::Str(text) if self.tag.as_deref() == Some("!vault") => {
                let plain = keyring.decrypt(text).map_err(|error| vault_complaint(&error, &self.origin))?;
                let plain = String::from_utf8(plain)
                    .map_err(|_| Diagnostic::new("the decrypted text is not UTF-8", Some(&self.origin)))?;
                keyring.hidden.add_secret(&plain);
                // As in Ansible: marks in it mean nothing, a password may have them.
                Value::from(plain)
            }
            NodeKind::Str(text) if templates => Template::template_value(text, Some(&self.origin)),
            NodeKind::Str(text) => Value::from(text.clone()),
            NodeKind::Seq(items) => {
                let items: Result<Vec<Value>, _> = items.iter().map(|item| item.value(keyring, templates)).collect();
                Value::from(items?)
            }
            NodeKind::Map(pairs) => {
                let pair =
                    |(key, value): &(Node, Node)| Ok((key.value(keyring, false)?, value.value(keyring, templates)?));
                let pairs: Result<Vec<(Value, Value)>, Diagnostic> = pairs.iter().map(pair).collect();
                Value::from_pairs(pairs?)
            }
        })
    }
}

#[cfg(test)]
mod tests;
