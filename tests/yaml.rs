//! A second reader's word: serde_yaml reads every YAML file of the project as our own reader does. Where YAML 1.1 (ours,
//! as Ansible's) and 1.2 differ, the project's files must not tread.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use windlass::value::origin::Source;
use windlass::value::vault::Keyring;
use windlass::value::yaml::{self, Duplicates, Node, NodeKind};

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
        let ours = match yaml::load_yaml(&path, &Keyring::default(), &Duplicates::default()).unwrap() {
            Some(node) => windlass::report::to_json(&node.to_value(&Keyring::default()).unwrap()),
            None => Json::Null,
        };
        if ours != theirs {
            wrong.push(format!("{}:\n  ours   {ours}\n  theirs {theirs}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A node with the types of all its values; `tests/yaml/compare` builds the same of what PyYAML reads.
fn typed(node: &Node) -> Json {
    let value = match &node.kind {
        NodeKind::Null => json!(["null"]),
        NodeKind::Bool(value) => json!(["bool", value]),
        NodeKind::Int(value) => json!(["int", value.to_string()]),
        NodeKind::BigInt(value) => json!(["int", value.to_string()]),
        NodeKind::Float(value) if value.is_nan() => json!(["float", "nan"]),
        NodeKind::Float(value) => json!(["float", format!("{:016x}", value.to_bits())]),
        NodeKind::Str(text) => json!(["str", text]),
        NodeKind::Seq(items) => json!(["list", items.iter().map(typed).collect::<Vec<_>>()]),
        NodeKind::Map(pairs) => {
            json!(["map", pairs.iter().map(|(key, value)| json!([typed(key), typed(value)])).collect::<Vec<_>>()])
        }
    };
    match &node.tag {
        Some(tag) => json!([tag, value]),
        None => value,
    }
}

#[test]
#[ignore = "for tests/yaml/compare, which names the files"]
fn read_files_of_a_list() {
    let mut out = std::io::BufWriter::new(std::fs::File::create(std::env::var("YAML_READ").unwrap()).unwrap());
    for path in std::fs::read_to_string(std::env::var("YAML_FILES").unwrap()).unwrap().lines() {
        let source = Arc::new(Source::new(Path::new(path), std::fs::read_to_string(path).unwrap()));
        let read = match yaml::parse_with(&source, &mut Vec::new()) {
            Ok(documents) => json!({ "documents": documents.iter().map(typed).collect::<Vec<_>>() }),
            Err(complaint) => json!({ "error": complaint.to_string() }),
        };
        writeln!(out, "{read}").unwrap();
    }
}
