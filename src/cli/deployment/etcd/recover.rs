//! `windlass etcd recover`: for a cluster without a majority. Starts members; restores nothing on its own.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use crate::cli::deployment::operation::{Consent, carry_out_operation};
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note, working_directory};
use crate::deployment::etcd::recover::read_survivors;
use crate::deployment::etcd::restore::Restoration;
use crate::deployment::operation::Operation;
use crate::deployment::{LockRequest, backups};

#[derive(Debug, Args)]
pub(super) struct RecoverArgs {
    /// Directory with backups of the deployment: show what a restore of the newest would lose
    #[arg(long, value_name = "DIR")]
    backups: Option<PathBuf>,
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
    site: SiteArgs,
}

/// The exit code is 2 if the cluster has no leader afterwards.
pub(super) fn run_recover(args: &RecoverArgs) -> Result<ExitCode, CliError> {
    let newest = match &args.backups {
        None => None,
        Some(directory) => {
            let directory = working_directory()?.join(directory);
            let all =
                backups::list_backups(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
            all.into_iter().find(|backup| backups::verify(&backup.path).is_ok())
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
