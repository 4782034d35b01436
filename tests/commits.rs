//! The subjects of commits, as CONTRIBUTING.md asks for them. Without the history, as in a tarball, there is nothing to check.

use std::process::Command;

/// The last commit before this was checked.
const BEFORE: &str = "42b0cfa207be74b5cbcb2e67cbc06969dc71f138";

/// A subject has fewer characters.
const LENGTH: usize = 72;

/// What is wrong with subjects, each in a line after its commit.
fn faults(log: &str) -> Vec<&str> {
    let is_long = |line: &&str| line.split_once(' ').is_some_and(|(_, subject)| subject.chars().count() >= LENGTH);
    log.lines().filter(is_long).collect()
}

#[test]
fn subjects_of_commits_are_short() {
    let range = format!("{BEFORE}..HEAD");
    let mut git = Command::new("git");
    git.current_dir(env!("CARGO_MANIFEST_DIR")).args(["log", "--no-merges", "--format=%h %s", &range]);
    let Ok(output) = git.output() else { return };
    // A shallow clone does not have the commit.
    if output.status.success() {
        let log = String::from_utf8_lossy(&output.stdout);
        assert!(
            faults(&log).is_empty(),
            "shorten these subjects to less than {LENGTH} characters: {:#?}",
            faults(&log)
        );
    }
}

#[test]
fn a_long_subject_is_found() {
    let long = format!("abc {}", "x".repeat(LENGTH));
    assert_eq!(faults(&format!("{long}\ndef roles/etcd: archive the data\n")), [long]);
    assert!(faults(&format!("abc {}", "é".repeat(LENGTH - 1))).is_empty());
}
