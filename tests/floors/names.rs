//! Names that grep can tell apart: few public items share one bare name.

use std::collections::BTreeMap;

use regex::Regex;

use super::{code, is_tests, sources};

/// How many public functions or types may share a name.
const MOST: usize = 3;

/// Names that Rust or this project gives many things, with the reason.
const SHARED: [(&str, &str); 4] = [
    ("new", "Rust's name of a constructor"),
    ("get", "the standard library's name of a look-up by key"),
    ("is_empty", "the standard library's name"),
    ("Error", "each folder has one"),
];

/// How many public functions and types have each name in a source. Functions of trait implementations are not public items.
fn count(text: &str, counts: &mut BTreeMap<String, usize>) {
    let item = Regex::new(
        r"(?m)^\s*pub(?:\([^)]*\))?\s+(?:(?:const\s+|async\s+|unsafe\s+)*fn|struct|enum|trait|type|union)\s+(\w+)",
    )
    .unwrap();
    for found in item.captures_iter(text) {
        *counts.entry(found[1].to_owned()).or_default() += 1;
    }
}

#[test]
fn few_public_items_share_a_name() {
    let mut counts = BTreeMap::new();
    for (path, text) in sources() {
        if !is_tests(&path) {
            count(&code(&text), &mut counts);
        }
    }
    assert!(counts.len() > 1000, "only {} names were found", counts.len());
    let shared: Vec<(&String, &usize)> =
        counts.iter().filter(|(name, n)| **n > MOST && !SHARED.iter().any(|(it, _)| it == name)).collect();
    assert!(
        shared.is_empty(),
        "more than {MOST} public items have these names; say what each reads, writes or is: {shared:?}"
    );
    for (name, _) in SHARED {
        assert!(counts.get(name).is_some_and(|n| *n > MOST), "{name} needs no exception any more");
    }
}

#[test]
fn every_public_item_is_counted() {
    let mut counts = BTreeMap::new();
    let text = "pub fn read() {}\n    pub(super) async fn read() {}\npub(in crate::modules) const fn read() {}\nfn read() {}\n\
        pub struct Change;\npub(crate) enum Change {}\n";
    count(text, &mut counts);
    assert_eq!(counts, [("Change".to_owned(), 2), ("read".to_owned(), 3)].into());
}
