//! Modes written as numbers.

use crate::lint::{Findings, Level, Project, Rule};
use crate::value::doc::ArgumentKind;
use crate::value::origin::Diagnostic;
use crate::value::yaml::NodeKind;

pub(super) const RULE: Rule = Rule {
    id: "file-mode-number",
    level: Level::Advice,
    about: "YAML reads a mode without quotes as a number, and 0644 as an octal number only by its old rules.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some(doc) = task.doc else { continue };
        for (key, value) in task.arguments() {
            let is_mode =
                key.as_str().and_then(|name| doc.argument(name)).is_some_and(|found| found.kind == ArgumentKind::Mode);
            if !is_mode || !matches!(value.kind, NodeKind::Int(_)) {
                continue;
            }
            let written: String =
                value.origin.line_text().chars().skip(value.origin.column.saturating_sub(1)).collect();
            let written = written.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned();
            // The load itself warns of those without the zero: they mean something else.
            if written.starts_with('0') {
                let complaint = Diagnostic::new(format!("the mode {written} is a number"), Some(&value.origin));
                found.add_finding(complaint.hint(format!("write \"{written:0>4}\" in quotes")));
            }
        }
    }
}
