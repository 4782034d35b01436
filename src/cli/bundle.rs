//! `windlass bundle`: makes, checks and shows what hosts are given to run.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};

use super::{ExitCode, Failure, note, warn};
use crate::bundle::{Bundle, Item, MANIFEST, is_archive, pack, scan};
use crate::value::Surroundings;

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Read the programs in a directory and write a manifest, or an archive with all of it
    Create(Create),
    /// Compare every file with the manifest
    Verify(Named),
    /// List the content of a bundle
    Show(Named),
}

#[derive(Debug, Args)]
struct Create {
    /// Directory with programs, resource definitions (in crds/) and packages
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Write this archive (.tar.zst) instead of a manifest into DIR
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Named {
    /// Directory or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
}

/// Runs the sub-command.
pub(super) fn run(args: &BundleArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        BundleCommand::Create(create) => make(create),
        BundleCommand::Verify(named) => verify(&named.bundle),
        BundleCommand::Show(named) => show(&named.bundle),
    }
}

fn make(create: &Create) -> Result<ExitCode, Failure> {
    let Create { from, to } = create;
    if let Some(to) = to.as_deref().filter(|to| !is_archive(to)) {
        return Err(anyhow::anyhow!("{} does not end with .tar.zst", to.display()).into());
    }
    let scanned = scan(from).map_err(failure)?;
    if scanned.manifest.files.is_empty() {
        return Err(anyhow::anyhow!("no programs found in {}", from.display()).into());
    }
    for file in scanned.left_out {
        // The archive itself may be written into the directory.
        if to.as_deref().is_none_or(|to| !to.ends_with(&file)) {
            warn(&format!("skipped {file}: not a program, resource definition or package"));
        }
    }
    let written = match to {
        Some(to) => {
            pack(from, &scanned.manifest, to).map_err(failure)?;
            to.clone()
        }
        None => {
            let path = from.join(MANIFEST);
            std::fs::write(&path, scanned.manifest.to_yaml())
                .with_context(|| format!("cannot write {}", path.display()))?;
            path
        }
    };
    super::print(table(&scanned.manifest.files))?;
    note(&format!("wrote {}", written.display()));
    Ok(ExitCode::Ok)
}

fn verify(path: &Path) -> Result<ExitCode, Failure> {
    let bundle = Bundle::open(path, &Surroundings::of_process()).map_err(failure)?;
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

fn show(path: &Path) -> Result<ExitCode, Failure> {
    let manifest =
        Bundle::open(path, &Surroundings::of_process()).and_then(|bundle| bundle.manifest()).map_err(failure)?;
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

fn failure(error: crate::bundle::Error) -> Failure {
    let hint = error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    anyhow::anyhow!("{}{hint}", error.message).into()
}
