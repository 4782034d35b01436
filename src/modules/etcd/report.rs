//! From what each endpoint said to one picture of the cluster, and what speaks against its health.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::gateway::{Alarm, Member, Metrics, Status};
use crate::modules::Outcome;
use crate::value::Value;

/// etcd's alarm of a database that has reached its quota.
const FULL: &str = "NOSPACE";

/// What one endpoint said.
#[derive(Debug, Default)]
pub(super) struct Endpoint {
    /// As written, or as the member registered it.
    pub endpoint: String,
    /// Not named by the task: the address of a member that none of the named endpoints belongs to.
    pub registered: bool,
    pub reachable: bool,
    /// Why it gave no answer, or none any more.
    pub error: Option<String>,
    /// One end rejected the other's certificate.
    pub certificate_error: bool,
    /// Something is there, also if it ended the connection: a server that rejects a certificate may be seen so.
    pub answered: bool,
    pub version: String,
    pub cluster_version: String,
    pub status: Option<Status>,
    /// Sorted by id.
    pub members: Option<Vec<Member>>,
    pub alarms: Vec<Alarm>,
    /// None: not asked.
    pub linearizable: Option<bool>,
    pub writable: Option<bool>,
    /// None: not asked, or refused.
    pub metrics: Option<Metrics>,
    /// What it refused: `gives no linearizable read: etcdserver: request timed out`
    pub problems: Vec<String>,
    /// The test read and the test write that it refused, in the same words.
    pub failed_tests: Vec<String>,
}

impl Endpoint {
    pub(super) fn new(endpoint: &str) -> Self {
        Endpoint { endpoint: endpoint.to_owned(), ..Endpoint::default() }
    }

    /// Leaves out that a member is out of space.
    pub(super) fn leave_out_full(&mut self) {
        self.alarms.retain(|alarm| alarm.alarm != FULL);
        if let Some(status) = &mut self.status {
            // etcd prints its alarms there: `memberID:1 alarm:NOSPACE`.
            status.errors.retain(|error| !error.contains(FULL));
        }
    }

    /// The member that answered here.
    pub(super) fn member_id(&self) -> Option<u64> {
        self.status.as_ref().map(|status| status.header.member_id)
    }

    /// The version to which a downgrade of the cluster was enabled: `3.5.0`
    pub(super) fn downgrade_target(&self) -> Option<&str> {
        let target = self.status.as_ref().map(|status| status.downgrade_info.target_version.as_str());
        target.filter(|target| !target.is_empty())
    }

    fn has_leader(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.leader != 0)
    }

    /// Whether both take part in one cluster.
    fn is_with(&self, other: &Endpoint) -> bool {
        let (Some(own), Some(others)) = (&self.status, &other.status) else { return false };
        own.header.cluster_id == others.header.cluster_id
            && ((own.leader != 0 && own.leader == others.leader)
                || (self.members.is_some() && self.members == other.members))
    }

    /// Whether a member of this cluster answers here, knows the leader, and refused nothing that it was asked.
    fn is_well(&self, cluster_id: Option<u64>) -> bool {
        self.error.is_none()
            && self.problems.is_empty()
            && self.failed_tests.is_empty()
            && self.status.as_ref().is_some_and(|s| s.leader != 0 && Some(s.header.cluster_id) == cluster_id)
    }

    fn value(&self) -> Value {
        let status = self.status.clone().unwrap_or_default();
        let known = self.status.is_some();
        let number = |number: u64| if known { Value::from(number) } else { Value::from(()) };
        let mut pairs: IndexMap<&str, Value> = IndexMap::from([
            ("endpoint", Value::from(self.endpoint.as_str())),
            ("reachable", Value::from(self.reachable)),
            ("error", self.error.as_deref().map_or_else(|| Value::from(()), Value::from)),
            ("certificate_error", Value::from(self.certificate_error)),
            ("answered", Value::from(self.answered)),
            ("version", Value::from(self.version.as_str())),
            ("member_id", if known { Value::from(member_id_hex(status.header.member_id)) } else { Value::from("") }),
            ("db_size", number(status.db_size)),
            ("db_size_in_use", number(status.db_size_in_use)),
            ("leader", Value::from(if status.leader == 0 { String::new() } else { member_id_hex(status.leader) })),
            ("is_leader", Value::from(known && status.leader == status.header.member_id)),
            ("raft_term", number(status.raft_term)),
            ("raft_index", number(status.raft_index)),
            ("raft_applied_index", number(status.raft_applied_index)),
            ("is_learner", Value::from(status.is_learner)),
            ("storage_version", Value::from(status.storage_version.as_str())),
            ("downgrade_target", Value::from(status.downgrade_info.target_version.as_str())),
            (
                "errors",
                status.errors.iter().chain(&self.problems).chain(&self.failed_tests).map(String::as_str).collect(),
            ),
        ]);
        if let Some(linearizable) = self.linearizable {
            pairs.insert("linearizable", Value::from(linearizable));
        }
        if let Some(writable) = self.writable {
            pairs.insert("writable", Value::from(writable));
        }
        Value::from_pairs(pairs)
    }
}

