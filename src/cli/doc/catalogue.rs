//! Everything that has documentation, by kind and name. Nothing is listed here: each floor keeps its own list.

use clap::ValueEnum;

use crate::engine::VARIABLES;
use crate::modules::MODULES;
use crate::playbook::include;
use crate::playbook::keywords::{self, Keyword};
use crate::template::catalogue;
use crate::value::doc::{Doc, LanguageItem};
use crate::value::nearest::did_you_mean;

/// What kind of word something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocKind {
    Module,
    Keyword,
    Filter,
    Test,
    Lookup,
    Function,
    Variable,
}

impl DocKind {
    /// As a person writes it: `module`.
    pub(crate) fn kind_name(self) -> &'static str {
        match self {
            DocKind::Module => "module",
            DocKind::Keyword => "keyword",
            DocKind::Filter => "filter",
            DocKind::Test => "test",
            DocKind::Lookup => "lookup",
            DocKind::Function => "function",
            DocKind::Variable => "variable",
        }
    }
}

/// One thing that has documentation.
#[derive(Clone, Copy)]
pub(crate) enum DocEntry {
    Module(&'static Doc),
    Keyword(&'static Keyword),
    Word(DocKind, &'static LanguageItem),
}

impl DocEntry {
    pub(crate) fn kind(&self) -> DocKind {
        match self {
            DocEntry::Module(_) => DocKind::Module,
            DocEntry::Keyword(_) => DocKind::Keyword,
            DocEntry::Word(kind, _) => *kind,
        }
    }

    pub(crate) fn entry_name(&self) -> &'static str {
        match self {
            DocEntry::Module(doc) => doc.name,
            DocEntry::Keyword(keyword) => keyword.name,
            DocEntry::Word(_, word) => word.name,
        }
    }

    /// One sentence or more.
    pub(crate) fn about(&self) -> &'static str {
        match self {
            DocEntry::Module(doc) => doc.summary,
            DocEntry::Keyword(keyword) => keyword.about,
            DocEntry::Word(_, word) => word.about,
        }
    }
}

/// Everything, kind by kind, sorted by name within each.
pub(crate) fn all_entries() -> Vec<DocEntry> {
    let mut modules: Vec<DocEntry> = MODULES.iter().map(|entry| DocEntry::Module(entry.doc)).collect();
    modules.extend(include::DOCS.iter().map(DocEntry::Module));
    let keywords = keywords::all_keywords().map(DocEntry::Keyword);
    let words = [
        (DocKind::Filter, catalogue::filters()),
        (DocKind::Test, catalogue::tests()),
        (DocKind::Lookup, catalogue::lookups()),
        (DocKind::Function, catalogue::functions()),
        (DocKind::Variable, VARIABLES.iter().collect()),
    ];
    let words =
        words.into_iter().flat_map(|(kind, words)| words.into_iter().map(move |word| DocEntry::Word(kind, word)));
    let mut all: Vec<DocEntry> = modules.into_iter().chain(keywords).chain(words).collect();
    all.sort_by_key(|entry| (entry.kind() as u8, entry.entry_name()));
    all
}

/// The entries of a name: several may share one. A long name (`ansible.builtin.copy`) may be given, and
/// `with_items` is the lookup `items`.
pub(super) fn find_entries(name: &str, kind: Option<DocKind>) -> Vec<DocEntry> {
    let short = match name.rsplit_once('.') {
        Some(("ansible.builtin" | "ansible.legacy", short)) => short,
        Some((collection, short)) if all_entries().iter().any(|entry| is_of(entry, collection)) => short,
        _ => name,
    };
    let of_kind = |entry: &DocEntry| kind.is_none_or(|kind| entry.kind() == kind);
    let named = |wanted: &str| {
        all_entries().into_iter().filter(|entry| entry.entry_name() == wanted && of_kind(entry)).collect()
    };
    let found: Vec<DocEntry> = named(short);
    match short.strip_prefix("with_") {
        Some(lookup) if found.is_empty() => find_entries(lookup, Some(DocKind::Lookup)),
        _ => found,
    }
}

fn is_of(entry: &DocEntry, collection: &str) -> bool {
    matches!(entry, DocEntry::Module(doc) if doc.collection == collection)
}

/// The name that was meant, if one is near enough.
pub(super) fn entry_hint(name: &str, kind: Option<DocKind>) -> Option<String> {
    let names = all_entries().into_iter().filter(|entry| kind.is_none_or(|kind| entry.kind() == kind));
    did_you_mean(name, names.map(|entry| entry.entry_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_stand_for_several_things_and_with_items_for_a_lookup() {
        let kinds = |name: &str| find_entries(name, None).iter().map(DocEntry::kind).collect::<Vec<_>>();
        assert_eq!(kinds("template"), [DocKind::Module, DocKind::Lookup]);
        assert_eq!(kinds("version"), [DocKind::Filter, DocKind::Test]);
        assert_eq!(kinds("ansible.builtin.copy"), [DocKind::Module]);
        assert_eq!(kinds("no.such.copy"), []);
        assert_eq!(kinds("with_items"), [DocKind::Lookup]);
        assert_eq!(find_entries("version", Some(DocKind::Test)).len(), 1);
    }

    #[test]
    fn no_kind_has_a_name_twice() {
        let all = all_entries();
        let twice = all
            .windows(2)
            .find(|pair| pair[0].kind() == pair[1].kind() && pair[0].entry_name() == pair[1].entry_name());
        assert!(twice.is_none(), "{:?}", twice.map(|pair| pair[0].entry_name()));
        assert!(all.len() > 350, "{}", all.len());
    }
}
