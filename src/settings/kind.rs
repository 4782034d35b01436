//! From what was written to a value of the setting's kind.

use std::path::Path;

use crate::value::ProcessEnvironment;
use crate::value::{Value, truth};

/// What may be written for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// `true`, `yes`, `on`, `1` and their opposites.
    Bool,
    /// As [`SettingKind::Bool`], or one of some words.
    BoolOr(&'static [&'static str]),
    /// A whole number of at least so much.
    Int(i64),
    Text,
    /// Text that is never shown.
    Secret,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Words with commas between them.
    List,
    Path,
    /// Paths with colons between them.
    Paths,
    /// Paths with commas between them.
    PathList,
    /// `NAME=PATH` with commas between them.
    NamedPaths,
}

impl SettingKind {
    /// In words, for the documentation and for messages: `a whole number of at least 1`.
    pub fn setting_kind_text(self) -> String {
        match self {
            SettingKind::Bool => "true or false".into(),
            SettingKind::BoolOr(words) => format!("true, false or {}", words.join(" or ")),
            SettingKind::Int(least) => format!("a whole number of at least {least}"),
            SettingKind::Text => "text".into(),
            SettingKind::Secret => "a secret".into(),
            SettingKind::Choice(words) => format!("one of {}", words.join(", ")),
            SettingKind::List => "words separated by commas".into(),
            SettingKind::Path => "a path".into(),
            SettingKind::Paths => "paths separated by colons".into(),
            SettingKind::PathList => "paths separated by commas".into(),
            SettingKind::NamedPaths => "NAME=PATH, separated by commas".into(),
        }
    }

    /// The value of `text`; None: it is not of this kind. Relative paths start at `base`. Empty text is
    /// an empty value where that is possible.
    pub fn parse_setting(self, text: &str, base: &Path, around: &ProcessEnvironment) -> Option<Value> {
        let path = |text: &str| around.resolve_path(text, base).display().to_string();
        let parts = |mark: char| text.split(mark).map(|part| unquoted(part.trim())).filter(|part| !part.is_empty());
        let text = unquoted(text);
        Some(match self {
            SettingKind::Bool => Value::from(truth::of_word(text)?),
            SettingKind::BoolOr(words) => match truth::of_word(text) {
                Some(truth) => Value::from(truth),
                None => Value::from(*words.iter().find(|word| **word == text)?),
            },
            SettingKind::Int(least) => Value::from(text.parse::<i64>().ok().filter(|number| *number >= least)?),
            SettingKind::Choice(words) => Value::from(*words.iter().find(|word| **word == text)?),
            SettingKind::Text | SettingKind::Secret | SettingKind::Path if text.is_empty() => Value::from(()),
            SettingKind::Text | SettingKind::Secret => Value::from(text),
            SettingKind::Path => Value::from(path(text)),
            SettingKind::List => parts(',').collect::<Vec<_>>().into_iter().map(Value::from).collect(),
            SettingKind::Paths => parts(':').map(path).map(Value::from).collect(),
            SettingKind::PathList => parts(',').map(path).map(Value::from).collect(),
            SettingKind::NamedPaths => {
                let named = |part: &str| {
                    let (name, text) = part.split_once('=')?;
                    let (name, text) = (name.trim(), text.trim());
                    (!name.is_empty() && !text.is_empty()).then(|| Value::from(format!("{name}={}", path(text))))
                };
                parts(',').map(named).collect::<Option<Vec<_>>>()?.into_iter().collect()
            }
        })
    }
}

/// Without the quotes around it, if it has some.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}
