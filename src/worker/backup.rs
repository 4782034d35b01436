//! Backups of etcd, as an `EtcdBackup` of the API says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::RunResult;
use crate::connection::{Confinement, Target};
use crate::deployment::backups::{
    BackupBucket, BackupError, BackupHost, BackupStore, BackupStores, Identities, Recipients, Retention, TakenBackup,
};
use crate::deployment::etcd::backup::{BackupRequest, take_backup};
use crate::deployment::{Control, Error, Outcome, Site};
use crate::kubernetes::{Cluster, LIVE};
use crate::launch::options;
use crate::resource::status::short_message;
use crate::resource::{
    EtcdBackupSpec, Reference, Resource, RunBackup, RunOperation, RunSpec, S3Bucket, SshDirectory, Trust, of_source,
};
use crate::s3::{Authorities, Bucket, S3Settings};
use crate::value::origin::Source;
use crate::value::{ProcessEnvironment, Secret};

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
        let recipients = match spec.recipients.is_empty() {
            true => Recipients::default(),
            false => Recipients::from_lines(&spec.recipients.join("\n")).map_err(|why| format!("recipients: {why}"))?,
        };
        let identities = match &spec.identity {
            Some(reference) if restores => {
                let text = secret_text(&asked, &of, "identity", reference)?;
                Identities::from_lines(&text).map_err(|why| format!("identity: {why}"))?
            }
            _ => Identities::default(),
        };
        let confined = Arc::new(Confinement::new(allowed.networks.as_deref())?);
        let store = match (&spec.storage.s3, &spec.storage.ssh) {
            (Some(s3), _) => {
                let settings = settings(&asked, &of, s3)?;
                let opened = Bucket::new(&s3.bucket, &settings, &around, Some(confined));
                let opened = opened.map_err(|error| error.to_string())?;
                BackupStore::Bucket(Arc::new(BackupBucket::new(opened, &s3.prefix.clone().unwrap_or_default())?))
            }
            (None, Some(ssh)) => {
                let key = secret_text(&asked, &of, "privateKey", &ssh.private_key)?;
                let target = target(ssh, key, confined, &around);
                BackupStore::Host(Arc::new(BackupHost::of_target(target, &ssh.directory)))
            }
            (None, None) => return Err("storage.path is refused: a worker has no directory that stays".to_owned()),
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
        retention: retention(&spec),
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

fn retention(spec: &EtcdBackupSpec) -> Retention {
    let count = |count: Option<i32>| count.and_then(|count| usize::try_from(count).ok());
    let rules = spec.retention.clone().unwrap_or_default();
    let days = rules.within_days.and_then(|days| u64::try_from(days).ok());
    Retention {
        last: count(Some(spec.keep)),
        within: days.map(|days| Duration::from_secs(days * 24 * 60 * 60)),
        hourly: count(rules.hourly),
        daily: count(rules.daily),
        weekly: count(rules.weekly),
        monthly: count(rules.monthly),
        yearly: count(rules.yearly),
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
fn secret_text(cluster: &Cluster, namespace: &str, what: &str, reference: &Reference) -> Result<String, String> {
    let secret = reference.secret.as_ref().ok_or_else(|| format!("{what} must name a Secret"))?;
    let text = cluster.read_secret(namespace, &secret.name, &secret.key);
    text.map_err(|why| format!("{what}: the Secret {}, key {}: {why}", secret.name, secret.key))
}

/// How the host is reached: with this key alone, and only if its own key is the one that the document names.
fn target(ssh: &SshDirectory, key: String, confined: Arc<Confinement>, around: &Arc<ProcessEnvironment>) -> Target {
    Target {
        name: ssh.address.clone(),
        address: ssh.address.clone(),
        port: ssh.port.and_then(|port| u16::try_from(port).ok()),
        user: Some(ssh.user.clone()),
        private_key: Some(Secret::new(key)),
        fingerprint: Some(ssh.fingerprint.clone()),
        confined: Some(confined),
        surroundings: around.clone(),
        ..Target::default()
    }
}

fn settings(cluster: &Cluster, namespace: &str, bucket: &S3Bucket) -> Result<S3Settings, String> {
    let read = |what: &str, reference: &Reference| secret_text(cluster, namespace, what, reference);
    let word = |what: &str, reference: &Reference| read(what, reference).map(|text| text.trim().to_owned());
    let optional = |what: &str, reference: &Option<Reference>| reference.as_ref().map(|it| word(what, it)).transpose();
    Ok(S3Settings {
        endpoint: Some(bucket.endpoint.clone()),
        region: bucket.region.clone(),
        authorities: match &bucket.ca_cert {
            Some(reference) => Authorities::Text(read("caCert", reference)?),
            None => Authorities::OfMachine,
        },
        has_virtual_hosts: bucket.virtual_host,
        encryption: bucket.encryption.as_ref().map(|text| text.parse()).transpose()?,
        access_key: word("accessKey", &bucket.access_key)?,
        secret_key: Secret::new(word("secretKey", &bucket.secret_key)?),
        session_token: optional("sessionToken", &bucket.session_token)?.map(Secret::new),
    })
}
