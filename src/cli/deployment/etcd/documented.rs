//! The `EtcdBackup`s in the file of the deployment, which `windlass etcd backup` takes if no place is named.

use std::path::Path;

use anyhow::anyhow;

use crate::cli::{CliError, note};
use crate::deployment::Site;
use crate::deployment::backups::{
    BackupStore, DocumentAccess, Recipients, Retention, documented_recipients, documented_retention,
};
use crate::inventory::read_referenced_secret;
use crate::kubernetes::LIVE;
use crate::launch::options;
use crate::resource::{EtcdBackupSpec, NamedResource, Resource, Trust, load_resources};

/// An `EtcdBackup` whose secrets were read.
pub(super) struct DocumentedBackup {
    pub store: BackupStore,
    pub recipients: Recipients,
    pub retention: Retention,
    pub rehearses: bool,
}

/// Reads the `EtcdBackup`s of a file, those with these names or all; or why one cannot be used, such as a secret that cannot be read. Suspended
/// ones are left out, unless they are named.
///
/// # Errors
/// The file has none of them, or one is for another deployment.
pub(super) async fn read_documented_backups(
    file: &Path,
    names: &[String],
    site: &Site,
) -> Result<Vec<(String, Result<DocumentedBackup, anyhow::Error>)>, CliError> {
    if file.to_string_lossy().starts_with(LIVE) {
        let hint = "hint: name a place, or let the operator take the backups of an API";
        return Err(anyhow!("{} has no EtcdBackup that can be read here\n{hint}", file.display()).into());
    }
    let (path, names) = (site.directory.join(file), names.to_vec());
    let (allowed, keyring) = (options::allowed(&site.settings)?, site.keyring.clone());
    let surroundings = site.settings.surroundings.clone();
    // Secrets of a Kubernetes cluster, and programs, are waited for here, and not in the runtime.
    let read = tokio::task::spawn_blocking(move || {
        let chosen = choose(load_resources(&path, &allowed)?, &path, &names)?;
        let open = |backup: &NamedResource<EtcdBackupSpec>| {
            let access = DocumentAccess {
                read_secret: &|reference| read_referenced_secret(backup, reference, &keyring),
                surroundings: &surroundings,
                confined: None,
            };
            let store = match (access.remote_store(&backup.spec)?, &backup.spec.storage.path) {
                (Some(store), _) => store,
                (None, Some(directory)) => BackupStore::Directory(backup.resolve_beside(directory)),
                (None, None) => return Err("it has no storage".to_owned()),
            };
            Ok(DocumentedBackup {
                store,
                recipients: documented_recipients(&backup.spec)?,
                retention: documented_retention(&backup.spec),
                rehearses: backup.spec.rehearse,
            })
        };
        Ok(chosen.iter().map(|backup| (backup.name.clone(), open(backup).map_err(anyhow::Error::msg))).collect())
    });
    read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Those that are meant, of all documents of the file.
fn choose(
    resources: Vec<Resource>,
    path: &Path,
    names: &[String],
) -> Result<Vec<NamedResource<EtcdBackupSpec>>, anyhow::Error> {
    let (mut backups, mut deployments) = (Vec::new(), Vec::new());
    for resource in resources {
        match resource {
            Resource::EtcdBackup(backup) => backups.push(backup),
            Resource::KarmadaDeployment(deployment) => deployments.push((deployment.namespace, deployment.name)),
            Resource::Run(_) => {}
        }
    }
    let file = path.display();
    if backups.is_empty() {
        return Err(anyhow!("{file} has no EtcdBackup\nhint: name a place, or add one to the file"));
    }
    if let Some(unknown) = names.iter().find(|name| !backups.iter().any(|backup| backup.name == **name)) {
        let all: Vec<&str> = backups.iter().map(|backup| backup.name.as_str()).collect();
        return Err(anyhow!("{file} has no EtcdBackup {unknown}\nhint: it has {}", all.join(", ")));
    }
    backups.retain(|backup| match names {
        [] if backup.spec.suspend => {
            note(&format!("EtcdBackup {} is suspended: skipped", backup.name));
            false
        }
        names => names.is_empty() || names.contains(&backup.name),
    });
    for backup in &backups {
        if !deployments.contains(&(backup.namespace.clone(), backup.spec.deployment.clone())) {
            let (name, of) = (&backup.name, &backup.spec.deployment);
            return Err(anyhow!(
                "the EtcdBackup {name} is for {of}, and {file} has no KarmadaDeployment of that name and namespace"
            ));
        }
        if backups.iter().filter(|other| other.name == backup.name).count() > 1 {
            return Err(anyhow!("{file} has the EtcdBackup {} more than once", backup.name));
        }
        if backup.trust == Trust::Foreign {
            let hint = "hint: review the document and remove uid, resourceVersion and managedFields from its metadata";
            return Err(anyhow!("the EtcdBackup {} was exported from an API\n{hint}", backup.name));
        }
    }
    match backups.is_empty() {
        true => Err(anyhow!(
            "all EtcdBackups of {file} are suspended: no backup was taken\nhint: --only NAME takes one in any case"
        )),
        false => Ok(backups),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ForeignResourceLimits;

    /// What is chosen of a deployment and backups with these names, namespaces, deployments and other fields.
    fn chosen(backups: &[(&str, &str, &str, &str)], names: &[&str]) -> Result<Vec<String>, String> {
        let deployment = std::fs::read_to_string("tests/resources/good/small.yaml").unwrap();
        let mut text = deployment.replace("name: small", "name: small\n  namespace: prod");
        for (name, namespace, of, more) in backups {
            text.push_str(&format!(
                "\n---\napiVersion: windlass.dev/v1alpha1\nkind: EtcdBackup\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                 spec: {{deployment: {of}, storage: {{path: backups}}{more}}}\n"
            ));
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("prod.yaml");
        std::fs::write(&path, text).unwrap();
        let resources = load_resources(&path, &ForeignResourceLimits::default()).unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let found = choose(resources, Path::new("prod.yaml"), &names).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|backup| backup.name).collect())
    }

    #[test]
    fn all_that_are_not_suspended_are_taken_or_those_that_are_named() {
        let backups =
            [("a", "prod", "small", ""), ("b", "prod", "small", ", suspend: true"), ("c", "prod", "small", "")];
        assert_eq!(chosen(&backups, &[]).unwrap(), ["a", "c"]);
        assert_eq!(chosen(&backups, &["c"]).unwrap(), ["c"]);
        assert_eq!(chosen(&backups, &["b", "a"]).unwrap(), ["a", "b"]);
        assert!(chosen(&backups[1..2], &[]).unwrap_err().starts_with("all EtcdBackups of prod.yaml are suspended"));
    }

    #[test]
    fn a_backup_that_is_missing_or_for_another_deployment_is_an_error() {
        assert!(chosen(&[], &[]).unwrap_err().starts_with("prod.yaml has no EtcdBackup\n"));
        let unknown = chosen(&[("a", "prod", "small", ""), ("c", "prod", "small", "")], &["d"]).unwrap_err();
        assert_eq!(unknown, "prod.yaml has no EtcdBackup d\nhint: it has a, c");
        for of in [("a", "prod", "large", ""), ("a", "test", "small", "")] {
            let both = [("c", "prod", "small", ""), of];
            let other = chosen(&both, &[]).unwrap_err();
            assert!(other.starts_with("the EtcdBackup a is for "), "{other}");
            assert_eq!(chosen(&both, &["c"]).unwrap(), ["c"]);
        }
        let twice = chosen(&[("c", "prod", "small", ""), ("c", "prod", "small", "")], &[]).unwrap_err();
        assert_eq!(twice, "prod.yaml has the EtcdBackup c more than once");
    }
}
