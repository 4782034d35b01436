//! The tests (`x is defined`). To add one: write `fn name(state: &mut State, args: Args) -> Result<bool, Error>` and its
//! line in [`TESTS`], which is sorted.

use std::cmp::Ordering;
use std::os::unix::fs::FileTypeExt as _;

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::args::{Args, fail, items, list, text, truthy};
use super::environment::Test;
use super::filters::regex;
use crate::value::{Value, vault};

/// Tests that must not get undefined values, by name.
pub static TESTS: &[(&str, Test)] = &[
    ("abs", |_, mut args| Ok(args.text("path")?.starts_with('/'))),
    ("all", |_, mut args| Ok(items(&args.req("a")?)?.iter().all(Value::is_true))),
    ("any", |_, mut args| Ok(items(&args.req("a")?)?.iter().any(Value::is_true))),
    ("change", |_, args| result(args, "changed")),
    ("changed", |_, args| result(args, "changed")),
    ("contains", |_, mut args| {
        let (seq, value) = (args.req("seq")?, args.req("value")?);
        has(&seq, &value)
    }),
    ("directory", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_dir())),
    ("exists", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).exists())),
    ("failed", |_, args| result(args, "failed")),
    ("failure", |_, args| result(args, "failed")),
    ("falsy", |_, args| truthiness(args).map(|truth| !truth)),
    ("file", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_file())),
    ("finished", |_, args| async_result(args, "finished")),
    ("in", |_, mut args| {
        let (value, seq) = (args.req("value")?, args.req("seq")?);
        has(&seq, &value)
    }),
    ("is_abs", |_, mut args| Ok(args.text("path")?.starts_with('/'))),
    ("is_dir", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_dir())),
    ("is_file", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_file())),
    ("is_link", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_symlink())),
    ("iterable", |_, mut args| {
        Ok(matches!(
            args.req("value")?.kind(),
            ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Iterable
        ))
    }),
    ("link", |_, mut args| Ok(std::path::Path::new(&args.text("path")?).is_symlink())),
    ("link_exists", |_, mut args| Ok(std::fs::symlink_metadata(args.text("path")?).is_ok())),
    ("match", |_, args| pattern(args, Some("match"))),
    ("mount", |_, mut args| is_mount(&args.text("path")?)),
    ("nan", |_, mut args| Ok(f64::try_from(args.req("x")?).is_ok_and(f64::is_nan))),
    ("reachable", |_, args| result(args, "unreachable").map(|unreachable| !unreachable)),
    ("regex", |_, args| pattern(args, None)),
    ("same_file", |_, mut args| {
        let (a, b) = (args.text("path")?, args.text("other")?);
        Ok(std::fs::canonicalize(a).ok().is_some_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b)))
    }),
    ("search", |_, args| pattern(args, Some("search"))),
    ("sequence", |_, mut args| {
        Ok(matches!(args.req("value")?.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String))
    }),
    ("skip", |_, args| result(args, "skipped")),
    ("skipped", |_, args| result(args, "skipped")),
    ("socket", |_, mut args| Ok(std::fs::metadata(args.text("path")?).is_ok_and(|meta| meta.file_type().is_socket()))),
    ("started", |_, args| async_result(args, "started")),
    ("subset", |_, mut args| {
        let (a, b) = (items(&args.req("a")?)?, items(&args.req("b")?)?);
        Ok(a.iter().all(|item| b.contains(item)))
    }),
    ("succeeded", |_, args| result(args, "failed").map(|failed| !failed)),
    ("success", |_, args| result(args, "failed").map(|failed| !failed)),
    ("successful", |_, args| result(args, "failed").map(|failed| !failed)),
    ("superset", |_, mut args| {
        let (a, b) = (items(&args.req("a")?)?, items(&args.req("b")?)?);
        Ok(b.iter().all(|item| a.contains(item)))
    }),
    ("timedout", |_, args| result(args, "timedout")),
    ("truthy", |_, args| truthiness(args)),
    ("unreachable", |_, args| result(args, "unreachable")),
    ("uri", |_, mut args| {
        Ok(args.text("value")?.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()))
    }),
    ("url", |_, mut args| {
        Ok(args.text("value")?.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()))
    }),
    ("vault_encrypted", |_, mut args| Ok(vault::is_vault(&args.text("value")?))),
    ("version", version),
    ("version_compare", version),
];

/// The engine's own tests that mean what Ansible means.
pub static ENGINE_TESTS: &[&str] = &[
    "boolean",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "integer",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "string",
    "test",
    "true",
    "upper",
];

/// Tests that may get undefined values.
pub mod of_undefined {
    use minijinja::value::Rest;

    use crate::value::Value;

    type Raw = fn(Rest<Value>) -> bool;

    pub static TESTS: &[(&str, Raw)] = &[("defined", defined), ("undefined", |values| !defined(values))];

    fn defined(values: Rest<Value>) -> bool {
        values.first().is_some_and(|value| !value.is_undefined())
    }
}

fn has(seq: &Value, value: &Value) -> Result<bool, Error> {
    match (seq.as_str(), seq.kind()) {
        (Some(string), _) => Ok(string.contains(&text(value))),
        _ => Ok(items(seq)?.contains(value)),
    }
}

