//! What PyYAML takes and the parser does not: within quotes and brackets lines may begin anywhere, and with tabs; a tab may be
//! behind a key's colon; JSON may have characters as pairs of surrogates. Such a text is rewritten, with blanks before those
//! lines, and each location in it maps back to the location in the file.

use std::collections::HashMap;

/// A text that the parser takes if the lines within quotes and brackets were all that was wrong.
pub(super) struct RelaxedYaml {
    pub text: String,
    /// By line, from 1: how many blanks were put before it.
    pub shifts: HashMap<usize, usize>,
}

/// Deeper than this no line is moved.
const DEEPEST: usize = 500;

#[derive(Clone, Copy)]
enum State {
    /// Where a token may begin.
    Outside,
    /// In a plain scalar of a block, which continues in lines that are indented more than this.
    Plain(usize),
    /// In a literal or folded text, likewise.
    Block(usize),
}

/// The text with its lines in order; None: no line has to be moved.
pub(super) fn loosen(text: &str) -> Option<RelaxedYaml> {
    let mut scan = Scan { state: State::Outside, quote: None, depth: 0, wanted: 0, tabs: Vec::new() };
    let mut loosened = RelaxedYaml { text: String::with_capacity(text.len() + 64), shifts: HashMap::new() };
    let mut moved = false;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let body = line.trim_start_matches([' ', '\t']);
        let blanks = line.len() - body.len();
        let marker = blanks == 0 && (body.starts_with("---") || body.starts_with("..."));
        if scan.within() && marker {
            // No document begins within quotes or brackets.
            return None;
        }
        let mut begins = loosened.text.len();
        if scan.within() {
            let empty = body.trim_end_matches(['\r', '\n']).is_empty();
            let wanted = if empty { blanks } else { blanks.max(scan.wanted) };
            moved |= wanted != blanks || line[..blanks].contains('\t');
            if wanted > blanks {
                loosened.shifts.insert(index + 1, wanted - blanks);
            }
            loosened.text.extend(std::iter::repeat_n(' ', wanted));
            loosened.text.push_str(body);
            begins = (begins + wanted).saturating_sub(blanks);
        } else {
            loosened.text.push_str(line);
        }
        scan.line(line);
        for at in scan.tabs.drain(..) {
            loosened.text.replace_range(begins + at..=begins + at, " ");
            moved = true;
        }
    }
    moved.then_some(loosened)
}

/// JSON in which characters beyond U+FFFF are written as YAML does, in place of two surrogates. None: there are none.
pub(super) fn join_surrogates(text: &str) -> Option<String> {
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        let character = pair.and_then(|(high, low)| char::decode_utf16([high, low]).next()?.ok());
        match character.filter(|character| u32::from(*character) > 0xffff) {
            Some(character) => {
                joined.push_str(&format!("\\U{:08x}", u32::from(character)));
                rest = &rest[12..];
                found = true;
            }
            None => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                joined.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    joined.push_str(rest);
    found.then_some(joined)
}

/// How far the quotes, brackets and texts of the lines so far reach.
struct Scan {
    state: State,
    quote: Option<char>,
    depth: usize,
    /// Where lines within the outermost quote or bracket have to begin.
    wanted: usize,
    /// In the last line: where tabs follow a colon.
    tabs: Vec<usize>,
}

impl Scan {
    fn within(&self) -> bool {
        self.quote.is_some() || self.depth > 0
    }

    fn line(&mut self, line: &str) {
        let line = line.trim_end_matches(['\r', '\n']);
        let indent = line.len() - line.trim_start_matches(' ').len();
        let empty = line.trim().is_empty();
        if !self.within() {
            match self.state {
                _ if line.starts_with("---") || line.starts_with("...") => self.state = State::Outside,
                State::Block(least) if empty || indent >= least => return,
                State::Plain(_) if empty => return,
                State::Plain(least) if indent >= least && !line.trim_start().starts_with('#') => {
                    if line.contains(" #") {
                        self.state = State::Outside;
                    }
                    return;
                }
                _ => self.state = State::Outside,
            }
        }
        self.tokens(line);
    }

    fn tokens(&mut self, line: &str) {
        let least = least_indentation(line);
        let marker = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        let mut rest = marker.filter(|behind| behind.is_empty() || behind.starts_with([' ', '\t'])).unwrap_or(line);
        // Whether a comment may begin here.
        let mut apart = true;
        while let Some(c) = rest.chars().next() {
            let at = line.len() - rest.len();
            rest = &rest[c.len_utf8()..];
            if let Some(quote) = self.quote {
                match c {
                    '\\' if quote == '"' => {
                        rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or("")
                    }
                    '\'' if quote == '\'' && rest.starts_with('\'') => rest = &rest[1..],
                    _ if c == quote => self.quote = None,
                    _ => {}
                }
                apart = false;
                continue;
            }
            match c {
                ' ' | '\t' => {
                    apart = true;
                    continue;
                }
                '#' if apart => return,
                '"' | '\'' => {
                    self.opens(least(at));
                    self.quote = Some(c);
                }
                '[' | '{' => {
                    self.opens(least(at));
                    self.depth += 1;
                }
                ']' | '}' => self.depth = self.depth.saturating_sub(1),
                ',' if self.depth > 0 => {}
                ':' if rest.starts_with('\t') => self.tabs.push(at + 1),
                '-' | '?' | ':' if rest.is_empty() || rest.starts_with([' ', '\t']) => {}
                ':' if self.depth > 0 => {}
                '!' | '&' | '*' => rest = rest.trim_start_matches(|c: char| !c.is_whitespace() && !",[]{}".contains(c)),
                '|' | '>' if self.depth == 0 => {
                    self.state = State::Block(least(at));
                    return;
                }
                _ => match self.plain(rest) {
                    Some(left) => {
                        rest = left;
                        apart = true;
                        continue;
                    }
                    None => {
                        if self.depth == 0 {
                            self.state = State::Plain(least(at));
                        }
                        return;
                    }
                },
            }
            apart = false;
        }
    }

    fn opens(&mut self, least: usize) {
        if !self.within() {
            self.wanted = if least <= DEEPEST { least } else { 0 };
        }
    }

    /// What follows a plain scalar in its line; None: nothing, it may continue.
    fn plain<'t>(&self, rest: &'t str) -> Option<&'t str> {
        let mut before = ' ';
        for (at, c) in rest.char_indices() {
            let after = rest[at + c.len_utf8()..].chars().next().unwrap_or(' ');
            let ends = match c {
                ':' => after.is_whitespace() || self.depth > 0 && ",[]{}".contains(after),
                '#' => before.is_whitespace() && at > 0,
                ',' | '[' | ']' | '{' | '}' => self.depth > 0,
                _ => false,
            };
            if ends {
                return Some(&rest[at..]);
            }
            before = c;
        }
        None
    }
}

