//! Colours, and text that a terminal does not obey.

use std::borrow::Cow;

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
    pub fn paint(self, text: &str) -> String {
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

/// The text without what a terminal would obey: a host's answer may hold escape sequences.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => harmless.push_str("\\r"),
            c if obeyed(c) => harmless.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => harmless.push(c),
        }
    }
    Cow::Owned(harmless)
}
