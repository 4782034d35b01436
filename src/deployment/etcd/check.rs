//! The checks before a change, made on their own.

use serde::{Deserialize, Serialize};

use super::{Reply, ask};
use crate::deployment::contract::Reported;
use crate::deployment::{Control, Deployment, Error, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What `etcd-check.yml` found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    pub layout: u32,
    /// The cluster's name.
    pub cluster: String,
    pub checks: Vec<EtcdCheckReport>,
    /// Why no check could be made. Empty: they were.
    pub problem: String,
}

impl Reported for Checks {
    const PLAYBOOK: &'static str = "etcd-check.yml";
    const VARIABLE: &'static str = "windlass_etcd_check";
    const LAYOUT: u32 = 1;
}

/// One check. The module `etcd_gate` makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdCheckReport {
    pub check: String,
    /// `ok`, `warning`, `refused`, `skipped` or `unknown`.
    pub state: String,
    /// The figure.
    pub found: String,
    /// What to do. Empty: nothing.
    pub hint: String,
}

/// Makes the checks. `skip`: those to leave out. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read, or the playbook cannot be run.
pub async fn read_etcd_check(
    site: &Site,
    skip: &[String],
    control: &Control,
) -> Result<Option<(Deployment, Reply<Checks>)>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    let reply = ask(&phase, skipping(skip), None, control).await?;
    Ok(reply.map(|reply| (deployment, reply)))
}

/// The variable that leaves checks out.
pub(crate) fn skipping(skip: &[String]) -> Vars {
    let mut vars = Vars::default();
    if !skip.is_empty() {
        vars.insert(variable::ETCD_SKIP_CHECKS.into(), Value::from(skip.to_vec()));
    }
    vars
}
