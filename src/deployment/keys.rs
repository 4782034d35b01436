//! The credentials of a deployment: which files are its own, and that those of another deployment are refused before anything is looked at
//! or changed.

use std::path::{Path, PathBuf};

use super::backups::BackupError;
use super::identity::Deployment;
use super::stage::{self, Stage};
use super::{Error, members};
use crate::credentials::{CredentialFile, CredentialFiles};
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
    // Other deployments may have theirs in the same directory.
    let (instance, etcd) = (Path::new(&deployment.instance), Path::new(&deployment.etcd_cluster));
    let own = [instance, etcd, &members::admin_kubeconfig(Path::new(""), &deployment.instance)];
    let mut files = crate::credentials::read_some_files(&directory, &own).map_err(unreadable)?;
    // Whose they are. Its name begins with a dot.
    for record in [instance, etcd].map(resource::record_path) {
        match std::fs::read(directory.join(&record)) {
            Ok(content) => drop(files.insert(record, CredentialFile { content, mode: 0o600 })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error).into()),
        }
    }
    let mut needed = ["ca.crt", "ca.key", "token"].map(|file| etcd.join(file)).to_vec();
    if !Stage::ControlPlane.hosts(&job.inventory).is_empty() {
        let of_karmada =
            ["ca.crt", "ca.key", "sa.key", "encryption-config.yaml", "front-proxy/ca.crt", "front-proxy/ca.key"];
        needed.extend(of_karmada.map(|file| instance.join(file)));
    }
    match needed.into_iter().find(|file| !files.contains_key(file)) {
        None => Ok(files),
        Some(missing) => Err(BackupError::NoCredentials { path: directory.join(missing) }.into()),
    }
}
