//! The text of a configuration file: sections, keys and values, each with its place. Reads what Python's `configparser`
//! reads as Ansible uses it: `key = value` or `key: value`, `#` and `;` comments, values that continue in indented lines.

use std::collections::HashSet;
use std::sync::Arc;

use crate::value::origin::{Diagnostic, Origin, Source};

/// One `key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IniEntry {
    pub section: String,
    /// In small letters: keys have no case.
    pub key: String,
    pub value: String,
    pub key_origin: Origin,
    pub value_origin: Origin,
}

/// What a file says, and the places of its sections.
#[derive(Debug, Default)]
pub(super) struct IniFileContent {
    pub entries: Vec<IniEntry>,
    pub sections: Vec<(String, Origin)>,
}

/// Reads a file's text; all that is wrong with it at once.
pub(super) fn parse_ini(source: &Arc<Source>) -> Result<IniFileContent, Vec<Diagnostic>> {
    let mut file = IniFileContent::default();
    let mut complaints = Vec::new();
    let (mut known, mut known_sections) = (HashSet::new(), HashSet::new());
    // Whether an indented line continues the entry before it.
    let mut open = false;
    for (index, line) in source.text.lines().enumerate() {
        let text = without_comment(line);
        if text.trim().is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let at =
            |byte: usize| Origin { source: source.clone(), line: index + 1, column: line[..byte].chars().count() + 1 };
        if indent > 0 && open {
            if let Some(entry) = file.entries.last_mut() {
                if !entry.value.is_empty() {
                    entry.value.push('\n');
                }
                entry.value.push_str(text.trim());
            }
            continue;
        }
        open = false;
        if text.trim_start().starts_with('[') {
            match section(text) {
                Some(name) if known_sections.insert(name) => {
                    file.sections.push((name.to_owned(), at(indent)));
                }
                Some(name) => {
                    complaints.push(Diagnostic::new(format!("duplicate section [{name}]"), Some(&at(indent))));
                }
                None => complaints.push(Diagnostic::new("this section has no closing ]", Some(&at(indent)))),
            }
            continue;
        }
        match entry(&file, text, indent, &at) {
            Ok(entry) if !known.insert((entry.section.clone(), entry.key.clone())) => {
                let message = format!("duplicate key {:?} in [{}]", entry.key, entry.section);
                complaints.push(Diagnostic::new(message, Some(&at(indent))));
            }
            Ok(entry) => file.entries.push(entry),
            Err(complaint) => complaints.push(complaint),
        }
        open = true;
    }
    if complaints.is_empty() { Ok(file) } else { Err(complaints) }
}

/// The line up to a comment: `#` and `;` begin one at the line's start, `;` also after a blank.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    let begins = |(at, _): &(usize, &str)| line[..*at].ends_with(char::is_whitespace);
    line.match_indices(';').find(begins).map_or(line, |(at, _)| &line[..at])
}

fn section(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('[')?;
    inner.find(']').map(|end| &inner[..end]).filter(|name| !name.is_empty())
}

fn entry(
    file: &IniFileContent,
    text: &str,
    indent: usize,
    at: &dyn Fn(usize) -> Origin,
) -> Result<IniEntry, Diagnostic> {
    let Some((section, _)) = file.sections.last() else {
        let complaint = Diagnostic::new("this line is before the first section", Some(&at(indent)));
        return Err(complaint.hint("start the file with [defaults]"));
    };
    let split = text.find(['=', ':']).filter(|split| !text[..*split].trim().is_empty());
    let Some(split) = split else {
        let complaint = Diagnostic::new(format!("{:?} has no value", text.trim()), Some(&at(indent)));
        return Err(complaint.hint("write key = value"));
    };
    let key = text[..split].trim().to_ascii_lowercase();
    let rest = &text[split + 1..];
    let value_at = split + 1 + (rest.len() - rest.trim_start().len());
    Ok(IniEntry {
        section: section.clone(),
        key,
        value: rest.trim().to_owned(),
        key_origin: at(indent),
        value_origin: at(value_at.min(text.trim_end().len().max(split))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<IniFileContent, Vec<Diagnostic>> {
        parse_ini(&Arc::new(Source::new("ansible.cfg", text)))
    }

    #[test]
    fn keys_values_comments_and_values_of_several_lines_are_read() {
        let text = "# a comment\n[defaults]\nForks = 5 ; many\nroles_path: a:b\ninventory = one,\n    two\n; no\n[diff]\nalways=true\n";
        let file = read(text).unwrap();
        let said: Vec<_> = file
            .entries
            .iter()
            .map(|entry| (entry.section.as_str(), entry.key.as_str(), entry.value.as_str()))
            .collect();
        let expected = [
            ("defaults", "forks", "5"),
            ("defaults", "roles_path", "a:b"),
            ("defaults", "inventory", "one,\ntwo"),
            ("diff", "always", "true"),
        ];
        assert_eq!(said, expected);
        let forks = &file.entries[0];
        assert_eq!((forks.key_origin.line, forks.key_origin.column, forks.value_origin.column), (3, 1, 9));
    }

    #[test]
    fn everything_wrong_is_reported_at_once_with_its_place() {
        let complaints = read("forks = 5\n[defaults]\nfoo\nforks=1\nforks=2\n[open\n").unwrap_err();
        let reported: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        let expected = [
            "ansible.cfg:1:1: this line is before the first section",
            "ansible.cfg:3:1: \"foo\" has no value",
            "ansible.cfg:5:1: duplicate key \"forks\" in [defaults]",
            "ansible.cfg:6:1: this section has no closing ]",
        ];
        assert_eq!(reported, expected);
    }

    /// With time that grows with the square of the lines, this takes many minutes.
    #[test]
    fn a_huge_file_is_read_as_any_other() {
        let keys: String = (0..100_000).map(|number| format!("key{number} = 1\n")).collect();
        let file = read(&format!("[defaults]\n{keys}inventory =\n{}", "    a.example\n".repeat(200_000))).unwrap();
        assert_eq!(file.entries.len(), 100_001);
        assert_eq!(file.entries[100_000].value.lines().count(), 200_000);
    }
}
