//! Keeps the dependencies to what `deny.toml` allows: licences, sources, banned packages. Reads what cargo knows of them;
//! building cargo-deny, which reads the same file and also knows about vulnerabilities, would take longer than all of this.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// The part of `deny.toml` that is enforced here. A key that stands in none of these is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
    #[serde(rename = "advisories")]
    _advisories: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    allow: BTreeSet<String>,
    /// How sure cargo-deny has to be of a text without a name; here every package has to name its licence.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: Level,
    wildcards: Level,
    #[serde(default)]
    deny: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
    #[serde(default)]
    allow_git: Vec<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Allow,
    Deny,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize, Clone)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize, Clone)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
    #[serde(default)]
    features: Vec<String>,
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn rules() -> Rules {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml")).unwrap();
    basic_toml::from_str(&text).unwrap()
}

/// Every package that a build for one of the targets takes, those for tests included.
fn packages(targets: &[String]) -> Vec<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    for target in targets {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Metadata>(&output.stdout).unwrap().packages
}

/// Whether a licence expression (SPDX, `/` for `OR`) can be met with the allowed licences; collects those that it names.
fn is_met(expression: &str, allowed: &BTreeSet<String>, named: &mut BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = alternatives(&mut rest, allowed, named);
    assert!(rest.is_empty(), "{expression:?} goes on with {rest:?}");
    met
}

fn alternatives(words: &mut &[&str], allowed: &BTreeSet<String>, named: &mut BTreeSet<String>) -> bool {
    let mut met = all_of(words, allowed, named);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        met |= all_of(words, allowed, named);
    }
    met
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<String>, named: &mut BTreeSet<String>) -> bool {
    let mut met = one(words, allowed, named);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        met &= one(words, allowed, named);
    }
    met
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>, named: &mut BTreeSet<String>) -> bool {
    let name = match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = alternatives(words, allowed, named);
            let [")", rest @ ..] = *words else { panic!("a parenthesis is not closed before {words:?}") };
            *words = rest;
            return met;
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            format!("{name} WITH {exception}")
        }
        [name, rest @ ..] => {
            *words = rest;
            (*name).to_owned()
        }
        [] => panic!("an expression ends too early"),
    };
    let met = allowed.contains(&name);
    named.insert(name);
    met
}

/// What is wrong with the packages; empty: nothing.
fn complaints(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut named = BTreeSet::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, .. } = package;
        match &package.license {
            Some(license) if is_met(license, &rules.licenses.allow, &mut named) => {}
            Some(license) => wrong.push(format!("{name} {version}: the licence {license} is not allowed")),
            None => wrong.push(format!("{name} {version} names no licence")),
        }
        match package.source.as_deref() {
            None | Some(REGISTRY) => {}
            Some(git) if git.starts_with("git+") => {
                let address = git.trim_start_matches("git+");
                let known = rules.sources.allow_git.iter().any(|known| address.starts_with(&**known));
                if rules.sources.unknown_git == Level::Deny && !known {
                    wrong.push(format!("{name} {version} comes from the unknown repository {address}"));
                }
            }
            Some(other) if rules.sources.unknown_registry == Level::Deny => {
                wrong.push(format!("{name} {version} comes from the unknown registry {other}"));
            }
            Some(_) => {}
        }
        if rules.bans.deny.contains(name) {
            wrong.push(format!("{name} is banned"));
        }
        let of_ours = package.source.is_none() && rules.bans.wildcards == Level::Deny;
        for Dependency { name: of, req, path, .. } in package.dependencies.iter().filter(|_| of_ours) {
            if req == "*" && path.is_none() {
                wrong.push(format!("{name} takes any version of {of}"));
            }
        }
        versions.entry(name).or_default().insert(version);
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        if rules.bans.multiple_versions == Level::Deny {
            wrong.push(format!("{name} is there in {} versions: {versions:?}", versions.len()));
        }
    }
    for idle in rules.licenses.allow.difference(&named) {
        wrong.push(format!("deny.toml allows the licence {idle}, which no package has"));
    }
    wrong
}

