//! `windlass man`: the manual pages, from the same texts as `--help`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::{Cli, CliError, ExitCode};

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write one page per sub-command into this directory, windlass.1, windlass-doc.1 and so on
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

/// Prints the page of the program, or writes all pages.
pub(super) fn write_man_pages(args: &ManArgs) -> Result<ExitCode, CliError> {
    let mut command = Cli::command();
    command.build();
    match &args.dir {
        Some(directory) => {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
            write_pages(&command, directory)?;
        }
        None => {
            let page = page(&command)?;
            super::print(page)?;
        }
    }
    Ok(ExitCode::Ok)
}

fn write_pages(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let path = directory.join(format!("{}.1", page_name(command)));
    std::fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set()) {
        write_pages(inner, directory)?;
    }
    Ok(())
}

/// `windlass-vault-encrypt`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let name = page_name(command);
    let mut page = Vec::new();
    let source = format!("windlass {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).title(name.to_uppercase()).source(source).manual("Windlass").render(&mut page)?;
    Ok(page)
}
