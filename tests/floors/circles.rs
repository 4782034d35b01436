//! Circles: files of a folder that use each other, directly or through others.
//!
//! The nodes of a folder are its files and its sub-folders, except its `mod.rs`, which is the folder itself: what is defined there
//! is known to all of them. What `mod.rs` passes on belongs to the file that it is from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{code, is_tests, sources};

/// More than these, and none of them can be read without the others.
const LARGEST: usize = 4;

/// The path of a module: `["engine", "task"]`.
type Module = Vec<String>;

struct Source {
    text: String,
    /// What `use` makes known in it, by name.
    imports: BTreeMap<String, Module>,
}

type Sources = BTreeMap<Module, Source>;

fn modules() -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Sources::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_tests(path) && !path.ends_with("src/main.rs")) {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        let mut module: Module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
        found.insert(module, Source { text: code(&text), imports: BTreeMap::new() });
    }
    let names: BTreeSet<Module> = found.keys().cloned().collect();
    for (module, source) in &mut found {
        for (at, _) in source.text.match_indices("use ") {
            let mut paths = Vec::new();
            parse(&source.text[at + 4..], &[], &mut paths);
            let paths =
                paths.into_iter().filter_map(|(path, name)| Some((name.to_owned(), absolute(&names, module, &path)?)));
            source.imports.extend(paths);
        }
    }
    found
}

