//! The short form of arguments: `src=a dest="b c"`, and `ls -l chdir=/tmp` for commands. Words are split as
//! Ansible does: quotes and template marks hold a word together, a backslash escapes a quote.

use std::ops::Range;

/// The parts of a text in the short form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FreeForm {
    /// `key=value` pairs, quotes removed, each with the byte offset of its key in the text.
    pub pairs: Vec<(String, String, usize)>,
    /// The rest, as written.
    pub text: String,
    /// The byte offset of the first word of the rest.
    pub text_at: usize,
}

/// A quote or a template mark that is never closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnbalancedQuote {
    /// The byte offset at which it is opened.
    pub at: usize,
    pub mark: &'static str,
}

const MARKS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];

/// Splits a text. `is_key` decides which words before a `=` are arguments; others stay in the text.
pub(super) fn parse_free_form(text: &str, is_key: impl Fn(&str) -> bool) -> Result<FreeForm, UnbalancedQuote> {
    let mut found = FreeForm::default();
    let mut rest: Vec<Range<usize>> = Vec::new();
    for word in word_ranges(text)? {
        match pair(&text[word.clone()]).filter(|(key, _)| is_key(key)) {
            Some((key, value)) => found.pairs.push((key.to_owned(), unquote(&decoded(value)), word.start)),
            // Words that follow each other keep what is between them: newlines count for `shell`.
            None => match rest.last_mut().filter(|last| found.pairs.last().is_none_or(|pair| pair.2 < last.start)) {
                Some(last) => last.end = word.end,
                None => rest.push(word),
            },
        }
    }
    found.text_at = rest.first().map_or(0, |range| range.start);
    found.text = rest.into_iter().map(|range| &text[range]).collect::<Vec<_>>().join(" ");
    Ok(found)
}

/// `key=value`, where the key is a word and the `=` not escaped.
fn pair(word: &str) -> Option<(&str, &str)> {
    let (key, value) = word.split_once('=')?;
    let named = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    named.then_some((key, value))
}

/// Decodes Python's escapes (`\n`, `\x41`, `\u00e9`); other backslashes are kept.
fn decoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (c, length) = escaped(escape).unwrap_or(('\\', 0));
        out.push(c);
        rest = &escape[length..];
    }
    out + rest
}

/// The character of the escape after a backslash, and the length of the escape.
fn escaped(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let number = |digits: usize| {
        let digits = text.get(1..=digits)?;
        let hex = digits.chars().all(|c| c.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| hex)?;
        Some((char::from_u32(code)?, 1 + digits.len()))
    };
    let c = match first {
        'x' => return number(2),
        'u' => return number(4),
        'U' => return number(8),
        '\\' | '\'' | '"' => first,
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        _ => return None,
    };
    Some((c, 1))
}

/// Removes the quotes around a value.
fn unquote(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.ends_with('\\')) {
            return inner.to_owned();
        }
    }
    value.to_owned()
}

/// The words of a text, as byte ranges.
fn word_ranges(text: &str) -> Result<Vec<Range<usize>>, UnbalancedQuote> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let here = &text[at..];
        let c = here.chars().next().unwrap_or(' ');
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let start = at;
        at = word_end(text, start)?;
        words.push(start..at);
    }
    Ok(words)
}

/// The offset at which the word that begins at `start` ends.
fn word_end(text: &str, start: usize) -> Result<usize, UnbalancedQuote> {
    let mut at = start;
    while let Some(c) = text[at..].chars().next() {
        let here = &text[at..];
        if let Some((open, close)) = MARKS.into_iter().find(|(open, _)| here.starts_with(open)) {
            let Some(end) = here[open.len()..].find(close) else { return Err(UnbalancedQuote { at, mark: open }) };
            at += open.len() + end + close.len();
        } else if c == '"' || c == '\'' {
            at = quote_end(text, at, c)?;
        } else if c == '\\' {
            at += 1 + here[1..].chars().next().map_or(0, char::len_utf8);
        } else if c.is_whitespace() {
            return Ok(at);
        } else {
            at += c.len_utf8();
        }
    }
    Ok(at)
}

/// The offset after the quote that closes the one at `start`.
fn quote_end(text: &str, start: usize, quote: char) -> Result<usize, UnbalancedQuote> {
    let mut at = start + 1;
    while let Some(c) = text[at..].chars().next() {
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        } else if c == quote {
            return Ok(at);
        }
    }
    Err(UnbalancedQuote { at: start, mark: if quote == '"' { "\"" } else { "'" } })
}

#[cfg(test)]
mod tests {
    use super::{FreeForm, UnbalancedQuote, parse_free_form};

    fn all(text: &str) -> FreeForm {
        parse_free_form(text, |_| true).unwrap()
    }

    fn pairs(form: &FreeForm) -> Vec<(&str, &str)> {
        form.pairs.iter().map(|(key, value, _)| (key.as_str(), value.as_str())).collect()
    }

    #[test]
    fn pairs_lose_their_quotes_and_keep_their_blanks() {
        let form = all("src=a dest=\"b c\" owner='d \"e\"' mode={{ m | default('0644 ') }}");
        let expected = [("src", "a"), ("dest", "b c"), ("owner", "d \"e\""), ("mode", "{{ m | default('0644 ') }}")];
        assert_eq!(pairs(&form), expected);
        assert_eq!(form.text, "");
    }

    #[test]
    fn a_command_keeps_all_but_its_known_arguments() {
        let form = parse_free_form("chdir=/tmp FOO=1 ls  -l \"a b\"\n  x=y creates=/z", |key| {
            key == "chdir" || key == "creates"
        });
        let form = form.unwrap();
        assert_eq!(pairs(&form), [("chdir", "/tmp"), ("creates", "/z")]);
        assert_eq!(form.text, "FOO=1 ls  -l \"a b\"\n  x=y");
        assert_eq!(form.text_at, 11);
    }

    #[test]
    fn an_argument_in_the_middle_leaves_a_blank() {
        let form = parse_free_form("ls chdir=/tmp -l  -a", |key| key == "chdir").unwrap();
        assert_eq!(form.text, "ls -l  -a");
    }

    #[test]
    fn what_is_never_closed_is_reported_with_its_place() {
        assert_eq!(parse_free_form("echo don't", |_| false), Err(UnbalancedQuote { at: 8, mark: "'" }));
        assert_eq!(parse_free_form("echo {{ x", |_| false), Err(UnbalancedQuote { at: 5, mark: "{{" }));
    }

    #[test]
    fn escapes_in_values_are_what_they_stand_for_and_texts_stay_as_they_are() {
        let form = all(r#"a="x\ny\tz \x41 \u00e9 \\ back \q \." b='1\n2' c=3\n4"#);
        assert_eq!(pairs(&form), [("a", "x\ny\tz A \u{e9} \\ back \\q \\."), ("b", "1\n2"), ("c", "3\n4")]);
        let form = parse_free_form(r"printf a\nb chdir=/x", |key| key == "chdir").unwrap();
        assert_eq!(form.text, r"printf a\nb");
    }

    #[test]
    fn a_backslash_takes_the_meaning_of_a_quote_away() {
        assert_eq!(all(r"echo don\'t").text, r"echo don\'t");
        assert_eq!(pairs(&all(r#"msg="say \"hi\"""#)), [("msg", "say \"hi\"")]);
    }
}
