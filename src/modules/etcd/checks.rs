//! The checks of the gate: what must hold before a cluster is changed. Each has a name by which it can be skipped, a figure, and
//! what to do if it does not hold.

use std::collections::BTreeSet;

use super::gateway::Member;
use super::host_checks::{self, HostFigures};
use super::report::{Cluster, Endpoint};
use crate::value::Value;

/// The names of the checks, in the order in which they are shown.
pub(super) const NAMES: [&str; 16] = [
    "reachable",
    "answers",
    "members",
    "leader",
    "learners",
    "alarms",
    "lag",
    "versions",
    "read",
    "write",
    "database",
    "fsync",
    "disk",
    "certificates",
    "clock",
    "backup",
];

/// A member that is behind the leader by more log entries than this is not in step.
const MOST_BEHIND: u64 = 1000;
/// The part of its quota that a database may fill.
const FULLEST: f64 = 0.8;
/// etcd's own advice for the disk, in milliseconds.
const FAST_FSYNC: f64 = 10.0;
pub(super) const MIB: u64 = 1 << 20;
/// What may be set by the role's variables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub fsync_ms: f64,
    pub days: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckState {
    Ok,
    Warning,
    Refused,
    Skipped,
    /// Nothing could be read.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EtcdCheck {
    pub name: &'static str,
    pub state: CheckState,
    /// The figure.
    pub found: String,
    /// What to do. Empty: nothing.
    pub hint: String,
}

impl EtcdCheck {
    /// `lag: h3 is 1200 entries behind the leader; wait until ...`
    pub(super) fn sentence(&self) -> String {
        format!("{}: {}; {}", self.name, self.found, self.hint)
    }

    pub(super) fn check_value(&self) -> Value {
        let state = match self.state {
            CheckState::Ok => "ok",
            CheckState::Warning => "warning",
            CheckState::Refused => "refused",
            CheckState::Skipped => "skipped",
            CheckState::Unknown => "unknown",
        };
        Value::from_pairs([
            ("check", Value::from(self.name)),
            ("state", Value::from(state)),
            ("found", Value::from(self.found.as_str())),
            ("hint", Value::from(self.hint.as_str())),
        ])
    }
}

/// All checks, over what the members and the hosts said.
pub(super) fn run_checks(cluster: &Cluster, hosts: &[HostFigures], limits: Limits) -> Vec<EtcdCheck> {
    let mut checks = Vec::new();
    let mut add =
        |name, (state, found, hint): Finding| checks.push(EtcdCheck { name, state, found, hint: hint.to_owned() });
    add("reachable", reachable(cluster));
    add("answers", refused_questions(cluster));
    add("members", members(cluster, hosts));
    add("leader", leader(cluster));
    add("learners", learners(cluster));
    add("alarms", alarms(cluster));
    add("lag", lag(cluster));
    add("versions", versions(cluster));
    add("read", answers(cluster, "a linearizable read", |endpoint| endpoint.linearizable));
    add("write", answers(cluster, "a write", |endpoint| endpoint.writable));
    add("database", database(cluster));
    add("fsync", fsync(cluster, limits));
    add("disk", host_checks::disk(cluster, hosts));
    add("certificates", host_checks::certificates(hosts, limits));
    add("clock", host_checks::clock(hosts));
    add("backup", host_checks::backup(hosts));
    checks
}

pub(super) type Finding = (CheckState, String, &'static str);

pub(super) fn ok(found: impl Into<String>) -> Finding {
    (CheckState::Ok, found.into(), "")
}

pub(super) fn refusal(found: impl Into<String>, hint: &'static str) -> Finding {
    (CheckState::Refused, found.into(), hint)
}

pub(super) fn unknown() -> Finding {
    (CheckState::Unknown, "not read".to_owned(), "")
}

/// The endpoint at which a member answered.
fn of<'c>(cluster: &'c Cluster, member: &Member) -> Option<&'c Endpoint> {
    let answers = |endpoint: &&Endpoint| endpoint.member_id() == Some(member.id) && endpoint.error.is_none();
    cluster.endpoints.iter().find(answers)
}

fn called(cluster: &Cluster, endpoint: &Endpoint) -> String {
    endpoint.member_id().map_or_else(|| endpoint.endpoint.clone(), |id| cluster.member_name(id))
}

