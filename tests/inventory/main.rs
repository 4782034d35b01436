//! `windlass inventory` beside `ansible-inventory`: the same answers to `commands` and `patterns`.
//! What Ansible answers stands in `expected/`; `record` writes it anew.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use windlass::inventory::Inventory;
use windlass::value::vault::Keyring;
use windlass::value::yaml;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inventory")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(here().join(name)).unwrap()
}

/// Lines that are no comments.
fn lines(name: &str) -> Vec<String> {
    read(name).lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(String::from).collect()
}

/// What the program prints in a directory of `cases/`.
fn answer(directory: &str, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("inventory")
        .args(arguments.split_whitespace())
        .current_dir(here().join("cases").join(directory))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Text by text, JSON and YAML by what they mean.
fn same(arguments: &str, ours: &str, expected: &str) -> Result<(), String> {
    let yaml_wanted = arguments.split_whitespace().any(|word| word == "-y" || word == "--yaml");
    let equal = if arguments.contains("--graph") {
        ours.trim_end() == expected.trim_end()
    } else if yaml_wanted {
        let values = |text: &str| yaml::plain_values(text).unwrap();
        values(ours) == values(expected)
    } else {
        let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        json(ours) == json(expected)
    };
    if equal {
        return Ok(());
    }
    let changes = similar::TextDiff::from_lines(expected, ours);
    Err(changes.unified_diff().context_radius(4).header("ansible", "windlass").to_string())
}

#[test]
fn every_command_answers_as_ansible_inventory_does() {
    let mut wrong = Vec::new();
    let commands = lines("commands");
    for line in &commands {
        let (case, arguments) = line.split_once(':').unwrap();
        let (name, directory) = case.split_once(' ').unwrap();
        let ours = answer(directory, arguments);
        if let Err(diff) = same(arguments, &ours, &read(&format!("expected/{name}"))) {
            wrong.push(format!("{name}:\n{diff}"));
        }
    }
    assert!(commands.len() > 20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_pattern_names_the_hosts_that_ansible_finds() {
    let source = here().join("cases/groups/hosts").to_string_lossy().into_owned();
    let inventory = Inventory::load(&[source], &Keyring::default()).unwrap();
    let expected: serde_json::Map<String, Json> = serde_json::from_str(&read("expected/patterns.json")).unwrap();
    let patterns = lines("patterns");
    assert_eq!(patterns.len(), expected.len());
    for pattern in patterns {
        let (hosts, _) = inventory.select(&pattern).unwrap();
        let ours: Vec<Json> = hosts.iter().map(|host| Json::from(&**host)).collect();
        assert_eq!(Json::Array(ours), expected[&pattern], "{pattern}");
    }
}

#[test]
fn the_three_examples_name_the_same_hosts() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventory");
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    std::fs::write(&hosts, "etcd-1 192.0.2.11\netcd-2 192.0.2.12\n# none\netcd-3 192.0.2.13\n").unwrap();
    let of_etcd1 = |name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["inventory", "--host", "etcd:!etcd[1:]", "-i"])
            .arg(examples.join(name))
            .env("HOSTS", &hosts)
            .output()
            .unwrap();
        let vars: Json = serde_json::from_slice(&output.stdout).unwrap();
        (vars["ansible_host"].clone(), vars["ansible_become"].clone())
    };
    let expected = (Json::from("192.0.2.11"), Json::from(true));
    assert_eq!(of_etcd1("hosts.ini"), expected);
    assert_eq!(of_etcd1("hosts.yml"), expected);
    assert_eq!(of_etcd1("script.sh"), expected);
}

#[test]
fn yaml_output_is_an_inventory_again() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.yml");
    std::fs::write(&copy, answer("values", "-i hosts.ini --list --yaml")).unwrap();
    let again = answer("values", &format!("-i {} --list", copy.display()));
    assert_eq!(
        serde_json::from_str::<Json>(&again).unwrap(),
        serde_json::from_str::<Json>(&read("expected/values")).unwrap()
    );
}
