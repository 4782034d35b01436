//! From YAML to plays: the one way in. What a load needs and finds stands in [`Load`]; the files beside this one
//! each read one kind of thing with it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::inherit::Around;
use super::keywords::Place;
use super::role::{Parts, Use};
use super::{Action, Base, Include, Keywords, Play, Role, Step, Strategy, Task, Written};
use crate::value::doc::Doc;
use crate::value::lock::Mutex;
use crate::value::origin::Complaint;
use crate::value::vault::Keyring;
use crate::value::yaml::{self, DuplicateKeys, Duplicates, Node};
use crate::value::{Origin, Source, Surroundings, Value, Vars};

/// What the loader must know of the floors above it.
pub trait Known: Send + Sync {
    /// The module of that name, short or long.
    fn module(&self, name: &str) -> Option<&'static Doc>;
    /// All module names, for "did you mean".
    fn modules(&self) -> Vec<&'static str>;
    /// The module that a person wrote, in a file of that name; or why it cannot be run, and what to do.
    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)>;
    /// Takes note of the filters and lookups that a person wrote: the programs in these directories.
    fn own_words(&self, words: &Words);
    /// Why a module does not take `async`, with a hint; `left_alone`: nor `poll: 0`. None: it does.
    fn refuses_async(&self, doc: &'static Doc, left_alone: bool) -> Option<(String, &'static str)>;
    /// Checks the templates in a value.
    fn check(&self, value: &Value) -> Result<(), Complaint>;
    /// Checks an expression without braces.
    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Complaint>;
    /// Renders what is known before a run (extra variables, play variables): names of roles and imports.
    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Complaint>;
}

/// What configuration says of plays and files that do not say it themselves. The default is Ansible's.
#[derive(Debug, Default)]
pub struct PlayDefaults {
    /// What stands around every play.
    pub keywords: Keywords,
    pub strategy: Strategy,
    pub force_handlers: bool,
    /// Variables of a role are seen in this role alone.
    pub private_role_vars: bool,
}

/// Directories of programs that are filters and lookups.
#[derive(Debug, Clone, Default)]
pub struct Words {
    pub filters: Vec<PathBuf>,
    pub lookups: Vec<PathBuf>,
}

impl Words {
    /// Those beside a playbook, or of a role.
    pub(super) fn beside(directory: &Path) -> Words {
        Words { filters: vec![directory.join("filter_plugins")], lookups: vec![directory.join("lookup_plugins")] }
    }
}

/// What was loaded, or all that is wrong with it.
pub type Loaded<T> = Result<T, Vec<Complaint>>;

/// The directory of a role of this name.
pub type FindRole = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// Loads playbooks, and what they include while they run. Every file is read once.
pub struct Loader {
    pub known: Arc<dyn Known>,
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
    pub words: Words,
    /// What plays are that do not say.
    pub play_defaults: PlayDefaults,
    pub hooks: HookFiles,
    /// What `~` stands for; paths in messages begin at the working directory.
    pub surroundings: Arc<Surroundings>,
    files: Mutex<HashMap<PathBuf, Option<Arc<Node>>>>,
    warnings: Mutex<IndexSet<Complaint>>,
    /// What is in the directories of modules that were looked into.
    pub(super) libraries: Mutex<Libraries>,
}

/// The files in directories of modules, each by the name of its module.
pub(super) type Libraries = HashMap<PathBuf, Arc<BTreeMap<String, PathBuf>>>;

impl Loader {
    pub fn new(known: Arc<dyn Known>, keyring: Arc<Keyring>, extra_vars: Arc<Vars>, roles_path: Vec<PathBuf>) -> Self {
        Loader {
            known,
            keyring,
            duplicates: Duplicates::default(),
            extra_vars,
            roles_path,
            last_roles: None,
            collections: Vec::new(),
            library: Vec::new(),
            words: Words::default(),
            play_defaults: PlayDefaults::default(),
            hooks: HookFiles::default(),
            surroundings: Arc::default(),
            files: Mutex::default(),
            warnings: Mutex::default(),
            libraries: Mutex::default(),
        }
    }