#[test]
fn the_dependencies_are_what_deny_toml_allows() {
    let rules = rules();
    assert!(rules.graph.targets.len() > 1);
    let packages = packages(&rules.graph.targets);
    assert!(packages.len() > 100, "there are only {} packages", packages.len());
    let wrong = complaints(&rules, &packages);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_deny_toml_does_not_allow_is_found() {
    let package = |name: &str, version: &str, license: Option<&str>, source: Option<&str>| Package {
        name: name.to_owned(),
        version: version.to_owned(),
        license: license.map(str::to_owned),
        source: source.map(str::to_owned),
        dependencies: Vec::new(),
    };
    let any = Dependency { name: "any".to_owned(), req: "*".to_owned(), path: None, features: Vec::new() };
    let ours = Package { dependencies: vec![any], ..package("ours", "1.0.0", Some("MIT"), None) };
    let packages = [
        ours,
        package("good", "1.0.0", Some("(GPL-3.0 OR MIT) AND (ISC/MIT)"), Some(REGISTRY)),
        package("strict", "1.0.0", Some("MIT AND GPL-3.0"), Some(REGISTRY)),
        package("nameless", "1.0.0", None, Some(REGISTRY)),
        package("elsewhere", "1.0.0", Some("MIT"), Some("registry+https://registry.example.org")),
        package("forked", "1.0.0", Some("MIT"), Some("git+https://git.example.org/forked?rev=1")),
        package("banned", "1.0.0", Some("MIT"), Some(REGISTRY)),
        package("twice", "1.0.0", Some("MIT"), Some(REGISTRY)),
        package("twice", "2.0.0", Some("MIT"), Some(REGISTRY)),
    ];
    let text = "graph = { targets = [] }\nadvisories = {}\nlicenses = { allow = [\"MIT\", \"Zlib\"], confidence-threshold = 0.9 }\n\
                bans = { multiple-versions = \"deny\", wildcards = \"deny\", deny = [\"banned\"] }\n\
                sources = { unknown-registry = \"deny\", unknown-git = \"deny\" }\n";
    let rules: Rules = basic_toml::from_str(text).unwrap();
    let wrong = [
        "ours takes any version of any",
        "strict 1.0.0: the licence MIT AND GPL-3.0 is not allowed",
        "nameless 1.0.0 names no licence",
        "elsewhere 1.0.0 comes from the unknown registry registry+https://registry.example.org",
        "forked 1.0.0 comes from the unknown repository https://git.example.org/forked?rev=1",
        "banned is banned",
        "twice is there in 2 versions: {\"1.0.0\", \"2.0.0\"}",
        "deny.toml allows the licence Zlib, which no package has",
    ];
    assert_eq!(complaints(&rules, &packages), wrong);
}

/// The feature of the template engine whose interface may change with any version.
const UNSTABLE: &str = "unstable_machinery";

/// The dependencies on the template engine and its companion that are not pinned to exactly one version although ours uses what may
/// change with any.
fn unpinned(ours: &Package) -> Vec<String> {
    let engine: Vec<_> = ours.dependencies.iter().filter(|of| of.name.starts_with("minijinja")).collect();
    if !engine.iter().any(|of| of.features.iter().any(|feature| feature == UNSTABLE)) {
        return Vec::new();
    }
    let loose = engine.into_iter().filter(|of| !of.req.starts_with('='));
    loose.map(|of| format!("{} {} is not pinned, as {UNSTABLE} needs", of.name, of.req)).collect()
}

#[test]
fn minijinja_is_pinned_as_long_as_its_unstable_machinery_is_used() {
    let packages = packages(&rules().graph.targets);
    let ours = packages.iter().find(|package| package.name == "windlass").unwrap();
    assert!(ours.dependencies.iter().any(|of| of.name == "minijinja"));
    assert!(unpinned(ours).is_empty());

    let of = |name: &str, req: &str, features: &[&str]| Dependency {
        name: name.to_owned(),
        req: req.to_owned(),
        path: None,
        features: features.iter().map(|feature| (*feature).to_owned()).collect(),
    };
    let with = |dependencies| Package { dependencies, ..ours.clone() };
    let loose = with(vec![of("minijinja", "^3.0.5", &["json", UNSTABLE]), of("minijinja-contrib", "=3.0.5", &[])]);
    assert_eq!(unpinned(&loose), ["minijinja ^3.0.5 is not pinned, as unstable_machinery needs"]);
    assert!(unpinned(&with(vec![of("minijinja", "^3.0.5", &["json"])])).is_empty(), "without it, any version will do");
}
