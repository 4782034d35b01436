//! Methods of strings, lists and mappings that Python has and the template engine does not.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};

use super::args::Args;
use super::conversions::{fail, fits, to_text};
use super::{lazy, printf, python};
use crate::value::Value;

/// Called for a method that a value does not have itself.
pub(super) fn call(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    if method == "format"
        && let Some(string) = value.as_str()
    {
        return printf::braces(string, args).map(Value::from);
    }
    let value = &lazy::settle_argument(value, &lazy::scope_of(state)).map_err(super::Error::into_engine)?;
    if let Some(string) = value.as_str()
        && let Some(result) = string_method(state, string, method, args)?
    {
        return Ok(result);
    }
    if value.kind() == ValueKind::Seq && method == "index" {
        let (item,): (Value,) = from_args(args)?;
        let at = value.try_iter()?.position(|other| other == item);
        return at.map(Value::from).ok_or_else(|| fail(format!("{item:?} is not in the list")));
    }
    match (value.kind(), method) {
        (ValueKind::Map | ValueKind::Seq, "copy") => return Ok(value.clone()),
        // Of a variable, a copy is changed.
        (ValueKind::Map, "update" | "pop" | "setdefault" | "clear" | "popitem") => {
            return super::mutable::mutable(value.clone()).call_method(state, method, args);
        }
        (ValueKind::Seq, "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "reverse" | "sort")
            if !value.is_tuple() =>
        {
            return super::mutable::mutable(value.clone()).call_method(state, method, args);
        }
        _ => {}
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
}

fn string_method(state: &mut State<'_, '_>, s: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let mut args = match Args::new(state, args)? {
        Ok(args) => args,
        Err(_) => return Err(Error::from(ErrorKind::UndefinedError)),
    };
    Ok(Some(match method {
        "zfill" => Value::from(zfill(s, width(&mut args)?)),
        "ljust" | "rjust" | "center" => {
            let (width, fill) = (width(&mut args)?, args.text_or("fillchar", " "));
            let missing = width.saturating_sub(s.chars().count());
            let left = match method {
                "ljust" => 0,
                "rjust" => missing,
                // Python gives the odd one to the left when the width is odd.
                _ => missing / 2 + (missing & width & 1),
            };
            fits(fill.len().checked_mul(missing))?;
            Value::from(format!("{}{s}{}", fill.repeat(left), fill.repeat(missing - left)))
        }
        "partition" | "rpartition" => {
            let sep = args.text_argument("sep")?;
            let parts = if method == "partition" { s.split_once(&*sep) } else { s.rsplit_once(&*sep) };
            let parts = match parts {
                Some((before, after)) => [before, &sep, after],
                None if method == "partition" => [s, "", ""],
                None => ["", "", s],
            };
            Value::from(minijinja::value::Tuple::new(parts.into_iter().map(Value::from).collect()))
        }
        "rsplit" => {
            let (sep, max) = (args.opt("sep").filter(|sep| !sep.is_none()), args.int("maxsplit")?.unwrap_or(-1));
            Value::from(rsplit(s, sep.map(|sep| to_text(&sep)), max))
        }
        "removeprefix" => Value::from(s.strip_prefix(&*args.text_argument("prefix")?).unwrap_or(s)),
        "removesuffix" => Value::from(s.strip_suffix(&*args.text_argument("suffix")?).unwrap_or(s)),
        "casefold" => Value::from(s.to_lowercase().replace('ß', "ss")),
        "isprintable" => Value::from(s.chars().all(|c| c == ' ' || !c.is_control() && !c.is_whitespace())),
        "split" => super::filters::split(state, args.before(Value::from(s)))?,
        "splitlines" => python::python_lines(s, args.flag_argument("keepends")).into_iter().map(Value::from).collect(),
        "swapcase" => Value::from(s.chars().map(swap_case).collect::<String>()),
        "title" => Value::from(title(s)),
        "translate" => Value::from(translate(s, &args.req("table")?)),
        "index" | "rindex" => {
            let sub = args.text_argument("sub")?;
            let at = if method == "index" { s.find(&*sub) } else { s.rfind(&*sub) };
            Value::from(at.map(|at| s[..at].chars().count()).ok_or_else(|| fail("substring not found"))?)
        }
        "isdecimal" => Value::from(!s.is_empty() && s.chars().all(char::is_numeric)),
        "isidentifier" => {
            let first = s.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Value::from(first && s.chars().all(|c| c.is_alphanumeric() || c == '_'))
        }
        "istitle" => Value::from(s.chars().any(char::is_uppercase) && title(s) == s),
        "expandtabs" => {
            let width = args.length("tabsize")?.unwrap_or(8);
            fits(s.matches('\t').count().checked_mul(width))?;
            Value::from(s.replace('\t', &" ".repeat(width)))
        }
        // Text stays text: the only thing done with the bytes is to show or hash them.
        "encode" | "decode" => Value::from(s),
        _ => return Ok(None),
    }))
}

fn width(args: &mut Args) -> Result<usize, Error> {
    args.length("width")?.ok_or_else(|| fail("the argument width is missing"))
}

fn zfill(s: &str, width: usize) -> String {
    let (sign, digits) = match s.strip_prefix(['+', '-']) {
        Some(digits) => (&s[..1], digits),
        None => ("", s),
    };
    format!("{sign}{}{digits}", "0".repeat(width.saturating_sub(s.chars().count())))
}

fn rsplit(s: &str, sep: Option<String>, max: i64) -> Vec<Value> {
    let limit = usize::try_from(max).map_or(usize::MAX, |max| max + 1);
    let mut parts: Vec<Value> = match sep {
        Some(sep) => s.rsplitn(limit, &*sep).map(Value::from).collect(),
        None => {
            let mut words: Vec<&str> = s.split_whitespace().collect();
            let tail = words.split_off(words.len().saturating_sub(limit - 1).min(words.len()));
            let head = words.last().map(|last| {
                let end = last.as_ptr() as usize - s.as_ptr() as usize + last.len();
                s[..end].trim_start()
            });
            tail.into_iter().rev().chain(head).map(Value::from).collect()
        }
    };
    parts.reverse();
    parts
}

fn swap_case(c: char) -> String {
    if c.is_lowercase() { c.to_uppercase().collect() } else { c.to_lowercase().collect() }
}

/// Letters after what is no letter in capitals, all others small.
fn title(s: &str) -> String {
    let mut inside = false;
    let mut letter = |c: char| {
        let cased: String = match inside {
            true => c.to_lowercase().collect(),
            false => capital(c),
        };
        inside = c.is_lowercase() || c.is_uppercase();
        cased
    };
    s.chars().map(&mut letter).collect()
}

/// A letter in capitals; of one that is several in capitals, only the first.
fn capital(c: char) -> String {
    let mut capital = String::new();
    for part in c.to_uppercase() {
        match capital.contains(char::is_uppercase) {
            true => capital.extend(part.to_lowercase()),
            false => capital.push(part),
        }
    }
    capital
}

/// Every character by a table from its number to a text, the number of another, or none.
fn translate(s: &str, table: &Value) -> String {
    let character = |c: char| match table.get_item(&Value::from(u32::from(c))) {
        Ok(other) if other.is_none() => String::new(),
        Ok(other) if !other.is_undefined() => {
            let number = other.as_usize().and_then(|number| char::from_u32(u32::try_from(number).ok()?));
            number.map_or_else(|| to_text(&other), String::from)
        }
        _ => c.to_string(),
    };
    s.chars().map(character).collect()
}
