//! Hosts, groups and their variables, from files, scripts and lists. Plain data: loading touches no host.
//! `sources/` reads, `graph.rs` keeps hosts and groups in order, `pattern.rs` selects, `vars_files.rs` reads
//! `group_vars/` and `host_vars/`.

mod address;
mod control_plane_clusters;
mod graph;
mod literal;
mod pattern;
mod range;
mod shell_words;
mod sources;
mod vars_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use crate::connection::Confinement;
use crate::credentials::Credentials;
use crate::resource::{Deployment, ForeignResourceLimits};
use crate::value::origin::Diagnostic;
use crate::value::vault::Keyring;
use crate::value::yaml::Duplicates;
use crate::value::{HashBehaviour, Vars};

pub use control_plane_clusters::{ControlPlaneClusters, JoinedCluster};
pub use pattern::{glob, read_limit_files, split};
pub use sources::{SOURCES, SourceKind, read_referenced_secret};
pub use vars_files::{VarsFiles, vars_files};

/// Names that mean this very host. One that no source defines is there all the same when it is named, and is
/// reached without SSH.
pub const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// In the order of definition. The implicit localhost is not among them: see [`Inventory::host`].
    pub hosts: IndexMap<Arc<str>, Host>,
    /// `all` and `ungrouped` are always there.
    pub groups: IndexMap<Arc<str>, Group>,
    /// Where it came from, absolute; a comma list as it was written.
    pub sources: Vec<PathBuf>,
    /// The deployments that sources describe, one at most.
    pub deployments: Vec<Deployment>,
    /// Where the credentials of the deployment are kept.
    pub credentials: Option<Credentials>,
    /// Another text for other secrets that a server has handed over. Empty: it has handed none.
    pub handed_generation: String,
    /// Warnings, each with its location if it has one.
    pub warnings: Vec<String>,
    /// `group_vars/` and `host_vars/` beside the sources, weakest first.
    beside: Vec<VarsFiles>,
    /// The implicit localhost under each of its names.
    implicit: IndexMap<Arc<str>, Host>,
    keyring: Keyring,
    /// What becomes of duplicate keys in its files.
    pub duplicates: Duplicates,
    /// One of the sources is what a program printed.
    printed: bool,
    /// What becomes of variables that several groups, or a group and a host, have.
    pub hash_behaviour: HashBehaviour,
    /// What foreign documents may use.
    allowed: Arc<ForeignResourceLimits>,
    /// It describes a foreign resource: connections stay within these limits. No other source, no `group_vars/` and
    /// no `host_vars/` count for them, as these may hold what the writer of the resource must not get.
    pub confined: Option<Arc<Confinement>>,
}

/// What is said of all sources alike.
#[derive(Debug, Clone, Default)]
pub struct InventoryOptions {
    pub hash_behaviour: HashBehaviour,
    pub allowed: Arc<ForeignResourceLimits>,
    /// What becomes of duplicate keys.
    pub duplicates: Duplicates,
}

#[derive(Debug, Clone, Default)]
pub struct Host {
    pub name: Arc<str>,
    /// Its own variables as written in the inventory source; [`Inventory::vars_of`] has all.
    pub vars: Vars,
    /// Groups that name it directly.
    pub groups: IndexSet<Arc<str>>,
    /// The names of those variables that `add_host` gave it while a play ran: another host may have said them.
    added: IndexSet<Arc<str>>,
}

#[derive(Debug, Clone, Default)]
pub struct Group {
    pub name: Arc<str>,
    /// As written in the inventory source; [`Inventory::group_vars`] has those of the files too.
    pub vars: Vars,
    pub children: IndexSet<Arc<str>>,
    pub parents: IndexSet<Arc<str>>,
    /// Hosts it names directly.
    pub hosts: IndexSet<Arc<str>>,
    /// `ansible_group_priority`, 1 unless set.
    pub priority: i64,
    /// Steps of the longest way down from `all`, which has 0.
    pub depth: usize,
}

