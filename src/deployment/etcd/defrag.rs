//! What the defragmentation of etcd's databases is asked for.

use serde::{Deserialize, Serialize};

use super::check::skipping;
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// None: the role's own limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Defragmentation {
    /// Whether the history of the keys is removed first.
    pub compacts: bool,
    /// How much of a database must be unused, in percent.
    pub unused_percent: Option<u8>,
    /// How much of it must be unused, in MiB.
    pub unused_mb: Option<u32>,
    /// The checks to leave out.
    pub skip: Vec<String>,
}

impl Defragmentation {
    /// For `etcd-defrag.yml`.
    pub(in crate::deployment) fn defrag_variables(&self) -> Vars {
        let mut vars = skipping(&self.skip);
        let mut set = |name: &str, value: Value| {
            vars.insert(name.into(), value);
        };
        if self.compacts {
            set(variable::ETCD_DEFRAG_COMPACT, Value::from(true));
        }
        self.unused_percent.into_iter().for_each(|percent| set(variable::ETCD_DEFRAG_UNUSED_PERCENT, percent.into()));
        self.unused_mb.into_iter().for_each(|mb| set(variable::ETCD_DEFRAG_UNUSED_MB, mb.into()));
        vars
    }
}
