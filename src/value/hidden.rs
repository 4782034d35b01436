//! Texts that no report and no log may show, wherever they turn up: what was encrypted, and passwords.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::value::mutex::RwLock;
use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD;

/// What replaces a hidden text.
pub const MASK: &str = "***";

/// Shorter texts are words that occur everywhere (`root`, `true`): hiding them would hide nothing and spoil all.
const SHORTEST: usize = 6;

/// Lines of a longer text (a private key) are hidden one by one from this length on.
const SHORTEST_LINE: usize = 16;

/// The same for lines that are one word (a list of tokens), and for what is in base64.
const SHORTEST_WORD: usize = 8;

/// A list that is shared by its clones and grows while files are decrypted.
#[derive(Clone, Default)]
pub struct SecretTexts(Arc<RwLock<RedactedTexts>>);

#[derive(Default)]
struct RedactedTexts {
    all: HashSet<String>,
    /// What finds them, the longest first; made when it is needed after texts were added.
    search: OnceLock<Option<AhoCorasick>>,
}

impl SecretTexts {
    /// Adds a text, and the lines of a text of several, unless they are too short to distinguish from other words.
    pub fn add_secret(&self, text: &str) {
        let whole = text.trim();
        if whole.chars().count() < SHORTEST || self.has(whole) {
            return;
        }
        let is_word = |line: &str| line.len() >= SHORTEST_WORD && !line.contains(' ') && !line.ends_with(':');
        // Frames of PEM files are no secret.
        let telling = |line: &&str| (line.len() >= SHORTEST_LINE || is_word(line)) && !line.starts_with("-----");
        let lines = whole.lines().map(str::trim).filter(telling);
        let lines: Vec<&str> = if whole.contains('\n') { lines.collect() } else { Vec::new() };
        let all: Vec<String> = std::iter::once(whole).chain(lines).flat_map(spellings).collect();
        let mut texts = self.0.write();
        let before = texts.all.len();
        texts.all.extend(all);
        if texts.all.len() > before {
            texts.search = OnceLock::new();
        }
    }

    fn has(&self, text: &str) -> bool {
        self.0.read().all.contains(text)
    }

    pub fn is_empty(&self) -> bool {
        self.0.read().all.is_empty()
    }

    /// The text with [`MASK`] in the place of every hidden one. Texts that overlap are hidden together.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let texts = self.0.read();
        let Some(search) = texts.search.get_or_init(|| texts.search()) else { return Cow::Borrowed(text) };
        let mut hidden: Vec<Range<usize>> = Vec::new();
        for found in search.find_overlapping_iter(text) {
            let mut range = found.range();
            // They come in the order of their ends.
            while let Some(last) = hidden.pop_if(|last| last.end > range.start) {
                range.start = range.start.min(last.start);
            }
            hidden.push(range);
        }
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for range in hidden {
            out.push_str(&text[at..range.start]);
            out.push_str(MASK);
            at = range.end;
        }
        out.push_str(&text[at..]);
        Cow::Owned(out)
    }
}

impl RedactedTexts {
    fn search(&self) -> Option<AhoCorasick> {
        if self.all.is_empty() {
            return None;
        }
        Some(AhoCorasick::new(&self.all).expect("there are fewer texts than an automaton takes"))
    }
}

/// The text, and what becomes of it where others spell it otherwise: in quotes as JSON and our log have them, in quotes
/// of Python, in a shell's, in an address, in HTML, in base64.
fn spellings(text: &str) -> Vec<String> {
    let backslashes = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    let in_address = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let address: String = text.bytes().map(in_address).collect();
    let mut all = base64_of(text);
    all.extend([
        text.to_owned(),
        backslashes.replace('"', "\\\""),
        backslashes.replace('\'', "\\'"),
        text.replace('\'', r#"'"'"'"#),
        text.replace('\'', r"'\''"),
        address.replace("%20", "+"),
        in_lower_case(&address),
        address,
        text.split('/').map(|part| part.bytes().map(in_address).collect()).collect::<Vec<String>>().join("/"),
        in_ascii(&backslashes.replace('"', "\\\"")),
        in_html(text),
        backslashes,
    ]);
    all.sort();
    all.dedup();
    all
}

/// As JSON has it where only ASCII may be.
fn in_ascii(text: &str) -> String {
    let mut units = [0; 2];
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            c => c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out
}

fn in_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

/// An address with `%2f` instead of `%2F`.
fn in_lower_case(address: &str) -> String {
    let mut parts = address.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let (code, rest) = part.split_at(part.len().min(2));
        out + "%" + &code.to_lowercase() + rest
    })
}

