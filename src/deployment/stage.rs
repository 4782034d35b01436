//! The stages of an apply, in their order.

use std::sync::Arc;

use crate::inventory::Inventory;
pub use crate::resource::Stage;
use crate::resource::names::group;

/// In the order in which they are run.
pub const STAGES: [Stage; 5] = [Stage::Etcd, Stage::ControlPlane, Stage::Members, Stage::Removals, Stage::Addons];

/// The groups whose hosts hold the deployment's lock.
const LOCKED: [&str; 3] = [group::ETCD, group::CONTROL_PLANE, group::LOAD_BALANCER];

impl Stage {
    /// As people and files name it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Etcd => "etcd",
            Stage::ControlPlane => "controlPlane",
            Stage::Members => "members",
            Stage::Removals => "removals",
            Stage::Addons => "addons",
        }
    }

    /// The stage of a name.
    pub fn stage_named(name: &str) -> Option<Stage> {
        STAGES.into_iter().find(|stage| stage.name() == name)
    }

    /// The file of its playbook.
    pub fn playbook(self) -> &'static str {
        match self {
            Stage::Etcd => "etcd.yml",
            Stage::ControlPlane => "karmada.yml",
            Stage::Members => "add-member.yml",
            Stage::Removals => "del-member.yml",
            Stage::Addons => "addons.yml",
        }
    }

    /// The group of hosts that the playbook is for.
    pub fn group(self) -> &'static str {
        match self {
            Stage::Etcd => group::ETCD,
            Stage::ControlPlane | Stage::Addons => group::CONTROL_PLANE,
            Stage::Members => group::MEMBERS,
            Stage::Removals => group::DEL_MEMBER,
        }
    }

    /// Its hosts. None of them: there is nothing to do.
    pub fn hosts(self, inventory: &Inventory) -> Vec<Arc<str>> {
        hosts_of(inventory, self.group())
    }
}

/// The hosts that hold the deployment's lock, by name.
pub fn locked_hosts(inventory: &Inventory) -> Vec<Arc<str>> {
    let mut hosts: Vec<Arc<str>> = LOCKED.iter().flat_map(|group| hosts_of(inventory, group)).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

fn hosts_of(inventory: &Inventory, group: &str) -> Vec<Arc<str>> {
    if inventory.groups.contains_key(group) { inventory.hosts_of(group) } else { Vec::new() }
}
