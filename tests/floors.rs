//! The shape of the house: a folder uses lower floors only, only the faces print, files stay small and form no large circles.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};

use regex::Regex;

#[path = "floors/circles.rs"]
mod circles;
#[path = "floors/names.rs"]
mod names;
#[path = "floors/source.rs"]
mod source;

/// The floors of `src/lib.rs`; folders on one floor do not know each other.
const FLOORS: &[(&str, u8)] = &[
    ("value", 0),
    ("template", 1),
    ("playbook", 1),
    ("resource", 1),
    ("runs", 1),
    ("settings", 1),
    ("connection", 1),
    ("bundle", 1),
    ("kubernetes", 2),
    ("remote", 2),
    ("credentials", 3),
    ("http", 3),
    ("inventory", 4),
    ("modules", 5),
    ("s3", 5),
    ("upstream", 5),
    ("engine", 6),
    ("launch", 7),
    ("report", 7),
    ("deployment", 8),
    ("lint", 8),
    ("schema", 8),
    ("worker", 9),
    ("operator", 10),
    ("serve", 10),
    ("cli", 11),
];

fn sources() -> Vec<(PathBuf, String)> {
    let found = sources_below("src");
    assert!(found.len() > 50, "the walk found only {} files", found.len());
    found
}

/// The Rust files below a folder of the repository.
fn sources_below(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
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

/// The first names of a path, or of each path in a list: `a`, `b` of `{a::x, b::{y, z}}`.
fn first_names(text: &str) -> Vec<&str> {
    let until = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let Some(list) = text.strip_prefix('{') else { return text.split(until).next().into_iter().collect() };
    let (mut depth, mut begun, mut names) = (0, true, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begun = true,
            c if begun && !c.is_whitespace() => {
                names.extend(list[at..].split(until).next());
                begun = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn the_names_of_a_list_are_seen() {
    assert_eq!(first_names("value::Vars;"), ["value"]);
    assert_eq!(first_names("{engine::{self, Job}, value, report::x};"), ["engine", "value", "report"]);
}

/// Without the tests at the foot, and without comments.
fn code(text: &str) -> String {
    source::without_tests(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_folder_has_a_floor() {
    let mut folders: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    folders.sort();
    let mut known: Vec<&str> = FLOORS.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(folders, known, "put every folder of src on a floor");
}

#[test]
fn a_folder_uses_lower_floors_only() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(own) = folder(&path) else { continue };
        let text = code(&text);
        for (at, _) in text.match_indices("crate::") {
            for used in first_names(&text[at + 7..]) {
                let known = FLOORS.iter().any(|(name, _)| *name == used);
                if known && used != own && floor(used) >= floor(own) {
                    wrong.push(format!("{}: {own} uses {used}", path.display()));
                }
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

/// A face reads the environment and the working directory and passes them on, so that two runs in one process may have others.
#[test]
fn only_a_face_reads_the_environment() {
    let reads = ["env::var", "env::current_dir", "env::home_dir", "env::temp_dir", "path::absolute"];
    let wrong = |path: &Path, text: &str| {
        let text = code(text);
        let of_process = text.contains("::of_process") && !path.ends_with("src/cli/mod.rs");
        of_process || reads.iter().any(|read| text.contains(read))
    };
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !is_tests(path) && !path.ends_with("src/value/surroundings.rs") && wrong(path, text))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// What waits does so in the runtime of the face: a second one inside of it blocks a thread of the first.
#[test]
fn only_a_face_starts_a_runtime() {
    let starts = ["runtime::Builder", "Builder::new_current_thread", "Builder::new_multi_thread", "Runtime::new"];
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, _)| !is_tests(path) && folder(path) != Some("cli"))
        .filter(|(_, text)| starts.iter().any(|start| code(text).contains(start)))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// `cannot_run` fails where every test has to run; a test that only prints would pass.
#[test]
fn a_test_skips_itself_in_one_way_only() {
    let wrong: Vec<_> = ["src", "tests"]
        .into_iter()
        .flat_map(sources_below)
        // `support/testing.rs` has the one way.
        .filter(|(path, text)| !path.ends_with("support/testing.rs") && skips_itself(text))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Whether a test prints that it is skipped, instead of failing where every test has to run.
fn skips_itself(text: &str) -> bool {
    ["print", "println", "eprint", "eprintln"].iter().any(|name| text.contains(&format!("{name}!(\"skipp")))
}

#[test]
fn a_test_that_skips_itself_is_found() {
    assert!(skips_itself(&format!("eprintln!({}skipped: no docker\");", '"')));
    assert!(!skips_itself("cannot_run(\"docker\")"));
}

/// What a process keeps, and why two runs cannot see each other in it.
const KEPT_BY_THE_PROCESS: &[(&str, &str)] = &[
    ("CARRIED", "the playbooks in the binary that a command uses; of the thread that runs it"),
    ("COMPILED", "patterns, by their text"),
    ("COPY", "where what a command prints goes besides; of the thread that runs it"),
    ("ENGINES", "template engines, by the filters and lookups that they have; nothing in one depends on anything else"),
    ("FAILED", "of the text that a thread renders, until it is rendered"),
    ("FAULT", "of the text that a thread renders, until it is rendered"),
    ("GUARDED", "of the text that a thread renders, until it is rendered"),
    (
        "HANDED_OVER",
        "secrets that this process got from the server that started it, at standard input, for one document",
    ),
    ("NESTED", "of the text that a thread renders, until it is rendered"),
    ("ONCE", "whether the process has its panic hook"),
    ("OPENED", "own modules, by name, file and style; a task reads the file again"),
    ("OUTPUT", "of the text that a thread renders, until it is rendered"),
    ("RUNNING", "of the text that a thread renders, until it is rendered"),
    ("WORDING", "how one command prints messages; of the thread that runs it"),
];

/// The names of statics that change: what lasts as long as the process.
fn changing_statics(text: &str) -> Vec<&str> {
    let changing = ["Mutex<", "RwLock<", "Atomic", "OnceLock<", "OnceCell<", "Once ", "Cell<", "TextCache<"];
    let named = Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?static (?:mut )?(\w+):([^;=]*)").unwrap();
    let statics = named.captures_iter(text).map(|found| found.extract().1);
    statics.filter(|[_, kind]| changing.iter().any(|word| kind.contains(word))).map(|[name, _]| name).collect()
}

#[test]
fn caches_and_registries_belong_to_a_run() {
    let sources: Vec<_> = sources().into_iter().map(|(path, text)| (path, code(&text))).collect();
    let mut found: Vec<_> = sources.iter().flat_map(|(_, text)| changing_statics(text)).collect();
    found.sort_unstable();
    let expected: Vec<_> = KEPT_BY_THE_PROCESS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, expected, "put it into the run, or say above why two runs cannot see each other in it");
}

#[test]
fn a_static_that_changes_is_found() {
    let text = "static A: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);\n    pub static B: AtomicBool = x;\n\
        static C: &str = \"\";\npub(super) static D: Mutex<u8> = x;\nthread_local! {\n    static E: Cell<u8> = const { x };\n    \
        pub(in crate::a) static F: RefCell<u8> = x;\n}\nstatic G:\n    RwLock<u8> = x;\nstatic mut H: OnceCell<u8> = x;\n";
    assert_eq!(changing_statics(text), ["A", "B", "D", "E", "F", "G", "H"]);
}

#[test]
fn every_file_says_what_it_is() {
    let wrong: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path).collect();
    assert!(wrong.is_empty(), "without a //! at the top: {wrong:?}");
}

/// Files with more than 400 lines of code, and why they are not split.
const LONG_FILES: &[(&str, &str)] = &[
    ("src/engine/item.rs", "the steps of one task on one host, in their order"),
    ("src/engine/precedence.rs", "the order of precedence of variables, in one place"),
    ("src/modules/copy.rs", "half of it is the documentation of its arguments"),
    ("src/modules/mod.rs", "what a module is; a third of it is the list of modules"),
    ("src/modules/mount.rs", "half of it is the documentation of its arguments"),
    ("src/modules/package/apt.rs", "half of it is the documentation of its arguments"),
    ("src/modules/package/dnf.rs", "half of it is the documentation of its arguments"),
    ("src/modules/synchronize.rs", "half of it is the documentation of its arguments"),
    ("src/modules/systemd_service.rs", "two modules with the documentation of their arguments"),
    ("src/modules/user.rs", "half of it is the documentation of its arguments"),
    ("src/playbook/keywords_of_tasks.rs", "a list"),
    ("src/remote/session.rs", "one protocol, both directions"),
    ("src/report/ansible/mod.rs", "one form of output"),
    ("src/settings/list.rs", "a list"),
    ("src/template/behaviour.rs", "a table of tests"),
    ("src/template/jinja_tests.rs", "a list"),
];

#[test]
fn files_stay_readable() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let long: std::collections::BTreeSet<_> = sources()
        .into_iter()
        .filter(|(path, text)| !is_tests(path) && code(text).lines().count() > 400)
        .map(|(path, _)| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    let expected = LONG_FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(long, expected, "split these, or take them off the list");
}

/// A module that uses another one, and why.
const MODULES_THAT_USE_OTHERS: &[(&str, &str)] = &[
    // A new source is followed by `apt-get update`.
    ("apt_sources", "package"),
    // It waits until the host is back.
    ("reboot", "wait_for_connection"),
    // Both take variables of any name.
    ("set_stats", "set_fact"),
];

#[test]
fn modules_do_not_know_each_other() {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/modules");
    let own = |path: &Path| -> Option<(String, usize)> {
        let inside = path.strip_prefix(&modules).ok()?;
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        let name = parts[0].trim_end_matches(".rs").to_owned();
        let depth = parts.len() - usize::from(parts.len() > 1 && parts.last() == Some(&"mod.rs"));
        (!matches!(name.as_str(), "mod" | "support")).then_some((name, depth))
    };
    let sources: Vec<(String, usize, String)> = sources()
        .into_iter()
        .filter(|(path, _)| !is_tests(path))
        .filter_map(|(path, text)| own(&path).map(|(name, depth)| (name, depth, code(&text))))
        .collect();
    let names: std::collections::BTreeSet<&str> = sources.iter().map(|(name, ..)| name.as_str()).collect();
    assert!(names.len() > 60, "{names:?}");
    let mut found = std::collections::BTreeSet::new();
    for (name, depth, text) in &sources {
        for start in ["crate::modules::".to_owned(), "super::".repeat(*depth)] {
            for (at, _) in text.match_indices(&start) {
                // `super::super::` has `super::` in it.
                if at > 0 && text[..at].ends_with("::") {
                    continue;
                }
                let rest = &text[at + start.len()..];
                let used = match rest.strip_prefix('{') {
                    Some(list) => &list[..list.find("};").unwrap_or(0)],
                    None => rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default(),
                };
                let words = used.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let others = words.filter(|word| *word != name.as_str() && names.contains(word));
                found.extend(others.map(|other| (name.as_str(), other)));
            }
        }
    }
    let expected: std::collections::BTreeSet<(&str, &str)> = MODULES_THAT_USE_OTHERS.iter().copied().collect();
    assert_eq!(found, expected);
}
