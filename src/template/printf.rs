//! `%` formatting and `str.format`, where Python goes beyond the engine: `%r`, `%d` of a fraction, `{!r}`, and refusing
//! values that no place is left for.

use minijinja::Error;
use minijinja::formatting::{FormatStyle, format as engine_format};
use minijinja::value::{Kwargs, ValueKind};

use super::conversions::{fail, iterate, kind};
use super::python;
use crate::value::{Value, float};

/// `format % value`
pub(super) fn percent(format: &str, value: &Value) -> Result<String, Error> {
    let values = if value.is_tuple() { iterate(value)? } else { vec![value.clone()] };
    // What has members is taken for names of a format, and may be left over.
    let spare = !value.is_tuple() && matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable);
    fill(format, values, spare)
}

/// `format | format(values...)`
pub(super) fn fill(format: &str, mut values: Vec<Value>, spare: bool) -> Result<String, Error> {
    let (mut plain, mut rest, mut next) = (String::new(), format, 0);
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let named = rest.starts_with('(');
        let end = if named { rest.find(')').map_or(0, |close| close + 1) } else { 0 };
        let conversion = rest[end..].find(|c: char| c.is_ascii_alphabetic() || c == '%');
        let Some(at) = conversion.map(|at| end + at) else { break };
        let letter = rest[at..].chars().next().unwrap_or('%');
        plain.push_str(&rest[..at]);
        check_widths(&rest[end..at])?;
        let stars = rest[end..at].matches('*').count();
        values.iter().skip(next).take(stars).try_for_each(|width| check_widths(&width.to_string()))?;
        next += stars;
        plain.push(if matches!(letter, 'r' | 'a') { 's' } else { letter });
        if letter != '%' && !named {
            if let Some(value) = values.get_mut(next) {
                *value = converted(letter, value);
            }
            next += 1;
        }
        rest = &rest[at + letter.len_utf8()..];
    }
    plain.push_str(rest);
    if next < values.len() && !(spare && next == 0) && !(next == 0 && format.contains("%(")) {
        return Err(fail("the format has fewer placeholders than values"));
    }
    if next == 0 && !plain.contains('%') {
        return Ok(plain);
    }
    engine_format(FormatStyle::Printf, &plain, &values)
}

/// A width or precision is bounded, so that a slip in a number does not take all memory.
fn check_widths(spec: &str) -> Result<(), Error> {
    const WIDEST: u32 = 1_000_000;
    let mut numbers = spec.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    match numbers.any(|number| number.parse::<u32>().map_or(true, |width| width > WIDEST)) {
        true => Err(fail(format!("a format with a width of more than {WIDEST}"))),
        false => Ok(()),
    }
}

fn converted(letter: char, value: &Value) -> Value {
    match letter {
        'r' | 'a' => Value::from(python::repr(value)),
        'd' | 'i' | 'u' if value.is_number() && !value.is_integer() => {
            f64::try_from(value.clone()).map_or_else(|_| value.clone(), |number| Value::from(float::whole_part(number)))
        }
        _ => value.clone(),
    }
}

/// `format.format(values...)`
pub(super) fn braces(format: &str, args: &[Value]) -> Result<String, Error> {
    let (positional, named) = match args.split_last() {
        Some((last, first)) if last.is_kwargs() => (first, Some(Kwargs::try_from(last.clone())?)),
        _ => (args, None),
    };
    let mut values = positional.to_vec();
    let (mut plain, mut rest, mut auto) = (String::new(), format, 0);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") || rest.starts_with('}') {
            let length = if rest.starts_with("{{") || rest.starts_with("}}") { 2 } else { 1 };
            plain.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let Some(close) = rest.find('}') else { break };
        let field = &rest[1..close];
        let (field, spec) = field.split_once(':').map_or((field, None), |(field, spec)| (field, Some(spec)));
        check_widths(spec.unwrap_or_default())?;
        let (field, conversion) = field.split_once('!').map_or((field, None), |(field, letter)| (field, Some(letter)));
        let field = if field.is_empty() { auto.to_string() } else { field.to_owned() };
        auto += 1;
        let known = match (field.parse::<usize>(), &named) {
            (Ok(at), _) => positional.get(at).cloned(),
            (Err(_), Some(named)) => named.peek::<Value>(&field).ok(),
            (Err(_), None) => None,
        };
        let field = match (conversion, &known) {
            (Some(letter), Some(value)) => {
                values.push(if letter == "s" {
                    Value::from(value.to_string())
                } else {
                    Value::from(python::repr(value))
                });
                (values.len() - 1).to_string()
            }
            (None, Some(value)) if spec.is_some_and(|spec| !spec.is_empty()) => match value.kind() {
                ValueKind::None | ValueKind::Seq | ValueKind::Map => {
                    return Err(fail(format!("{} cannot be formatted with {:?}", kind(value), spec.unwrap_or(""))));
                }
                _ => field,
            },
            _ => field,
        };
        plain.push_str(&format!("{{{field}{}}}", spec.map(|spec| format!(":{spec}")).unwrap_or_default()));
        rest = &rest[close + 1..];
    }
    plain.push_str(rest);
    if let Some(named) = named {
        let pairs = named.args().map(|name| Ok((name.to_owned(), named.peek::<Value>(name)?)));
        values.push(pairs.collect::<Result<Kwargs, Error>>()?.into());
    }
    engine_format(FormatStyle::StrFormat, &plain, &values)
}
