//! `windlass kubeconfig`: the admin's kubeconfig of a deployment, printed or merged into the user's own.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::{CliError, ExitCode, files, note, print};
use crate::deployment::kubeconfig::{self, Request};

#[derive(Debug, Args)]
pub(super) struct KubeconfigArgs {
    /// The KarmadaDeployment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// Merge it into your own kubeconfig (KUBECONFIG, or else ~/.kube/config), under the deployment's name
    #[arg(long)]
    merge: bool,
}

/// Prints or merges.
pub(super) fn write_kubeconfig(args: &KubeconfigArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let own = match args.merge {
        true => Some(kubeconfig::own_path(&settings.surroundings).context("neither KUBECONFIG nor HOME is set")?),
        false => None,
    };
    let found = kubeconfig::read_admin_kubeconfig(&Request {
        file: &args.file,
        settings: &settings,
        merge_into: own.as_deref(),
    })?;
    let Some(own) = own else {
        print(found.text)?;
        return Ok(ExitCode::Ok);
    };
    if let Some(directory) = own.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    files::write_file(&own, found.text.as_bytes())?;
    let name = &found.context;
    note(&format!("added the context {name} to {}: kubectl --context {name} get clusters", own.display()));
    Ok(ExitCode::Ok)
}
