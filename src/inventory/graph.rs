//! Hosts in groups in groups: putting them in, and the rules that hold afterwards (everything is below `all`,
//! a host of no group is in `ungrouped`, no group contains itself).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexSet;

use super::{Group, Host, Inventory, LOCALHOST};
use crate::value::Value;
use crate::value::vault::Keyring;

pub(super) const ALL: &str = "all";
pub(super) const UNGROUPED: &str = "ungrouped";

impl Inventory {
    /// `all`, `ungrouped` and the implicit localhost.
    pub(super) fn empty(keyring: &Keyring) -> Inventory {
        let mut inventory = Inventory { keyring: keyring.clone(), ..Inventory::default() };
        inventory.put_group(ALL);
        inventory.put_group(UNGROUPED);
        inventory.add_child(ALL, UNGROUPED).expect("ungrouped cannot have children");
        for name in LOCALHOST {
            let name: Arc<str> = name.into();
            let vars = [("ansible_connection".into(), Value::from("local"))].into();
            inventory.implicit.insert(name.clone(), Host { name, vars, ..Host::default() });
        }
        inventory
    }

    /// The group of that name, made if it is not there.
    pub(super) fn put_group(&mut self, name: &str) -> &mut Group {
        let name: Arc<str> = name.into();
        self.groups.entry(name.clone()).or_insert_with(|| Group { name, priority: 1, ..Group::default() })
    }

    /// Puts a host into a group that is there, and makes the host if need be; a port counts only then.
    pub(super) fn put_host(&mut self, group: &str, name: &str, port: Option<u16>, source: Option<&Path>) {
        let name: Arc<str> = name.into();
        self.hosts.entry(name.clone()).or_insert_with(|| {
            let mut host = Host { name: name.clone(), ..Host::default() };
            if let Some(port) = port {
                host.vars.insert("ansible_port".into(), Value::from(port));
            }
            let text = |path: Option<&Path>| path.map_or(Value::from(()), |path| Value::from(path.to_string_lossy()));
            host.vars.insert("inventory_file".into(), text(source));
            host.vars.insert("inventory_dir".into(), text(source.and_then(Path::parent)));
            host
        });
        self.add_host_to_group(group, &name);
    }

    /// Puts a host that is there (the implicit localhost too) into a group, made if need be; whether that is new.
    pub(super) fn add_host_to_group(&mut self, group: &str, host: &str) -> bool {
        let Some(found) = self.hosts.get_mut(host).or_else(|| self.implicit.get_mut(host)) else {
            return false;
        };
        found.groups.insert(group.into());
        let host = found.name.clone();
        self.put_group(group).hosts.insert(host)
    }

    /// Makes a group that is there a child of another; whether that is new. The error is a message without place.
    pub(super) fn add_child(&mut self, parent: &str, child: &str) -> Result<bool, String> {
        if parent == child {
            return Err(format!("group {child:?} cannot be a child of itself"));
        }
        if self.ancestors(parent).contains(child) {
            return Err(format!(
                "group {child:?} cannot be a child of {parent:?}, because {parent:?} is itself below {child:?}"
            ));
        }
        self.groups[child].parents.insert(parent.into());
        Ok(self.groups[parent].children.insert(child.into()))
    }

    /// All groups above a group, without itself, in no order that means anything.
    pub(super) fn ancestors(&self, group: &str) -> IndexSet<Arc<str>> {
        self.reach(group, |group| &group.parents)
    }

    /// A group and all groups below it, level by level.
    pub(super) fn descendants(&self, group: &str) -> IndexSet<Arc<str>> {
        let Some((name, _)) = self.groups.get_key_value(group) else {
            return IndexSet::new();
        };
        let mut names = IndexSet::from([name.clone()]);
        names.extend(self.reach(group, |group| &group.children));
        names
    }

    fn reach(&self, group: &str, next: impl Fn(&Group) -> &IndexSet<Arc<str>>) -> IndexSet<Arc<str>> {
        let mut reached = IndexSet::new();
        let mut waiting: VecDeque<&Group> = self.groups.get(group).into_iter().collect();
        while let Some(group) = waiting.pop_front() {
            for name in next(group) {
                if reached.insert(name.clone()) {
                    waiting.extend(self.groups.get(name));
                }
            }
        }
        reached
    }

    /// Puts in order what sources and plays added: to be called after changes.
    pub(super) fn reconcile(&mut self) {
        let orphans: Vec<Arc<str>> =
            self.groups.values().filter(|g| g.parents.is_empty() && &*g.name != ALL).map(|g| g.name.clone()).collect();
        for name in orphans {
            self.add_child(ALL, &name).expect("the group all cannot be a child");
        }
        for host in self.hosts.values_mut() {
            let ordinary = host.groups.iter().any(|group| &**group != ALL && &**group != UNGROUPED);
            let ungrouped = &mut self.groups[UNGROUPED].hosts;
            if ordinary {
                host.groups.shift_remove(UNGROUPED);
                ungrouped.shift_remove(&host.name);
            } else {
                host.groups.insert(UNGROUPED.into());
                ungrouped.insert(host.name.clone());
            }
        }
        self.measure_depths();
    }

    /// Sets every group's depth: a group is measured when all its parents are.
    fn measure_depths(&mut self) {
        let mut open: Vec<usize> = self.groups.values().map(|group| group.parents.len()).collect();
        let mut ready: VecDeque<usize> = (0..open.len()).filter(|&at| open[at] == 0).collect();
        self.groups.values_mut().for_each(|group| group.depth = 0);
        while let Some(at) = ready.pop_front() {
            let depth = self.groups[at].depth + 1;
            let children = self.groups[at].children.clone();
            for child in &children {
                let at = self.groups.get_index_of(child).expect("children are groups");
                self.groups[at].depth = self.groups[at].depth.max(depth);
                open[at] -= 1;
                if open[at] == 0 {
                    ready.push_back(at);
                }
            }
        }
    }
}
