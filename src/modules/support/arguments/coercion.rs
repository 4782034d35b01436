//! One value to one [`ArgumentKind`], with Ansible's leniency: boolean words, numbers in strings, lists from comma strings.

use std::sync::Arc;

use minijinja::value::{Serde, ValueKind};

use crate::value::doc::ArgumentKind;
use crate::value::{Value, Vars, float, truth};

/// Why a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CoercionError {
    /// What it should have been: `a boolean (yes or no)`.
    pub wanted: &'static str,
}

/// The value converted to its type.
pub(super) fn coerce(kind: ArgumentKind, value: &Value) -> Result<Value, CoercionError> {
    match kind {
        ArgumentKind::Any => Ok(value.clone()),
        ArgumentKind::Str | ArgumentKind::Path => text(value).map(Value::from),
        ArgumentKind::Bool => boolean(value).map(Value::from),
        ArgumentKind::Int => integer(value).map(Value::from),
        ArgumentKind::Float => float(value).map(Value::from),
        ArgumentKind::Mode => mode(value).map(Value::from),
        ArgumentKind::List(of) => list(*of, value),
        ArgumentKind::Dict => dict(value),
    }
}

/// What a value is, in a person's words.
pub(super) fn what(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => "an undefined value".to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool | ValueKind::Number => value.to_string(),
        ValueKind::String => "a string".to_owned(),
        ValueKind::Seq | ValueKind::Iterable => "a list".to_owned(),
        ValueKind::Map => "a mapping".to_owned(),
        _ => "a value of another kind".to_owned(),
    }
}

/// Text as Ansible prints it: `True` and `False`, numbers in decimal.
fn text(value: &Value) -> Result<String, CoercionError> {
    let misfit = CoercionError { wanted: "a string" };
    match value.kind() {
        ValueKind::String | ValueKind::Number => Ok(value.to_string()),
        ValueKind::Bool => Ok(if value.is_true() { "True" } else { "False" }.to_owned()),
        ValueKind::Bytes => value.as_bytes().and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()).ok_or(misfit),
        _ => Err(misfit),
    }
}

fn boolean(value: &Value) -> Result<bool, CoercionError> {
    let misfit = CoercionError { wanted: "a boolean (yes or no)" };
    if value.kind() == ValueKind::Bool {
        return Ok(value.is_true());
    }
    let text = text(value).map_err(|_| misfit.clone())?;
    truth::of_word(&text).ok_or(misfit)
}

fn integer(value: &Value) -> Result<i64, CoercionError> {
    let misfit = CoercionError { wanted: "a whole number" };
    match value.kind() {
        ValueKind::Bool => Ok(i64::from(value.is_true())),
        ValueKind::Number | ValueKind::String => {
            let text = value.to_string();
            let text = text.trim();
            if let Ok(number) = text.parse() {
                return Ok(number);
            }
            // `5.0` and `1e3` are whole numbers too; beyond 2^53 a float no longer says which one.
            let number: f64 = text.parse().map_err(|_| misfit.clone())?;
            let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            if exact { Ok(float::whole_part(number)) } else { Err(misfit) }
        }
        _ => Err(misfit),
    }
}

fn float(value: &Value) -> Result<f64, CoercionError> {
    let misfit = CoercionError { wanted: "a number" };
    match value.kind() {
        ValueKind::Number | ValueKind::String => value.to_string().trim().parse().map_err(|_| misfit),
        _ => Err(misfit),
    }
}

/// A number is what YAML made of an octal one: `0644` in YAML is 420.
fn mode(value: &Value) -> Result<String, CoercionError> {
    let misfit = CoercionError { wanted: "permissions such as \"0644\" or \"u=rw,g=r\"" };
    match value.kind() {
        ValueKind::Number => {
            let number = value.as_i64().filter(|number| (0..=0o7777).contains(number)).ok_or(misfit)?;
            Ok(format!("{number:04o}"))
        }
        ValueKind::String => {
            let text = value.to_string();
            let text = text.trim();
            if text == "preserve" || is_octal(text) || is_symbolic(text) { Ok(text.to_owned()) } else { Err(misfit) }
        }
        _ => Err(misfit),
    }
}

fn is_octal(text: &str) -> bool {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    u32::from_str_radix(digits, 8).is_ok_and(|mode| mode <= 0o7777)
}

fn is_symbolic(text: &str) -> bool {
    !text.is_empty()
        && text.split(',').all(|clause| {
            let actions = clause.trim_start_matches(['u', 'g', 'o', 'a']);
            actions.starts_with(['+', '-', '='])
                && actions
                    .chars()
                    .all(|c| matches!(c, '+' | '-' | '=' | 'r' | 'w' | 'x' | 'X' | 's' | 't' | 'u' | 'g' | 'o'))
        })
}

fn list(of: ArgumentKind, value: &Value) -> Result<Value, CoercionError> {
    let misfit = CoercionError { wanted: "a list" };
    let items: Vec<Value> = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().map_err(|_| misfit)?.collect(),
        ValueKind::String => match value.as_str().unwrap_or_default() {
            "" | "[]" => Vec::new(),
            text => text.split(',').map(Value::from).collect(),
        },
        ValueKind::Number | ValueKind::Bool => vec![value.clone()],
        ValueKind::Map if matches!(of, ArgumentKind::Dict | ArgumentKind::Any) => vec![value.clone()],
        _ => return Err(misfit),
    };
    items.iter().map(|item| coerce(of, item).map_err(|_| CoercionError { wanted: list_of(of) })).collect()
}

