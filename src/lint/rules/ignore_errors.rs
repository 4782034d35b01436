//! `ignore_errors` whose result no task can use.

use crate::lint::project::says_yes;
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "ignore-errors",
    level: Level::Advice,
    about: "ignore_errors without register hides every failure, including unexpected ones.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some(ignore) = task.map.get("ignore_errors") else { continue };
        if says_yes(Some(ignore)) && task.map.get("register").is_none() {
            let complaint = Diagnostic::new("this task ignores every failure", Some(&ignore.origin));
            found.add_finding(
                complaint.hint("list acceptable results with failed_when, or register the result and check it"),
            );
        }
    }
}
