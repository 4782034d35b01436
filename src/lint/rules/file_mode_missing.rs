//! Files that are made with whatever permissions happen to come out.

use crate::lint::project::Task;
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "file-mode-missing",
    level: Level::Advice,
    about: "A file or directory that is created without mode gets its mode from the host's umask, which differs from \
        host to host.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks().iter().filter(|task| makes_a_file(task)) {
        let origin = task.action.map_or(task.origin(), |(key, _)| &key.origin);
        let complaint = Diagnostic::new(format!("{} creates files without a mode", task.module()), Some(origin));
        found.add_finding(
            complaint.hint("add mode: \"0644\", \"0600\" for a secret, \"0755\" for a program or directory"),
        );
    }
}

/// Whether a task with its arguments in a mapping makes a new file, and says nothing of its mode.
fn makes_a_file(task: &Task<'_>) -> bool {
    let is = |name: &str, wanted: &[&str]| {
        task.argument(name).and_then(|(_, value)| value.as_str()).is_some_and(|value| wanted.contains(&value))
    };
    let makes = match task.module() {
        "assemble" | "copy" | "get_url" | "template" => true,
        "file" => is("state", &["directory", "touch"]),
        "blockinfile" | "lineinfile" => {
            task.argument("create").is_some_and(|(_, value)| crate::lint::project::says_yes(Some(value)))
        }
        _ => false,
    };
    makes && task.module_text().is_none() && task.map.get("args").is_none() && task.argument("mode").is_none()
}
