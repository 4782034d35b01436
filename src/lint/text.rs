//! The names that texts mention: what looks like a variable in templates, conditions and whatever else may be one.

use std::collections::HashMap;

use super::project::{node_items, pairs};
use crate::value::yaml::{Node, NodeKind};

/// Words that may be names of variables, and how often each is there.
#[derive(Default)]
pub(super) struct Names(HashMap<String, usize>);

impl Names {
    pub(super) fn count(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds those of all strings of a tree; the keys of mappings are places where names are given, not where they are used.
    pub(super) fn add_node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Str(text) => self.add_text(text),
            NodeKind::Seq(_) => node_items(node).iter().for_each(|item| self.add_node(item)),
            NodeKind::Map(_) => {
                for (key, value) in pairs(node) {
                    // The name that `register` gives is no use of it.
                    if key.as_str() != Some("register") {
                        self.add_node(value);
                    }
                    // A key may be a template itself.
                    if key.as_str().is_some_and(|key| key.contains("{{")) {
                        self.add_node(key);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn add_text(&mut self, text: &str) {
        for word in split_words(text) {
            match self.0.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(self.0.insert(word.to_owned(), 1)),
            }
        }
    }
}

/// The words of a text that could be names.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// The expressions in the template marks of a text, one after the other.
pub(super) fn expressions(text: &str) -> Vec<&str> {
    let parts = text.split("{{").skip(1);
    parts.filter_map(|part| part.split_once("}}")).map(|(inside, _)| inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_expressions_are_what_stands_in_braces() {
        let mut names = Names::default();
        names.add_text("{{ a_b | default(c.d) }} and 1x");
        assert_eq!([names.count("a_b"), names.count("c"), names.count("and"), names.count("x")], [1, 1, 1, 0]);
        assert_eq!(expressions("a {{ b }} c {{ d }} {{ e"), [" b ", " d "]);
    }
}
