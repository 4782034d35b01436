//! What `lineinfile` makes of a text. Knows no hosts.

use fancy_regex::Regex;

use super::super::Error;
use super::super::file_edit::{bare, split_lines};
use super::super::python_regex;

/// Which line is meant.
pub(super) enum Search {
    Regex(Regex),
    /// A line that has this text in it.
    Text(String),
    /// The line itself.
    Line,
}

/// Where a new line goes.
pub(super) enum InsertPosition {
    Beginning,
    End,
    After(Regex),
    Before(Regex),
}

/// The text after the edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub text: String,
    /// Ansible's words for it; empty if nothing changed.
    pub message: String,
    pub removed: usize,
}

/// Removes every line that is meant.
pub(super) fn remove_line(text: &str, search: &Search, line: &str) -> Result<Edited, Error> {
    let mut kept = String::new();
    let mut removed = 0;
    for current in split_lines(text) {
        let is_meant = match search {
            Search::Line => bare(&current) == line,
            search => matches(search, &current)?,
        };
        if is_meant {
            removed += 1;
        } else {
            kept.push_str(&current);
        }
    }
    let message = if removed > 0 { format!("{removed} line(s) removed") } else { String::new() };
    Ok(Edited { text: kept, message, removed })
}

/// Inserts the line: in place of the matching one, else at its position.
pub(super) fn put_line(
    text: &str,
    search: &Search,
    line: &str,
    place: &InsertPosition,
    first_match: bool,
    backrefs: bool,
) -> Result<Edited, Error> {
    let mut lines = split_lines(text);
    if let Some(at) = found(&lines, search, first_match)? {
        let new = match (backrefs, search) {
            (true, Search::Regex(regex)) => filled_in(regex, &lines[at], line)?,
            _ => line.to_owned(),
        };
        return Ok(replace(lines, at, new));
    }
    // The line itself, wherever it is, is as good as at its place.
    let (equal, matched) = scan(&lines, line, place, first_match)?;
    if let Some(at) = equal {
        return Ok(replace(lines, at, line.to_owned()));
    }
    if backrefs {
        return Ok(unchanged(lines));
    }
    let at = match place {
        InsertPosition::Beginning => Some(0),
        InsertPosition::End => None,
        InsertPosition::After(_) => matched.map(|at| at + 1),
        InsertPosition::Before(_) => matched,
    };
    let Some(at) = at else { return Ok(append(lines, line)) };
    if matches!(place, InsertPosition::After(_)) && lines.get(at).is_some_and(|next| bare(next) == line) {
        return Ok(unchanged(lines));
    }
    if at == lines.len() {
        return Ok(append(lines, line));
    }
    lines.insert(at, format!("{line}\n"));
    Ok(Edited { text: lines.concat(), message: "line added".to_owned(), removed: 0 })
}

/// Where the line already is, and where the place's expression matches. With `first_match` nothing below the first
/// match of the expression is looked at.
fn scan(
    lines: &[String],
    line: &str,
    place: &InsertPosition,
    first_match: bool,
) -> Result<(Option<usize>, Option<usize>), Error> {
    let (mut equal, mut matched) = (None, None);
    for (at, current) in lines.iter().enumerate() {
        if bare(current) == line {
            equal = Some(at);
        } else if let InsertPosition::After(regex) | InsertPosition::Before(regex) = place
            && python_regex::is_match_in_line(regex, current)?
        {
            matched = Some(at);
            if first_match {
                break;
            }
        }
    }
    Ok((equal, matched))
}

/// The line that is meant: the last one unless the first is asked for.
fn found(lines: &[String], search: &Search, first_match: bool) -> Result<Option<usize>, Error> {
    if matches!(search, Search::Line) {
        return Ok(None);
    }
    let mut found = None;
    for (at, line) in lines.iter().enumerate() {
        if matches(search, line)? {
            found = Some(at);
            if first_match {
                break;
            }
        }
    }
    Ok(found)
}

fn matches(search: &Search, line: &str) -> Result<bool, Error> {
    match search {
        Search::Regex(regex) => python_regex::is_match_in_line(regex, line),
        Search::Text(text) => Ok(line.contains(text.as_str())),
        Search::Line => Ok(false),
    }
}

fn filled_in(regex: &Regex, current: &str, line: &str) -> Result<String, Error> {
    let without = current.strip_suffix('\n').unwrap_or(current);
    let captures = match python_regex::captures(regex, without)? {
        Some(captures) => Some(captures),
        None => python_regex::captures(regex, current)?,
    };
    match captures {
        Some(captures) => python_regex::expand_captures(line, &captures),
        None => Ok(line.to_owned()),
    }
}

fn replace(mut lines: Vec<String>, at: usize, mut new: String) -> Edited {
    if !new.ends_with('\n') {
        new.push('\n');
    }
    if lines[at] == new {
        return unchanged(lines);
    }
    lines[at] = new;
    Edited { text: lines.concat(), message: "line replaced".to_owned(), removed: 0 }
}

