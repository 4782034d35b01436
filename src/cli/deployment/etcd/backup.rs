//! `windlass etcd backup` and `windlass etcd backups`.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;

use crate::cli::deployment::status::Format;
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note, print, working_directory};
use crate::deployment::backups::{self, Backup, Manifest};
use crate::deployment::etcd::backup;
use crate::deployment::lock;
use crate::report::one_line;

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Directory for the backups of this deployment, on this machine
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How many backups to keep; older ones are removed after the new one is complete (default: all)
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Copy the newest local backup of the members' hosts instead of taking a snapshot; needs no member that runs
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    site: SiteArgs,
}

#[derive(Debug, Args)]
pub(super) struct BackupsArgs {
    /// Directory with the backups of a deployment
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
}

/// Takes a snapshot and keeps it. The exit code is 1 if there is no backup; if it is complete, 2 if something else failed, 4 if a host did
/// not answer.
pub(super) fn run_backup(args: &BackupArgs) -> Result<ExitCode, CliError> {
    let directory = working_directory()?.join(&args.directory);
    let mut command = args.site.command("etcd backup").option("--keep", args.keep);
    if args.local {
        command.arguments.push("--local".to_owned());
    }
    command.arguments.push(args.directory.display().to_string());
    args.site.carry_out(command, &[], async |site, control| {
        let Some(made) = backup::take_backup(site, &directory, args.keep, args.local, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
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
        for name in &made.removed {
            text.push_str(&format!("  removed {name}\n"));
        }
        if let Some(why) = &made.kept {
            text.push_str(&format!("  removed nothing: {why}\n"));
        }
        show(&text, site)?;
        for failure in made.failures.iter().chain(&made.silent) {
            note(&site.keyring.hidden.hide(&format!("error: the backup is complete, but {failure}")));
        }
        Ok(match (made.failures.is_empty(), made.silent.is_empty()) {
            (true, true) => ExitCode::Ok,
            (true, false) => ExitCode::Unreachable,
            (false, _) => ExitCode::Failed,
        })
    })
}

/// Lists backups, and reads each of them in full. The exit code is 2 if one is damaged, 1 if there is none.
pub(super) fn print_backups(args: &BackupsArgs) -> Result<ExitCode, CliError> {
    let directory = working_directory()?.join(&args.directory);
    let all = backups::list_backups(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let rows: Vec<Row> = all.into_iter().map(Row::of).collect();
    if rows.is_empty() {
        return Err(anyhow!("there is no backup in {}", directory.display()).into());
    }
    match args.format {
        Format::Json => print(format!("{:#}\n", json!(rows.iter().map(Row::json).collect::<Vec<_>>())).as_bytes())?,
        Format::Table => print(table(&rows).as_bytes())?,
    }
    Ok(if rows.iter().all(|row| row.verified.is_ok()) { ExitCode::Ok } else { ExitCode::Failed })
}

struct Row {
    backup: Backup,
    verified: Result<Manifest, String>,
}

impl Row {
    fn of(backup: Backup) -> Row {
        Row { verified: backups::verify(&backup.path), backup }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.backup.name,
            "verified": self.verified.is_ok(),
            "problem": self.verified.as_ref().err(),
            "manifest": self.backup.manifest.as_ref().ok(),
        })
    }
}

fn table(rows: &[Row]) -> String {
    let mut text =
        format!("{:<32} {:<12} {:>12} {:>12} {:<8} {}\n", "NAME", "AGE", "SIZE", "REVISION", "ETCD", "VERIFIED");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for row in rows {
        let [age, size, revision, version] = match &row.backup.manifest {
            Ok(it) => [
                match now.checked_sub(std::time::Duration::from_secs(it.taken)) {
                    Some(age) => lock::duration_text(age),
                    None => "from the future".to_owned(),
                },
                mebibytes(it.size),
                it.revision.to_string(),
                one_line(&it.etcd_version).into_owned(),
            ],
            Err(_) => ["?", "?", "?", "?"].map(str::to_owned),
        };
        let verified = match &row.verified {
            Ok(_) => "yes".to_owned(),
            Err(why) => format!("no: {}", one_line(why)),
        };
        let name = one_line(&row.backup.name);
        text.push_str(&format!("{name:<32} {age:<12} {size:>12} {revision:>12} {version:<8} {verified}\n"));
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "one decimal place is enough")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
