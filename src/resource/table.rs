//! The table of components, as the roles have it: one list for playbooks, roles and this program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::value::yaml;

const TEXT: &str = include_str!("../../roles/karmada_component_table/vars/main.yml");

/// The layout of the table that this program reads.
pub const TABLE_LAYOUT: u32 = 1;

/// Where the table is, below the directory of the roles.
const TABLE_FILE: &str = "karmada_component_table/vars/main.yml";

/// A table that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot use these playbooks: the component table {} has {}; this windlass reads layout {TABLE_LAYOUT}\n\
     hint: use the playbooks that belong to this version of windlass: `windlass playbooks export DIR` writes them to DIR",
    path.display(),
    layout.map_or_else(|| "no layout number".to_owned(), |layout| format!("layout {layout}"))
)]
pub struct TableLayoutError {
    path: PathBuf,
    layout: Option<u32>,
}

/// Checks that the roles in a directory have a component table that this program reads. Roles without a table are the user's own.
///
/// # Errors
/// The table has another layout, or none.
pub fn check_table_layout(roles: &Path) -> Result<(), TableLayoutError> {
    let path = roles.join(TABLE_FILE);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
    let layout = table_layout(&text);
    if layout == Some(TABLE_LAYOUT) { Ok(()) } else { Err(TableLayoutError { path, layout }) }
}

fn table_layout(text: &str) -> Option<u32> {
    let file = yaml::plain_values(text).ok()?;
    u32::try_from(file.first()?.get_attr("karmada_component_table_layout").ok()?).ok()
}

/// What this program needs of a component's entry; its README explains all fields.
#[derive(Debug, Deserialize)]
pub struct ComponentEntry {
    pub name: String,
    /// The role that installs it: the prefix of its variables and the name of its inventory group.
    pub role: String,
    pub program: String,
    /// The field of `spec.components`.
    pub field: String,
    /// It runs only if the deployment enables it.
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
    /// On chosen hosts, or on all.
    OnItsGroup,
    /// On every host with an API server, which calls it on its own host.
    WithTheApiServer,
    /// An instance for each member cluster.
    ForEachMember,
}

/// All components, in the order of the table.
pub static TABLE: LazyLock<Vec<ComponentEntry>> = LazyLock::new(|| {
    let file = yaml::plain_values(TEXT).expect("a test reads this table");
    let table = file[0].get_attr("karmada_component_table").expect("a test reads this table");
    Vec::deserialize(table).expect("a test reads this table")
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
        assert_eq!(table_layout(TEXT), Some(TABLE_LAYOUT));
    }

    #[test]
    fn a_table_of_another_layout_is_refused() {
        let roles = tempfile::tempdir().unwrap();
        check_table_layout(roles.path()).unwrap();
        let path = roles.path().join(TABLE_FILE);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            check_table_layout(roles.path()).unwrap_err().to_string()
        };
        let other = refusal("karmada_component_table_layout: 2\nkarmada_component_table: []\n");
        assert!(
            other.contains("main.yml has layout 2; this windlass reads layout 1\nhint: use the playbooks"),
            "{other}"
        );
        for text in ["karmada_component_table: []\n", "karmada_component_table_layout: one\n", "", "a: b: c"] {
            let none = refusal(text);
            assert!(none.contains("has no layout number; this windlass reads layout 1"), "{text:?}: {none}");
        }
        std::fs::write(&path, TEXT).unwrap();
        check_table_layout(roles.path()).unwrap();
    }
}
