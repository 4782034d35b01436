//! The table of components, as the roles have it: one list for playbooks, roles and this program.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::value::yaml;

const TEXT: &str = include_str!("../../roles/karmada_component_table/vars/main.yml");

/// What this program needs of a component's entry; its README explains all fields.
#[derive(Debug, Deserialize)]
pub struct ComponentEntry {
    pub name: String,
    /// The role that installs it: the prefix of its variables and the name of its inventory group.
    pub role: String,
    pub program: String,
    /// The field of `spec.components`.
    pub field: String,
    /// It runs only if somebody asks for it.
    #[serde(default)]
    pub optional: bool,
    pub runs: RunsOn,
}

impl ComponentEntry {
    /// kube-apiserver: others run on its hosts.
    pub fn is_api_server(&self) -> bool {
        self.name == "apiserver"
    }
}

/// On which hosts a component runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsOn {
    /// On hosts of its own choice, or on all.
    OnItsGroup,
    /// On every host with an API server, which calls it on its own host.
    WithTheApiServer,
    /// An instance for each member cluster.
    ForEachMember,
}

/// All components, in the order of the table.
pub static TABLE: LazyLock<Vec<ComponentEntry>> = LazyLock::new(|| {
    let file = yaml::plain_values(TEXT).expect("the table is YAML, as its test says");
    let table = file[0].get_attr("karmada_component_table").expect("the file has the table, as its test says");
    Vec::deserialize(table).expect("the table has the fields of this program, as its test says")
});

/// The fields of the components for which `wanted` is true.
pub(super) fn component_fields(wanted: impl Fn(&ComponentEntry) -> bool) -> Vec<&'static str> {
    TABLE.iter().filter(|entry| wanted(entry)).map(|entry| entry.field.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let api_server = TABLE.iter().find(|entry| entry.is_api_server()).unwrap();
        assert_eq!(api_server.program, "kube-apiserver");
        assert_eq!((api_server.runs, api_server.optional), (RunsOn::OnItsGroup, false));
        assert_eq!(component_fields(|entry| entry.runs == RunsOn::ForEachMember), ["karmadaSchedulerEstimator"]);
    }
}
