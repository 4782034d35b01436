//! `windlass etcd credentials`: gets the credentials of a deployment out of a backup.

use std::path::PathBuf;

use clap::Args;

use super::keys::IdentityArgs;
use super::store::{S3Args, scratch_directory};
use crate::cli::{CliError, ExitCode, launch, print, working_directory};
use crate::deployment::backups::unpack_credentials;

#[derive(Debug, Args)]
pub(super) struct CredentialsArgs {
    /// The backup, taken with --credentials: a directory that windlass etcd backup made, s3://BUCKET/PREFIX/NAME, or
    /// ssh://USER@ADDRESS/DIRECTORY/NAME
    #[arg(value_name = "BACKUP")]
    backup: String,
    /// Where to write the files: a directory that does not exist, or is empty, such as credentials beside the inventory
    #[arg(value_name = "DIRECTORY")]
    to: PathBuf,
    #[command(flatten)]
    identities: IdentityArgs,
    #[command(flatten)]
    s3: S3Args,
}

/// Writes the credentials, and prints the path of each file.
pub(super) fn write_credentials(args: &CredentialsArgs) -> Result<ExitCode, CliError> {
    let here = working_directory()?;
    let identities = args.identities.identities()?;
    let source = args.s3.backup_source(&args.backup, &here)?;
    let scratch = scratch_directory()?;
    let backup = launch::wait(async || source.fetch_backup(&scratch).await).map_err(anyhow::Error::new)?;
    let to = here.join(&args.to);
    let paths = unpack_credentials(&backup.path, &to, &identities).map_err(|error| backup.with_address(error));
    let paths = paths.map_err(anyhow::Error::new)?;
    let text: String = paths.iter().map(|path| format!("{}\n", to.join(path).display())).collect();
    print(text.as_bytes())?;
    Ok(ExitCode::Ok)
}
