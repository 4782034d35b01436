//! `-e`: `key=value` pairs, JSON or YAML text, or `@FILE`.

use std::path::Path;
use std::sync::Arc;

use crate::value::origin::{Diagnostic, Origin, Source};
use crate::value::vault::Keyring;
use crate::value::yaml::{self, Duplicates};
use crate::value::{Value, Vars};

/// Reads all `-e` arguments; a later one wins.
pub(super) fn read_extra_vars(
    arguments: &[String],
    keyring: &Keyring,
    duplicates: &Duplicates,
) -> Result<Vars, Diagnostic> {
    let mut vars = Vars::new();
    for argument in arguments {
        vars.extend(one(argument, keyring, duplicates)?);
    }
    Ok(vars)
}

fn one(argument: &str, keyring: &Keyring, duplicates: &Duplicates) -> Result<Vars, Diagnostic> {
    if let Some(path) = argument.strip_prefix('@') {
        return match yaml::load_yaml(Path::new(path), keyring, duplicates)? {
            Some(node) => node.to_vars(keyring),
            None => Ok(Vars::new()),
        };
    }
    let source = Arc::new(Source::new("--extra-vars", argument));
    if argument.trim_start().starts_with(['{', '[']) {
        let mut found = Vec::new();
        let documents = yaml::parse_with(&source, &mut found)?;
        // As in Ansible, the last one counts in JSON without a word.
        if serde_json::from_str::<serde::de::IgnoredAny>(argument).is_err() {
            duplicates.found(found)?;
        }
        return documents.first().map_or_else(|| Ok(Vars::new()), |node| node.to_vars(keyring));
    }
    let origin = Origin { source, line: 1, column: 1 };
    pairs(argument, &origin)
}

/// `a=1 b="two words"`: the values are strings, as in Ansible.
fn pairs(argument: &str, origin: &Origin) -> Result<Vars, Diagnostic> {
    let words = shlex::split(argument)
        .ok_or_else(|| Diagnostic::new("a quote in the extra variables is not closed", Some(origin)))?;
    words
        .iter()
        .map(|word| match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok((Arc::from(name), crate::value::Template::template_value(value, Some(origin))))
            }
            _ => Err(Diagnostic::new(format!("invalid variable {word:?}: expected KEY=VALUE"), Some(origin))
                .hint("write -e KEY=VALUE, -e '{\"key\": \"value\"}' or -e @FILE")),
        })
        .collect::<Result<Vec<(Arc<str>, Value)>, _>>()
        .map(|pairs| pairs.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(arguments: &[&str]) -> Result<Vars, Diagnostic> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        read_extra_vars(&arguments, &Keyring::default(), &Duplicates::default())
    }

    #[test]
    fn pairs_are_strings_and_json_keeps_its_types() {
        let vars = read_all(&["a=1 b='two words'", r#"{"a": 2, "c": [1]}"#]).unwrap();
        assert_eq!(vars["a"], Value::from(2));
        assert_eq!(vars["b"], Value::from("two words"));
        assert_eq!(vars["c"].len(), Some(1));
    }

    #[test]
    fn a_word_without_an_equals_sign_is_refused_by_name() {
        let complaint = read_all(&["oops"]).unwrap_err();
        assert!(complaint.message.contains("oops"), "{complaint}");
    }
}
