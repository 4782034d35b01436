//! Finds wrong syntax and unknown filters and tests before anything runs, and says what may have been meant.

use std::sync::LazyLock;

use minijinja::machinery::Token;
use minijinja::syntax::SyntaxConfig;

use super::environment::{COLLECTIONS, filter_names, test_names};
use super::rewrite::{Reading, tokens};
use super::{Error, render};
use crate::value::origin::nearest;
use crate::value::{Origin, Template, Value};

/// Checks every template in a value.
pub fn value(value: &Value) -> Result<(), Error> {
    let Some(object) = value.as_object() else { return Ok(()) };
    if let Some(template) = object.downcast_ref::<Template>() {
        return text(&template.source, template.origin.as_ref());
    }
    match object.try_iter_pairs() {
        Some(pairs) if value.kind() == minijinja::value::ValueKind::Map => {
            pairs.into_iter().try_for_each(|(_, item)| self::value(&item))
        }
        _ => object.try_iter().into_iter().flatten().try_for_each(|item| self::value(&item)),
    }
}

fn text(source: &str, origin: Option<&Origin>) -> Result<(), Error> {
    render::check_text(source).map_err(|error| Error::other(error.to_string(), origin))?;
    names(source, Reading::Template, &render::syntax(), origin)
}

/// Checks an expression without braces.
pub fn expression(source: &str, origin: Option<&Origin>) -> Result<(), Error> {
    render::check_expression(source).map_err(|error| Error::other(error.to_string(), origin))?;
    names(source, Reading::Expression, &SyntaxConfig::default(), origin)
}

/// Filters stand behind `|`, tests behind `is` and `is not`.
fn names(source: &str, reading: Reading, syntax: &SyntaxConfig, origin: Option<&Origin>) -> Result<(), Error> {
    static FILTERS: LazyLock<Vec<&str>> = LazyLock::new(filter_names);
    static TESTS: LazyLock<Vec<&str>> = LazyLock::new(test_names);
    let Ok(tokens) = tokens(source, reading, syntax) else { return Ok(()) };
    for (i, (token, _)) in tokens.iter().enumerate() {
        let after = match token {
            Token::Pipe => i + 1,
            Token::Ident("is") if matches!(tokens.get(i + 1).map(|t| &t.0), Some(Token::Ident("not"))) => i + 2,
            Token::Ident("is") => i + 1,
            _ => continue,
        };
        let name = dotted(&tokens[after.min(tokens.len())..]);
        let (what, known) = if matches!(token, Token::Pipe) { ("filter", &FILTERS) } else { ("test", &TESTS) };
        known_name(&name, what, known).map_err(|message| Error::other(message, origin))?;
    }
    Ok(())
}

fn dotted<S>(tokens: &[(Token<'_>, S)]) -> String {
    let mut name = String::new();
    for pair in tokens.chunks(2) {
        let Token::Ident(word) = pair[0].0 else { break };
        name.push_str(word);
        match pair.get(1) {
            Some((Token::Dot, _)) => name.push('.'),
            _ => break,
        }
    }
    name
}

fn known_name(name: &str, what: &str, known: &[&str]) -> Result<(), String> {
    let short = COLLECTIONS.iter().find_map(|collection| name.strip_prefix(collection)).unwrap_or(name);
    if name.is_empty() || known.contains(&short) {
        return Ok(());
    }
    Err(match nearest(short, known.iter().copied()) {
        Some(near) => format!("there is no {what} {name:?}, did you mean {near:?}?"),
        None => format!("there is no {what} {name:?}"),
    })
}