/// The whole picture.
pub(super) struct Cluster {
    pub endpoints: Vec<Endpoint>,
    pub members: Vec<Member>,
    pub alarms: BTreeSet<Alarm>,
    pub leader: Option<u64>,
    /// The cluster that the picture is of.
    cluster_id: Option<u64>,
    /// The endpoints of each cluster that has a leader. More than one cluster: a member was restored or formed on its own.
    pub clusters_with_leader: Vec<Vec<String>>,
    /// What speaks against its health.
    pub reasons: Vec<String>,
    /// What speaks against members that no named endpoint belongs to.
    pub absent: Vec<String>,
}

/// The endpoints by the cluster that they take part in, the largest first. One that stands alone (it was restored or formed on its own, or
/// started with force-new-cluster, which keeps the id of the cluster) has another leader and lists other members. While a leader or
/// the list changes, only one of these differs between the members.
fn clusters_of(endpoints: &[Endpoint]) -> Vec<Vec<&Endpoint>> {
    let mut clusters: Vec<Vec<&Endpoint>> = Vec::new();
    for endpoint in endpoints {
        let (mut own, others): (Vec<_>, Vec<_>) =
            clusters.into_iter().partition(|cluster| cluster.iter().any(|other| other.is_with(endpoint)));
        clusters = others;
        own.push(vec![endpoint]);
        clusters.push(own.into_iter().flatten().collect());
    }
    let newest_term = |cluster: &[&Endpoint]| cluster.iter().filter_map(|e| Some(e.status.as_ref()?.raft_term)).max();
    // A cluster of one raises its term with every restart: terms decide only between equals.
    clusters.sort_by_key(|cluster| Reverse((cluster.iter().filter(|e| e.has_leader()).count(), newest_term(cluster))));
    clusters
}

/// Of the endpoints that have what is wanted, the one whose term is the newest: those cut off know what was.
fn newest<'a>(endpoints: &[&'a Endpoint], is_wanted: impl Fn(&Endpoint) -> bool) -> Option<&'a Endpoint> {
    endpoints
        .iter()
        .copied()
        .filter(|endpoint| is_wanted(endpoint))
        .max_by_key(|endpoint| endpoint.status.as_ref().map(|s| (s.raft_term, s.raft_applied_index)))
}