fn append(mut lines: Vec<String>, line: &str) -> Edited {
    if let Some(last) = lines.last_mut()
        && !last.ends_with(['\n', '\r'])
    {
        last.push('\n');
    }
    lines.push(format!("{line}\n"));
    Edited { text: lines.concat(), message: "line added".to_owned(), removed: 0 }
}

fn unchanged(lines: Vec<String>) -> Edited {
    Edited { text: lines.concat(), message: String::new(), removed: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: &str) -> Regex {
        python_regex::compile(pattern, "regexp").unwrap()
    }

    fn present(text: &str, search: &Search, line: &str, place: &InsertPosition) -> String {
        let edited = put_line(text, search, line, place, false, false).unwrap();
        let again = put_line(&edited.text, search, line, place, false, false).unwrap();
        assert_eq!((again.text, again.message.as_str()), (edited.text.clone(), ""), "a second edit changes it");
        edited.text
    }

    #[test]
    fn the_last_match_is_replaced_and_the_first_if_asked() {
        let search = Search::Regex(regex("^a="));
        assert_eq!(present("a=1\na=2\nb\n", &search, "a=3", &InsertPosition::End), "a=1\na=3\nb\n");
        let first = put_line("a=1\na=2\nb\n", &search, "a=3", &InsertPosition::End, true, false).unwrap();
        assert_eq!((first.text.as_str(), first.message.as_str()), ("a=3\na=2\nb\n", "line replaced"));
    }

    #[test]
    fn without_a_match_the_line_goes_to_its_place() {
        let nothing = || Search::Regex(regex("^zzz"));
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::End), "a\nb\nx\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::Beginning), "x\na\nb\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::After(regex("a"))), "a\nx\nb\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::Before(regex("b"))), "a\nx\nb\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::Before(regex("a"))), "x\na\nb\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::After(regex("nowhere"))), "a\nb\nx\n");
        assert_eq!(present("a\nb\n", &nothing(), "x", &InsertPosition::After(regex("b"))), "a\nb\nx\n");
    }

    #[test]
    fn a_last_line_without_newline_gets_one() {
        assert_eq!(present("a", &Search::Line, "x", &InsertPosition::End), "a\nx\n");
        assert_eq!(present("a", &Search::Line, "a", &InsertPosition::End), "a\n");
        assert_eq!(present("", &Search::Line, "x", &InsertPosition::End), "x\n");
        assert_eq!(present("a", &Search::Line, "x", &InsertPosition::After(regex("a"))), "a\nx\n");
    }

    #[test]
    fn a_line_that_is_there_stays_where_it_is() {
        let edited = put_line("x\na\n", &Search::Line, "x", &InsertPosition::End, false, false).unwrap();
        assert_eq!(edited, Edited { text: "x\na\n".into(), message: String::new(), removed: 0 });
        let edited =
            put_line("x\na\n", &Search::Regex(regex("^y")), "x", &InsertPosition::After(regex("a")), false, false)
                .unwrap();
        assert_eq!(edited.message, "");
    }

    #[test]
    fn back_references_are_filled_in_and_nothing_is_added() {
        let search = Search::Regex(regex(r"^(port)=\d+$"));
        let edited = put_line("port=1\n", &search, r"\1=2", &InsertPosition::End, false, true).unwrap();
        assert_eq!(edited.text, "port=2\n");
        let edited = put_line("host=1\n", &search, r"\1=2", &InsertPosition::End, false, true).unwrap();
        assert_eq!((edited.text.as_str(), edited.message.as_str()), ("host=1\n", ""));
    }

    #[test]
    fn a_text_is_searched_for_as_it_is() {
        let search = Search::Text("a.b(".into());
        assert_eq!(present("xa.b(c\naxb(\n", &search, "a.b(d", &InsertPosition::End), "a.b(d\naxb(\n");
    }

    #[test]
    fn all_lines_that_are_meant_are_removed() {
        let edited = remove_line("a1\nb\na2\n", &Search::Regex(regex("^a")), "").unwrap();
        assert_eq!(edited, Edited { text: "b\n".into(), message: "2 line(s) removed".into(), removed: 2 });
        assert_eq!(remove_line("a\r\nb\n", &Search::Line, "a").unwrap().text, "b\n");
        assert_eq!(remove_line("b\n", &Search::Text("x".into()), "").unwrap().removed, 0);
    }

    #[test]
    fn a_dollar_matches_before_the_newline() {
        assert_eq!(present("key =\n", &Search::Regex(regex("^key =")), "key = 1", &InsertPosition::End), "key = 1\n");
        assert_eq!(remove_line("key =\nkey = 1\n", &Search::Regex(regex("^key =$")), "").unwrap().text, "key = 1\n");
    }

    #[test]
    fn with_firstmatch_what_is_below_the_first_match_does_not_count() {
        let after = InsertPosition::After(regex("^#"));
        let edited = put_line("#\na\nx\n#\n", &Search::Line, "x", &after, true, false).unwrap();
        assert_eq!(edited.text, "#\nx\na\nx\n#\n");
        let edited = put_line("#\nx\n#\n", &Search::Line, "x", &after, true, false).unwrap();
        assert_eq!(edited.message, "");
    }
}
