//! Handlers that no task notifies.

use super::notify_unknown::{Notifications, handler_names};
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "handler-unused",
    level: Level::Advice,
    about: "A handler that nothing notifies never runs: its name is misspelled somewhere, or it is not needed.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    let notifications = Notifications::of_project(project);
    for handler in project.tasks().iter().filter(|task| task.is_handler && task.doc.is_some()) {
        let names = handler_names(handler);
        let is_notified = names.iter().any(|name| notifications.may_reach(name));
        if let (Some(first), false) = (names.first(), is_notified) {
            let complaint = Diagnostic::new(format!("nothing notifies the handler {first:?}"), Some(handler.origin()));
            found.add_finding(complaint.hint("add \"notify\" to the tasks it is for, or remove it"));
        }
    }
}
