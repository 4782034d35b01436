//! Regular expressions as Python writes them, for the modules whose arguments are such.

use fancy_regex::{Captures, Regex};

use crate::modules::Error;

/// Compiles a pattern. `argument` names it in the message.
pub(in crate::modules) fn compile(pattern: &str, argument: &str) -> Result<Regex, Error> {
    Regex::new(&translate(pattern))
        .map_err(|error| Error::failed(format!("invalid regular expression {pattern:?} in {argument}: {error}")))
}

/// As [`compile`], with `^` and `$` at every line (`re.MULTILINE`).
pub(in crate::modules) fn compile_multiline(pattern: &str, argument: &str) -> Result<Regex, Error> {
    Regex::new(&format!("(?m){}", translate(pattern)))
        .map_err(|error| Error::failed(format!("invalid regular expression {pattern:?} in {argument}: {error}")))
}

/// Whether a pattern is found; a search that would never end is an error.
pub(in crate::modules) fn is_match(regex: &Regex, text: &str) -> Result<bool, Error> {
    regex.is_match(text).map_err(|error| too_hard(regex, &error))
}

/// As [`is_match`], of a line that may end in a newline: Python's `$` matches before it, too.
pub(in crate::modules) fn is_match_in_line(regex: &Regex, line: &str) -> Result<bool, Error> {
    let bare = line.strip_suffix('\n').unwrap_or(line);
    Ok(is_match(regex, bare)? || is_match(regex, line)?)
}

/// The first match and its groups.
pub(in crate::modules) fn captures<'t>(regex: &Regex, text: &'t str) -> Result<Option<Captures<'t>>, Error> {
    regex.captures(text).map_err(|error| too_hard(regex, &error))
}

/// A search that was given up.
pub(in crate::modules) fn too_hard(regex: &Regex, error: &fancy_regex::Error) -> Error {
    Error::failed(format!("cannot search for the regular expression {:?}: {error}", regex.as_str()))
}

