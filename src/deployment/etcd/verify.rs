//! Whether all members of an etcd cluster have the same data: a hash of each one's keys at the same revision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Reply, ask};
use crate::deployment::contract::Reported;
use crate::deployment::{Control, Deployment, Error, Site};
use crate::value::Vars;

/// What `etcd-verify.yml` found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hashes {
    pub layout: u32,
    /// The cluster's name.
    pub cluster: String,
    /// The revision of the hashes. All members have it.
    pub revision: u64,
    pub members: Vec<MemberHash>,
}

impl Reported for Hashes {
    const PLAYBOOK: &'static str = "etcd-verify.yml";
    const VARIABLE: &'static str = "windlass_etcd_verify";
    const LAYOUT: u32 = 1;
}

/// The hash of one member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberHash {
    pub name: String,
    pub is_learner: bool,
    /// None: the member gave none.
    pub hash: Option<u64>,
    /// The revision of its last compaction: hashes cover what was written since then. -1: none yet.
    pub compact_revision: Option<i64>,
}

/// What the comparison says of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Comparison {
    /// The same data as the majority.
    Same,
    /// Other data than the majority; or there is no majority, and somebody has other data.
    Differs,
    /// It removed more or less of the history than the others: the hashes say nothing.
    NotComparable,
    NoHash,
}

impl Hashes {
    /// One for each member. The majority is that of all members, also of those that gave no hash.
    pub fn compare(&self) -> Vec<Comparison> {
        let mut compactions: BTreeMap<i64, usize> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.hash.is_some()) {
            *compactions.entry(member.compact_revision.unwrap_or_default()).or_default() += 1;
        }
        let common = compactions.iter().max_by_key(|(_, count)| **count).map(|(revision, _)| *revision);
        let is_comparable = |member: &MemberHash| Some(member.compact_revision.unwrap_or_default()) == common;
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for hash in self.members.iter().filter(|member| is_comparable(member)).filter_map(|member| member.hash) {
            *counts.entry(hash).or_default() += 1;
        }
        let majority = counts.iter().find(|(_, count)| **count > self.members.len() / 2).map(|(hash, _)| *hash);
        let compared = |member: &MemberHash| match member.hash {
            None => Comparison::NoHash,
            Some(_) if !is_comparable(member) => Comparison::NotComparable,
            Some(_) if counts.len() == 1 => Comparison::Same,
            Some(hash) if Some(hash) == majority => Comparison::Same,
            Some(_) => Comparison::Differs,
        };
        self.members.iter().map(compared).collect()
    }
}

/// Compares the members. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read, or the playbook cannot be run.
pub async fn read_etcd_hashes(site: &Site, control: &Control) -> Result<Option<(Deployment, Reply<Hashes>)>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    let reply = ask(&phase, Vars::default(), None, control).await?;
    Ok(reply.map(|reply| (deployment, reply)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(members: &[(Option<u64>, i64)]) -> Vec<Comparison> {
        let member = |(hash, compact_revision): &(Option<u64>, i64)| MemberHash {
            name: "h".into(),
            is_learner: false,
            hash: *hash,
            compact_revision: Some(*compact_revision),
        };
        let members = members.iter().map(member).collect();
        Hashes { layout: 1, cluster: "etcd".into(), revision: 9, members }.compare()
    }

    #[test]
    fn the_member_that_differs_from_the_majority_is_named() {
        use Comparison::{Differs, NoHash, NotComparable, Same};
        assert_eq!(compare(&[(Some(1), 3), (Some(1), 3), (Some(1), 3)]), [Same, Same, Same]);
        assert_eq!(compare(&[(Some(1), 3), (Some(2), 3), (Some(1), 3)]), [Same, Differs, Same]);
        // Nobody knows which of them is right.
        assert_eq!(compare(&[(Some(1), 3), (Some(2), 3)]), [Differs, Differs]);
        assert_eq!(compare(&[(Some(1), 3), (Some(2), 3), (None, 3)]), [Differs, Differs, NoHash]);
        assert_eq!(compare(&[(Some(1), 3), (Some(2), 3), (Some(3), 3)]), [Differs, Differs, Differs]);
        // Two of five are no majority, even if the others said nothing.
        assert_eq!(compare(&[(Some(1), 3), (Some(1), 3), (Some(2), 3), (None, 3), (None, 3)])[..3], [Differs; 3]);
        assert_eq!(compare(&[(Some(1), 3), (Some(9), 4), (Some(1), 3)]), [Same, NotComparable, Same]);
        assert_eq!(compare(&[(Some(7), -1)]), [Same]);
        assert_eq!(compare(&[(None, 0)]), [NoHash]);
    }

    #[test]
    fn the_report_of_the_playbook_is_read() {
        let json = r#"{"layout": 1, "cluster": "etcd", "revision": 12, "members": [
            {"name": "h1", "is_learner": false, "hash": 2135324389, "compact_revision": -1},
            {"name": "h2", "is_learner": false, "hash": null, "compact_revision": null}]}"#;
        let hashes: Hashes = serde_json::from_str(json).unwrap();
        assert_eq!(hashes.compare(), [Comparison::Same, Comparison::NoHash]);
    }
}
