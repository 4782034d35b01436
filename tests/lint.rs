//! `windlass lint` on every `tests/lint/<name>.yml` and the roles beside them; `<name>.txt` has the expected findings.
//! `UPDATE_GOLDEN=1` writes the present ones.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use windlass::lint::rules::RULES;

/// The exit code and what is on standard output.
fn lint(directory: &str, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let output = command.current_dir(directory).env("NO_COLOR", "1").arg("lint").args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn cases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("tests/lint").unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "yml") || path.ends_with("roles"));
    found.sort();
    found
}

#[test]
fn every_finding_is_reported_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (_, reported) = lint("tests/lint", &[case.file_name().unwrap().to_str().unwrap()]);
        let file = case.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &reported).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if reported != expected {
            wrong.push(format!("{}:\n--- expected\n{expected}--- reported\n{reported}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_case_in_which_it_finds_something() {
    for rule in RULES {
        let file = Path::new("tests/lint").join(rule.id).with_extension("txt");
        let reported = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{} is missing", file.display()));
        assert!(reported.contains(&format!("{}[{}]: ", rule.level.level_name(), rule.id)), "{}", rule.id);
    }
}

#[test]
fn our_own_playbooks_and_roles_are_clean() {
    assert_eq!(lint("", &["roles", "playbooks"]), (0, String::new()));
}

#[test]
fn the_exit_code_says_whether_anything_matters_enough() {
    let code = |arguments: &[&str]| lint("tests/lint", arguments).0;
    assert_eq!(code(&["clean.yml"]), 0);
    assert_eq!(code(&["state-latest.yml"]), 2);
    assert_eq!(code(&["--fail-on", "error", "state-latest.yml"]), 0);
    assert_eq!(code(&["--fail-on", "error", "load.yml"]), 2);
    assert_eq!(code(&["no-such-file.yml"]), 1);
    assert_eq!(code(&[]), 2);
}

#[test]
fn a_mistake_of_yaml_is_reported_once_wherever_the_file_is() {
    let files = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(files.path().join("roles/x/tasks")).unwrap();
    std::fs::write(files.path().join("roles/x/tasks/main.yml"), "- name: \"open\n").unwrap();
    std::fs::write(files.path().join("site.yml"), "- name: P\n  hosts: all\n  roles: [x]\n").unwrap();
    let (code, reported) = lint(files.path().to_str().unwrap(), &["."]);
    assert_eq!((code, reported.matches("error[load]").count()), (2, 1), "{reported}");
}

#[test]
fn sarif_has_the_structure_of_version_2_1_0() {
    let (_, text) = lint("tests/lint", &["--output", "sarif", "notify-unknown.yml", "state-latest.yml"]);
    let log: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!((run["tool"]["driver"]["name"].as_str(), rules.len()), (Some("windlass"), RULES.len()));
    assert!(rules.iter().all(|rule| rule["id"].is_string() && rule["shortDescription"]["text"].is_string()));
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note", "none"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert!(place["artifactLocation"]["uri"].as_str().unwrap().ends_with(".yml"));
        assert!(place["region"]["startLine"].as_u64() > Some(0) && place["region"]["startColumn"].as_u64() > Some(0));
    }
    assert_eq!(results[0]["level"], "error");
}

#[test]
fn json_and_annotations_name_rule_and_place() {
    let (_, text) = lint("tests/lint", &["--output", "json", "state-latest.yml"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    let first = &list[0];
    assert_eq!(
        (&first["rule"], &first["file"], &first["line"]),
        (&"state-latest".into(), &"state-latest.yml".into(), &5.into())
    );
    let (_, text) = lint("tests/lint", &["--output", "github", "state-latest.yml"]);
    let line =
        "::warning file=state-latest.yml,line=5,col=39,title=state-latest::apt installs whatever is the latest version";
    assert!(text.starts_with(line), "{text}");
}

#[test]
fn the_documentation_lists_every_rule_with_its_words() {
    let (_, list) = lint("", &["--list-rules"]);
    let page = std::fs::read_to_string("docs/how-to/lint.md").unwrap();
    for rule in RULES {
        assert!(list.lines().any(|line| line.starts_with(rule.id) && line.ends_with(rule.about)), "{list}");
        let row = format!("| `{}` | {} | {} |", rule.id, rule.level.level_name(), rule.about);
        assert!(page.contains(&row), "not in docs/how-to/lint.md: {row}");
    }
    let rows =
        page.lines().filter(|line| line.ends_with(" |") && line.starts_with("| `") && !line.contains("--")).count();
    assert_eq!(rows, RULES.len(), "docs/how-to/lint.md has a rule that is none");
}

#[test]
fn a_file_of_yaml_that_is_no_text_is_reported_and_not_passed_over() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("site.yml"), b"- hosts: all\n  tasks:\n    - shell: \"\xff\"\n").unwrap();
    let reported = "error[load]: cannot read site.yml: it is not UTF-8 text";
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let output = command.current_dir(&scratch).env("NO_COLOR", "1").args(["lint", "site.yml"]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(2) && out.contains(reported), "{:?} {out}", output.status);
}
