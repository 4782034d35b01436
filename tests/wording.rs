//! Phrases of a private dialect that must not come back: the glossary in CONTRIBUTING.md names the words to use instead. And every
//! command of windlass that a text names exists.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

#[path = "floors/source.rs"]
mod source;

/// In lower case, each with the words to use instead.
const PHRASES: [(&str, &str); 32] = [
    ("made anew", "renewed, or replaced"),
    ("anew", "again"),
    ("gone on with", "resumed"),
    ("goes on", "continues, or resumes"),
    ("is told", "is reported, or knows"),
    ("are told", "are reported, or know"),
    ("was told", "was reported, or got"),
    ("were told", "were reported, or got"),
    ("whoever", "the user, the caller, or the program that"),
    ("somebody else's", "foreign, or another user's"),
    ("leads everybody", "points to a loopback address"),
    ("leads nowhere", "is broken"),
    ("leads out", "points outside"),
    ("wants a login", "requires a login"),
    ("of no use", "invalid"),
    ("of one's own", "your own, or separate"),
    ("comes to a bad end", "fails"),
    ("came to a bad end", "failed"),
    ("comes to no end", "never ends"),
    ("has its rest", "stops"),
    ("is at work", "runs"),
    ("are at work", "run"),
    ("is another", "has changed, or differs"),
    ("last heard of", "last heartbeat"),
    ("sees to", "say what it does"),
    ("think of a", "generate"),
    ("settle it", "say what is checked"),
    ("no telling", "unknown"),
    ("is not honoured", "is not supported"),
    ("works on this deployment", "holds the lock"),
    ("the begin of", "the start of"),
    ("be it that", "even if"),
];

/// Folders and files that people read. Of `tests`, only scripts are read.
const READ: [&str; 15] = [
    ".github",
    "src",
    "roles",
    "playbooks",
    "inventory",
    "packaging",
    "tools",
    "docs",
    "tests/e2e",
    "tests/hosts",
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder, or the file itself.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

/// The parts of Rust code that people read: string literals and comments. Everything else is masked, so that lines keep their
/// numbers. Tests, at the end of a file, are skipped.
fn shown_by_rust(code: &str) -> String {
    let code = source::without_tests(code);
    let mut shown = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|rest| rest.chars().take_while(|letter| *letter == '#').count());
        let raw = raw.filter(|hashes| rest[1 + hashes..].starts_with('"') && !shown.ends_with(char::is_alphanumeric));
        let (is_shown, length) = if rest.starts_with("//") {
            (true, rest.find('\n').unwrap_or(rest.len()))
        } else if let Some(hashes) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            (true, rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()))
        } else if letter == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            (true, end.map_or(rest.len(), |at| at + 2))
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            (false, rest[2..].find('\'').map_or(rest.len(), |at| at + 3))
        } else {
            (false, letter.len_utf8())
        };
        let (text, after) = rest.split_at(length);
        match is_shown {
            true => shown.push_str(text),
            false => shown.extend(text.chars().map(|letter| if letter.is_whitespace() { letter } else { '·' })),
        }
        rest = after;
    }
    shown
}

/// A document without the glossary, which names the words not to use.
fn shown_by_markdown(text: &str) -> &str {
    text.split("\n## Glossary\n").next().unwrap_or_default()
}

/// What people read of a file; None: nothing.
fn shown(path: &Path, text: &str) -> Option<String> {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "rs" => Some(shown_by_rust(text)),
        "md" => Some(shown_by_markdown(text).to_owned()),
        "yml" | "j2" | "sh" | "py" => Some(text.to_owned()),
        "" if text.starts_with("#!") || path.ends_with("debian/control") => Some(text.to_owned()),
        _ => None,
    }
}

/// The phrases of a text, each with its line. A phrase may go over the end of a line.
fn found(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let of_line = line.split(|letter: char| letter.is_whitespace() || "\\/\"`|*()#!".contains(letter));
        words.extend(of_line.filter(|word| !word.is_empty()).map(|word| (index + 1, word.to_lowercase())));
    }
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        for window in words.windows(wanted.len()) {
            let is_it = window.iter().zip(&wanted).enumerate().all(|(index, ((_, word), one))| {
                let ends = index + 1 == wanted.len();
                word == one || ends && word.trim_end_matches(|letter: char| !letter.is_alphanumeric()) == *one
            });
            if is_it {
                found.push((window[0].0, phrase, instead));
            }
        }
    }
    found
}

/// Calls `each` with every file that people read, and what they read of it.
fn each_text(mut each: impl FnMut(&Path, &str)) {
    let mut paths = Vec::new();
    for name in READ {
        files(&repository().join(name), &mut paths);
    }
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
    let is_script = |path: &Path| path.extension().is_none_or(|extension| extension == "sh" || extension == "py");
    paths.retain(|path| is_script(path) || !is_test(path.strip_prefix(repository()).unwrap()));
    paths.sort();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if let Some(text) = shown(&path, &text) {
            each(path.strip_prefix(repository()).unwrap(), &text);
        }
    }
}

#[test]
fn texts_for_people_use_the_words_of_the_field() {
    let mut faults = String::new();
    each_text(|path, text| {
        for (line, phrase, instead) in found(text) {
            faults.push_str(&format!("{}:{line}: {phrase:?}; write: {instead}\n", path.display()));
        }
    });
    assert!(faults.is_empty(), "\n{faults}");
}

/// The commands, and those below them, as the reference lists them. `tests/reference.rs` compares it with the program.
fn commands() -> BTreeSet<String> {
    let page = std::fs::read_to_string(repository().join("docs/reference/options.md")).unwrap();
    page.lines().filter_map(|line| line.strip_prefix("## windlass ")).map(str::to_owned).collect()
}

