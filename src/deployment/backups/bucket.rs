//! Backups in a bucket: `PREFIX/NAME/snapshot.db.zst`, and `PREFIX/NAME/manifest.json`, which is written last and removed first.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use futures::{StreamExt, TryStreamExt};

use super::directory::parse_manifest;
use super::error::{BackupError, io_error};
use super::history::{check_history, superseded};
use super::prepare::Prepared;
use super::{Backup, BackupResult, LARGEST_MANIFEST, MANIFEST, Manifest, SNAPSHOT, now, parse_timestamp};
use crate::s3::{Bucket, S3Error};

/// The backups of one deployment in a bucket.
pub struct BackupBucket {
    bucket: Bucket,
    /// Empty, or ends with `/`.
    prefix: String,
}

/// How many manifests are read at the same time.
const READERS: usize = 8;
/// A snapshot without a manifest is of an upload that did not end, if it is so old, in seconds.
const ABANDONED: u64 = 24 * 60 * 60;

/// The sizes of a backup's files, in bytes. None: it is not there.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    snapshot: Option<u64>,
    manifest: Option<u64>,
}

impl BackupBucket {
    /// `prefix`: what the keys begin with, without a slash at its ends; may be empty.
    pub fn new(bucket: Bucket, prefix: &str) -> BackupBucket {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        BackupBucket { bucket, prefix }
    }

    /// `s3://BUCKET/PREFIX`
    pub fn bucket_address(&self) -> PathBuf {
        PathBuf::from(self.bucket.object_address(self.prefix.trim_end_matches('/')).trim_end_matches('/'))
    }

    fn address_of(&self, name: &str) -> PathBuf {
        PathBuf::from(self.bucket.object_address(&format!("{}{name}", self.prefix)))
    }

    fn key(&self, name: &str, file: &str) -> String {
        format!("{}{name}/{file}", self.prefix)
    }

    /// The backups, the newest first. Of each the manifest was read, and the size of the snapshot compared with it.
    ///
    /// # Errors
    /// The bucket cannot be listed, or a manifest cannot be read.
    pub async fn list(&self) -> Result<Vec<Backup>, S3Error> {
        Ok(self.list_files().await?.into_iter().map(|(backup, _)| backup).collect())
    }

    async fn list_files(&self) -> Result<Vec<(Backup, Sizes)>, S3Error> {
        let mut found = BTreeMap::<String, Sizes>::new();
        for object in self.bucket.list_objects(&self.prefix).await? {
            let parts = object.key.strip_prefix(&self.prefix).and_then(|rest| rest.split_once('/'));
            match parts {
                Some((name, SNAPSHOT)) => found.entry(name.to_owned()).or_default().snapshot = Some(object.size),
                Some((name, MANIFEST)) => found.entry(name.to_owned()).or_default().manifest = Some(object.size),
                _ => {}
            }
        }
        let read = async |(name, sizes): (String, Sizes)| {
            let manifest = self.manifest(&name, &sizes).await?;
            let path = self.address_of(&name);
            Ok::<_, S3Error>((Backup { name, path, manifest }, sizes))
        };
        let mut backups: Vec<(Backup, Sizes)> =
            futures::stream::iter(found).map(read).buffered(READERS).try_collect().await?;
        let time = |backup: &Backup| backup.manifest.as_ref().map_or(0, |manifest| manifest.taken);
        backups.sort_by(|(one, _), (other, _)| (time(other), &other.name).cmp(&(time(one), &one.name)));
        Ok(backups)
    }

    async fn manifest(&self, name: &str, sizes: &Sizes) -> Result<Result<Manifest, String>, S3Error> {
        match sizes.manifest {
            None => return Ok(Err("no manifest: its upload has not ended".to_owned())),
            Some(size) if size > LARGEST_MANIFEST as u64 => {
                return Ok(Err("damaged manifest: it is too large".to_owned()));
            }
            Some(_) => {}
        }
        let text = match self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await {
            Ok(text) => text,
            // Somebody removed it meanwhile.
            Err(error) if error.is_missing() => return Ok(Err("no manifest".to_owned())),
            Err(error) => return Err(error),
        };
        Ok(parse_manifest(&text).and_then(|manifest| match sizes.snapshot {
            Some(size) if size == manifest.compressed_size => Ok(manifest),
            Some(size) => Err(format!("damaged: its snapshot has {size} bytes, and had {}", manifest.compressed_size)),
            None => Err("damaged: it has no snapshot".to_owned()),
        }))
    }

    /// Reads all of a backup, and compares it with its manifest.
    ///
    /// # Errors
    /// Why it is not good.
    pub async fn verify_in_bucket(&self, backup: &Backup) -> Result<Manifest, String> {
        let manifest = backup.manifest.clone()?;
        self.verify_snapshot(&backup.name, &manifest).await?;
        Ok(manifest)
    }

    async fn verify_snapshot(&self, name: &str, manifest: &Manifest) -> Result<(), String> {
        let read = self.bucket.download_object(&self.key(name, SNAPSHOT), manifest.compressed_size, None).await;
        match read.map_err(|error| error.to_string())? == digest_of(manifest) {
            true => Ok(()),
            false => Err("damaged: its digest differs from the manifest's".to_owned()),
        }
    }

