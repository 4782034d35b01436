//! `windlass etcd remove-member` and `windlass etcd replace-member`.

use clap::Args;

use super::SkipArgs;
use crate::cli::deployment::operation::{self, OperationArgs};
use crate::cli::{CliError, ExitCode};
use crate::deployment::operation::Operation;

#[derive(Debug, Args)]
pub(super) struct RemoveMemberArgs {
    /// Names of the members, as `windlass status` shows them, or their ids in hexadecimal
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Remove a healthy member even if an even number of members stays
    #[arg(long)]
    allow_even: bool,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReplaceMemberArgs {
    /// Names of the members that are dead or lost their data
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

pub(super) fn remove_member(args: &RemoveMemberArgs) -> Result<ExitCode, CliError> {
    let request =
        Operation::RemoveEtcdMembers { names: args.names.clone(), even: args.allow_even, skip: args.skip.skip.clone() };
    operation::run_operation(&args.operation, request)
}

pub(super) fn replace_member(args: &ReplaceMemberArgs) -> Result<ExitCode, CliError> {
    let request = Operation::ReplaceEtcdMembers { names: args.names.clone(), skip: args.skip.skip.clone() };
    operation::run_operation(&args.operation, request)
}
