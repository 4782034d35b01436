//! Messages with their place, as ansible-core 2.19 writes them: the origin, three lines of the file, a mark below.

use std::path::Path;

use crate::report::paint::harmless;
use crate::value::origin::Diagnostic;
use crate::value::{Origin, ProcessEnvironment};

/// How many lines to show before the reported one.
const BEFORE: usize = 2;

/// Characters of a line that are shown, with its number.
const WIDTH: usize = 120;

/// Several lines without a final newline:
///
/// ```text
/// Origin: /srv/site.yml:5:7
///
/// 3   tasks:
/// 4     - ping:
/// 5       becom: true
///         ^ column 7
/// ```
pub(super) fn excerpt(origin: &Origin, around: &ProcessEnvironment) -> String {
    let path = around.absolute(origin.path());
    let head = format!("Origin: {}:{}:{}", path.display(), origin.line, origin.column);
    let exists = !origin.line_text().is_empty() && origin.path() != Path::new("");
    if !exists {
        return head;
    }
    let margin = origin.line.to_string().len();
    let room = WIDTH - margin - 1;
    let numbers = origin.line.saturating_sub(BEFORE).max(1)..=origin.line;
    let mut lines: Vec<String> =
        numbers.map(|number| numbered(origin.source.source_line(number), number, margin, room)).collect();
    if origin.column <= room {
        let blanks = " ".repeat(origin.column.saturating_sub(1));
        lines.push(format!("{} {blanks}^ column {}", " ".repeat(margin), origin.column));
    }
    format!("{head}\n\n{}", lines.join("\n"))
}

fn numbered(text: &str, number: usize, margin: usize, room: usize) -> String {
    let text = text.replace('\t', " ");
    let text = match text.chars().count() > room {
        true => format!("{}...", text.chars().take(room - 3).collect::<String>()),
        false => text,
    };
    let blank = if text.is_empty() { "" } else { " " };
    format!("{number:>margin$}{blank}{}", harmless(&text))
}

/// An error in the form in which `ansible-playbook` shows one that is not a task's, without a final newline; after the last line
/// of an excerpt there is an empty one.
pub fn complaint(complaint: &Diagnostic, around: &ProcessEnvironment) -> String {
    let place = complaint.origin.as_ref().map_or_else(String::new, |origin| format!("\n{}", excerpt(origin, around)));
    let hint = complaint.hint.as_ref().map_or_else(String::new, |hint| format!("\n\n{hint}"));
    let end = if place.is_empty() && hint.is_empty() { "" } else { "\n" };
    format!("{}{place}{hint}{end}", complaint.message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::value::Source;

    #[test]
    fn three_lines_are_shown_with_a_mark_below_the_last() {
        let text = "- hosts: all\n  tasks:\n\n    - ping:\n";
        let origin = Origin { source: Arc::new(Source::new("/srv/site.yml", text)), line: 4, column: 7 };
        let shown = "Origin: /srv/site.yml:4:7\n\n2   tasks:\n3\n4     - ping:\n        ^ column 7";
        assert_eq!(excerpt(&origin, &ProcessEnvironment::default()), shown);
        let reported = Diagnostic::new("wrong", Some(&origin));
        assert_eq!(complaint(&reported, &ProcessEnvironment::default()), format!("wrong\n{shown}\n"));
        assert_eq!(complaint(&Diagnostic::new("wrong", None), &ProcessEnvironment::default()), "wrong");
    }

    #[test]
    fn a_long_line_is_cut_and_what_stands_behind_the_cut_has_no_mark() {
        let text = format!("a: {}", "x".repeat(200));
        let origin = Origin { source: Arc::new(Source::new("/a.yml", text)), line: 1, column: 150 };
        let shown = excerpt(&origin, &ProcessEnvironment::default());
        assert!(shown.ends_with("xxx...") && shown.lines().last().unwrap().len() == 120, "{shown}");
    }
}
