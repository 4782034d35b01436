//! `ignore_errors` whose result nobody can look at.

use crate::lint::project::says_yes;
use crate::lint::{Found, Level, Project, Rule};
use crate::value::origin::Complaint;

pub(super) const RULE: Rule = Rule {
    id: "ignore-errors",
    level: Level::Advice,
    about: "ignore_errors without register hides every failure, also those that nobody thought of.",
    check,
};

fn check(project: &Project, found: &mut Found) {
    for task in project.tasks() {
        let Some(ignore) = task.map.get("ignore_errors") else { continue };
        if says_yes(Some(ignore)) && task.map.get("register").is_none() {
            let complaint = Complaint::new("every failure of this task is ignored", Some(&ignore.origin));
            found.add(
                complaint.hint("say with failed_when which failure is none, or register the result and look at it"),
            );
        }
    }
}
