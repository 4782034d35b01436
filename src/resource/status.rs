//! The status of a `KarmadaDeployment`: what the operator saw when it last looked at the hosts, and what it is about to do.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many characters a message in a status may have.
pub const LONGEST_MESSAGE: usize = 1024;

/// How many lines of a plan are in a status.
pub const MOST_CHANGES: usize = 100;

/// What the operator knows about a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaDeploymentStatus {
    /// The generation of the spec that the operator has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions by type; Ready sums them up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What the last look at the hosts has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// The name of the newest Run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// A Run has destroyed the deployment, and nothing was installed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroyed: Option<Destroyed>,
}

/// When a deployment was destroyed, and what its spec said then: it is not installed again by itself while it says the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Destroyed {
    /// When the Run ended (RFC 3339).
    pub time: String,
    /// The digest of what the spec said about the hosts.
    pub spec: String,
}

/// What a look at the hosts has found. Nothing was changed for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// When it ended (RFC 3339).
    pub time: String,
    /// The generation of the spec that it compared the hosts with.
    pub generation: i64,
    /// Why the hosts could not be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The version of Karmada on the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_version: Option<String>,
    /// For people.
    pub summary: LookSummary,
    /// The hosts of the control plane and of etcd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub hosts: Vec<HostStatus>,
    /// The members of etcd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["host".into()]))]
    pub etcd_members: Vec<EtcdMemberStatus>,
    /// The member clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub members: Vec<MemberStatus>,
    /// What is unhealthy, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Until the first certificate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_days_left: Option<i64>,
    /// Who holds the lock of the deployment on its hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockStatus>,
    /// An operation that did not come to its end and does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// What an apply would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
}

/// How many bytes of JSON a look may have: the whole object stays below 64 KiB.
const LARGEST_LOOK: usize = 48 * 1024;

impl Look {
    /// Takes rows and words away until it fits into a status: those that say that all is well first.
    pub fn limit_size(&mut self) {
        let limits = [(256, LONGEST_MESSAGE), (256, 200), (100, 120), (40, 80), (10, 60)];
        for (turn, (rows, words)) in limits.into_iter().enumerate() {
            if turn > 0 && serde_json::to_vec(self).is_ok_and(|text| text.len() <= LARGEST_LOOK) {
                return;
            }
            let cut = |text: &mut String| *text = shortened(text, words);
            keep(&mut self.hosts, rows, |host| host.reachable);
            keep(&mut self.etcd_members, rows, |member| member.healthy);
            keep(&mut self.members, rows, |member| member.ready);
            self.hosts.iter_mut().for_each(|host| [&mut host.ready, &mut host.message].into_iter().for_each(cut));
            let of_etcd = self.etcd_members.iter_mut();
            of_etcd.for_each(|row| [&mut row.role, &mut row.version, &mut row.message].into_iter().for_each(cut));
            let of_members = self.members.iter_mut();
            of_members.for_each(|row| [&mut row.mode, &mut row.version, &mut row.message].into_iter().for_each(cut));
            let plan = self.plan.as_mut();
            let lists = plan.map(|plan| [&mut plan.lines, &mut plan.refused_members]);
            for list in lists.into_iter().flatten().chain([&mut self.problems]) {
                list.truncate(rows);
                list.iter_mut().for_each(cut);
            }
        }
    }
}

/// Keeps so many rows, those that are not well first, in their order otherwise.
fn keep<T>(rows: &mut Vec<T>, most: usize, is_well: impl Fn(&T) -> bool) {
    if rows.len() > most {
        rows.sort_by_key(is_well);
        rows.truncate(most);
    }
}

/// What `kubectl get` shows: `2/3`. Nothing after a look that failed: some API servers take an empty text for null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LookSummary {
    /// Hosts that answer, of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hosts: String,
    /// Healthy etcd members, of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub etcd: String,
    /// Components that are ready, of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub components: String,
    /// Member clusters that are ready, of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub members: String,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    pub name: String,
    /// Whether it answers.
    pub reachable: bool,
    /// The components on it that are ready, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ready: String,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A member of etcd.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMemberStatus {
    pub host: String,
    pub healthy: bool,
    /// leader, follower or no reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// In bytes.
    pub db_size: i64,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A member cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    pub name: String,
    pub ready: bool,
    /// Push or Pull.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// Of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Who holds the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockStatus {
    /// The user and the machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holder: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Since when (RFC 3339).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
}

