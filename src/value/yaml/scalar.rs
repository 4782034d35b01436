//! The types of plain scalars, as PyYAML's YAML 1.1 resolver finds them.

use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::NodeKind;
use crate::value::truth;

static INT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$")
        .expect("a constant pattern")
});

static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?",
        r"|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
        r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*",
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ))
    .expect("a constant pattern")
});

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}",
        r"(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$"
    ))
    .expect("a constant pattern")
});

/// The value of a plain scalar. Dates stay text, which prints alike.
pub(super) fn resolve_scalar(text: &str) -> NodeKind {
    match text.as_bytes().first() {
        None => NodeKind::Null,
        Some(b'~' | b'n' | b'N') if matches!(text, "~" | "null" | "Null" | "NULL") => NodeKind::Null,
        Some(b'-' | b'+' | b'.' | b'0'..=b'9') => scalar_number(text).unwrap_or_else(|| NodeKind::Str(text.into())),
        _ => truth::of_yaml(text).map_or_else(|| NodeKind::Str(text.into()), NodeKind::Bool),
    }
}

/// Whether PyYAML would read the plain text as something else than a string (dates, `=` and `<<` too).
pub(super) fn is_special(text: &str) -> bool {
    !matches!(resolve_scalar(text), NodeKind::Str(_))
        || matches!(text, "=" | "<<")
        || TIME.is_match(text)
        || INT.is_match(text)
}

/// A number, if it is one and fits.
pub(super) fn scalar_number(text: &str) -> Option<NodeKind> {
    if INT.is_match(text) {
        return integer(text);
    }
    FLOAT.is_match(text).then(|| float(text)).flatten().map(NodeKind::Float)
}

fn integer(text: &str) -> Option<NodeKind> {
    let clean = text.replace('_', "");
    let (sign, digits) = match clean.as_bytes().first()? {
        b'-' => (-1, &clean[1..]),
        b'+' => (1, &clean[1..]),
        _ => (1, &clean[..]),
    };
    let value = if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()?
    } else if let Some(hex) = digits.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()?
    } else if digits.contains(':') {
        digits.split(':').try_fold(0i128, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i128::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    // A second sign, before the digits, has been read with them.
    let value: i128 = i128::checked_mul(value, sign)?;
    Some(i64::try_from(value).map_or(NodeKind::BigInt(value), NodeKind::Int))
}

fn float(text: &str) -> Option<f64> {
    let clean = text.replace('_', "").to_lowercase();
    let (sign, digits) = match clean.as_bytes().first()? {
        b'-' => (-1.0, &clean[1..]),
        b'+' => (1.0, &clean[1..]),
        _ => (1.0, &clean[..]),
    };
    Some(match digits {
        ".inf" => sign * f64::INFINITY,
        ".nan" => f64::NAN,
        _ if digits.contains(':') => {
            let sum = digits.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))?;
            sign * sum
        }
        _ => sign * digits.parse::<f64>().ok()?,
    })
}

/// The value of a scalar with a tag of YAML's own (`!!str`, `!!int`...). None: the text is no such thing.
pub(super) fn tagged(suffix: &str, text: &str) -> Option<NodeKind> {
    match suffix {
        "str" | "timestamp" | "value" => Some(NodeKind::Str(Arc::from(text))),
        "null" => Some(NodeKind::Null),
        "bool" => truth::of_yaml(text).or_else(|| truth::of_yaml(&text.to_lowercase())).map(NodeKind::Bool),
        "int" => integer(text),
        "float" => float(text).map(NodeKind::Float),
        "binary" => {
            use base64::Engine as _;
            let packed: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed).ok()?;
            String::from_utf8(bytes).ok().map(|text| NodeKind::Str(text.into()))
        }
        _ => None,
    }
}
