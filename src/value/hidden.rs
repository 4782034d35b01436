//! Texts that no report and no log may show, wherever they turn up: what was encrypted, and passwords.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What stands in a hidden text's place.
pub const MASK: &str = "***";

/// Shorter texts are words that stand everywhere (`root`, `true`): hiding them would hide nothing and spoil all.
const SHORTEST: usize = 6;

/// Lines of a longer text (a private key) are hidden one by one from this length on.
const SHORTEST_LINE: usize = 16;

/// A list that is shared by its clones and grows while files are decrypted.
#[derive(Clone, Default)]
pub struct Hidden(Arc<RwLock<Vec<Arc<str>>>>);

impl Hidden {
    /// Adds a text, and the lines of a text of several, unless they are too short to be told from other words.
    pub fn add(&self, text: &str) {
        let whole = text.trim();
        if whole.chars().count() < SHORTEST {
            return;
        }
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Frames of PEM files are no secret.
        let telling = |line: &&str| line.len() >= SHORTEST_LINE && !line.starts_with("-----");
        let lines = whole.lines().map(str::trim).filter(telling);
        let lines: Vec<&str> = if whole.contains('\n') { lines.collect() } else { Vec::new() };
        for text in std::iter::once(whole).chain(lines).flat_map(spellings) {
            if !list.iter().any(|known| **known == text) {
                list.push(text.into());
            }
        }
        // The longest first, so that no part of it stays when another one is within it.
        list.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The text with [`MASK`] in the place of every hidden one.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut text = Cow::Borrowed(text);
        for secret in list.iter() {
            if text.contains(&**secret) {
                text = Cow::Owned(text.replace(&**secret, MASK));
            }
        }
        text
    }
}

/// The text, and what becomes of it where others spell it with escapes: in quotes as JSON and our log have them, in
/// quotes of Python, in a shell's, in an address.
fn spellings(text: &str) -> Vec<String> {
    let backslashes = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    let in_address = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let mut all = vec![
        text.to_owned(),
        backslashes.replace('"', "\\\""),
        backslashes.replace('\'', "\\'"),
        text.replace('\'', r#"'"'"'"#),
        text.replace('\'', r"'\''"),
        text.bytes().map(in_address).collect(),
        text.split('/').map(|part| part.bytes().map(in_address).collect()).collect::<Vec<String>>().join("/"),
        backslashes,
    ];
    all.sort();
    all.dedup();
    all
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::Hidden;

    #[test]
    fn a_hidden_text_is_masked_wherever_it_stands() {
        let hidden = Hidden::default();
        hidden.add("hunter2-long\n");
        assert_eq!(hidden.hide("a hunter2-long b hunter2-long"), "a *** b ***");
        assert_eq!(hidden.hide("nothing here"), "nothing here");
    }

    #[test]
    fn of_a_text_of_several_lines_each_long_one_is_hidden_and_its_frame_is_not() {
        let hidden = Hidden::default();
        hidden.add("-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\nshort\n-----END KEY-----\n");
        assert_eq!(hidden.hide("  + MC4CAQAwBQYDK2VwBCIEIA"), "  + ***");
        assert_eq!(hidden.hide("-----BEGIN KEY----- short"), "-----BEGIN KEY----- short");
    }

    #[test]
    fn a_text_is_hidden_however_it_is_quoted() {
        let secret = "pa\"ss\\wo'rd/q 7";
        let hidden = Hidden::default();
        hidden.add(secret);
        for told in [
            format!("name={secret:?}"),
            serde_json::json!({ "a": secret }).to_string(),
            r#"{'a': 'pa"ss\\wo\'rd/q 7'}"#.to_owned(),
            r#"'pa"ss\wo'"'"'rd/q 7'"#.to_owned(),
            r#"'pa"ss\wo'\''rd/q 7'"#.to_owned(),
            "http://h/?t=pa%22ss%5Cwo%27rd/q%207".to_owned(),
            "http://h/?t=pa%22ss%5Cwo%27rd%2Fq%207".to_owned(),
        ] {
            let shown = hidden.hide(&told);
            assert!(shown.contains("***") && !shown.contains("ss") && !shown.contains("rd"), "{told}: {shown}");
        }
    }

    #[test]
    fn the_longer_of_two_is_hidden_as_a_whole_and_short_words_stay() {
        let hidden = Hidden::default();
        for text in ["secret", "secret-of-mine", "root"] {
            hidden.add(text);
        }
        assert_eq!(hidden.hide("secret-of-mine, secret, root"), "***, ***, root");
        assert_eq!(format!("{hidden:?}"), "***");
    }
}
