//! `windlass etcd backup`.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;

use super::documented::{DocumentedBackup, read_documented_backups};
use super::keys::RecipientArgs;
use super::retention::RetentionArgs;
use super::store::{S3Args, S3WriteArgs, scratch_directory};
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note, say};
use crate::deployment::backups::{BackupResult, BackupStore, BackupStores};
use crate::deployment::etcd::backup::{self, BackupRequest};
use crate::deployment::{Control, Site};

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Where to keep it: a directory of this deployment's backups on this machine, ssh://USER@ADDRESS/DIRECTORY (on a host that ssh reaches
    /// with a key), or s3://BUCKET/PREFIX (with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3 in the
    /// environment); may be given several times. Default: those of the EtcdBackups in the file of -f
    #[arg(value_name = "PLACE", required_unless_present = "file")]
    places: Vec<String>,
    /// Take only this EtcdBackup of the file; may be given several times
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with = "places")]
    only: Vec<String>,
    #[command(flatten)]
    retention: RetentionArgs,
    /// Copy the newest local backup of the members' hosts instead of taking a snapshot; needs no member that runs
    #[arg(long)]
    local: bool,
    /// Restore the snapshot into a separate etcd on its host first, and compare the data; otherwise there is no backup
    #[arg(long, conflicts_with = "local")]
    rehearse: bool,
    #[command(flatten)]
    recipients: RecipientArgs,
    /// Keep the deployment's credentials in the backup, too: its authorities, keys and the encryption key of its Secrets; needs --recipient
    #[arg(long)]
    credentials: bool,
    #[command(flatten)]
    s3: S3Args,
    #[command(flatten)]
    write: S3WriteArgs,
    #[command(flatten)]
    site: SiteArgs,
}

/// Takes a snapshot and keeps it. The exit code is 1 if there is no backup; if it is complete, 2 if something else failed, also in one of
/// several places, 4 if a host did not answer.
pub(super) fn run_backup(args: &BackupArgs) -> Result<ExitCode, CliError> {
    if args.places.is_empty() && (args.s3.is_given() || args.write.is_given()) {
        let hint = "hint: an EtcdBackup says it: storage.s3.virtualHost and storage.s3.encryption";
        return Err(anyhow!("--s3-virtual-host and --s3-encryption need a place on the command line\n{hint}").into());
    }
    let stores: Result<Vec<BackupStore>, CliError> =
        args.places.iter().map(|place| args.s3.backup_store(place, Some(&args.write))).collect();
    let stores = BackupStores { stores: stores?, scratch: scratch_directory()? };
    let recipients = args.recipients.recipients()?;
    let mut command = args.retention.of_command(args.site.command("etcd backup"));
    if args.local {
        command.arguments.push("--local".to_owned());
    }
    command.arguments.extend(args.places.iter().cloned());
    command = args.only.iter().fold(command, |command, name| command.option("--only", Some(name)));
    args.site.carry_out(command, &[], async |site, control| {
        let request = BackupRequest {
            stores: &stores,
            retention: args.retention.retention(),
            is_local: args.local,
            recipients: &recipients,
            has_credentials: args.credentials,
            rehearses: args.rehearse,
        };
        match args.site.file.as_ref().filter(|_| args.places.is_empty()) {
            Some(file) => take_documented(args, file, request, site, control).await,
            None => take(request, site, control).await,
        }
    })
}

async fn take(request: BackupRequest<'_>, site: &Site, control: &Control) -> Result<ExitCode, CliError> {
    let Some(made) = backup::take_backup(site, request, control).await? else {
        return Ok(ExitCode::Interrupted);
    };
    let text: String = made.copies.iter().map(describe).collect();
    show(&text, site)?;
    for failure in made.failures.iter().chain(&made.silent) {
        note(&site.keyring.hidden.hide(&format!("error: the backup is complete, but {failure}")));
    }
    Ok(match (made.failures.is_empty(), made.silent.is_empty()) {
        (true, true) => ExitCode::Ok,
        (true, false) => ExitCode::Unreachable,
        (false, _) => ExitCode::Failed,
    })
}

/// Takes a backup for each `EtcdBackup` of the file, one after the other. If one cannot be taken, the others still are, and the exit code is 2.
async fn take_documented(
    args: &BackupArgs,
    file: &Path,
    request: BackupRequest<'_>,
    site: &Site,
    control: &Control,
) -> Result<ExitCode, CliError> {
    let documents = read_documented_backups(file, &args.only, site).await?;
    let (mut is_taken, mut codes) = (false, Vec::new());
    for (name, document) in documents {
        match take_document(document, request, site, control).await {
            Ok(ExitCode::Interrupted) => return Ok(ExitCode::Interrupted),
            Ok(code) => {
                is_taken = true;
                codes.push(code);
            }
            // What is wrong with the inventory is wrong for all of them.
            Err(error @ CliError::Written(_)) if !is_taken => return Err(error),
            Err(error) => {
                let error = match error {
                    CliError::Other(error) => CliError::Other(error.context(format!("EtcdBackup {name}"))),
                    error => error,
                };
                say(&error.masked(&site.keyring.hidden));
                codes.push(ExitCode::Failed);
            }
        }
    }
    let worst = [ExitCode::Failed, ExitCode::Unreachable].into_iter().find(|code| codes.contains(code));
    Ok(if is_taken { worst.unwrap_or(ExitCode::Ok) } else { ExitCode::Error })
}

async fn take_document(
    document: Result<DocumentedBackup, anyhow::Error>,
    request: BackupRequest<'_>,
    site: &Site,
    control: &Control,
) -> Result<ExitCode, CliError> {
    let DocumentedBackup { store, recipients, retention, rehearses } = document?;
    let stores = BackupStores { stores: vec![store], scratch: request.stores.scratch.clone() };
    let rehearses = request.rehearses || rehearses && !request.is_local;
    take(BackupRequest { stores: &stores, retention, recipients: &recipients, rehearses, ..request }, site, control)
        .await
}

fn describe(made: &BackupResult) -> String {
    let it = &made.manifest;
    let from = if it.is_leader { "the leader" } else { "the follower" };
    let mut text = format!(
        "{}{}\n  from {from} {}, etcd {}, revision {}, {} keys, {} ({} compressed)\n  verified: digest{}\n",
        made.backup.path.display(),
        if made.was_there { " (copied before)" } else { "" },
        it.member,
        it.etcd_version,
        it.revision,
        it.keys,
        mebibytes(it.size),
        mebibytes(it.compressed_size),
        match it.compared {
            0 | 1 => "; no other member could be compared".to_owned(),
            members => format!(", and the hashes of {members} members at this revision"),
        },
    );
    if let Some(rehearsal) = &it.rehearsal {
        let compared = if rehearsal.compared {
            "with the hash of the members"
        } else {
            "but not compared: the member had compacted"
        };
        let (keys, seconds) = (rehearsal.live_keys, rehearsal.seconds);
        text.push_str(&format!("  restored: {keys} keys, in {seconds} s, {compared}\n"));
    }
    if let Some(encryption) = &it.encryption {
        text.push_str(&format!("  encrypted: {encryption}\n"));
    }
    if let Some(credentials) = &it.credentials {
        text.push_str(&format!("  with {} files of credentials\n", credentials.files));
    }
    for name in &made.removed {
        text.push_str(&format!("  removed {name}\n"));
    }
    if let Some(why) = &made.kept {
        text.push_str(&format!("  removed nothing: {why}\n"));
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "one decimal place is enough")]
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
