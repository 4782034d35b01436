//! `failed_when: false` without a reason: every failure passes, and so does an answer that says nothing.

use crate::lint::{Findings, Level, Project, Rule};
use crate::value::Origin;
use crate::value::origin::Diagnostic;
use crate::value::truth;
use crate::value::yaml::{Node, NodeKind};

/// How a reason begins: a comment directly above `failed_when`. Further lines of comment may follow it.
const REASON: &str = "# failed_when: ";

pub(super) const RULE: Rule = Rule {
    id: "failed-when-false",
    level: Level::Advice,
    about: "failed_when: false without a reason hides every failure, including unexpected ones.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some(condition) = task.map.get("failed_when") else { continue };
        if is_false(condition) && !has_reason(&condition.origin) {
            let complaint = Diagnostic::new("this task never reports a failure", Some(&condition.origin));
            found.add_finding(complaint.hint(
                "list the exit codes that you expect, as in failed_when: checked.rc not in [0, 1], or give the reason \
                 in a comment directly above: # failed_when: REASON",
            ));
        }
    }
}

/// Whether the condition is the constant false; of a list, which fails when all its conditions hold, whether one is.
fn is_false(condition: &Node) -> bool {
    match &condition.kind {
        NodeKind::Bool(value) => !value,
        NodeKind::Str(text) => truth::of_word(text) == Some(false),
        NodeKind::Seq(conditions) => conditions.iter().any(is_false),
        _ => false,
    }
}

/// Whether the comment directly above the line of the value gives a reason.
fn has_reason(value: &Origin) -> bool {
    let lines = (1..value.line).rev().map(|line| value.source.source_line(line).trim_start());
    let mut comment = lines.take_while(|line| line.starts_with('#'));
    comment.any(|line| line.strip_prefix(REASON).is_some_and(|reason| !reason.trim().is_empty()))
}
