//! Makes a backup of etcd: a snapshot from a host, kept as [`crate::deployment::backups`] does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ask;
use crate::deployment::backups::{
    self, BackupError, BackupStores, PARTIAL, Recipients, Retention, SnapshotReport, TakenBackup,
};
use crate::deployment::{Control, Error, Outcome, Site};
use crate::resource::names::variable;
use crate::value::{Value, Vars};

/// What the caller wants of a backup.
#[derive(Clone, Copy)]
pub struct BackupRequest<'a> {
    pub stores: &'a BackupStores,
    /// What is kept in each place.
    pub retention: Retention,
    /// Of the newest local backup of the hosts, instead of a new snapshot.
    pub is_local: bool,
    pub recipients: &'a Recipients,
    /// Whether the credentials of the deployment are in it, too. They need a recipient.
    pub has_credentials: bool,
    /// Whether the snapshot is restored into a separate etcd on its host first.
    pub rehearses: bool,
}

/// Makes a backup in each of the places. None: the caller cancelled it.
///
/// # Errors
/// No snapshot could be taken, it is damaged, or it could be kept nowhere.
pub async fn take_backup(
    site: &Site,
    request: BackupRequest<'_>,
    control: &Control,
) -> Result<Option<TakenBackup>, Error> {
    let BackupRequest { stores, retention, is_local: local, recipients, has_credentials, rehearses } = request;
    if has_credentials && recipients.is_empty() {
        return Err(BackupError::CredentialsInClear.into());
    }
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    if unless_stopped(control, stores.check()).await?.is_none() {
        return Ok(None);
    }
    // What cannot be read is reported before a host is asked for anything.
    let credentials = match has_credentials {
        true => Some(phase.credentials(&deployment, control).await?),
        false => None,
    };
    let staging = stores.staging(!recipients.is_empty())?;
    let id = staging.path().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let file = id.trim_start_matches(PARTIAL);
    let vars = Vars::from([
        (variable::ETCD_BACKUP_STAGING.into(), Value::from(staging.path().display().to_string())),
        (variable::ETCD_BACKUP_ID.into(), Value::from(file)),
        (variable::ETCD_BACKUP_LOCAL.into(), Value::from(local)),
        (variable::ETCD_BACKUP_REHEARSES.into(), Value::from(rehearses)),
    ]);
    let Some(reply) = ask::<SnapshotReport>(&phase, vars, None, control).await? else { return Ok(None) };
    if reply.outcome == Outcome::Interrupted {
        return Ok(None);
    }
    let mut silent = reply.unreachable;
    let texts = |all: BTreeMap<String, String>| all.into_iter().map(|(host, why)| format!("{host}: {why}"));
    let Some(taken) = reply.reported else {
        return Err(
            BackupError::NotTaken { failures: reply.failures.into_iter().chain(texts(silent)).collect() }.into()
        );
    };
    let mut failures = reply.failures;
    // The file is removed from the host last.
    if let Some(why) = silent.remove(&taken.host) {
        let host = &taken.host;
        let left = match local {
            true => String::new(),
            false => format!("; the snapshot may be left there, as .backup-{file}.db in etcd_snapshot_dir"),
        };
        failures.push(format!("{host}: {why}{left}"));
    }
    if !taken.has_leader {
        let member = &taken.member;
        failures
            .push(format!("{member} knew no leader: the newest writes may be missing in it. Run windlass etcd check"));
    }
    let silent = texts(silent).collect();
    let recipients = recipients.clone();
    let prepare = move || {
        let prepared = backups::prepare_backup(&staging, taken, deployment.name, &recipients, credentials.as_ref())?;
        Ok::<_, BackupError>((staging, prepared))
    };
    let (staging, prepared) = backups::blocking(prepare).await?;
    let Some((copies, not_kept)) = unless_stopped(control, stores.keep(staging, prepared, retention)).await? else {
        return Ok(None);
    };
    failures.extend(not_kept);
    failures.extend(copies.iter().flat_map(|copy| copy.failures.iter().cloned()));
    Ok(Some(TakenBackup { copies, failures, silent }))
}

/// How long the work with the places of backups may take.
const LONGEST: Duration = Duration::from_secs(6 * 60 * 60);

/// Does work that has no tasks, which a stop would wait for. None: the caller cancelled it.
///
/// # Errors
/// Those of the work, or it took longer than six hours.
pub async fn unless_stopped<T>(
    control: &Control,
    work: impl Future<Output = Result<T, BackupError>>,
) -> Result<Option<T>, Error> {
    let stopped = async {
        while !control.run.is_stopping() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        done = work => Ok(Some(done?)),
        () = stopped => Ok(None),
        () = tokio::time::sleep(LONGEST) => Err(BackupError::TooSlow(LONGEST).into()),
    }
}
