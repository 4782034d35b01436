//! Notifications that reach no handler, and what both rules about handlers need.

use crate::lint::project::{Task, items};
use crate::lint::{Found, Level, Project, Rule};
use crate::value::origin::{Complaint, nearest};
use crate::value::yaml::{Node, NodeKind};

pub const RULE: Rule = Rule {
    id: "notify-unknown",
    level: Level::Error,
    about: "A notification that no handler has for its name or listens to fails the task, once it changes something.",
    check,
};

fn check(project: &Project, found: &mut Found) {
    let tasks = project.tasks();
    let handlers: Vec<String> = tasks.iter().filter(|task| task.is_handler).flat_map(names).collect();
    // Handlers may come from a file that is known only while the play runs.
    let is_open = tasks.iter().any(|task| task.is_handler && task.module().starts_with("include"));
    for node in tasks.iter().flat_map(notified) {
        let name = node.as_str().unwrap_or_default();
        let is_known = handlers.iter().any(|handler| reaches(name, handler));
        if is_known || is_open || name.is_empty() {
            continue;
        }
        let complaint = Complaint::new(format!("there is no handler {name:?}"), Some(&node.origin));
        found.add(match nearest(name, handlers.iter().map(String::as_str)) {
            Some(near) => complaint.hint(format!("did you mean {near:?}?")),
            None => complaint.hint("handlers are found by their name, or by what they listen to"),
        });
    }
}

/// All notifications of a project.
pub struct Notifications(Vec<String>);

impl Notifications {
    pub fn of(project: &Project) -> Self {
        let tasks = project.tasks();
        let all = tasks.iter().flat_map(notified).filter_map(Node::as_str).map(str::to_owned);
        Notifications(all.collect())
    }

    /// Whether any of them reaches a handler of that name, as far as can be told.
    pub fn may_reach(&self, handler: &str) -> bool {
        self.0.iter().any(|name| reaches(name, handler))
    }
}

/// What a handler is notified by: its name, and what it listens to.
pub fn names(handler: &Task<'_>) -> Vec<String> {
    let named = [handler.map.get("name"), handler.map.get("listen")].into_iter().flatten();
    named.flat_map(texts).filter_map(Node::as_str).map(str::to_owned).collect()
}

/// What a task notifies.
fn notified<'a>(task: &Task<'a>) -> Vec<&'a Node> {
    task.map.get("notify").map(texts).unwrap_or_default()
}

fn texts(node: &Node) -> Vec<&Node> {
    match node.kind {
        NodeKind::Seq(_) => items(node).iter().collect(),
        _ => vec![node],
    }
}

/// Whether a notification may mean a handler; templates in either may be anything. `role : name` means the name.
fn reaches(name: &str, handler: &str) -> bool {
    let bare = name.split_once(" : ").map_or(name, |(_, bare)| bare);
    [name, bare].iter().any(|name| *name == handler || fits(name, handler) || fits(handler, name))
}

/// Whether a text with templates may become another text.
fn fits(template: &str, text: &str) -> bool {
    let (Some(start), Some(end)) = (template.find("{{"), template.rfind("}}")) else { return false };
    let (before, after) = (&template[..start], &template[end + 2..]);
    text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after)
}

#[cfg(test)]
mod tests {
    use super::reaches;

    #[test]
    fn a_template_may_become_any_name_that_it_begins_and_ends_like() {
        assert!(reaches("Restart {{ x }} now", "Restart etcd now"));
        assert!(reaches("etcd : Restart", "Restart"));
        assert!(reaches("Restart etcd", "Restart {{ service }}"));
        assert!(!reaches("Stop {{ x }}", "Restart etcd") && !reaches("Restart", "restart"));
    }
}
