//! Python's strings: both quotes, single or triple, prefixes `r`, `b`, `u`, escapes, neighbours joined.

/// One or several neighbouring strings at the left of a text, and what follows them.
pub(super) fn read_string(text: &str) -> Option<(String, &str)> {
    let (mut whole, bytes, mut rest) = one(text)?;
    while let Some((more, more_bytes, after)) = one(rest.trim_start_matches([' ', '\t'])) {
        if more_bytes != bytes {
            return None;
        }
        whole.push_str(&more);
        rest = after;
    }
    Some((whole, rest))
}

/// A string, whether it was written as bytes, and what follows it.
fn one(text: &str) -> Option<(String, bool, &str)> {
    let quote_at = text.find(['\'', '"'])?;
    let prefix = text[..quote_at].to_ascii_lowercase();
    if !matches!(prefix.as_str(), "" | "r" | "b" | "u" | "br" | "rb") {
        return None;
    }
    let (raw, bytes) = (prefix.contains('r'), prefix.contains('b'));
    let body = &text[quote_at..];
    let quote = &body[..1];
    let triple = quote.repeat(3);
    let quote = if body.starts_with(&triple) { triple.as_str() } else { quote };
    let body = &body[quote.len()..];
    let end = closing(body, quote)?;
    let inner = &body[..end];
    if bytes && !inner.is_ascii() {
        return None;
    }
    let value = if raw { inner.to_owned() } else { unescape(inner, bytes)? };
    Some((value, bytes, &body[end + quote.len()..]))
}

/// Where the closing quote is; a backslash hides the character after it, in raw strings too.
fn closing(body: &str, quote: &str) -> Option<usize> {
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        if body[at..].starts_with(quote) {
            return Some(at);
        }
        if c == '\\' {
            chars.next()?;
        }
    }
    None
}

/// Resolves escapes. `\N{NAME}` is not known here, and half a surrogate pair cannot be kept: both give None.
fn unescape(inner: &str, bytes: bool) -> Option<String> {
    let mut out = Vec::with_capacity(inner.len());
    let mut push = |c: char, raw_byte: bool| {
        if raw_byte && bytes {
            out.push(c as u8);
        } else {
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    };
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            push(c, false);
            continue;
        }
        let escape = rest.chars().next()?;
        rest = &rest[escape.len_utf8()..];
        match escape {
            '\\' | '\'' | '"' => push(escape, false),
            'a' => push('\x07', false),
            'b' => push('\x08', false),
            'f' => push('\x0c', false),
            'n' => push('\n', false),
            'r' => push('\r', false),
            't' => push('\t', false),
            'v' => push('\x0b', false),
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                let code = u32::from_str_radix(&format!("{escape}{}", &rest[..more]), 8).ok()?;
                rest = &rest[more..];
                push(char::from_u32(code)?, true);
            }
            'x' => push(code(&mut rest, 2)?, true),
            'u' if !bytes => push(code(&mut rest, 4)?, false),
            'U' if !bytes => push(code(&mut rest, 8)?, false),
            'N' if !bytes => return None,
            other => {
                push('\\', false);
                push(other, false);
            }
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// A character by so many hexadecimal digits.
fn code(rest: &mut &str, digits: usize) -> Option<char> {
    let hex = rest.get(..digits)?;
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    *rest = &rest[digits..];
    char::from_u32(u32::from_str_radix(hex, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::read_string;

    fn value(text: &str) -> Option<String> {
        read_string(text).map(|(value, _)| value)
    }

    #[test]
    fn escapes_are_resolved_and_unknown_ones_kept() {
        assert_eq!(value(r"'a\tb\x41\u00e9\101\d'").unwrap(), "a\tbA\u{e9}A\\d");
        assert_eq!(value(r"r'a\tb'").unwrap(), r"a\tb");
        assert_eq!(value(r#""say \"x\"""#).unwrap(), "say \"x\"");
        assert_eq!(value(r"b'\xc3\xa9'").unwrap(), "\u{e9}");
    }

    #[test]
    fn triple_quotes_and_neighbours() {
        assert_eq!(value("'''it's'''").unwrap(), "it's");
        assert_eq!(read_string("'a' 'b' c").unwrap(), ("ab".into(), " c"));
        assert_eq!(value("''").unwrap(), "");
        assert_eq!(value("'a' b'c'"), None);
    }

    #[test]
    fn open_and_foreign_strings_are_none() {
        for text in ["'a", r"'a\'", "f'x'", "x'y'", r"'\xZZ'", r"'\N{BULLET}'"] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
