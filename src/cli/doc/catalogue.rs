//! Everything that has documentation, by kind and name. Nothing is listed here: each floor keeps its own list.

use clap::ValueEnum;

use crate::engine::VARIABLES;
use crate::modules::MODULES;
use crate::playbook::include;
use crate::playbook::keywords::{self, Keyword};
use crate::template::catalogue;
use crate::value::doc::{Doc, Word};
use crate::value::nearest::nearest;

/// What kind of word something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Module,
    Keyword,
    Filter,
    Test,
    Lookup,
    Function,
    Variable,
}

impl Kind {
    /// As a person writes it: `module`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Module => "module",
            Kind::Keyword => "keyword",
            Kind::Filter => "filter",
            Kind::Test => "test",
            Kind::Lookup => "lookup",
            Kind::Function => "function",
            Kind::Variable => "variable",
        }
    }
}

/// One thing that has documentation.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Module(&'static Doc),
    Keyword(&'static Keyword),
    Word(Kind, &'static Word),
}

impl Entry {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Entry::Module(_) => Kind::Module,
            Entry::Keyword(_) => Kind::Keyword,
            Entry::Word(kind, _) => *kind,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Entry::Module(doc) => doc.name,
            Entry::Keyword(keyword) => keyword.name,
            Entry::Word(_, word) => word.name,
        }
    }

    /// One sentence or more.
    pub(crate) fn about(&self) -> &'static str {
        match self {
            Entry::Module(doc) => doc.summary,
            Entry::Keyword(keyword) => keyword.about,
            Entry::Word(_, word) => word.about,
        }
    }
}

/// Everything, kind by kind, sorted by name within each.
pub(crate) fn all() -> Vec<Entry> {
    let mut modules: Vec<Entry> = MODULES.iter().map(|entry| Entry::Module(entry.doc)).collect();
    modules.extend(include::DOCS.iter().map(Entry::Module));
    let keywords = keywords::all().map(Entry::Keyword);
    let words = [
        (Kind::Filter, catalogue::filters()),
        (Kind::Test, catalogue::tests()),
        (Kind::Lookup, catalogue::lookups()),
        (Kind::Function, catalogue::functions()),
        (Kind::Variable, VARIABLES.iter().collect()),
    ];
    let words = words.into_iter().flat_map(|(kind, words)| words.into_iter().map(move |word| Entry::Word(kind, word)));
    let mut all: Vec<Entry> = modules.into_iter().chain(keywords).chain(words).collect();
    all.sort_by_key(|entry| (entry.kind() as u8, entry.name()));
    all
}

/// What a name stands for: several things may share one. A long name (`ansible.builtin.copy`) may be given, and
/// `with_items` is the lookup `items`.
pub(super) fn find(name: &str, kind: Option<Kind>) -> Vec<Entry> {
    let short = match name.rsplit_once('.') {
        Some(("ansible.builtin" | "ansible.legacy", short)) => short,
        Some((collection, short)) if all().iter().any(|entry| is_of(entry, collection)) => short,
        _ => name,
    };
    let of_kind = |entry: &Entry| kind.is_none_or(|kind| entry.kind() == kind);
    let named = |wanted: &str| all().into_iter().filter(|entry| entry.name() == wanted && of_kind(entry)).collect();
    let found: Vec<Entry> = named(short);
    match short.strip_prefix("with_") {
        Some(lookup) if found.is_empty() => find(lookup, Some(Kind::Lookup)),
        _ => found,
    }
}

fn is_of(entry: &Entry, collection: &str) -> bool {
    matches!(entry, Entry::Module(doc) if doc.collection == collection)
}

/// The name that was meant, if one is near enough.
pub(super) fn meant(name: &str, kind: Option<Kind>) -> Option<&'static str> {
    let names = all().into_iter().filter(|entry| kind.is_none_or(|kind| entry.kind() == kind));
    nearest(name, names.map(|entry| entry.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_stand_for_several_things_and_with_items_for_a_lookup() {
        let kinds = |name: &str| find(name, None).iter().map(Entry::kind).collect::<Vec<_>>();
        assert_eq!(kinds("template"), [Kind::Module, Kind::Lookup]);
        assert_eq!(kinds("version"), [Kind::Filter, Kind::Test]);
        assert_eq!(kinds("ansible.builtin.copy"), [Kind::Module]);
        assert_eq!(kinds("no.such.copy"), []);
        assert_eq!(kinds("with_items"), [Kind::Lookup]);
        assert_eq!(find("version", Some(Kind::Test)).len(), 1);
    }

    #[test]
    fn no_kind_has_a_name_twice() {
        let all = all();
        let twice = all.windows(2).find(|pair| pair[0].kind() == pair[1].kind() && pair[0].name() == pair[1].name());
        assert!(twice.is_none(), "{:?}", twice.map(|pair| pair[0].name()));
        assert!(all.len() > 350, "{}", all.len());
    }
}
