//! `include_tasks` and `include_role`, which are loaded while the play runs, and the documentation of all that
//! includes other files.

use std::sync::Arc;

use super::action::TaskAction;
use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::LoadState;
use super::read::{is_template, pairs};
use super::{Action, Include, IncludeWhat, Keywords, SourceValue, Step};
use crate::value::doc::{Argument, ArgumentKind, Doc};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

/// What a task may include, apart from running a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncludeKind {
    IncludeTasks,
    ImportTasks,
    IncludeRole,
    ImportRole,
}

const FILE: Argument = Argument::new("file", ArgumentKind::Path, "the file with the tasks").required();
const APPLY: Argument = Argument::new("apply", ArgumentKind::Dict, "keywords for every task that is included");
const NAME: Argument = Argument::new("name", ArgumentKind::Str, "the role").required().alias(&["role"]);
const PUBLIC: Argument =
    Argument::new("public", ArgumentKind::Bool, "whether the whole play sees the role's variables");
const ALLOW_DUPLICATES: Argument =
    Argument::new("allow_duplicates", ArgumentKind::Bool, "whether the role runs again if it has run before")
        .default("true");
const VALIDATE: Argument =
    Argument::new("rolespec_validate", ArgumentKind::Bool, "whether to check the role's arguments").default("true");

const fn part(name: &'static str) -> Argument {
    Argument::new(name, ArgumentKind::Str, "a file of the role instead of main").default("main")
}

const fn doc_of(
    name: &'static str,
    summary: &'static str,
    arguments: &'static [Argument],
    free_form: Option<&'static str>,
    example: &'static str,
) -> Doc {
    Doc { name, collection: "ansible.builtin", summary, arguments, free_form, example, returns: &[] }
}

/// The documentation of includes and imports, in the order of [`IncludeKind`].
pub static DOCS: [Doc; 4] = [
    doc_of(
        "include_tasks",
        "Include tasks of a file while the play runs",
        &[FILE, APPLY],
        Some("file"),
        "- include_tasks: more.yml\n",
    ),
    doc_of(
        "import_tasks",
        "Import tasks of a file before the play runs",
        &[FILE],
        Some("file"),
        "- import_tasks: more.yml\n",
    ),
    doc_of(
        "include_role",
        "Run a role, whose name may be known only while the play runs",
        &[
            NAME,
            part("tasks_from"),
            part("vars_from"),
            part("defaults_from"),
            part("handlers_from"),
            PUBLIC,
            ALLOW_DUPLICATES,
            VALIDATE,
            APPLY,
        ],
        None,
        "- include_role:\n    name: etcd\n",
    ),
    doc_of(
        "import_role",
        "Run a role at this position of a list of tasks",
        &[
            NAME,
            part("tasks_from"),
            part("vars_from"),
            part("defaults_from"),
            part("handlers_from"),
            PUBLIC,
            ALLOW_DUPLICATES,
            VALIDATE,
        ],
        None,
        "- import_role:\n    name: etcd\n",
    ),
];

/// The documentation of an include or import by that name, short or long.
pub fn doc(name: &str) -> Option<&'static Doc> {
    let short = name.strip_prefix("ansible.builtin.").or_else(|| name.strip_prefix("ansible.legacy.")).unwrap_or(name);
    DOCS.iter().find(|doc| doc.name == short)
}

impl IncludeKind {
    /// The kind of include that a documentation describes; None: a module.
    pub(super) fn of_doc(doc: &Doc) -> Option<IncludeKind> {
        match doc.name {
            "include_tasks" => Some(IncludeKind::IncludeTasks),
            "import_tasks" => Some(IncludeKind::ImportTasks),
            "include_role" => Some(IncludeKind::IncludeRole),
            "import_role" => Some(IncludeKind::ImportRole),
            _ => None,
        }
    }
}

impl LoadState<'_> {
    /// An include: kept with all it needs to be loaded later.
    pub(super) fn include(
        &mut self,
        map: &Node,
        chosen: &TaskAction,
        verb: IncludeKind,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Option<Step> {
        self.complain_of_keywords(map, chosen, |name| {
            let taken = keywords::at(name, KeywordScope::Include).is_some()
                || place == KeywordScope::Handler && name == "listen";
            let refused = keywords::at(name, place).is_some() && !taken;
            let for_blocks = refused && keywords::at(name, KeywordScope::Block).is_some();
            let hint = if for_blocks { "put it below \"apply:\", for the included tasks" } else { "remove it" };
            refused.then(|| hint.to_owned())
        });
        let keywords = self.inherit(map, KeywordScope::Include, around);
        let action = self.arguments(chosen, map.get("args"), &keywords);
        if let Some(more) = &action.more_args {
            let message = format!("the arguments of {} must be written out", chosen.doc.name);
            self.complain(Diagnostic::new(message, Some(&more.origin)));
        }
        let what = self.what(verb, &action)?;
        let apply = self.apply(map, chosen, &keywords, around);
        let own = keywords.vars.len() > around.keywords.vars.len();
        let params = keywords.vars.last().filter(|_| own).cloned();
        let task = Arc::new(self.assemble(map, action, keywords, around, place));
        Some(Step::Include(Arc::new(Include { task, what, apply, params, base: self.base.clone() })))
    }

    fn what(&mut self, verb: IncludeKind, action: &Action) -> Option<IncludeWhat> {
        let argument = |name: &str| action.args.get(name).cloned();
        if verb == IncludeKind::IncludeTasks {
            return Some(IncludeWhat::Tasks { file: argument("file")? });
        }
        let flags = [("public", false), ("allow_duplicates", true), ("rolespec_validate", true)];
        let [public, allow_duplicates, rolespec_validate] =
            flags.map(|(name, default)| self.read_flag(action.args.get(name)).unwrap_or(default));
        Some(IncludeWhat::Role {
            name: argument("name")?,
            tasks_from: argument("tasks_from"),
            vars_from: argument("vars_from"),
            defaults_from: argument("defaults_from"),
            handlers_from: argument("handlers_from"),
            public,
            allow_duplicates,
            rolespec_validate,
        })
    }

    /// The keywords of included steps: those around the include, its variables, and `apply`.
    fn apply(&mut self, map: &Node, chosen: &TaskAction, own: &Keywords, around: &InheritedKeywords) -> Arc<Keywords> {
        let mut keywords = (*around.keywords).clone();
        keywords.vars = own.vars.clone();
        let outside = around.with_keywords(Arc::new(keywords));
        let below = |node: Option<&Node>| node.and_then(|node| node.get("apply")).cloned();
        let Some(apply) = below(chosen.arguments.as_ref()).or_else(|| below(map.get("args"))) else {
            return outside.keywords;
        };
        if is_template(&apply) {
            let message = "\"apply\" must be written out as a mapping";
            self.complain(Diagnostic::new(message, Some(&apply.origin)));
        }
        let steps = ["block", "rescue", "always"];
        for (key, _) in pairs(&apply) {
            let name = key.as_str().unwrap_or_default();
            if keywords::at(name, KeywordScope::Block).is_none() || steps.contains(&name) {
                self.complain(keywords::unknown(name, &key.origin, KeywordScope::Block));
            }
        }
        match apply.kind {
            NodeKind::Map(_) => self.inherit(&apply, KeywordScope::Block, &outside),
            _ => outside.keywords,
        }
    }

    /// The text of an argument that must be known before the run.
    pub(super) fn known_text(&mut self, written: Option<&SourceValue>, around: &InheritedKeywords) -> Option<String> {
        let written = written?;
        let vars = self.vars_at(around);
        Some(self.render_static(written, &vars)?.to_string())
    }
}
