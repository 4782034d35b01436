//! `varargs` and `kwargs` of macros, which the engine does not have: a macro that uses them gets parameters of these names,
//! and is behind a function that fills them (`template/open.rs`).

use minijinja::machinery::{Span, Token};

use super::{Edit, closing, insert, span_end, span_start};

/// `{% macro m(a) %}...kwargs...{% endmacro %}` becomes
/// `{% macro m(a,kwargs=none) %}...kwargs...{% endmacro %}{%set m=m|_open(['a'],['kwargs'])%}`.
pub(super) fn open_macros(source: &str, tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    let word = |at: usize, word: &str| matches!(tokens.get(at), Some((Token::Ident(name), _)) if *name == word);
    let text = |at: usize| &source[span_start(&tokens[at].1)..span_end(&tokens[at].1)];
    for at in 0..tokens.len() {
        if !(matches!(tokens[at].0, Token::BlockStart) && word(at + 1, "macro")) {
            continue;
        }
        let Some(close) = closing(tokens, at + 3) else { continue };
        let Some(last) = ending(tokens, at) else { continue };
        let Some(ended) = (last..tokens.len()).find(|at| matches!(tokens[*at].0, Token::BlockEnd)) else { continue };
        let named = parameters(tokens, at + 3, close);
        // A parameter of its own may have such a name.
        let speaks = |name: &&str| !named.contains(name) && speaks_of(tokens, close + 1, last, name);
        let spoken: Vec<&str> = ["varargs", "kwargs"].into_iter().filter(speaks).collect();
        if spoken.is_empty() {
            continue;
        }
        let comma = if close == at + 4 || matches!(tokens[close - 1].0, Token::Comma) { "" } else { "," };
        let more: Vec<String> = spoken.iter().map(|name| format!("{name}=none")).collect();
        edits.push(insert(span_start(&tokens[close].1), &format!("{comma}{}", more.join(","))));
        // Of the mark's own delimiters, whatever they are; what it says of the blanks behind it holds for the new one.
        let (opens, closes, name) = (text(at).trim_end_matches(['-', '+']), text(ended), text(at + 2));
        let set = format!("{opens}set {name}={name}|_open({named:?},{spoken:?}) {closes}");
        edits.push(insert(span_end(&tokens[ended].1), &set));
    }
}

/// A default may speak of the parameters before it, which the engine sets after it: what it gives is settled in the body.
/// `{% macro m(a, b=a) %}` becomes `{% macro m(a, b=omit if true else (a)) %}{%set b=(a) if b|_omitted else b%}`.
pub(super) fn defaults(source: &str, tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    for at in 0..tokens.len().saturating_sub(4) {
        let [(Token::BlockStart, opens), (Token::Ident("macro"), _), (Token::Ident(_), _), (Token::ParenOpen, _)] =
            &tokens[at..at + 4]
        else {
            continue;
        };
        let Some(close) = closing(tokens, at + 3) else { continue };
        let Some(opened) = (close..tokens.len()).find(|at| matches!(tokens[*at].0, Token::BlockEnd)) else { continue };
        let text = |span: &Span| &source[span_start(span)..span_end(span)];
        let (opens, closes) = (text(opens).trim_end_matches(['-', '+']), text(&tokens[opened].1));
        let (mut known, mut depth) = (Vec::new(), 0usize);
        for i in at + 3..close {
            depth = match tokens[i].0 {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth + 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth.saturating_sub(1),
                _ => depth,
            };
            let (1, Token::ParenOpen | Token::Comma, Token::Ident(name)) = (depth, &tokens[i].0, &tokens[i + 1].0)
            else {
                continue;
            };
            let last = default_end(tokens, i + 3, close);
            let speaks = |at: usize| matches!(tokens[at].0, Token::Ident(one) if known.contains(&one));
            if matches!(tokens[i + 2].0, Token::Assign) && (i + 3..=last).any(speaks) {
                let given = &source[span_start(&tokens[i + 3].1)..span_end(&tokens[last].1)];
                edits.push(insert(span_end(&tokens[i + 2].1), "omit if true else ("));
                edits.push(insert(span_end(&tokens[last].1), ")"));
                let set = format!("{opens}set {name}=({given}) if {name}|_omitted else {name} {closes}");
                edits.push(insert(span_end(&tokens[opened].1), &set));
            }
            known.push(*name);
        }
    }
}

/// The last token of a default that begins at `from`.
fn default_end(tokens: &[(Token<'_>, Span)], from: usize, close: usize) -> usize {
    let mut depth = 0usize;
    for (at, (token, _)) in tokens.iter().enumerate().take(close).skip(from) {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => return at - 1,
            _ => {}
        }
    }
    close - 1
}

/// The `endmacro` of a macro, behind those of macros within it.
fn ending(tokens: &[(Token<'_>, Span)], macro_at: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, pair) in tokens.windows(2).enumerate().skip(macro_at) {
        match (&pair[0].0, &pair[1].0) {
            (Token::BlockStart, Token::Ident("macro")) => depth += 1,
            (Token::BlockStart, Token::Ident("endmacro")) if depth == 1 => return Some(at + 1),
            (Token::BlockStart, Token::Ident("endmacro")) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a macro's own body uses a name, not only that of a macro within it.
fn speaks_of(tokens: &[(Token<'_>, Span)], from: usize, to: usize, name: &str) -> bool {
    let mut at = from;
    while at < to {
        match (&tokens[at].0, &tokens[at + 1].0) {
            (Token::BlockStart, Token::Ident("macro")) => at = ending(tokens, at).unwrap_or(to),
            (Token::Ident(found), _) if *found == name => return true,
            _ => at += 1,
        }
    }
    false
}

/// The names of a macro's parameters, between its brackets.
fn parameters<'a>(tokens: &[(Token<'a>, Span)], open: usize, close: usize) -> Vec<&'a str> {
    let (mut names, mut depth) = (Vec::new(), 0usize);
    for at in open..close {
        match (&tokens[at].0, &tokens[at + 1].0) {
            (Token::ParenOpen | Token::Comma, Token::Ident(name)) if depth == usize::from(at > open) => {
                names.push(*name);
            }
            _ => {}
        }
        match &tokens[at].0 {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    names
}