/// A replacement with its `\1`, `\g<name>` and escapes filled in, as `re.Match.expand` does.
pub(in crate::modules) fn expand_captures(template: &str, captures: &Captures) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let (text, used) = escape(c, rest, captures)?;
        out.push_str(&text);
        rest = &rest[used..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The text of the escape at the beginning of `rest`, and its length in bytes.
fn escape(c: char, rest: &str, captures: &Captures) -> Result<(String, usize), Error> {
    let invalid = |what: &str| Error::failed(format!("the regular expression has no group {what}"));
    let group = |at: usize| captures.get(at).map(|found| found.as_str().to_owned());
    if let Some(named) = rest.strip_prefix("g<") {
        let end = named.find('>').ok_or_else(|| invalid("(no closing >)"))?;
        let name = &named[..end];
        let text = match name.parse::<usize>() {
            Ok(number) if number < captures.len() => group(number),
            Ok(_) => return Err(invalid(name)),
            Err(_) => captures.name(name).map(|found| found.as_str().to_owned()),
        };
        return Ok((text.unwrap_or_default(), end + 3));
    }
    if c.is_ascii_digit() {
        if c == '0' {
            return Ok(("\0".to_owned(), 1));
        }
        let digits = rest.chars().take(2).take_while(char::is_ascii_digit).count();
        let number: usize = rest[..digits].parse().map_err(|_| invalid(&rest[..digits]))?;
        if number >= captures.len() {
            return Err(invalid(&number.to_string()));
        }
        return Ok((group(number).unwrap_or_default(), digits));
    }
    let text = match c {
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        'r' => "\r".to_owned(),
        'f' => "\u{c}".to_owned(),
        'v' => "\u{b}".to_owned(),
        'a' => "\u{7}".to_owned(),
        '\\' => "\\".to_owned(),
        other => format!("\\{other}"),
    };
    Ok((text, c.len_utf8()))
}

/// Python's pattern in this engine's words: what is plain text there and special here is escaped.
fn translate(pattern: &str) -> String {
    let mut out = String::new();
    let mut characters = pattern.char_indices().peekable();
    let mut class_start = None;
    while let Some((at, c)) = characters.next() {
        let rest = &pattern[at..];
        match c {
            '\\' => match characters.next() {
                Some((_, 'Z')) => out.push_str("\\z"),
                Some((_, next)) if next.is_ascii_alphanumeric() || !next.is_ascii() => out.extend(['\\', next]),
                Some((_, next)) => out.push_str(&literal(next)),
                None => out.push('\\'),
            },
            '[' if class_start.is_none() => {
                out.push('[');
                class_start = Some(at);
                if characters.peek().is_some_and(|(_, next)| *next == '^') {
                    out.push('^');
                    characters.next();
                }
                // A bracket that comes first in a class is one of its characters.
                if characters.peek().is_some_and(|(_, next)| *next == ']') {
                    out.push_str("\\]");
                    characters.next();
                }
            }
            ']' if class_start.is_some() => {
                out.push(']');
                class_start = None;
            }
            '[' | '&' | '~' if class_start.is_some() => out.extend(['\\', c]),
            '{' if class_start.is_none() && !is_quantifier(rest) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

/// An escaped character that is only itself.
fn literal(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        ' ' | '<' | '>' => format!("\\x{:02x}", u32::from(c)),
        '.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | '[' | ']' | '\\' | '|' | '(' | ')' | '-' | '&' | '~' | '#' => {
            format!("\\{c}")
        }
        c => c.to_string(),
    }
}

/// `{3}`, `{3,}`, `{,3}`, `{3,5}`.
fn is_quantifier(text: &str) -> bool {
    let Some((inside, _)) = text[1..].split_once('}') else { return false };
    let (from, to) = inside.split_once(',').unwrap_or((inside, "0"));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    !inside.is_empty() && inside != "," && digits(from) && digits(to) && (!from.is_empty() || inside.contains(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> bool {
        is_match(&compile(pattern, "regexp").unwrap(), text).unwrap()
    }

    #[test]
    fn what_is_text_in_python_is_text_here() {
        assert!(found("a{b", "a{b"));
        assert!(found(r"^\s*{{ x }}$", "{{ x }}"));
        assert!(found(r"[[]section\]", "[section]"));
        assert!(found(r"[]x]", "]"));
        assert!(found(r"\<tag\>", "<tag>"));
        assert!(found(r#"\/etc\/\"'\:"#, "/etc/\"':"));
        assert!(found(r"[a&&b]", "&"));
        assert!(found(r"a\ b", "a b"));
        assert!(found(r"end\Z", "the end"));
    }

    #[test]
    fn quantifiers_classes_and_look_around_work() {
        assert!(found("^a{2,3}$", "aaa") && !found("^a{2}$", "aaa"));
        assert!(found("^(?!#)x", "x") && !found("^(?!#)#?x", "#x"));
        assert!(found(r"(\w)\1", "aa"));
        assert!(found("(?i)PORT", "port"));
    }

    #[test]
    fn replacements_are_filled_in_as_python_does() {
        let regex = compile(r"(?P<key>\w+)=(\d+)(x)?", "regexp").unwrap();
        let captures = captures(&regex, "port=80").unwrap().unwrap();
        assert_eq!(expand_captures(r"\1 is \2", &captures).unwrap(), "port is 80");
        assert_eq!(expand_captures(r"\g<key>\g<2>0", &captures).unwrap(), "port800");
        assert_eq!(expand_captures(r"a\tb\\n\3.", &captures).unwrap(), "a\tb\\n.");
        assert_eq!(expand_captures(r"\g<0>", &captures).unwrap(), "port=80");
        assert!(expand_captures(r"\7", &captures).is_err());
    }

    #[test]
    fn a_wrong_pattern_is_named() {
        let error = compile("(", "regexp").unwrap_err().to_string();
        assert!(error.starts_with("invalid regular expression \"(\" in regexp: "), "{error}");
    }
}
