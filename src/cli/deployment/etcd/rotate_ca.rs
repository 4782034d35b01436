//! `windlass etcd rotate-ca`: replaces the cluster's certificate authority by one with another key.

use clap::Args;

use super::SkipArgs;
use crate::cli::deployment::operation::{self, OperationArgs};
use crate::cli::{CliError, ExitCode};
use crate::deployment::operation::Operation;

#[derive(Debug, Args)]
pub(super) struct RotateCaArgs {
    /// Stop before the last phase: the earlier CA stays trusted, until clients that windlass does not install have new certificates.
    /// Run it again without this option to complete it
    #[arg(long)]
    keep_trust: bool,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

pub(super) fn rotate_ca(args: &RotateCaArgs) -> Result<ExitCode, CliError> {
    let request = Operation::RotateEtcdCa { keeps_trust: args.keep_trust, skip: args.skip.skip.clone() };
    operation::run_operation(&args.operation, request)
}
