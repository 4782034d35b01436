//! `windlass etcd recover`: for a cluster without a majority. Starts members; restores nothing on its own.

use anyhow::anyhow;
use clap::Args;

use super::store::S3Args;
use crate::cli::deployment::operation::{Consent, carry_out_operation};
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, launch, note};
use crate::deployment::LockRequest;
use crate::deployment::backups::{BackupError, newest_backup};
use crate::deployment::etcd::recover::read_survivors;
use crate::deployment::etcd::restore::Restoration;
use crate::deployment::operation::Operation;

#[derive(Debug, Args)]
pub(super) struct RecoverArgs {
    /// Backups of the deployment, in a directory, s3://BUCKET/PREFIX or ssh://USER@ADDRESS/DIRECTORY: show what a restore of the newest would lose
    #[arg(long, value_name = "PLACE")]
    backups: Option<String>,
    /// Only show what is left, and start nothing
    #[arg(long)]
    check: bool,
    /// Start stopped members without asking
    #[arg(short = 'y', long)]
    yes: bool,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long, conflicts_with = "check")]
    break_lock: bool,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    site: SiteArgs,
}

/// The exit code is 2 if the cluster has no leader afterwards.
pub(super) fn run_recover(args: &RecoverArgs) -> Result<ExitCode, CliError> {
    let newest = match &args.backups {
        None => None,
        Some(place) => {
            let store = args.s3.backup_store(place, None)?;
            launch::wait(async || {
                let mut backups = store.list().await?;
                while let Some(newest) = newest_backup(&backups).cloned() {
                    if store.verify_backup(&newest, None).await?.is_ok() {
                        return Ok(Some(newest));
                    }
                    backups.retain(|backup| backup.name != newest.name);
                }
                Ok::<_, BackupError>(None)
            })
            .map_err(anyhow::Error::new)?
        }
    };
    let mut command = args.site.command("etcd recover");
    command.check = args.check;
    let named = shlex::try_join(command.arguments.iter().map(String::as_str)).unwrap_or_default();
    args.site.carry_out(command, &[], async |site, control| {
        let mut may_start = !args.check;
        loop {
            let Some(reply) = read_survivors(site, control).await? else { return Ok(ExitCode::Interrupted) };
            let Some(survivors) = &reply.reported else {
                reply.unreachable.iter().for_each(|(host, why)| note(&format!("unreachable: {host}: {why}")));
                reply.failures.iter().for_each(|why| note(&site.keyring.hidden.hide(why)));
                return Err(anyhow!("no host of etcd answers").into());
            };
            show(&survivors.table(), site)?;
            let startable = survivors.startable();
            // With fewer, starting members elects no leader, and the lock cannot be taken.
            let answering = survivors.hosts.len();
            if may_start && !startable.is_empty() && answering > (answering + survivors.silent.len()) / 2 {
                may_start = false;
                let request = LockRequest {
                    command: "windlass etcd recover".to_owned(),
                    breaks: args.break_lock,
                    abandons: false,
                };
                let consent = if args.yes { Consent::Given } else { Consent::Asked };
                let operation = Operation::RestoreEtcd(Restoration::Recover);
                match carry_out_operation(site, control, operation, &request, consent).await? {
                    ExitCode::Ok => continue,
                    other => return Ok(other),
                }
            }
            if survivors.has_leader() {
                note(&format!("{} has a leader: there is nothing to recover", survivors.cluster));
                return Ok(ExitCode::Ok);
            }
            show(&format!("\n{}", survivors.choices(newest.as_ref(), &named)), site)?;
            return Ok(ExitCode::Failed);
        }
    })
}
