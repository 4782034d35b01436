//! What the rules look at: the files as trees with places, and in them plays, tasks and handlers.

use std::path::{Path, PathBuf};

use super::find::LintPath;
use super::{LintSettings, load, text};
use crate::modules;
use crate::playbook::include;
use crate::playbook::keywords;
use crate::value::Origin;
use crate::value::doc::Doc;
use crate::value::origin::Diagnostic;
use crate::value::truth;
use crate::value::vault;
use crate::value::yaml::{self, Node, NodeKind};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    Playbook,
    Tasks,
    Handlers,
    /// Defaults, vars, and other mappings.
    Variables,
    Meta,
    /// No YAML: templates and whatever else may use variables.
    Text,
}

/// One file.
pub struct LintFile {
    pub path: PathBuf,
    pub role: Option<PathBuf>,
    pub folder: String,
    pub sort: FileRole,
    /// Of a YAML file.
    pub node: Option<Node>,
    /// What is wrong with its YAML.
    pub broken: Option<Diagnostic>,
}

/// Everything that was requested.
pub struct Project {
    pub files: Vec<LintFile>,
    /// The errors of every load of it, and the warnings.
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
    /// The names that templates, conditions and other texts of all files mention.
    mentions: text::Names,
}

/// A task or handler.
pub struct Task<'a> {
    pub file: &'a LintFile,
    pub map: &'a Node,
    pub is_handler: bool,
    /// Whether it, or a block or play around it, says `no_log`.
    pub is_quiet: bool,
    pub doc: Option<&'static Doc>,
    /// Where the module's name is, and what is written for it.
    pub action: Option<(&'a Node, &'a Node)>,
}

impl Project {
    pub fn read_project(places: Vec<LintPath>, settings: &LintSettings) -> Project {
        let mut mentions = text::Names::default();
        let read = |place| LintFile::read_lint_file(place, settings, &mut mentions);
        let files: Vec<LintFile> = places.into_iter().filter_map(read).collect();
        let (errors, warnings) = load::load_files(&files, settings);
        Project { files, errors, warnings, mentions }
    }