/// For every member, of every list, that none of these endpoints belongs to: the client addresses that it registered and that were not
/// asked yet.
pub(super) fn addresses_not_asked(endpoints: &[Endpoint]) -> Vec<Vec<String>> {
    let asked = |url: &String| {
        endpoints.iter().any(|endpoint| endpoint.endpoint.trim_end_matches('/') == url.trim_end_matches('/'))
    };
    let answered = |id: u64| endpoints.iter().any(|endpoint| endpoint.member_id() == Some(id));
    let members = endpoints.iter().filter_map(|endpoint| endpoint.members.as_ref()).flatten();
    let silent: BTreeMap<u64, &Member> =
        members.filter(|member| !answered(member.id)).map(|member| (member.id, member)).collect();
    silent.into_values().map(|member| member.client_urls.iter().filter(|url| !asked(url)).cloned().collect()).collect()
}

impl Cluster {
    pub(super) fn from_endpoints(endpoints: Vec<Endpoint>) -> Self {
        let clusters = clusters_of(&endpoints);
        let largest = clusters.first().map(Vec::as_slice).unwrap_or_default();
        let newest_status = newest(largest, |endpoint| endpoint.status.is_some()).and_then(|it| it.status.as_ref());
        let leader = newest_status.map(|status| status.leader).filter(|leader| *leader != 0);
        let cluster_id = newest_status.map(|status| status.header.cluster_id);
        let listing = newest(largest, |endpoint| endpoint.members.is_some());
        let members = listing.and_then(|endpoint| endpoint.members.clone()).unwrap_or_default();
        let led = clusters.iter().filter(|cluster| cluster.iter().any(|it| it.has_leader()));
        let clusters_with_leader = led.map(|cluster| cluster.iter().map(|it| it.endpoint.clone()).collect()).collect();
        let alarms = endpoints.iter().flat_map(|endpoint| endpoint.alarms.iter().cloned()).collect();
        let mut cluster = Cluster {
            endpoints,
            members,
            alarms,
            leader,
            cluster_id,
            clusters_with_leader,
            reasons: Vec::new(),
            absent: Vec::new(),
        };
        cluster.reasons = cluster.find_reasons();
        cluster.absent = cluster.find_problems(true);
        cluster
    }

