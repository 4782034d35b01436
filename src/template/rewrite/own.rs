//! Filters that a person wrote.

use minijinja::machinery::{Span, Token};

use super::{Edit, insert, span_end, span_start};
use crate::template::programs::{ProgramKind, Programs};

/// `a | own(b)` becomes `a | _own('own', b)`: the engine's filters are those that it began with.
pub(super) fn filters(programs: &Programs, tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    for (i, pair) in tokens.windows(2).enumerate() {
        let [(Token::Pipe, _), (Token::Ident(name), span)] = pair else { continue };
        if programs.find_program_path(ProgramKind::Filter, name).is_none()
            || matches!(tokens.get(i + 2), Some((Token::Dot, _)))
        {
            continue;
        }
        edits.push(Edit { start: span_start(span), end: span_end(span), text: "_own".into() });
        match (tokens.get(i + 2), tokens.get(i + 3)) {
            (Some((Token::ParenOpen, open)), Some((Token::ParenClose, _))) => {
                edits.push(insert(span_end(open), &format!("'{name}'")));
            }
            (Some((Token::ParenOpen, open)), _) => edits.push(insert(span_end(open), &format!("'{name}', "))),
            _ => edits.push(insert(span_end(span), &format!("('{name}')"))),
        }
    }
}
