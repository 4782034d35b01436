//! `state: latest` of packages.

use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "state-latest",
    level: Level::Advice,
    about: "state: latest makes hosts differ by the day of their installation; name a version, or use present.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some((_, value)) = task.argument("state") else { continue };
        if value.as_str() == Some("latest") {
            let message = format!("{} installs whatever is the latest version today", task.module());
            let hint = "use state: present, with a version where it matters";
            found.add_finding(Diagnostic::new(message, Some(&value.origin)).hint(hint));
        }
    }
}
