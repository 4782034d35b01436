//! `windlass playbooks`: the playbooks and roles that the program carries.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};

use super::{CliError, ExitCode, carried, note};

#[derive(Debug, Args)]
pub(crate) struct PlaybooksArgs {
    #[command(subcommand)]
    command: PlaybooksCommand,
}

#[derive(Debug, Subcommand)]
enum PlaybooksCommand {
    /// Write the playbooks and roles of windlass to a directory, to read or to change them
    Export {
        /// A new or empty directory; use its playbooks with --playbooks DIR/playbooks
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Runs the sub-command.
pub(crate) fn write_playbooks(args: &PlaybooksArgs) -> Result<ExitCode, CliError> {
    let PlaybooksCommand::Export { directory } = &args.command;
    let carried = carried::get().ok_or_else(|| anyhow!("this build contains no playbooks"))?;
    let export = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        carried.export(directory)
    };
    export().with_context(|| format!("cannot write the playbooks to {}", directory.display()))?;
    note(&format!("use them with --playbooks {}", directory.join("playbooks").display()));
    Ok(ExitCode::Ok)
}
