//! The shape of the house: a folder uses lower floors only, only the faces print, files stay small.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};

/// The floors of `src/lib.rs`; folders on one floor do not know each other.
const FLOORS: &[(&str, u8)] = &[
    ("value", 0),
    ("template", 1),
    ("playbook", 1),
    ("resource", 1),
    ("settings", 1),
    ("connection", 1),
    ("bundle", 1),
    ("inventory", 2),
    ("remote", 2),
    ("http", 3),
    ("modules", 4),
    ("engine", 5),
    ("launch", 6),
    ("report", 6),
    ("deployment", 7),
    ("lint", 7),
    ("schema", 7),
    ("cli", 8),
];

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 50, "the walk found only {} files", found.len());
    found
}

fn folder(path: &Path) -> Option<&str> {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = inside.components().next()?.as_os_str().to_str()?;
    FLOORS.iter().map(|(name, _)| *name).find(|name| *name == first)
}

fn floor(name: &str) -> u8 {
    FLOORS.iter().find(|(folder, _)| *folder == name).map(|(_, floor)| *floor).unwrap()
}

/// A file of tests alone.
fn is_tests(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs" || name == "testing.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// Without the tests at the foot, and without comments.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_folder_uses_lower_floors_only() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(own) = folder(&path) else { continue };
        for (at, _) in code(&text).match_indices("crate::") {
            let used: String =
                code(&text)[at + 7..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let known = FLOORS.iter().any(|(name, _)| *name == used);
            if known && used != own && floor(&used) >= floor(own) {
                wrong.push(format!("{}: {own} uses {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_faces_print() {
    let faces = ["report", "cli"];
    let words = ["println!(", "eprintln!(", "print!(", "eprint!(", "process::exit("];
    let prints = |text: &str| code(text).lines().any(|line| words.iter().any(|word| line.contains(word)));
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !is_tests(path) && !folder(path).is_some_and(|own| faces.contains(&own)) && prints(text))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// `cannot_run` fails where every test has to run; a test that only prints would pass.
#[test]
fn a_test_skips_itself_in_one_way_only() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !path.ends_with("modules/testing.rs") && text.contains("println!(\"skipped"))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_file_says_what_it_is() {
    let wrong: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path).collect();
    assert!(wrong.is_empty(), "without a //! at the top: {wrong:?}");
}

#[test]
fn files_stay_readable() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (code(&text).lines().count(), path))
        .filter(|(lines, _)| *lines > 500)
        .collect();
    assert!(long.is_empty(), "split these: {long:?}");
}
