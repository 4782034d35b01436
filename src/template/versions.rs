//! Versions compared: loose ones as Python's distutils did, semantic ones by their specification.

use std::cmp::Ordering;

use minijinja::{Error, State};

use super::args::{Args, fail, text};

/// `version(version, operator='eq', strict=None, version_type=None)`
pub fn version(_: &mut State<'_, '_>, mut args: Args) -> Result<bool, Error> {
    let (value, other) = (args.req("value")?, args.req("version")?);
    if !value.is_true() || !other.is_true() {
        return Err(fail("a version is empty"));
    }
    let (value, other) = (text(&value), text(&other));
    let operator = args.text_or("operator", "eq");
    let strict = args.opt("strict").is_some_and(|strict| strict.is_true());
    let kind = args.opt("version_type").filter(|kind| !kind.is_none()).map(|kind| text(&kind));
    args.end()?;
    let order = match kind.as_deref() {
        Some("semver" | "semantic") => semantic(&value)?.cmp(&semantic(&other)?),
        _ if strict => semantic(&value)?.cmp(&semantic(&other)?),
        None | Some("loose" | "strict" | "pep440") => order(&loose(&value), &loose(&other))?,
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

/// The order of loose versions; a number and a word at one place have none.
fn order(a: &[Part], b: &[Part]) -> Result<Ordering, Error> {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((Part::Number(_), Part::Word(_)) | (Part::Word(_), Part::Number(_))) => {
            Err(fail("the versions have a number and a word at one place, which cannot be compared"))
        }
        Some((a, b)) => Ok(a.cmp(b)),
        None => Ok(a.len().cmp(&b.len())),
    }
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
