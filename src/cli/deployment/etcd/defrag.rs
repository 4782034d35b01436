//! `windlass etcd defrag`: gives unused space of the databases back.

use anyhow::anyhow;
use clap::Args;

use super::SkipArgs;
use crate::cli::deployment::operation::{self, OperationArgs, SavedArgs};
use crate::cli::{CliError, ExitCode};
use crate::deployment::etcd::defrag::Defragmentation;
use crate::deployment::operation::Operation;

#[derive(Debug, Args)]
pub(super) struct DefragArgs {
    /// Remove the history of the keys first (compaction)
    #[arg(long, conflicts_with = "plan")]
    compact: bool,
    /// Leave a member alone if less than this part of its database is unused, in percent (default: 45)
    #[arg(long, value_name = "N", conflicts_with = "plan", value_parser = clap::value_parser!(u8).range(0..=100))]
    unused_percent: Option<u8>,
    /// Leave a member alone if less than this is unused, in MiB (default: 100)
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    unused_mb: Option<u32>,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    saved: SavedArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

pub(super) fn run_defrag(args: &DefragArgs) -> Result<ExitCode, CliError> {
    if args.saved.has_plan() && !args.skip.skip.is_empty() {
        return Err(anyhow!("--skip-check is a part of the plan: give it with --check --out FILE").into());
    }
    let request = Operation::DefragmentEtcd(Defragmentation {
        compacts: args.compact,
        unused_percent: args.unused_percent,
        unused_mb: args.unused_mb,
        skip: args.skip.skip.clone(),
    });
    operation::run_or_save(&args.operation, &args.saved, request)
}
