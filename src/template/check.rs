//! Finds wrong syntax and unknown filters, tests and lookups before anything runs, and says what may have been meant.

use std::sync::LazyLock;

use minijinja::machinery::Token;
use minijinja::syntax::SyntaxConfig;

use super::cache::TextCache;
use super::engine::{self, Engine};
use super::environment::{filter_names, test_names};
use super::lookups::LOOKUPS;
use super::naming::locate_word;
use super::programs::{ProgramKind, Programs};
use super::rewrite::{SourceMode, tokens};
use super::{COLLECTIONS, Error};
use crate::value::nearest::nearest;
use crate::value::{Origin, Template, Value};

/// Checks every template in a value.
pub(super) fn check_value_syntax(engine: &'static Engine, value: &Value) -> Result<(), Error> {
    let Some(object) = value.as_object() else { return Ok(()) };
    if let Some(template) = object.downcast_ref::<Template>() {
        return text(engine, &template.source, template.origin.as_ref());
    }
    match object.try_iter_pairs() {
        Some(pairs) if value.kind() == minijinja::value::ValueKind::Map => {
            pairs.into_iter().try_for_each(|(_, item)| self::check_value_syntax(engine, &item))
        }
        _ => object.try_iter().into_iter().flatten().try_for_each(|item| self::check_value_syntax(engine, &item)),
    }
}

fn text(engine: &'static Engine, source: &str, origin: Option<&Origin>) -> Result<(), Error> {
    once(&engine.good[0], source, || {
        engine::check_text(engine, source).map_err(|error| Error::other(error.to_string(), origin))?;
        names(engine.programs(), source, SourceMode::Template, &engine::syntax(), origin)
    })
}

/// Checks an expression without braces.
pub(super) fn check_expression_syntax(
    engine: &'static Engine,
    source: &str,
    origin: Option<&Origin>,
) -> Result<(), Error> {
    once(&engine.good[1], source, || {
        engine::check_expression(engine, source).map_err(|error| Error::other(error.to_string(), origin))?;
        names(engine.programs(), source, SourceMode::Expression, &SyntaxConfig::default(), origin)
    })
}

fn once(good: &TextCache<()>, source: &str, check: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    if good.recall(source).is_none() {
        check()?;
        good.keep(source, ());
    }
    Ok(())
}

/// Filters stand behind `|`, tests behind `is` and `is not`, names of lookups in `lookup('NAME'` and `query('NAME'`.
fn names(
    programs: &Programs,
    source: &str,
    reading: SourceMode,
    syntax: &SyntaxConfig,
    origin: Option<&Origin>,
) -> Result<(), Error> {
    static FILTERS: LazyLock<Vec<&str>> = LazyLock::new(filter_names);
    static TESTS: LazyLock<Vec<&str>> = LazyLock::new(test_names);
    let Ok(tokens) = tokens(source, reading, syntax) else { return Ok(()) };
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| LOOKUPS.iter().map(|(word, _)| word.name).collect());
    for (i, (token, _)) in tokens.iter().enumerate() {
        let after = match token {
            Token::Ident("lookup" | "query" | "q") => {
                if let Some(name) = first_text(&tokens[i + 1..]) {
                    known_name(programs, name, "lookup", &NAMES, source, origin)?;
                }
                continue;
            }
            Token::Pipe => i + 1,
            Token::Ident("is") if matches!(tokens.get(i + 1).map(|t| &t.0), Some(Token::Ident("not"))) => i + 2,
            Token::Ident("is") => i + 1,
            _ => continue,
        };
        let name = dotted(&tokens[after.min(tokens.len())..]);
        let (what, known) = if matches!(token, Token::Pipe) { ("filter", &FILTERS) } else { ("test", &TESTS) };
        known_name(programs, &name, what, known, source, origin)?;
    }
    Ok(())
}

/// The first argument of a call, if it is a text and not put together from several.
fn first_text<'a, S>(tokens: &'a [(Token<'_>, S)]) -> Option<&'a str> {
    match tokens {
        [(Token::ParenOpen, _), (Token::Str(name), _), (Token::Comma | Token::ParenClose, _), ..] => Some(name),
        [(Token::ParenOpen, _), (Token::String(name), _), (Token::Comma | Token::ParenClose, _), ..] => Some(name),
        _ => None,
    }
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

fn known_name(
    programs: &Programs,
    name: &str,
    what: &'static str,
    known: &[&str],
    source: &str,
    origin: Option<&Origin>,
) -> Result<(), Error> {
    let short = COLLECTIONS.iter().find_map(|collection| name.strip_prefix(collection)).unwrap_or(name);
    let own = match what {
        "filter" => programs.find_program_path(ProgramKind::Filter, short),
        "lookup" => programs.find_program_path(ProgramKind::Lookup, short),
        _ => None,
    };
    if name.is_empty() || known.contains(&short) || own.is_some() {
        return Ok(());
    }
    let near = nearest(short, known.iter().copied()).map(str::to_owned);
    let origin = origin.map(|origin| locate_word(origin, source, name));
    Err(Error::Unknown { what, name: name.to_owned(), near, origin })
}
