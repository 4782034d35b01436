//! Modes that let everyone write.

use crate::lint::{Findings, Level, Project, Rule};
use crate::value::doc::ArgumentKind;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

pub(super) const RULE: Rule = Rule {
    id: "file-mode-open",
    level: Level::Advice,
    about: "With a mode that lets every user of the host write, every user can replace the content.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        let Some(doc) = task.doc else { continue };
        for (key, value) in task.arguments() {
            let is_mode =
                key.as_str().and_then(|name| doc.argument(name)).is_some_and(|found| found.kind == ArgumentKind::Mode);
            if is_mode && is_open(value) {
                let complaint = Diagnostic::new("every user of the host can write there", Some(&value.origin));
                found.add_finding(complaint.hint("give write permission only to the owner, or to a group"));
            }
        }
    }
}

fn is_open(value: &Node) -> bool {
    match &value.kind {
        NodeKind::Int(number) => number & 0o1002 == 0o0002,
        NodeKind::Str(text) => match u32::from_str_radix(text.trim(), 8) {
            // With the sticky bit, as on /tmp, users can delete only their own files.
            Ok(mode) => mode & 0o1002 == 0o0002,
            Err(_) => text.split(',').any(opens),
        },
        _ => false,
    }
}

/// Whether a symbolic part (`o+w`, `a=rwx`) gives others the right to write.
fn opens(part: &str) -> bool {
    let Some((who, rights)) = part.trim().split_once(['+', '=']) else { return false };
    let everyone = who.is_empty() || who.contains(['o', 'a']);
    everyone && rights.contains('w') && who.chars().all(|c| "ugoa".contains(c))
}

#[cfg(test)]
mod tests {
    use super::opens;

    #[test]
    fn only_parts_for_others_open_a_file() {
        assert!(opens("o+w") && opens("a=rwX") && opens("ugo=rw"));
        assert!(!opens("u=rw") && !opens("go-w") && !opens("o=r") && !opens("preserve"));
    }
}
