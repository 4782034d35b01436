//! Results and facts that no task uses.

use crate::lint::project::says_yes;
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "register-unused",
    level: Level::Advice,
    about: "A variable of register or set_fact that nothing uses: its name is misspelled somewhere, or it is not needed.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks() {
        if let Some(register) = task.map.get("register")
            && let Some(name) = register.as_str()
            && project.mentions(name) == 0
            && !says_yes(task.map.get("ignore_errors"))
        {
            let complaint = Diagnostic::new(format!("nothing uses the registered {name:?}"), Some(&register.origin));
            found.add_finding(complaint.hint("remove it"));
        }
        if task.module() != "set_fact" {
            continue;
        }
        for (key, _) in task.arguments() {
            let name = key.as_str().unwrap_or_default();
            if name != "cacheable" && !name.contains("{{") && project.mentions(name) == 0 {
                let complaint = Diagnostic::new(format!("nothing uses the fact {name:?}"), Some(&key.origin));
                found.add_finding(complaint.hint("remove it"));
            }
        }
    }
}