/// What an apply would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Names exactly this plan: a Run that applies it says it in spec.planDigest. Absent: there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How many changes it has.
    pub changes: i64,
    /// Members that leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<String>,
    /// The stage that cannot be applied, and why, so that none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Members that cannot join or leave, and why. They hold up nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_members: Vec<String>,
    /// The first changes: STAGE HOST WHAT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// One condition, as Kubernetes has them (`metav1.Condition`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    pub r#type: String,
    /// True, False or Unknown.
    pub status: String,
    /// One word, for programs.
    pub reason: String,
    /// For people. Not empty, as some API servers take an empty text for a missing one.
    pub message: String,
    /// When the status last became another (RFC 3339).
    pub last_transition_time: String,
    /// The generation of the spec that it is about.
    pub observed_generation: i64,
}

impl Condition {
    /// Whether it is true.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// A message that fits into a status, in one line: a host may have written it.
pub fn short_message(text: &str) -> String {
    let text = text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    shortened(text.trim(), LONGEST_MESSAGE)
}

/// So many characters of a text.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most - 1) {
        Some((end, _)) if text.chars().nth(most).is_some() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Puts conditions in place of those with the same types. The time of one whose status stays, stays.
pub fn put_conditions(into: &mut Vec<Condition>, new: Vec<Condition>) {
    for mut condition in new {
        match into.iter_mut().find(|known| known.r#type == condition.r#type) {
            Some(known) => {
                if known.status == condition.status {
                    condition.last_transition_time.clone_from(&known.last_transition_time);
                }
                *known = condition;
            }
            None => into.push(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str, time: &str) -> Condition {
        Condition {
            r#type: kind.into(),
            status: status.into(),
            reason: "R".into(),
            message: String::new(),
            last_transition_time: time.into(),
            observed_generation: 1,
        }
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change() {
        let mut known = vec![condition("Ready", "True", "1")];
        put_conditions(&mut known, vec![condition("Ready", "True", "2"), condition("Paused", "False", "2")]);
        assert_eq!(known, [condition("Ready", "True", "1"), condition("Paused", "False", "2")]);
        put_conditions(&mut known, vec![condition("Ready", "False", "3")]);
        assert_eq!(known[0], condition("Ready", "False", "3"));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(short_message(" short\n"), "short");
        assert_eq!(short_message("one\nReady True\x1b[2J"), "one Ready True [2J");
        let long = "ü".repeat(LONGEST_MESSAGE + 5);
        let cut = short_message(&long);
        assert_eq!((cut.chars().count(), cut.chars().last()), (LONGEST_MESSAGE, Some('…')));
    }

    #[test]
    fn a_look_fits_into_a_status_and_what_is_not_well_stays() {
        let text = "ü".repeat(3000);
        let host = |number: usize| HostStatus {
            name: format!("h{number}"),
            reachable: number != 777,
            ready: text.clone(),
            message: text.clone(),
        };
        let plan = PlanStatus { lines: vec![text.clone(); 1000], ..PlanStatus::default() };
        let mut look = Look {
            hosts: (0..1000).map(host).collect(),
            problems: vec![text.clone(); 1000],
            plan: Some(plan),
            ..Look::default()
        };
        look.limit_size();
        let size = serde_json::to_vec(&look).unwrap().len();
        assert!(size <= LARGEST_LOOK, "{size} bytes");
        assert!(look.hosts.iter().any(|host| host.name == "h777"));
        // What is small enough stays as it is.
        let mut small = Look { problems: vec!["h1: etcd is not active".into()], ..Look::default() };
        let before = small.clone();
        small.limit_size();
        assert_eq!(small, before);
    }
}
