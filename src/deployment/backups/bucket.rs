//! Backups in a bucket: `PREFIX/NAME/snapshot.db.zst` (or `.zst.age`), perhaps the credentials, and `PREFIX/NAME/manifest.json`, which is
//! written last and removed first. A name is of one process alone, so that none touches what another one writes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use futures::{StreamExt, TryStreamExt};

use super::error::{BackupError, io_error};
use super::fetched::FetchedBackup;
use super::history::check_history;
use super::prepare::Prepared;
use super::prune::remove_superseded;
use super::reading::parse_manifest;
use super::retention::Retention;
use super::staging::Staging;
use super::{Backup, BackupResult, DIFFERS, LARGEST_MANIFEST, MANIFEST, Manifest, PARTS, parse_timestamp};
use crate::s3::{Bucket, Object, S3Error};

/// The backups of one deployment in a bucket.
pub struct BackupBucket {
    bucket: Bucket,
    /// Empty, or ends with `/`.
    prefix: String,
}

/// How many manifests are read at the same time.
const READERS: usize = 8;
/// A snapshot without a manifest is of an upload that did not end, if it is so much older than a new one, in seconds.
const ABANDONED: u64 = 24 * 60 * 60;

/// The files of a backup.
#[derive(Debug, Clone, Default)]
struct Files {
    /// All except the manifest.
    parts: Vec<(&'static str, Object)>,
    /// None: it is not there.
    manifest: Option<Object>,
}

impl Files {
    /// Whether each part of a backup is there, with its size.
    fn compare_sizes(&self, manifest: &Manifest) -> Result<(), String> {
        let size = |name: &str| self.parts.iter().find(|(part, _)| *part == name).map(|(_, object)| object.size);
        manifest.compare_sizes(size)
    }
}

impl BackupBucket {
    /// `prefix`: what the keys begin with; may be empty.
    ///
    /// # Errors
    /// It has parts that mean different things to different services.
    pub fn new(bucket: Bucket, prefix: &str) -> Result<BackupBucket, String> {
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return Ok(BackupBucket { bucket, prefix: String::new() });
        }
        match prefix.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            true => Err(format!("the prefix {prefix:?} has an empty part, . or ..")),
            false => Ok(BackupBucket { bucket, prefix: format!("{prefix}/") }),
        }
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

    /// The backups that are complete, the newest first. Of each the manifest was read, and the size of the snapshot compared with it.
    ///
    /// # Errors
    /// The bucket cannot be listed, or a manifest cannot be read.
    pub async fn list(&self) -> Result<Vec<Backup>, S3Error> {
        let files = self.list_files(&self.prefix).await?;
        self.read_manifests(&files).await
    }

    /// The files of all backups whose keys begin so, by the names of the backups.
    async fn list_files(&self, prefix: &str) -> Result<BTreeMap<String, Files>, S3Error> {
        let mut found = BTreeMap::<String, Files>::new();
        for object in self.bucket.list_objects(prefix).await? {
            let Some((name, file)) = object.key.strip_prefix(&self.prefix).and_then(|rest| rest.split_once('/')) else {
                continue;
            };
            let part = PARTS.into_iter().find(|part| *part == file);
            if !is_name(name) || part.is_none() && file != MANIFEST {
                continue;
            }
            let files = found.entry(name.to_owned()).or_default();
            match part {
                Some(part) => files.parts.push((part, object)),
                None => files.manifest = Some(object),
            }
        }
        Ok(found)
    }

    /// The backups with a manifest: one without it is not complete yet.
    async fn read_manifests(&self, files: &BTreeMap<String, Files>) -> Result<Vec<Backup>, S3Error> {
        let read = async |(name, files): (&String, &Files)| {
            let Some(manifest) = &files.manifest else { return Ok(None) };
            let Some(manifest) = self.manifest(name, manifest, files).await? else { return Ok(None) };
            Ok::<_, S3Error>(Some(Backup { name: name.clone(), path: self.address_of(name), manifest }))
        };
        let read: Vec<Option<Backup>> = futures::stream::iter(files).map(read).buffered(READERS).try_collect().await?;
        let mut backups: Vec<Backup> = read.into_iter().flatten().collect();
        super::sort_backups(&mut backups);
        Ok(backups)
    }

