//! `varargs` of macros, which the engine has not: a macro that speaks of them gets parameters for them.

use minijinja::machinery::{Span, Token};

use super::{Edit, closing, end, insert, start};

/// How many arguments a macro can take beyond those that it names.
const MOST: usize = 32;

/// `{% macro m(a) %}...varargs` becomes `{% macro m(a, _v0, ...) %}{% set varargs = (_v0, ...)|_given %}...varargs`.
pub fn varargs(tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    let word = |at: usize, word: &str| matches!(tokens.get(at), Some((Token::Ident(name), _)) if *name == word);
    for at in 0..tokens.len() {
        if !(matches!(tokens[at].0, Token::BlockStart) && word(at + 1, "macro")) {
            continue;
        }
        let Some(close) = closing(tokens, at + 3) else { continue };
        let body = (close + 1..tokens.len()).take_while(|at| !word(*at, "endmacro"));
        if !body.into_iter().any(|at| word(at, "varargs")) {
            continue;
        }
        let Some(opened) = (close..tokens.len()).find(|at| matches!(tokens[*at].0, Token::BlockEnd)) else { continue };
        let names: Vec<String> = (0..MOST).map(|i| format!("_v{i}")).collect();
        let comma = if close == at + 4 || matches!(tokens[close - 1].0, Token::Comma) { "" } else { "," };
        let optional: Vec<String> = names.iter().map(|name| format!("{name}=omit")).collect();
        edits.push(insert(start(&tokens[close].1), &format!("{comma}{}", optional.join(","))));
        edits.push(insert(end(&tokens[opened].1), &format!("{{%set varargs=({})|_given%}}", names.join(","))));
    }
}
