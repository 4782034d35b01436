//! Documentation as people read it.

use std::fmt::Write;

use super::catalogue::Entry;
use crate::playbook::keywords::Keyword;
use crate::value::doc::{Argument, Doc, Word};

/// The whole documentation of one thing.
pub(super) fn text(entry: &Entry) -> String {
    match entry {
        Entry::Module(doc) => module(doc),
        Entry::Keyword(word) => keyword(word),
        Entry::Word(kind, word) => self::word(kind.word(), word),
    }
}

/// One line for each entry, kind by kind; one kind alone needs no heading.
pub(super) fn list(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name().len()).max().unwrap_or(0);
    let mut kind = None;
    let one_kind = entries.iter().all(|entry| entry.kind() == entries[0].kind());
    let mut out = String::new();
    for entry in entries {
        if !one_kind && kind != Some(entry.kind()) {
            let gap = if kind.is_some() { "\n" } else { "" };
            let _ = writeln!(out, "{gap}{}s:", entry.kind().word());
            kind = Some(entry.kind());
        }
        let _ = writeln!(out, "{:width$}  {}", entry.name(), first_sentence(entry.about()));
    }
    out
}

/// Without its full stop.
pub(super) fn first_sentence(about: &str) -> &str {
    about.split_once(". ").map_or(about, |(first, _)| first).trim_end_matches('.')
}

fn module(doc: &Doc) -> String {
    let mut out = format!("{}.{}: {}\n", doc.collection, doc.name, doc.summary);
    if let Some(name) = doc.free_form {
        let _ = writeln!(out, "\nShort form: \"{}: TEXT\" gives TEXT to {name}.", doc.name);
    }
    arguments(&mut out, "Arguments", doc.arguments);
    if !doc.returns.is_empty() {
        out.push_str("\nReturns:\n");
        for value in doc.returns {
            let _ = writeln!(out, "  {}: {}", value.name, value.summary);
        }
    }
    example(&mut out, doc.example);
    out
}

fn keyword(keyword: &Keyword) -> String {
    let mut out = format!("{} (keyword): {}\n", keyword.name, keyword.about);
    if let Some(takes) = keyword.shape.words() {
        let _ = writeln!(out, "\nTakes: {takes}");
    }
    let gap = if keyword.shape.words().is_some() { "" } else { "\n" };
    let places: Vec<&str> = keyword.places().map(|place| place.words()).collect();
    let _ = writeln!(out, "{gap}Stands in: {}", places.join(", "));
    if keyword.field.is_some() {
        out.push_str("Tasks inherit it; the nearest one counts.\n");
    }
    arguments(&mut out, "Below it", keyword.parts);
    example(&mut out, keyword.example);
    out
}

fn word(kind: &str, word: &Word) -> String {
    let mut out = format!("{} ({kind}): {}\n", word.call(), word.about);
    example(&mut out, word.example);
    if !word.gives.is_empty() {
        let _ = writeln!(out, "\n  gives {}", word.gives);
    }
    out
}

fn example(out: &mut String, example: &str) {
    out.push_str("\nExample:\n\n");
    for line in example.trim_matches('\n').lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
}

fn arguments(out: &mut String, heading: &str, arguments: &[Argument]) {
    if arguments.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{heading}:");
    for argument in arguments {
        let _ = writeln!(out, "  {} ({}){}", argument.name, argument.kind.words(), notes(argument));
        let _ = writeln!(out, "      {}", argument.summary);
    }
}

fn notes(argument: &Argument) -> String {
    let mut notes = String::new();
    if argument.required {
        notes.push_str(", required");
    }
    if let Some(default) = argument.default {
        let _ = write!(notes, ", default {default}");
    }
    if !argument.choices.is_empty() {
        let _ = write!(notes, ", one of {}", argument.choices.join(" | "));
    }
    if !argument.aliases.is_empty() {
        let _ = write!(notes, ", also {}", argument.aliases.join(", "));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::all;
    use super::*;

    #[test]
    fn everything_is_listed_and_every_argument_is_explained() {
        let list = list(&all());
        for entry in all() {
            assert!(list.contains(first_sentence(entry.about())), "{}", entry.name());
            let text = text(&entry);
            assert!(text.contains("Example:\n\n  ") && text.contains(entry.about()), "{text}");
            if let Entry::Module(doc) = entry {
                for argument in doc.arguments {
                    assert!(text.contains(argument.summary), "{}: {}", doc.name, argument.name);
                }
            }
        }
    }
}
