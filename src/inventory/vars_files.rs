//! Variables of groups and hosts in files: `group_vars/NAME` and `host_vars/NAME` below a directory, each a file
//! (`.yml`, `.yaml`, `.json` or no extension) or a directory of files.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use super::{Inventory, LOCALHOST};
use crate::value::origin::Diagnostic;
use crate::value::vault::Keyring;
use crate::value::yaml::{self, Duplicates};
use crate::value::{HashBehaviour, Vars};

/// Tried in this order; the first that exists is taken.
const EXTENSIONS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// Variables of `group_vars/` and `host_vars/` in a directory, by group or host name.
#[derive(Debug, Clone, Default)]
pub struct VarsFiles {
    /// Has every group that was looked for, also those without a file.
    pub groups: IndexMap<Arc<str>, Vars>,
    /// Has every host that was looked for, also those without a file.
    pub hosts: IndexMap<Arc<str>, Vars>,
    directory: PathBuf,
}

/// Reads `group_vars/` and `host_vars/` below a directory (beside a playbook), for the hosts and groups there are.
pub fn vars_files(directory: &Path, inventory: &Inventory, keyring: &Keyring) -> Result<VarsFiles, Diagnostic> {
    let mut files = VarsFiles::unread(directory);
    files.complete(inventory, keyring)?;
    Ok(files)
}

impl VarsFiles {
    /// Nothing read yet.
    pub fn unread(directory: &Path) -> VarsFiles {
        VarsFiles { directory: directory.into(), ..VarsFiles::default() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the files of hosts and groups that were not looked for yet, as after `add_host`.
    pub fn complete(&mut self, inventory: &Inventory, keyring: &Keyring) -> Result<(), Diagnostic> {
        let hosts = inventory.hosts.keys().map(|name| &**name).chain(LOCALHOST);
        let groups = inventory.groups.keys().map(|name| &**name);
        let read = |file: &Path| read_vars_file(file, keyring, &inventory.duplicates);
        let behaviour = inventory.hash_behaviour;
        read_new(&mut self.groups, &self.directory.join("group_vars"), groups, read, behaviour)?;
        read_new(&mut self.hosts, &self.directory.join("host_vars"), hosts, read, behaviour)
    }
}

fn read_new<'a>(
    known: &mut IndexMap<Arc<str>, Vars>,
    directory: &Path,
    names: impl Iterator<Item = &'a str>,
    read: impl Fn(&Path) -> Result<Vars, Diagnostic>,
    hash_behaviour: HashBehaviour,
) -> Result<(), Diagnostic> {
    let there = directory.is_dir();
    for name in names {
        if known.contains_key(name) {
            continue;
        }
        let mut vars = Vars::new();
        // A host that is named by a path (of a chroot, say) has no files; nor does a group by a text of a host lead elsewhere.
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if there && inside {
            for file in files_of(directory, name)? {
                hash_behaviour.combine(&mut vars, read(&file)?);
            }
        }
        known.insert(name.into(), vars);
    }
    Ok(())
}

fn read_vars_file(file: &Path, keyring: &Keyring, duplicates: &Duplicates) -> Result<Vars, Diagnostic> {
    match yaml::load_yaml(file, keyring, duplicates)? {
        Some(node) => node.to_vars(keyring),
        None => Ok(Vars::new()),
    }
}

/// The files of one name, in the order in which later ones win.
fn files_of(directory: &Path, name: &str) -> Result<Vec<PathBuf>, Diagnostic> {
    let found = EXTENSIONS.iter().map(|extension| directory.join(format!("{name}{extension}"))).find(|p| p.exists());
    match found {
        Some(path) if path.is_dir() => below(&path),
        Some(path) => Ok(vec![path]),
        None => Ok(Vec::new()),
    }
}

/// Files of a directory and of the directories in it, by name. Hidden ones, backups (`~`) and other extensions
/// are left out, and directories with an extension.
fn below(directory: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let unreadable =
        |error| Diagnostic::new(format!("cannot read the directory {}: {error}", directory.display()), None);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let path = directory.join(&name);
        let text = name.to_string_lossy();
        if text.starts_with('.') || text.ends_with('~') {
            continue;
        }
        let extension = text.rfind('.').map_or("", |dot| &text[dot..]);
        if path.is_dir() && extension.is_empty() {
            files.extend(below(&path)?);
        } else if path.is_file() && EXTENSIONS.contains(&extension) {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Inventory, Keyring, vars_files};
    use crate::value::Value;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn inventory() -> Inventory {
        Inventory::load(&["web1,db1".into()], &Keyring::default()).unwrap()
    }

    #[test]
    fn a_directory_of_files_is_read_by_name_and_strange_files_are_left_out() {
        let directory = written(&[
            ("group_vars/all/10.yml", "a: 1\nb: 1"),
            ("group_vars/all/20/x.yaml", "b: 2"),
            ("group_vars/all/30", "{\"c\": 3}"),
            ("group_vars/all/40.txt", "c: 4"),
            ("group_vars/all/.50.yml", "c: 5"),
            ("group_vars/all/60.yml~", "c: 6"),
            ("group_vars/all/70.d/x.yml", "c: 7"),
            ("group_vars/all/80.yml", ""),
        ]);
        let files = vars_files(directory.path(), &inventory(), &Keyring::default()).unwrap();
        let all = &files.groups["all"];
        assert_eq!((&all["a"], &all["b"], &all["c"]), (&Value::from(1), &Value::from(2), &Value::from(3)));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let directory = written(&[("group_vars/x/a.yml", "a: 1"), ("fetched/motd", "a: 2"), ("fetched/m.yml", "a: 3")]);
        let names = ["../fetched/motd", "../fetched/m", "x/../../fetched/motd", "x"];
        for name in names {
            let mut known = super::IndexMap::new();
            let groups = directory.path().join("group_vars");
            let read = |file: &std::path::Path| super::read_vars_file(file, &Keyring::default(), &Default::default());
            super::read_new(&mut known, &groups, std::iter::once(name), read, Default::default()).unwrap();
            assert_eq!(known[name].is_empty(), name != "x", "{name}");
        }
    }

    #[test]
    fn only_the_first_extension_counts() {
        let directory = written(&[
            ("host_vars/web1", "from: none"),
            ("host_vars/web1.yml", "from: yml"),
            ("host_vars/db1.json", "{\"from\": \"json\"}"),
            ("host_vars/db1.yaml", "from: yaml"),
        ]);
        let files = vars_files(directory.path(), &inventory(), &Keyring::default()).unwrap();
        assert_eq!(files.hosts["web1"]["from"], Value::from("none"));
        assert_eq!(files.hosts["db1"]["from"], Value::from("yaml"));
    }

    #[test]
    fn files_of_unknown_names_are_not_even_opened() {
        let directory = written(&[("host_vars/other.yml", "\t broken: [")]);
        assert!(vars_files(directory.path(), &inventory(), &Keyring::default()).is_ok());
    }

    #[test]
    fn a_file_that_is_no_mapping_is_refused_with_its_place() {
        let directory = written(&[("host_vars/web1.yml", "- a\n")]);
        let complaint = vars_files(directory.path(), &inventory(), &Keyring::default()).unwrap_err();
        assert!(complaint.to_string().contains("host_vars/web1.yml:1:1: "), "{complaint}");
    }
}
