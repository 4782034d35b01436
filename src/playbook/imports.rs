//! Static imports: `import_tasks` and `import_role` are replaced by their content, which inherits their keywords.

use std::path::PathBuf;
use std::sync::Arc;

use super::action::TaskAction;
use super::include::IncludeKind;
use super::inherit::InheritedKeywords;
use super::keywords::KeywordScope;
use super::loader::LoadState;
use super::paths::{normal, parent, similar_name};
use super::role::{Parts, RoleReference};
use super::{Action, Step};
use crate::value::Origin;
use crate::value::origin::Diagnostic;
use crate::value::yaml::Node;

impl LoadState<'_> {
    /// The content of an import.
    pub(super) fn import(
        &mut self,
        map: &Node,
        chosen: &TaskAction,
        verb: IncludeKind,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Vec<Step> {
        let Some((action, inside)) = self.import_place(map, chosen, around, place) else { return Vec::new() };
        if verb == IncludeKind::ImportRole {
            return self.import_role(&action, chosen, &inside);
        }
        let file = action.args.get("file");
        let origin = file.map_or(&chosen.origin, |file| &file.origin).clone();
        match self.known_text(file, &inside) {
            Some(file) => self.tasks_of_file(&file, &origin, &inside, place),
            None => Vec::new(),
        }
    }

    /// The arguments of an import, and the keywords around it.
    pub(super) fn import_place(
        &mut self,
        map: &Node,
        chosen: &TaskAction,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Option<(Action, InheritedKeywords)> {
        self.complain_of_keywords(map, chosen, |name| {
            let is_loop = matches!(name, "loop" | "loop_control" | "until") || name.starts_with("with_");
            is_loop.then(|| {
                format!(
                    "use {}, which windlass loads while the play runs",
                    chosen.doc.name.replace("import", "include")
                )
            })
        });
        let keywords = self.inherit(map, place, around);
        let action = self.arguments(chosen, map.get("args"), &keywords);
        if let Some(more) = &action.more_args {
            let message = format!("the arguments of {} must be written out", chosen.doc.name);
            self.complain(Diagnostic::new(message, Some(&more.origin)));
            return None;
        }
        Some((action, around.with_keywords(keywords)))
    }

    fn import_role(&mut self, action: &Action, chosen: &TaskAction, around: &InheritedKeywords) -> Vec<Step> {
        let origin = action.args.get("name").map_or(&chosen.origin, |name| &name.origin).clone();
        let Some(name) = self.known_text(action.args.get("name"), around) else { return Vec::new() };
        let from = ["tasks_from", "vars_from", "defaults_from", "handlers_from"];
        let from = from.iter().find_map(|name| action.args.get(*name)).map(|from| from.origin.clone());
        let mut part = |name: &str| self.known_text(action.args.get(name), around);
        let parts = Parts {
            origin: from,
            tasks: part("tasks_from"),
            vars: part("vars_from"),
            defaults: part("defaults_from"),
            handlers: part("handlers_from"),
        };
        let flags = [
            ("public", !self.loader.play_defaults.private_role_vars),
            ("allow_duplicates", true),
            ("rolespec_validate", true),
        ];
        let [public, allow_duplicates, validate] =
            flags.map(|(name, default)| self.read_flag(action.args.get(name)).unwrap_or(default));
        let used = RoleReference::role_named(&name, origin)
            .parts(parts)
            .included(public, allow_duplicates, None)
            .validated(validate);
        self.use_role(used, around)
    }

    /// The steps of a file of tasks, relative to the file that is being read, its role or the playbook.
    pub(super) fn tasks_of_file(
        &mut self,
        file: &str,
        origin: &Origin,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Vec<Step> {
        let read = self.open_import(file, origin, around, "tasks");
        let Some((path, node)) = read else { return Vec::new() };
        let inside = InheritedKeywords { directory: parent(&path), ..around.clone() };
        self.open_files.push(path);
        let steps = self.steps(&node, "a file of tasks", &inside, place);
        self.open_files.pop();
        steps
    }

    /// Finds and reads a file of tasks or handlers; complains if it is missing, empty or under way already.
    pub(super) fn open_import(
        &mut self,
        file: &str,
        origin: &Origin,
        around: &InheritedKeywords,
        folder: &str,
    ) -> Option<(PathBuf, Arc<Node>)> {
        let candidates = self.candidates(file, around, folder);
        let Some(path) = candidates.iter().find(|path| path.is_file()).cloned() else {
            let complaint = Diagnostic::new(format!("cannot find the file {file:?}"), Some(origin));
            let similar = similar_name(&around.directory, file);
            self.complain(match similar {
                Some(name) => complaint.hint(format!("did you mean {name:?}?")),
                None => complaint.hint(format!("searched {}", self.loader.listed(&candidates, ", "))),
            });
            return None;
        };
        if self.open_files.contains(&path) {
            let way = self.loader.listed(&self.open_files, " > ");
            let message = format!("the file {file:?} imports itself");
            self.complain(Diagnostic::new(message, Some(origin)).hint(format!("import chain: {way}")));
            return None;
        }
        let wrong = self.wrong_so_far();
        let node = self.load_file(&path);
        if node.is_none() && self.wrong_so_far() == wrong {
            self.warn(Diagnostic::new(format!("the file {file:?} is empty"), Some(origin)));
        }
        Some((path, node?))
    }

    /// Where a file of tasks may be, likeliest first.
    fn candidates(&self, file: &str, around: &InheritedKeywords, folder: &str) -> Vec<PathBuf> {
        let mut places = vec![around.directory.clone()];
        if let Some(role) = &around.role {
            places.extend([role.path.join(folder), role.path.clone()]);
        }
        places.extend([self.base.directory.join(folder), self.base.directory.clone()]);
        let mut candidates: Vec<PathBuf> = Vec::new();
        for path in places.into_iter().map(|place| normal(&place.join(file))) {
            if !candidates.contains(&path) {
                candidates.push(path);
            }
        }
        candidates
    }
}
