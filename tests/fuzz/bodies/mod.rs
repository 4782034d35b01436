//! What each target does with its input. The fuzzer (`targets/`) and the seeds' test (`tests/fuzz.rs`) share it.
//!
//! Any input may be refused; none may panic, overflow the stack or take memory without bound.

mod host;
mod inventory;
mod playbook;
mod reply;
mod template;
mod vault;

use std::path::PathBuf;

/// As much stack as the program gives its threads (`cli/launch.rs`).
const STACK: usize = 128 << 20;

/// A target's name and what it does with an input.
pub(crate) type Target = (&'static str, fn(&[u8]));

pub(crate) const TARGETS: [Target; 5] = [
    ("inventory", inventory::run),
    ("playbook", playbook::run),
    ("reply", reply::run),
    ("template", template::run),
    ("vault", vault::run),
];

/// Gives an input to a target. Panics if the target does.
pub(crate) fn run(name: &str, input: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("it is one of the targets");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || target(input));
        let done = thread.expect("a thread can be had").join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// A directory of its own for one input, gone with it.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a scratch directory can be made"))
    }

    /// Writes a file; gives its path.
    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).expect("the scratch directory takes a file");
        path
    }
}

/// Whether a text may do more than to be read: run programs or read devices, which only a person may ask for. The lookups
/// that stay inside must be called by their names, so that no name is put together.
fn reaches_out(input: &[u8]) -> bool {
    const INSIDE: [&str; 10] = [
        "dict",
        "flattened",
        "indexed_items",
        "items",
        "list",
        "nested",
        "sequence",
        "subelements",
        "together",
        "vars",
    ];
    let text = String::from_utf8_lossy(input);
    let calls = ["lookup", "query", "q"].iter().flat_map(|function| text.match_indices(function));
    let mut outside = calls.filter(|(at, function)| {
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let after = &text[at + function.len()..];
        if text[..*at].ends_with(part_of_word) || after.starts_with(part_of_word) {
            return false;
        }
        let name = after.strip_prefix("('").and_then(|rest| rest.split_once('\'')).map(|(name, _)| name);
        !name.is_some_and(|name| INSIDE.contains(&name))
    });
    ["/dev/", "/proc/", "/sys/"].iter().any(|place| text.contains(place)) || outside.next().is_some()
}
