//! Plays, blocks, tasks, handlers and roles as data. Loading touches no host; everything a person can write
//! wrongly is found here, with its place. Keyword inheritance is resolved here, once.

mod action;
pub mod ad_hoc;
mod argument_specs;
mod arguments;
mod block;
mod free_form;
mod handlers;
mod imports;
pub mod include;
mod inherit;
pub mod keywords;
mod keywords_of_plays;
mod keywords_of_tasks;
mod library;
pub mod load;
mod loader;
mod parse_play_keywords;
mod paths;
mod play;
mod read;
mod role;
mod role_files;
mod task;
mod variable_names;

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::value::doc::Doc;
use crate::value::{Origin, Value, Vars};

/// A value as written, templates unrendered, and where.
#[derive(Debug, Clone)]
pub struct SourceValue {
    pub value: Value,
    pub origin: Origin,
}

#[derive(Debug)]
pub struct Play {
    pub origin: Origin,
    pub name: Option<Value>,
    /// A pattern, or a list of patterns.
    pub hosts: SourceValue,
    pub gather_facts: Option<SourceValue>,
    pub gather_subset: Option<SourceValue>,
    pub gather_timeout: Option<SourceValue>,
    pub fact_path: Option<SourceValue>,
    pub serial: Vec<SourceValue>,
    pub strategy: Strategy,
    pub order: Order,
    pub max_fail_percentage: Option<SourceValue>,
    pub force_handlers: bool,
    pub vars: Arc<Vars>,
    pub vars_files: Vec<SourceValue>,
    pub vars_prompt: Vec<Prompt>,
    /// The play's own keywords, already in every task below; here for implicit fact gathering.
    pub keywords: Arc<Keywords>,
    /// The directory of the playbook file.
    pub directory: PathBuf,
    pub pre_tasks: Vec<Step>,
    /// Each role is a block whose tasks carry the role.
    pub roles: Vec<Step>,
    pub tasks: Vec<Step>,
    pub post_tasks: Vec<Step>,
    /// The play's handlers; those of its roles are in `all_roles`.
    pub handlers: Vec<Handler>,
    /// What configuration puts before and after the play and its roles.
    pub hooks: Hooks,
    /// Every role the play uses, dependencies too, in the order of first use.
    pub all_roles: Vec<Arc<Role>>,
}

/// Tasks that configuration names, loaded as if they stood in the play.
#[derive(Debug, Default)]
pub struct Hooks {
    pub before_play: Vec<Step>,
    pub after_play: Vec<Step>,
    pub before_role: Vec<Step>,
    pub after_role: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    #[default]
    Linear,
    /// Each host on its own.
    Free,
    /// As free, but no more hosts are under way than work at once: one begins when another has ended.
    HostPinned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Inventory,
    ReverseInventory,
    Sorted,
    ReverseSorted,
    Shuffle,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub name: String,
    pub prompt: Option<String>,
    pub default: Option<Value>,
    pub private: bool,
    pub confirm: bool,
    /// The answer is kept as its hash.
    pub encrypt: Option<Encrypt>,
}

/// `encrypt`, `salt` and `salt_size` of a prompt.
#[derive(Debug, Clone)]
pub struct Encrypt {
    pub scheme: String,
    pub salt: Option<String>,
    pub salt_size: Option<i64>,
}

/// What is to be done, in order.
#[derive(Debug, Clone)]
pub enum Step {
    Task(Arc<Task>),
    Block(Arc<Block>),
    Include(Arc<Include>),
}

#[derive(Debug)]
pub struct Block {
    pub origin: Origin,
    pub name: Option<Value>,
    /// The role whose start and end this block is; it runs once per play unless it allows duplicates.
    pub role_entry: Option<Arc<Role>>,
    pub steps: Vec<Step>,
    pub rescue: Vec<Step>,
    pub always: Vec<Step>,
    pub keywords: Arc<Keywords>,
}

#[derive(Debug, Clone)]
pub struct Task {
    pub origin: Origin,
    pub name: Option<Value>,
    pub action: Action,
    /// With all that it inherits from blocks, role and play.
    pub keywords: Arc<Keywords>,
    /// The role it belongs to: its defaults, vars, parameters and directories.
    pub role: Option<Arc<Role>>,
    pub repeat: Option<Loop>,
    pub register: Option<Arc<str>>,
    pub until: Vec<SourceValue>,
    pub retries: Option<SourceValue>,
    pub delay: Option<SourceValue>,
    pub changed_when: Vec<SourceValue>,
    pub failed_when: Vec<SourceValue>,
    pub notify: Vec<SourceValue>,
    pub delegate_to: Option<SourceValue>,
    pub delegate_facts: bool,
    pub asynchronous: Option<SourceValue>,
    pub poll: Option<SourceValue>,
    /// The directory of the tasks file, for relative includes and files.
    pub directory: PathBuf,
}

/// A module and its arguments, templates unrendered.
#[derive(Debug, Clone)]
pub struct Action {
    pub doc: &'static Doc,
    /// The module's name as the task has it, such as `ansible.builtin.copy`.
    pub written: Arc<str>,
    /// Canonical argument names.
    pub args: IndexMap<Arc<str>, SourceValue>,
    /// `args: "{{ dict }}"`, merged below the written ones.
    pub more_args: Option<SourceValue>,
}

#[derive(Debug, Clone)]
pub struct Loop {
    pub items: SourceValue,
    /// `loop` is `None`; `with_dict` is `Some("dict")`.
    pub lookup: Option<Arc<str>>,
    pub control: LoopControl,
}

