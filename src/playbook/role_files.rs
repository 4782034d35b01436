//! Where roles are, and the files in them: `tasks/main.yml`, `vars/main/*.yml` and their like.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Role;
use super::inherit::InheritedKeywords;
use super::loader::LoadState;
use super::paths::{normal, parent, similar_name};
use crate::value::origin::Diagnostic;
use crate::value::yaml::Node;
use crate::value::{Origin, Value, Vars};

/// Whether a name is that of something in a collection: `namespace.collection.name`.
pub(super) fn is_collection_name(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    name.split('.').count() >= 3 && name.split('.').all(part)
}

/// The collection that a role is in: `…/ansible_collections/NAMESPACE/NAME/roles/ROLE`.
pub(super) fn collection_of(role: &Path) -> Option<String> {
    let parts: Vec<&str> = role.iter().rev().take(5).filter_map(|part| part.to_str()).collect();
    match parts[..] {
        [_, "roles", name, namespace, "ansible_collections"] => Some(format!("{namespace}.{name}")),
        _ => None,
    }
}

impl Role {
    /// The collection that it is in.
    pub fn collection(&self) -> Option<String> {
        collection_of(&self.path)
    }

    /// The variables about the role in its own tasks: `role_name`, `ansible_parent_role_names` and the like.
    pub fn magic(&self) -> Vars {
        // A role of a collection has a long name and a short one.
        let collection = self.collection();
        let short = collection.as_ref().and_then(|_| self.name.rsplit('.').next()).unwrap_or(&self.name);
        let mut vars = Vars::from([
            ("role_name".into(), Value::from(short)),
            ("ansible_role_name".into(), Value::from(self.name.as_ref())),
            ("role_path".into(), Value::from(self.path.display().to_string())),
        ]);
        vars.insert("ansible_collection_name".into(), Value::from(collection.unwrap_or_default()));
        if !self.parents.is_empty() {
            let names = self.parents.iter().map(|name| Value::from(name.as_ref()));
            let paths = self.parent_paths.iter().map(|path| Value::from(path.display().to_string()));
            vars.insert("ansible_parent_role_names".into(), names.collect());
            vars.insert("ansible_parent_role_paths".into(), paths.collect());
        }
        vars
    }
}