    /// All tasks and handlers of playbooks, roles and files of tasks.
    pub fn tasks(&self) -> Vec<Task<'_>> {
        let mut tasks = Vec::new();
        for file in &self.files {
            let Some(node) = &file.node else { continue };
            match file.sort {
                FileRole::Tasks => add_tasks(file, node, false, false, &mut tasks),
                FileRole::Handlers => add_tasks(file, node, true, false, &mut tasks),
                FileRole::Playbook => {
                    for play in node_items(node) {
                        let quiet = says_yes(play.get("no_log"));
                        for (list, is_handler) in
                            [("pre_tasks", false), ("tasks", false), ("post_tasks", false), ("handlers", true)]
                        {
                            if let Some(list) = play.get(list) {
                                add_tasks(file, list, is_handler, quiet, &mut tasks);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        tasks
    }

    /// All plays, without imports of playbooks.
    pub fn plays(&self) -> impl Iterator<Item = (&LintFile, &Node)> {
        let playbooks = self.files.iter().filter(|file| file.sort == FileRole::Playbook);
        playbooks
            .flat_map(|file| file.node.iter().flat_map(node_items).map(move |play| (file, play)))
            .filter(|(_, play)| play.get("hosts").is_some())
    }

    /// How often a name is mentioned in all files.
    pub fn mentions(&self, name: &str) -> usize {
        self.mentions.count(name)
    }
}

impl LintFile {
    /// Reads a file and adds the names that it mentions. None: it is no text, and need not be.
    fn read_lint_file(place: LintPath, settings: &LintSettings, mentions: &mut text::Names) -> Option<LintFile> {
        let content = std::fs::read(&place.path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let mut file = LintFile {
            path: place.path.clone(),
            role: place.role.clone(),
            folder: place.folder.clone(),
            sort: FileRole::Text,
            node: None,
            broken: None,
        };
        let is_yaml = place.path.extension().is_some_and(|end| end == "yml" || end == "yaml");
        if !is_yaml || matches!(place.folder.as_str(), "templates" | "files") {
            mentions.add_text(&content?);
            return Some(file);
        }
        // A vault file needs its password; the loads that need it report whether it can be read.
        if !content.is_some_and(|content| vault::is_vault(&content)) {
            match yaml::load_with(&place.path, &place.path, &settings.keyring, &mut Vec::new()) {
                Ok(node) => file.node = node,
                Err(complaint) => file.broken = Some(complaint),
            }
        }
        file.sort = sort(&place, file.node.as_ref());
        file.node.iter().for_each(|node| mentions.add_node(node));
        Some(file)
    }
}

fn sort(place: &LintPath, node: Option<&Node>) -> FileRole {
    match place.folder.as_str() {
        "tasks" => return FileRole::Tasks,
        "handlers" => return FileRole::Handlers,
        "meta" => return FileRole::Meta,
        "defaults" | "vars" => return FileRole::Variables,
        _ => {}
    }
    let is_play = |item: &Node| {
        pairs(item).iter().any(|(key, _)| {
            matches!(key.as_str(), Some("hosts" | "import_playbook" | "ansible.builtin.import_playbook"))
        })
    };
    let in_handlers = place.path.parent().and_then(Path::file_name).is_some_and(|name| name == "handlers");
    match node.map(|node| &node.kind) {
        Some(NodeKind::Seq(items)) if items.iter().any(is_play) => FileRole::Playbook,
        Some(NodeKind::Seq(items)) if !items.is_empty() && items.iter().all(is_step) => {
            if in_handlers {
                FileRole::Handlers
            } else {
                FileRole::Tasks
            }
        }
        Some(NodeKind::Map(_)) => FileRole::Variables,
        _ => FileRole::Text,
    }
}

/// Whether an entry of a list looks like a task or block.
fn is_step(node: &Node) -> bool {
    pairs(node).iter().any(|(key, _)| {
        key.as_str()
            .is_some_and(|name| name == "block" || doc_of(name).is_some() || keywords::find_keyword(name).is_some())
    })
}

fn doc_of(name: &str) -> Option<&'static Doc> {
    include::doc(name).or_else(|| modules::find_module(name).map(|entry| entry.doc))
}

fn add_tasks<'a>(file: &'a LintFile, list: &'a Node, is_handler: bool, quiet: bool, tasks: &mut Vec<Task<'a>>) {
    for map in node_items(list) {
        let is_quiet = map.get("no_log").map_or(quiet, |node| says_yes(Some(node)));
        if map.get("block").is_some() {
            for part in ["block", "rescue", "always"] {
                if let Some(part) = map.get(part) {
                    add_tasks(file, part, is_handler, is_quiet, tasks);
                }
            }
            continue;
        }
        let action = pairs(map).iter().find_map(|(key, value)| {
            let name = key.as_str()?;
            let is_keyword = keywords::at(name, keywords::KeywordScope::Handler).is_some();
            let doc = if is_keyword { None } else { doc_of(name) }?;
            Some((doc, (key, value)))
        });
        tasks.push(Task {
            file,
            map,
            is_handler,
            is_quiet,
            doc: action.map(|(doc, _)| doc),
            action: action.map(|(_, action)| action),
        });
    }
}

impl Task<'_> {
    /// Where it begins.
    pub fn origin(&self) -> &Origin {
        pairs(self.map).first().map_or(&self.map.origin, |(key, _)| &key.origin)
    }

    /// The short name of its module; empty if it has none.
    pub fn module(&self) -> &'static str {
        self.doc.map_or("", |doc| doc.name)
    }

    /// The arguments written as mappings: those of the module and those of `args`.
    pub fn arguments(&self) -> impl Iterator<Item = &(Node, Node)> {
        let own = self.action.map(|(_, value)| value);
        own.into_iter().chain(self.map.get("args")).flat_map(pairs)
    }

    /// An argument by any of its names, if the arguments are a mapping.
    pub fn argument(&self, name: &str) -> Option<&(Node, Node)> {
        let argument = self.doc?.argument(name)?;
        self.arguments()
            .find(|(key, _)| key.as_str().is_some_and(|key| key == argument.name || argument.aliases.contains(&key)))
    }

    /// The text of the short form.
    pub fn module_text(&self) -> Option<&Node> {
        self.action.map(|(_, value)| value).filter(|value| value.as_str().is_some())
    }
}

/// The entries of a list; none if it is no list.
pub(super) fn node_items(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::Seq(items) => items,
        _ => &[],
    }
}

/// The entries of a mapping; none if it is no mapping.
pub(super) fn pairs(node: &Node) -> &[(Node, Node)] {
    match &node.kind {
        NodeKind::Map(pairs) => pairs,
        _ => &[],
    }
}

/// Whether a keyword is there and may be true: a template may.
pub(super) fn says_yes(node: Option<&Node>) -> bool {
    match node.map(|node| &node.kind) {
        Some(NodeKind::Bool(value)) => *value,
        Some(NodeKind::Str(text)) => truth::of_any_text(text),
        _ => false,
    }
}
