//! `windlass credentials`: certificates and keys that are kept in a Secret, to and from a directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};

use super::{CliError, ExitCode, launch, note, warn};
use crate::credentials::{CredentialFiles, SecretStore, read_files, write_files};
use crate::kubernetes::{Cluster, LIVE, LiveName};

#[derive(Debug, Args)]
pub(super) struct CredentialsArgs {
    #[command(subcommand)]
    command: CredentialsCommand,
}

#[derive(Debug, Subcommand)]
enum CredentialsCommand {
    /// Write the credentials of a deployment to a directory, such as a backup
    Export(ExportArgs),
    /// Keep the credentials of a directory in the Secret of a deployment
    Import(ImportArgs),
    /// Delete the Secret: without a copy, nobody can renew the deployment's certificates any more
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
struct DeploymentArgs {
    /// The deployment: kube:NAMESPACE/NAME or kube:CONTEXT/NAMESPACE/NAME; it need not exist any more
    #[arg(short = 'f', long = "file", value_name = "kube:NAMESPACE/NAME")]
    file: String,
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[command(flatten)]
    deployment: DeploymentArgs,
    /// A directory that is empty or does not exist
    directory: PathBuf,
}

#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    deployment: DeploymentArgs,
    /// A directory as windlass uses it: etcd/ca.crt, karmada/ca.key and so on
    directory: PathBuf,
    /// Replace the credentials that are in the Secret; create the Secret again if it was deleted
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    deployment: DeploymentArgs,
    /// The name of the deployment, as a confirmation
    #[arg(long, value_name = "NAME")]
    name: String,
}

/// Runs the sub-command.
pub(super) fn run_credentials_command(args: &CredentialsArgs) -> Result<ExitCode, CliError> {
    match &args.command {
        CredentialsCommand::Export(args) => {
            launch::wait(async || export(&args.deployment.store()?, &args.directory).await)
        }
        CredentialsCommand::Import(args) => {
            launch::wait(async || import(&args.deployment.store()?, &args.directory, args.replace).await)
        }
        CredentialsCommand::Delete(args) => {
            let name = args.deployment.live()?.name;
            if args.name != name {
                return Err(anyhow!("the deployment's name is {name}, not {}; nothing was deleted", args.name).into());
            }
            launch::wait(async || delete(&args.deployment.store()?).await)
        }
    }
}

impl DeploymentArgs {
    fn live(&self) -> Result<LiveName, CliError> {
        let live = self.file.strip_prefix(LIVE).and_then(LiveName::parse);
        live.ok_or_else(|| {
            let file = &self.file;
            anyhow!(
                "{file} is not an object of an API server\nhint: write kube:NAMESPACE/NAME; the credentials of a file are in \
                 the directory credentials beside it"
            )
            .into()
        })
    }

    fn store(&self) -> Result<SecretStore, CliError> {
        let live = self.live()?;
        let cluster = Cluster { context: live.context.clone(), around: super::surroundings().clone().into() };
        let asked = self.file.strip_prefix(LIVE).unwrap_or_default();
        Ok(SecretStore::of_deployment(cluster, asked, &live, PathBuf::new()))
    }
}

async fn export(store: &SecretStore, directory: &Path) -> Result<ExitCode, CliError> {
    let (secret, files) = store.read_secret().await.map_err(anyhow::Error::msg)?;
    if secret.is_none() {
        return Err(anyhow!("{} does not exist: the deployment has no credentials yet", store.place()).into());
    }
    if let Some(warning) = store.deletion_warning(secret.as_ref()) {
        warn(&warning);
    }
    let filled = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if filled {
        return Err(anyhow!("{} is not empty", directory.display()).into());
    }
    create_private(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    write_files(directory, &files).context("cannot write the credentials")?;
    note(&format!("wrote {} to {}: keep them secret", counted(&files), directory.display()));
    Ok(ExitCode::Ok)
}

/// Makes a directory that only its owner may enter.
fn create_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if directory.is_dir() {
        return std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700));
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

async fn import(store: &SecretStore, directory: &Path, replace: bool) -> Result<ExitCode, CliError> {
    let files = read_files(directory).context("cannot read the credentials")?;
    if files.is_empty() {
        return Err(anyhow!("{} has no files", directory.display()).into());
    }
    let (secret, known) = store.read_secret().await.map_err(anyhow::Error::msg)?;
    let deleted = secret.as_ref().is_some_and(|secret| secret.metadata.deletion_timestamp.is_some());
    if known == files && !deleted {
        note(&format!("{} has these files already", store.place()));
        return Ok(ExitCode::Ok);
    }
    if secret.is_some() && !replace {
        let why = if deleted { "was deleted, and its finalizer keeps it" } else { "has other files" };
        let hint = "export them first, then pass --replace";
        return Err(anyhow!("{} {why}\nhint: {hint}", store.place()).into());
    }
    let failed = |why: String| anyhow!("cannot write {}: {why}", store.place());
    let (secret, known) = match deleted {
        true => {
            store.write(secret.as_ref(), &known, &CredentialFiles::new()).await.map_err(failed)?;
            (None, CredentialFiles::new())
        }
        false => (secret, known),
    };
    store.write(secret.as_ref(), &known, &files).await.map_err(failed)?;
    note(&format!("{} has {} now", store.place(), counted(&files)));
    Ok(ExitCode::Ok)
}

async fn delete(store: &SecretStore) -> Result<ExitCode, CliError> {
    let (secret, known) = store.read_secret().await.map_err(anyhow::Error::msg)?;
    if secret.is_none() {
        note(&format!("{} does not exist", store.place()));
        return Ok(ExitCode::Ok);
    }
    let failed = |why: String| anyhow!("cannot delete {}: {why}", store.place());
    store.write(secret.as_ref(), &known, &CredentialFiles::new()).await.map_err(failed)?;
    note(&format!("deleted {} with {}", store.place(), counted(&known)));
    Ok(ExitCode::Ok)
}

fn counted(files: &CredentialFiles) -> String {
    match files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}
