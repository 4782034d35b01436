//! Python's numbers: `8080`, `1_000`, `0x1F`, `.5`, `1e-3`. `012` is none, and complex numbers are left as text.

use crate::value::Value;

/// A number at the left of a text, and what follows it.
pub(super) fn read_number(text: &str, negative: bool) -> Option<(Value, &str)> {
    // All that could belong to it is taken, so that `1abc` and `1.2.3` are no numbers.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let exponent_sign = matches!(c, '+' | '-') && at > 0 && is_exponent(&text[..at]);
        if !(c.is_alphanumeric() || c == '_' || c == '.' || exponent_sign) {
            break;
        }
        end = at + c.len_utf8();
    }
    let (word, rest) = text.split_at(end);
    let value = integer(word, negative).or_else(|| float(word, negative))?;
    Some((value, rest))
}

/// Whether a decimal number was read up to its `e`.
fn is_exponent(word: &str) -> bool {
    word.ends_with(['e', 'E']) && !word.starts_with("0x") && !word.starts_with("0X")
}

fn integer(word: &str, negative: bool) -> Option<Value> {
    let lower = word.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        _ => (lower.as_str(), 10),
    };
    // One underscore may be between digits, and after the base's letter.
    let digits = if radix == 10 { digits } else { digits.strip_prefix('_').unwrap_or(digits) };
    let digits = without_underscores(digits, |c| c.is_digit(radix))?;
    if radix == 10 && digits.starts_with('0') && digits.bytes().any(|b| b != b'0') {
        return None;
    }
    let number = i128::from_str_radix(&digits, radix).ok()?;
    let number = if negative { -number } else { number };
    Some(i64::try_from(number).map_or_else(|_| Value::from(number), Value::from))
}

fn float(word: &str, negative: bool) -> Option<Value> {
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let digit = |c: char| c.is_ascii_digit();
    let mut text = String::new();
    match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            if whole.is_empty() && fraction.is_empty() {
                return None;
            }
            for (part, before) in [(whole, ""), (fraction, ".")] {
                text.push_str(before);
                if part.is_empty() {
                    text.push('0');
                } else {
                    text.push_str(&without_underscores(part, digit)?);
                }
            }
        }
        None => {
            exponent?;
            text.push_str(&without_underscores(mantissa, digit)?);
        }
    }
    if let Some(exponent) = exponent {
        let (sign, digits) = match exponent.strip_prefix(['+', '-']) {
            Some(digits) => (&exponent[..1], digits),
            None => ("", exponent),
        };
        text.push('e');
        text.push_str(sign);
        text.push_str(&without_underscores(digits, digit)?);
    }
    let number: f64 = text.parse().ok()?;
    Some(Value::from(if negative { -number } else { number }))
}

/// The digits, if there are some, all are digits, and each underscore is between two.
fn without_underscores(text: &str, digit: impl Fn(char) -> bool) -> Option<String> {
    let groups: Vec<&str> = text.split('_').collect();
    groups.iter().all(|group| !group.is_empty() && group.chars().all(&digit)).then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::read_number;

    fn shown(text: &str) -> Option<String> {
        read_number(text, false).map(|(value, rest)| format!("{}|{rest}", serde_json::to_string(&value).unwrap()))
    }

    #[test]
    fn every_base_and_float_is_read() {
        let pairs = [
            ("0x1F,", "31|,"),
            ("0o17", "15|"),
            ("0b101", "5|"),
            ("1_000", "1000|"),
            ("00", "0|"),
            ("1.", "1.0|"),
            (".5]", "0.5|]"),
            ("1e3", "1000.0|"),
            ("1.5E-1 ", "0.15|  ".trim_end_matches(' ')),
            ("0x_f", "15|"),
            ("012.5", "12.5|"),
            ("0xe", "14|"),
        ];
        for (text, expected) in pairs {
            assert_eq!(shown(text).map(|s| s.trim_end().to_owned()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn near_numbers_are_refused() {
        for text in ["012", "1_", "1__0", "0x", "0b2", "1.2.3", "1abc", "5j", "1e", "1e+", ".", "1._5"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
