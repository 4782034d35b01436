//! Unused variables of roles and plays.

use crate::lint::project::{FileRole, pairs};
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;
use crate::value::yaml::Node;

pub(super) const RULE: Rule = Rule {
    id: "variable-unused",
    level: Level::Advice,
    about: "A variable in a role's defaults or vars, or in a play's vars, that nothing uses.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for file in project.files.iter().filter(|file| file.sort == FileRole::Variables) {
        // Those of the inventory may be for anyone.
        if file.role.is_some() && matches!(file.folder.as_str(), "defaults" | "vars") {
            file.node.iter().for_each(|node| unused(project, node, "the role's variable", found));
        }
    }
    for (_, play) in project.plays() {
        play.get("vars").into_iter().for_each(|vars| unused(project, vars, "the play's variable", found));
    }
}

fn unused(project: &Project, vars: &Node, what: &str, found: &mut Findings) {
    for (key, _) in pairs(vars) {
        let name = key.as_str().unwrap_or_default();
        // Those that begin so are heeded by the engine itself.
        if !name.is_empty() && !name.starts_with("ansible_") && project.mentions(name) == 0 {
            let complaint = Diagnostic::new(format!("nothing uses {what} {name:?}"), Some(&key.origin));
            found.add_finding(complaint.hint("remove it, or correct the name where it is used"));
        }
    }
}
