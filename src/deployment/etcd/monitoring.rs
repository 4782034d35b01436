//! Rules and a dashboard about an etcd cluster, as files.

use std::path::Path;

use serde::Deserialize;

use super::{Reply, ask};
use crate::deployment::contract::Reported;
use crate::deployment::{Control, Error, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What `etcd-monitoring.yml` wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitoringFiles {
    pub layout: u32,
    /// The name of the cluster in the rules: the deployment's; without one, the cluster's own.
    pub cluster: String,
    pub members: Vec<String>,
    /// The members that serve their metrics on their own host only. With any, there are no targets.
    pub local: Vec<String>,
}

impl Reported for MonitoringFiles {
    const PLAYBOOK: &'static str = "etcd-monitoring.yml";
    const VARIABLE: &'static str = "windlass_etcd_monitoring";
    const LAYOUT: u32 = 1;
}

/// Writes the files into a directory, which is made if it is missing. Connects to no host. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read, or the playbook cannot be run.
pub async fn write_monitoring_files(
    site: &Site,
    directory: &Path,
    control: &Control,
) -> Result<Option<Reply<MonitoringFiles>>, Error> {
    let phase = site.read_inventory().await?;
    let vars = Vars::from([(variable::ETCD_MONITORING_DIR.into(), Value::from(directory.display().to_string()))]);
    ask(&phase, vars, None, control).await
}