    /// None: somebody removed it meanwhile.
    async fn manifest(
        &self,
        name: &str,
        manifest: &Object,
        files: &Files,
    ) -> Result<Option<Result<Manifest, String>>, S3Error> {
        if manifest.size > LARGEST_MANIFEST as u64 {
            return Ok(Some(Err("damaged manifest: it is too large".to_owned())));
        }
        let text = match self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await {
            Ok(text) => text,
            Err(error) if error.is_missing() => return Ok(None),
            // One that was archived, or whose key is gone, prevents no other backup.
            Err(error) if error.is_answer() => return Ok(Some(Err(error.to_string().replace('\n', "; ")))),
            Err(error) => return Err(error),
        };
        Ok(Some(parse_manifest(&text).and_then(|manifest| files.compare_sizes(&manifest).map(|()| manifest))))
    }

    /// Reads all of a backup, and compares it with its manifest.
    ///
    /// # Errors
    /// Why it is not good.
    pub async fn verify_in_bucket(&self, backup: &Backup) -> Result<Manifest, String> {
        let manifest = backup.manifest.clone()?;
        self.verify_parts(&backup.name, &manifest).await?;
        Ok(manifest)
    }

    async fn verify_parts(&self, name: &str, manifest: &Manifest) -> Result<(), String> {
        for file in manifest.files() {
            let read = self.bucket.download_object(&self.key(name, file.name), file.size, None).await;
            if read.map_err(|error| error.to_string())? != (file.size, file.sha256) {
                return Err(DIFFERS.to_owned());
            }
        }
        Ok(())
    }

    /// Uploads a backup whose files are in a directory, and reads it back.
    pub(super) async fn keep_in_bucket(
        &self,
        files: &Path,
        prepared: &Prepared,
        retention: &Retention,
    ) -> Result<BackupResult, BackupError> {
        let files_before = self.list_files(&self.prefix).await?;
        let earlier = self.read_manifests(&files_before).await?;
        let address = self.bucket_address();
        let manifest = &prepared.manifest;
        if let Some(backup) = check_history(&address, &earlier, prepared, |backup| backup.manifest.is_ok())?
            && let Ok(found) = self.verify_in_bucket(backup).await
        {
            return Ok(BackupResult::of_earlier(backup.clone(), found, manifest));
        }
        let name = format!("{}-{:08x}", manifest.backup_name(), rand::random::<u32>());
        let uploaded = match self.upload(&name, files, manifest).await {
            Ok(uploaded) => uploaded,
            Err(error) => {
                // Nobody else has this name. What is wrong is known already; what stays is removed later.
                drop(self.remove(&name, manifest).await);
                return Err(error);
            }
        };
        let backup = Backup { path: self.address_of(&name), name, manifest: Ok(manifest.clone()) };
        let mut made = BackupResult::of(backup, manifest.clone());
        for (name, files) in &files_before {
            let newest = files.parts.iter().map(|(_, object)| object.modified).max();
            let is_old = newest.is_some_and(|modified| uploaded.saturating_sub(modified) > ABANDONED);
            if files.manifest.is_none() && is_old {
                match self.remove_abandoned_parts(name).await {
                    Ok(true) => made.removed.push(format!("{name} (incomplete)")),
                    Ok(false) => {}
                    Err(error) => made.failures.push(format!("an incomplete backup cannot be removed: {error}")),
                }
            }
        }
        let remove = async |backup: &Backup, manifest: &Manifest| self.remove(&backup.name, manifest).await;
        remove_superseded(&mut made, prepared, retention, earlier, remove).await;
        Ok(made)
    }

