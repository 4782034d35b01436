//! Why a backup was not made, or cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a backup was not made, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("cannot write the backup to {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{} is not safe for backups: {why}, and a backup holds every Secret\nhint: use a directory of your own, with mode 0700", path.display()
    )]
    OpenDirectory { path: PathBuf, why: String },
    #[error("{}", failures.join("\n"))]
    NotTaken { failures: Vec<String> },
    #[error("the backup {name} was not restored: {}", failures.join("\n"))]
    NotRestored { name: String, failures: Vec<String> },
    #[error("the backup {} cannot be used: {why}; nothing was changed\nhint: windlass etcd backups lists those that can", path.display())]
    Unusable { path: PathBuf, why: String },
    #[error(
        "the backup {} is of {found}, and this deployment's etcd is {wanted}; nothing was changed\n\
         hint: --foreign restores it nevertheless", path.display()
    )]
    Foreign { path: PathBuf, found: String, wanted: String },
    #[error("the snapshot that arrived is damaged: {0}; nothing was kept")]
    Damaged(String),
    #[error("{} has backups of {found}, and this deployment's etcd is {wanted}\nhint: use a separate directory for every deployment", path.display())]
    OtherCluster { path: PathBuf, found: String, wanted: String },
    #[error(
        "the snapshot has revision {revision}, but {newest} in {} of the same cluster has revision {known}: the cluster was restored \
         to an older state, or this member lags far behind\nhint: run windlass etcd check; after a restore, use a new directory", path.display()
    )]
    WentBack { path: PathBuf, revision: u64, newest: String, known: u64 },
    #[error(
        "the newest local backup has revision {revision}, and {newest} in {} of the same cluster has revision {known}, which is newer; \
         nothing was copied\nhint: windlass status shows whether local backups are made; after a restore, use a new directory", path.display()
    )]
    Older { path: PathBuf, revision: u64, newest: String, known: u64 },
    #[error("{}: {why}", path.display())]
    Host { path: PathBuf, why: String },
    #[error(transparent)]
    Bucket(#[from] crate::s3::S3Error),
    #[error("the backup in {} is not what was sent: {why}; it does not count", path.display())]
    Changed { path: PathBuf, why: String },
    #[error(
        "the backup cannot hold the credentials of the deployment: {} does not exist, and a restore needs it\nhint: run this where the deployment was \
         installed from, or leave --credentials out", path.display()
    )]
    NoCredentials { path: PathBuf },
    #[error(
        "credentials are kept in encrypted backups only\nhint: name who can decrypt them: --recipient AGE1..., or spec.recipients of an EtcdBackup"
    )]
    CredentialsInClear,
    #[error("the credentials have {} MiB, which is too much for a backup\nhint: remove what is not one from their directory", size >> 20)]
    LargeCredentials { size: u64 },
    #[error("cannot write {}: {error}", path.display())]
    Unwritten { path: PathBuf, error: io::Error },
    #[error("the backup {} holds no credentials: it was taken without --credentials", path.display())]
    HoldsNoCredentials { path: PathBuf },
    #[error("{} is there, and is not an empty directory; nothing was written", path.display())]
    NotEmpty { path: PathBuf },
    #[error("the backup was not written within {} hours", .0.as_secs() / 3600)]
    TooSlow(std::time::Duration),
    /// Of each place, with its address.
    #[error("{}", failures.join("\n"))]
    NotKept { failures: Vec<String> },
    #[error(
        "{} is there, and is damaged: windlass etcd backups says how; nothing was copied\nhint: remove it, and run this again", path.display()
    )]
    DamagedCopy { path: PathBuf },
}

pub(in crate::deployment) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |error| BackupError::Io { path, error }
}
