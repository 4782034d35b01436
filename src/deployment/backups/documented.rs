//! Where the backups of an `EtcdBackup` are, and which are kept.

use std::sync::Arc;
use std::time::Duration;

use super::bucket::BackupBucket;
use super::encryption::Recipients;
use super::host::BackupHost;
use super::retention::Retention;
use super::store::BackupStore;
use crate::connection::{Confinement, Target};
use crate::resource::{EtcdBackupSpec, Reference, S3Bucket, SshDirectory};
use crate::s3::{Authorities, Bucket, S3Settings};
use crate::value::{ProcessEnvironment, Secret};

/// How the references and addresses of an `EtcdBackup` are followed.
pub struct DocumentAccess<'a> {
    /// The secret that a reference names, or why it cannot be read.
    pub read_secret: &'a dyn Fn(&Reference) -> Result<String, String>,
    pub surroundings: &'a Arc<ProcessEnvironment>,
    /// Which addresses may be reached, if the document is not the person's own.
    pub confined: Option<Arc<Confinement>>,
}

impl DocumentAccess<'_> {
    /// The bucket or host of an `EtcdBackup`. None: it names a directory of this machine.
    ///
    /// # Errors
    /// What cannot be used.
    pub fn remote_store(&self, spec: &EtcdBackupSpec) -> Result<Option<BackupStore>, String> {
        let confined = self.confined.clone();
        Ok(match (&spec.storage.s3, &spec.storage.ssh) {
            (Some(s3), _) => {
                let opened = Bucket::new(&s3.bucket, &self.s3_settings(s3)?, self.surroundings, confined);
                let opened = opened.map_err(|error| error.to_string())?;
                let bucket = BackupBucket::new(opened, &s3.prefix.clone().unwrap_or_default())?;
                Some(BackupStore::Bucket(Arc::new(bucket)))
            }
            (None, Some(ssh)) => {
                let host = BackupHost::of_target(self.ssh_target(ssh)?, &ssh.directory);
                Some(BackupStore::Host(Arc::new(host)))
            }
            (None, None) => None,
        })
    }

    /// How the host is reached: with this key alone, and only if its own key is the one that the document names.
    fn ssh_target(&self, ssh: &SshDirectory) -> Result<Target, String> {
        Ok(Target {
            name: ssh.address.clone(),
            address: ssh.address.clone(),
            port: ssh.port.and_then(|port| u16::try_from(port).ok()),
            user: Some(ssh.user.clone()),
            private_key: Some(Secret::new(self.read_secret("privateKey", &ssh.private_key)?)),
            fingerprint: Some(ssh.fingerprint.clone()),
            confined: self.confined.clone(),
            surroundings: self.surroundings.clone(),
            ..Target::default()
        })
    }

    fn s3_settings(&self, bucket: &S3Bucket) -> Result<S3Settings, String> {
        let word =
            |what: &str, reference: &Reference| self.read_secret(what, reference).map(|text| text.trim().to_owned());
        let session_token = bucket.session_token.as_ref().map(|it| word("sessionToken", it)).transpose();
        Ok::<_, String>(S3Settings {
            endpoint: Some(bucket.endpoint.clone()),
            region: bucket.region.clone(),
            authorities: match &bucket.ca_cert {
                Some(reference) => Authorities::Text(self.read_secret("caCert", reference)?),
                None => Authorities::OfMachine,
            },
            has_virtual_hosts: bucket.virtual_host,
            encryption: bucket.encryption.as_ref().map(|text| text.parse()).transpose()?,
            access_key: word("accessKey", &bucket.access_key)?,
            secret_key: Secret::new(word("secretKey", &bucket.secret_key)?),
            session_token: session_token?.map(Secret::new),
        })
    }

    fn read_secret(&self, what: &str, reference: &Reference) -> Result<String, String> {
        (self.read_secret)(reference).map_err(|why| format!("{what}: {why}"))
    }
}

/// For whom the backups of an `EtcdBackup` are encrypted.
///
/// # Errors
/// A line that is no public key of age.
pub fn documented_recipients(spec: &EtcdBackupSpec) -> Result<Recipients, String> {
    if spec.recipients.is_empty() {
        return Ok(Recipients::default());
    }
    Recipients::from_lines(&spec.recipients.join("\n")).map_err(|why| format!("recipients: {why}"))
}

/// Which backups of an `EtcdBackup` are kept.
pub fn documented_retention(spec: &EtcdBackupSpec) -> Retention {
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
