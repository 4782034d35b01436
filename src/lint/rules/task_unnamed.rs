//! Tasks and plays without a name.

use crate::lint::project::pairs;
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "task-unnamed",
    level: Level::Advice,
    about: "A task or play without a name is hard to find in the report of a run.",
    check,
};

/// Whose own words say enough, and which show nothing of themselves.
const NAMELESS: &[&str] = &["import_role", "import_tasks", "include_role", "include_tasks", "meta"];

fn check(project: &Project, found: &mut Findings) {
    for (_, play) in project.plays() {
        if play.get("name").is_none() {
            let origin = pairs(play).first().map_or(&play.origin, |(key, _)| &key.origin);
            found.add_finding(
                Diagnostic::new("this play has no name", Some(origin)).hint("add \"name\": the purpose of the play"),
            );
        }
    }
    for task in project.tasks() {
        // A handler without a name is a warning of the load already, unless it listens to something.
        let is_named = task.map.get("name").is_some() || task.is_handler;
        if !is_named && task.doc.is_some() && !NAMELESS.contains(&task.module()) {
            let complaint = Diagnostic::new("this task has no name", Some(task.origin()));
            found.add_finding(complaint.hint("add \"name\": what the task does"));
        }
    }
}
