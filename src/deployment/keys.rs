//! Refuses the keys of another deployment, before anything is looked at or changed.

use std::path::Path;

use super::Error;
use super::stage::Stage;
use crate::engine::{self, Job};
use crate::resource::names::variable;
use crate::resource::{self, Trust};
use crate::value::Value;

/// Refuses an inventory whose directory of credentials has the keys of another deployment. That of a resource from an API is its own.
///
/// # Errors
/// It has; or it cannot be known.
pub(super) fn refuse_keys_of_others(job: &Job, etcd_cluster: &str) -> Result<(), Error> {
    let inventory = &job.inventory;
    if inventory.deployments.iter().any(|resource| resource.trust == Trust::Foreign) {
        return Ok(());
    }
    let hosts = [Stage::ControlPlane, Stage::Etcd].map(|stage| stage.hosts(inventory));
    let Some(first) = hosts.iter().flatten().next() else { return Ok(()) };
    let text = |name: &str| -> Result<Option<String>, Error> {
        Ok(engine::variable(job, first, name)?.map(|value: Value| value.to_string()).filter(|text| !text.is_empty()))
    };
    let directory = match text(variable::CREDENTIALS_DIR)? {
        Some(directory) => job.templar.surroundings().expand_home(&directory),
        None => match text("inventory_dir")? {
            Some(directory) => Path::new(&directory).join("credentials"),
            None => Path::new("credentials").to_owned(),
        },
    };
    let directory = job.templar.surroundings().absolute(directory);
    let instance = text(variable::KARMADA_INSTANCE)?.unwrap_or_else(|| "karmada".to_owned());
    // As the role pki names it: an inventory has no name unless it says one.
    let name = match text(variable::KEYS_OWNER)? {
        None => text(variable::KARMADA_DEPLOYMENT)?,
        name => name,
    };
    let etcd = (!hosts[1].is_empty()).then_some(etcd_cluster);
    for authority in [Some(&*instance), etcd].into_iter().flatten() {
        let authority = directory.join(authority);
        let owner = resource::keys_owner(&authority).map_err(Error::KeysOwner)?;
        if let Some(owner) = owner.filter(|owner| Some(owner) != name.as_ref()) {
            return Err(Error::KeysOfOthers { directory: authority, owner, name });
        }
    }
    Ok(())
}
