//! Compares the members of a deployment with those that its control plane has.

use std::sync::Arc;

use minijinja::value::Serde;
use serde_json::Value as Json;

use super::{Inventory, graph};
use crate::resource::names::{group, variable};
use crate::value::Value;
use crate::value::origin::Diagnostic;

/// The Clusters of a control plane, as far as windlass is concerned.
#[derive(Debug, Clone, Default)]
pub struct ControlPlaneClusters {
    /// Those that joined for this very deployment.
    pub joined: Vec<JoinedCluster>,
    /// The names of all others.
    pub foreign: Vec<String>,
}

/// A Cluster that is there, and the variables that a removal needs.
#[derive(Debug, Clone)]
pub struct JoinedCluster {
    pub name: String,
    pub vars: Vec<(String, Json)>,
}

impl Inventory {
    /// Adds the groups that plays of windlass's playbooks are for, without hosts: an empty group is no name that was misspelt.
    pub fn put_groups_of_plays(&mut self) {
        for name in group::OF_PLAYS {
            self.put_group(name);
        }
        self.reconcile();
    }

    /// Fills `add_member` with the members that are not joined, `del_member` with the Clusters that are members no more,
    /// and `foreign_members` of the control plane with the names of those that are none of ours.
    pub fn put_clusters(&mut self, standing: &ControlPlaneClusters) -> Result<(), Diagnostic> {
        let wanted = self.hosts_of(group::MEMBERS);
        let joined = |name: &str| standing.joined.iter().any(|seen| seen.name == name);
        for name in wanted.iter().filter(|name| !joined(name)) {
            self.add_host_to_group(group::ADD_MEMBER, name);
        }
        let file = self.deployments.first().map(|deployment| deployment.path.clone()).filter(|path| path.is_file());
        for seen in standing.joined.iter().filter(|seen| !wanted.iter().any(|name| **name == *seen.name)) {
            // A host that has the name already (one of the control plane, say) keeps what it is, and so does this machine.
            let name = seen.name.as_str();
            if self.hosts.contains_key(name) || self.groups.contains_key(name) || super::LOCALHOST.contains(&name) {
                continue;
            }
            self.put_host(graph::ALL, &seen.name, None, file.as_deref());
            [group::DEPLOYMENT, group::DEL_MEMBER].into_iter().for_each(|group| {
                self.add_host_to_group(group, &seen.name);
            });
            let host = self.hosts.get_mut(seen.name.as_str()).expect("it was just inserted");
            let vars = seen.vars.iter().map(|(name, value)| (Arc::from(name.as_str()), Value::from(Serde(value))));
            host.vars.extend(vars);
        }
        let foreign: Value = standing.foreign.iter().map(|name| Value::from(name.as_str())).collect();
        if let Some(group) = self.groups.get_mut(group::CONTROL_PLANE) {
            group.vars.insert(variable::FOREIGN_MEMBERS.into(), foreign);
        }
        self.reconcile();
        self.load_vars_files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::vault::Keyring;

    fn inventory() -> (tempfile::TempDir, Inventory) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("karmada.yaml");
        let text = "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {name: p}\nspec:\n  \
                    bundle: b\n  hosts: [{name: cp-1}]\n  controlPlane: {hosts: [cp-1]}\n  \
                    etcd: {managed: {hosts: [cp-1]}}\n  members:\n  - {name: m1, kubeconfig: {file: a}}\n  \
                    - {name: m2, kubeconfig: {file: b}}\n";
        std::fs::write(&file, text).unwrap();
        let inventory = Inventory::load(&[file.to_string_lossy().into_owned()], &Keyring::default()).unwrap();
        (directory, inventory)
    }

    fn group(inventory: &Inventory, name: &str) -> Vec<String> {
        inventory.hosts_of(name).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn members_come_and_go_by_what_the_control_plane_has() {
        let (_directory, mut inventory) = inventory();
        let seen =
            |name: &str| JoinedCluster { name: name.into(), vars: vec![("member_workloads".into(), "keep".into())] };
        let standing =
            ControlPlaneClusters { joined: vec![seen("m1"), seen("m9"), seen("cp-1")], foreign: vec!["theirs".into()] };
        inventory.put_clusters(&standing).unwrap();
        assert_eq!(group(&inventory, "members"), ["m1", "m2"]);
        assert_eq!(group(&inventory, "add_member"), ["m2"]);
        assert_eq!(group(&inventory, "del_member"), ["m9"]);
        let vars = inventory.vars_of("m9", None);
        assert_eq!(vars["member_workloads"].to_string(), "keep");
        assert_eq!(vars["karmada_deployment"].to_string(), "p", "it has what all hosts of the deployment have");
        assert_eq!(inventory.vars_of("cp-1", None)["foreign_members"].to_string(), "['theirs']");
    }

    #[test]
    fn a_group_without_hosts_is_no_unknown_name() {
        let (_kept, mut inventory) = inventory();
        inventory.put_groups_of_plays();
        for name in [group::AGENT_HOSTS, group::LOAD_BALANCER, group::CONTROL_PLANE] {
            let (_, unmatched) = inventory.select_all(&[name]).unwrap();
            assert!(unmatched.is_empty(), "{unmatched:?}");
        }
        assert_eq!(inventory.hosts_of(group::CONTROL_PLANE).len(), 1, "one that is there keeps its hosts");
        assert_eq!(inventory.select_all(&["karmada_controlplane"]).unwrap().1, ["karmada_controlplane"]);
    }
}