fn reachable(cluster: &Cluster) -> Finding {
    let all = cluster.members.len();
    let silent: Vec<String> = cluster
        .members
        .iter()
        .filter(|member| of(cluster, member).is_none())
        .map(|m| cluster.member_name(m.id))
        .collect();
    if all == 0 {
        return refusal("no member answers", "start etcd on a majority of the hosts");
    }
    if silent.is_empty() {
        return ok(format!("{all} of {all} members answer"));
    }
    refusal(
        format!("{} of {all} members answer; not: {}", all - silent.len(), silent.join(", ")),
        "start the members that are down; replace one that does not come back: windlass etcd replace-member NAME",
    )
}

/// A member that refuses a question, or reports an error of its own, is not well: what it does not say must not count as good.
fn refused_questions(cluster: &Cluster) -> Finding {
    let mut answering = 0;
    let mut problems = Vec::new();
    for endpoint in cluster.endpoints.iter().filter(|endpoint| endpoint.error.is_none()) {
        answering += 1;
        let errors = endpoint.status.as_ref().map_or(&[][..], |status| &status.errors);
        let all: Vec<&str> = endpoint.problems.iter().chain(errors).map(String::as_str).collect();
        if !all.is_empty() {
            problems.push(format!("{} {}", called(cluster, endpoint), all.join(", ")));
        }
    }
    match (answering, problems.is_empty()) {
        (0, _) => unknown(),
        (_, true) => ok(format!("{answering} members answer every question")),
        _ => refusal(problems.join("; "), "read the member's log (journalctl -u etcd) and the other refusals here"),
    }
}

fn members(cluster: &Cluster, hosts: &[HostFigures]) -> Finding {
    let lists: BTreeSet<&Vec<Member>> =
        cluster.endpoints.iter().filter_map(|endpoint| endpoint.members.as_ref()).collect();
    let ids: BTreeSet<u64> =
        cluster.endpoints.iter().filter_map(|e| e.status.as_ref()).map(|status| status.header.cluster_id).collect();
    if ids.len() > 1 {
        return refusal(
            format!("the members belong to {} clusters", ids.len()),
            "keep the members of one cluster only in the group",
        );
    }
    if lists.len() > 1 {
        return refusal(
            format!("the members have {} different lists of members", lists.len()),
            "wait until all members have applied the last change; a member that was cut off needs its network back",
        );
    }
    if lists.is_empty() {
        return unknown();
    }
    let registered: Vec<&String> = cluster.members.iter().flat_map(|member| &member.peer_urls).collect();
    let elsewhere: Vec<String> = hosts
        .iter()
        .filter_map(|host| host.peer_url.as_ref().map(|url| (host, url)))
        .filter(|(_, url)| !registered.iter().any(|known| known.trim_end_matches('/') == url.trim_end_matches('/')))
        .map(|(host, url)| format!("{} ({url})", host.host))
        .collect();
    if !elsewhere.is_empty() {
        return refusal(
            format!("not registered at the address of the inventory: {}", elsewhere.join(", ")),
            "a new host joins with playbooks/etcd.yml or windlass apply; for a changed address see roles/etcd/README.md",
        );
    }
    ok(format!("{} members, one list", cluster.members.len()))
}

fn leader(cluster: &Cluster) -> Finding {
    let statuses = || cluster.endpoints.iter().filter_map(|endpoint| endpoint.status.as_ref());
    let leaders: BTreeSet<u64> = statuses().map(|status| status.leader).collect();
    let terms: BTreeSet<u64> = statuses().map(|status| status.raft_term).collect();
    match (leaders.len(), cluster.leader) {
        (1, Some(leader)) if terms.len() == 1 => {
            ok(format!("{}, term {}", cluster.member_name(leader), terms.first().copied().unwrap_or_default()))
        }
        (_, None) => refusal("no leader", "start enough members for a majority"),
        _ => refusal(
            format!("{} leaders, {} terms", leaders.len(), terms.len()),
            "an election is running or a member is cut off: wait, then check the network between the members",
        ),
    }
}

fn learners(cluster: &Cluster) -> Finding {
    if cluster.members.is_empty() {
        return unknown();
    }
    let left = cluster.members.iter().filter(|member| member.is_learner || member.name.is_empty());
    let names: Vec<String> = left.map(|member| cluster.member_name(member.id)).collect();
    if names.is_empty() {
        return ok("none");
    }
    refusal(
        names.join(", "),
        "run playbooks/etcd.yml or windlass apply again: it completes the join; or give it up: windlass etcd remove-member NAME",
    )
}

