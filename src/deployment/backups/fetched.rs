//! One backup that somebody names, wherever it is, as a directory of this machine.

use std::path::PathBuf;

use super::error::BackupError;
use super::staging::Staging;

/// A backup in a directory of this machine. If it was downloaded, the directory is removed with it.
pub struct FetchedBackup {
    pub path: PathBuf,
    /// Its address elsewhere.
    downloaded: Option<(PathBuf, Staging)>,
}

impl FetchedBackup {
    /// One that has always been there.
    pub(super) fn of_directory(path: PathBuf) -> FetchedBackup {
        FetchedBackup { path, downloaded: None }
    }

    /// `address`: such as `s3://BUCKET/PREFIX/NAME`.
    pub(super) fn downloaded(path: PathBuf, address: PathBuf, staging: Staging) -> FetchedBackup {
        FetchedBackup { path, downloaded: Some((address, staging)) }
    }

    /// An error about it, with its address instead of the place of the copy.
    #[must_use]
    pub fn with_address(&self, error: BackupError) -> BackupError {
        let Some((path, _)) = &self.downloaded else { return error };
        let path = path.clone();
        match error {
            BackupError::Unusable { why, .. } => BackupError::Unusable { path, why },
            BackupError::Foreign { found, wanted, .. } => BackupError::Foreign { path, found, wanted },
            BackupError::HoldsNoCredentials { .. } => BackupError::HoldsNoCredentials { path },
            other => other,
        }
    }
}