    /// Reads a playbook and all it imports. All complaints at once, in the order of the files.
    pub fn playbook(&self, path: &Path) -> Loaded<Vec<Play>> {
        let mut load = Load::new(self, Arc::default());
        let plays = load.playbook(path, &self.play_defaults.keywords, &Vars::new(), None);
        load.finish(plays)
    }

    /// The steps of an `include_tasks` whose file name is known by now.
    pub fn included_tasks(&self, include: &Include, file: &str) -> Loaded<Vec<Step>> {
        let mut load = Load::new(self, include.base.clone());
        let around = Around::of_include(include);
        let steps = load.tasks_of_file(file, &include.task.origin, &around, Place::Task);
        load.finish(steps)
    }

    /// The role of an `include_role` whose names are known by now, dependencies first; a block as in `roles:`.
    pub fn included_role(&self, include: &Include, name: &str, from: &From<'_>) -> Loaded<(Vec<Arc<Role>>, Vec<Step>)> {
        let mut load = Load::new(self, include.base.clone());
        let parts = Parts {
            origin: None,
            tasks: from.tasks.map(str::to_owned),
            vars: from.vars.map(str::to_owned),
            defaults: from.defaults.map(str::to_owned),
            handlers: from.handlers.map(str::to_owned),
        };
        let mut used = Use::named(name, include.task.origin.clone()).parts(parts);
        if let super::IncludeWhat::Role { public, allow_duplicates, rolespec_validate, .. } = include.what {
            used = used.included(public, allow_duplicates, include.params.as_deref()).validated(rolespec_validate);
        }
        let steps = load.use_role(used, &Around::of_include(include));
        let roles = std::mem::take(&mut load.all_roles);
        load.finish((roles, steps))
    }

    /// Checks a role by itself, as a play would use it that has no variables of its own.
    pub fn role(&self, path: &Path) -> Loaded<()> {
        let mut load = Load::new(self, Arc::new(Base { directory: around_role(path), vars: Arc::default() }));
        load.role_alone(path);
        load.finish(())
    }

    /// Checks a file of tasks or handlers that is included only while a play runs, as part of the role at `role`.
    pub fn steps_file(&self, path: &Path, role: Option<&Path>, handlers: bool) -> Loaded<()> {
        let directory = role.map_or_else(|| super::imports::parent(path), around_role);
        let mut load = Load::new(self, Arc::new(Base { directory, vars: Arc::default() }));
        // What is wrong with the role itself is told where the role is checked.
        let role = role.and_then(|role| Load::new(self, load.base.clone()).role_alone(role));
        let around = Around { keywords: Arc::default(), role, directory: super::imports::parent(path) };
        if let Some(node) = load.file(path) {
            if handlers {
                load.handlers(&node, "a file of handlers", &around);
            } else {
                load.steps(&node, "a file of tasks", &around, Place::Task);
            }
        }
        load.finish(())
    }

