//! Every keyword, statement, filter, test, lookup, function and module that the code knows, and the settings of the
//! language, has a case that compares it with ansible-core: a playbook in `tests/differential/playbooks` or an expression in
//! `tests/differential/expressions`. What has none is named.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use windlass::modules::{self, MODULES};
use windlass::playbook::include;
use windlass::playbook::keywords::{self, KeywordScope};
use windlass::template::catalogue;
use windlass::value::origin::Source;
use windlass::value::yaml::{self, Node, NodeKind};

/// What ansible-core does not have, or cannot be asked for on every machine.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "filters for the files of services, which are ours alone",
        &["environment_quote", "plain_word", "systemd_limits", "systemd_quote", "systemd_value"],
    ),
    ("filters of other days, and of ours", &["splitlines", "version", "version_compare"]),
    ("needs a library of Python in the reference", &["deb822_repository", "password_hash"]),
    ("filters of collections", &["ipaddr", "ipv4", "ipv6", "ipwrap", "json_query"]),
    ("a lookup of a collection", &["flattened"]),
    ("its answer is an address of this machine's own", &["socket"]),
    ("modules that need another system, or end this one", &["dnf", "reboot", "yum"]),
];

/// The collections of the modules that ansible-core has, and that of the one collection that is compared with.
const COMPARED: &[&str] = &["ansible.builtin", "ansible.posix"];

/// The settings that change what a playbook does: as they stand in an `ansible.cfg` below `[defaults]` or `[tags]`.
const SETTINGS: &[&str] = &[
    "allow_broken_conditionals",
    "any_errors_fatal",
    "error_on_missing_handler",
    "force_handlers",
    "gathering",
    "hash_behaviour",
    "inject_facts_as_vars",
    "roles_path",
    "run",
    "skip",
];

/// What the cases use.
#[derive(Default)]
struct Used {
    /// Keywords by the place where they stand, the parts of `loop_control` among them.
    keywords: BTreeMap<&'static str, BTreeSet<String>>,
    /// Modules and statements, with the names of their arguments.
    actions: BTreeMap<String, BTreeSet<String>>,
    metas: BTreeSet<String>,
    /// All text of playbooks, roles, templates; the hand-picked expressions.
    text: String,
    /// The corpus of expressions up to its list of tests, and that list.
    filters: String,
    tests: String,
    settings: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

fn files(below: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, into),
            false => into.push(path),
        }
    }
}

fn used() -> Used {
    let mut used = Used::default();
    let mut all = Vec::new();
    files(&root().join("playbooks"), &mut all);
    all.sort();
    for path in all {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yml") => {
                for document in yaml::parse_yaml(&Arc::new(Source::new(&path, &text))).unwrap_or_default() {
                    items(&document).iter().for_each(|item| used.step(item, KeywordScope::Task));
                }
                used.text += &text;
            }
            Some("cfg") => {
                let names =
                    text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().to_owned());
                used.settings.extend(names);
            }
            _ => used.text += &text,
        }
    }
    used.text += &std::fs::read_to_string(root().join("expressions/hand-picked.txt")).unwrap();
    let corpus = std::fs::read_to_string(root().join("expressions/corpus.py")).unwrap();
    let (filters, rest) = corpus.split_once("TESTS = [").unwrap();
    let (tests, _) = rest.split_once("OPERATORS").unwrap();
    (used.filters, used.tests) = (filters.to_owned(), tests.to_owned());
    used
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::Seq(items) => items,
        _ => &[],
    }
}

fn keys(node: &Node) -> Vec<(String, &Node)> {
    match &node.kind {
        NodeKind::Map(pairs) => {
            pairs.iter().filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value))).collect()
        }
        _ => Vec::new(),
    }
}

fn short(name: &str) -> &str {
    COMPARED.iter().find_map(|collection| name.strip_prefix(collection)?.strip_prefix('.')).unwrap_or(name)
}

impl Used {
    fn at(&mut self, place: &'static str, node: &Node) {
        self.keywords.entry(place).or_default().extend(keys(node).into_iter().map(|(name, _)| name));
    }

