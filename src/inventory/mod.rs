//! Hosts, groups and their variables, from files, scripts and lists. Plain data: loading touches no host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use crate::value::Vars;
use crate::value::origin::Complaint;
use crate::value::vault::Keyring;

#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// In the order of definition.
    pub hosts: IndexMap<Arc<str>, Host>,
    /// `all` and `ungrouped` are always there.
    pub groups: IndexMap<Arc<str>, Group>,
    /// Where it came from; `group_vars/` and `host_vars/` beside each were read.
    pub sources: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub struct Host {
    pub name: Arc<str>,
    /// Its own variables as written in the inventory source.
    pub vars: Vars,
    /// Of `host_vars/` beside the inventory.
    pub file_vars: Vars,
    /// Groups that name it directly.
    pub groups: IndexSet<Arc<str>>,
}

#[derive(Debug, Clone, Default)]
pub struct Group {
    pub name: Arc<str>,
    pub vars: Vars,
    /// Of `group_vars/` beside the inventory.
    pub file_vars: Vars,
    pub children: IndexSet<Arc<str>>,
    /// Hosts it names directly.
    pub hosts: IndexSet<Arc<str>>,
    /// `ansible_group_priority`, 1 unless set.
    pub priority: i64,
}

/// Variables of `group_vars/` and `host_vars/` in a directory, by group or host name.
#[derive(Debug, Clone, Default)]
pub struct VarsFiles {
    pub groups: IndexMap<Arc<str>, Vars>,
    pub hosts: IndexMap<Arc<str>, Vars>,
}

impl Inventory {
    /// Reads all sources, in order; each is a path or a comma list (`a,b,`). No source: the implicit localhost alone.
    pub fn load(sources: &[String], keyring: &Keyring) -> Result<Inventory, Complaint> {
        let _ = (sources, keyring);
        todo!()
    }

    /// The hosts that a pattern names, in inventory order; an error names a pattern that is no pattern.
    /// A plain name that matches nothing is reported in the second value, to be warned of.
    pub fn select(&self, pattern: &str) -> Result<(Vec<Arc<str>>, Vec<String>), Complaint> {
        let _ = pattern;
        todo!()
    }

    /// All groups of a host, `all` first, parents before children, then by priority and name:
    /// the order in which their variables are merged, weakest first.
    pub fn groups_of(&self, host: &str) -> Vec<&Group> {
        let _ = host;
        todo!()
    }

    /// Adds a host while a play runs (`add_host`), with its groups.
    pub fn add_host(&mut self, name: &str, groups: &[String], vars: Vars) {
        let _ = (name, groups, vars);
        todo!()
    }

    /// Puts a host into a group while a play runs (`group_by`).
    pub fn add_to_group(&mut self, host: &str, group: &str) {
        let _ = (host, group);
        todo!()
    }
}

/// Reads `group_vars/` and `host_vars/` below a directory (beside a playbook).
pub fn vars_files(directory: &Path, keyring: &Keyring) -> Result<VarsFiles, Complaint> {
    let _ = (directory, keyring);
    todo!()
}