impl LoadState<'_> {
    /// The directory of a role: in its collection, beside the playbook, in the roles' path, beside the role that uses it, and
    /// only then those of windlass.
    pub(super) fn role_directory(
        &mut self,
        name: &str,
        origin: &Origin,
        around: &InheritedKeywords,
    ) -> Option<PathBuf> {
        // `playbooks/` and `roles/` side by side is the layout of this project, and of many others.
        let beside = self.base.directory.parent().map(|parent| parent.join("roles"));
        let mut places = Vec::new();
        if !self.loader.ignores_beside {
            places.push(self.base.directory.join("roles"));
            places.extend(beside.filter(|_| self.base.directory.file_name().is_some_and(|name| name == "playbooks")));
        }
        places.extend(self.loader.roles_path.iter().cloned());
        places.extend(around.role.iter().map(|role| parent(&role.path)));
        places.extend(Some(self.base.directory.clone()).filter(|_| !self.loader.ignores_beside));
        let name_path = self.loader.surroundings.expand_home(name);
        let short = !is_collection_name(name) && !name.contains('/');
        let long =
            around.keywords.collections.iter().filter(|_| short).map(|collection| format!("{collection}.{name}"));
        let names = long.chain([name.to_owned()]);
        let collections: Vec<PathBuf> = names.flat_map(|name| self.of_collections(&name)).collect();
        let plain = places.iter().map(|place| normal(&place.join(&name_path)));
        let found = collections.iter().cloned().chain(plain).find(|path| path.is_dir());
        let last = || self.loader.last_roles.as_ref().filter(|_| !name.contains('/'))?(name);
        let found = found.or_else(last);
        if found.is_none() {
            let complaint = Diagnostic::new(format!("cannot find the role {name:?}"), Some(origin));
            let mut reported: Vec<PathBuf> = Vec::new();
            let above = |path: &PathBuf| path.parent().map(Path::to_path_buf);
            for place in collections.iter().filter_map(above).chain(places) {
                if !reported.contains(&place) {
                    reported.push(place);
                }
            }
            let looked = format!("searched {}", self.loader.listed(&reported, ", "));
            let roles = reported.iter().filter(|place| !name.contains('/') && **place != self.base.directory);
            let similar = roles.filter_map(|place| similar_name(place, name)).next();
            self.complain(match similar {
                Some(other) => complaint.hint(format!("did you mean {other:?}? {looked}")),
                None => complaint.hint(looked),
            });
        }
        found
    }

    /// Where the role `namespace.collection.role` would be; nowhere for a name of another form.
    fn of_collections(&self, name: &str) -> Vec<PathBuf> {
        let parts: Vec<&str> = name.splitn(3, '.').collect();
        let ([namespace, collection, role], true) = (parts.as_slice(), is_collection_name(name)) else {
            return Vec::new();
        };
        let below: PathBuf = ["ansible_collections", namespace, collection, "roles"].iter().collect();
        // A role in a directory of roles: `a.b`.
        let below = below.join(role.replace('.', "/"));
        let beside = Some(self.base.directory.join("collections")).filter(|_| !self.loader.ignores_beside);
        let places = beside.iter().chain(&self.loader.collections);
        places.map(|place| normal(&place.join(&below))).collect()
    }

    /// The file of a part of a role: `main` or the one named, with or without its ending. Complains if the one named
    /// is not there.
    pub(super) fn part_file(&mut self, directory: &Path, name: Option<&str>, origin: &Origin) -> Option<PathBuf> {
        let stem = name.unwrap_or("main");
        let endings =
            if name.is_some() { &["", ".yml", ".yaml", ".json"][..] } else { &[".yml", ".yaml", ".json", ""] };
        let found = endings.iter().map(|ending| directory.join(format!("{stem}{ending}"))).find(|path| path.is_file());
        if found.is_none()
            && let Some(name) = name
            && !directory.join(name).is_dir()
        {
            let message = format!("the role has no file {:?}", Path::new(&last_part(directory)).join(name));
            let complaint = Diagnostic::new(message, Some(origin));
            self.complain(match similar_name(directory, name) {
                Some(other) => complaint.hint(format!("did you mean {other:?}?")),
                None => complaint.hint(format!("searched {}", self.loader.shown(directory).display())),
            });
        }
        found
    }

    /// The files of a part, in order: one file, or all of the directory `main/` and those below it.
    pub(super) fn part_files(&mut self, directory: &Path, name: Option<&str>, origin: &Origin) -> Vec<PathBuf> {
        if let Some(file) = self.part_file(directory, name, origin) {
            return vec![file];
        }
        let mut files = Vec::new();
        collect_files(&directory.join(name.unwrap_or("main")), &mut files);
        files
    }

    /// The variables of `defaults` or `vars`; of two files the later wins.
    pub(super) fn role_vars(&mut self, directory: &Path, name: Option<&str>, origin: &Origin) -> Vars {
        let mut all = Vars::new();
        for path in self.part_files(directory, name, origin) {
            if let Some(node) = self.load_file(&path) {
                all.extend(self.file_vars(&node));
            }
        }
        all
    }

    /// The trees of `tasks` or `handlers`, each with its path.
    pub(super) fn role_trees(
        &mut self,
        directory: &Path,
        name: Option<&str>,
        origin: &Origin,
    ) -> Vec<(PathBuf, Arc<Node>)> {
        let files = self.part_files(directory, name, origin);
        files.into_iter().filter_map(|path| self.load_file(&path).map(|node| (path, node))).collect()
    }
}

fn last_part(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// All YAML and JSON files below a directory, sorted by name; hidden ones and editors' copies are left out.
fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = last_part(&path);
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        if path.is_dir() {
            collect_files(&path, files);
        } else if ["yml", "yaml", "json"].iter().any(|ending| path.extension().is_some_and(|found| found == *ending)) {
            files.push(path);
        }
    }
}
