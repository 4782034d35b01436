//! Keywords that only plays have and that need more than their shape checked.

use super::arguments::scalar_text;
use super::keywords::{self, KeywordScope};
use super::keywords_of_plays::{PROMPT, SCHEMES};
use super::loader::LoadState;
use super::read::{bool_of, is_null, is_template, pairs};
use super::{Encrypt, Order, Prompt, SourceValue, Strategy, variable_names};
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

impl LoadState<'_> {
    /// The pattern of a play; complains if there is none.
    pub(super) fn hosts(&mut self, map: &Node) -> Option<SourceValue> {
        let Some((key, node)) = pairs(map).iter().find(|(key, _)| key.as_str() == Some("hosts")) else {
            let origin = pairs(map).first().map_or(&map.origin, |(key, _)| &key.origin);
            let complaint = Diagnostic::new("this play has no \"hosts\"", Some(origin));
            let is_task = pairs(map).iter().any(|(key, _)| key.as_str().is_some_and(|name| self.is_module(name)));
            self.complain(if is_task {
                complaint.hint("a playbook is a list of plays; put tasks below \"tasks:\" of a play")
            } else {
                complaint.hint("add \"hosts: all\", or the hosts that the play is for")
            });
            return None;
        };
        let empty = match &node.kind {
            NodeKind::Null => true,
            NodeKind::Str(text) => text.trim().is_empty(),
            NodeKind::Seq(items) => items.is_empty(),
            _ => false,
        };
        if empty {
            self.complain(Diagnostic::new("\"hosts\" is empty", Some(&key.origin)));
            return None;
        }
        let keyword = keywords::at("hosts", KeywordScope::Play)?;
        if !self.shaped(keyword, node) {
            return None;
        }
        self.written(node)
    }

    /// `linear`, `free` or `host_pinned`.
    pub(super) fn strategy(&mut self, node: Option<&Node>) -> Strategy {
        let Some(node) = node.filter(|node| !is_null(node)) else { return self.loader.play_defaults.strategy };
        let name = node.as_str().unwrap_or_default();
        let short = name.strip_prefix("ansible.builtin.").unwrap_or(name);
        match short {
            "linear" => return Strategy::Linear,
            "free" => return Strategy::Free,
            "host_pinned" => return Strategy::HostPinned,
            _ => {}
        }
        let complaint = match short {
            "debug" => Diagnostic::new(format!("the strategy {short:?} is not supported"), Some(&node.origin))
                .hint("use \"linear\", \"free\" or \"host_pinned\""),
            _ => {
                let complaint =
                    Diagnostic::new(format!("unknown strategy, this is {}", node.what()), Some(&node.origin));
                let hint = did_you_mean(short, ["linear", "free", "host_pinned"]);
                complaint.hint("use \"linear\", \"free\" or \"host_pinned\"").hint_if_any(hint)
            }
        };
        self.complain(complaint);
        Strategy::default()
    }

    /// The order of hosts; the table has checked the word.
    pub(super) fn order(&mut self, node: Option<&Node>) -> Order {
        if let Some(node) = node.filter(|node| is_template(node)) {
            let complaint = Diagnostic::new("\"order\" cannot be a template", Some(&node.origin));
            self.complain(complaint.hint("write the order itself, such as order: reverse_inventory"));
        }
        match node.and_then(Node::as_str) {
            Some("reverse_inventory") => Order::ReverseInventory,
            Some("sorted") => Order::Sorted,
            Some("reverse_sorted") => Order::ReverseSorted,
            Some("shuffle") => Order::Shuffle,
            _ => Order::Inventory,
        }
    }

    /// How many hosts at a time: numbers, percentages, or a list of them.
    pub(super) fn serial(&mut self, node: Option<&Node>) -> Vec<SourceValue> {
        let Some(node) = node else { return Vec::new() };
        let items = match &node.kind {
            NodeKind::Seq(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for item in items.iter().filter(|item| !is_null(item) && !is_template(item)) {
            let right = match &item.kind {
                NodeKind::Int(count) => *count >= 0,
                NodeKind::Str(text) => {
                    let number = text.trim();
                    let number = number.strip_suffix('%').unwrap_or(number);
                    number.parse::<f64>().is_ok_and(|number| number >= 0.0)
                }
                _ => false,
            };
            if !right {
                let message = format!("\"serial\" must be a number of hosts or a percentage, this is {}", item.what());
                self.complain(Diagnostic::new(message, Some(&item.origin)));
            }
        }
        self.written_list(node)
    }

    /// `vars_files`: file names, and lists of which the first existing file counts.
    pub(super) fn vars_files(&mut self, node: Option<&Node>) -> Vec<SourceValue> {
        let Some(node) = node else { return Vec::new() };
        let items = match &node.kind {
            NodeKind::Seq(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for item in items {
            let names = match &item.kind {
                NodeKind::Seq(names) => names.as_slice(),
                _ => std::slice::from_ref(item),
            };
            for name in names.iter().filter(|name| name.as_str().is_none() && !is_null(name)) {
                let message = format!("\"vars_files\" must be a list of file names, this is {}", name.what());
                self.complain(Diagnostic::new(message, Some(&name.origin)));
            }
            self.complain_of_missing_file(item);
        }
        self.written_list(node)
    }

    /// A file whose name is known already must be there.
    fn complain_of_missing_file(&mut self, node: &Node) {
        let Some(name) = node.as_str().filter(|_| !is_template(node)) else { return };
        let places = [self.base.directory.join("vars").join(name), self.base.directory.join(name)];
        if places.iter().any(|path| path.exists()) {
            return;
        }
        let complaint = Diagnostic::new(format!("cannot find the file {name:?}"), Some(&node.origin));
        self.complain(complaint.hint(format!("searched {}", self.loader.listed(&places, ", "))));
    }

    /// `vars_prompt`: variables to ask for.
    pub(super) fn prompts(&mut self, node: Option<&Node>) -> Vec<Prompt> {
        let Some(node) = node.filter(|node| !is_null(node)) else { return Vec::new() };
        let NodeKind::Seq(items) = &node.kind else {
            let message = format!("\"vars_prompt\" must be a list, this is {}", node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
            return Vec::new();
        };
        items.iter().filter_map(|item| self.prompt(item)).collect()
    }

    fn prompt(&mut self, map: &Node) -> Option<Prompt> {
        let Some(name) = map.get("name").and_then(Node::as_str) else {
            let message = "an entry of \"vars_prompt\" needs the \"name\" of a variable";
            self.complain(Diagnostic::new(message, Some(&map.origin)));
            return None;
        };
        if let Some(complaint) = map.get("name").and_then(|node| variable_names::wrong(name, &node.origin)) {
            self.complain(complaint);
        }
        for (key, _) in pairs(map) {
            self.complain_of_prompt_key(key);
        }
        let flag = |name: &str, default: bool| map.get(name).and_then(bool_of).unwrap_or(default);
        let default = map.get("default").and_then(|node| self.written(node)).map(|written| written.value);
        let prompt = map.get("prompt").and_then(Node::as_str).map(str::to_owned);
        let (private, confirm) = (flag("private", true), flag("confirm", false));
        let text = |name: &str| map.get(name).filter(|node| !is_null(node)).and_then(scalar_text);
        let salt_size = map.get("salt_size").filter(|node| !is_null(node)).and_then(|node| match node.kind {
            NodeKind::Int(size) if size > 0 => Some(size),
            _ => {
                let message = format!("\"salt_size\" must be a number above 0, this is {}", node.what());
                self.complain(Diagnostic::new(message, Some(&node.origin)));
                None
            }
        });
        if let Some(node) = map.get("encrypt").filter(|node| node.as_str().is_some_and(|name| !SCHEMES.contains(&name)))
        {
            let message = format!("\"encrypt\" must be one of {}; this is {}", SCHEMES.join(", "), node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
        }
        let encrypt = text("encrypt").map(|scheme| Encrypt { scheme, salt: text("salt"), salt_size });
        Some(Prompt { name: name.to_owned(), prompt, default, private, confirm, encrypt })
    }

    fn complain_of_prompt_key(&mut self, key: &Node) {
        let name = key.as_str().unwrap_or_default();
        match name {
            _ if PROMPT.iter().any(|part| part.name == name) => {}
            _ => {
                let complaint = Diagnostic::new(format!("\"vars_prompt\" has no {name:?}"), Some(&key.origin));
                self.complain(complaint.hint_if_any(did_you_mean(name, PROMPT.iter().map(|part| part.name))));
            }
        }
    }
}
