//! `windlass etcd backups`: what is there, whether it can be used, and whether it is recent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::backup::mebibytes;
use super::keys::IdentityArgs;
use super::store::{S3Args, scratch_directory};
use crate::cli::{CliError, ExitCode, launch, note, print};
use crate::deployment::backups::{Backup, BackupError, Decryption, Manifest};
use crate::deployment::lock;
use crate::report::one_line;

#[derive(Debug, Args)]
pub(super) struct BackupsArgs {
    /// The backups of a deployment: a directory, s3://BUCKET/PREFIX, or ssh://USER@ADDRESS/DIRECTORY
    #[arg(value_name = "PLACE")]
    place: String,
    /// Exit with 2 if the newest good backup is older, such as 90m, 26h or 7d, or if there is none
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    max_age: Option<Duration>,
    /// Output format; prometheus is that of node_exporter's textfile collector
    #[arg(short = 'o', long, value_enum, default_value_t = BackupsFormat::Table, value_name = "FORMAT")]
    format: BackupsFormat,
    #[command(flatten)]
    identities: IdentityArgs,
    #[command(flatten)]
    s3: S3Args,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackupsFormat {
    Table,
    Json,
    Prometheus,
}

/// Lists backups, and reads each of them in full. The exit code is 1 if there is none, 2 if one is damaged, or if the newest good one is too
/// old.
pub(super) fn print_backups(args: &BackupsArgs) -> Result<ExitCode, CliError> {
    let store = args.s3.backup_store(&args.place, None)?;
    let identities = args.identities.identities()?;
    let decryption = match identities.is_empty() {
        true => None,
        false => Some(Decryption { identities, scratch: scratch_directory()? }),
    };
    let rows = launch::wait(async || {
        let mut rows = Vec::new();
        for backup in store.list().await? {
            let verified = store.verify_backup(&backup, decryption.as_ref()).await?;
            rows.push(Row { backup, verified });
        }
        Ok::<_, BackupError>(rows)
    });
    let rows = rows.map_err(anyhow::Error::new)?;
    let place = store.place().display().to_string();
    if args.format == BackupsFormat::Prometheus {
        print(metrics(&place, &rows).as_bytes())?;
    }
    if rows.is_empty() {
        return Err(anyhow!("there is no backup in {place}").into());
    }
    match args.format {
        BackupsFormat::Json => {
            print(format!("{:#}\n", json!(rows.iter().map(Row::json).collect::<Vec<_>>())).as_bytes())?;
        }
        BackupsFormat::Table => print(table(&rows, decryption.is_some()).as_bytes())?,
        BackupsFormat::Prometheus => {}
    }
    let is_old = args.max_age.and_then(|limit| too_old(&rows, limit));
    if let Some(why) = &is_old {
        note(&format!("error: {why}"));
    }
    let is_good = rows.iter().all(|row| row.verified.is_ok()) && is_old.is_none();
    Ok(if is_good { ExitCode::Ok } else { ExitCode::Failed })
}

/// `26h`: a whole number with s, m, h or d.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || "it must be a whole number with s, m, h or d, such as 26h".to_owned();
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

fn age(manifest: &Manifest) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(Duration::from_secs(manifest.taken))
}

fn good(rows: &[Row]) -> impl Iterator<Item = &Manifest> {
    rows.iter().filter_map(|row| row.verified.as_ref().ok())
}

/// The good backups that are not from the future: a clock was wrong when these were taken.
fn dated(rows: &[Row]) -> impl Iterator<Item = &Manifest> {
    good(rows).filter(|manifest| !manifest.is_from_future())
}

/// Why the newest good backup is not recent.
fn too_old(rows: &[Row], limit: Duration) -> Option<String> {
    let newest = dated(rows).map(|manifest| age(manifest).unwrap_or_default()).min();
    match newest {
        None if good(rows).next().is_some() => {
            Some("all good backups are from the future: check the clocks".to_owned())
        }
        None => Some("no backup is good".to_owned()),
        Some(age) if age > limit => {
            let (age, limit) = (lock::duration_text(age), lock::duration_text(limit));
            Some(format!("the newest good backup is {age} old, which is more than {limit}"))
        }
        Some(_) => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPlace {
    place: String,
    deployment: String,
    cluster: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    place: String,
    verified: &'static str,
}

/// The figures of all backups in a place, as Prometheus reads them.
fn metrics(place: &str, rows: &[Row]) -> String {
    let (newest, sizes, counts) =
        (Family::<OfPlace, Gauge>::default(), Family::<OfPlace, Gauge>::default(), Family::<OfState, Gauge>::default());
    let mut registry = Registry::with_prefix("windlass_backup");
    let help = "When the newest good backup was taken, in seconds since 1970";
    registry.register("last_success_seconds", help, newest.clone());
    registry.register("size_bytes", "Size of the snapshot in the newest good backup", sizes.clone());
    registry.register("count", "Number of backups, by whether they are what was written", counts.clone());
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(it) = dated(rows).max_by_key(|manifest| manifest.taken) {
        let of = OfPlace { place: place.to_owned(), deployment: it.deployment.clone(), cluster: it.cluster.clone() };
        newest.get_or_create(&of).set(number(it.taken));
        sizes.get_or_create(&of).set(number(it.size));
    }
    for (verified, count) in [("yes", good(rows).count()), ("no", rows.len() - good(rows).count())] {
        let of = OfState { place: place.to_owned(), verified };
        counts.get_or_create(&of).set(number(count as u64));
    }
    let mut text = String::new();
    encode(&mut text, &registry).expect("a String takes any text");
    text
}

struct Row {
    backup: Backup,
    verified: Result<Manifest, String>,
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.backup.name,
            "verified": self.verified.is_ok(),
            "problem": self.verified.as_ref().err(),
            "manifest": self.backup.manifest.as_ref().ok(),
        })
    }
}

