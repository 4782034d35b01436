//! A second reader's word: serde_yaml reads every YAML file of the project as our own reader does. Where YAML 1.1 (ours,
//! as Ansible's) and 1.2 differ, the project's files must not tread.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;
use windlass::value::vault::Keyring;
use windlass::value::yaml;

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["playbooks", "roles"].iter().map(|name| root.join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "yml") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "the walk found only {} files", found.len());
    found
}

#[test]
fn our_reader_and_serde_yaml_read_the_same() {
    let mut wrong = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let theirs = Json::deserialize(serde_yaml::Deserializer::from_str(&text)).unwrap();
        let ours = match yaml::load(&path, &Keyring::default()).unwrap() {
            Some(node) => windlass::report::plain(&node.to_value(&Keyring::default()).unwrap()),
            None => Json::Null,
        };
        if ours != theirs {
            wrong.push(format!("{}:\n  ours   {ours}\n  theirs {theirs}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