/// The paths of a tree, as `use` has them, each with the name that it gets: `a::{b, c::d as e}` is `a::b` as `b` and `a::c::d` as
/// `e`. Returns the text behind it.
fn parse<'t>(text: &'t str, before: &[&'t str], found: &mut Vec<(Vec<&'t str>, &'t str)>) -> &'t str {
    let (mut path, mut rest) = (before.to_vec(), text);
    let other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    loop {
        if let Some(list) = rest.strip_prefix('{') {
            let mut list = list.trim_start();
            while !list.is_empty() && !list.starts_with('}') {
                let after = parse(list, &path, found).trim_start();
                list = after.strip_prefix(',').unwrap_or(after).trim_start();
            }
            return list.strip_prefix('}').unwrap_or(list);
        }
        let (word, after) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
        if let Some(more) = after.strip_prefix("::").filter(|_| !word.is_empty()) {
            path.push(word);
            rest = more;
            continue;
        }
        if !word.is_empty() && word != "self" {
            path.push(word);
        }
        let last = path.last().copied().unwrap_or_default();
        if let Some(alias) = after.strip_prefix(" as ") {
            let (name, after) = alias.split_at(alias.find(other).unwrap_or(alias.len()));
            found.push((path, name));
            return after;
        }
        found.push((path, last));
        // `*`, or whatever else is no word.
        let skipped = if word.is_empty() { after.chars().next().map_or(0, char::len_utf8) } else { 0 };
        return &after[skipped..];
    }
}

/// A path as it is from the crate on. None: it is not of this crate.
fn absolute(modules: &BTreeSet<Module>, own: &[String], path: &[&str]) -> Option<Module> {
    let ups = path.iter().take_while(|part| **part == "super").count();
    let (base, rest): (&[String], &[&str]) = match path.first()? {
        &"crate" => (&[], &path[1..]),
        &"self" => (own, &path[1..]),
        &"super" => (&own[..own.len().checked_sub(ups)?], &path[ups..]),
        first if modules.contains(&[own, &[(*first).to_owned()]].concat()) => (own, path),
        _ => return None,
    };
    Some(base.iter().cloned().chain(rest.iter().map(|part| (*part).to_owned())).collect())
}

/// The module that a path leads to, through what others pass on.
fn resolve(sources: &Sources, path: &[String], left: usize) -> Module {
    let known = (0..=path.len()).rev().find(|length| sources.contains_key(&path[..*length])).unwrap_or(0);
    let (module, rest) = path.split_at(known);
    let passed_on = rest.first().and_then(|name| sources[module].imports.get(name));
    match passed_on.filter(|_| left > 0) {
        Some(further) => resolve(sources, &[further.as_slice(), &rest[1..]].concat(), left - 1),
        None => module.to_vec(),
    }
}

/// Which modules a module names.
fn used(sources: &Sources, names: &BTreeSet<Module>, own: &Module) -> BTreeSet<Module> {
    let mut paths = Vec::new();
    let text = &sources[own].text;
    for start in ["crate::", "super::"] {
        let inside = |at: usize| text[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_ascii_alphanumeric());
        for (at, _) in text.match_indices(start).filter(|(at, _)| !inside(*at)) {
            parse(&text[at..], &[], &mut paths);
        }
    }
    let paths = paths.iter().filter_map(|(path, _)| absolute(names, own, path));
    paths.map(|path| resolve(sources, &path, 5)).collect()
}

/// The largest circle among what is directly in a folder.
fn largest_circle<'n>(edges: &BTreeMap<&'n str, BTreeSet<&'n str>>) -> BTreeSet<&'n str> {
    let reached = |from: &'n str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(node) = next.pop() {
            next.extend(edges.get(node).into_iter().flatten().filter(|other| seen.insert(**other)));
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|node| (*node, reached(node))).collect();
    let circle = |node: &&'n str| -> BTreeSet<&'n str> {
        let back = |other: &&str| reach.get(other).is_some_and(|there| there.contains(node));
        reach[node].iter().copied().filter(back).collect()
    };
    edges.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn no_circle_of_files_is_large() {
    let sources = modules();
    let names: BTreeSet<Module> = sources.keys().cloned().collect();
    let used: BTreeMap<&Module, BTreeSet<Module>> =
        names.iter().map(|module| (module, used(&sources, &names, module))).collect();
    let folders: BTreeSet<&[String]> = names.iter().filter_map(|module| Some(module.split_last()?.1)).collect();
    let mut large = Vec::new();
    let mut edges_seen = 0;
    // Folders of `src` itself are on floors, which have no circles.
    for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
        let inside = |module: &'_ Module| module.len() > folder.len() && module.starts_with(folder);
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, targets) in used.iter().filter(|(from, _)| inside(from)) {
            let node = from[folder.len()].as_str();
            let targets = targets.iter().filter(|to| inside(to)).map(|to| to[folder.len()].as_str());
            edges.entry(node).or_default().extend(targets.filter(|to| *to != node));
        }
        edges_seen += edges.values().map(BTreeSet::len).sum::<usize>();
        let circle = largest_circle(&edges);
        if circle.len() > LARGEST {
            large.push(format!("{}: {}", folder.join("/"), circle.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    assert!(edges_seen > 500, "only {edges_seen} uses of other files were found");
    assert!(large.is_empty(), "in these folders more than {LARGEST} files use each other: {large:#?}");
}

#[test]
fn a_circle_is_found_through_what_others_pass_on() {
    let source = |text: &str, imports: &[(&str, &[&str])]| Source {
        text: text.to_owned(),
        imports: imports
            .iter()
            .map(|(name, path)| ((*name).to_owned(), path.iter().map(|part| (*part).to_owned()).collect()))
            .collect(),
    };
    let name = |parts: &[&str]| -> Module { parts.iter().map(|part| (*part).to_owned()).collect() };
    let sources = Sources::from([
        (name(&[]), source("", &[])),
        (name(&["a"]), source("", &[("Thing", &["a", "y"])])),
        (name(&["a", "x"]), source("use super::{z::{self, Other}, Thing};", &[])),
        (name(&["a", "y"]), source("fn f() { crate::a::x::g::<u8>() }", &[])),
        (name(&["a", "z"]), source("", &[])),
    ]);
    let names: BTreeSet<Module> = sources.keys().cloned().collect();
    let of = |module: &[&str]| used(&sources, &names, &name(module));
    assert_eq!(of(&["a", "x"]), BTreeSet::from([name(&["a", "y"]), name(&["a", "z"])]));
    assert_eq!(of(&["a", "y"]), BTreeSet::from([name(&["a", "x"])]));
    let edges =
        BTreeMap::from([("x", BTreeSet::from(["y", "z"])), ("y", BTreeSet::from(["x"])), ("z", BTreeSet::new())]);
    assert_eq!(largest_circle(&edges), BTreeSet::from(["x", "y"]));
}
