//! Small changes to a template's text before it is compiled, token by token, so that it means what Ansible means:
//! - `a.b.c` where `a` or `a.b` is missing is undefined, not an error (`a|_soft` yields something without members);
//! - operators and slices mean what they mean in Python (`operators.rs`);
//! - `varargs` and `kwargs` in a macro are the arguments that it does not name (`macros.rs`);
//! - defaults in a macro may use the parameters before them (`macros.rs`);
//! - `{% set l = [] %}` makes a list that `l.append(x)` can change;
//! - filters that a person wrote are called by `_own` (`own.rs`);
//! - in playbook strings (not in files) a backslash in a string literal is a backslash.
//!
//! Only insertions within lines: line numbers stay.

mod macros;
mod operators;
mod own;

use minijinja::Error;
use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::programs::Programs;

/// How a text is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceMode {
    /// An expression without braces.
    Expression,
    /// A template.
    Template,
}

/// A text with the changes made.
pub(super) fn rewrite(
    source: &str,
    reading: SourceMode,
    syntax: &SyntaxConfig,
    backslashes: bool,
    programs: &Programs,
) -> Result<String, Error> {
    let interesting = |c| matches!(c, '.' | '[' | '%' | '<' | '>' | '*' | '/' | '-' | '+');
    let own = source.contains('|') && programs.has_filters();
    let args = source.contains("varargs") || source.contains("kwargs");
    if !(own || args || source.contains(interesting) || source.contains("in") || backslashes && source.contains('\\')) {
        return Ok(source.to_owned());
    }
    let tokens = tokens(source, reading, syntax)?;
    let mut edits = Vec::new();
    if backslashes {
        keep_backslashes(source, &tokens, &mut edits);
    }
    if own {
        own::filters(programs, &tokens, &mut edits);
    }
    operators::operators(&tokens, reading, &mut edits);
    if may_test_undefined(source) {
        soften(source, &tokens, &mut edits);
    }
    if source.contains("macro") {
        macros::defaults(source, &tokens, &mut edits);
    }
    if args {
        macros::open_macros(source, &tokens, &mut edits);
    }
    if [
        ".append(",
        ".extend(",
        ".insert(",
        ".update(",
        ".pop(",
        ".setdefault(",
        ".remove(",
        ".clear(",
        ".sort(",
        ".reverse(",
        ".popitem(",
    ]
    .iter()
    .any(|word| source.contains(word))
    {
        mutable(&tokens, &mut edits);
    }
    Ok(apply(source, edits))
}

/// The tokens of a text with their byte ranges.
pub(super) fn tokens<'a>(
    source: &'a str,
    reading: SourceMode,
    syntax: &SyntaxConfig,
) -> Result<Vec<(Token<'a>, Span)>, Error> {
    tokenize(source, reading == SourceMode::Expression, syntax.clone()).collect()
}

/// Replaces `start..end` by a text. Of edits at one place insertions come first, and keep their order.
pub(super) struct Edit {
    pub start: usize,
    pub end: usize,
    pub text: String,
}

pub(super) fn insert(at: usize, text: &str) -> Edit {
    Edit { start: at, end: at, text: text.into() }
}

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.start < edit.end));
    let mut result = String::with_capacity(source.len() + edits.len() * 8);
    let mut done = 0;
    for edit in edits {
        if edit.start < done {
            continue;
        }
        result.push_str(&source[done..edit.start]);
        result.push_str(&edit.text);
        done = edit.end;
    }
    result.push_str(&source[done..]);
    result
}

pub(super) fn span_start(span: &Span) -> usize {
    span.start_offset as usize
}

pub(super) fn span_end(span: &Span) -> usize {
    span.end_offset as usize
}

/// Doubles backslashes in string literals; one before a quote still escapes the quote, too.
fn keep_backslashes(source: &str, tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    for (token, span) in tokens {
        if !matches!(token, Token::Str(_) | Token::String(_)) {
            continue;
        }
        let text = &source[span_start(span)..span_end(span)];
        let bytes = text.as_bytes();
        for (i, byte) in bytes.iter().enumerate() {
            let quote = i + 2 < bytes.len() && matches!(bytes[i + 1], b'\'' | b'"');
            if *byte == b'\\' {
                edits.push(insert(span_start(span) + i, if quote { "\\\\" } else { "\\" }));
            }
        }
    }
}

/// Whether something in a text may accept an undefined value, or stores it for something that does.
fn may_test_undefined(text: &str) -> bool {
    ["default", "defined", "|d", "| d", "set ", "with ", "mandatory", "omit", "type_debug", "call"]
        .iter()
        .any(|word| text.contains(word))
}

