//! Makes a backup of etcd: a snapshot from a host, kept as [`crate::deployment::backups`] does.

use std::path::Path;

use super::ask;
use crate::deployment::backups::{self, BackupError, BackupResult, PARTIAL, SnapshotReport};
use crate::deployment::{Control, Error, Outcome, Progress, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// Makes a backup in a directory. `keep`: how many to keep. None: the caller cancelled it.
///
/// # Errors
/// No snapshot could be taken, it is damaged, or it cannot be written.
pub async fn take_backup(
    site: &Site,
    directory: &Path,
    keep: Option<usize>,
    control: &Control,
) -> Result<Option<BackupResult>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    backups::create(directory).map_err(backups::io_error(directory))?;
    let staging =
        tempfile::Builder::new().prefix(PARTIAL).tempdir_in(directory).map_err(backups::io_error(directory))?;
    let id = staging.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let vars = Vars::from([
        (variable::ETCD_BACKUP_STAGING.into(), Value::from(staging.path().display().to_string())),
        (variable::ETCD_BACKUP_ID.into(), Value::from(id.trim_start_matches(PARTIAL))),
    ]);
    let Some(reply) = ask::<SnapshotReport>(&phase, vars, None, control).await? else { return Ok(None) };
    if reply.outcome == Outcome::Interrupted {
        return Ok(None);
    }
    let silent: Vec<String> = reply.unreachable.iter().map(|(host, why)| format!("{host}: {why}")).collect();
    let Some(taken) = reply.reported else {
        return Err(BackupError::NotTaken { failures: reply.failures.into_iter().chain(silent).collect() }.into());
    };
    for why in silent {
        control.report_progress(Progress::Warning(format!("the backup is complete, but {why}")));
    }
    let failures = reply.failures;
    // On a thread that may wait.
    let (directory, name) = (directory.to_owned(), deployment.name);
    let kept = tokio::task::spawn_blocking(move || backups::finish_backup(&directory, staging, taken, name, keep));
    let made = kept.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    Ok(Some(BackupResult { failures, ..made }))
}
