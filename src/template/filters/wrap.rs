//! Lines broken between words, as Python's `textwrap` does.

use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, fits};
use super::super::python;
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[(
    LanguageItem::new("wordwrap", "A text with its long lines broken between words, and after hyphens.")
        .takes("width=79, break_long_words=true, wrapstring=newline, break_on_hyphens=true")
        .gives("'a long story' | wordwrap(6, wrapstring='/')", "a long/story"),
    wordwrap,
)];

/// `wordwrap(width=79, break_long_words=True, wrapstring='\n', break_on_hyphens=True)`
pub(super) fn wordwrap(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("s")?;
    let width = args.int("width")?.unwrap_or(79);
    let long = args.opt("break_long_words").is_none_or(|value| value.is_true());
    let newline =
        args.opt("wrapstring").filter(|value| !value.is_none()).map_or("\n".into(), |value| value.to_string());
    let hyphens = args.opt("break_on_hyphens").is_none_or(|value| value.is_true());
    args.no_more_arguments()?;
    let width = usize::try_from(width).ok().filter(|width| *width > 0);
    let width = width.ok_or_else(|| fail("wordwrap needs a width above zero"))?;
    let lines = python::python_lines(&string, false).into_iter();
    let wrapped: Vec<String> =
        lines.flat_map(|line| one_at_least(wrap(&line.chars().collect::<Vec<_>>(), width, long, hyphens))).collect();
    fits(wrapped.len().checked_mul(newline.len()))?;
    Ok(Value::from(wrapped.join(&newline)))
}

/// The lines of a line; an empty one if there are none.
fn one_at_least(mut lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn is_blank(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

/// The lines of one line; blanks at the end of each, and at the start of every line except the first, are omitted.
fn wrap(line: &[char], width: usize, long: bool, hyphens: bool) -> Vec<String> {
    let (mut lines, mut current): (Vec<String>, Vec<&[char]>) = (Vec::new(), Vec::new());
    let mut chunks = chunks(line, hyphens);
    chunks.reverse();
    let blank = |chunk: &[char]| chunk.iter().all(|c| c.is_whitespace());
    while let Some(first) = chunks.last() {
        if blank(first) && !lines.is_empty() {
            chunks.pop();
            if chunks.is_empty() {
                break;
            }
        }
        let mut used = 0;
        while let Some(chunk) = chunks.pop_if(|chunk| used + chunk.len() <= width) {
            used += chunk.len();
            current.push(chunk);
        }
        if let Some(chunk) = chunks.pop_if(|chunk| chunk.len() > width) {
            let room = width - used;
            let mut end = if long {
                room
            } else if current.is_empty() {
                chunk.len()
            } else {
                0
            };
            if long && hyphens && chunk.len() > room {
                // After a hyphen, if there is one with something before it.
                let hyphen = chunk[..room].iter().rposition(|c| *c == '-');
                end = hyphen.filter(|at| chunk[..*at].iter().any(|c| *c != '-')).map_or(end, |at| at + 1);
            }
            let (head, rest) = chunk.split_at(end);
            if !head.is_empty() {
                current.push(head);
            }
            if !rest.is_empty() {
                chunks.push(rest);
            }
        }
        current.pop_if(|chunk| blank(chunk));
        if !current.is_empty() {
            lines.push(current.drain(..).flatten().collect());
        }
    }
    lines
}

/// A line in pieces that stay together: blanks, words, parts of words up to a hyphen, and dashes of several hyphens.
fn chunks(line: &[char], hyphens: bool) -> Vec<&[char]> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for at in 1..=line.len() {
        if at == line.len()
            || is_blank(line[at]) != is_blank(line[at - 1])
            || hyphens && (breaks_after_hyphen(line, start, at) || at_dash(line, start, at))
        {
            chunks.push(&line[start..at]);
            start = at;
        }
    }
    chunks
}

fn letter(line: &[char], at: usize) -> bool {
    line.get(at).is_some_and(|c| c.is_alphanumeric() && !c.is_numeric())
}

/// Whether a word may be broken before `at`: after a hyphen between letters.
fn breaks_after_hyphen(line: &[char], start: usize, at: usize) -> bool {
    let before = at >= start + 2 && at >= 3 && line[at - 1] == '-' && letter(line, at - 2);
    let before = before && (letter(line, at - 3) || at >= 4 && line[at - 3] == '-' && letter(line, at - 4));
    before && letter(line, at) && (letter(line, at + 1) || line.get(at + 1) == Some(&'-') && letter(line, at + 2))
}

/// Whether a dash of several hyphens, between words, begins or ends at `at`.
fn at_dash(line: &[char], start: usize, at: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let dash = |from: usize| line[from..].iter().take_while(|c| **c == '-').count();
    let is_dash = |from: usize| {
        let length = dash(from);
        let follows = from > 0 && (word(line[from - 1]) || "!\"'&.,?".contains(line[from - 1]));
        length >= 2 && follows && line.get(from + length).is_some_and(|c| word(*c))
    };
    let ends = line[start] == '-' && is_dash(start) && start + dash(start) == at;
    ends || line[at] == '-' && line[at - 1] != '-' && is_dash(at)
}
