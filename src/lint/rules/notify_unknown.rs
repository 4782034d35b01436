//! Notifications that reach no handler, and what both rules about handlers need.

use indexmap::IndexSet;

use crate::lint::project::{Task, node_items};
use crate::lint::{Findings, Level, Project, Rule};
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

pub(super) const RULE: Rule = Rule {
    id: "notify-unknown",
    level: Level::Error,
    about: "A task that notifies a missing handler fails as soon as it changes something.",
    check,
};

fn check(project: &Project, found: &mut Findings) {
    let tasks = project.tasks();
    let handlers = Words::of(tasks.iter().filter(|task| task.is_handler).flat_map(handler_names));
    // Handlers may come from a file that is known only while the play runs.
    let is_open = tasks.iter().any(|task| task.is_handler && task.module().starts_with("include"));
    for node in tasks.iter().flat_map(notified) {
        let name = node.as_str().unwrap_or_default();
        let is_known = [name, bare(name)].iter().any(|name| handlers.may_be(name));
        if is_known || is_open || name.is_empty() {
            continue;
        }
        let complaint = Diagnostic::new(format!("no such handler: {name:?}"), Some(&node.origin));
        let hint = did_you_mean(name, handlers.all.iter().map(String::as_str));
        found.add_finding(complaint.hint("a handler needs this name, or must listen to it").hint_if_any(hint));
    }
}

/// All notifications of a project.
pub(super) struct Notifications(Words);

impl Notifications {
    pub(super) fn of_project(project: &Project) -> Self {
        let tasks = project.tasks();
        let all = tasks.iter().flat_map(notified).filter_map(Node::as_str);
        Notifications(Words::of(all.flat_map(|name| [name.to_owned(), bare(name).to_owned()])))
    }

    /// Whether any of them may reach a handler of that name, as far as is known.
    pub(super) fn may_reach(&self, handler: &str) -> bool {
        self.0.may_be(handler)
    }
}

/// Names, each once. Few have templates, so that most are found without looking at all.
struct Words {
    all: IndexSet<String>,
    /// Those with templates.
    templates: Vec<String>,
}

impl Words {
    fn of(names: impl Iterator<Item = String>) -> Self {
        let all: IndexSet<String> = names.collect();
        let templates = all.iter().filter(|name| name.contains("{{")).cloned().collect();
        Words { all, templates }
    }

    /// Whether a name may be one of them; templates in either may be anything.
    fn may_be(&self, name: &str) -> bool {
        self.all.contains(name)
            || self.templates.iter().any(|template| fits(template, name))
            || name.contains("{{") && self.all.iter().any(|known| fits(name, known))
    }
}

/// What a handler is notified by: its name, and what it listens to.
pub(super) fn handler_names(handler: &Task<'_>) -> Vec<String> {
    let named = [handler.map.get("name"), handler.map.get("listen")].into_iter().flatten();
    named.flat_map(texts).filter_map(Node::as_str).map(str::to_owned).collect()
}

/// What a task notifies.
fn notified<'a>(task: &Task<'a>) -> Vec<&'a Node> {
    task.map.get("notify").map(texts).unwrap_or_default()
}

fn texts(node: &Node) -> Vec<&Node> {
    match node.kind {
        NodeKind::Seq(_) => node_items(node).iter().collect(),
        _ => vec![node],
    }
}

/// The name of a handler in a notification: `role : name` means the name.
fn bare(name: &str) -> &str {
    name.split_once(" : ").map_or(name, |(_, bare)| bare)
}

/// Whether a text with templates may become another text.
fn fits(template: &str, text: &str) -> bool {
    let (Some(start), Some(end)) = (template.find("{{"), template.rfind("}}")) else { return false };
    let (before, after) = (&template[..start], &template[end + 2..]);
    text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after)
}

#[cfg(test)]
mod tests {
    use super::{Words, bare};

    #[test]
    fn a_template_may_become_any_name_that_it_begins_and_ends_like() {
        let may_be = |name: &str, known: &str| Words::of(std::iter::once(known.to_owned())).may_be(name);
        assert!(may_be("Restart {{ x }} now", "Restart etcd now"));
        assert!(may_be("Restart etcd", "Restart {{ service }}"));
        assert!(may_be("Restart {{ x }}", "Restart {{ y }}"));
        assert!(may_be(bare("etcd : Restart"), "Restart"));
        assert!(!may_be("Stop {{ x }}", "Restart etcd") && !may_be("Restart", "restart"));
    }
}
