//! What the fuzzer begins with, and all that it once broke something with, under plain `cargo test`: every seed goes
//! through its target's function and must not panic. See `tests/fuzz/README.md`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where something is not as it should be, and says what it looks at"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "fuzz/bodies/mod.rs"]
mod bodies;

/// How long an input may take: so many times what encrypting a vault takes on this machine, now.
const ENCRYPTIONS: u32 = 500;

fn longest() -> Duration {
    let begun = Instant::now();
    bodies::run("vault", b"\xff");
    (begun.elapsed() * ENCRYPTIONS).max(Duration::from_secs(60))
}

fn files(place: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(place)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    assert!(found.len() >= 5, "there are only {} files in {place}", found.len());
    found.sort();
    found
}

/// Gives a target its seeds, and files of the project that are such inputs.
fn seeds(target: &str, places: &[&str]) {
    let mut inputs: Vec<_> = places.iter().flat_map(|place| files(place)).collect();
    inputs.extend(files(&format!("tests/fuzz/seeds/{target}")));
    let (mut wrong, longest) = (Vec::new(), longest());
    for path in inputs {
        let (input, begun) = (std::fs::read(&path).unwrap(), Instant::now());
        // TimedEvent before the run, as an overflow of the stack leaves no time to.
        eprintln!("{}", path.display());
        if std::panic::catch_unwind(|| bodies::run(target, &input)).is_err() {
            wrong.push(format!("{}: panics", path.display()));
        } else if begun.elapsed() > longest {
            wrong.push(format!("{}: takes {:?}", path.display(), begun.elapsed()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn inventories() {
    seeds("inventory", &["inventory", "tests/inventory/cases", "tests/resources"]);
}

#[test]
fn playbooks() {
    seeds("playbook", &["playbooks", "tests/mistakes", "tests/differential/playbooks"]);
}

#[test]
fn replies() {
    seeds("reply", &[]);
}

#[test]
fn templates() {
    seeds("template", &[]);
}

#[test]
fn vaults() {
    seeds("vault", &[]);
}

#[test]
fn every_target_is_here() {
    let targets: Vec<&str> = bodies::TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(targets, ["inventory", "playbook", "reply", "template", "vault"]);
    for target in targets {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fuzz/targets/{target}.rs")).exists());
    }
}