/// `a.b.c` becomes `((a|_soft).b|_soft).c`: parentheses are opened before the first token of the chain. Not where the
/// template mark around it can only fail for an undefined value, because softening takes time: outside of brackets, which
/// may be a macro's or a list's, and where no word tests or keeps it.
fn soften(source: &str, tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    // An expression is no mark, but all of it counts.
    let (mut tested, mut depth) = (true, 0usize);
    for (i, (token, span)) in tokens.iter().enumerate() {
        match token {
            Token::VariableStart | Token::BlockStart => {
                let rest = tokens[i..].iter();
                let close = rest.map(|(token, span)| (token, span_end(span))).find(|(token, _)| ends_mark(token));
                tested = close.is_none_or(|(_, close)| may_test_undefined(&source[span_start(span)..close]));
                depth = 0;
            }
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => depth += 1,
            Token::BracketClose | Token::ParenClose | Token::BraceClose => depth = depth.saturating_sub(1),
            Token::Ident(name) if (tested || depth > 0) && begins_chain(tokens, i, name) => {
                for base in bases(tokens, i) {
                    edits.push(insert(span_start(span), "("));
                    edits.push(insert(span_end(&tokens[base].1), "|_soft)"));
                }
            }
            _ => {}
        }
    }
}

fn ends_mark(token: &Token<'_>) -> bool {
    matches!(token, Token::VariableEnd | Token::BlockEnd)
}

