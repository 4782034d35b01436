//! File name patterns (`*`, `?`, `[a-c]`, `[!a]`) as regular expressions for the whole of a name.

use fancy_regex::Regex;

use crate::modules::{Error, python_regex};

/// The expression that matches what the pattern does. `argument` is where it was written.
pub(in crate::modules) fn compile(pattern: &str, argument: &str) -> Result<Regex, Error> {
    python_regex::compile(&expression(pattern), argument)
}

fn expression(pattern: &str) -> String {
    let mut out = String::from(r"(?s)\A");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => match class_end(rest) {
                Some(end) => {
                    let inside = rest[1..end].replace('\\', r"\\");
                    let inside = inside.strip_prefix('!').map_or(inside.clone(), |negated| format!("^{negated}"));
                    out.push_str(&format!("[{inside}]"));
                    used = end + 1;
                }
                None => out.push_str(r"\["),
            },
            c if c.is_ascii_punctuation() || c == ' ' => out.extend(['\\', c]),
            c => out.push(c),
        }
        rest = &rest[used..];
    }
    out + r"\Z"
}

/// Where the bracket that opens at 0 closes; one that comes first does not close it.
fn class_end(text: &str) -> Option<usize> {
    let skip = if text[1..].starts_with('!') { 2 } else { 1 };
    let skip = if text[skip..].starts_with(']') { skip + 1 } else { skip };
    text[skip..].find(']').map(|at| at + skip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globbed(pattern: &str, name: &str) -> bool {
        python_regex::is_match(&compile(pattern, "patterns").unwrap(), name).unwrap()
    }

    #[test]
    fn shell_patterns_match_whole_names() {
        assert!(globbed("*.db", "a.db") && !globbed("*.db", "a.dbx") && !globbed("*.db", "axdb"));
        assert!(globbed("a?c", "abc") && globbed("[ab]*", "bcd") && !globbed("[!ab]*", "bcd"));
        assert!(globbed("*", "odd\nname") && globbed("a b(1)*", "a b(1).txt"));
        assert!(globbed("[", "[") && globbed("[]]", "]"));
    }
}