    /// A play, a block, a task or a handler.
    fn step(&mut self, node: &Node, place: KeywordScope) {
        if node.get("hosts").is_some() {
            self.at("play", node);
            for section in ["pre_tasks", "tasks", "post_tasks"] {
                let steps = node.get(section).map(items).unwrap_or_default();
                steps.iter().for_each(|step| self.step(step, KeywordScope::Task));
            }
            let handlers = node.get("handlers").map(items).unwrap_or_default();
            handlers.iter().for_each(|step| self.step(step, KeywordScope::Handler));
            let roles = node.get("roles").map(items).unwrap_or_default();
            roles.iter().for_each(|role| self.at("role", role));
            return;
        }
        if node.get("block").is_some() {
            self.at("block", node);
            for section in ["block", "rescue", "always"] {
                let steps = node.get(section).map(items).unwrap_or_default();
                steps.iter().for_each(|step| self.step(step, place));
            }
            return;
        }
        self.at("task", node);
        if place == KeywordScope::Handler {
            self.at("handler", node);
        }
        if let Some(control) = node.get("loop_control") {
            self.at("loop_control", control);
        }
        for (name, value) in keys(node) {
            let arguments = keys(value).into_iter().map(|(name, _)| name);
            self.actions.entry(short(&name).to_owned()).or_default().extend(arguments);
            if let ("meta", Some(word)) = (short(&name), value.as_str()) {
                self.metas.insert(word.to_owned());
            }
        }
    }

    fn finds(&self, pattern: &str) -> bool {
        let found = |text: &str| Regex::new(pattern).unwrap().is_match(text);
        found(&self.text)
    }
}

#[test]
fn everything_that_the_code_knows_has_a_case() {
    let used = used();
    let excused = |name: &&str| WITHOUT.iter().any(|(_, names)| names.contains(name));
    let mut missing = Vec::new();
    let mut want = |what: &str, name: &str, there: bool| {
        if !there && !excused(&name) {
            missing.push(format!("{what} {name}"));
        }
    };
    for (place, words) in [
        (KeywordScope::Play, "play"),
        (KeywordScope::Role, "role"),
        (KeywordScope::Block, "block"),
        (KeywordScope::Task, "task"),
        (KeywordScope::Handler, "handler"),
    ] {
        for keyword in keywords::all_keywords().filter(|keyword| keyword.is_at(place)) {
            // What handlers share with tasks is the same there.
            if place != KeywordScope::Handler || !keyword.is_at(KeywordScope::Task) {
                let there = used.keywords.get(words).is_some_and(|names| names.contains(keyword.name));
                want(&format!("keyword of a {words}:"), keyword.name, there);
            }
            for part in keyword.parts.iter().filter(|_| keyword.name == "loop_control") {
                let there = used.keywords.get("loop_control").is_some_and(|names| names.contains(part.name));
                want("loop_control:", part.name, there);
            }
        }
    }
    for doc in &include::DOCS {
        let given = used.actions.get(doc.name);
        want("statement", doc.name, given.is_some());
        // What is written behind the name needs no name of its own.
        let named = doc.arguments.iter().filter(|argument| doc.free_form.is_none_or(|free| free != argument.name));
        named.for_each(|argument| {
            let there = given.is_some_and(|given| given.contains(argument.name));
            want(&format!("argument of {}:", doc.name), argument.name, there);
        });
    }
    let meta = modules::find_module("meta").unwrap().doc;
    meta.arguments[0].choices.iter().for_each(|word| want("meta:", word, used.metas.contains(*word)));
    for word in catalogue::filters() {
        let name = word.name;
        let there = used.finds(&format!(r"\|\s*(ansible\.builtin\.)?{name}\b|map\('{name}'"))
            || Regex::new(&format!(r#"["| ]{name}["(| ]|\| {name}\b|map\('{name}'"#)).unwrap().is_match(&used.filters);
        want("filter", name, there);
    }
    for word in catalogue::tests() {
        let name = regex::escape(word.name);
        let there = used.finds(&format!(r"\bis\s+(not\s+)?(ansible\.builtin\.)?{name}(\W|$)"))
            || Regex::new(&format!(r#""{name}["(]"#)).unwrap().is_match(&used.tests)
            || Regex::new(&format!(r"(select|reject)(attr)?\(('[a-z.]*', ?)?'{name}'"))
                .unwrap()
                .is_match(&used.filters);
        want("test", word.name, there);
    }
    for word in catalogue::lookups() {
        let there = used.finds(&format!(r"(lookup|query|\bq)\('(ansible\.builtin\.)?{}'", word.name))
            || used.actions.contains_key(&format!("with_{}", word.name));
        want("lookup", word.name, there);
    }
    for word in catalogue::functions().into_iter().filter(|word| word.name != "omit") {
        want("function", word.name, used.finds(&format!(r"\b{}\(", word.name)));
    }
    for entry in MODULES.iter().filter(|entry| COMPARED.contains(&entry.doc.collection)) {
        want("module", entry.doc.name, used.actions.contains_key(entry.doc.name));
    }
    SETTINGS.iter().for_each(|name| want("setting", name, used.settings.contains(*name)));
    assert!(missing.is_empty(), "without a case in tests/differential:\n{}", missing.join("\n"));
}
