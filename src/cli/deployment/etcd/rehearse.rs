//! `windlass etcd rehearse`: restores a backup into a separate etcd.

use clap::Args;

use super::backup::mebibytes;
use super::keys::IdentityArgs;
use super::store::{S3Args, scratch_directory};
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note, working_directory};
use crate::deployment::Error;
use crate::deployment::etcd::backup::unless_stopped;
use crate::deployment::etcd::rehearse::{Rehearsed, RestoredData, rehearse_restore};

#[derive(Debug, Args)]
pub(super) struct RehearseArgs {
    /// The backup: a directory that windlass etcd backup made, s3://BUCKET/PREFIX/NAME, or ssh://USER@ADDRESS/DIRECTORY/NAME
    #[arg(value_name = "BACKUP")]
    backup: String,
    #[command(flatten)]
    identities: IdentityArgs,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    site: SiteArgs,
}

/// Restores the backup. The exit code is 2 if the restored data is not what the members had, or something else failed, 4 if a host did not answer.
pub(super) fn run_rehearsal(args: &RehearseArgs) -> Result<ExitCode, CliError> {
    let here = working_directory()?;
    let source = args.s3.backup_source(&args.backup, &here)?;
    let scratch = scratch_directory()?;
    let identities = args.identities.identities()?;
    let mut command = args.site.command("etcd rehearse");
    command.arguments.push(args.backup.clone());
    args.site.carry_out(command, &[], async |site, control| {
        let Some(backup) = unless_stopped(control, source.fetch_backup(&scratch)).await? else {
            return Ok(ExitCode::Interrupted);
        };
        let rehearsed = rehearse_restore(site, &backup.path, &scratch, &identities, control).await;
        let rehearsed = rehearsed.map_err(|error| match error {
            Error::Backup(error) => Error::Backup(backup.with_address(error)),
            error => error,
        })?;
        let Some(rehearsed) = rehearsed else {
            note(
                "a host may still have the snapshot, as .rehearsal-*.db in etcd_snapshot_dir, for root only: remove it",
            );
            return Ok(ExitCode::Interrupted);
        };
        show(&describe(&rehearsed), site)?;
        for failure in rehearsed.failures.iter().chain(&rehearsed.silent) {
            note(&site.keyring.hidden.hide(&format!("error: the backup was restored, but {failure}")));
        }
        Ok(match (rehearsed.data, rehearsed.failures.is_empty(), rehearsed.silent.is_empty()) {
            (RestoredData::Differs, ..) | (_, false, _) => ExitCode::Failed,
            (_, true, false) => ExitCode::Unreachable,
            (_, true, true) => ExitCode::Ok,
        })
    })
}

fn describe(rehearsed: &Rehearsed) -> String {
    let (manifest, report) = (&rehearsed.manifest, &rehearsed.report);
    let data = match rehearsed.data {
        RestoredData::Same => "the data is what the members had",
        RestoredData::Differs => {
            "the data is NOT what the members had: do not rely on this backup; take a new one, and run windlass etcd verify"
        }
        RestoredData::NoHash => "the data was not compared: the backup does not say what the members had",
        RestoredData::NotComparable => {
            "the data was not compared: the hash of the members is of another version of etcd, or of a later compaction"
        }
    };
    format!(
        "{} was restored on {} with etcd {} in {} s\n  revision {}, {} keys, {}\n  {data}\n",
        rehearsed.name,
        report.host,
        report.etcd_version,
        report.seconds,
        manifest.revision,
        report.live_keys,
        mebibytes(manifest.size),
    )
}
