//! `windlass bundle image`: windlass and bundles as an image.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::super::{CliError, ExitCode, print, settings, surroundings};
use super::failure;
use crate::bundle::Bundle;
use crate::launch;
use crate::upstream::OwnImage;

#[derive(Debug, Args)]
pub(super) struct ImageArgs {
    /// Put this bundle into the image; deployments name it NAME
    #[arg(value_name = "NAME=BUNDLE", value_parser = named_bundle)]
    bundles: Vec<(String, PathBuf)>,
    /// Write the image to this file, an OCI archive
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Name of the image [default: windlass:VERSION]
    #[arg(long, value_name = "IMAGE")]
    name: Option<String>,
    /// A static windlass; repeat it for an image for several architectures [default: this program]
    #[arg(long, value_name = "PROGRAM")]
    program: Vec<PathBuf>,
    /// A static busybox, whose shell windlass uses; repeat it for several architectures
    #[arg(long, value_name = "PROGRAM", default_value = "/bin/busybox")]
    busybox: Vec<PathBuf>,
}

fn named_bundle(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=BUNDLE, such as karmada=karmada-1.18.2.tar.zst")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(format!(
            "the name {name:?} has other characters than letters, digits, dots, dashes and underscores"
        ));
    }
    Ok((name.to_owned(), path.into()))
}

/// Writes the image.
pub(super) fn write_image(args: &ImageArgs) -> Result<ExitCode, CliError> {
    let names: std::collections::BTreeSet<_> = args.bundles.iter().map(|(name, _)| name).collect();
    if names.len() < args.bundles.len() {
        return Err(anyhow::anyhow!("two bundles have the same name").into());
    }
    let required = launch::options::signers(&settings()?)?;
    let open = |(name, path): &(String, PathBuf)| {
        let bundle = Bundle::open_bundle(path, surroundings(), required.as_ref())?;
        Ok((name.clone(), bundle))
    };
    let bundles: Vec<(String, Bundle)> = args.bundles.iter().map(open).collect::<Result<_, _>>().map_err(failure)?;
    let programs = match args.program.as_slice() {
        [] => vec![std::env::current_exe().context("cannot find this program")?],
        named => named.to_vec(),
    };
    let version = env!("CARGO_PKG_VERSION");
    let name = args.name.clone().unwrap_or_else(|| format!("windlass:{version}"));
    let image = OwnImage { name: &name, version, programs: &programs, shells: &args.busybox, bundles: &bundles };
    let architectures = image.write_image(&args.to).map_err(failure)?.join(" and ");
    print(format!("{}: {name} for {architectures}\n", args.to.display()))?;
    Ok(ExitCode::Ok)
}
