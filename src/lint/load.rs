//! Every check of a load, for all playbooks, all roles by themselves, and the files of tasks that neither brought in.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::Settings;
use super::project::{File, Sort};
use crate::engine::Known;
use crate::playbook::load::Loader;
use crate::template::Templar;
use crate::value::origin::Complaint;

/// What is wrong and what is odd, each once.
pub(super) fn all(files: &[File], settings: &Settings) -> (Vec<Complaint>, Vec<Complaint>) {
    let known = Arc::new(Known { templar: Templar::new() });
    let mut loader = Loader::new(known, settings.keyring.clone(), Arc::default(), settings.roles_path.clone());
    loader.surroundings = settings.surroundings.clone();
    loader.collections = settings.collections.clone();
    loader.last_roles = settings.last_roles.clone();
    (loader.library, loader.words) = (settings.library.clone(), settings.words.clone());
    let (mut errors, mut known) = (Vec::new(), HashSet::new());
    let mut add = |complaints: Vec<Complaint>| {
        errors.extend(complaints.into_iter().filter(|complaint| known.insert(complaint.clone())));
    };
    add(files.iter().filter_map(|file| file.broken.clone()).collect());
    let mut roles: Vec<&PathBuf> = files.iter().filter_map(|file| file.role.as_ref()).collect();
    roles.sort();
    roles.dedup();
    for file in files.iter().filter(|file| file.sort == Sort::Playbook) {
        add(loader.playbook(&file.path).err().unwrap_or_default());
    }
    for role in roles {
        add(loader.role(role).err().unwrap_or_default());
    }
    for file in files {
        let handlers = file.sort == Sort::Handlers;
        let wanted = handlers || file.sort == Sort::Tasks || file.sort == Sort::Variables;
        if wanted && !loader.has_read(&file.path) {
            add(match file.sort {
                Sort::Variables => loader.variables_file(&file.path),
                _ => loader.steps_file(&file.path, file.role.as_deref(), handlers),
            }
            .err()
            .unwrap_or_default());
        }
    }
    (errors, loader.take_warnings())
}
