//! Places for backups, as a person names them: a directory, `s3://BUCKET/PREFIX` or `ssh://USER@ADDRESS:PORT/DIRECTORY`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;

use crate::cli::{CliError, surroundings, working_directory};
use crate::deployment::backups::{BackupBucket, BackupHost, BackupSource, BackupStore, SSH_SCHEME};
use crate::s3::{Bucket, S3Settings, ServerSideEncryption};
use crate::value::ProcessEnvironment;

/// How buckets are used.
#[derive(Debug, Args)]
pub(super) struct S3Args {
    /// Use virtual-hosted-style addresses (BUCKET.HOST) instead of path-style ones (HOST/BUCKET)
    #[arg(long)]
    s3_virtual_host: bool,
}

/// How a bucket stores what is written to it.
#[derive(Debug, Args)]
pub(super) struct S3WriteArgs {
    /// Server-side encryption in a bucket: AES256, aws:kms or aws:kms:KEY
    #[arg(long, value_name = "METHOD")]
    s3_encryption: Option<ServerSideEncryption>,
}

/// What begins the name of a place in a bucket.
const SCHEME: &str = "s3://";

impl S3WriteArgs {
    pub(super) fn is_given(&self) -> bool {
        self.s3_encryption.is_some()
    }
}

impl S3Args {
    pub(super) fn is_given(&self) -> bool {
        self.s3_virtual_host
    }

    /// A place for backups.
    pub(super) fn backup_store(&self, text: &str, write: Option<&S3WriteArgs>) -> Result<BackupStore, CliError> {
        if text.starts_with(SSH_SCHEME) {
            let host = BackupHost::parse_place(text, &ssh_surroundings());
            let host = host.map_err(|why| anyhow!("{:?} is no place for backups: {why}", without_password(text)))?;
            return Ok(BackupStore::Host(Arc::new(host)));
        }
        let Some(place) = text.strip_prefix(SCHEME) else {
            refuse_other_places(text)?;
            return Ok(BackupStore::Directory(working_directory()?.join(text)));
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let bucket = self.backup_bucket(bucket, prefix, write)?;
        Ok(BackupStore::Bucket(Arc::new(bucket)))
    }

    /// A single backup. `here`: what a relative path begins at.
    pub(super) fn backup_source(&self, text: &str, here: &Path) -> Result<BackupSource, CliError> {
        if text.starts_with(SSH_SCHEME) {
            let parsed = BackupHost::parse_backup(text, &ssh_surroundings());
            let (host, name) = parsed.map_err(|why| anyhow!("{:?} is no backup: {why}", without_password(text)))?;
            return Ok(BackupSource::Stored(BackupStore::Host(Arc::new(host)), name));
        }
        let Some(place) = text.strip_prefix(SCHEME) else {
            refuse_other_places(text)?;
            return Ok(BackupSource::Directory(here.join(text)));
        };
        let (bucket, path) = place.split_once('/').unwrap_or((place, ""));
        let (prefix, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(anyhow!("{text:?} must be s3://BUCKET/PREFIX/NAME, as windlass etcd backup prints it").into());
        }
        let bucket = self.backup_bucket(bucket, prefix, None)?;
        Ok(BackupSource::Stored(BackupStore::Bucket(Arc::new(bucket)), name.to_owned()))
    }

    fn backup_bucket(&self, bucket: &str, prefix: &str, write: Option<&S3WriteArgs>) -> Result<BackupBucket, CliError> {
        let settings = S3Settings {
            has_virtual_hosts: self.s3_virtual_host,
            encryption: write.and_then(|write| write.s3_encryption.clone()),
            ..S3Settings::from_environment(surroundings()).map_err(anyhow::Error::new)?
        };
        let bucket = Bucket::new(bucket, &settings, surroundings(), None).map_err(anyhow::Error::new)?;
        Ok(BackupBucket::new(bucket, prefix).map_err(anyhow::Error::msg)?)
    }
}

fn ssh_surroundings() -> Arc<ProcessEnvironment> {
    Arc::new(surroundings().clone())
}

/// Refuses what looks like a place on another machine, such as `gs://BUCKET` or `USER@HOST:PATH`, and would become a directory here.
fn refuse_other_places(text: &str) -> Result<(), CliError> {
    let is_other = !text.starts_with('/') && text.split('/').next().is_some_and(|first| first.contains(':'));
    if !is_other {
        return Ok(());
    }
    let shown = without_password(text);
    let hint = format!("write s3://BUCKET/PREFIX, ssh://USER@ADDRESS/DIRECTORY, or ./{shown} for a directory");
    Err(anyhow!("{shown:?} is no place for backups\nhint: {hint}").into())
}

/// An address as it can be shown: a password has no place in it, but somebody may have written one.
fn without_password(text: &str) -> String {
    let Some((login, rest)) = text.rsplit_once('@') else { return text.to_owned() };
    let (scheme, user) = login.split_once("://").map_or(("", login), |(scheme, user)| (scheme, user));
    let separator = if scheme.is_empty() { "" } else { "://" };
    match user.split_once(':') {
        Some((user, _)) => format!("{scheme}{separator}{user}:...@{rest}"),
        None => text.to_owned(),
    }
}

/// Where files of backups are that are needed for a moment: they may be large, and hold every Secret.
pub(super) fn scratch_directory() -> Result<PathBuf, CliError> {
    let cache = surroundings().cache().ok_or_else(|| anyhow!("neither XDG_CACHE_HOME nor HOME is set"))?;
    Ok(cache.join("windlass/backups"))
}
