//! `ansible-inventory`: `windlass inventory` with the options that it has no use for.

use clap::{ArgAction, Args};

use crate::cli::inventory::{self, InventoryArgs};
use crate::cli::{ExitCode, Failure};

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

/// Prints what was asked for.
pub(super) fn run(face: &InventoryFace) -> Result<ExitCode, Failure> {
    inventory::run(&face.args)
}
