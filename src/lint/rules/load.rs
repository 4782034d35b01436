//! What every load complains of: nothing would run.

use crate::lint::{Findings, Level, Project, Rule};

pub(super) const RULE: Rule = Rule {
    id: "load",
    level: Level::Error,
    about: "Errors that keep playbooks and roles from loading: invalid YAML, keywords, modules, arguments, templates, \
        missing files.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    project.errors.iter().for_each(|complaint| found.add_finding(complaint.clone()));
}
