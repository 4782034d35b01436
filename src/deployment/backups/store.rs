//! Where backups are kept: in a directory of this machine or of another host, or in a bucket.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bucket::BackupBucket;
use super::directory::{keep_in_directory, list_backups};
use super::encryption::Identities;
use super::error::{BackupError, io_error};
use super::fetched::FetchedBackup;
use super::files::{digest, sync};
use super::host::BackupHost;
use super::prepare::Prepared;
use super::reading::verify;
use super::retention::Retention;
use super::staging::{Staging, check_owner, prepare_directory};
use super::{Backup, BackupResult, MANIFEST, Manifest};

/// The place for the backups of one deployment.
#[derive(Clone)]
pub enum BackupStore {
    Directory(PathBuf),
    Bucket(Arc<BackupBucket>),
    Host(Arc<BackupHost>),
}

/// The places for backups, and a directory for files that are needed for a moment.
#[derive(Clone)]
pub struct BackupStores {
    pub stores: Vec<BackupStore>,
    pub scratch: PathBuf,
}

/// Where one backup is.
pub enum BackupSource {
    /// The backup's own directory.
    Directory(PathBuf),
    /// With the name of the backup.
    Stored(BackupStore, String),
}

impl BackupSource {
    /// Downloads it below `scratch`, unless it is on this machine.
    ///
    /// # Errors
    /// It does not exist, is damaged, or cannot be written.
    pub async fn fetch_backup(&self, scratch: &Path) -> Result<FetchedBackup, BackupError> {
        match self {
            BackupSource::Directory(path) => Ok(FetchedBackup::of_directory(path.clone())),
            BackupSource::Stored(store, name) => store.fetch_backup(name, scratch).await,
        }
    }
}

/// Secret keys, and a directory for backups from elsewhere that are decrypted.
#[derive(Debug, Clone)]
pub struct Decryption {
    pub identities: Identities,
    pub scratch: PathBuf,
}

impl BackupStore {
    /// A directory, `s3://BUCKET/PREFIX` or `ssh://HOST/DIRECTORY`.
    pub fn place(&self) -> PathBuf {
        match self {
            BackupStore::Directory(directory) => directory.clone(),
            BackupStore::Bucket(bucket) => bucket.bucket_address(),
            BackupStore::Host(host) => host.host_address(),
        }
    }

    /// The backups, the newest first.
    ///
    /// # Errors
    /// The place cannot be read.
    pub async fn list(&self) -> Result<Vec<Backup>, BackupError> {
        match self {
            BackupStore::Directory(directory) => {
                list_backups(directory).map_err(|error| BackupError::Unreadable { path: directory.clone(), error })
            }
            BackupStore::Bucket(bucket) => Ok(bucket.list().await?),
            BackupStore::Host(host) => host.list_on_host().await,
        }
    }

    /// The backup with a name. It is downloaded below `scratch`, unless it is on this machine.
    ///
    /// # Errors
    /// It does not exist, is damaged, or cannot be written.
    pub async fn fetch_backup(&self, name: &str, scratch: &Path) -> Result<FetchedBackup, BackupError> {
        match self {
            BackupStore::Directory(directory) => Ok(FetchedBackup::of_directory(directory.join(name))),
            BackupStore::Bucket(bucket) => bucket.download(name, scratch).await,
            BackupStore::Host(host) => host.download_backup(name, scratch).await,
        }
    }

    /// Reads all of a backup and compares it with its manifest; or why it is not good. `decryption`: an encrypted one is decrypted, too.
    ///
    /// # Errors
    /// A host with backups does not answer.
    pub async fn verify_backup(
        &self,
        backup: &Backup,
        decryption: Option<&Decryption>,
    ) -> Result<Result<Manifest, String>, BackupError> {
        let fetched = match (self, decryption) {
            (BackupStore::Bucket(bucket), None) => return Ok(bucket.verify_in_bucket(backup).await),
            (BackupStore::Host(host), None) => return host.verify_on_host(backup).await,
            (BackupStore::Directory(_), _) => None,
            (_, Some(decryption)) => Some(self.fetch_backup(&backup.name, &decryption.scratch).await),
        };
        let fetched = match fetched.transpose() {
            Err(error @ BackupError::Host { .. }) => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
            Ok(fetched) => fetched,
        };
        let path = fetched.as_ref().map_or_else(|| backup.path.clone(), |fetched| fetched.path.clone());
        let identities = decryption.map(|decryption| decryption.identities.clone()).unwrap_or_default();
        Ok(blocking(move || verify(&path, &identities)).await)
    }
}