/// After one of these words, `windlass WORD` is a command.
const BEFORE_COMMANDS: [&str; 6] = ["run", "use", "with", "see", "try", "or"];

/// Words after `run windlass` that are no command: `run windlass on h1`.
const ADVERBS: [&str; 3] = ["again", "on", "once"];

/// The commands that a text names and that do not exist. In a page of documentation, commands are in code.
fn missing_commands(text: &str, is_page: bool, commands: &BTreeSet<String>) -> Vec<String> {
    let pattern = match is_page {
        true => r"(?m)(?<before>^ {4,}(?:\$ )?|`)windlass (?<command>[a-z][a-z-]*)(?: (?<below>[a-z][a-z-]*))?",
        false => r"(?<before>\S+\s+)?\bwindlass (?<command>[a-z][a-z-]*)(?: (?<below>[a-z][a-z-]*))?",
    };
    // A string of Rust goes on in the next line after a backslash.
    let text = Regex::new(r"\\\n\s*").unwrap().replace_all(text, "");
    let mut missing = Vec::new();
    for found in Regex::new(pattern).unwrap().captures_iter(&text) {
        let before = found.name("before").map_or("", |before| before.as_str()).trim();
        let before = before.trim_start_matches(|letter: char| !letter.is_alphabetic()).to_lowercase();
        let command = &found["command"];
        let is_meant = is_page || BEFORE_COMMANDS.contains(&&*before) && !ADVERBS.contains(&command);
        let has_commands = commands.range(format!("{command} ")..format!("{command}!")).next().is_some();
        match found.name("below").map(|below| format!("{command} {}", below.as_str())) {
            // In prose windlass may do something: `windlass reads`.
            _ if !commands.contains(command) && is_meant && !command.starts_with("ansible") => {
                missing.push(command.to_owned())
            }
            // `windlass runs on the controller` is no command either.
            Some(both) if has_commands && (is_page || command != "runs") && !commands.contains(&both) => {
                missing.push(both)
            }
            _ => {}
        }
    }
    missing
}

#[test]
fn every_command_that_a_text_names_exists() {
    let commands = commands();
    assert!(commands.contains("apply") && commands.contains("etcd backup"), "{commands:?}");
    let mut faults = String::new();
    each_text(|path, text| {
        let is_page = path.extension().is_some_and(|end| end == "md");
        for command in missing_commands(text, is_page, &commands) {
            faults.push_str(&format!("{}: windlass {command}\n", path.display()));
        }
    });
    assert!(faults.is_empty(), "these commands do not exist:\n{faults}");
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    let commands = commands();
    let in_rust = |code: &str| missing_commands(&shown_by_rust(code), false, &commands);
    assert_eq!(
        in_rust("fail(\"run windlass etcd \\\n     frobnicate\"); // run windlass never"),
        ["etcd frobnicate", "never"]
    );
    assert_eq!(in_rust("let hint = \"repair it, or run windlass mend FILE\";"), ["mend"]);
    assert!(in_rust("say(\"windlass reads it; run windlass again, or windlass apply -f {file}\")").is_empty());
    let in_page = |page: &str| missing_commands(page, true, &commands);
    assert_eq!(
        in_page("Run `windlass vault lock FILE`.\n\n    windlass mend -f karmada.yaml\n"),
        ["vault lock", "mend"]
    );
    assert!(in_page("With windlass mend is easy: `windlass etcd check`, `windlass ansible-playbook`.").is_empty());
}

#[test]
fn a_phrase_is_found_in_messages_comments_and_names_and_nowhere_else() {
    let in_rust =
        |code: &str| found(&shown_by_rust(code)).iter().map(|(line, phrase, _)| (*line, *phrase)).collect::<Vec<_>>();
    assert_eq!(in_rust("let a = 1;\nfail(\"the url is of no\\\n     use: x\");\n"), [(2, "of no use")]);
    assert_eq!(in_rust("/// Keys that it leads\n/// out of.\nfn a() {}\n"), [(1, "leads out")]);
    assert_eq!(in_rust("//! A run goes\n//! on.\n"), [(1, "goes on")]);
    assert_eq!(in_rust("let a = r#\"\"it\" is told\"#;"), [(1, "is told")]);
    assert_eq!(in_rust("let is_told = '\"'; // was told\n"), [(1, "was told")]);
    assert_eq!(in_rust("fn whoever(anew: bool) {}\n"), []);
    assert_eq!(in_rust("#[cfg(test)]\nmod tests {\n    const A: &str = \"made anew\";\n}\n"), []);
    let in_file = |name: &str, text: &str| found(&shown(Path::new(name), text).unwrap_or_default()).len();
    assert_eq!(in_file("a.yml", "- name: Think of a token\n"), 1);
    assert_eq!(in_file("a.yml", "# Whoever reads this\n- name: Generate a token\n"), 1);
    assert_eq!(in_file("a.j2", "# The server wants\n# a login.\n"), 1);
    assert_eq!(in_file("a.sh", "# It goes on without a lock.\nkill \"$pid\"\n"), 1);
    assert_eq!(in_file("a.md", "It goes on.\n\n## Glossary\n\n| retry | again | anew |\n"), 1);
    assert_eq!(in_file("a.md", "h2: file /a is another.\n"), 1);
    assert_eq!(in_file("a.md", "is anotherness, this another\n"), 0);
    assert_eq!(in_file("tools/a", "#!/bin/bash\n# Whoever reads this\n"), 1);
    assert_eq!(in_file("a.png", "whoever"), 0);
    assert_eq!(in_file("LICENSE", "whoever"), 0);
}