/// Whether the identifier at a place is a variable or function, not a member, filter, test or word of the language.
fn begins_chain(tokens: &[(Token<'_>, Span)], at: usize, name: &str) -> bool {
    !is_word(name)
        && !matches!(at.checked_sub(1).map(|p| &tokens[p].0), Some(Token::Dot | Token::Pipe | Token::Ident("set")))
        && !is_test_name(tokens, at)
}

/// The last tokens of every base in the chain that starts at `first`: of `a.b[1].c` those of `a`, `a.b`, `a.b[1]`.
fn bases(tokens: &[(Token<'_>, Span)], first: usize) -> Vec<usize> {
    let mut bases = Vec::new();
    let mut last = first;
    loop {
        match tokens.get(last + 1).map(|(token, _)| token) {
            Some(Token::Dot) if last + 2 < tokens.len() => {
                bases.push(last);
                last += 2;
            }
            Some(Token::BracketOpen) => {
                let Some(close) = closing(tokens, last + 1) else { return bases };
                let slice = (last + 2..close).any(|i| matches!(tokens[i].0, Token::Colon));
                if slice {
                    return bases;
                }
                bases.push(last);
                last = close;
            }
            // A call of a name (`lookup(...)`) or a method: continue after its arguments.
            Some(Token::ParenOpen) => {
                let Some(close) = closing(tokens, last + 1) else { return bases };
                last = close;
            }
            _ => return bases,
        }
    }
}

/// The token that closes the bracket at `open`.
fn closing(tokens: &[(Token<'_>, Span)], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, (token, _)) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => depth += 1,
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            Token::VariableEnd | Token::BlockEnd => return None,
            _ => {}
        }
    }
    None
}

/// Words that cannot begin a chain.
fn is_word(name: &str) -> bool {
    matches!(
        name,
        "and"
            | "or"
            | "not"
            | "in"
            | "is"
            | "if"
            | "else"
            | "elif"
            | "true"
            | "True"
            | "false"
            | "False"
            | "none"
            | "None"
            | "for"
            | "set"
            | "loop"
            | "super"
            | "self"
            | "caller"
    )
}

/// Whether the identifier is the name of a test (`is defined`, `is not ansible.builtin.match`).
fn is_test_name(tokens: &[(Token<'_>, Span)], at: usize) -> bool {
    let word = |back: usize| match at.checked_sub(back).map(|i| &tokens[i].0) {
        Some(Token::Ident(name)) => *name,
        _ => "",
    };
    word(1) == "is" || word(1) == "not" && word(2) == "is"
}

/// `{% set x = EXPR %}` becomes `{% set x = (EXPR)|_mutable %}`.
fn mutable(tokens: &[(Token<'_>, Span)], edits: &mut Vec<Edit>) {
    for i in 0..tokens.len().saturating_sub(4) {
        let [(Token::BlockStart, _), (Token::Ident("set"), _), (Token::Ident(_), _), (Token::Assign, equals)] =
            &tokens[i..i + 4]
        else {
            continue;
        };
        let Some(close) = (i + 4..tokens.len()).find(|i| matches!(tokens[*i].0, Token::BlockEnd)) else { continue };
        edits.push(insert(span_end(equals), "("));
        edits.push(insert(span_end(&tokens[close - 1].1), ")|_mutable"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(source: &str) -> String {
        rewrite(source, SourceMode::Template, &SyntaxConfig::default(), false, &Programs::default()).unwrap()
    }

    #[test]
    fn chains_before_defined_and_default_are_softened_and_nothing_else() {
        assert_eq!(changed("{{ a.b.c is defined }}"), "{{ ((a|_soft).b|_soft).c is defined }}");
        assert_eq!(changed("{{ a['x'].y | default(1) }}"), "{{ ((a|_soft)['x']|_soft).y | default(1) }}");
        assert_eq!(changed("{{ f(x.y).z | d('.') }}"), "{{ (f((x|_soft).y)|_soft).z | d('.') }}");
        assert_eq!(changed("{{ a.b.c }}"), "{{ a.b.c }}");
        assert_eq!(changed("a.b {{ 'default' }}"), "a.b {{ 'default' }}");
    }

    #[test]
    fn a_chain_is_softened_where_its_own_mark_tests_or_keeps_it_or_a_macro_may_take_it() {
        assert_eq!(
            changed("{{ a.b }}{{ c.d | default(1) }}{{ e.f }}"),
            "{{ a.b }}{{ (c|_soft).d | default(1) }}{{ e.f }}"
        );
        assert_eq!(changed("{{ m(a.b) }}{{ c | default(1) }}"), "{{ m((a|_soft).b) }}{{ c | default(1) }}");
        assert_eq!(
            changed("{% set x = a.b %}{{ x | d }}{{ [c.d] }}"),
            "{% set x = (a|_soft).b %}{{ x | d }}{{ [(c|_soft).d] }}"
        );
        assert_eq!(
            changed("{% with x = a.b %}{{ x | d }}{% endwith %}"),
            "{% with x = (a|_soft).b %}{{ x | d }}{% endwith %}"
        );
        assert_eq!(changed("{{ a[b.c] }}{{ d | default(1) }}"), "{{ a[(b|_soft).c] }}{{ d | default(1) }}");
    }

    #[test]
    fn operators_become_calls_as_far_as_their_operands_reach() {
        for (source, expected) in [
            ("{{ a + 1 < b | int }}", "{{ ((a )|_add( 1) )|_lt( b | int) }}"),
            ("{{ not a<b and c }}", "{{ not (a)|_lt(b) and c }}"),
            ("{{ 1 < x <= 3 }}", "{{ (1 )|_chain('<', x ,'<=', 3) }}"),
            ("{{ a == b }}", "{{ a == b }}"),
            ("{{ a - b - -c * d }}", "{{ (a )|_sub( b )|_sub( (((c)|_neg) )|_mul( d)) }}"),
            ("{{ a / b // c % d }}", "{{ (a )|_div( b )|_floordiv( c )|_mod( d) }}"),
            ("{{ a ~ b + c ~ d }}", "{{ (a ~ b )|_add( c ~ d) }}"),
            ("{{ -1 }}", "{{ -1 }}"),
            ("{{ 'x' not in [y < z] }}", "{{ ('x' )|_not_in( [(y )|_lt( z)]) }}"),
            ("{{ f(a - 1)[b:][0] }}", "{{ ((f((a )|_sub( 1)))|_slice(b,none))[0] }}"),
            ("{{ a[::-1] | list }}", "{{ ((a)|_slice(none,none,-1)) | list }}"),
            ("{{ 'b' if a > 1 else c }}", "{{ 'b' if (a )|_gt( 1) else c }}"),
            ("{{ a is divisibleby 3 and b in c }}", "{{ a is divisibleby 3 and (b )|_in( c) }}"),
            ("{{ '%s' % x | int + 1 }}", "{{ (('%s' )|_mod( x | int) )|_add( 1) }}"),
            ("{{ '%s %s' % (a, b) }}", "{{ ('%s %s' )|_mod( (a, b)) }}"),
            ("a-b < c {{ d }}", "a-b < c {{ d }}"),
        ] {
            assert_eq!(changed(source), expected);
        }
    }

    #[test]
    fn loops_look_at_what_they_go_over() {
        assert_eq!(
            changed("{% for a, b in c.items() if a in b %}{% endfor %}"),
            "{% for a, b in (c.items())|_each if (a )|_in( b) %}{% endfor %}"
        );
        assert_eq!(changed("{% for x in a recursive %}{% endfor %}"), "{% for x in (a)|_each recursive %}{% endfor %}");
    }

    #[test]
    fn backslashes_are_doubled_in_string_literals_only() {
        let text = rewrite(
            r"a\n {{ 'x\1' ~ 'it\'s' }}",
            SourceMode::Template,
            &SyntaxConfig::default(),
            true,
            &Programs::default(),
        )
        .unwrap();
        assert_eq!(text, r"a\n {{ 'x\\1' ~ 'it\\\'s' }}");
    }
}
