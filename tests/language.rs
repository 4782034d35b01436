//! `docs/reference/language.md` is what the code says of the language: keywords, statements, filters, tests, lookups, functions and
//! variables. `UPDATE_DOCS=1 cargo test --test language` writes it.

use std::fmt::Write;
use std::path::Path;

use windlass::engine::VARIABLES;
use windlass::modules::MODULES;
use windlass::playbook::include;
use windlass::playbook::keywords::{self, KeywordScope};
use windlass::template::catalogue;
use windlass::value::doc::{Argument, Doc, LanguageItem};

#[test]
fn the_docs_are_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/language.md");
    let right = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &right).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == right,
        "docs/reference/language.md is not what the code says: UPDATE_DOCS=1 cargo test --test language"
    );
}

fn page() -> String {
    let mut out = "\
# The language

Keywords, statements, filters, tests, lookups, functions and variables. `windlass doc NAME` shows the same on the command line,
with examples. See also [Modules](modules.md), [Differences from ansible-core](compatibility.md) and [Write modules, filters and
lookups](../how-to/own-code.md).
"
    .to_owned();
    for place in [
        KeywordScope::Play,
        KeywordScope::Role,
        KeywordScope::Block,
        KeywordScope::Task,
        KeywordScope::Handler,
        KeywordScope::Include,
        KeywordScope::ImportPlaybook,
    ] {
        table(&mut out, &format!("Keywords of {}", place.scope_text()), ["keyword", "takes", "meaning"]);
        for keyword in keywords::all_keywords().filter(|keyword| keyword.is_at(place)) {
            let takes = keyword.shape.shape_text().unwrap_or_else(|| "see `windlass doc`".to_owned());
            let parts = match keyword.parts {
                [] => String::new(),
                parts => format!(" Its parts: {}.", arguments(parts)),
            };
            row(&mut out, &[&code(keyword.name), &takes, &format!("{}{parts}", keyword.about)]);
        }
    }
    table(&mut out, "Statements", ["statement", "arguments", "meaning"]);
    let statements = ["add_host", "group_by", "include_vars", "meta", "set_fact", "set_stats"];
    let modules = MODULES.iter().map(|entry| entry.doc).filter(|doc| statements.contains(&doc.name));
    for doc in include::DOCS.iter().chain(modules) {
        statement(&mut out, doc);
    }
    for (heading, all) in [
        ("Filters", catalogue::filters()),
        ("Tests", catalogue::tests()),
        ("Lookups", catalogue::lookups()),
        ("Functions", catalogue::functions()),
    ] {
        table(&mut out, heading, ["name", "example", "meaning"]);
        all.iter().for_each(|word| named(&mut out, word));
    }
    table(&mut out, "Variables", ["variable", "example", "meaning"]);
    VARIABLES.iter().for_each(|word| named(&mut out, word));
    out
}

fn statement(out: &mut String, doc: &Doc) {
    row(out, &[&code(doc.name), &arguments(doc.arguments), &format!("{}.", doc.summary)]);
}

fn named(out: &mut String, word: &LanguageItem) {
    let gives = if word.gives.is_empty() { String::new() } else { format!(": {}", code(word.gives)) };
    let example = match word.example {
        "" => String::new(),
        example => format!("{}{gives}", code(example)),
    };
    row(out, &[&code(&word.call()), &example, word.about]);
}

fn arguments(all: &[Argument]) -> String {
    let one = |argument: &Argument| match argument.choices {
        [] => code(argument.name),
        choices => format!("{} ({})", code(argument.name), choices.join(", ")),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn table(out: &mut String, heading: &str, columns: [&str; 3]) {
    write!(out, "\n## {heading}\n\n| {} |\n|---|---|---|\n", columns.join(" | ")).expect("a String takes any text");
}

fn row(out: &mut String, cells: &[&str]) {
    let clean = |cell: &&str| cell.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ");
    writeln!(out, "| {} |", cells.iter().map(clean).collect::<Vec<_>>().join(" | ")).expect("a String takes any text");
}

fn code(text: &str) -> String {
    format!("`{}`", text.trim())
}
