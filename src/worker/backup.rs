//! Backups of etcd, as an `EtcdBackup` of the API says.

use std::path::PathBuf;
use std::sync::Arc;

use super::RunResult;
use crate::connection::Confinement;
use crate::deployment::backups::{
    BackupError, BackupStore, BackupStores, DocumentAccess, Identities, Recipients, TakenBackup, documented_recipients,
    documented_retention,
};
use crate::deployment::etcd::backup::{BackupRequest, take_backup};
use crate::deployment::{Control, Error, Outcome, Site};
use crate::kubernetes::{Cluster, LIVE};
use crate::launch::options;
use crate::resource::status::short_message;
use crate::resource::{EtcdBackupSpec, Reference, Resource, RunBackup, RunOperation, RunSpec, Trust, of_source};
use crate::value::origin::Source;

/// Where the backups of an `EtcdBackup` are.
pub(super) struct BackupPlace {
    pub spec: EtcdBackupSpec,
    pub store: BackupStore,
    /// For files that are needed for a moment.
    pub scratch: PathBuf,
    pub recipients: Recipients,
    /// Read for a restore only.
    pub identities: Identities,
}

/// Reads the `EtcdBackup` of a Run, and the Secrets that it names.
///
/// # Errors
/// One line that says what is wrong with it.
pub(super) async fn read_place(
    site: &Site,
    cluster: &Cluster,
    namespace: &str,
    run: &RunSpec,
) -> Result<BackupPlace, String> {
    let name = run.backup.clone().unwrap_or_default();
    let (asked, of, deployment) = (cluster.clone(), namespace.to_owned(), run.deployment.clone());
    let restores = run.operation == RunOperation::Restore;
    let around = site.settings.surroundings.clone();
    let allowed = options::allowed(&site.settings).map_err(|why| why.to_string())?;
    // Requests to the API wait here, and not in the runtime.
    let read = tokio::task::spawn_blocking(move || {
        let text = asked.etcd_backup(&of, &name)?;
        let source = Arc::new(Source::new(format!("{LIVE}{of}/{name}"), text));
        let (resources, _) = of_source(&source, Trust::Foreign, &allowed)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        let spec = resources.into_iter().find_map(|resource| match resource {
            Resource::EtcdBackup(backup) if backup.name == name => Some(backup.spec),
            _ => None,
        });
        let spec = spec.ok_or("the API server returned a different object")?;
        if spec.deployment != deployment {
            return Err(format!("the EtcdBackup {name} is for the deployment {}, not {deployment}", spec.deployment));
        }
        let recipients = documented_recipients(&spec)?;
        let identities = match &spec.identity {
            Some(reference) if restores => {
                let text = secret_text(&asked, &of, reference).map_err(|why| format!("identity: {why}"))?;
                Identities::from_lines(&text).map_err(|why| format!("identity: {why}"))?
            }
            _ => Identities::default(),
        };
        let confined = Arc::new(Confinement::new(allowed.networks.as_deref())?);
        let access = DocumentAccess {
            read_secret: &|reference| secret_text(&asked, &of, reference),
            surroundings: &around,
            confined: Some(confined),
        };
        let Some(store) = access.remote_store(&spec)? else {
            return Err("storage.path is refused: a worker has no directory that stays".to_owned());
        };
        let cache = around.cache().ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(BackupPlace { spec, store, scratch: cache.join("windlass/backups"), recipients, identities })
    });
    read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Takes a backup, and keeps it where the `EtcdBackup` of a Run says.
pub(super) async fn back_up(
    site: &Site,
    cluster: &Cluster,
    namespace: &str,
    run: &RunSpec,
    control: &Control,
) -> Result<RunResult, Error> {
    let BackupPlace { spec, store, scratch, recipients, .. } = match read_place(site, cluster, namespace, run).await {
        Ok(place) => place,
        Err(why) => return Ok(RunResult::refused("BackupRefused", why)),
    };
    let stores = BackupStores { stores: vec![store], scratch };
    // Who writes an EtcdBackup chooses who can decrypt it, so it holds no keys of the deployment.
    let request = BackupRequest {
        stores: &stores,
        retention: documented_retention(&spec),
        is_local: false,
        recipients: &recipients,
        has_credentials: false,
        rehearses: spec.rehearse,
    };
    match take_backup(site, request, control).await {
        Ok(None) => Ok(RunResult::of_outcome(Outcome::Interrupted, "")),
        Ok(Some(taken)) => Ok(taken_result(&taken, |text| short_message(&site.keyring.hidden.hide(text)))),
        Err(Error::Backup(why)) => Ok(RunResult::refused("BackupFailed", failure(&why))),
        Err(error) => Err(error),
    }
}

/// An error with its hints, one line.
pub(super) fn failure(error: &BackupError) -> String {
    error.to_string().replace("\nhint: ", "; ").replace('\n', "; ")
}

/// A backup that is complete is good; what failed besides is in its failures.
fn taken_result(taken: &TakenBackup, hide: impl Fn(&str) -> String) -> RunResult {
    let failures: Vec<String> = taken.failures.iter().chain(&taken.silent).map(|line| hide(line)).take(20).collect();
    let Some(made) = taken.copies.first() else { return RunResult::refused("BackupFailed", failures.join("; ")) };
    let (address, revision) = (made.backup.path.display().to_string(), made.manifest.revision);
    let mut message = format!("{address} has revision {revision}");
    if let Some(first) = failures.first() {
        message.push_str(&format!("; besides, {first}"));
    }
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let backup = RunBackup { address, revision: number(revision), size: number(made.manifest.size) };
    RunResult { backup: Some(backup), failures, ..RunResult::of_outcome(Outcome::Ok, &short_message(&message)) }
}

/// The text of a key of a Secret. The document was checked: it names a Secret of its own namespace.
fn secret_text(cluster: &Cluster, namespace: &str, reference: &Reference) -> Result<String, String> {
    let secret = reference.secret.as_ref().ok_or("it must name a Secret")?;
    let text = cluster.read_secret(namespace, &secret.name, &secret.key);
    text.map_err(|why| format!("the Secret {}, key {}: {why}", secret.name, secret.key))
}