impl BackupStores {
    /// The only place, if it is a directory in which the snapshot may arrive. One for encrypted backups never has anything else.
    fn only_directory(&self, is_encrypted: bool) -> Option<&PathBuf> {
        match self.stores.as_slice() {
            [BackupStore::Directory(directory)] if !is_encrypted => Some(directory),
            _ => None,
        }
    }

    /// A directory in which a snapshot may arrive.
    pub(in crate::deployment) fn staging(&self, is_encrypted: bool) -> Result<Staging, BackupError> {
        let parent = self.only_directory(is_encrypted).unwrap_or(&self.scratch);
        Staging::clean_in(parent)
    }

    /// Whether a backup could be kept somewhere, before one is taken.
    ///
    /// # Errors
    /// No bucket can be listed, no host answers, and no directory is safe.
    pub(in crate::deployment) async fn check(&self) -> Result<(), BackupError> {
        let mut failures = Vec::new();
        for store in &self.stores {
            match store {
                BackupStore::Directory(directory) => match check_owner(directory) {
                    Err(error @ BackupError::OpenDirectory { .. }) => failures.push(error.to_string()),
                    // One that does not exist is created.
                    _ => return Ok(()),
                },
                BackupStore::Bucket(bucket) => match bucket.list().await {
                    Ok(_) => return Ok(()),
                    Err(error) => failures.push(error.to_string()),
                },
                BackupStore::Host(host) => match host.check_host().await {
                    Ok(()) => return Ok(()),
                    Err(error) => failures.push(error.to_string()),
                },
            }
        }
        Err(BackupError::NotKept { failures })
    }

    /// Keeps a backup in every place. Gives what was kept, and what failed, each with the address.
    ///
    /// # Errors
    /// It is kept nowhere.
    pub(in crate::deployment) async fn keep(
        &self,
        staging: Staging,
        prepared: Prepared,
        retention: Retention,
    ) -> Result<(Vec<BackupResult>, Vec<String>), BackupError> {
        if let Some(directory) = self.only_directory(prepared.manifest.encryption.is_some()) {
            let directory = directory.clone();
            let kept = blocking(move || keep_in_directory(&directory, staging, &prepared, &retention)).await?;
            return Ok((vec![kept], Vec::new()));
        }
        let (mut copies, mut errors) = (Vec::new(), Vec::new());
        for store in &self.stores {
            let kept = match store {
                BackupStore::Bucket(bucket) => bucket.keep_in_bucket(staging.path(), &prepared, &retention).await,
                BackupStore::Host(host) => host.keep_on_host(staging.path(), &prepared, &retention).await,
                BackupStore::Directory(directory) => {
                    let (directory, files, prepared) = (directory.clone(), staging.path().to_owned(), prepared.clone());
                    blocking(move || copy_to_directory(&directory, &files, &prepared, &retention)).await
                }
            };
            match kept {
                Ok(kept) => copies.push(kept),
                Err(error) => errors.push((store.place(), error)),
            }
        }
        if copies.is_empty() && errors.len() == 1 {
            return Err(errors.remove(0).1);
        }
        let failure = |(place, error): (PathBuf, BackupError)| {
            let (place, error) = (place.display().to_string(), error.to_string());
            if error.starts_with(&place) { error } else { format!("{place}: {error}") }
        };
        let failures = errors.into_iter().map(failure).collect();
        match copies.is_empty() {
            true => Err(BackupError::NotKept { failures }),
            false => Ok((copies, failures)),
        }
    }
}

fn copy_to_directory(
    directory: &Path,
    files: &Path,
    prepared: &Prepared,
    retention: &Retention,
) -> Result<BackupResult, BackupError> {
    prepare_directory(directory)?;
    let staging = Staging::in_directory(directory).map_err(io_error(directory))?;
    let files_of_it = prepared.manifest.files();
    for file in files_of_it.iter().map(|file| file.name).chain([MANIFEST]) {
        let to = staging.path().join(file);
        // With the mode of the file, which only its owner can read.
        fs::copy(files.join(file), &to).and_then(|_| fs::File::open(&to)?.sync_all()).map_err(io_error(&to))?;
    }
    sync(staging.path()).map_err(io_error(staging.path()))?;
    for file in files_of_it {
        let copied = staging.path().join(file.name);
        if digest(&copied).map_err(io_error(&copied))? != (file.size, file.sha256) {
            return Err(BackupError::Damaged("its copy differs from it".to_owned()));
        }
    }
    keep_in_directory(directory, staging, prepared, retention)
}

/// On a thread that may wait.
pub(in crate::deployment) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
