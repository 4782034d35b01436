//! From YAML to plays: the one way in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Include, Keywords, Play, Role, Step, Task};
use crate::value::doc::Doc;
use crate::value::origin::Complaint;
use crate::value::vault::Keyring;
use crate::value::{Value, Vars};

/// What the loader must know of the floors above it.
pub trait Known: Send + Sync {
    /// The module of that name, short or long.
    fn module(&self, name: &str) -> Option<&'static Doc>;
    /// All module names, for "did you mean".
    fn modules(&self) -> Vec<&'static str>;
    /// Checks the templates in a value.
    fn check(&self, value: &Value) -> Result<(), Complaint>;
    /// Checks an expression without braces.
    fn check_expression(&self, expression: &str, origin: &crate::value::Origin) -> Result<(), Complaint>;
    /// Renders what is known before a run (extra variables, play variables): names of roles and imports.
    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Complaint>;
}

/// Loads playbooks, and what they include while they run.
pub struct Loader {
    pub known: Arc<dyn Known>,
    pub keyring: Arc<Keyring>,
    pub extra_vars: Arc<Vars>,
    /// Directories that hold roles, after `roles/` beside the playbook.
    pub roles_path: Vec<PathBuf>,
}

impl Loader {
    /// Reads a playbook and all it imports. All complaints at once, in the order of the files.
    pub fn playbook(&self, path: &Path) -> Result<Vec<Play>, Vec<Complaint>> {
        let _ = path;
        todo!()
    }

    /// The steps of an `include_tasks` whose file name is known by now.
    pub fn included_tasks(&self, include: &Include, file: &str) -> Result<Vec<Step>, Vec<Complaint>> {
        let _ = (include, file);
        todo!()
    }

    /// The role of an `include_role` whose names are known by now, dependencies first; a block as in `roles:`.
    pub fn included_role(
        &self,
        include: &Include,
        name: &str,
        from: &From<'_>,
    ) -> Result<(Vec<Arc<Role>>, Vec<Step>), Vec<Complaint>> {
        let _ = (include, name, from);
        todo!()
    }
}

/// `tasks_from` and its like, rendered.
#[derive(Debug, Default)]
pub struct From<'a> {
    pub tasks: Option<&'a str>,
    pub vars: Option<&'a str>,
    pub defaults: Option<&'a str>,
    pub handlers: Option<&'a str>,
}

/// The task that gathers facts before a play's first.
pub fn setup_task(play: &Play, doc: &'static Doc) -> Task {
    let _: (&Play, &Doc, Option<&Keywords>) = (play, doc, None);
    todo!()
}
