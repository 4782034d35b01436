//! From the engine's errors to ours: which variable is undefined, and where in the person's text it is.

use std::sync::Arc;

use minijinja::machinery::{Span, Token};
use minijinja::syntax::SyntaxConfig;

use super::render::{Session, is_undefined};
use super::rewrite::{SourceMode, tokens};
use super::{Error, Scope, engine, engine_error_text, lazy};
use crate::value::{Origin, Value};

/// Our error for one of the engine's, which came of `source`.
pub(super) fn explain(
    error: &minijinja::Error,
    source: &str,
    reading: SourceMode,
    origin: Option<&Origin>,
    scope: &Arc<Scope>,
) -> Error {
    if let Some(inner) = Error::inside(error) {
        return within(inner.clone(), source, origin);
    }
    if is_undefined(error) {
        return undefined(source, reading, origin, scope);
    }
    Error::Other {
        message: engine_error_text(error),
        origin: origin.map(|origin| line_of(origin, source, error.line())),
    }
}

/// An error of a variable's text, with the place that used it around; errors of filters get the place alone.
fn within(error: Error, source: &str, origin: Option<&Origin>) -> Error {
    match error {
        Error::Other { message, origin: None } => Error::other(message, origin),
        Error::Unknown { what, name, near, origin: None } => {
            let origin = origin.map(|origin| locate_word(origin, source, &name));
            Error::Unknown { what, name, near, origin }
        }
        Error::Undefined { name, origin: None } => {
            let origin = origin.map(|origin| locate_word(origin, source, &name));
            Error::Undefined { name, origin }
        }
        error => error,
    }
}

/// The error for an undefined value in a text: the first of its variables that is undefined and not asked whether.
pub(super) fn undefined(source: &str, reading: SourceMode, origin: Option<&Origin>, scope: &Arc<Scope>) -> Error {
    let _session = Session::enter();
    culprit(source, reading, origin, scope).unwrap_or_else(|| {
        let name = source.trim().trim_start_matches("{{").trim_end_matches("}}").trim();
        Error::Undefined { name: name.to_owned(), origin: origin.cloned() }
    })
}

fn culprit(source: &str, reading: SourceMode, origin: Option<&Origin>, scope: &Arc<Scope>) -> Option<Error> {
    let syntax = if reading == SourceMode::Template { engine::syntax() } else { SyntaxConfig::default() };
    let tokens = tokens(source, reading, &syntax).ok()?;
    let locals = locals(&tokens);
    let chains = (0..tokens.len()).filter_map(|i| chain(&tokens, i)).filter(|chain| !locals.contains(&chain.root));
    let mut chains = chains.filter(|chain| !chain.asked);
    let undefined = chains.find_map(|chain| {
        let origin = origin.map(|origin| locate_word(origin, source, chain.root));
        failure(&chain, origin.as_ref(), scope)
    });
    undefined.or_else(|| {
        let hint = tokens.iter().enumerate().find_map(|(i, _)| hint(&tokens[i..]))?;
        Some(Error::Hint { hint, origin: origin.map(|origin| locate_word(origin, source, "undef")) })
    })
}