/// The base64 digits of a text that depend only on the text, wherever it starts in the encoded data: after a
/// number of bytes that three divides, or of one or two bytes more.
fn base64_of(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for before in 0..3 {
        let encoded = STANDARD_NO_PAD.encode([&[0; 3][..before], text.as_bytes()].concat());
        // Six bits each: those of the bytes before, and a last digit that the next byte has a part in.
        let (from, to) = ((before * 8).div_ceil(6), (before + text.len()) * 8 / 6);
        let digits = &encoded[from..to];
        if digits.len() >= SHORTEST_WORD {
            all.extend([digits.to_owned(), digits.replace('+', "-").replace('/', "_")]);
        }
    }
    all
}

impl fmt::Debug for SecretTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::SecretTexts;

    #[test]
    fn a_hidden_text_is_masked_wherever_it_stands() {
        let hidden = SecretTexts::default();
        hidden.add_secret("hunter2-long\n");
        assert_eq!(hidden.hide("a hunter2-long b hunter2-long"), "a *** b ***");
        assert_eq!(hidden.hide("nothing here"), "nothing here");
    }

    #[test]
    fn of_a_text_of_several_lines_each_long_one_is_hidden_and_its_frame_is_not() {
        let hidden = SecretTexts::default();
        hidden.add_secret("-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\nshort\n-----END KEY-----\n");
        assert_eq!(hidden.hide("  + MC4CAQAwBQYDK2VwBCIEIA"), "  + ***");
        assert_eq!(hidden.hide("-----BEGIN KEY----- short"), "-----BEGIN KEY----- short");
    }

    #[test]
    fn a_text_is_hidden_however_it_is_quoted() {
        let secret = "pa\"ss\\wo'rd/q 7";
        let hidden = SecretTexts::default();
        hidden.add_secret(secret);
        for reported in [
            format!("name={secret:?}"),
            serde_json::json!({ "a": secret }).to_string(),
            r#"{'a': 'pa"ss\\wo\'rd/q 7'}"#.to_owned(),
            r#"'pa"ss\wo'"'"'rd/q 7'"#.to_owned(),
            r#"'pa"ss\wo'\''rd/q 7'"#.to_owned(),
            "http://h/?t=pa%22ss%5Cwo%27rd/q%207".to_owned(),
            "http://h/?t=pa%22ss%5Cwo%27rd%2Fq%207".to_owned(),
        ] {
            let shown = hidden.hide(&reported);
            assert!(shown.contains("***") && !shown.contains("ss") && !shown.contains("rd"), "{reported}: {shown}");
        }
    }

    #[test]
    fn a_text_is_hidden_in_base64_wherever_it_begins() {
        use base64::prelude::*;
        for secret in ["hunter2", "hunter2-from-the-vault", "pä?~ß>>>ÿÿÿ?"] {
            let hidden = SecretTexts::default();
            hidden.add_secret(secret);
            for (before, after) in [("", ""), ("a", ""), ("ab", "c"), ("user:", ""), ("{\"password\": \"", "\"}")] {
                let plain = format!("{before}{secret}{after}");
                for reported in [
                    BASE64_STANDARD.encode(&plain),
                    BASE64_STANDARD_NO_PAD.encode(&plain),
                    BASE64_URL_SAFE.encode(&plain),
                ] {
                    let shown = hidden.hide(&reported).into_owned();
                    let left = shown.replace("***", "").len();
                    // A digit at each end, which holds bits of the next byte, and the padding.
                    let others = (before.len() + after.len()).div_ceil(3) * 4;
                    assert!(shown.contains("***") && left <= others + 6, "{reported}: {shown}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_hidden_where_only_ascii_or_html_may_stand() {
        let hidden = SecretTexts::default();
        hidden.add_secret("gäheim<&>\"😀 x");
        for reported in [
            "\"g\\u00e4heim<&>\\\"\\ud83d\\ude00 x\"",
            "<b>gäheim&lt;&amp;&gt;&#34;😀 x</b>",
            "?q=g%c3%a4heim%3c%26%3e%22%f0%9f%98%80%20x",
            "?q=g%C3%A4heim%3C%26%3E%22%F0%9F%98%80+x",
        ] {
            let shown = hidden.hide(reported);
            assert!(shown.contains("***") && !shown.contains("heim"), "{reported}: {shown}");
        }
    }

    #[test]
    fn of_the_short_lines_of_a_text_those_of_one_word_are_hidden() {
        let hidden = SecretTexts::default();
        hidden.add_secret("tokens:\napiVersion: v1\ngeheim12\n\nend");
        assert_eq!(hidden.hide("apiVersion: v1\n+geheim12\n+end\n"), "apiVersion: v1\n+***\n+end\n");
    }

    #[test]
    fn the_longer_of_two_is_hidden_as_a_whole_and_short_words_stay() {
        let hidden = SecretTexts::default();
        for text in ["secret", "secret-of-mine", "root"] {
            hidden.add_secret(text);
        }
        assert_eq!(hidden.hide("secret-of-mine, secret, root"), "***, ***, root");
        assert_eq!(format!("{hidden:?}"), "***");
    }
}
