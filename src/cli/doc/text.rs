//! Documentation as people read it.

use std::fmt::Write;

use super::catalogue::DocEntry;
use crate::playbook::keywords::Keyword;
use crate::value::doc::{Argument, Doc, LanguageItem};

/// The whole documentation of one thing.
pub(super) fn doc_text(entry: &DocEntry) -> String {
    match entry {
        DocEntry::Module(doc) => module(doc),
        DocEntry::Keyword(word) => keyword(word),
        DocEntry::Word(kind, word) => self::word(kind.kind_name(), word),
    }
}

/// One line for each entry, kind by kind; one kind alone needs no heading.
pub(super) fn entries_text(entries: &[DocEntry]) -> String {
    let width = entries.iter().map(|entry| entry.entry_name().len()).max().unwrap_or(0);
    let mut kind = None;
    let one_kind = entries.iter().all(|entry| entry.kind() == entries[0].kind());
    let mut out = String::new();
    for entry in entries {
        if !one_kind && kind != Some(entry.kind()) {
            let gap = if kind.is_some() { "\n" } else { "" };
            writeln!(out, "{gap}{}s:", entry.kind().kind_name()).expect("a String takes any text");
            kind = Some(entry.kind());
        }
        writeln!(out, "{:width$}  {}", entry.entry_name(), first_sentence(entry.about()))
            .expect("a String takes any text");
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
        writeln!(out, "\nShort form: \"{}: TEXT\" gives TEXT to {name}.", doc.name).expect("a String takes any text");
    }
    arguments(&mut out, "Arguments", doc.arguments);
    if !doc.returns.is_empty() {
        out.push_str("\nReturns:\n");
        for value in doc.returns {
            writeln!(out, "  {}: {}", value.name, value.summary).expect("a String takes any text");
        }
    }
    example(&mut out, doc.example);
    out
}

fn keyword(keyword: &Keyword) -> String {
    let mut out = format!("{} (keyword): {}\n", keyword.name, keyword.about);
    if let Some(takes) = keyword.shape.shape_text() {
        writeln!(out, "\nTakes: {takes}").expect("a String takes any text");
    }
    let gap = if keyword.shape.shape_text().is_some() { "" } else { "\n" };
    let places: Vec<&str> = keyword.places().map(|place| place.scope_text()).collect();
    writeln!(out, "{gap}Used in: {}", places.join(", ")).expect("a String takes any text");
    if keyword.field.is_some() {
        out.push_str("Tasks inherit it; the innermost one wins.\n");
    }
    arguments(&mut out, "Below it", keyword.parts);
    example(&mut out, keyword.example);
    out
}

fn word(kind: &str, word: &LanguageItem) -> String {
    let mut out = format!("{} ({kind}): {}\n", word.call(), word.about);
    example(&mut out, word.example);
    if !word.gives.is_empty() {
        writeln!(out, "\n  gives {}", word.gives).expect("a String takes any text");
    }
    out
}

fn example(out: &mut String, example: &str) {
    out.push_str("\nExample:\n\n");
    for line in example.trim_matches('\n').lines() {
        writeln!(out, "{}", format!("  {line}").trim_end()).expect("a String takes any text");
    }
}

fn arguments(out: &mut String, heading: &str, arguments: &[Argument]) {
    if arguments.is_empty() {
        return;
    }
    writeln!(out, "\n{heading}:").expect("a String takes any text");
    for argument in arguments {
        writeln!(out, "  {} ({}){}", argument.name, argument.kind.kind_text(), notes(argument))
            .expect("a String takes any text");
        writeln!(out, "      {}", argument.summary).expect("a String takes any text");
    }
}

fn notes(argument: &Argument) -> String {
    let mut notes = String::new();
    if argument.required {
        notes.push_str(", required");
    }
    if let Some(default) = argument.default {
        write!(notes, ", default {default}").expect("a String takes any text");
    }
    if !argument.choices.is_empty() {
        write!(notes, ", one of {}", argument.choices.join(" | ")).expect("a String takes any text");
    }
    if !argument.aliases.is_empty() {
        write!(notes, ", also {}", argument.aliases.join(", ")).expect("a String takes any text");
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::all_entries;
    use super::*;

    #[test]
    fn everything_is_listed_and_every_argument_is_explained() {
        let list = entries_text(&all_entries());
        for entry in all_entries() {
            assert!(list.contains(first_sentence(entry.about())), "{}", entry.entry_name());
            let text = doc_text(&entry);
            assert!(text.contains("Example:\n\n  ") && text.contains(entry.about()), "{text}");
            if let DocEntry::Module(doc) = entry {
                for argument in doc.arguments {
                    assert!(text.contains(argument.summary), "{}: {}", doc.name, argument.name);
                }
            }
        }
    }
}
