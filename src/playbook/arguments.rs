//! The arguments of a module, checked against its documentation: names, types, choices, required ones.

use std::sync::Arc;

use indexmap::IndexMap;

use super::action::TaskAction;
use super::free_form::{self, UnbalancedQuote};
use super::loader::LoadState;
use super::read::{bool_of, is_float, is_int, is_null, is_template, pairs};
use super::{Action, Keywords, SourceValue, include, variable_names};
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, COMMAND_MODULES, Doc};
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};
use crate::value::{Origin, Template, has_marks, truth};

type Arguments = IndexMap<Arc<str>, SourceValue>;

impl LoadState<'_> {
    /// The arguments of a task: those at the module's name, and below them those of `args`.
    pub(super) fn arguments(&mut self, chosen: &TaskAction, args: Option<&Node>, keywords: &Keywords) -> Action {
        let doc = chosen.doc;
        let mut all = Arguments::new();
        let mut more_args = None;
        let mut complete = true;
        if let Some(args) = args.filter(|args| !is_null(args)) {
            if is_template(args) {
                more_args = self.written(args);
            } else {
                complete &= self.mapping(doc, args, &mut all);
            }
        }
        match &chosen.arguments {
            None => {}
            Some(node) if matches!(node.kind, NodeKind::Map(_)) => complete &= self.mapping(doc, node, &mut all),
            Some(node) => complete &= self.text(chosen, node, &mut all, &mut more_args),
        }
        // What is missing may be among what could not be read, or come from defaults.
        if complete && more_args.is_none() && !has_defaults(doc, keywords) {
            self.complain_of_missing(chosen, &all);
        }
        Action { doc, written: chosen.written.clone(), args: all, more_args }
    }

    /// Arguments as a mapping; false if something was wrong.
    fn mapping(&mut self, doc: &'static Doc, node: &Node, all: &mut Arguments) -> bool {
        let mut right = true;
        for (key, value) in pairs(node) {
            let Some(name) = key.as_str() else {
                let message = format!("the name of an argument must be a string, this is {}", key.what());
                self.complain(Diagnostic::new(message, Some(&key.origin)));
                right = false;
                continue;
            };
            let Some(argument) = self.argument(doc, name, &key.origin) else {
                right = false;
                continue;
            };
            right &= self.argument_fits(doc, argument, value);
            match self.written(value) {
                Some(written) => right &= self.add_argument(doc, argument, name, written, &key.origin, all),
                None => right = false,
            }
        }
        right
    }

    /// Arguments in the short form; false if something was wrong.
    fn text(&mut self, chosen: &TaskAction, node: &Node, all: &mut Arguments, more: &mut Option<SourceValue>) -> bool {
        let doc = chosen.doc;
        let Some(text) = scalar_text(node) else {
            let message = format!("the arguments of {} must be a mapping, this is {}", doc.name, node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
            return false;
        };
        if doc.free_form.is_none() && is_lone_expression(&text) {
            *more = self.written(node);
            return true;
        }
        let is_command = COMMAND_MODULES.contains(&doc.name);
        let is_key = |key: &str| !is_command || key != doc.free_form.unwrap_or_default() && doc.argument(key).is_some();
        let form = match free_form::parse_free_form(&text, is_key) {
            Ok(form) => form,
            Err(unbalanced) => {
                self.complain(unbalanced_text(doc, node, &text, &unbalanced));
                return false;
            }
        };
        let mut right = true;
        if !form.text.is_empty() {
            let origin = place_in(node, &text, form.text_at);
            let Some(argument) = doc.free_form.and_then(|name| doc.argument(name)) else {
                self.complain(no_free_form(doc, &form.text, &origin));
                return false;
            };
            let part = part_of(node, &form.text, &origin);
            right &= self.text_argument(doc, argument, argument.name, &part, all);
        }
        for (key, value, at) in &form.pairs {
            let origin = place_in(node, &text, *at);
            match self.argument(doc, key, &origin) {
                Some(argument) => {
                    let part = part_of(node, value, &origin);
                    right &= self.text_argument(doc, argument, key, &part, all);
                }
                None => right = false,
            }
        }
        right
    }

    /// One argument of the short form; false if something was wrong.
    fn text_argument(
        &mut self,
        doc: &'static Doc,
        argument: &'static Argument,
        name: &str,
        part: &Node,
        all: &mut Arguments,
    ) -> bool {
        let fits = self.argument_fits(doc, argument, part);
        let Some(written) = self.written(part) else { return false };
        self.add_argument(doc, argument, name, written, &part.origin, all) && fits
    }

    /// Adds an argument under the name that it was written with, or a statement's under its canonical one; false if that cannot
    /// be a name.
    fn add_argument(
        &mut self,
        doc: &'static Doc,
        argument: &'static Argument,
        name: &str,
        written: SourceValue,
        origin: &Origin,
        all: &mut Arguments,
    ) -> bool {
        if argument.name == ANY_NAME && has_marks(name) {
            // The name of a variable may be a template, which is looked at when it is rendered.
            let checked = self.loader.known.check(&Template::template_value(name, Some(origin)));
            all.insert(name.into(), written);
            return self.collect(checked).is_some();
        }
        if argument.name == ANY_NAME {
            let wrong = variable_names::wrong(name, origin).filter(|_| !doc.is_own());
            let right = wrong.is_none();
            wrong.into_iter().for_each(|complaint| self.complain(complaint));
            all.insert(name.into(), written);
            return right;
        }
        // Of a module's argument and its aliases it is known when they are rendered which counts
        // (`modules::arguments::without_aliases`).
        let is_alias =
            argument.aliases.contains(&name) && !include::DOCS.iter().any(|statement| statement.name == doc.name);
        all.insert(if is_alias { name } else { argument.name }.into(), written);
        true
    }

    /// The argument of that name, or an error.
    fn argument(&mut self, doc: &'static Doc, name: &str, origin: &Origin) -> Option<&'static Argument> {
        // The name that Ansible gives the text of the short form inside.
        let name = if name == "_raw_params" { doc.free_form.unwrap_or(name) } else { name };
        let found = doc.argument(name);
        if found.is_none() {
            let complaint = Diagnostic::new(format!("{} has no argument {name:?}", doc.name), Some(origin));
            let all = doc.arguments.iter().flat_map(|a| std::iter::once(a.name).chain(a.aliases.iter().copied()));
            let complaint = match did_you_mean(name, all.clone()) {
                Some(hint) => complaint.hint(hint),
                None if super::keywords::at(name, super::keywords::KeywordScope::Task).is_some() => {
                    complaint.hint(format!("{name:?} is a keyword of a task: indent it as far as \"{}\"", doc.name))
                }
                None if doc.arguments.is_empty() => complaint.hint("it has no arguments"),
                None => complaint.hint(format!("known arguments: {}", all.collect::<Vec<_>>().join(", "))),
            };
            self.complain(complaint);
        }
        found
    }

    /// Checks a literal against type and choices; false if it does not fit, which has been complained of.
    fn argument_fits(&mut self, doc: &'static Doc, argument: &'static Argument, node: &Node) -> bool {
        if let Some(complaint) = wrong_type(argument.name, &argument.kind, node) {
            self.complain(complaint);
            return false;
        }
        if let Some(complaint) = bad_choice(argument, node) {
            self.complain(complaint);
            return false;
        }
        if argument.kind == ArgumentKind::Mode {
            self.warn_of_decimal_mode(node);
        }
        self.expressions_of(doc, argument, node)
    }

    /// `assert` and `debug: var=` take expressions; false if one is wrong.
    fn expressions_of(&mut self, doc: &'static Doc, argument: &'static Argument, node: &Node) -> bool {
        if !matches!((doc.name, argument.name), ("assert", "that") | ("debug", "var")) {
            return true;
        }
        let items = match &node.kind {
            NodeKind::Seq(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut right = true;
        for item in items.iter().filter(|item| !is_template(item)) {
            if let Some(text) = item.as_str() {
                right &= self.check_expression(text, &item.origin);
            }
        }
        right
    }

    /// `mode: 644` is not what it looks like.
    fn warn_of_decimal_mode(&mut self, node: &Node) {
        let NodeKind::Int(mode) = node.kind else { return };
        let column = node.origin.column.saturating_sub(1);
        let written = node.origin.line_text().get(column..).unwrap_or_default();
        if mode >= 100 && written.starts_with(|c: char| c.is_ascii_digit() && c != '0') {
            let warning = format!("the mode {mode} is a decimal number, which is {mode:o} in octal");
            self.warn(Diagnostic::new(warning, Some(&node.origin)).hint(format!("write \"0{mode}\"")));
        }
    }

    fn complain_of_missing(&mut self, chosen: &TaskAction, all: &Arguments) {
        let required = chosen.doc.arguments.iter().filter(|argument| argument.required);
        let names = |argument: &Argument| std::iter::once(argument.name).chain(argument.aliases.iter().copied());
        let missing: Vec<&str> = required
            .filter(|argument| !names(argument).any(|name| all.contains_key(name)))
            .map(|one| one.name)
            .collect();
        if !missing.is_empty() {
            let word = if missing.len() == 1 { "argument" } else { "arguments" };
            let names: Vec<String> = missing.iter().map(|name| format!("{name:?}")).collect();
            let message = format!("{} needs the {word} {}", chosen.doc.name, names.join(" and "));
            self.complain(Diagnostic::new(message, Some(&chosen.origin)));
        }
    }
}

/// Whether `module_defaults` may give arguments to a module.
fn has_defaults(doc: &Doc, keywords: &Keywords) -> bool {
    let long = format!("{}.{}", doc.collection, doc.name);
    keywords.module_defaults.iter().any(|defaults| {
        let value = &defaults.value;
        value.downcast_object_ref::<Template>().is_some()
            || value.try_iter().is_ok_and(|mut keys| {
                keys.any(|key| {
                    key.as_str().is_some_and(|key| key == doc.name || key == long || key.starts_with("group/"))
                })
            })
    })
}

/// A part of a text in the short form; what is not to be a template as a whole is none in its parts.
fn part_of(node: &Node, text: &str, origin: &Origin) -> Node {
    let tag = node.tag.clone().filter(|tag| &**tag == "!unsafe");
    Node { kind: NodeKind::Str(text.into()), tag, origin: origin.clone() }
}

/// The text of a scalar, as the short form takes it.
pub(super) fn scalar_text(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::Str(text) => Some(text.to_string()),
        NodeKind::Seq(_) | NodeKind::Map(_) | NodeKind::Null => None,
        NodeKind::Bool(value) => Some(if *value { "True" } else { "False" }.into()),
        NodeKind::Int(value) => Some(value.to_string()),
        NodeKind::BigInt(value) => Some(value.to_string()),
        NodeKind::Float(value) => Some(value.to_string()),
    }
}

/// `copy: "{{ arguments }}"`
fn is_lone_expression(text: &str) -> bool {
    let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains("{{"))
}

/// The location of an offset in the text of a node, if the file has that text unchanged.
fn place_in(node: &Node, text: &str, at: usize) -> Origin {
    let mut origin = node.origin.clone();
    let column = origin.column.saturating_sub(1);
    let line = origin.line_text();
    let rest: String = line.chars().skip(column).collect();
    let first = text[..at].chars().count();
    let head: String = text.chars().take_while(|c| *c != '\n').collect();
    if !text[..at].contains('\n') && rest.starts_with(head.trim_end()) {
        origin.column += first;
    }
    origin
}

fn unbalanced_text(doc: &Doc, node: &Node, text: &str, unbalanced: &UnbalancedQuote) -> Diagnostic {
    let origin = place_in(node, text, unbalanced.at);
    let message = format!("{} is never closed in the arguments of {}", unbalanced.mark, doc.name);
    let complaint = Diagnostic::new(message, Some(&origin));
    match doc.free_form {
        Some(name) => complaint.hint(format!("close it, or write the text as \"{name}:\" below \"{}:\"", doc.name)),
        None => complaint,
    }
}

fn no_free_form(doc: &Doc, text: &str, origin: &Origin) -> Diagnostic {
    let word: String = text.chars().take_while(|c| !c.is_whitespace()).collect();
    let message = format!("{} needs arguments as key=value, and {word:?} is not one", doc.name);
    let hint = "put quotes around a value with spaces, or write the arguments as a mapping";
    Diagnostic::new(message, Some(origin)).hint(hint)
}

/// Says what is wrong with the type of a literal, if something is.
fn wrong_type(name: &str, kind: &ArgumentKind, node: &Node) -> Option<Diagnostic> {
    if is_null(node) || is_template(node) {
        return None;
    }
    let is_collection = matches!(node.kind, NodeKind::Seq(_) | NodeKind::Map(_));
    let (right, wanted) = match kind {
        ArgumentKind::Any => return None,
        ArgumentKind::Str => (!is_collection, "a string"),
        ArgumentKind::Path => (!is_collection, "a path"),
        ArgumentKind::Bool => (bool_of(node).is_some(), "true or false"),
        ArgumentKind::Int => (is_int(node), "a whole number"),
        ArgumentKind::Float => (is_float(node), "a number"),
        ArgumentKind::Mode => (is_mode(node), "a file mode, for example \"0644\" or \"u=rw,g=r\""),
        ArgumentKind::Dict => (is_dict(node), "a mapping"),
        ArgumentKind::List(inner) => match &node.kind {
            NodeKind::Seq(items) => return items.iter().find_map(|item| wrong_type(name, inner, item)),
            // A lone mapping is a list of one.
            NodeKind::Map(_) => (matches!(inner, ArgumentKind::Dict | ArgumentKind::Any), "a list"),
            _ => (true, "a list"),
        },
    };
    let message = || format!("{name:?} must be {wanted}, this is {}", node.what());
    (!right).then(|| Diagnostic::new(message(), Some(&node.origin)))
}

/// A number, octal text, or symbolic.
fn is_mode(node: &Node) -> bool {
    let symbolic = |text: &str| {
        text.split(',').all(|part| {
            part.trim_start_matches(['u', 'g', 'o', 'a']).starts_with(['=', '+', '-'])
                && part.chars().all(|c| "ugoarwxXst=+-".contains(c))
        })
    };
    match &node.kind {
        NodeKind::Int(mode) => (0..=0o7777).contains(mode),
        NodeKind::Str(text) if text.trim() == "preserve" => true,
        NodeKind::Str(text) => {
            let digits = text.trim().trim_start_matches("0o");
            !digits.is_empty() && digits.chars().all(|c| ('0'..='7').contains(&c)) || symbolic(text.trim())
        }
        _ => false,
    }
}

/// A mapping, or a text that becomes one: JSON or `key=value`.
fn is_dict(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Map(_) => true,
        NodeKind::Str(text) => text.trim_start().starts_with('{') || text.contains('='),
        _ => false,
    }
}

fn bad_choice(argument: &Argument, node: &Node) -> Option<Diagnostic> {
    if argument.choices.is_empty() || is_null(node) || is_template(node) {
        return None;
    }
    if let NodeKind::Seq(items) = &node.kind {
        return items.iter().find_map(|item| bad_choice(argument, item));
    }
    let fits = |text: &str| argument.choices.contains(&text);
    // YAML reads `no` and `yes` as booleans; a choice of that word was meant.
    let right = match (&node.kind, scalar_text(node)) {
        (NodeKind::Bool(value), _) => argument.choices.iter().any(|word| truth::of_word(word) == Some(*value)),
        (_, Some(text)) if matches!(argument.kind, ArgumentKind::List(_)) => {
            text.split(',').all(|part| fits(part.trim()))
        }
        (_, Some(text)) => fits(&text),
        (_, None) => true,
    };
    if right {
        return None;
    }
    let message =
        format!("{:?} must be one of {}, this is {}", argument.name, argument.choices.join(", "), node.what());
    let complaint = Diagnostic::new(message, Some(&node.origin));
    let hint = node.as_str().and_then(|word| did_you_mean(word, argument.choices.iter().copied()));
    Some(complaint.hint_if_any(hint))
}
