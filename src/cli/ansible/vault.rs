//! `ansible-vault`: `windlass vault` with the option that it has no use for.

use clap::{ArgAction, Args};

use crate::cli::vault::{self, VaultArgs};
use crate::cli::{CliError, ExitCode};

#[derive(Debug, Args)]
pub(super) struct VaultFace {
    #[command(flatten)]
    args: VaultArgs,
    /// Accepted and ignored: there are no more details
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count, global = true)]
    _verbose: u8,
}

/// Runs the sub-command.
pub(super) fn run_ansible_vault(face: &VaultFace) -> Result<ExitCode, CliError> {
    vault::run_vault_command(&face.args)
}
