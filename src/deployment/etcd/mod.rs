//! What `windlass etcd` does that changes nothing in the cluster: the checks, backups, comparisons; and what a restore needs. The rest are
//! [operations](super::operation::Operation).

pub mod backup;
pub mod check;
pub mod defrag;
pub mod monitoring;
pub mod recover;
pub mod rehearse;
pub mod restore;
pub mod verify;

use super::contract::Reported;
use super::control::Control;
use super::lock::Lock;
pub use super::reply::Reply;
use super::stage::Stage;
use super::{Error, Phase, reply};
use crate::value::Vars;

/// A playbook that finds no host does nothing, which is no success.
pub(super) fn refuse_without_hosts(phase: &Phase<'_>) -> Result<(), Error> {
    match Stage::Etcd.hosts(phase.inventory()).is_empty() {
        true => Err(Error::NoEtcdHosts),
        false => Ok(()),
    }
}

/// Runs the playbook that reports `T`. None: the caller cancelled it.
///
/// # Errors
/// The playbook cannot be run, or reports something of another layout.
pub(super) async fn ask<T: Reported>(
    phase: &Phase<'_>,
    vars: Vars,
    lock: Option<&Lock>,
    control: &Control,
) -> Result<Option<Reply<T>>, Error> {
    refuse_without_hosts(phase)?;
    reply::run_reporting_playbook(phase, vars, lock, control).await
}
