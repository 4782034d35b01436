//! Filters of text.

use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, fits, kind, to_text};
use super::super::{printf, python};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("center", "A text centered between spaces.")
            .takes("width=80")
            .gives("'ab' | center(6) | length", "6"),
        center,
    ),
    (
        LanguageItem::new("comment", "A text as a comment of a file; the styles are plain, c, cblock, xml and erlang.")
            .takes("style='plain', decoration='# ', prefix='', postfix=''")
            .example("'Managed by windlass' | comment('c')"),
        comment,
    ),
    (
        LanguageItem::new("format", "A text with %s and other placeholders filled in.")
            .takes("values...")
            .gives("'%s:%d' | format('h1', 22)", "h1:22"),
        format,
    ),
    (LanguageItem::new("quote", "A text as one word of a shell command line.").example("\"it's\" | quote"), quote),
    (
        LanguageItem::new("replace", "A text with all occurrences of another text replaced.")
            .takes("old, new, count=none")
            .gives("'a-b-c' | replace('-', '.')", "a.b.c"),
        replace,
    ),
    (
        LanguageItem::new("split", "The parts of a text between separators; without one, its words.")
            .takes("separator=none, maxsplit=-1")
            .gives("'a,b' | split(',')", "['a', 'b']"),
        split,
    ),
    (
        LanguageItem::new("splitlines", "The lines of a text.")
            .takes("keepends=false")
            .gives("'one line' | splitlines", "['one line']"),
        splitlines,
    ),
    (
        LanguageItem::new("truncate", "A text cut to a length, between words unless killwords is true.")
            .takes("length=255, killwords=false, end='...', leeway=5")
            .gives("'a long story' | truncate(10, leeway=0)", "a long..."),
        truncate,
    ),
    (LanguageItem::new("wordcount", "How many words a text has.").gives("'a long story' | wordcount", "3"), wordcount),
];

/// `'%s and %s' | format(a, b)`
pub(super) fn format(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let format = args.text_argument("value")?;
    let (mut values, named) = (args.rest(), args.rest_named());
    if !named.is_empty() {
        values = vec![Value::from_pairs(named)];
    }
    printf::fill(&format, values, false).map(Value::from)
}

/// `replace(old, new, count)`
pub(super) fn replace(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, old, new) = (args.text_argument("s")?, args.text_argument("old")?, args.text_argument("new")?);
    let count = args.int("count")?.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    args.no_more_arguments()?;
    fits(string.matches(&old).take(count).count().checked_mul(new.len()))?;
    Ok(Value::from(string.replacen(&old, &new, count)))
}

/// `split(sep, maxsplit)`, Python's.
pub(crate) fn split(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("value")?;
    let sep = args.opt("sep").filter(|sep| !sep.is_none()).map(|sep| to_text(&sep));
    let limit = args.int("maxsplit")?.and_then(|max| usize::try_from(max).ok()).map_or(usize::MAX, |max| max + 1);
    args.no_more_arguments()?;
    let parts: Vec<Value> = match sep {
        Some(sep) if sep.is_empty() => return Err(fail("empty separator")),
        Some(sep) => string.splitn(limit, &*sep).map(Value::from).collect(),
        None if limit == usize::MAX => string.split_whitespace().map(Value::from).collect(),
        None => {
            let mut rest = string.trim_start();
            let mut parts = Vec::new();
            while parts.len() + 1 < limit && !rest.is_empty() {
                let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                parts.push(Value::from(word));
                rest = after.trim_start();
            }
            if !rest.is_empty() {
                parts.push(Value::from(rest));
            }
            parts
        }
    };
    Ok(Value::from(parts))
}

/// The lines, without their ends.
pub(super) fn splitlines(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("value")?;
    let keep = args.flag_argument("keepends");
    args.no_more_arguments()?;
    Ok(python::python_lines(&string, keep).into_iter().map(Value::from).collect())
}

