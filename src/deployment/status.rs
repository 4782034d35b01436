//! The state of a deployment: etcd, the components, the members and their certificates, and reasons for unhealthy ones.

use std::collections::BTreeMap;

use super::contract::Status;
use super::control::{Control, Outcome};
use super::journal::Journal;
use super::lock::Holder;
use super::reply::{self, Reply};
use super::{Deployment, Error, Site};
use crate::value::Vars;

/// What was found.
pub struct Report {
    pub deployment: Deployment,
    /// What `status.yml` reported. None: no host was left to do so.
    pub status: Option<Status>,
    /// Hosts that were not reached, with the reason.
    pub unreachable: BTreeMap<String, String>,
    /// Tasks that failed: `HOST: MESSAGE`.
    pub failures: Vec<String>,
    /// The run that holds the lock.
    pub holder: Option<Holder>,
    /// The last apply or operation, if it did not come to its end and does not run.
    pub unfinished: Option<Journal>,
    pub outcome: Outcome,
}

/// Asks all hosts, changes nothing. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read.
pub async fn read_status(site: &Site, control: &Control) -> Result<Option<Report>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    let Some(reply) = reply::run_reporting_playbook(&phase, Vars::default(), None, control).await? else {
        return Ok(None);
    };
    let holder = deployment.holder().await;
    let is_running =
        |journal: &Journal| holder.as_ref().is_some_and(|holder| holder.record.run.as_ref() == Some(&journal.apply));
    let unfinished = deployment.journal().await.filter(|journal| !journal.done && !is_running(journal));
    let Reply { reported: status, unreachable, failures, outcome } = reply;
    Ok(Some(Report { deployment, status, unreachable, failures, holder, unfinished, outcome }))
}