fn list_of(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Str | ArgumentKind::Path | ArgumentKind::Mode => "a list of strings",
        ArgumentKind::Bool => "a list of booleans",
        ArgumentKind::Int => "a list of whole numbers",
        ArgumentKind::Float => "a list of numbers",
        ArgumentKind::List(_) => "a list of lists",
        ArgumentKind::Dict => "a list of mappings",
        ArgumentKind::Any => "a list",
    }
}

fn dict(value: &Value) -> Result<Value, CoercionError> {
    let misfit = CoercionError { wanted: "a mapping" };
    match value.kind() {
        ValueKind::Map => Ok(value.clone()),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            if text.starts_with('{') {
                let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| misfit)?;
                return Ok(Value::from(Serde(map)));
            }
            let pairs: Option<Vars> = split_pairs(text).iter().map(|word| pair(word)).collect();
            match pairs {
                Some(pairs) if !pairs.is_empty() => Ok(Value::from_pairs(pairs)),
                _ => Err(misfit),
            }
        }
        _ => Err(misfit),
    }
}

fn pair(word: &str) -> Option<(Arc<str>, Value)> {
    word.split_once('=').map(|(name, value)| (Arc::from(name), Value::from(value)))
}

/// Splits at commas and spaces outside quotes; a backslash takes the next character as it is.
fn split_pairs(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let word = words.last_mut().expect("there is always a word");
        match (c, quote) {
            ('\\', _) => word.extend(characters.next()),
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (',' | ' ', None) => words.push(String::new()),
            (c, _) => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coerced(kind: ArgumentKind, value: impl Into<Value>) -> Option<String> {
        coerce(kind, &value.into()).ok().map(|value| value.to_string())
    }

    #[test]
    fn boolean_words_and_numbers_are_booleans() {
        for word in ["y", "Yes", " on ", "1", "TRUE", "t"] {
            assert_eq!(coerced(ArgumentKind::Bool, word).as_deref(), Some("True"), "{word}");
        }
        for word in ["n", "No", "off", "0", "false", "F"] {
            assert_eq!(coerced(ArgumentKind::Bool, word).as_deref(), Some("False"), "{word}");
        }
        assert_eq!(coerced(ArgumentKind::Bool, 1).as_deref(), Some("True"));
        assert_eq!(coerced(ArgumentKind::Bool, 0.0).as_deref(), Some("False"));
        assert_eq!(coerced(ArgumentKind::Bool, 2), None);
        assert_eq!(coerced(ArgumentKind::Bool, ""), None);
    }

    #[test]
    fn whole_numbers_come_from_strings_and_whole_floats_only() {
        assert_eq!(coerced(ArgumentKind::Int, "42").as_deref(), Some("42"));
        assert_eq!(coerced(ArgumentKind::Int, 3.0).as_deref(), Some("3"));
        assert_eq!(coerced(ArgumentKind::Int, "3.5"), None);
        assert_eq!(coerced(ArgumentKind::Int, "x"), None);
        assert_eq!(coerced(ArgumentKind::Int, "9223372036854775807").as_deref(), Some("9223372036854775807"));
    }

    #[test]
    fn a_mode_is_octal_symbolic_or_preserve() {
        assert_eq!(coerced(ArgumentKind::Mode, 0o644).as_deref(), Some("0644"));
        assert_eq!(coerced(ArgumentKind::Mode, 0o1777).as_deref(), Some("1777"));
        assert_eq!(coerced(ArgumentKind::Mode, "644").as_deref(), Some("644"));
        assert_eq!(coerced(ArgumentKind::Mode, "0o755").as_deref(), Some("0o755"));
        assert_eq!(coerced(ArgumentKind::Mode, "u=rwX,g-w,o=").as_deref(), Some("u=rwX,g-w,o="));
        assert_eq!(coerced(ArgumentKind::Mode, "+x").as_deref(), Some("+x"));
        assert_eq!(coerced(ArgumentKind::Mode, "preserve").as_deref(), Some("preserve"));
        assert_eq!(coerced(ArgumentKind::Mode, "0888"), None);
        assert_eq!(coerced(ArgumentKind::Mode, "rw-r--r--"), None);
        assert_eq!(coerced(ArgumentKind::Mode, 99999), None);
    }

    #[test]
    fn lists_come_from_lists_comma_strings_and_lone_values() {
        let strings = ArgumentKind::List(&ArgumentKind::Str);
        assert_eq!(coerced(strings, "a,b").as_deref(), Some("['a', 'b']"));
        assert_eq!(coerced(strings, 5).as_deref(), Some("['5']"));
        assert_eq!(coerced(strings, "").as_deref(), Some("[]"));
        assert_eq!(coerced(ArgumentKind::List(&ArgumentKind::Int), vec!["1", "2"]).as_deref(), Some("[1, 2]"));
        let misfit = coerce(ArgumentKind::List(&ArgumentKind::Int), &Value::from("a")).unwrap_err();
        assert_eq!(misfit.wanted, "a list of whole numbers");
    }

    #[test]
    fn mappings_come_from_json_and_from_pairs() {
        let json = coerce(ArgumentKind::Dict, &Value::from("{\"a\": [1, 2]}")).unwrap();
        assert_eq!(json.get_attr("a").unwrap().len(), Some(2));
        let pairs = coerce(ArgumentKind::Dict, &Value::from("a=1, b=\"x, y\"")).unwrap();
        assert_eq!(pairs.get_attr("b").unwrap().as_str(), Some("x, y"));
        assert_eq!(coerced(ArgumentKind::Dict, "a=1, b"), None);
        assert_eq!(coerced(ArgumentKind::Dict, "words only"), None);
    }

    #[test]
    fn booleans_become_text_as_python_writes_them() {
        assert_eq!(coerced(ArgumentKind::Str, true).as_deref(), Some("True"));
        assert_eq!(coerced(ArgumentKind::Str, 1.5).as_deref(), Some("1.5"));
    }
}
