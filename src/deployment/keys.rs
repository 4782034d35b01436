//! The credentials of a deployment: which files are its own, and that those of another deployment are refused before anything is looked at
//! or changed.

use std::path::{Path, PathBuf};

use super::backups::BackupError;
use super::identity::Deployment;
use super::stage::{self, Stage};
use super::{Error, members};
use crate::credentials::CredentialFiles;
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
    let directory = credentials_directory(job, first)?;
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

/// Where roles keep the credentials, as the variables of a host say.
fn credentials_directory(job: &Job, host: &str) -> Result<PathBuf, Error> {
    let text = |name: &str| -> Result<Option<String>, Error> {
        Ok(engine::variable(job, host, name)?.map(|value: Value| value.to_string()).filter(|text| !text.is_empty()))
    };
    let directory = match text(variable::CREDENTIALS_DIR)? {
        Some(directory) => job.templar.surroundings().expand_home(&directory),
        None => match text("inventory_dir")? {
            Some(directory) => Path::new(&directory).join("credentials"),
            None => Path::new("credentials").to_owned(),
        },
    };
    Ok(job.templar.surroundings().absolute(directory))
}

/// The files with which a new controller can look after a deployment.
///
/// # Errors
/// There are none, or they cannot be read.
pub(super) fn read_credentials(job: &Job, deployment: &Deployment) -> Result<CredentialFiles, Error> {
    let Some(first) = stage::locked_hosts(&job.inventory).first().cloned() else { return Err(Error::NoHosts) };
    let directory = match &job.inventory.credentials {
        Some(credentials) => credentials.files_directory().map_err(Error::KeysOwner)?,
        None => credentials_directory(job, &first)?,
    };
    let unreadable = |error: std::io::Error| BackupError::Unreadable { path: directory.clone(), error };
    let mut files = crate::credentials::read_files(&directory).map_err(unreadable)?;
    // Other deployments may have theirs in the same directory.
    let admin = members::admin_kubeconfig(Path::new(""), &deployment.instance);
    let own = [Path::new(&deployment.instance), Path::new(&deployment.etcd_cluster), &admin];
    files.retain(|path, _| own.iter().any(|own| path.starts_with(own)));
    let mut needed: Vec<PathBuf> =
        ["ca.crt", "token"].map(|file| Path::new(&deployment.etcd_cluster).join(file)).to_vec();
    if !Stage::ControlPlane.hosts(&job.inventory).is_empty() {
        needed.extend(["sa.key", "encryption-config.yaml"].map(|file| Path::new(&deployment.instance).join(file)));
    }
    match needed.into_iter().find(|file| !files.contains_key(file)) {
        None => Ok(files),
        Some(missing) => Err(BackupError::NoCredentials { path: directory.join(missing) }.into()),
    }
}