/// For a position in a line: how far what belongs to a scalar there is indented at least. It is one more than its key is, or
/// than the hyphen that it is behind.
fn least_indentation(line: &str) -> impl Fn(usize) -> usize {
    let mut least = 0;
    let mut rest = line.strip_prefix("--- ").unwrap_or(line).trim_start_matches(' ');
    while let Some(behind) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? ")) {
        least = line.len() - rest.len() + 1;
        rest = behind.trim_start();
    }
    let start = line.len() - rest.len();
    // Tags and anchors are no key.
    while rest.starts_with(['!', '&']) {
        rest = rest.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
    }
    let key = line.len() - rest.len();
    move |at| if at > key { start + 1 } else { least }
}

#[cfg(test)]
mod tests {
    use super::{join_surrogates, loosen};

    #[test]
    fn only_lines_within_quotes_and_brackets_are_moved() {
        let cases = [
            ("a: 'x\n\ty'\n", "a: 'x\n y'\n", 0),
            ("- a: \"x\n\ty\"\n", "- a: \"x\n   y\"\n", 2),
            ("- a: [\nx,\n]\n", "- a: [\n   x,\n   ]\n", 3),
            ("a: \"x\\\"\n\n\ty\" # \"\nb: 1\n", "a: \"x\\\"\n\n y\" # \"\nb: 1\n", 0),
        ];
        for (written, expected, shift) in cases {
            let loosened = loosen(written).unwrap();
            assert_eq!(loosened.text, expected);
            assert_eq!(loosened.shifts.get(&2).copied().unwrap_or(0), shift, "{written}");
        }
    }

    #[test]
    fn a_tab_behind_a_colon_is_a_blank() {
        let cases = [
            ("- hosts:\tall\n", "- hosts: all\n"),
            ("a:\t\tb\nc: {d:\te}\n", "a: \tb\nc: {d: e}\n"),
            ("a: [\n\tb:\tc]\n", "a: [\n b: c]\n"),
            ("'a':\t1 # b:\tc\n", "'a': 1 # b:\tc\n"),
        ];
        for (written, expected) in cases {
            assert_eq!(loosen(written).map(|loosened| loosened.text).as_deref(), Some(expected), "{written}");
        }
        for text in ["a: 'b:\tc'\n", "a: |\n  b:\tc\n", "# a:\tb\n"] {
            assert!(loosen(text).is_none(), "{text}");
        }
    }

    #[test]
    fn surrogates_of_json_are_joined() {
        assert_eq!(join_surrogates(r#"{"a": "x\ud83d\ude00\n"}"#).as_deref(), Some(r#"{"a": "x\U0001f600\n"}"#));
        for text in [r#"{"a": "\\ud83d\\ude00"}"#, r#"{"a": "\ud83d"}"#, r#"{"a": "\u00e4\u00e4"}"#] {
            assert_eq!(join_surrogates(text), None, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_quotes_and_brackets_is_left() {
        for text in [
            "a: it's\n\tb: 1\n",
            "a: |\n  'x [\n\ty\nb: 1\n",
            "- !vault |\n  [x\n\ty\n",
            "# it's [\n\ta: 1\n",
            "a: b\n  \"c\n\td: 1\n",
            "a: 'it''s'\n\tb: 1\n",
            "a: [b, c]\n\td: 1\n",
            "a: 'x\n---\n'\n",
        ] {
            assert!(loosen(text).is_none(), "{text}");
        }
    }
}