    /// Checks a file of variables.
    pub fn variables_file(&self, path: &Path) -> Loaded<()> {
        let mut load = Load::new(self, Arc::default());
        if let Some(node) = load.file(path) {
            load.file_vars(&node);
        }
        load.finish(())
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

    /// What was odd but not wrong in all that was loaded so far, each told once.
    pub fn take_warnings(&self) -> Vec<Complaint> {
        let kept = std::mem::take(&mut *self.warnings.lock());
        self.duplicates.take().into_iter().chain(kept).collect()
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
pub struct From<'a> {
    pub tasks: Option<&'a str>,
    pub vars: Option<&'a str>,
    pub defaults: Option<&'a str>,
    pub handlers: Option<&'a str>,
}

/// Where the playbooks would be that use a role: what holds its `roles/`.
fn around_role(path: &Path) -> PathBuf {
    super::imports::parent(&super::imports::parent(path))
}

/// The task that gathers facts before a play's first. It is tagged `always` unless the play has tags of its own.
pub fn setup_task(play: &Play, doc: &'static Doc) -> Task {
    let mut keywords = (*play.keywords).clone();
    if keywords.tags.is_empty() {
        keywords.tags.push("always".into());
    }
    // Gathering once would give one host's facts to all.
    keywords.run_once = None;
    let options = [
        ("gather_subset", &play.gather_subset),
        ("gather_timeout", &play.gather_timeout),
        ("fact_path", &play.fact_path),
    ];
    let given = options.into_iter().filter_map(|(name, value)| Some((Arc::from(name), value.clone()?)));
    let args = given.filter(|(name, _): &(Arc<str>, Written)| doc.argument(name).is_some()).collect();
    let action = Action { doc, written: Arc::from(doc.name), args, more_args: None };
    let name = Some(Value::from("Gathering Facts"));
    Task::plain(play.origin.clone(), name, action, Arc::new(keywords), play.directory.clone())
}

impl Task {
    /// A task with nothing but an action.
    pub(super) fn plain(
        origin: Origin,
        name: Option<Value>,
        action: Action,
        keywords: Arc<Keywords>,
        directory: PathBuf,
    ) -> Task {
        Task {
            origin,
            name,
            action,
            keywords,
            role: None,
            repeat: None,
            register: None,
            until: Vec::new(),
            retries: None,
            delay: None,
            changed_when: Vec::new(),
            failed_when: Vec::new(),
            notify: Vec::new(),
            delegate_to: None,
            delegate_facts: false,
            asynchronous: None,
            poll: None,
            directory,
        }
    }
}

/// One load: what it needs at hand, and all that was found wrong so far.
pub(super) struct Load<'l> {
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
    complaints: Vec<Complaint>,
    warnings: Vec<Complaint>,
    /// Files in the order in which they were first read: complaints come in that order.
    order: IndexMap<PathBuf, ()>,
}

impl<'l> Load<'l> {
    pub(super) fn new(loader: &'l Loader, base: Arc<Base>) -> Self {
        Load {
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
    pub(super) fn finish<T>(mut self, result: T) -> Loaded<T> {
        let (complaints, warnings) = (std::mem::take(&mut self.complaints), std::mem::take(&mut self.warnings));
        let warnings = self.sorted(warnings);
        self.loader.warnings.lock().extend(warnings);
        if complaints.is_empty() { Ok(result) } else { Err(self.sorted(complaints)) }
    }

    /// By place, each once: a role used twice is wrong once.
    fn sorted(&self, mut complaints: Vec<Complaint>) -> Vec<Complaint> {
        let place = |complaint: &Complaint| {
            complaint.origin.as_ref().map(|origin| (self.order.get_index_of(origin.path()), origin.line, origin.column))
        };
        complaints.sort_by_key(place);
        complaints.dedup();
        complaints
    }

    /// Loads the role in a directory; None if that cannot be done.
    fn role_alone(&mut self, path: &Path) -> Option<Arc<Role>> {
        let source = Source::new(path, "");
        let origin = Origin { source: Arc::new(source), line: 1, column: 1 };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let around = Around { keywords: Arc::default(), role: None, directory: self.base.directory.clone() };
        self.use_role(Use::named(&absolute.display().to_string(), origin), &around);
        self.all_roles.last().cloned()
    }

    pub(super) fn complain(&mut self, complaint: Complaint) {
        self.complaints.push(complaint);
    }

    /// How many complaints there are: whether a step along the way has added one.
    pub(super) fn wrong_so_far(&self) -> usize {
        self.complaints.len()
    }

    pub(super) fn warn(&mut self, warning: Complaint) {
        self.warnings.push(warning);
    }

    /// The value, or a complaint kept.
    pub(super) fn keep<T>(&mut self, result: Result<T, Complaint>) -> Option<T> {
        result.map_err(|complaint| self.complain(complaint)).ok()
    }

    /// Reads a YAML file; None if it is empty or wrong, which has been complained of.
    pub(super) fn file(&mut self, path: &Path) -> Option<Arc<Node>> {
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
        let node = self.keep(read)?.map(Arc::new);
        let mut files = self.loader.files.lock();
        files.insert(path.to_owned(), node.clone());
        node
    }
}
