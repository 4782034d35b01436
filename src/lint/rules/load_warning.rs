//! The warnings of a load.

use crate::lint::{Findings, Level, Project, Rule};

pub(super) const RULE: Rule = Rule {
    id: "load-warning",
    level: Level::Advice,
    about: "Warnings of loading: conditions with braces, duplicate keys, handlers that nothing can notify.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    project.warnings.iter().for_each(|complaint| found.add_finding(complaint.clone()));
}
