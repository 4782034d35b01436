//! Reading the value of a keyword: its type, its value, the templates and expressions in it.

use super::keywords::{Keyword, KeywordType};
use super::loader::LoadState;
use super::{SourceValue, variable_names};
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};
use crate::value::{Origin, Vars, has_marks, truth};

/// The pairs of a mapping; none of what is no mapping.
pub(super) fn pairs(node: &Node) -> &[(Node, Node)] {
    match &node.kind {
        NodeKind::Map(pairs) => pairs,
        _ => &[],
    }
}

/// Whether nothing was written.
pub(super) fn is_null(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Null)
}

/// Whether it is a string with template marks, which may become anything.
pub(super) fn is_template(node: &Node) -> bool {
    node.tag.is_none() && node.as_str().is_some_and(has_marks)
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node.kind, NodeKind::Seq(_) | NodeKind::Map(_) | NodeKind::Null)
}

/// A boolean in any of the words that Ansible takes for one.
pub(super) fn bool_of(node: &Node) -> Option<bool> {
    match &node.kind {
        NodeKind::Bool(value) => Some(*value),
        NodeKind::Int(0) => Some(false),
        NodeKind::Int(1) => Some(true),
        NodeKind::Float(value) if *value == 0.0 => Some(false),
        NodeKind::Float(value) if *value == 1.0 => Some(true),
        NodeKind::Str(text) => truth::of_word(text),
        _ => None,
    }
}

pub(super) fn is_int(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Int(_) | NodeKind::BigInt(_) => true,
        NodeKind::Float(value) => value.fract() == 0.0,
        NodeKind::Str(text) => text.trim().parse::<i64>().is_ok(),
        _ => false,
    }
}

pub(super) fn is_float(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Int(_) | NodeKind::BigInt(_) | NodeKind::Float(_) => true,
        NodeKind::Str(text) => text.trim().trim_end_matches('%').parse::<f64>().is_ok(),
        _ => false,
    }
}

/// Says what is wrong with the shape of what was written for a keyword, if something is.
fn misshapen(keyword: &Keyword, node: &Node) -> Option<Diagnostic> {
    if is_null(node) || is_template(node) {
        return None;
    }
    let scalars = |items: &[Node]| items.iter().find(|item| !is_scalar(item)).cloned();
    let (wanted, wrong) = match keyword.shape {
        KeywordType::Bool => ("true or false", bool_of(node).is_none().then_some(node.clone())),
        KeywordType::Int => ("a whole number", (!is_int(node)).then_some(node.clone())),
        KeywordType::Float => ("a number", (!is_float(node)).then_some(node.clone())),
        KeywordType::Text => ("a string", (!is_scalar(node)).then_some(node.clone())),
        KeywordType::Texts => (
            "a string or a list of strings",
            match &node.kind {
                NodeKind::Seq(items) => scalars(items),
                NodeKind::Map(_) => Some(node.clone()),
                _ => None,
            },
        ),
        KeywordType::Choice(words) => return bad_choice(keyword, node, words),
        KeywordType::Mapping => ("a mapping", (!matches!(node.kind, NodeKind::Map(_))).then_some(node.clone())),
        KeywordType::Mappings => ("a mapping", not_mappings(node)),
        KeywordType::Loop => return not_a_list(keyword, node),
        KeywordType::Conditions | KeywordType::Any => return None,
    };
    let wrong = wrong?;
    let message = format!("{:?} must be {wanted}, this is {}", keyword.name, wrong.what());
    Some(Diagnostic::new(message, Some(&wrong.origin)))
}

fn not_mappings(node: &Node) -> Option<Node> {
    let bad = |item: &&Node| !matches!(item.kind, NodeKind::Map(_) | NodeKind::Null) && !is_template(item);
    match &node.kind {
        NodeKind::Seq(items) => items.iter().find(bad).cloned(),
        _ => Some(node).filter(bad).cloned(),
    }
}

fn not_a_list(keyword: &Keyword, node: &Node) -> Option<Diagnostic> {
    let hint = match &node.kind {
        NodeKind::Seq(_) => return None,
        NodeKind::Map(_) => "write \"{{ ... | dict2items }}\"",
        NodeKind::Str(text) if variable_names::is_valid(text) => {
            let hint = format!("write \"{{{{ {text} }}}}\" if this is a variable");
            let message = format!("{:?} must be a list, this is {}", keyword.name, node.what());
            return Some(Diagnostic::new(message, Some(&node.origin)).hint(hint));
        }
        _ => "write a list",
    };
    let message = format!("{:?} must be a list, this is {}", keyword.name, node.what());
    Some(Diagnostic::new(message, Some(&node.origin)).hint(hint))
}

