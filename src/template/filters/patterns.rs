//! Regular expressions, in Python's dialect.

use std::sync::{Arc, LazyLock};

use fancy_regex::{Captures, Regex};
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::cache::TextCache;
use super::super::conversions::{fail, fits, to_text};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("regex_escape", "A text with the special characters of regular expressions escaped.")
            .takes("re_type='python'")
            .gives("'a.b' | regex_escape", "a\\.b"),
        regex_escape,
    ),
    (
        LanguageItem::new("regex_findall", "All parts of a text that match a regular expression.")
            .takes("regex, multiline=false, ignorecase=false")
            .gives("'a1 b22' | regex_findall('[0-9]+')", "['1', '22']"),
        regex_findall,
    ),
    (
        LanguageItem::new(
            "regex_replace",
            "A text with all matches of a regular expression replaced; \\1 in the replacement is the first group.",
        )
        .takes("regex='', replacement='', ignorecase=false, multiline=false, count=0, mandatory_count=0")
        .gives("'h1.example.org' | regex_replace('[.].*$', '')", "h1"),
        regex_replace,
    ),
    (
        LanguageItem::new(
            "regex_search",
            "The first part of a text that matches a regular expression, or a list of its \
             groups; none if nothing matches.",
        )
        .takes("regex, groups..., ignorecase=false, multiline=false")
        .gives("'etcd 3.5.16' | regex_search('[0-9.]+')", "3.5.16"),
        regex_search,
    ),
];

/// A compiled pattern, from the cache or new.
pub(crate) fn regex(pattern: &str, ignorecase: bool, multiline: bool) -> Result<Arc<Regex>, Error> {
    // For the whole process: what is compiled depends on its text alone, which is the key.
    static COMPILED: LazyLock<TextCache<Arc<Regex>>> = LazyLock::new(|| TextCache::with_room_for(1_000));
    let mut flags = String::new();
    if ignorecase {
        flags.push('i');
    }
    if multiline {
        flags.push('m');
    }
    // Python's `\Z` is the very end, which is `\z` elsewhere.
    let pattern = pattern.replace(r"\Z", r"\z");
    let full = if flags.is_empty() { pattern } else { format!("(?{flags}){pattern}") };
    if let Some(regex) = COMPILED.recall(&full) {
        return Ok(regex);
    }
    let regex = Regex::new(&full).map_err(|error| fail(format!("invalid regular expression {full:?}: {error}")))?;
    let regex = Arc::new(regex);
    COMPILED.keep(&full, regex.clone());
    Ok(regex)
}

fn broken(error: fancy_regex::Error) -> Error {
    fail(format!("the regular expression took too long: {error}"))
}

/// `regex_replace(pattern, replacement, ignorecase, multiline, count, mandatory_count)`
pub(super) fn regex_replace(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("value")?;
    let (pattern, replacement) = (args.text_or("pattern", ""), args.text_or("replacement", ""));
    let (ignorecase, multiline) = (args.flag_argument("ignorecase"), args.flag_argument("multiline"));
    let (count, mandatory) = (args.int("count")?.unwrap_or(0), args.int("mandatory_count")?.unwrap_or(0));
    args.no_more_arguments()?;
    let regex = regex(&pattern, ignorecase, multiline)?;
    let mut result = String::with_capacity(string.len());
    let (mut done, mut replaced) = (0, 0);
    for captures in regex.captures_iter(&string) {
        let captures = captures.map_err(broken)?;
        let whole = captures.get(0).expect("group 0 is the match");
        if count > 0 && replaced >= count {
            break;
        }
        result.push_str(&string[done..whole.start()]);
        expand(&replacement, &captures, &mut result)?;
        fits(Some(result.len()))?;
        done = whole.end();
        replaced += 1;
    }
    if mandatory > 0 && replaced != mandatory {
        return Err(fail(format!(
            "'{pattern}' should match {mandatory} times, but matches {replaced} times in '{string}'"
        )));
    }
    result.push_str(&string[done..]);
    Ok(Value::from(result))
}

