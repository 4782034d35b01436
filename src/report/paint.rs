//! Colours, and text that a terminal does not obey.

use std::borrow::Cow;

use crate::value::terminal::alters_display;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Green,
    Yellow,
    Red,
    Cyan,
    Purple,
    Plain,
}

impl Colour {
    /// The text in this colour, by escape sequences.
    pub(super) fn paint(self, text: &str) -> String {
        let code = match self {
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Cyan => "36",
            Colour::Purple => "35",
            Colour::Plain => return text.to_string(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Whether it is shown as an escape: lines and tabs of an output stay.
fn escaped(c: char) -> bool {
    alters_display(c) && !matches!(c, '\n' | '\t')
}

/// The text without what a terminal would obey: a host's answer may hold escape sequences.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => harmless.push_str("\\r"),
            c if escaped(c) && u32::from(c) < 256 => harmless.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if escaped(c) => harmless.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => harmless.push(c),
        }
    }
    Cow::Owned(harmless)
}

/// As [`harmless`], of a text that must not start new lines: a name, a label.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    match harmless(text) {
        text if text.contains('\n') => Cow::Owned(text.replace('\n', "\\n")),
        text => text,
    }
}

/// Continuation lines are indented further than first lines.
pub(super) fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

/// JSON without characters that a terminal would obey: JSON's own way to write them leaves some as they are.
pub(crate) fn plain_json(json: &str) -> Cow<'_, str> {
    if !json.contains(escaped) {
        return Cow::Borrowed(json);
    }
    let written = |c: char| match escaped(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(json.chars().map(written).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(harmless("a\u{1b}[2J\u{9b}1m\r\n\tb"), "a\\x1b[2J\\x9b1m\\r\n\tb");
        assert_eq!(harmless("a\u{202e}b"), "a\\u202eb");
        assert_eq!(harmless("a\u{61c}b\u{2028}c\u{200f}d"), "a\\u061cb\\u2028c\\u200fd");
        assert_eq!(one_line("x\nok: [h2]"), "x\\nok: [h2]");
        assert_eq!(indented("x\nok: [h2]"), "x\n    ok: [h2]");
    }

    #[test]
    fn json_stays_json() {
        let json = serde_json::to_string("a\u{9b}b\u{7f}\u{202e}\n").unwrap();
        let shown = plain_json(&json);
        assert_eq!(shown, r#""a\u009bb\u007f\u202e\n""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}b\u{7f}\u{202e}\n");
    }
}
