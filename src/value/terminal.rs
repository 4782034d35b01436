//! Characters that a terminal does not show but acts on.

/// Whether a terminal acts on the character, or shows what surrounds it in another order or on another line: the control characters
/// (line feed and tab are among them), the separators of lines and paragraphs, and the marks of Unicode's bidirectional algorithm
/// (UAX #9, section 2).
pub fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_changes_of_direction_alter_what_is_shown() {
        for c in [
            '\0', '\n', '\r', '\t', '\x1b', '\x7f', '\u{9b}', '\u{61c}', '\u{200f}', '\u{2029}', '\u{202e}', '\u{2069}',
        ] {
            assert!(alters_display(c), "{c:?}");
        }
        for c in ['a', ' ', 'é', 'ש', '漢', '\u{a0}', '\u{200d}', '🦀'] {
            assert!(!alters_display(c), "{c:?}");
        }
    }
}