/// Writes a replacement with `\1`, `\g<1>`, `\g<name>` and `\n` filled in.
fn expand(replacement: &str, captures: &Captures<'_>, result: &mut String) -> Result<(), Error> {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            let (number, after) = rest.split_at(digits.min(2));
            push_group(number, captures, result)?;
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix("g<").and_then(|rest| rest.split_once('>')) {
            push_group(name, captures, result)?;
            rest = after;
        } else {
            let mut chars = rest.chars();
            match chars.next() {
                Some('n') => result.push('\n'),
                Some('t') => result.push('\t'),
                Some('r') => result.push('\r'),
                Some('\\') => result.push('\\'),
                Some(c) if c.is_ascii_alphabetic() => return Err(fail(format!("bad escape \\{c} in the replacement"))),
                Some(c) => {
                    result.push('\\');
                    result.push(c);
                }
                None => return Err(fail("a backslash at the end of the replacement")),
            }
            rest = chars.as_str();
        }
    }
    result.push_str(rest);
    Ok(())
}

fn push_group(name: &str, captures: &Captures<'_>, result: &mut String) -> Result<(), Error> {
    let group = match name.parse::<usize>() {
        Ok(number) if number >= captures.len() => return Err(fail(format!("invalid group reference {number}"))),
        Ok(number) => captures.get(number),
        Err(_) => captures.name(name),
    };
    result.push_str(group.map_or("", |group| group.as_str()));
    Ok(())
}

/// `regex_search(pattern, '\\1', ..., ignorecase, multiline)`: the match, the groups asked for, or None.
pub(super) fn regex_search(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, pattern) = (args.text_argument("value")?, args.text_argument("regex")?);
    let ignorecase = args.named_argument("ignorecase").is_some_and(|flag| flag.is_true());
    let multiline = args.named_argument("multiline").is_some_and(|flag| flag.is_true());
    let groups: Vec<String> = args.rest().iter().map(to_text).collect();
    args.no_more_arguments()?;
    let regex = regex(&pattern, ignorecase, multiline)?;
    let Some(captures) = regex.captures(&string).map_err(broken)? else { return Ok(Value::from(())) };
    let value =
        |group: Option<fancy_regex::Match<'_>>| group.map_or(Value::from(()), |group| Value::from(group.as_str()));
    if groups.is_empty() {
        return Ok(value(captures.get(0)));
    }
    let wanted = |group: &String| {
        let name = group.strip_prefix("\\g<").and_then(|name| name.strip_suffix('>'));
        let number = name.or_else(|| group.strip_prefix('\\')).and_then(|number| number.parse::<usize>().ok());
        match (number, name) {
            (Some(number), _) if number < captures.len() => Ok(value(captures.get(number))),
            (None, Some(name)) if regex.capture_names().flatten().any(|known| known == name) => {
                Ok(value(captures.name(name)))
            }
            _ => Err(fail(format!("no such group: {group}"))),
        }
    };
    Ok(Value::from(groups.iter().map(wanted).collect::<Result<Vec<_>, Error>>()?))
}

/// `regex_findall(pattern, multiline, ignorecase)`
pub(super) fn regex_findall(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, pattern) = (args.text_argument("value")?, args.text_argument("regex")?);
    let (multiline, ignorecase) = (args.flag_argument("multiline"), args.flag_argument("ignorecase"));
    args.no_more_arguments()?;
    let regex = regex(&pattern, ignorecase, multiline)?;
    let mut found = Vec::new();
    for captures in regex.captures_iter(&string) {
        let captures = captures.map_err(broken)?;
        let group = |i: usize| Value::from(captures.get(i).map_or("", |group| group.as_str()));
        // Python: the match without groups, the group if there is one, else a tuple of all.
        found.push(match captures.len() {
            1 => group(0),
            2 => group(1),
            n => Value::from(minijinja::value::Tuple::new((1..n).map(group).collect())),
        });
    }
    Ok(Value::from(found))
}

/// `regex_escape(re_type='python')`
pub(super) fn regex_escape(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, kind) = (args.text_argument("string")?, args.text_or("re_type", "python"));
    args.no_more_arguments()?;
    let special = match kind.as_str() {
        "python" => "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}",
        "posix_basic" => "].[^$*\\",
        _ => return Err(fail(format!("invalid re_type {kind:?}"))),
    };
    let mut escaped = String::with_capacity(string.len());
    for c in string.chars() {
        if special.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    Ok(Value::from(escaped))
}
