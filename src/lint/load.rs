//! Every check of a load, for all playbooks, all roles on their own, and the files of tasks that neither includes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::LintSettings;
use super::project::{FileRole, LintFile};
use crate::engine::BuildContext;
use crate::playbook::load::Loader;
use crate::template::Templar;
use crate::value::origin::Diagnostic;

/// Errors and warnings, each once.
pub(super) fn load_files(files: &[LintFile], settings: &LintSettings) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let known = Arc::new(BuildContext { templar: Templar::new() });
    let mut loader = Loader::new(known, settings.keyring.clone(), Arc::default(), settings.roles_path.clone());
    loader.surroundings = settings.surroundings.clone();
    loader.collections = settings.collections.clone();
    loader.last_roles = settings.last_roles.clone();
    (loader.library, loader.words) = (settings.library.clone(), settings.words.clone());
    let (mut errors, mut known) = (Vec::new(), HashSet::new());
    let mut add = |complaints: Vec<Diagnostic>| {
        errors.extend(complaints.into_iter().filter(|complaint| known.insert(complaint.clone())));
    };
    add(files.iter().filter_map(|file| file.broken.clone()).collect());
    let mut roles: Vec<&PathBuf> = files.iter().filter_map(|file| file.role.as_ref()).collect();
    roles.sort();
    roles.dedup();
    for file in files.iter().filter(|file| file.sort == FileRole::Playbook) {
        add(loader.load_playbook(&file.path).err().unwrap_or_default());
    }
    for role in roles {
        add(loader.role(role).err().unwrap_or_default());
    }
    for file in files {
        let handlers = file.sort == FileRole::Handlers;
        let wanted = handlers || file.sort == FileRole::Tasks || file.sort == FileRole::Variables;
        if wanted && !loader.has_read(&file.path) {
            add(match file.sort {
                FileRole::Variables => loader.variables_file(&file.path),
                _ => loader.steps_file(&file.path, file.role.as_deref(), handlers),
            }
            .err()
            .unwrap_or_default());
        }
    }
    (errors, loader.take_warnings())
}
