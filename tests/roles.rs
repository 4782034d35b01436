//! Our own roles and playbooks: they load, and every variable is documented. What they do to hosts: `tests/e2e/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_yaml::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn below(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).expect("the directory is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn keys(value: &Value) -> BTreeSet<String> {
    let mapping = value.as_mapping().expect("it is a mapping");
    mapping.keys().map(|key| key.as_str().expect("its keys are strings").to_owned()).collect()
}

#[test]
fn every_playbook_loads() {
    for playbook in below("playbooks").iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        for what in ["--syntax-check", "--list-tasks"] {
            let mut windlass = Command::cargo_bin("windlass").expect("it is built");
            windlass.args(["playbook", "-i", "h1,", what]).arg(playbook).assert().success();
        }
    }
}

#[test]
fn every_default_of_a_role_is_in_its_argument_specs_and_the_other_way_round() {
    for role in below("roles") {
        let defaults = keys(&yaml(&role.join("defaults/main.yml")));
        let specs = yaml(&role.join("meta/argument_specs.yml"));
        let options = keys(&specs["argument_specs"]["main"]["options"]);
        assert_eq!(defaults, options, "{}", role.display());
    }
}

#[test]
fn every_role_has_a_readme() {
    for role in below("roles") {
        assert!(role.join("README.md").is_file(), "{}", role.display());
    }
}

/// The settings that the role makes for a minor version are among the flags of that version.
#[test]
fn no_setting_of_the_etcd_role_is_unknown_to_the_version() {
    let common = keys(&yaml(&root().join("roles/etcd/vars/main.yml"))["etcd_settings_of_all"]);
    let versions = yaml(&root().join("roles/etcd/vars/versions.yml"));
    let versions = versions["etcd_by_minor"].as_mapping().expect("minor versions").clone();
    assert_eq!(versions.len(), 4);
    for (minor, of_minor) in &versions {
        let flags = of_minor["flags"].as_sequence().expect("a list of flags");
        let flags: BTreeSet<String> = flags.iter().map(|flag| flag.as_str().expect("a flag").to_owned()).collect();
        let ours = &common | &keys(&of_minor["settings"]);
        let unknown: Vec<_> = ours.difference(&flags).collect();
        assert!(unknown.is_empty(), "etcd {minor:?} has no {unknown:?}");
    }
}

/// What the release list promises is there, and every file has the form that `known_flags` reads.
#[test]
fn every_release_of_the_catalogue_has_its_flags() {
    let role = root().join("roles/karmada_catalogue");
    let releases = yaml(&role.join("vars/main.yml"))["karmada_releases"].as_mapping().expect("releases").clone();
    let mut promised = BTreeSet::new();
    for (release, with) in &releases {
        promised.insert(format!("karmada-{}.yml", release.as_str().expect("a release is a string")));
        for kubernetes in with["kubernetes"].as_sequence().expect("a list of releases") {
            promised.insert(format!("kubernetes-{}.yml", kubernetes.as_str().expect("a release is a string")));
        }
    }
    let there: BTreeSet<String> = below("roles/karmada_catalogue/files/catalogue")
        .iter()
        .map(|path| path.file_name().expect("a file").to_string_lossy().into_owned())
        .collect();
    assert_eq!(promised, there);
    for file in there {
        let catalogue = yaml(&role.join("files/catalogue").join(&file));
        let version = catalogue["version"].as_str().expect("a version").trim_start_matches('v');
        let minor = file.trim_end_matches(".yml").rsplit('-').next().expect("a minor version");
        assert!(version.starts_with(&format!("{minor}.")), "{file} is of {version}");
        for (program, of_program) in catalogue["programs"].as_mapping().expect("programs") {
            assert!(keys(&of_program["flags"]).contains("v"), "{file}: {program:?} has no flag v");
        }
    }
}
