//! Every `tests/mistakes/<name>.yml` is a playbook with a typical mistake; the message must equal `<name>.txt` beside it.
//! `UPDATE_GOLDEN=1` writes the present messages.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass::engine::BuildContext;
use windlass::playbook::load::Loader;
use windlass::report::diagnostic::render_diagnostic;
use windlass::template::Templar;
use windlass::value::ProcessEnvironment;

fn playbooks() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("tests/mistakes").unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "yml"));
    found.sort();
    assert!(found.len() >= 50, "playbooks are missing: {}", found.len());
    found
}

fn reported(playbook: &Path) -> String {
    let known = BuildContext { templar: Templar::new() };
    let mut loader = Loader::new(Arc::new(known), Arc::default(), Arc::default(), Vec::new());
    loader.surroundings = Arc::new(ProcessEnvironment::of_process());
    match loader.load_playbook(playbook) {
        Ok(_) => "nothing is wrong\n".to_owned(),
        Err(complaints) => {
            complaints.iter().map(|complaint| render_diagnostic(complaint) + "\n").collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn every_mistake_is_reported_as_expected() {
    let mut wrong = Vec::new();
    for playbook in playbooks() {
        let reported = reported(&playbook);
        let file = playbook.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &reported).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if reported != expected {
            wrong.push(format!("{}:\n--- expected\n{expected}--- reported\n{reported}", playbook.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_mistake_goes_unnoticed() {
    for playbook in playbooks() {
        assert_ne!(reported(&playbook), "nothing is wrong\n", "{}", playbook.display());
    }
}

#[test]
fn every_expectation_has_its_playbook() {
    for entry in std::fs::read_dir("tests/mistakes").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "txt") {
            assert!(path.with_extension("yml").exists(), "{} has no playbook", path.display());
        }
    }
}
