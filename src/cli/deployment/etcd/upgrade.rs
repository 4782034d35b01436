//! `windlass etcd upgrade` and `windlass etcd downgrade`.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::SkipArgs;
use crate::cli::deployment::operation::{self, OperationArgs, SavedArgs};
use crate::cli::{CliError, ExitCode};
use crate::deployment::operation::{Direction, Operation};

#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Bundle with etcd, etcdctl and etcdutl of the other version (default: the one that the deployment names)
    #[arg(long, value_name = "BUNDLE", conflicts_with = "plan")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    saved: SavedArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

pub(super) fn change_version(args: &VersionArgs, direction: Direction) -> Result<ExitCode, CliError> {
    if args.saved.has_plan() && !args.skip.skip.is_empty() {
        return Err(anyhow!("--skip-check is a part of the plan: give it with --check --out FILE").into());
    }
    let bundle = operation::find_bundle(args.bundle.as_deref())?;
    let request = Operation::ChangeEtcdVersion { direction, bundle, skip: args.skip.skip.clone() };
    operation::run_or_save(&args.operation, &args.saved, request)
}
