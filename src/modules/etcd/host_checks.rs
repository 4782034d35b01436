//! The checks of the gate over what the tasks of the role found on the members' hosts.

use serde::Deserialize;

use super::checks::{CheckState, Finding, Limits, MIB, ok, refusal, unknown};
use super::report::Cluster;

/// Seconds. etcd uses the clock for certificates and log lines.
const CLOCK_WARNING: f64 = 3.0;
const CLOCK_LIMIT: f64 = 60.0;
/// Free space beside twice the database: two segments of the write-ahead log, and some for the snapshot.
const SPACE: u64 = 512;

/// What the tasks of the role found on a member's host.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct HostFigures {
    pub host: String,
    /// Of its data directory, in MiB.
    pub disk_free_mb: Option<u64>,
    /// Until its first certificate ends.
    pub days_left: Option<i64>,
    /// Seconds since 1970.
    pub clock: Option<f64>,
    /// The peer URL that the inventory gives the member.
    pub peer_url: Option<String>,
    /// None: the deployment has no local backups.
    pub local_backup: Option<LocalBackup>,
}

/// The local backups of a host.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct LocalBackup {
    /// Of the newest one.
    pub age_seconds: Option<i64>,
    pub interval_minutes: i64,
    /// Empty: none.
    pub problem: String,
}

pub(super) fn disk(cluster: &Cluster, hosts: &[HostFigures]) -> Finding {
    let largest = cluster.endpoints.iter().filter_map(|e| e.status.as_ref()).map(|status| status.db_size).max();
    let needed = largest.unwrap_or_default() * 2 / MIB + SPACE;
    let free = hosts.iter().filter_map(|host| Some((host.disk_free_mb?, host.host.as_str())));
    let Some((least, name)) = free.min() else { return unknown() };
    let found = format!("{name} has {least} MiB free, needs {needed}");
    match least >= needed {
        true => ok(found),
        false => refusal(found, "free space on the file system of the data directory"),
    }
}

pub(super) fn certificates(hosts: &[HostFigures], limits: Limits) -> Finding {
    let days = hosts.iter().filter_map(|host| Some((host.days_left?, host.host.as_str())));
    let Some((least, name)) = days.min() else { return unknown() };
    let found = format!("{least} days left on {name}");
    match least >= limits.days {
        true => ok(found),
        false => refusal(found, "renew them: run windlass apply"),
    }
}

pub(super) fn clock(hosts: &[HostFigures]) -> Finding {
    let clocks = || hosts.iter().filter_map(|host| host.clock);
    let (least, most) = (clocks().fold(f64::INFINITY, f64::min), clocks().fold(f64::NEG_INFINITY, f64::max));
    if clocks().count() < 2 {
        return unknown();
    }
    let found = format!("{:.1} s between the hosts at most", most - least);
    match most - least {
        apart if apart > CLOCK_LIMIT => refusal(found, "synchronize the clocks (chrony, systemd-timesyncd)"),
        apart if apart > CLOCK_WARNING => {
            (CheckState::Warning, found, "synchronize the clocks (chrony, systemd-timesyncd)")
        }
        _ => ok(found),
    }
}

/// No change needs a local backup, so that it only warns.
pub(super) fn backup(hosts: &[HostFigures]) -> Finding {
    let backups = || hosts.iter().filter_map(|host| Some((host.host.as_str(), host.local_backup.as_ref()?)));
    let Some(interval) = backups().map(|(_, backup)| backup.interval_minutes).max() else {
        return ok("no local backups");
    };
    let problems: Vec<String> = backups()
        .filter(|(_, backup)| !backup.problem.is_empty())
        .map(|(host, backup)| format!("{host}: {}", backup.problem))
        .collect();
    if !problems.is_empty() {
        return (CheckState::Warning, problems.join("; "), "read its log (journalctl -u etcd-backup) on that host");
    }
    match backups().filter_map(|(host, backup)| Some((backup.age_seconds?, host))).max() {
        None => ok(format!("every {interval} min; none yet")),
        Some((oldest, host)) => ok(format!("every {interval} min; the newest of {host} is {} min old", oldest / 60)),
    }
}
