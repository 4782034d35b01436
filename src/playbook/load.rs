//! From YAML to plays: the one way in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::keywords::KeywordScope;
use super::loader::LoadState;
pub use super::loader::{EntryPoint, FindRole, HookFiles, Loaded, Loader, LoaderContext, OwnPrograms, PlayDefaults};
use super::paths::parent;
use super::role::{Parts, RoleReference};
use super::{Action, Base, Include, Play, Role, SourceValue, Step, Task};
use crate::value::doc::Doc;
use crate::value::{Origin, Source, Value, Vars};

impl Loader {
    /// Reads a playbook and all it imports. Reports all errors together, in the order of the files.
    pub fn load_playbook(&self, path: &Path) -> Loaded<Vec<Play>> {
        let mut load = LoadState::new(self, Arc::default());
        let plays = load.load_plays(path, &self.play_defaults.keywords, &Vars::new(), None);
        load.finish_load(plays)
    }

    /// The steps of an `include_tasks` whose file name is known by now.
    pub fn included_tasks(&self, include: &Include, file: &str) -> Loaded<Vec<Step>> {
        let mut load = LoadState::new(self, include.base.clone());
        let around = InheritedKeywords::of_include(include);
        let steps = load.tasks_of_file(file, &include.task.origin, &around, KeywordScope::Task);
        load.finish_load(steps)
    }

    /// The role of an `include_role` whose names are known by now, dependencies first; a block as in `roles:`.
    pub fn included_role(
        &self,
        include: &Include,
        name: &str,
        from: &EntryPoint<'_>,
    ) -> Loaded<(Vec<Arc<Role>>, Vec<Step>)> {
        let mut load = LoadState::new(self, include.base.clone());
        let parts = Parts {
            origin: None,
            tasks: from.tasks.map(str::to_owned),
            vars: from.vars.map(str::to_owned),
            defaults: from.defaults.map(str::to_owned),
            handlers: from.handlers.map(str::to_owned),
        };
        let mut used = RoleReference::role_named(name, include.task.origin.clone()).parts(parts);
        if let super::IncludeWhat::Role { public, allow_duplicates, rolespec_validate, .. } = include.what {
            used = used.included(public, allow_duplicates, include.params.as_deref()).validated(rolespec_validate);
        }
        let steps = load.use_role(used, &InheritedKeywords::of_include(include));
        let roles = std::mem::take(&mut load.all_roles);
        load.finish_load((roles, steps))
    }

    /// Checks a role on its own, as a play without variables would use it.
    pub fn role(&self, path: &Path) -> Loaded<()> {
        let mut load = LoadState::new(self, Arc::new(Base { directory: around_role(path), vars: Arc::default() }));
        load.role_alone(path);
        load.finish_load(())
    }

    /// Checks a file of tasks or handlers that is included only while a play runs, as part of the role at `role`.
    pub fn steps_file(&self, path: &Path, role: Option<&Path>, handlers: bool) -> Loaded<()> {
        let directory = role.map_or_else(|| parent(path), around_role);
        let mut load = LoadState::new(self, Arc::new(Base { directory, vars: Arc::default() }));
        // Errors of the role itself are reported where the role is checked.
        let role = role.and_then(|role| LoadState::new(self, load.base.clone()).role_alone(role));
        let around = InheritedKeywords { keywords: Arc::default(), role, directory: parent(path) };
        if let Some(node) = load.load_file(path) {
            if handlers {
                load.handlers(&node, "a file of handlers", &around);
            } else {
                load.steps(&node, "a file of tasks", &around, KeywordScope::Task);
            }
        }
        load.finish_load(())
    }

    /// Checks a file of variables.
    pub fn variables_file(&self, path: &Path) -> Loaded<()> {
        let mut load = LoadState::new(self, Arc::default());
        if let Some(node) = load.load_file(path) {
            load.file_vars(&node);
        }
        load.finish_load(())
    }
}

impl LoadState<'_> {
    /// Loads the role in a directory; None if that cannot be done.
    fn role_alone(&mut self, path: &Path) -> Option<Arc<Role>> {
        let source = Source::new(path, "");
        let origin = Origin { source: Arc::new(source), line: 1, column: 1 };
        let absolute = self.loader.surroundings.absolute(path);
        let around = InheritedKeywords { keywords: Arc::default(), role: None, directory: self.base.directory.clone() };
        self.use_role(RoleReference::role_named(&absolute.display().to_string(), origin), &around);
        self.all_roles.last().cloned()
    }
}

/// Where the playbooks would be that use a role: what holds its `roles/`.
fn around_role(path: &Path) -> PathBuf {
    parent(&parent(path))
}

/// The task that gathers facts before a play's first. It is tagged `always` unless the play has tags.
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
    let args = given.filter(|(name, _): &(Arc<str>, SourceValue)| doc.argument(name).is_some()).collect();
    let action = Action { doc, written: Arc::from(doc.name), args, more_args: None };
    let name = Some(Value::from("Gathering Facts"));
    Task::plain_task(play.origin.clone(), name, action, Arc::new(keywords), play.directory.clone())
}