    /// Gives when the service stored it, in seconds since 1970.
    async fn upload(&self, name: &str, files: &Path, manifest: &Manifest) -> Result<u64, BackupError> {
        for file in manifest.files() {
            self.bucket.upload_object(&self.key(name, file.name), &files.join(file.name)).await?;
        }
        let changed = |why| BackupError::Changed { path: self.address_of(name), why };
        self.verify_parts(name, manifest).await.map_err(changed)?;
        let at = files.join(MANIFEST);
        self.bucket.upload_object(&self.key(name, MANIFEST), &at).await?;
        let written = fs::read(&at).map_err(io_error(&at))?;
        if self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await? != written {
            return Err(changed("its manifest differs".to_owned()));
        }
        // All are there at the end.
        let found = self.list_files(&self.key(name, "")).await?.remove(name).unwrap_or_default();
        found.compare_sizes(manifest).map_err(changed)?;
        found.manifest.map(|manifest| manifest.modified).ok_or_else(|| changed("its manifest is gone".to_owned()))
    }

    /// Removes what an upload that has not ended left, unless there is a manifest by now. Whether it did.
    async fn remove_abandoned_parts(&self, name: &str) -> Result<bool, S3Error> {
        let found = self.list_files(&self.key(name, "")).await?.remove(name).unwrap_or_default();
        if found.manifest.is_some() {
            return Ok(false);
        }
        for (part, _) in found.parts {
            self.bucket.delete_object(&self.key(name, part)).await?;
        }
        Ok(true)
    }

    /// The manifest first: a backup that is half removed is none.
    async fn remove(&self, name: &str, manifest: &Manifest) -> Result<(), S3Error> {
        self.bucket.delete_object(&self.key(name, MANIFEST)).await?;
        for file in manifest.files() {
            self.bucket.delete_object(&self.key(name, file.name)).await?;
        }
        Ok(())
    }

    /// Downloads a backup into a directory below `scratch`, and compares it with its manifest.
    ///
    /// # Errors
    /// It does not exist, is damaged, or cannot be written.
    pub async fn download(&self, name: &str, scratch: &Path) -> Result<FetchedBackup, BackupError> {
        let path = self.address_of(name);
        let unusable = |why| BackupError::Unusable { path: path.clone(), why };
        // Others may say what it is called, and it becomes the name of a directory.
        if !is_name(name) {
            return Err(unusable(format!("{name:?} is no name of a backup")));
        }
        let staging = Staging::clean_in(scratch)?;
        let text = self.bucket.read_object(&self.key(name, MANIFEST), LARGEST_MANIFEST).await?;
        let manifest = parse_manifest(&text).map_err(unusable)?;
        let directory = staging.path().join(name);
        fs::create_dir(&directory).map_err(io_error(&directory))?;
        let open = |file: &str| {
            let at = directory.join(file);
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&at);
            file.map_err(io_error(&at))
        };
        let at = directory.join(MANIFEST);
        std::io::Write::write_all(&mut open(MANIFEST)?, &text).map_err(io_error(&at))?;
        for part in manifest.files() {
            let mut file = open(part.name)?;
            let read = self.bucket.download_object(&self.key(name, part.name), part.size, Some(&mut file)).await?;
            if read != (part.size, part.sha256) {
                return Err(unusable(DIFFERS.to_owned()));
            }
        }
        Ok(FetchedBackup::downloaded(directory, path, staging))
    }
}

/// Whether a backup may have this name: it begins with a time and a revision.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let time = name.split_once("-r").and_then(|(time, _)| parse_timestamp(time));
    time.is_some() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn only_names_that_windlass_gives_are_backups() {
        for name in ["20261124T044022Z-r164-0a1b2c3d", "20261124T044022Z-r164"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "..",
            ".",
            "a",
            "20261124T044022Z",
            "20261324T044022Z-r1",
            "20261124T044022Z-r1\n",
            "x-r1",
            "20261124T044022Z-r../a",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
