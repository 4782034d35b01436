//! What every load needs and finds: the files, what the floors above know, and what is wrong so far. The files beside this
//! one each read one kind of thing with it; `load.rs` is the way in.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::{Base, Keywords, Role, Strategy};
use crate::value::doc::Doc;
use crate::value::mutex::Mutex;
use crate::value::origin::Diagnostic;
use crate::value::vault::Keyring;
use crate::value::yaml::{self, DuplicateKeys, Duplicates, Node};
use crate::value::{Origin, ProcessEnvironment, Value, Vars};

/// What the loader must know of the floors above it.
pub trait LoaderContext: Send + Sync {
    /// The module of that name, short or long.
    fn module(&self, name: &str) -> Option<&'static Doc>;
    /// All module names, for "did you mean".
    fn modules(&self) -> Vec<&'static str>;
    /// The module that a person wrote, in a file of that name; or why it cannot be run, and what to do.
    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)>;
    /// Takes note of the filters and lookups that a person wrote: the programs in these directories.
    fn own_words(&self, words: &OwnPrograms);
    /// Why a module does not take `async`, with a hint; `left_alone`: nor `poll: 0`. None: it does.
    fn refuses_async(&self, doc: &'static Doc, left_alone: bool) -> Option<(String, &'static str)>;
    /// Checks the templates in a value.
    fn check(&self, value: &Value) -> Result<(), Diagnostic>;
    /// Checks an expression without braces.
    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Diagnostic>;
    /// Renders what is known before a run (extra variables, play variables): names of roles and imports.
    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Diagnostic>;
}

/// What configuration says of plays and files that do not say it themselves. The default is Ansible's.
#[derive(Debug, Default)]
pub struct PlayDefaults {
    /// Keywords that apply to every play.
    pub keywords: Keywords,
    pub strategy: Strategy,
    pub force_handlers: bool,
    /// Variables of a role are seen in this role alone.
    pub private_role_vars: bool,
}

/// Directories of programs that are filters and lookups.
#[derive(Debug, Clone, Default)]
pub struct OwnPrograms {
    pub filters: Vec<PathBuf>,
    pub lookups: Vec<PathBuf>,
}

impl OwnPrograms {
    /// Those beside a playbook, or of a role.
    pub(super) fn beside(directory: &Path) -> OwnPrograms {
        OwnPrograms { filters: vec![directory.join("filter_plugins")], lookups: vec![directory.join("lookup_plugins")] }
    }
}

/// What was loaded, or all that is wrong with it.
pub type Loaded<T> = Result<T, Vec<Diagnostic>>;

/// The directory of a role of this name.
pub type FindRole = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// Loads playbooks, and what they include while they run. Every file is read once.
pub struct Loader {
    pub known: Arc<dyn LoaderContext>,
    pub keyring: Arc<Keyring>,
    /// What becomes of duplicate keys, in files of variables too.
    pub duplicates: Duplicates,
    pub extra_vars: Arc<Vars>,
    /// Directories that hold roles, after `roles/` beside the playbook.
    pub roles_path: Vec<PathBuf>,
    /// Asked for the directory of a role that is nowhere else.
    pub last_roles: Option<FindRole>,
    /// Directories that hold collections, after `collections/` beside the playbook.
    pub collections: Vec<PathBuf>,
    /// Directories that hold modules, after `library/` of roles and beside the playbook.
    pub library: Vec<PathBuf>,
    /// Those of filters and lookups, after those beside the playbook.
    pub words: OwnPrograms,
    /// What is beside the playbook, such as `library/`, `roles/` and `group_vars/`, is ignored: another user may have written it.
    pub ignores_beside: bool,
    /// What plays are that do not say.
    pub play_defaults: PlayDefaults,
    pub hooks: HookFiles,
    /// For `~`; paths in messages are relative to the working directory.
    pub surroundings: Arc<ProcessEnvironment>,
    files: Mutex<HashMap<PathBuf, Option<Arc<Node>>>>,
    warnings: Mutex<IndexSet<Diagnostic>>,
    /// What is in the directories of modules that were looked into.
    pub(super) libraries: Mutex<Libraries>,
}

/// The files in directories of modules, each by the name of its module.
pub(super) type Libraries = HashMap<PathBuf, Arc<BTreeMap<String, PathBuf>>>;

impl Loader {
    pub fn new(
        known: Arc<dyn LoaderContext>,
        keyring: Arc<Keyring>,
        extra_vars: Arc<Vars>,
        roles_path: Vec<PathBuf>,
    ) -> Self {
        Loader {
            known,
            keyring,
            duplicates: Duplicates::default(),
            extra_vars,
            roles_path,
            last_roles: None,
            collections: Vec::new(),
            library: Vec::new(),
            words: OwnPrograms::default(),
            ignores_beside: false,
            play_defaults: PlayDefaults::default(),
            hooks: HookFiles::default(),
            surroundings: Arc::default(),
            files: Mutex::default(),
            warnings: Mutex::default(),
            libraries: Mutex::default(),
        }
    }

