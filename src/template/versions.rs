//! Versions compared: loose and strict ones as Python's distutils did, semantic ones and those of Python's packages by
//! their specifications.

use std::cmp::Ordering;

use minijinja::{Error, State};

use super::args::Args;
use super::conversions::{fail, to_text};

/// `version(version, operator='eq', strict=None, version_type=None)`
pub(super) fn version_test(_: &mut State<'_, '_>, mut args: Args) -> Result<bool, Error> {
    let (value, other) = (args.req("value")?, args.req("version")?);
    if !value.is_true() || !other.is_true() {
        return Err(fail("a version must not be empty"));
    }
    let (value, other) = (to_text(&value), to_text(&other));
    let operator = args.text_or("operator", "eq");
    let mut given = |name: &str| args.opt(name).filter(|value| !value.is_none());
    let (strict, kind) = (given("strict"), given("version_type").map(|kind| to_text(&kind)));
    args.no_more_arguments()?;
    if strict.is_some() && kind.is_some() {
        return Err(fail("version supports strict or version_type, not both"));
    }
    let kind =
        kind.unwrap_or_else(|| if strict.is_some_and(|strict| strict.is_true()) { "strict" } else { "loose" }.into());
    let order = match &*kind {
        "loose" => order(&loose(&value), &loose(&other))?,
        "strict" => self::strict(&value)?.cmp(&self::strict(&other)?),
        "semver" | "semantic" => semantic(&value)?.cmp(&semantic(&other)?),
        "pep440" => python(&value)?.cmp(&python(&other)?),
        _ => return Err(fail(format!("unknown version type {kind:?}"))),
    };
    Ok(match operator.as_str() {
        "==" | "=" | "eq" => order == Ordering::Equal,
        "<" | "lt" => order == Ordering::Less,
        "<=" | "le" => order != Ordering::Greater,
        ">" | "gt" => order == Ordering::Greater,
        ">=" | "ge" => order != Ordering::Less,
        "!=" | "<>" | "ne" => order != Ordering::Equal,
        _ => return Err(fail(format!("unknown version operator {operator:?}"))),
    })
}

/// Numbers and words of a version; words are less than numbers are missing, as loose versions compare.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum VersionPart {
    Number(u128),
    Word(String),
}

/// Numbers, words in small letters, and the text between them; dots only separate.
fn loose(version: &str) -> Vec<VersionPart> {
    let class = |c: char| match c {
        '.' => 0,
        c if c.is_ascii_digit() => 1,
        c if c.is_ascii_lowercase() => 2,
        _ => 3,
    };
    let mut parts = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let (word, after) = rest.split_at(rest.find(|c| class(c) != class(first)).unwrap_or(rest.len()));
        if first != '.' {
            parts.push(part(word));
        }
        rest = after;
    }
    parts
}

fn part(word: &str) -> VersionPart {
    word.parse().map_or_else(|_| VersionPart::Word(word.to_owned()), VersionPart::Number)
}

/// The order of loose versions; a number and a word at one place have none.
fn order(a: &[VersionPart], b: &[VersionPart]) -> Result<Ordering, Error> {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((VersionPart::Number(_), VersionPart::Word(_)) | (VersionPart::Word(_), VersionPart::Number(_))) => {
            Err(fail("cannot compare the versions: one has a number where the other has a word"))
        }
        Some((a, b)) => Ok(a.cmp(b)),
        None => Ok(a.len().cmp(&b.len())),
    }
}

/// The groups of a version that has the form of its kind.
fn groups<'a>(version: &'a str, form: &str, kind: &str) -> Result<fancy_regex::Captures<'a>, Error> {
    let form = super::filters::regex(form, true, false)?;
    let found = form.captures(version).ok().flatten();
    found.ok_or_else(|| fail(format!("{version:?} is not a {kind} version")))
}

fn number(groups: &fancy_regex::Captures<'_>, at: usize) -> u128 {
    groups.get(at).and_then(|digits| digits.as_str().parse().ok()).unwrap_or(0)
}

/// Two or three numbers, then releases above their alpha (`a1`) and beta (`b1`) versions.
type StrictVersion = ([u128; 3], bool, String, u128);

fn strict(version: &str) -> Result<StrictVersion, Error> {
    let found = groups(version, r"^(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?$", "strict")?;
    let pre = found.get(4).map_or("", |pre| pre.as_str());
    Ok(([1, 2, 3].map(|at| number(&found, at)), pre.is_empty(), pre.to_owned(), number(&found, 5)))
}

/// Major, minor, patch, then releases above pre-releases; what comes after `+` does not count.
type SemanticVersion = ([u128; 3], bool, Vec<VersionPart>);

fn semantic(version: &str) -> Result<SemanticVersion, Error> {
    // Numbers have no zero before them.
    let (n, word) = (r"(0|[1-9]\d*)", r"(?:0|[1-9]\d*|\d*[a-z-][0-9a-z-]*)");
    let form = format!(r"^{n}\.{n}\.{n}(?:-({word}(?:\.{word})*))?(?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?$");
    let found = groups(version, &form, "semantic")?;
    let pre = found.get(4).map_or("", |pre| pre.as_str());
    let parts = pre.split('.').filter(|part| !part.is_empty()).map(part).collect();
    Ok(([1, 2, 3].map(|at| number(&found, at)), pre.is_empty(), parts))
}

/// A version of a Python package: epoch, release without zeros at its end, then what comes before the release
/// (development, alpha, beta, candidate) or after it, and a local part.
type Python = (u128, Vec<u128>, (u8, u128), (u8, u128), (u8, u128), Vec<VersionPart>);

fn python(version: &str) -> Result<Python, Error> {
    let form = concat!(
        r"^\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)",
        r"(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?(\d+)?)?",
        r"(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d+)?)?",
        r"(?:[-_.]?(dev)[-_.]?(\d+)?)?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*$",
    );
    let found = groups(version, form, "pep440")?;
    let mut release: Vec<u128> = found[2].split('.').map(|part| part.parse().unwrap_or(u128::MAX)).collect();
    while release.last() == Some(&0) {
        release.pop();
    }
    let post = match (found.get(5), found.get(6)) {
        (Some(_), _) => (1, number(&found, 5)),
        (_, Some(_)) => (1, number(&found, 7)),
        _ => (0, 0),
    };
    let dev = found.get(8).map_or((1, 0), |_| (0, number(&found, 9)));
    let pre = match found.get(3).map(|pre| pre.as_str().to_lowercase()) {
        Some(pre) if pre.starts_with('a') => (1, number(&found, 4)),
        Some(pre) if pre.starts_with('b') => (2, number(&found, 4)),
        Some(_) => (3, number(&found, 4)),
        // A development version of a release comes before all that.
        None if post.0 == 0 && dev.0 == 0 => (0, 0),
        None => (4, 0),
    };
    let local = found.get(10).map_or(String::new(), |local| local.as_str().to_lowercase());
    let local = local.split(['.', '-', '_']).filter(|part| !part.is_empty()).map(|word| match part(word) {
        VersionPart::Number(number) => VersionPart::Word(format!("~{number:040}")),
        word => word,
    });
    Ok((number(&found, 1), release, pre, post, dev, local.collect()))
}
