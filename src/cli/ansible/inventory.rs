//! `ansible-inventory`: `windlass inventory` with the options that it has no use for.

use clap::{ArgAction, Args};

use crate::cli::inventory::{self, InventoryArgs};
use crate::cli::{CliError, ExitCode};

#[derive(Debug, Args)]
pub(super) struct InventoryFace {
    #[command(flatten)]
    args: InventoryArgs,
    /// Accepted and ignored: there are no more details
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count)]
    _verbose: u8,
    /// Accepted and ignored: the output has no facts
    #[arg(long = "flush-cache")]
    _flush_cache: bool,
}

/// Prints the requested data.
pub(super) fn run_ansible_inventory(face: &InventoryFace) -> Result<ExitCode, CliError> {
    inventory::print_inventory(&face.args)
}