    /// A path as a person reads it best: below the working directory, from there.
    pub(super) fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        let below = path.strip_prefix(&self.surroundings.directory).unwrap_or(path);
        if below.as_os_str().is_empty() { Path::new(".") } else { below }
    }

    /// A list of paths for a hint.
    pub(super) fn listed(&self, paths: &[PathBuf], between: &str) -> String {
        paths.iter().map(|path| self.shown(path).display().to_string()).collect::<Vec<_>>().join(between)
    }

    /// Whether a file has been read by any load so far.
    pub fn has_read(&self, path: &Path) -> bool {
        let files = self.files.lock();
        files.keys().any(|read| self.shown(read) == self.shown(path))
    }

    /// The warnings of everything that was loaded so far, each only once.
    pub fn take_warnings(&self) -> Vec<Diagnostic> {
        let kept = std::mem::take(&mut *self.warnings.lock());
        self.duplicates.take_complaints().into_iter().chain(kept).collect()
    }
}

/// The files of tasks that configuration puts before and after plays and roles (`before_play` and so on in the section
/// `[windlass]` of `ansible.cfg`), absolute.
#[derive(Debug, Clone, Default)]
pub struct HookFiles {
    pub before_play: Option<PathBuf>,
    pub after_play: Option<PathBuf>,
    pub before_role: Option<PathBuf>,
    pub after_role: Option<PathBuf>,
}

/// `tasks_from` and its like, rendered.
#[derive(Debug, Default)]
pub struct EntryPoint<'a> {
    pub tasks: Option<&'a str>,
    pub vars: Option<&'a str>,
    pub defaults: Option<&'a str>,
    pub handlers: Option<&'a str>,
}

/// One load: what it needs at hand, and all that was found wrong so far.
pub(super) struct LoadState<'l> {
    pub loader: &'l Loader,
    /// The play that is being read.
    pub base: Arc<Base>,
    /// Every role of the play, in the order of first use.
    pub all_roles: Vec<Arc<Role>>,
    /// Uses of roles by what makes them the same.
    pub uses: HashMap<String, Arc<Role>>,
    /// Files whose reading is under way, outermost first: one that is met again imports itself.
    pub open_files: Vec<PathBuf>,
    /// The same for roles.
    pub open_roles: Vec<PathBuf>,
    complaints: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// Files in the order in which they were first read: errors are reported in that order.
    order: IndexMap<PathBuf, ()>,
}

impl<'l> LoadState<'l> {
    pub(super) fn new(loader: &'l Loader, base: Arc<Base>) -> Self {
        LoadState {
            loader,
            base,
            all_roles: Vec::new(),
            uses: HashMap::new(),
            open_files: Vec::new(),
            open_roles: Vec::new(),
            complaints: Vec::new(),
            warnings: Vec::new(),
            order: IndexMap::new(),
        }
    }

    /// The result, unless something was wrong.
    pub(super) fn finish_load<T>(mut self, result: T) -> Loaded<T> {
        let (complaints, warnings) = (std::mem::take(&mut self.complaints), std::mem::take(&mut self.warnings));
        let warnings = self.sorted(warnings);
        self.loader.warnings.lock().extend(warnings);
        if complaints.is_empty() { Ok(result) } else { Err(self.sorted(complaints)) }
    }

    /// By place, each once: a role used twice is wrong once.
    fn sorted(&self, mut complaints: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let place = |complaint: &Diagnostic| {
            complaint.origin.as_ref().map(|origin| (self.order.get_index_of(origin.path()), origin.line, origin.column))
        };
        complaints.sort_by_key(place);
        complaints.dedup();
        complaints
    }

    pub(super) fn complain(&mut self, complaint: Diagnostic) {
        self.complaints.push(complaint);
    }

    /// The number of errors so far, which shows whether a step added one.
    pub(super) fn wrong_so_far(&self) -> usize {
        self.complaints.len()
    }

    pub(super) fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// The value, or None with the error recorded.
    pub(super) fn collect<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|complaint| self.complain(complaint)).ok()
    }

    /// Reads a YAML file; None if it is empty or wrong, which has been complained of.
    pub(super) fn load_file(&mut self, path: &Path) -> Option<Arc<Node>> {
        let shown = self.loader.shown(path);
        self.order.entry(shown.to_owned()).or_default();
        let files = self.loader.files.lock();
        let known = files.get(path).cloned();
        drop(files);
        if let Some(node) = known {
            return node;
        }
        let mut duplicates = Vec::new();
        let read = yaml::load_with(path, shown, &self.loader.keyring, &mut duplicates);
        match self.loader.duplicates.rule {
            DuplicateKeys::Warn => self.warnings.extend(duplicates.into_iter().map(yaml::warning)),
            DuplicateKeys::Error => self.complaints.extend(duplicates),
            DuplicateKeys::Ignore => {}
        }
        let node = self.collect(read)?.map(Arc::new);
        let mut files = self.loader.files.lock();
        files.insert(path.to_owned(), node.clone());
        node
    }
}