fn alarms(cluster: &Cluster) -> Finding {
    if cluster.endpoints.iter().all(|endpoint| endpoint.status.is_none()) {
        return unknown();
    }
    let alarms: Vec<String> = cluster
        .alarms
        .iter()
        .map(|alarm| format!("{} on {}", alarm.alarm, cluster.member_name(alarm.member)))
        .collect();
    if alarms.is_empty() {
        return ok("none");
    }
    refusal(
        alarms.join(", "),
        "NOSPACE: raise etcd_quota_backend_bytes and run windlass apply, which clears the alarm; CORRUPT: find the member that \
         differs with windlass etcd verify",
    )
}

fn lag(cluster: &Cluster) -> Finding {
    let statuses = || cluster.endpoints.iter().filter_map(|endpoint| Some((endpoint, endpoint.status.as_ref()?)));
    let Some(newest) = statuses().map(|(_, status)| status.raft_index).max() else { return unknown() };
    let behind = statuses()
        .map(|(endpoint, status)| (newest.saturating_sub(status.raft_applied_index), called(cluster, endpoint)));
    let Some((most, name)) = behind.max() else { return unknown() };
    match most {
        ..=MOST_BEHIND => ok(format!("{most} entries at most")),
        _ => refusal(
            format!("{name} is {most} entries behind, the limit is {MOST_BEHIND}"),
            "wait until it has caught up; if it does not, its disk or network is too slow",
        ),
    }
}

fn versions(cluster: &Cluster) -> Finding {
    let all: BTreeSet<&str> =
        cluster.endpoints.iter().map(|e| e.version.as_str()).filter(|version| !version.is_empty()).collect();
    let minor =
        |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap_or_default();
    let minors: BTreeSet<u32> = all.iter().map(|version| minor(version)).collect();
    let text = all.into_iter().collect::<Vec<_>>().join(", ");
    match (minors.first(), minors.last()) {
        (None, _) | (_, None) => unknown(),
        (Some(low), Some(high)) if high - low > 1 => {
            refusal(text, "members may differ by one minor version: complete the upgrade")
        }
        (Some(low), Some(high)) if low != high => (
            CheckState::Warning,
            text,
            "a change of the version is not complete: run windlass etcd upgrade or downgrade again",
        ),
        _ => match cluster.endpoints.iter().find_map(|endpoint| endpoint.downgrade_target()) {
            Some(target) => (
                CheckState::Warning,
                format!("{text}, downgrade to {target} enabled"),
                "complete the downgrade (windlass etcd downgrade), or take it back (windlass etcd upgrade)",
            ),
            None => ok(text),
        },
    }
}

fn answers(cluster: &Cluster, what: &str, answer: impl Fn(&Endpoint) -> Option<bool>) -> Finding {
    let is_learner = |endpoint: &Endpoint| endpoint.status.as_ref().is_some_and(|status| status.is_learner);
    let asked: Vec<(&Endpoint, bool)> = cluster
        .endpoints
        .iter()
        .filter(|endpoint| !is_learner(endpoint))
        .filter_map(|endpoint| Some((endpoint, answer(endpoint)?)))
        .collect();
    let bad: Vec<String> = asked.iter().filter(|(_, good)| !good).map(|(e, _)| called(cluster, e)).collect();
    if asked.is_empty() {
        return unknown();
    }
    if bad.is_empty() {
        return ok(format!("{} members do {what}", asked.len()));
    }
    refusal(
        format!("{what} fails on {}", bad.join(", ")),
        "read the member's log (journalctl -u etcd) and the other refusals here",
    )
}

fn database(cluster: &Cluster) -> Finding {
    if let Some(finding) = without_metrics(cluster) {
        return finding;
    }
    let sizes = cluster.endpoints.iter().filter_map(|endpoint| {
        let (status, quota) = (endpoint.status.as_ref()?, endpoint.metrics.as_ref()?.quota?);
        #[expect(clippy::cast_precision_loss, reason = "a part in a hundred is enough")]
        Some((status.db_size as f64 / quota, status.db_size, called(cluster, endpoint)))
    });
    let Some((part, size, name)) = sizes.max_by(|one, other| one.0.total_cmp(&other.0)) else { return unknown() };
    let found = format!("{name} {} MiB, {:.0} % of its quota", size / MIB, part * 100.0);
    match part < FULLEST {
        true => ok(found),
        false => refusal(found, "run windlass etcd defrag --compact, or raise etcd_quota_backend_bytes"),
    }
}