    /// Uploads a backup whose files are in a directory, and reads it back.
    pub(super) async fn keep_in_bucket(
        &self,
        files: &Path,
        prepared: &Prepared,
        keep: Option<usize>,
    ) -> Result<BackupResult, BackupError> {
        let listed = self.list_files().await?;
        let earlier: Vec<Backup> = listed.iter().map(|(backup, _)| backup.clone()).collect();
        let address = self.bucket_address();
        let manifest = &prepared.manifest;
        if let Some(backup) = check_history(&address, &earlier, prepared, |backup| backup.manifest.is_ok())?
            && let Ok(found) = self.verify_in_bucket(backup).await
        {
            return Ok(BackupResult { was_there: true, ..BackupResult::of(backup.clone(), found) });
        }
        let name = manifest.backup_name();
        let path = self.address_of(&name);
        if prepared.is_local && earlier.iter().any(|backup| backup.name == name) {
            return Err(BackupError::DamagedCopy { path });
        }
        if let Err(error) = self.upload(&name, files, manifest).await {
            // Without a manifest it is no backup; what is wrong is known already.
            if !earlier.iter().any(|backup| backup.name == name) {
                drop(self.remove(&name).await);
            }
            return Err(error);
        }
        let backup = Backup { name, path, manifest: Ok(manifest.clone()) };
        let mut made = BackupResult::of(backup, manifest.clone());
        for (backup, sizes) in &listed {
            // What a killed process left. Nobody else has a use for it.
            if sizes.manifest.is_none() && is_abandoned(&backup.name) && backup.name != made.backup.name {
                made.failures.extend(self.remove(&backup.name).await.err().map(|error| error.to_string()));
            }
        }
        match (keep, &prepared.doubt) {
            (Some(_), Some(doubt)) => made.kept = Some(doubt.clone()),
            (Some(keep), None) => {
                for backup in superseded(earlier, &made.backup, keep, |backup| backup.manifest.is_ok()) {
                    match self.remove(&backup.name).await {
                        Ok(()) => made.removed.push(backup.name),
                        Err(error) => {
                            made.failures.push(format!("older ones cannot be removed: {error}"));
                            break;
                        }
                    }
                }
            }
            (None, _) => {}
        }
        Ok(made)
    }

    async fn upload(&self, name: &str, files: &Path, manifest: &Manifest) -> Result<(), BackupError> {
        self.bucket.upload_object(&self.key(name, SNAPSHOT), &files.join(SNAPSHOT)).await?;
        let changed = |why| BackupError::Changed { path: self.address_of(name), why };
        self.verify_snapshot(name, manifest).await.map_err(changed)?;
        let at = files.join(MANIFEST);
        self.bucket.upload_object(&self.key(name, MANIFEST), &at).await?;
        let written = fs::read(&at).map_err(io_error(&at))?;
        match self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await? == written {
            true => Ok(()),
            false => Err(changed("its manifest differs".to_owned())),
        }
    }

    /// The manifest first: a backup that is half removed is none.
    async fn remove(&self, name: &str) -> Result<(), S3Error> {
        self.bucket.delete_object(&self.key(name, MANIFEST)).await?;
        self.bucket.delete_object(&self.key(name, SNAPSHOT)).await
    }

    /// Downloads a backup into a new directory with its name below `parent`.
    ///
    /// # Errors
    /// It does not exist, is damaged, or cannot be written.
    pub(in crate::deployment) async fn download_backup(
        &self,
        name: &str,
        parent: &Path,
    ) -> Result<PathBuf, BackupError> {
        let text = self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await?;
        let path = self.address_of(name);
        let unusable = |why| BackupError::Unusable { path: path.clone(), why };
        let manifest = parse_manifest(&text).map_err(unusable)?;
        let directory = parent.join(name);
        fs::create_dir(&directory).map_err(io_error(&directory))?;
        let open = |file: &str| {
            let at = directory.join(file);
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&at);
            file.map_err(io_error(&at))
        };
        let at = directory.join(MANIFEST);
        std::io::Write::write_all(&mut open(MANIFEST)?, &text).map_err(io_error(&at))?;
        let mut file = open(SNAPSHOT)?;
        let key = self.key(name, SNAPSHOT);
        match self.bucket.download_object(&key, manifest.compressed_size, Some(&mut file)).await?
            == digest_of(&manifest)
        {
            true => Ok(directory),
            false => Err(unusable("damaged: its digest differs from the manifest's".to_owned())),
        }
    }
}

/// Of the compressed snapshot.
fn digest_of(manifest: &Manifest) -> (u64, String) {
    (manifest.compressed_size, manifest.compressed_sha256.clone())
}

/// Whether a backup of this name was begun long ago.
fn is_abandoned(name: &str) -> bool {
    let time = name.split_once("-r").and_then(|(time, _)| parse_timestamp(time));
    time.is_some_and(|time| now().saturating_sub(time) > ABANDONED)
}
