//! Lists of steps, and blocks among them.

use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::LoadState;
use super::read::pairs;
use super::{Block, Step};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

impl LoadState<'_> {
    /// The steps of a list. `what` names the list in error messages.
    pub(super) fn steps(
        &mut self,
        node: &Node,
        what: &str,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Vec<Step> {
        let NodeKind::Seq(items) = &node.kind else {
            if !matches!(node.kind, NodeKind::Null) {
                let complaint =
                    Diagnostic::new(format!("{what} must be a list, this is {}", node.what()), Some(&node.origin));
                self.complain(complaint.hint("start each task with \"- \""));
            }
            return Vec::new();
        };
        items.iter().flat_map(|item| self.step(item, around, place)).collect()
    }

    /// One entry of a list: a block, or a task with whatever comes of it.
    fn step(&mut self, node: &Node, around: &InheritedKeywords, place: KeywordScope) -> Vec<Step> {
        if !matches!(node.kind, NodeKind::Map(_)) {
            let complaint =
                Diagnostic::new(format!("a task must be a mapping, this is {}", node.what()), Some(&node.origin));
            self.complain(match node.as_str() {
                Some(text) if self.is_module(text) => complaint.hint(format!("write \"{}:\"", text.trim())),
                _ => complaint,
            });
            return Vec::new();
        }
        let is_block = |key: &Node| matches!(key.as_str(), Some("block" | "rescue" | "always"));
        match pairs(node).iter().find(|(key, _)| is_block(key)) {
            Some((key, _)) if node.get("block").is_none() => {
                let message = format!("{:?} without \"block\"", key.as_str().unwrap_or_default());
                self.complain(Diagnostic::new(message, Some(&key.origin)).hint("indent it as far as its block"));
                Vec::new()
            }
            Some(_) => vec![Step::Block(Arc::new(self.block(node, around)))],
            None => self.task(node, around, place),
        }
    }

    /// Complains of keys that blocks do not have.
    pub(super) fn complain_of_block_keys(&mut self, map: &Node) {
        for (key, _) in pairs(map) {
            let name = key.as_str().unwrap_or_default();
            if keywords::at(name, KeywordScope::Block).is_some() {
                continue;
            }
            let complaint = if self.is_module(name) {
                Diagnostic::new(format!("module {name:?} next to \"block\""), Some(&key.origin))
                    .hint("start another task with \"-\"")
            } else {
                keywords::unknown(name, &key.origin, KeywordScope::Block)
            };
            self.complain(complaint);
        }
    }

    fn block(&mut self, map: &Node, around: &InheritedKeywords) -> Block {
        self.complain_of_block_keys(map);
        let name = map.get("name").and_then(|name| self.written(name)).map(|name| name.value);
        let keywords = self.inherit(map, KeywordScope::Block, around);
        let inside = around.with_keywords(keywords.clone());
        let mut part = |name: &str| match map.get(name) {
            Some(node) => self.steps(node, &format!("{name:?}"), &inside, KeywordScope::Task),
            None => Vec::new(),
        };
        let (steps, rescue, always) = (part("block"), part("rescue"), part("always"));
        Block { origin: map.origin.clone(), name, role_entry: None, steps, rescue, always, keywords }
    }
}