fn table(rows: &[Row], is_decrypted: bool) -> String {
    let mut text =
        format!("{:<32} {:<12} {:>12} {:>12} {:<8} {}\n", "NAME", "AGE", "SIZE", "REVISION", "ETCD", "VERIFIED");
    for row in rows {
        let [age, size, revision, version] = match &row.backup.manifest {
            Ok(it) => [
                age(it).map_or_else(|| "from the future".to_owned(), lock::duration_text),
                mebibytes(it.size),
                it.revision.to_string(),
                one_line(&it.etcd_version).into_owned(),
            ],
            Err(_) => ["?", "?", "?", "?"].map(str::to_owned),
        };
        let verified = match &row.verified {
            Ok(manifest) if manifest.encryption.is_some() && is_decrypted => "yes, decrypted".to_owned(),
            Ok(manifest) if manifest.encryption.is_some() => "yes, encrypted".to_owned(),
            Ok(_) => "yes".to_owned(),
            Err(why) => format!("no: {}", one_line(why)),
        };
        let name = one_line(&row.backup.name);
        text.push_str(&format!("{name:<32} {age:<12} {size:>12} {revision:>12} {version:<8} {verified}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(taken: u64, is_good: bool) -> Row {
        let manifest: Manifest = serde_json::from_value(json!({
            "layout": 1, "deployment": "prod", "cluster": "e\"tcd", "cluster_id": "7", "member": "h1", "is_leader": false,
            "members": ["h1"], "compared": 1, "etcd_version": "3.5.16", "windlass_version": "0.1.0", "taken": taken,
            "revision": 5, "keys": 9, "size": 40, "sha256": "ab", "compressed_size": 20, "compressed_sha256": "cd",
        }))
        .unwrap();
        let backup = Backup { name: "b".into(), path: "/b".into(), manifest: Ok(manifest.clone()) };
        Row { backup, verified: if is_good { Ok(manifest) } else { Err("damaged".into()) } }
    }

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        assert_eq!(parse_age("26h"), Ok(Duration::from_secs(26 * 3600)));
        assert_eq!(parse_age("7d"), Ok(Duration::from_secs(7 * 86400)));
        for wrong in ["", "h", "26", "1.5h", "-1h", "26 h", "26H", "1w", "99999999999999999999d", "1é"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_newest_good_backup_must_be_recent() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let hour = Duration::from_secs(3600);
        assert_eq!(too_old(&[row(now - 60, true), row(now - 90_000, true)], hour), None);
        assert_eq!(too_old(&[row(now + 500, true)], hour), None);
        let future = too_old(&[row(now + 90_000, true)], hour).unwrap();
        assert_eq!(future, "all good backups are from the future: check the clocks");
        assert!(too_old(&[row(now + 90_000, true), row(now - 90_000, true)], hour).unwrap().contains("is 25 h old"));
        let why = too_old(&[row(now - 60, false), row(now - 90_000, true)], hour).unwrap();
        assert!(why.starts_with("the newest good backup is ") && why.contains("which is more than "), "{why}");
        assert_eq!(too_old(&[row(now, false)], hour).unwrap(), "no backup is good");
    }

    #[test]
    fn figures_are_of_the_newest_good_backup() {
        let text = metrics("/srv/b", &[row(300, false), row(200, true), row(100, true)]);
        let labels = r#"{place="/srv/b",deployment="prod",cluster="e\"tcd"}"#;
        assert!(text.contains(&format!("windlass_backup_last_success_seconds{labels} 200\n")), "{text}");
        assert!(text.contains(&format!("windlass_backup_size_bytes{labels} 40\n")), "{text}");
        assert!(text.contains("windlass_backup_count{place=\"/srv/b\",verified=\"yes\"} 2\n"), "{text}");
        assert!(text.contains("windlass_backup_count{place=\"/srv/b\",verified=\"no\"} 1\n"), "{text}");
        let none = metrics("/srv/b", &[]);
        assert!(none.contains("verified=\"yes\"} 0\n") && !none.contains("deployment"), "{none}");
    }
}
