//! `windlass bundle sign`: an SSH key's signature over the manifest.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::super::{CliError, ExitCode, ask, launch, print, surroundings};
use super::failure;
use crate::bundle::{Bundle, signature_text, signed_data};
use crate::connection::SigningKey;

#[derive(Debug, Args)]
pub(super) struct SignArgs {
    /// Directory with a manifest, or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// A private SSH key; or a public one, whose private key the SSH agent has (a key on a device, for example)
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Runs the sub-command.
pub(super) fn sign_bundle(args: &SignArgs) -> Result<ExitCode, CliError> {
    let around = surroundings();
    let mut bundle = Bundle::open_bundle(&args.bundle, around, None).map_err(failure)?;
    let manifest = bundle.to_be_signed().map_err(failure)?.text.clone();
    let data = signed_data(&manifest).map_err(failure)?;
    let agent = around.variable("SSH_AUTH_SOCK").map(PathBuf::from);
    let prompt = format!("Passphrase for {}: ", args.key.display());
    let passphrase = || ask::ask_secret(&prompt).map_err(|error| format!("{error:#}"));
    let signed = launch::wait(async || {
        let mut key = SigningKey::of_key_file(&args.key, agent.as_deref(), passphrase).await?;
        let signature = key.sign_data(&data).await?;
        Ok::<_, String>((key.public_key().clone(), signature))
    });
    let (key, signature) = signed.map_err(|why| anyhow!(why))?;
    let text = signature_text(&key, signature, &manifest).map_err(failure)?;
    let name = bundle.add_signature(&text).map_err(failure)?;
    let files = bundle.manifest().map_err(failure)?.files.len();
    let fingerprint = key.fingerprint(russh::keys::HashAlg::Sha256);
    print(format!(
        "signed {files} files with {} {fingerprint}: {name} in {}\n",
        key.algorithm(),
        args.bundle.display()
    ))?;
    Ok(ExitCode::Ok)
}
