//! Where backups of etcd are: below the directory that the server was started with.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::{ServeError, Server};
use crate::resource::is_stored_name;
use crate::value::ownership::written_by_others;

/// Makes the directory of backups, if it is not there, for this user alone.
///
/// # Errors
/// It cannot be made, or others can write to it.
pub(super) fn prepare_backups(directory: &Path) -> Result<PathBuf, ServeError> {
    let failed = |source| ServeError::Directory { path: directory.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let directory = directory.canonicalize().map_err(failed)?;
    match written_by_others(&directory).map_err(failed)? {
        None => Ok(directory),
        Some(path) => Err(ServeError::NotOwn { path }),
    }
}

/// The directory with the backups of a deployment, which may not be there yet.
///
/// # Errors
/// The server has none, or the name is no name of a directory.
pub(super) fn backups_of(server: &Server, deployment: &str) -> Result<PathBuf, Problem> {
    let Some(directory) = &server.backups else {
        let detail = "the server has no directory for backups";
        return Err(Problem::conflict("NoBackupDirectory", detail).with_hint("start it with --backups DIRECTORY"));
    };
    match is_stored_name(deployment) {
        true => Ok(directory.join(deployment)),
        false => Err(Problem::conflict("InvalidName", "backups need a name of lower-case letters, digits and dashes")),
    }
}
