//! `windlass etcd restore`: from a backup, and what follows: its release, or the way back.

use clap::Args;

use super::keys::IdentityArgs;
use super::store::{S3Args, scratch_directory};
use crate::cli::deployment::SiteArgs;
use crate::cli::deployment::operation::{Consent, carry_out_operation};
use crate::cli::{CliError, ExitCode, working_directory};
use crate::deployment::etcd::backup::unless_stopped;
use crate::deployment::etcd::restore::{Restoration, RestoreOptions, unpack_backup};
use crate::deployment::operation::Operation;
use crate::deployment::{Error, LockRequest};

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The backup: a directory that windlass etcd backup made, s3://BUCKET/PREFIX/NAME, or ssh://USER@ADDRESS/DIRECTORY/NAME
    #[arg(value_name = "BACKUP", required_unless_present_any = ["undo", "release"])]
    backup: Option<String>,
    /// Move the data from before the last restore back; what was written since is lost
    #[arg(long, conflicts_with_all = ["backup", "release"])]
    undo: bool,
    /// Start the controllers that the last restore holds; it can no longer be undone with --undo
    #[arg(long, conflicts_with = "backup")]
    release: bool,
    /// Start the controllers at once, for rehearsals: Karmada then makes its members what the backup says
    #[arg(long, conflicts_with_all = ["undo", "release"])]
    release_automatically: bool,
    /// A member that is not in the inventory, and whose machine is gone for good or has etcd stopped and disabled; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["undo", "release"])]
    lost: Vec<String>,
    /// Restore a backup of another deployment or cluster
    #[arg(long, conflicts_with_all = ["undo", "release"])]
    foreign: bool,
    /// The deployment's name, to skip the prompt
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    check: bool,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long, conflicts_with = "check")]
    break_lock: bool,
    /// Give up another operation that was interrupted and cannot be resumed, and restore all members again
    #[arg(long)]
    abandon: bool,
    #[command(flatten)]
    identities: IdentityArgs,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    site: SiteArgs,
}

pub(super) fn run_restore(args: &RestoreArgs) -> Result<ExitCode, CliError> {
    let here = working_directory()?;
    let source = args.backup.as_ref().map(|backup| args.s3.backup_source(backup, &here)).transpose()?;
    let scratch = scratch_directory()?;
    let identities = args.identities.identities()?;
    let mut command = args.site.command("etcd restore");
    command.arguments.push(match &args.backup {
        Some(backup) => backup.clone(),
        None if args.undo => "--undo".to_owned(),
        None => "--release".to_owned(),
    });
    command.check = args.check;
    args.site.carry_out(command, &[], async |site, control| {
        // What was downloaded, and the snapshot of the backup, are on this machine until the restore has ended.
        let (mut fetched, mut unpacked) = (None, None);
        let operation = match &source {
            Some(source) => {
                let Some(backup) = unless_stopped(control, source.fetch_backup(&scratch)).await? else {
                    return Ok(ExitCode::Interrupted);
                };
                let backup = &*fetched.insert(backup);
                let options = RestoreOptions {
                    lost: args.lost.clone(),
                    foreign: args.foreign,
                    releases: args.release_automatically,
                    abandons: args.abandon,
                };
                let unpacked_backup = unpack_backup(site, &backup.path, &scratch, &identities, options, control).await;
                let unpacked_backup = unpacked_backup.map_err(|error| match error {
                    Error::Backup(error) => Error::Backup(backup.with_address(error)),
                    error => error,
                })?;
                unpacked.insert(unpacked_backup).operation.clone()
            }
            None if args.undo => Operation::RestoreEtcd(Restoration::Undo),
            None => Operation::RestoreEtcd(Restoration::Release),
        };
        let request = LockRequest {
            command: format!("windlass {}", operation.name()),
            breaks: args.break_lock,
            abandons: args.abandon,
        };
        let consent = if args.check { Consent::OnlyShow } else { Consent::Name(args.name.clone()) };
        carry_out_operation(site, control, operation, &request, consent).await
    })
}