#[derive(Debug, Clone)]
pub struct LoopControl {
    pub loop_var: Arc<str>,
    pub index_var: Option<Arc<str>>,
    pub label: Option<SourceValue>,
    pub pause: Option<SourceValue>,
    pub extended: bool,
    /// With `extended`: `ansible_loop` has all items, too.
    pub all_items: bool,
    /// After an item for which these hold, the loop ends.
    pub break_when: Vec<SourceValue>,
}

#[derive(Debug, Clone)]
pub struct Handler {
    pub task: Arc<Task>,
    /// Further names by which it is notified.
    pub listen: Vec<Arc<str>>,
    /// A handler may be an include.
    pub include: Option<Arc<Include>>,
}

/// `include_tasks` or `include_role`: loaded while the play runs.
#[derive(Debug, Clone)]
pub struct Include {
    /// Carries name, when, loop, vars, tags of the include itself; its action's arguments are not used.
    pub task: Arc<Task>,
    pub what: IncludeWhat,
    /// Keywords for every task that comes of it: those of what encloses the include, its `vars` and its `apply`;
    /// neither its `when` nor its `tags`.
    pub apply: Arc<Keywords>,
    /// Its own `vars`: they count as parameters, for they win over what the tasks that come of it set and say.
    pub params: Option<Arc<Vars>>,
    /// Its play.
    pub base: Arc<Base>,
}

/// What loading an include needs of the play around it.
#[derive(Debug, Default)]
pub struct Base {
    /// The directory of the playbook file.
    pub directory: PathBuf,
    /// The `vars` of the play: they may name the files of static imports.
    pub vars: Arc<Vars>,
}

#[derive(Debug, Clone)]
pub enum IncludeWhat {
    Tasks {
        file: SourceValue,
    },
    Role {
        name: SourceValue,
        tasks_from: Option<SourceValue>,
        vars_from: Option<SourceValue>,
        defaults_from: Option<SourceValue>,
        handlers_from: Option<SourceValue>,
        public: bool,
        allow_duplicates: bool,
        /// Whether its arguments are checked against the role's own description of them.
        rolespec_validate: bool,
    },
}

/// A role as used at one place. Uses with the same parameters, conditions and tags share one `Arc`, so that the role
/// runs once per host.
#[derive(Debug, Clone)]
pub struct Role {
    pub name: Arc<str>,
    pub path: PathBuf,
    /// With those of its dependencies and of the roles that use it; its own win.
    pub defaults: Arc<Vars>,
    /// With those of its dependencies and of the roles that use it; its own win.
    pub vars: Arc<Vars>,
    /// Parameters given where it is used (`roles: - {role: x, a: 1}`), and `vars:` there.
    pub params: Arc<Vars>,
    pub use_vars: Arc<Vars>,
    /// The tasks of these carry a copy of the role that has no handlers.
    pub handlers: Vec<Handler>,
    pub allow_duplicates: bool,
    /// Whether its vars and defaults are seen by the whole play (`roles:` and `import_role`: yes).
    pub public: bool,
    /// The roles that import or include it, nearest first: `ansible_parent_role_names`.
    pub parents: Vec<Arc<str>>,
    /// Their directories.
    pub parent_paths: Vec<PathBuf>,
    /// The directories of the roles that use it, as dependencies too, the nearest first: its files may be there.
    pub used_by: Vec<PathBuf>,
    /// The conditions and tags where it is used: with others it counts as a different role, and runs again.
    pub distinction: Arc<str>,
    pub dependencies: Vec<Arc<str>>,
    /// The entry of `meta/argument_specs.yml` that describes what this use takes.
    pub argument_spec: Option<SourceValue>,
}

/// Keywords that a task inherits. `None`: not set.
#[derive(Debug, Clone, Default)]
pub struct Keywords {
    /// All conditions, outermost first; each must hold.
    pub when: Vec<SourceValue>,
    pub tags: Vec<Arc<str>>,
    /// Variables of enclosing blocks, outermost first, then the task's own.
    pub vars: Vec<Arc<Vars>>,
    /// Of a handler: the loop variables of its include, with lower precedence than `vars`. They may come from a host.
    pub include_loop_vars: Option<Arc<Vars>>,
    /// Outermost first; later ones win.
    pub environment: Vec<SourceValue>,
    pub r#become: Option<SourceValue>,
    pub become_user: Option<SourceValue>,
    pub become_method: Option<SourceValue>,
    pub become_flags: Option<SourceValue>,
    pub become_exe: Option<SourceValue>,
    pub remote_user: Option<SourceValue>,
    pub connection: Option<SourceValue>,
    pub port: Option<SourceValue>,
    pub no_log: Option<SourceValue>,
    pub ignore_errors: Option<SourceValue>,
    pub ignore_unreachable: Option<SourceValue>,
    pub any_errors_fatal: Option<SourceValue>,
    pub check_mode: Option<SourceValue>,
    pub diff: Option<SourceValue>,
    pub run_once: Option<SourceValue>,
    pub throttle: Option<SourceValue>,
    pub timeout: Option<SourceValue>,
    pub debugger: Option<SourceValue>,
    /// Where roles without a long name are looked for first; a role does not inherit them.
    pub collections: Vec<Arc<str>>,
    /// By module name, weakest first.
    pub module_defaults: Vec<SourceValue>,
    /// Those of blocks and roles; every task has its own copy in [`Task::delegate_to`].
    pub delegate_to: Option<SourceValue>,
    pub delegate_facts: Option<SourceValue>,
    /// Those of blocks; every task without its own has a copy in [`Task::notify`].
    pub notify: Vec<SourceValue>,
}

#[cfg(test)]
mod tests;