impl Inventory {
    /// Reads all sources, in order; each is a path or a comma list (`a,b,`). No source: the implicit localhost alone.
    pub fn load(sources: &[String], keyring: &Keyring) -> Result<Inventory, Vec<Diagnostic>> {
        Inventory::load_with(sources, keyring, &InventoryOptions::default())
    }

    /// As [`Inventory::load`], with what the settings say of all sources.
    pub fn load_with(
        sources: &[String],
        keyring: &Keyring,
        reading: &InventoryOptions,
    ) -> Result<Inventory, Vec<Diagnostic>> {
        let InventoryOptions { hash_behaviour, allowed, duplicates } = reading.clone();
        let mut inventory = Inventory { hash_behaviour, allowed, duplicates, ..Inventory::empty(keyring) };
        for source in sources {
            let path = sources::read_source(&mut inventory, source)?;
            if path.exists() && inventory.confined.is_none() {
                let directory = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(Path::new("/")) };
                // Of a directory that is beside two sources, the later turn counts.
                inventory.beside.retain(|files| files.directory() != directory);
                inventory.beside.push(VarsFiles::unread(directory));
            }
            inventory.sources.push(path);
        }
        inventory.check_confined()?;
        inventory.reconcile();
        inventory.load_vars_files()?;
        Ok(inventory)
    }

    /// What is said of all its sources, to read them again.
    pub fn reading(&self) -> InventoryOptions {
        let (allowed, duplicates) = (self.allowed.clone(), self.duplicates.clone());
        InventoryOptions { hash_behaviour: self.hash_behaviour, allowed, duplicates }
    }

    /// A foreign resource must be the only source: it could name a host of another source, and get that host's passwords.
    fn check_confined(&self) -> Result<(), Diagnostic> {
        let single = self.sources.len() == 1 && !self.sources[0].is_dir();
        match self.deployments.first() {
            Some(deployment) if self.confined.is_some() && !single => {
                let message =
                    format!("the resource {} came from an API and must be the only inventory", deployment.name);
                Err(Diagnostic::new(message, Some(&deployment.node.origin))
                    .hint("pass it alone, with a single -i or -f"))
            }
            _ => Ok(()),
        }
    }

    /// The host of that name; `localhost`, `127.0.0.1` and `::1` are there even if no source defines them.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.get(name).or_else(|| self.implicit.get(name))
    }

    /// All hosts of a group, its own first, then those of its children level by level, each once.
    pub fn hosts_of(&self, group: &str) -> Vec<Arc<str>> {
        let mut names = IndexSet::new();
        for group in self.descendants(group) {
            names.extend(self.groups[&group].hosts.iter().cloned());
        }
        if group == graph::ALL {
            names.retain(|name| self.hosts.contains_key(name));
        }
        names.into_iter().collect()
    }

    /// All groups of a host, `all` first, parents before children, then by priority and name:
    /// the order in which their variables are merged, weakest first. An implicit host has `all` too.
    pub fn groups_of(&self, host: &str) -> Vec<&Group> {
        let mut names = IndexSet::new();
        if let Some(host) = self.host(host) {
            names.insert(Arc::from(graph::ALL));
            for group in &host.groups {
                names.extend(self.ancestors(group));
                names.insert(group.clone());
            }
        }
        let mut groups: Vec<&Group> = names.iter().filter_map(|name| self.groups.get(name)).collect();
        groups.sort_by(|a, b| (a.depth, a.priority, &a.name).cmp(&(b.depth, b.priority, &b.name)));
        groups
    }

    /// Variables of a group alone: of the sources, then of `group_vars/` beside them.
    pub fn group_vars(&self, group: &str) -> Vars {
        let mut vars = self.groups.get(group).map(|group| group.vars.clone()).unwrap_or_default();
        for files in &self.beside {
            self.merge(&mut vars, files.groups.get(group));
        }
        vars
    }

    /// Variables of a host alone: of the sources, then of `host_vars/` beside them.
    pub fn host_vars(&self, host: &str) -> Vars {
        let mut vars = self.host(host).map(|host| host.vars.clone()).unwrap_or_default();
        for files in &self.beside {
            self.merge(&mut vars, files.hosts.get(host));
        }
        vars
    }

    /// Everything that inventory, `group_vars/` and `host_vars/` say of a host, merged in Ansible's order: `all`
    /// before the other groups, for each the sources, then files beside them, then files beside the playbook;
    /// the host last, in the same way.
    pub fn vars_of(&self, host: &str, beside_playbook: Option<&VarsFiles>) -> Vars {
        let mut vars = Vars::new();
        let groups = self.groups_of(host);
        let beside_playbook = beside_playbook.filter(|_| self.confined.is_none());
        let files = || self.beside.iter().chain(beside_playbook);
        let (all, others) = groups.split_at(usize::from(!groups.is_empty()));
        for groups in [all, others] {
            groups.iter().for_each(|group| self.merge(&mut vars, Some(&group.vars)));
            for files in files() {
                groups.iter().for_each(|group| self.merge(&mut vars, files.groups.get(&group.name)));
            }
        }
        self.merge(&mut vars, self.host(host).map(|host| &host.vars));
        files().for_each(|files| self.merge(&mut vars, files.hosts.get(host)));
        vars
    }

    /// Whether a variable of a host is written in local files: not in a resource, not in what a program printed, and
    /// not in what `add_host` was given.
    pub fn is_written(&self, host: &str, name: &str) -> bool {
        let added = || self.host(host).is_some_and(|host| host.added.contains(name));
        self.deployments.is_empty() && !self.printed && !added()
    }

    /// Adds a host while a play runs (`add_host`), with its groups; whether anything is new.
    /// `host_vars/` and `group_vars/` of new names are read.
    pub fn add_host(&mut self, name: &str, groups: &[String], vars: Vars) -> Result<bool, Diagnostic> {
        let mut changed = !self.hosts.contains_key(name);
        self.put_host(graph::ALL, name, None, None);
        let host = self.hosts.get_mut(name).expect("it was just inserted");
        for (key, value) in vars {
            changed |= host.vars.get(&key) != Some(&value);
            host.added.insert(key.clone());
            host.vars.insert(key, value);
        }
        for group in groups {
            changed |= self.add_host_to_group(group, name);
        }
        if changed {
            self.reconcile();
            self.load_vars_files()?;
        }
        Ok(changed)
    }

    /// Puts a host into a group while a play runs (`group_by`); whether it was not in it before.
    pub fn add_to_group(&mut self, host: &str, group: &str) -> Result<bool, Diagnostic> {
        let changed = self.add_host_to_group(group, host);
        if changed {
            self.reconcile();
            self.load_vars_files()?;
        }
        Ok(changed)
    }

    /// Makes a group a child of another while a play runs (`group_by` with `parents`), both made if need be.
    pub fn add_child_group(&mut self, parent: &str, child: &str) -> Result<bool, Diagnostic> {
        self.put_group(parent);
        self.put_group(child);
        let changed = self.add_child(parent, child).map_err(|message| Diagnostic::new(message, None))?;
        if changed {
            self.reconcile();
            self.load_vars_files()?;
        }
        Ok(changed)
    }

    fn merge(&self, into: &mut Vars, from: Option<&Vars>) {
        let from = from.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        self.hash_behaviour.combine(into, from);
    }

    fn load_vars_files(&mut self) -> Result<(), Diagnostic> {
        let mut beside = std::mem::take(&mut self.beside);
        let loaded = beside.iter_mut().try_for_each(|files| files.complete(self, &self.keyring));
        self.beside = beside;
        loaded
    }
}

#[cfg(test)]
mod tests;
