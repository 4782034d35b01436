//! `windlass bundle`: makes, checks and shows what hosts are given to run.

mod create;
mod diff;
mod image;
mod sbom;
mod sign;
mod verify;
mod vulnerabilities;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{CliError, ExitCode, settings, surroundings};
use crate::bundle::{Bundle, Item};
use crate::launch;

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Create a bundle from upstream releases (a recipe), or from the programs in a directory
    Create(Box<create::Create>),
    /// Sign the manifest of a bundle with an SSH key
    Sign(sign::SignArgs),
    /// Compare every file with the manifest, and check who signed it
    Verify(verify::VerifyArgs),
    /// List the content of a bundle
    Show(Named),
    /// Compare two bundles; exit code 0: the same, 1: they differ, 2: one cannot be read
    Diff(diff::DiffArgs),
    /// Print a bill of materials: programs, the modules they were built from, packages
    Sbom(sbom::SbomArgs),
    /// List known vulnerabilities of the modules of Go programs; exit code 0: none counts, 1: some do, 2: something cannot be read
    Vulnerabilities(vulnerabilities::VulnerabilitiesArgs),
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
        BundleCommand::Sign(sign) => sign::sign_bundle(sign),
        BundleCommand::Verify(args) => verify::verify_bundle(args),
        BundleCommand::Diff(args) => diff::diff_bundles(args),
        BundleCommand::Show(named) => show(&named.bundle),
        BundleCommand::Vulnerabilities(args) => vulnerabilities::list_vulnerabilities(args),
        BundleCommand::Sbom(args) => sbom::print_sbom(args),
        BundleCommand::Image(image) => image::write_image(image),
    }
}

fn show(path: &Path) -> Result<ExitCode, CliError> {
    let manifest = open_to_look(path)?.manifest().map_err(failure)?;
    super::print(table(&manifest.files))?;
    Ok(ExitCode::Ok)
}

/// Opens a bundle that nobody may have signed. The programs of a directory without a manifest are run, to ask for their versions: not
/// where bundles must be signed.
fn open_to_look(path: &Path) -> Result<Bundle, CliError> {
    let bundle = Bundle::open_bundle(path, surroundings(), None).map_err(failure)?;
    if bundle.seal().is_none() && launch::options::signers(&settings()?)?.is_some() {
        let path = path.display();
        return Err(anyhow::anyhow!(
            "{path} has no manifest.yaml, so windlass would run its programs to ask for their versions, and bundle_signers \
             demands a signature; create the manifest elsewhere with windlass bundle create --from {path}"
        )
        .into());
    }
    Ok(bundle)
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
            1 => format!("sha256:{}", sha256.get(..12).unwrap_or(sha256)),
            count => format!("{count} files"),
        };
        let size = size.div_ceil(1 << 10);
        format!("{component:32} {version:16} {architecture:8} {size:>8} KiB  {last}\n")
    });
    lines.collect()
}

/// Exit codes as those of diff: 0 nothing was found, 1 something was, 2 it could not be compared. `nothing`: whether nothing was found.
fn exit_as_diff(nothing: Result<bool, CliError>) -> ExitCode {
    match nothing {
        Ok(true) => ExitCode::Ok,
        Ok(false) => ExitCode::Error,
        Err(error) => {
            super::say(&error);
            ExitCode::Usage
        }
    }
}

fn failure(error: crate::bundle::Error) -> CliError {
    let hint = error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    anyhow::anyhow!("{}{hint}", error.message).into()
}