/// A flag of a task's result.
fn result(mut args: Args, flag: &str) -> Result<bool, Error> {
    let value = args.req("result")?;
    if value.kind() != ValueKind::Map {
        return Err(fail(format!("the test {flag:?} needs the result of a task, as `register` keeps it")));
    }
    let set = |value: &Value, flag: &str| value.get_attr(flag).is_ok_and(|flag| flag.is_true());
    // A loop's result counts as changed or skipped as its items do.
    if flag == "changed" && value.get_attr("changed").is_ok_and(|changed| changed.is_undefined()) {
        let results = value.get_attr("results").unwrap_or(Value::UNDEFINED);
        return Ok(list(&results, "results").is_ok_and(|results| results.iter().any(|item| set(item, "changed"))));
    }
    Ok(set(&value, flag))
}

fn async_result(mut args: Args, flag: &str) -> Result<bool, Error> {
    let value = args.req("result")?;
    let found =
        value.get_attr(flag).map_err(|_| fail(format!("the test {flag:?} needs the result of an async task")))?;
    // What was not asynchronous is finished, and was started.
    Ok(found.is_undefined() || found.is_true())
}

fn truthiness(mut args: Args) -> Result<bool, Error> {
    let value = args.req("value")?;
    Ok(if args.flag("convert_bool") { truthy(&value) } else { value.is_true() })
}

/// `match(pattern, ignorecase, multiline)`, `search(...)`, `regex(..., match_type='search')`
fn pattern(mut args: Args, how: Option<&str>) -> Result<bool, Error> {
    let (value, pattern) = (args.req("value")?, args.text("pattern")?);
    let (ignorecase, multiline) = (args.flag("ignorecase"), args.flag("multiline"));
    let how = how.map_or_else(|| args.text_or("match_type", "search"), str::to_owned);
    args.end()?;
    let regex = regex(&pattern, ignorecase, multiline)?;
    let string = text(&value);
    let found = regex.find(&string).map_err(|error| fail(format!("the regular expression took too long: {error}")))?;
    Ok(match how.as_str() {
        "match" => found.is_some_and(|found| found.start() == 0),
        "fullmatch" => found.is_some_and(|found| found.start() == 0 && found.end() == string.len()),
        _ => found.is_some(),
    })
}

fn is_mount(path: &str) -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(here), Ok(above)) = (std::fs::metadata(path), std::fs::metadata(format!("{path}/.."))) else {
        return Ok(false);
    };
    Ok(here.dev() != above.dev() || here.ino() == above.ino())
}

/// `version(version, operator='eq', strict=None, version_type=None)`
pub fn version(_: &mut State<'_, '_>, mut args: Args) -> Result<bool, Error> {
    let (value, other) = (args.text("value")?, args.text("version")?);
    let operator = args.text_or("operator", "eq");
    let strict = args.opt("strict").is_some_and(|strict| strict.is_true());
    let kind = args.opt("version_type").filter(|kind| !kind.is_none()).map(|kind| text(&kind));
    args.end()?;
    if value.is_empty() || other.is_empty() {
        return Err(fail("a version is empty"));
    }
    let order = match kind.as_deref() {
        Some("semver" | "semantic") => semantic(&value)?.cmp(&semantic(&other)?),
        _ if strict => semantic(&value)?.cmp(&semantic(&other)?),
        None | Some("loose" | "strict" | "pep440") => loose(&value).cmp(&loose(&other)),
        Some(kind) => return Err(fail(format!("there is no version type {kind:?}"))),
    };
    Ok(match operator.as_str() {
        "==" | "=" | "eq" => order == Ordering::Equal,
        "<" | "lt" => order == Ordering::Less,
        "<=" | "le" => order != Ordering::Greater,
        ">" | "gt" => order == Ordering::Greater,
        ">=" | "ge" => order != Ordering::Less,
        "!=" | "<>" | "ne" => order != Ordering::Equal,
        _ => return Err(fail(format!("there is no version operator {operator:?}"))),
    })
}

/// Numbers and words of a version; words are less than numbers are missing, as loose versions compare.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u128),
    Word(String),
}

fn loose(version: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let digit = first.is_ascii_digit();
        let same = |c: char| c.is_ascii_digit() == digit && c != '.';
        if first == '.' {
            rest = &rest[1..];
            continue;
        }
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        parts.push(word.parse().map_or_else(|_| Part::Word(word.to_owned()), Part::Number));
        rest = &rest[end..];
    }
    parts
}

/// Major, minor, patch, then releases above pre-releases.
type Semantic = (Vec<u64>, bool, Vec<Part>);

fn semantic(version: &str) -> Result<Semantic, Error> {
    let wrong = || fail(format!("{version:?} is not a semantic version"));
    let bare = version.trim_start_matches('v').split('+').next().unwrap_or("");
    let (core, pre) = bare.split_once('-').unwrap_or((bare, ""));
    let core = core.split('.').map(|part| part.parse().map_err(|_| wrong())).collect::<Result<Vec<u64>, Error>>()?;
    let parts = pre.split('.').filter(|part| !part.is_empty());
    let parts = parts.map(|part| part.parse().map_or_else(|_| Part::Word(part.to_owned()), Part::Number)).collect();
    Ok((core, pre.is_empty(), parts))
}