/// A word of a shell command line.
pub(super) fn quote(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("a")?;
    args.no_more_arguments()?;
    let string = if value.is_none() { String::new() } else { to_text(&value) };
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !string.is_empty() && string.chars().all(safe) {
        return Ok(Value::from(string));
    }
    Ok(Value::from(format!("'{}'", string.replace('\'', "'\"'\"'"))))
}

/// `center(width=80)`
pub(super) fn center(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("value")?;
    let width = args.length("width")?.unwrap_or(80);
    args.no_more_arguments()?;
    let missing = width.saturating_sub(string.chars().count());
    let left = missing / 2 + (missing & width & 1);
    Ok(Value::from(format!("{}{string}{}", " ".repeat(left), " ".repeat(missing - left))))
}

/// `truncate(length=255, killwords=False, end='...', leeway=5)`
pub(super) fn truncate(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("s")?;
    let length = usize::try_from(args.int("length")?.unwrap_or(255)).unwrap_or(0);
    let (killwords, end) = (args.flag_argument("killwords"), args.text_or("end", "..."));
    let leeway = usize::try_from(args.int("leeway")?.unwrap_or(5)).unwrap_or(0);
    args.no_more_arguments()?;
    if string.chars().count() <= length + leeway {
        return Ok(Value::from(string));
    }
    let room = length
        .checked_sub(end.chars().count())
        .ok_or_else(|| fail("truncate: the length is less than that of the end"))?;
    let cut: String = string.chars().take(room).collect();
    if killwords {
        return Ok(Value::from(cut + &end));
    }
    Ok(Value::from(cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words).to_owned() + &end))
}

pub(super) fn wordcount(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("s")?;
    args.no_more_arguments()?;
    let words = string.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    Ok(Value::from(words.count()))
}

/// `comment('plain' | 'c' | 'cblock' | 'xml' | 'erlang', decoration=..., prefix=..., ...)`
pub(super) fn comment(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("text")?;
    let Some(string) = value.as_str() else {
        return Err(fail(format!("comment needs text, this is {}", kind(&value))));
    };
    let style = args.text_or("style", "plain");
    let (beginning, decoration, end) = match style.as_str() {
        "plain" => ("", "# ", ""),
        "erlang" => ("", "% ", ""),
        "c" => ("", "// ", ""),
        "cblock" => ("/*", " * ", " */"),
        "xml" => ("<!--", " - ", "-->"),
        _ => return Err(fail(format!("unknown comment style {style:?}"))),
    };
    let mut named = |name: &str, default: &str| {
        args.named_argument(name).map_or_else(|| default.to_owned(), |value| to_text(&value))
    };
    let newline = named("newline", "\n");
    let (beginning, end) = (named("beginning", beginning), named("end", end));
    let decoration = named("decoration", decoration);
    let prefix = named("prefix", decoration.trim_end());
    let postfix = named("postfix", decoration.trim_end());
    let before = args.named_length("prefix_count")?.unwrap_or(1);
    let after = args.named_length("postfix_count")?.unwrap_or(1);
    args.no_more_arguments()?;
    let lines = string.matches(&newline).count() + before + after;
    let longest = newline.len() + decoration.len().max(prefix.len()).max(postfix.len());
    fits(lines.checked_mul(longest))?;
    let part = |text: &str| if text.is_empty() { String::new() } else { format!("{text}{newline}") };
    let body = format!("{decoration}{}", string.replace(&newline, &format!("{newline}{decoration}")));
    let body = body.replace(&format!("{decoration}{newline}"), &format!("{}{newline}", decoration.trim_end()));
    let block = |text: &str, count: usize| format!("{text}{newline}").repeat(count);
    let postfix = (0..after).map(|_| format!("{newline}{postfix}")).collect::<String>();
    let end = if end.is_empty() { String::new() } else { format!("{newline}{end}") };
    Ok(Value::from(format!("{}{}{body}{postfix}{end}", part(&beginning), block(&prefix, before))))
}
