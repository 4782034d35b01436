//! Every folder of `tests/golden/` is a case: `playbook.yml` is run with `hosts.ini` (hosts are this machine, by the
//! local connection) and `arguments` (one per line); what a person sees and the exit code must equal `expected.txt`.
//! `UPDATE_GOLDEN=1` writes what is so now.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() >= 10, "golden cases are missing: {}", cases.len());
    cases
}

/// Runs a case in a scratch directory, whose path reads `SCRATCH` in the result.
fn run(case: &Path) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = std::fs::read_to_string(case.join("arguments")).unwrap_or_default();
    let hosts = case.join("hosts.ini");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("playbook").current_dir(case).env("NO_COLOR", "1").env_remove("ANSIBLE_ROLES_PATH");
    if hosts.exists() {
        command.args(["-i", "hosts.ini"]);
    }
    command.args(["-e", &format!("scratch={}", scratch.path().display())]);
    command.args(arguments.lines()).arg("playbook.yml");
    let output = command.output().unwrap();
    let text = format!(
        "{}{}exit code {}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().unwrap_or(-1)
    );
    normal(&text, scratch.path(), case)
}

/// Leaves out what differs from run to run; results of one task come in the order in which hosts end: they are sorted.
fn normal(text: &str, scratch: &Path, case: &Path) -> String {
    let text = text
        .replace(&scratch.display().to_string(), "SCRATCH")
        .replace(&case.canonicalize().unwrap().display().to_string(), "CASE")
        .replace(&case.display().to_string(), "CASE");
    let mut lines: Vec<String> = Vec::new();
    let mut results: Vec<String> = Vec::new();
    let words = ["ok: [", "changed: [", "skipping: [", "fatal: [", "failed: [", "unreachable: ["];
    for line in text.lines() {
        let line = match line.rsplit_once(" in ") {
            Some((head, tail)) if tail.ends_with(" s") && head.contains("host") => format!("{head} in TIME"),
            _ => line.trim_end().trim_end_matches('*').trim_end().to_string(),
        };
        if words.iter().any(|word| line.starts_with(word)) {
            results.push(line);
        } else if line.starts_with([' ', '}', '+', '-']) && !results.is_empty() {
            let last = results.last_mut().unwrap();
            last.push('\n');
            last.push_str(&line);
        } else {
            results.sort();
            lines.append(&mut results);
            lines.push(line);
        }
    }
    results.sort();
    lines.append(&mut results);
    lines.join("\n") + "\n"
}

#[test]
fn every_case_is_reported_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let reported = run(&case);
        let file = case.join("expected.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &reported).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if reported != expected {
            let diff = similar::TextDiff::from_lines(&expected, &reported);
            wrong.push(format!("{}:\n{}", case.display(), diff.unified_diff()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
