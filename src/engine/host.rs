//! A host on its way through a play, and what it lets others read.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use indexmap::IndexSet;

use crate::inventory::VarsFiles;
use crate::playbook::Role;
use crate::value::Vars;

/// A host in a play: it goes into a task and comes out of it; nobody else holds it meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct HostRun {
    pub name: Arc<str>,
    /// Its place among the play's hosts; results go back to this order.
    pub order: usize,
    /// Group and host variables of the inventory and of the files beside it and the playbook, weakest first.
    pub inventory: Vec<Arc<Vars>>,
    /// `inventory_hostname` and the like.
    pub magic: Arc<Vars>,
    pub vars: HostVars,
    /// Handlers (by their index in the play's list) that wait.
    pub notified: IndexSet<usize>,
    pub state: State,
    /// Variables of the play's `vars_files`, as this host sees them.
    pub play_files: Arc<Vars>,
    /// Loop variables of the includes that it is in, outermost first.
    pub include_params: Vec<Arc<Vars>>,
    /// Roles that ran on it in this play: they do not run twice.
    pub roles_done: Vec<Arc<Role>>,
}

/// Whether a host goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Going,
    /// A task failed; a `rescue` may save it.
    Failed,
    /// Cannot be reached; nothing saves it in this run.
    Unreachable,
    /// `meta: end_host` or `end_play`.
    Ended,
    /// Another host's failure ended the play for it (`any_errors_fatal`); no failure of its own.
    Halted,
}

/// What a host learnt while it ran, kept from play to play.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostVars {
    pub facts: Arc<Vars>,
    pub include_vars: Arc<Vars>,
    /// `set_fact` and `register`.
    pub set: Arc<Vars>,
    /// Roles that `include_role` made public to it.
    pub roles: Vec<Arc<Role>>,
    /// `group_vars/` and `host_vars/` beside the playbook of its last play.
    pub files: Option<Arc<VarsFiles>>,
}

impl HostRun {
    pub fn going(&self) -> bool {
        self.state == State::Going
    }
}

/// What hosts have published: `hostvars` reads it, and a later play begins with it.
#[derive(Debug, Default)]
pub(crate) struct Board(RwLock<HashMap<Arc<str>, HostVars>>);

impl Board {
    pub fn publish(&self, host: &Arc<str>, vars: &HostVars) {
        self.0.write().expect("nothing panics while it holds the board").insert(host.clone(), vars.clone());
    }

    pub fn read(&self, host: &str) -> HostVars {
        self.0.read().expect("nothing panics while it holds the board").get(host).cloned().unwrap_or_default()
    }
}

/// Adds variables to a shared layer.
pub(crate) fn extend(layer: &mut Arc<Vars>, more: Vars) {
    Arc::make_mut(layer).extend(more);
}