    /// What the endpoints that were named themselves, or those found in the list of members, do not do.
    fn find_problems(&self, registered: bool) -> Vec<String> {
        let mut reasons = Vec::new();
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.registered == registered) {
            let name = &endpoint.endpoint;
            match &endpoint.error {
                Some(error) if endpoint.reachable => reasons.push(format!("{name} stopped answering: {error}")),
                Some(error) => reasons.push(format!("{name} does not answer: {error}")),
                None => {}
            }
            let problems = endpoint.problems.iter().chain(&endpoint.failed_tests);
            reasons.extend(problems.map(|problem| format!("{name} {problem}")));
            let Some(status) = &endpoint.status else { continue };
            reasons.extend(status.errors.iter().map(|error| format!("{name} reports {error}")));
            if status.leader == 0 {
                reasons.push(format!("{name} has no leader"));
            }
        }
        reasons
    }

    fn find_reasons(&self) -> Vec<String> {
        let mut reasons = self.find_problems(false);
        self.find_disagreements(&mut reasons);
        for member in &self.members {
            if member.name.is_empty() {
                reasons.push(format!(
                    "the member {} ({}) never started",
                    member_id_hex(member.id),
                    member.peer_urls.join(", ")
                ));
            } else if member.is_learner {
                reasons.push(format!("the member {} is still a learner", member.name));
            }
        }
        for alarm in &self.alarms {
            reasons.push(format!("the member {} has the alarm {}", self.member_name(alarm.member), alarm.alarm));
        }
        reasons
    }

    fn find_disagreements(&self, reasons: &mut Vec<String>) {
        let mut clusters: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        let mut leaders: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        let mut lists: BTreeMap<&[Member], Vec<&str>> = BTreeMap::new();
        for endpoint in &self.endpoints {
            if let Some(status) = &endpoint.status {
                clusters.entry(status.header.cluster_id).or_default().push(&endpoint.endpoint);
                if status.leader != 0 {
                    leaders.entry(status.leader).or_default().push(&endpoint.endpoint);
                }
            }
            if let Some(members) = &endpoint.members {
                lists.entry(members).or_default().push(&endpoint.endpoint);
            }
        }
        if clusters.len() > 1 {
            let parts = clusters.iter().map(|(id, names)| format!("{} at {}", member_id_hex(*id), names.join(", ")));
            reasons
                .push(format!("the endpoints belong to different clusters: {}", parts.collect::<Vec<_>>().join("; ")));
        } else if lists.len() > 1 {
            let parts = lists.iter().map(|(list, names)| format!("{} members at {}", list.len(), names.join(", ")));
            reasons.push(format!("the endpoints list different members: {}", parts.collect::<Vec<_>>().join("; ")));
        } else if leaders.len() > 1 {
            let parts = leaders.iter().map(|(id, names)| format!("{} at {}", self.member_name(*id), names.join(", ")));
            reasons.push(format!("the endpoints name different leaders: {}", parts.collect::<Vec<_>>().join("; ")));
        }
    }

    /// A member's name, or its id if it has none.
    pub(super) fn member_name(&self, id: u64) -> String {
        let member = self.members.iter().find(|member| member.id == id).filter(|member| !member.name.is_empty());
        member.map_or_else(|| member_id_hex(id), |member| member.name.clone())
    }

    /// The endpoint by which a member shows that it takes part.
    pub(super) fn well(&self, id: u64) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.member_id() == Some(id) && endpoint.is_well(self.cluster_id))
    }

    pub(super) fn cluster_outcome(self) -> Outcome {
        let voters = self.members.iter().filter(|member| !member.is_learner).count();
        let applied = |id| self.well(id)?.status.as_ref().map(|status| status.raft_applied_index);
        let member = |member: &Member| {
            Value::from_pairs([
                ("id", Value::from(member_id_hex(member.id))),
                ("name", Value::from(member.name.as_str())),
                ("peer_urls", Value::from(member.peer_urls.clone())),
                ("client_urls", Value::from(member.client_urls.clone())),
                ("is_learner", Value::from(member.is_learner)),
                ("started", Value::from(!member.name.is_empty())),
                ("healthy", Value::from(self.well(member.id).is_some())),
                ("raft_applied_index", applied(member.id).map_or_else(|| Value::from(()), Value::from)),
            ])
        };
        let alarm = |alarm: &Alarm| {
            Value::from_pairs([
                ("id", member_id_hex(alarm.member)),
                ("name", self.member_name(alarm.member)),
                ("alarm", alarm.alarm.clone()),
            ])
        };
        let leader =
            self.leader.map(|id| Value::from_pairs([("id", member_id_hex(id)), ("name", self.member_name(id))]));
        let version = self.endpoints.iter().map(|endpoint| endpoint.cluster_version.as_str()).find(|v| !v.is_empty());
        let healthy = self.reasons.is_empty();
        let outcome = match healthy {
            true => Outcome::default(),
            false => Outcome::default().message(format!("etcd is not healthy: {}", self.reasons.join("; "))),
        };
        outcome
            .with("members", self.members.iter().map(member).collect::<Value>())
            .with("endpoints", self.endpoints.iter().map(Endpoint::value).collect::<Value>())
            .with("leader", leader.unwrap_or_else(|| Value::from(())))
            .with("cluster_id", self.cluster_id.map_or_else(String::new, member_id_hex))
            .with("clusters", self.clusters_with_leader.iter().cloned().map(Value::from).collect::<Value>())
            .with("cluster_version", version.unwrap_or_default())
            .with("alarms", self.alarms.iter().map(alarm).collect::<Value>())
            .with("voters", voters)
            .with("majority", voters / 2 + 1)
            .with("healthy", healthy)
            .with("reasons", self.reasons)
            .with("absent", self.absent)
    }
}

/// As etcd writes ids.
pub(super) fn member_id_hex(id: u64) -> String {
    format!("{id:x}")
}
