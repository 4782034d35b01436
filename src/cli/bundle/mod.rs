//! `windlass bundle`: makes, checks and shows what hosts are given to run.

mod create;
mod image;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{CliError, ExitCode, note};
use crate::bundle::{Bundle, Item};

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Create a bundle from upstream releases (a recipe), or from the programs in a directory
    Create(Box<create::Create>),
    /// Compare every file with the manifest
    Verify(Named),
    /// List the content of a bundle
    Show(Named),
    /// Write a container image of windlass with bundles in it, for an operator in a cluster
    Image(image::ImageArgs),
}

#[derive(Debug, Args)]
struct Named {
    /// Directory or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
}

/// Runs the sub-command.
pub(super) fn run_bundle_command(args: &BundleArgs) -> Result<ExitCode, CliError> {
    match &args.command {
        BundleCommand::Create(create) => create::create_bundle(create),
        BundleCommand::Verify(named) => verify(&named.bundle),
        BundleCommand::Show(named) => show(&named.bundle),
        BundleCommand::Image(image) => image::write_image(image),
    }
}

fn verify(path: &Path) -> Result<ExitCode, CliError> {
    let bundle = Bundle::open_bundle(path, crate::cli::surroundings()).map_err(failure)?;
    let problems = bundle.verify().map_err(failure)?;
    for problem in &problems {
        note(&problem.message);
    }
    let files = bundle.manifest().map_err(failure)?.files.len();
    if problems.is_empty() {
        super::print(format!("all {files} files match the manifest\n"))?;
        return Ok(ExitCode::Ok);
    }
    Err(anyhow::anyhow!("{} of {files} files do not match the manifest", problems.len()).into())
}

fn show(path: &Path) -> Result<ExitCode, CliError> {
    let manifest =
        Bundle::open_bundle(path, crate::cli::surroundings()).and_then(|bundle| bundle.manifest()).map_err(failure)?;
    super::print(table(&manifest.files))?;
    Ok(ExitCode::Ok)
}

/// One line for each program; one for all files of a component and version that are no programs.
fn table(files: &[Item]) -> String {
    let mut rows: Vec<([String; 3], u64, usize, &str)> = Vec::new();
    for item in files {
        let key = [item.component.clone(), item.version.clone(), item.architecture.clone()];
        let is_one_of_many = matches!(item.component.as_str(), "crds" | "packages");
        match rows.iter_mut().find(|(known, ..)| is_one_of_many && *known == key) {
            Some((_, size, count, _)) => (*size, *count) = (*size + item.size, *count + 1),
            None => rows.push((key, item.size, 1, &item.sha256)),
        }
    }
    rows.sort();
    let lines = rows.iter().map(|([component, version, architecture], size, count, sha256)| {
        let last = match count {
            1 => format!("sha256:{}", &sha256[..sha256.len().min(12)]),
            count => format!("{count} files"),
        };
        let size = size.div_ceil(1 << 10);
        format!("{component:32} {version:16} {architecture:8} {size:>8} KiB  {last}\n")
    });
    lines.collect()
}

fn failure(error: crate::bundle::Error) -> CliError {
    let hint = error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    anyhow::anyhow!("{}{hint}", error.message).into()
}