fn bad_choice(keyword: &Keyword, node: &Node, words: &'static [&'static str]) -> Option<Diagnostic> {
    let written = node.as_str();
    if written.is_some_and(|word| words.contains(&word)) {
        return None;
    }
    let message = format!("{:?} must be one of {}, this is {}", keyword.name, words.join(", "), node.what());
    let complaint = Diagnostic::new(message, Some(&node.origin));
    Some(complaint.hint_if_any(written.and_then(|word| did_you_mean(word, words.iter().copied()))))
}

impl LoadState<'_> {
    /// Checks the shape of what was written for a keyword; false if it is wrong, which has been complained of.
    pub(super) fn shaped(&mut self, keyword: &Keyword, node: &Node) -> bool {
        match misshapen(keyword, node) {
            Some(complaint) => {
                self.complain(complaint);
                false
            }
            None => true,
        }
    }

    /// The value of a node, its templates checked.
    pub(super) fn written(&mut self, node: &Node) -> Option<SourceValue> {
        let value = node.to_value(&self.loader.keyring);
        let value = self.collect(value)?;
        let checked = self.loader.known.check(&value);
        self.collect(checked)?;
        Some(SourceValue { value, origin: node.origin.clone() })
    }

    /// As [`LoadState::written`], item by item: a list's, or the lone value as one.
    pub(super) fn written_list(&mut self, node: &Node) -> Vec<SourceValue> {
        match &node.kind {
            NodeKind::Null => Vec::new(),
            NodeKind::Seq(items) => items.iter().filter_map(|item| self.written(item)).collect(),
            _ => self.written(node).into_iter().collect(),
        }
    }

    /// Conditions: expressions without braces, booleans, or a list of them. Braces are tolerated with a warning.
    pub(super) fn conditions(&mut self, keyword: &str, node: &Node) -> Vec<SourceValue> {
        match &node.kind {
            NodeKind::Null => Vec::new(),
            NodeKind::Seq(items) => items.iter().filter_map(|item| self.condition(keyword, item)).collect(),
            _ => self.condition(keyword, node).into_iter().collect(),
        }
    }

    fn condition(&mut self, keyword: &str, node: &Node) -> Option<SourceValue> {
        match &node.kind {
            NodeKind::Bool(_) => self.written(node),
            NodeKind::Str(text) if is_template(node) => {
                let warning = format!("{keyword:?} is already an expression and needs no braces");
                let hint = match text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
                    Some(bare) if !has_marks(bare) => format!("write {}: {}", keyword, bare.trim()),
                    _ => "write variables without braces, and join texts with ~".to_owned(),
                };
                self.warn(Diagnostic::new(warning, Some(&node.origin)).hint(hint));
                self.written(node)
            }
            NodeKind::Str(text) => {
                let checked = self.check_expression(text, &node.origin);
                checked.then(|| self.written(node)).flatten()
            }
            _ => {
                let message = format!("{keyword:?} must be an expression, this is {}", node.what());
                self.complain(Diagnostic::new(message, Some(&node.origin)));
                None
            }
        }
    }

    /// Checks an expression without braces; false if it is wrong, which has been complained of.
    pub(super) fn check_expression(&mut self, text: &str, origin: &Origin) -> bool {
        let checked = self.loader.known.check_expression(text, origin);
        self.collect(checked).is_some()
    }

    /// Variables: a mapping with names for keys, templates checked.
    pub(super) fn vars(&mut self, node: &Node) -> Vars {
        for (key, _) in pairs(node) {
            self.variable_name(key);
        }
        self.values(node)
    }

    /// As [`LoadState::vars`], of a file: an invalid name is a warning, because `vars['a-b']` can still reach it.
    pub(super) fn file_vars(&mut self, node: &Node) -> Vars {
        for (key, _) in pairs(node) {
            if let Some(warning) = key.as_str().and_then(|name| variable_names::wrong(name, &key.origin)) {
                self.warn(warning);
            }
        }
        self.values(node)
    }

    fn values(&mut self, node: &Node) -> Vars {
        let vars = node.to_vars(&self.loader.keyring);
        let vars = self.collect(vars).unwrap_or_default();
        for value in vars.values() {
            let checked = self.loader.known.check(value);
            self.collect(checked);
        }
        vars
    }

    /// Complains of a key that cannot be the name of a variable.
    pub(super) fn variable_name(&mut self, key: &Node) {
        if let Some(complaint) = key.as_str().and_then(|name| variable_names::wrong(name, &key.origin)) {
            self.complain(complaint);
        }
    }

    /// True or false where it must be known before the run.
    pub(super) fn read_flag(&mut self, written: Option<&SourceValue>) -> Option<bool> {
        let written = written?;
        let extra_vars = self.loader.extra_vars.clone();
        let known = self.render_static(written, &extra_vars)?;
        if let Ok(value) = bool::try_from(known.clone()) {
            return Some(value);
        }
        let value = truth::of_word(&known.to_string());
        if value.is_none() {
            let message = format!("this must be true or false, it is {known}");
            self.complain(Diagnostic::new(message, Some(&written.origin)));
        }
        value
    }
}
