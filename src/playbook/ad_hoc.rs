//! A play without a file: one task, from the command line, read by the same loader as those of files.

use std::path::Path;
use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::loader::{LoadState, Loaded, Loader, OwnPrograms};
use super::{Base, Play};
use crate::value::doc::COMMAND_MODULES;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{self, Node, NodeKind};
use crate::value::{Origin, Source, Vars};

/// The request.
#[derive(Debug)]
pub struct AdHoc<'a> {
    pub pattern: &'a str,
    pub module: &'a str,
    /// In the short form, or a JSON object; empty: none.
    pub args: &'a str,
    /// Keywords of the task with the numbers that they have, such as `timeout`.
    pub keywords: Vec<(&'static str, u64)>,
    /// Where `group_vars/`, `roles/` and files are looked for.
    pub directory: &'a Path,
}

impl Loader {
    /// The play of one task. Complaints show their place in the arguments.
    pub fn ad_hoc(&self, asked: &AdHoc<'_>) -> Loaded<Play> {
        let mut load = LoadState::new(self, Arc::default());
        let play = load.ad_hoc(asked);
        load.finish_load(play)?.ok_or_else(Vec::new)
    }
}

impl LoadState<'_> {
    fn ad_hoc(&mut self, asked: &AdHoc<'_>) -> Option<Play> {
        let module = text("--module-name", asked.module);
        self.base = Arc::new(Base { directory: asked.directory.to_owned(), ..Base::default() });
        let around = InheritedKeywords { keywords: Arc::default(), role: None, directory: asked.directory.to_owned() };
        let found = self.module(asked.module, &module.origin, &around);
        let found = found.and_then(|found| found.ok_or_else(|| self.unknown_module(asked.module, &module.origin)));
        self.collect(found)?;
        if !self.loader.ignores_beside {
            self.loader.known.own_words(&OwnPrograms::beside(asked.directory));
        }
        self.loader.known.own_words(&self.loader.words);
        if asked.args.trim().is_empty()
            && COMMAND_MODULES.contains(&asked.module.rsplit('.').next().unwrap_or_default())
        {
            let complaint = Diagnostic::new(format!("{} needs a command", asked.module), Some(&module.origin));
            self.complain(complaint.hint("pass it with -a, or choose another module with -m"));
            return None;
        }
        let args = self.collect(arguments(asked.args))?;
        let mut task = vec![(module.clone(), args)];
        for (name, number) in &asked.keywords {
            let kind = NodeKind::Int(i64::try_from(*number).unwrap_or(i64::MAX));
            task.push((text(name, name), node(kind, &place(name, &number.to_string()))));
        }
        let origin = &module.origin;
        let tasks = node(NodeKind::Seq(vec![node(NodeKind::Map(task), origin)]), origin);
        let play = vec![
            (text("name", "name"), text("name", "Ansible Ad-Hoc")),
            (text("hosts", "hosts"), text("PATTERN", asked.pattern)),
            (text("gather_facts", "gather_facts"), node(NodeKind::Bool(false), origin)),
            (text("tasks", "tasks"), tasks),
        ];
        let (outer, map) = (&self.loader.play_defaults.keywords, node(NodeKind::Map(play), origin));
        self.play(&map, &asked.directory.join("ad hoc"), outer, &Vars::new())
    }
}

/// A JSON object is one; all else is the short form.
fn arguments(args: &str) -> Result<Node, Diagnostic> {
    let origin = place("--args", args);
    if args.trim().is_empty() {
        return Ok(node(NodeKind::Null, &origin));
    }
    let braces = |open: &str, close: &str| args.trim().starts_with(open) && args.trim().ends_with(close);
    if braces("{", "}") && !braces("{{", "}}") {
        let documents = yaml::parse_yaml(&origin.source)?;
        if let Some(map) = documents.into_iter().next() {
            return Ok(map);
        }
    }
    Ok(node(NodeKind::Str(args.into()), &origin))
}

/// A text that was given as `whose` option.
fn text(whose: &str, text: &str) -> Node {
    node(NodeKind::Str(text.into()), &place(whose, text))
}

fn node(kind: NodeKind, origin: &Origin) -> Node {
    Node { kind, tag: None, origin: origin.clone() }
}

fn place(whose: &str, text: &str) -> Origin {
    let source = Source::new(whose, text);
    Origin { source: Arc::new(source), line: 1, column: 1 }
}
