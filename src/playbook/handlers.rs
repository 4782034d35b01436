//! Handlers: tasks with names by which they are notified.

use std::sync::Arc;

use super::include::IncludeKind;
use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::LoadState;
use super::read::pairs;
use super::{Handler, Step};
use crate::value::Origin;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

impl LoadState<'_> {
    /// The handlers of a list. `what` names the list in error messages.
    pub(super) fn handlers(&mut self, node: &Node, what: &str, around: &InheritedKeywords) -> Vec<Handler> {
        let NodeKind::Seq(items) = &node.kind else {
            self.steps(node, what, around, KeywordScope::Handler);
            return Vec::new();
        };
        items.iter().flat_map(|item| self.handler(item, around)).collect()
    }

    /// One entry: a handler, or those of a file that it imports.
    fn handler(&mut self, node: &Node, around: &InheritedKeywords) -> Vec<Handler> {
        if is_import(node) {
            return self.imported_handlers(node, around);
        }
        if let Some(inner) = node.get("block") {
            return self.handlers_of_block(node, inner, around);
        }
        let listen = self.listen(node);
        let one = Node { kind: NodeKind::Seq(vec![node.clone()]), ..node.clone() };
        let mut handlers = Vec::new();
        collect(self.steps(&one, "handlers", around, KeywordScope::Handler), &listen, &mut handlers);
        handlers
    }

    /// The handlers of a block, which gives them its keywords and has no effect itself.
    fn handlers_of_block(&mut self, map: &Node, inner: &Node, around: &InheritedKeywords) -> Vec<Handler> {
        self.complain_of_block_keys(map);
        for (key, _) in pairs(map).iter().filter(|(key, _)| matches!(key.as_str(), Some("rescue" | "always"))) {
            let message = format!("{:?} in a list of handlers", key.as_str().unwrap_or_default());
            let hint = "handlers run one by one, without their block; put the block into a file and include that";
            self.complain(Diagnostic::new(message, Some(&key.origin)).hint(hint));
        }
        let keywords = self.inherit(map, KeywordScope::Block, around);
        self.handlers(inner, "\"block\"", &around.with_keywords(keywords))
    }

    fn imported_handlers(&mut self, map: &Node, around: &InheritedKeywords) -> Vec<Handler> {
        let Some(chosen) = self.choose(map, KeywordScope::Handler, around) else { return Vec::new() };
        let Some((action, inside)) = self.import_place(map, &chosen, around, KeywordScope::Handler) else {
            return Vec::new();
        };
        let file = action.args.get("file");
        let origin = file.map_or(&chosen.origin, |file| &file.origin).clone();
        match self.known_text(file, &inside) {
            Some(file) => self.handlers_of_file(&file, &origin, &inside),
            None => Vec::new(),
        }
    }

    /// The handlers of a file.
    pub(super) fn handlers_of_file(&mut self, file: &str, origin: &Origin, around: &InheritedKeywords) -> Vec<Handler> {
        let Some((path, node)) = self.open_import(file, origin, around, "handlers") else { return Vec::new() };
        let inside = InheritedKeywords { directory: super::paths::parent(&path), ..around.clone() };
        self.open_files.push(path);
        let handlers = self.handlers(&node, "a file of handlers", &inside);
        self.open_files.pop();
        handlers
    }

    /// The names in `listen`.
    fn listen(&mut self, map: &Node) -> Vec<Arc<str>> {
        let Some(node) = map.get("listen") else { return Vec::new() };
        let shaped = keywords::at("listen", KeywordScope::Handler).is_some_and(|keyword| self.shaped(keyword, node));
        if !shaped {
            return Vec::new();
        }
        let written = self.written_list(node);
        written
            .iter()
            .filter_map(|name| self.render_static(name, &self.loader.extra_vars.clone()))
            .map(|n| n.to_string().into())
            .collect()
    }
}

/// Whether an entry is an `import_tasks`, whose handlers keep their own `listen`.
fn is_import(node: &Node) -> bool {
    pairs(node)
        .iter()
        .filter_map(|(key, _)| super::include::doc(key.as_str()?))
        .any(|doc| IncludeKind::of_doc(doc) == Some(IncludeKind::ImportTasks))
}

/// Handlers of steps; those of an imported role are inserted flat.
fn collect(steps: Vec<Step>, listen: &[Arc<str>], handlers: &mut Vec<Handler>) {
    for step in steps {
        match step {
            Step::Task(task) => handlers.push(Handler { task, listen: listen.to_vec(), include: None }),
            Step::Include(include) => {
                let task = include.task.clone();
                handlers.push(Handler { task, listen: listen.to_vec(), include: Some(include) });
            }
            Step::Block(block) => collect(block.steps.clone(), listen, handlers),
        }
    }
}

/// Reports handlers that no task can notify.
pub(super) fn nameless(handlers: &[Handler]) -> impl Iterator<Item = Diagnostic> + '_ {
    let nobodys =
        |handler: &&Handler| handler.task.name.is_none() && handler.listen.is_empty() && handler.include.is_none();
    handlers.iter().filter(nobodys).map(|handler| {
        Diagnostic::new("this handler has no \"name\" and no \"listen\"", Some(&handler.task.origin))
            .hint("add one of them, so that tasks can notify it")
    })
}
