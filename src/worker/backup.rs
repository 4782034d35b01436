//! A backup of etcd, as an `EtcdBackup` of the API says.

use std::sync::Arc;
use std::time::Duration;

use super::RunResult;
use crate::connection::Confinement;
use crate::deployment::backups::{
    BackupBucket, BackupError, BackupStore, BackupStores, Recipients, Retention, TakenBackup,
};
use crate::deployment::etcd::backup::{BackupRequest, take_backup};
use crate::deployment::{Control, Error, Outcome, Site};
use crate::kubernetes::{Cluster, LIVE};
use crate::launch::options;
use crate::resource::status::short_message;
use crate::resource::{EtcdBackupSpec, Reference, Resource, RunBackup, RunSpec, S3Bucket, Trust, of_source};
use crate::s3::{Authorities, Bucket, S3Settings};
use crate::value::Secret;
use crate::value::origin::Source;

/// Takes a backup, and keeps it where the `EtcdBackup` of a Run says.
pub(super) async fn back_up(
    site: &Site,
    cluster: &Cluster,
    namespace: &str,
    spec: &RunSpec,
    control: &Control,
) -> Result<RunResult, Error> {
    let name = spec.backup.clone().unwrap_or_default();
    let (asked, of, deployment) = (cluster.clone(), namespace.to_owned(), spec.deployment.clone());
    let around = site.settings.surroundings.clone();
    let allowed = match options::allowed(&site.settings) {
        Ok(allowed) => allowed,
        Err(why) => return Ok(RunResult::refused("Error", why.to_string())),
    };
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
        let bucket = spec.storage.s3.as_ref().ok_or("storage.path is refused: an operator keeps backups in buckets")?;
        let settings = settings(&asked, &of, bucket)?;
        let confined = Confinement::new(allowed.networks.as_deref())?;
        let opened = Bucket::new(&bucket.bucket, &settings, &around, Some(Arc::new(confined)));
        let opened = opened.map_err(|error| error.to_string())?;
        let cache = around.cache().ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
        let prefix = bucket.prefix.clone().unwrap_or_default();
        Ok((spec, recipients, BackupBucket::new(opened, &prefix)?, cache.join("windlass/backups")))
    });
    let (spec, recipients, bucket, scratch): (EtcdBackupSpec, _, _, _) =
        match read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) {
            Ok(read) => read,
            Err(why) => return Ok(RunResult::refused("BackupRefused", why)),
        };
    let stores = BackupStores { stores: vec![BackupStore::Bucket(Arc::new(bucket))], scratch };
    let retention = retention(&spec);
    // Who writes an EtcdBackup chooses who can decrypt it, so it holds no keys of the deployment.
    let request =
        BackupRequest { stores: &stores, retention, is_local: false, recipients: &recipients, has_credentials: false };
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

fn failure(error: &BackupError) -> String {
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

fn settings(cluster: &Cluster, namespace: &str, bucket: &S3Bucket) -> Result<S3Settings, String> {
    let read = |what: &str, reference: &Reference| {
        // The document was checked: it names a Secret of its own namespace.
        let secret = reference.secret.as_ref().ok_or_else(|| format!("{what} must name a Secret"))?;
        let text = cluster.read_secret(namespace, &secret.name, &secret.key);
        text.map_err(|why| format!("{what}: the Secret {}, key {}: {why}", secret.name, secret.key))
    };
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