/// The text of `undef(hint='...')` where the tokens begin with such a call.
fn hint(tokens: &[(Token<'_>, Span)]) -> Option<String> {
    let mut tokens = tokens.iter().map(|(token, _)| token);
    let (Some(Token::Ident("undef")), Some(Token::ParenOpen)) = (tokens.next(), tokens.next()) else { return None };
    let mut argument = tokens.next()?;
    if let Token::Ident("hint") = argument {
        tokens.next().filter(|token| matches!(token, Token::Assign))?;
        argument = tokens.next()?;
    }
    match argument {
        Token::Str(hint) => Some((*hint).to_owned()),
        Token::String(hint) => Some(hint.to_string()),
        _ => None,
    }
}

/// What is wrong with a chain, if something is.
fn failure(chain: &Chain<'_>, origin: Option<&Origin>, scope: &Arc<Scope>) -> Option<Error> {
    let origin = origin.cloned();
    match follow(chain, scope) {
        Some(Ok(())) | None => None,
        Some(Err(Failure::Missing(name))) => Some(Error::Undefined { name, origin }),
        Some(Err(Failure::Inner(variable, error))) => Some(Error::Within { variable, origin, source: Box::new(error) }),
    }
}

/// A variable with the members that are looked at, as far as they are written out: `a.b['c'][0]`.
struct Chain<'a> {
    root: &'a str,
    members: Vec<Value>,
    /// `is defined`, `| default()` and the like follow.
    asked: bool,
}

enum Failure {
    Missing(String),
    /// It is there, but its own text fails.
    Inner(String, Error),
}

fn chain<'a>(tokens: &[(Token<'a>, Span)], at: usize) -> Option<Chain<'a>> {
    let Token::Ident(root) = tokens[at].0 else { return None };
    let before = at.checked_sub(1).map(|i| &tokens[i].0);
    let after = tokens.get(at + 1).map(|(token, _)| token);
    // Names of members, filters, tests, functions and keyword arguments are no variables.
    let keyword_argument =
        matches!(after, Some(Token::Assign)) && matches!(before, Some(Token::ParenOpen | Token::Comma));
    if matches!(before, Some(Token::Dot | Token::Pipe | Token::Ident("is")))
        || matches!(after, Some(Token::ParenOpen))
        || keyword_argument
        || is_keyword(root)
        || is_statement_word(tokens, at)
    {
        return None;
    }
    let mut members = Vec::new();
    let mut i = at + 1;
    loop {
        match (tokens.get(i).map(|t| &t.0), tokens.get(i + 1).map(|t| &t.0), tokens.get(i + 2).map(|t| &t.0)) {
            (Some(Token::Dot), Some(Token::Ident(_)), Some(Token::ParenOpen)) => break,
            (Some(Token::Dot), Some(Token::Ident(name)), _) => {
                members.push(Value::from(*name));
                i += 2;
            }
            (Some(Token::BracketOpen), Some(key), Some(Token::BracketClose)) => {
                members.push(match key {
                    Token::Str(key) => Value::from(*key),
                    Token::String(key) => Value::from(&**key),
                    Token::Int(index) => Value::from(*index),
                    _ => break,
                });
                i += 3;
            }
            _ => break,
        }
    }
    Some(Chain { root, members, asked: is_asked(tokens, i) })
}

/// Words of expressions, which name no variable.
fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "and"
            | "or"
            | "not"
            | "in"
            | "is"
            | "if"
            | "else"
            | "true"
            | "True"
            | "false"
            | "False"
            | "none"
            | "None"
            | "loop"
    ) || matches!(name, "omit" | "caller" | "self" | "super")
}

/// Words of statements: the first of each, and those of `include`, `import` and `for`.
fn is_statement_word(tokens: &[(Token<'_>, Span)], at: usize) -> bool {
    let Some(open) =
        (0..at).rev().find(|i| matches!(tokens[*i].0, Token::BlockStart | Token::BlockEnd | Token::VariableEnd))
    else {
        return false;
    };
    if !matches!(tokens[open].0, Token::BlockStart) {
        return false;
    }
    let loads = matches!(tokens[open + 1].0, Token::Ident("include" | "import" | "from" | "for"));
    let word = matches!(
        tokens[at].0,
        Token::Ident("ignore" | "missing" | "with" | "without" | "context" | "as" | "import" | "recursive")
    );
    open + 1 == at || loads && word
}

fn is_asked(tokens: &[(Token<'_>, Span)], at: usize) -> bool {
    let word = |i: usize| match tokens.get(i).map(|t| &t.0) {
        Some(Token::Ident(name)) => *name,
        _ => "",
    };
    match tokens.get(at).map(|t| &t.0) {
        Some(Token::Pipe) => matches!(word(at + 1), "default" | "d" | "type_debug"),
        Some(Token::Ident("is")) => {
            let test = if word(at + 1) == "not" { word(at + 2) } else { word(at + 1) };
            matches!(test, "defined" | "undefined")
        }
        _ => false,
    }
}

/// Names that the text itself gives values to.
fn locals<'a>(tokens: &[(Token<'a>, Span)]) -> Vec<&'a str> {
    let mut locals = Vec::new();
    for (i, (token, _)) in tokens.iter().enumerate() {
        let opens = matches!(i.checked_sub(1).map(|p| &tokens[p].0), Some(Token::BlockStart));
        if !opens || !matches!(token, Token::Ident("for" | "set" | "macro" | "with" | "import" | "from" | "call")) {
            continue;
        }
        for (token, _) in &tokens[i + 1..] {
            match token {
                Token::Ident("in") | Token::BlockEnd => break,
                Token::Assign if !matches!(tokens[i].0, Token::Ident("macro" | "with" | "call")) => break,
                Token::Ident(name) => locals.push(*name),
                _ => {}
            }
        }
    }
    locals
}