/// Whether a member that answers gives no metrics: its figures may be the worst ones.
fn without_metrics(cluster: &Cluster) -> Option<Finding> {
    let answering = || cluster.endpoints.iter().filter(|endpoint| endpoint.error.is_none());
    let silent: Vec<String> = answering().filter(|e| e.metrics.is_none()).map(|e| called(cluster, e)).collect();
    match (answering().count(), silent.is_empty()) {
        (0, _) => Some(unknown()),
        (_, true) => None,
        _ => Some((CheckState::Unknown, format!("no metrics from {}", silent.join(", ")), "")),
    }
}

fn fsync(cluster: &Cluster, limits: Limits) -> Finding {
    if let Some(finding) = without_metrics(cluster) {
        return finding;
    }
    let figures = cluster
        .endpoints
        .iter()
        .filter_map(|endpoint| Some((endpoint.metrics.as_ref()?.fsync_p99?, called(cluster, endpoint))));
    let Some((most, name)) = figures.max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return ok("fewer than 100 writes since the members started");
    };
    let found = format!("{name} {most:.0} ms (99th percentile)");
    if most > limits.fsync_ms {
        refusal(found, "the disk is too slow for etcd: move the data to a faster one, or raise etcd_fsync_limit_ms")
    } else if most > FAST_FSYNC {
        (CheckState::Warning, found, "etcd advises less than 10 ms")
    } else {
        ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gateway::{Alarm, DowngradeInfo, Header, Metrics, Status};
    use super::super::host_checks::LocalBackup;
    use super::*;

    const LIMITS: Limits = Limits { fsync_ms: 1000.0, days: 7 };

    fn member(id: u64) -> Member {
        Member { id, name: format!("h{id}"), peer_urls: vec![format!("https://h{id}:2380")], ..Member::default() }
    }

    fn endpoint(id: u64) -> Endpoint {
        let header = Header { cluster_id: 7, member_id: id };
        let status = Status {
            header,
            leader: 1,
            raft_term: 2,
            raft_index: 100,
            raft_applied_index: 100,
            db_size: MIB,
            ..Status::default()
        };
        Endpoint {
            endpoint: format!("https://h{id}:2379"),
            reachable: true,
            version: "3.5.16".into(),
            status: Some(status),
            members: Some(vec![member(1), member(2), member(3)]),
            linearizable: Some(true),
            writable: Some(true),
            metrics: Some(Metrics { quota: Some(100.0 * 1_048_576.0), fsync_p99: Some(8.0) }),
            ..Endpoint::default()
        }
    }

    fn hosts() -> Vec<HostFigures> {
        let host = |id: u64| HostFigures {
            host: format!("h{id}"),
            disk_free_mb: Some(2000),
            days_left: Some(100),
            clock: Some(1000.0),
            peer_url: Some(format!("https://h{id}:2380")),
            local_backup: Some(LocalBackup { age_seconds: Some(70), interval_minutes: 5, problem: String::new() }),
        };
        vec![host(1), host(2), host(3)]
    }

    #[test]
    fn what_a_member_does_not_say_never_counts_as_good() {
        let refused = |change: fn(&mut Endpoint)| fails(|all, _| change(&mut all[1]));
        assert_eq!(refused(|it| it.problems.push("does not list the alarms: 500".into())), ["answers Refused"]);
        assert_eq!(
            refused(|it| it.status.as_mut().unwrap().errors.push("etcdserver: no leader".into())),
            ["answers Refused"]
        );
        assert_eq!(refused(|it| it.metrics = None), ["database Unknown", "fsync Unknown"]);
        let silent = |all: &mut Vec<Endpoint>, _: &mut Vec<HostFigures>| {
            *all = vec![Endpoint { error: Some("refused".into()), ..Endpoint::new("https://h1:2379") }];
        };
        let found = fails(silent);
        for check in ["members", "learners", "alarms", "answers", "database", "fsync"] {
            assert!(found.contains(&format!("{check} Unknown")), "{check}: {found:?}");
        }
    }

    /// The checks that do not pass, after a change.
    fn fails(change: impl FnOnce(&mut Vec<Endpoint>, &mut Vec<HostFigures>)) -> Vec<String> {
        let (mut endpoints, mut hosts) = (vec![endpoint(1), endpoint(2), endpoint(3)], hosts());
        change(&mut endpoints, &mut hosts);
        let checks = run_checks(&Cluster::from_endpoints(endpoints), &hosts, LIMITS);
        assert_eq!(checks.len(), NAMES.len());
        checks
            .iter()
            .filter(|check| check.state != CheckState::Ok)
            .map(|check| format!("{} {:?}", check.name, check.state))
            .collect()
    }

    fn status(endpoints: &mut [Endpoint], at: usize) -> &mut Status {
        endpoints[at].status.as_mut().unwrap()
    }

    #[test]
    fn every_check_has_a_fault_that_it_finds() {
        assert_eq!(fails(|_, _| ()), Vec::<String>::new());
        assert_eq!(fails(|all, _| drop(all.pop())), ["reachable Refused"]);
        assert_eq!(fails(|all, _| drop(all[1].members.as_mut().unwrap().pop())), ["members Refused"]);
        assert_eq!(fails(|_, hosts| hosts[0].peer_url = Some("https://h9:2380".into())), ["members Refused"]);
        assert_eq!(fails(|all, _| status(all, 1).raft_term = 1), ["leader Refused"]);
        let downgrading = |all: &mut Vec<Endpoint>| {
            status(all, 2).downgrade_info = DowngradeInfo { enabled: true, target_version: "3.5.0".into() };
        };
        assert_eq!(fails(|all, _| downgrading(all)), ["versions Warning"]);
        assert_eq!(
            fails(|all, _| all.iter_mut().for_each(|e| e.status.as_mut().unwrap().leader = 0)),
            ["leader Refused"]
        );
        let learner = |all: &mut Vec<Endpoint>| {
            all.iter_mut().for_each(|endpoint| endpoint.members.as_mut().unwrap()[2].is_learner = true);
            status(all, 2).is_learner = true;
            all[2].linearizable = Some(false);
        };
        assert_eq!(fails(|all, _| learner(all)), ["learners Refused"]);
        assert_eq!(
            fails(|all, _| all[0].alarms.push(Alarm { member: 2, alarm: "NOSPACE".into() })),
            ["alarms Refused"]
        );
        assert_eq!(fails(|all, _| status(all, 0).raft_index = 1101), ["lag Refused"]);
        assert_eq!(fails(|all, _| all[0].version = "3.7.2".into()), ["versions Refused"]);
        assert_eq!(fails(|all, _| all[0].version = "3.6.2".into()), ["versions Warning"]);
        assert_eq!(fails(|all, _| all[2].linearizable = Some(false)), ["read Refused"]);
        assert_eq!(fails(|all, _| all[2].writable = Some(false)), ["write Refused"]);
        assert_eq!(fails(|all, _| status(all, 0).db_size = 81 * MIB), ["database Refused"]);
        let fsync = |ms| {
            move |all: &mut Vec<Endpoint>, _: &mut Vec<HostFigures>| {
                all[0].metrics.as_mut().unwrap().fsync_p99 = Some(ms)
            }
        };
        assert_eq!(fails(fsync(16.0)), ["fsync Warning"]);
        assert_eq!(fails(fsync(2000.0)), ["fsync Refused"]);
        assert_eq!(fails(|_, hosts| hosts[1].disk_free_mb = Some(513)), ["disk Refused"]);
        assert_eq!(fails(|_, hosts| hosts[1].days_left = Some(6)), ["certificates Refused"]);
        assert_eq!(fails(|_, hosts| hosts[1].clock = Some(1004.0)), ["clock Warning"]);
        assert_eq!(fails(|_, hosts| hosts[1].clock = Some(900.0)), ["clock Refused"]);
        let failed = |hosts: &mut Vec<HostFigures>| hosts[1].local_backup.as_mut().unwrap().problem = "failed".into();
        assert_eq!(fails(|_, hosts| failed(hosts)), ["backup Warning"]);
        assert_eq!(fails(|_, hosts| hosts.iter_mut().for_each(|host| host.local_backup = None)), Vec::<String>::new());
    }

    #[test]
    fn a_refusal_names_the_check_the_figure_and_what_to_do() {
        let checks = run_checks(&Cluster::from_endpoints(vec![endpoint(1), endpoint(2)]), &hosts(), LIMITS);
        let refused = checks.iter().find(|check| check.state == CheckState::Refused).unwrap().sentence();
        assert!(refused.starts_with("reachable: 2 of 3 members answer; not: h3; start the members"), "{refused}");
    }
}