/// Follows a chain in the scope. None: its end is not reached by looking alone.
fn follow(chain: &Chain<'_>, scope: &Arc<Scope>) -> Option<Result<(), Failure>> {
    let Some(raw) = scope.get(chain.root) else {
        let known = scope.engine.is_function(chain.root);
        return (!known).then(|| Err(Failure::Missing(chain.root.to_owned())));
    };
    let mut value = match lazy::see(raw, scope) {
        Ok(value) => value,
        Err(error) => return Some(Err(Failure::Inner(chain.root.to_owned(), error))),
    };
    let mut name = chain.root.to_owned();
    for member in &chain.members {
        match member.as_str() {
            Some(key) => name.push_str(&format!(".{key}")),
            None => name.push_str(&format!("[{member}]")),
        }
        let found = value.get_item(member).unwrap_or(Value::UNDEFINED);
        if found.is_undefined() {
            return Some(Err(match lazy::failure(&value, member) {
                Some(error) => Failure::Inner(name, error),
                None => Failure::Missing(name),
            }));
        }
        value = found;
    }
    Some(Ok(()))
}

/// The place of a word of the text, found again in the file: the text begins at `origin`.
pub(super) fn locate_word(origin: &Origin, source: &str, word: &str) -> Origin {
    let lines = origin.source.text.lines().enumerate().skip(origin.line.saturating_sub(1));
    for (i, line) in lines.take(source.lines().count() + 1) {
        let skip = if i + 1 == origin.line { origin.column - 1 } else { 0 };
        let from = line.char_indices().nth(skip).map_or(line.len(), |(at, _)| at);
        if let Some(at) = word_in(&line[from..], word) {
            let column = line[..from + at].chars().count() + 1;
            return Origin { source: origin.source.clone(), line: i + 1, column };
        }
    }
    origin.clone()
}

/// Where a word is alone in a line.
fn word_in(line: &str, word: &str) -> Option<usize> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !line[..*at].ends_with(inside) && !line[at + word.len()..].starts_with(inside) && !word.is_empty())
}

/// The line of an error in a text of several lines that begins at `origin`.
fn line_of(origin: &Origin, source: &str, line: Option<usize>) -> Origin {
    match line {
        Some(line) if line > 1 && source.contains('\n') => {
            // A block scalar's first line is below its mark (`|`), a quoted one's beside it.
            let first = source.lines().next().unwrap_or("").trim();
            let below = usize::from(!origin.line_text().contains(first));
            Origin { source: origin.source.clone(), line: origin.line + line - 1 + below, column: 1 }
        }
        _ => origin.clone(),
    }
}

/// As [`explain`], for a template file; `origin` is the line of the error.
pub(super) fn explain_file(
    error: &minijinja::Error,
    body: &str,
    syntax: &SyntaxConfig,
    origin: &Origin,
    scope: &Arc<Scope>,
) -> Error {
    if let Some(inner) = Error::inside(error) {
        return within(inner.clone(), "", Some(origin));
    }
    if !is_undefined(error) {
        return Error::other(engine_error_text(error), Some(origin));
    }
    // Only the line that failed is looked at: others may have names that are asked about or never reached.
    let _session = Session::enter();
    let found = || {
        let tokens = tokens(body, SourceMode::Template, syntax).ok()?;
        let headers = origin.source.text.lines().count() - body.lines().count();
        let here = |span: &Span| usize::from(span.start_line) + headers == origin.line;
        let locals = locals(&tokens);
        (0..tokens.len())
            .filter(|i| here(&tokens[*i].1))
            .filter_map(|i| chain(&tokens, i))
            .filter(|chain| !chain.asked && !locals.contains(&chain.root))
            .find_map(|chain| failure(&chain, Some(&locate_word(origin, "", chain.root)), scope))
    };
    found().unwrap_or_else(|| Error::other("something in this line is undefined", Some(origin)))
}
