//! `etcd_member`: adds a learner, makes it a voter, removes a member. Every change is refused if the arithmetic of the quorum forbids it.

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::gateway::{Member, Refusal};
use super::one_member::OneMember;
use super::report::{Cluster, member_id_hex};
use super::{
    CA_CERT, CLIENT_CERT, CLIENT_KEY, Changes, Controller, Error, EtcdClusterInfo, Module, Outcome, Plan, REMOTE_SRC,
};
use crate::http::{HttpError, Url};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MemberState {
    Learner,
    Voter,
    Absent,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::modules) struct EtcdMember {
    endpoints: Vec<String>,
    state: MemberState,
    name: Option<String>,
    peer_url: Option<String>,
    id: Option<String>,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    remote_src: bool,
    timeout: u64,
    retry_seconds: u64,
}

impl Module for EtcdMember {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "etcd_member",
        collection: "windlass",
        summary: "Add a learner to an etcd cluster, promote it, or remove a member",
        arguments: &[
            Argument::new(
                "endpoints",
                ArgumentKind::List(&ArgumentKind::Str),
                "Client addresses of members as seen from the host, https://a:2379",
            )
            .required(),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "learner: add the member as a learner unless it is registered. voter: promote it when it is in step with the \
                 leader. absent: remove it, and move leadership away first",
            )
            .choices(&["learner", "voter", "absent"])
            .required(),
            Argument::new("name", ArgumentKind::Str, "The member's name, for initial_cluster"),
            Argument::new("peer_url", ArgumentKind::Str, "The member's peer URL, for learner and voter"),
            Argument::new("id", ArgumentKind::Str, "The member's id in hexadecimal, for absent"),
            CA_CERT,
            CLIENT_CERT,
            CLIENT_KEY,
            REMOTE_SRC,
            Argument::new("timeout", ArgumentKind::Int, "Timeout for one request to a member, in seconds")
                .default("10"),
            Argument::new("retry_seconds", ArgumentKind::Int, "How long to retry what etcd refuses for now, in seconds")
                .default("60"),
        ],
        free_form: None,
        example: "\
- name: Add the learner
  windlass.etcd_member:
    endpoints: ['https://10.0.0.1:2379', 'https://10.0.0.2:2379', 'https://10.0.0.3:2379']
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    state: learner
    name: h4
    peer_url: https://10.0.0.4:2380
  register: added
",
        returns: &[
            Return::new("id", "The member's id, in hexadecimal"),
            Return::new("initial_cluster", "The members as NAME=PEER_URL, for the new member's --initial-cluster"),
            Return::new("voters", "The number of voting members after the change"),
            Return::new("survives", "How many of them may fail"),
        ],
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
        let cluster = self.query(probe, here).await?;
        if self.is_done(&cluster)? {
            return Ok(Plan::Unchanged(self.outcome(&cluster)));
        }
        let survives = self.refuse_lost_quorum(&cluster)?;
        let voters = voters(&cluster).count();
        let after = match self.state {
            MemberState::Learner => voters,
            MemberState::Voter => voters + 1,
            MemberState::Absent => voters.saturating_sub(usize::from(self.is_voter(&cluster))),
        };
        let outcome = self.outcome(&cluster).with("voters", after).with("survives", survives);
        Ok(Plan::Change { diff: Vec::new(), outcome, change: () })
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let until = Instant::now() + Duration::from_secs(self.retry_seconds);
        loop {
            let cluster = self.query(remote, here).await?;
            // A request that timed out may have been carried out.
            if self.is_done(&cluster)? {
                return Ok(self.outcome(&cluster));
            }
            let change = self.change_text(&cluster);
            let failure = match self.refuse_lost_quorum(&cluster) {
                Ok(_) => match self.change(&cluster, remote, here).await? {
                    Ok(()) => Error::failed(format!("etcd accepted the request to {change}, but does not show it yet")),
                    Err(refusal) => Error::failed(format!("cannot {change}: {refusal}")),
                },
                Err(refusal) => refusal,
            };
            if Instant::now() > until {
                return Err(failure);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn voters(cluster: &Cluster) -> impl Iterator<Item = &Member> {
    cluster.members.iter().filter(|member| !member.is_learner)
}

/// Voters that answer linearizable reads.
fn healthy_voters(cluster: &Cluster) -> impl Iterator<Item = &Member> {
    voters(cluster).filter(|member| cluster.well(member.id).is_some())
}

/// How many of as many voters may fail.
fn survivable(voters: usize) -> usize {
    voters.saturating_sub(1) / 2
}

fn names<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let name = |member: &Member| if member.name.is_empty() { member_id_hex(member.id) } else { member.name.clone() };
    members.map(name).collect::<Vec<_>>().join(", ")
}

impl EtcdMember {
    fn questions(&self) -> EtcdClusterInfo {
        EtcdClusterInfo {
            endpoints: self.endpoints.clone(),
            ca_cert: self.ca_cert.clone(),
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
            remote_src: self.remote_src,
            timeout: self.timeout,
            whole_cluster: true,
            linearizable: true,
            write_test_key: None,
            // Members may come and go while the database is full.
            allow_full: true,
        }
    }

    async fn query(&self, probe: &Probe, here: &Controller<'_>) -> Result<Cluster, Error> {
        match (self.state, &self.id, &self.peer_url) {
            (MemberState::Absent, None, _) => return Err(Error::failed("state absent needs id")),
            (MemberState::Learner | MemberState::Voter, _, None) => {
                return Err(Error::failed("the states learner and voter need peer_url"));
            }
            _ => {}
        }
        let cluster = self.questions().ask_all(probe, here, None, false).await?;
        if cluster.members.is_empty() {
            return Err(Error::failed(format!("no etcd member answers: {}", cluster.reasons.join("; "))));
        }
        if cluster.clusters_with_leader.len() > 1 {
            return Err(Error::failed(cluster.reasons.join("; ")));
        }
        Ok(cluster)
    }

    /// The member that this is for.
    fn member<'a>(&self, cluster: &'a Cluster) -> Option<&'a Member> {
        let is_url = |url: &String| {
            self.peer_url.as_ref().is_some_and(|own| own.trim_end_matches('/') == url.trim_end_matches('/'))
        };
        match self.state {
            MemberState::Absent => cluster
                .members
                .iter()
                .find(|member| Some(member_id_hex(member.id)) == self.id.as_ref().map(|id| id.to_lowercase())),
            _ => cluster.members.iter().find(|member| member.peer_urls.iter().any(is_url)),
        }
    }

    fn is_voter(&self, cluster: &Cluster) -> bool {
        self.member(cluster).is_some_and(|member| !member.is_learner)
    }

    fn is_done(&self, cluster: &Cluster) -> Result<bool, Error> {
        let found = self.member(cluster);
        if self.state != MemberState::Absent
            && let (Some(found), Some(name)) = (found, &self.name)
            && !found.name.is_empty()
            && found.name != *name
        {
            let url = self.peer_url.as_deref().unwrap_or_default();
            return Err(Error::failed(format!(
                "{name} has the peer URL {url}, which is that of the member {}",
                found.name
            )));
        }
        match (self.state, found) {
            (MemberState::Learner, found) => Ok(found.is_some()),
            (MemberState::Voter, Some(found)) => Ok(!found.is_learner),
            (MemberState::Voter, None) => Err(Error::failed(format!(
                "cannot promote {}: it is not registered in the cluster",
                self.peer_url.as_deref().unwrap_or_default()
            ))),
            (MemberState::Absent, found) => Ok(found.is_none()),
        }
    }

    /// How many failures the cluster survives after the change.
    ///
    /// # Errors
    /// The change would cost the majority, or etcd would refuse it until members are repaired.
    fn refuse_lost_quorum(&self, cluster: &Cluster) -> Result<usize, Error> {
        let own = self.member(cluster).map(|member| member.id);
        let count = voters(cluster).count();
        let down: Vec<&Member> = voters(cluster).filter(|member| cluster.well(member.id).is_none()).collect();
        let change = self.change_text(cluster);
        match self.state {
            MemberState::Learner | MemberState::Voter => {
                let others = cluster.members.iter().filter(|member| member.is_learner && Some(member.id) != own);
                let learners = names(others);
                if !learners.is_empty() {
                    return Err(Error::failed(format!(
                        "cannot {change}: {learners} is a learner already, and etcd accepts one at a time. Complete that join, or remove \
                         it with windlass etcd remove-member"
                    )));
                }
                if !down.is_empty() {
                    let (healthy, needed) = (count - down.len(), count.div_ceil(2) + 1);
                    let survives = healthy.saturating_sub(needed);
                    return Err(Error::failed(format!(
                        "cannot {change}: of the {count} members {} {} down. With one more member the cluster would survive {} before they are \
                         repaired. Start {}, or replace {} (windlass etcd replace-member)",
                        names(down.iter().copied()),
                        if down.len() == 1 { "is" } else { "are" },
                        failures(survives),
                        if down.len() == 1 { "it" } else { "them" },
                        if down.len() == 1 { "it" } else { "them in one command" },
                    )));
                }
                Ok(survivable(count + 1))
            }
            MemberState::Absent if !self.is_voter(cluster) => Ok(survivable(count)),
            MemberState::Absent => {
                let after = count - 1;
                if after == 0 {
                    return Err(Error::failed(format!(
                        "cannot {change}: it is the last member. To remove the whole cluster, run playbooks/etcd-reset.yml"
                    )));
                }
                let stay = healthy_voters(cluster).filter(|member| Some(member.id) != own).count();
                let needed = after / 2 + 1;
                if stay < needed {
                    return Err(Error::failed(format!(
                        "cannot {change}: of the {after} members that stay only {stay} {} healthy, and {needed} are needed. The cluster would \
                         survive no failure: it would have no majority. Start the members that are down: {}",
                        if stay == 1 { "is" } else { "are" },
                        names(down.into_iter().filter(|member| Some(member.id) != own)),
                    )));
                }
                Ok(stay - needed)
            }
        }
    }

    /// `add h4 (https://h4:2380) as a learner`
    fn change_text(&self, cluster: &Cluster) -> String {
        let url = self.peer_url.as_deref().unwrap_or_default();
        let name = match (&self.name, self.member(cluster)) {
            (Some(name), _) => name.clone(),
            (None, Some(member)) => names(std::iter::once(member)),
            (None, None) => self.id.as_deref().unwrap_or(url).to_owned(),
        };
        match self.state {
            MemberState::Learner => format!("add {name} ({url}) as a learner"),
            MemberState::Voter => format!("promote {name}"),
            MemberState::Absent => format!("remove {name}"),
        }
    }

    fn outcome(&self, cluster: &Cluster) -> Outcome {
        let own = self.member(cluster);
        let mut list: Vec<String> = Vec::new();
        for member in &cluster.members {
            let is_own = Some(member.id) == own.map(|own| own.id);
            let name = if is_own { self.name.as_ref().unwrap_or(&member.name) } else { &member.name };
            list.extend(member.peer_urls.iter().map(|url| format!("{name}={url}")));
        }
        list.sort();
        let count = voters(cluster).count();
        Outcome::default()
            .with("id", own.map_or_else(String::new, |member| member_id_hex(member.id)))
            .with("initial_cluster", list)
            .with("voters", Value::from(count))
            .with("survives", survivable(count))
    }

    /// One request to the leader: the member that is asked judges whether enough others are connected, and only the leader knows
    /// whether a learner is in step.
    async fn change(
        &self,
        cluster: &Cluster,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> Result<Result<(), Refusal>, Error> {
        let leader = cluster.leader.and_then(|id| cluster.endpoints.iter().find(|e| e.member_id() == Some(id)));
        let Some(leader) = leader else { return Ok(Err("the cluster has no leader that answers".to_owned())) };
        let leader = OneMember {
            endpoint: &leader.endpoint,
            ca_cert: self.ca_cert.as_deref(),
            client_cert: self.client_cert.as_deref(),
            client_key: self.client_key.as_deref(),
            remote_src: self.remote_src,
            timeout: self.timeout,
        };
        let (tls, url) = leader.connect(remote, here).await?;
        let gateway = |url: Url| leader.gateway(remote, &tls, url);
        let own = self.member(cluster);
        let answer = match (self.state, own) {
            (MemberState::Learner, _) => gateway(url).add_learner(self.peer_url.as_deref().unwrap_or_default()).await,
            (_, None) => Ok(Ok(())),
            (MemberState::Voter, Some(own)) => gateway(url).promote_member(own.id).await,
            (MemberState::Absent, Some(own)) if cluster.leader == Some(own.id) && cluster.members.len() > 1 => {
                match successor(cluster, own.id) {
                    Some(next) => gateway(url).move_leader(next).await,
                    None => Ok(Err("no other member can become the leader".to_owned())),
                }
            }
            (MemberState::Absent, Some(own)) => gateway(url).remove_member(own.id).await,
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(HttpError::Host(error)) => Err(error.into()),
            // It may have been carried out, or not.
            Err(failure) => Ok(Err(failure.to_string())),
        }
    }
}

/// The healthy voter that has applied most, other than this one.
fn successor(cluster: &Cluster, leader: u64) -> Option<u64> {
    let applied = |id| cluster.well(id)?.status.as_ref().map(|status| status.raft_applied_index);
    healthy_voters(cluster).map(|member| member.id).filter(|id| *id != leader).max_by_key(|id| applied(*id))
}

/// `no failure`, `1 failure`, `2 failures`
fn failures(count: usize) -> String {
    match count {
        0 => "no failure".to_owned(),
        1 => "1 failure".to_owned(),
        count => format!("{count} failures"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::gateway::{Header, Status};
    use super::super::report::Endpoint;
    use super::*;

    fn member(id: u64) -> Member {
        Member { id, name: format!("h{id}"), peer_urls: vec![format!("https://h{id}:2380")], ..Member::default() }
    }

    /// Voters 1 to `count`, of which these are down; 1 leads.
    fn cluster(count: u64, down: &[u64], learner: Option<u64>) -> Cluster {
        let mut members: Vec<Member> = (1..=count).map(member).collect();
        members.extend(learner.map(|id| Member { is_learner: true, ..member(id) }));
        let endpoint = |id: u64| Endpoint {
            endpoint: format!("https://h{id}:2379"),
            reachable: true,
            status: Some(Status {
                header: Header { cluster_id: 7, member_id: id },
                leader: 1,
                raft_applied_index: 100 + id,
                ..Status::default()
            }),
            members: Some(members.clone()),
            ..Endpoint::default()
        };
        Cluster::from_endpoints((1..=count).filter(|id| !down.contains(id)).map(endpoint).collect())
    }

    fn request(state: MemberState, id: u64) -> EtcdMember {
        EtcdMember {
            endpoints: Vec::new(),
            state,
            name: Some(format!("h{id}")),
            peer_url: Some(format!("https://h{id}:2380")),
            id: Some(member_id_hex(id)),
            ca_cert: None,
            client_cert: None,
            client_key: None,
            remote_src: true,
            timeout: 1,
            retry_seconds: 0,
        }
    }

    fn survives(state: MemberState, id: u64, cluster: &Cluster) -> Result<usize, String> {
        request(state, id).refuse_lost_quorum(cluster).map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_that_costs_the_majority_is_refused_and_says_what_the_cluster_would_survive() {
        use MemberState::{Absent, Learner, Voter};
        assert_eq!(survives(Learner, 4, &cluster(3, &[], None)), Ok(1));
        assert_eq!(survives(Voter, 5, &cluster(4, &[], Some(5))), Ok(2));
        let refused = survives(Learner, 4, &cluster(3, &[3], None)).unwrap_err();
        assert!(refused.contains("of the 3 members h3 is down") && refused.contains("no failure"), "{refused}");
        let refused = survives(Learner, 6, &cluster(3, &[], Some(5))).unwrap_err();
        assert!(refused.contains("h5 is a learner already"), "{refused}");
        // One that is down may go; one that is up may not while another is down.
        assert_eq!(survives(Absent, 3, &cluster(3, &[3], None)), Ok(0));
        let refused = survives(Absent, 2, &cluster(3, &[3], None)).unwrap_err();
        assert!(refused.contains("of the 2 members that stay only 1 is healthy, and 2 are needed"), "{refused}");
        assert_eq!(survives(Absent, 5, &cluster(5, &[4], None)), Ok(0));
        assert_eq!(survives(Absent, 4, &cluster(5, &[4], None)), Ok(1));
        assert_eq!(survives(Absent, 2, &cluster(2, &[], None)), Ok(0));
        assert!(survives(Absent, 2, &cluster(2, &[1], None)).is_err(), "the last majority");
        let refused = survives(Absent, 1, &cluster(1, &[], None)).unwrap_err();
        assert!(refused.contains("it is the last member"), "{refused}");
        // A learner has no vote to lose.
        assert_eq!(survives(Absent, 4, &cluster(3, &[3], Some(4))), Ok(1));
    }

    #[test]
    fn what_was_done_already_is_not_done_again() {
        use MemberState::{Absent, Learner, Voter};
        let done =
            |state, id, cluster: &Cluster| request(state, id).is_done(cluster).map_err(|error| error.to_string());
        assert_eq!(done(Learner, 4, &cluster(3, &[], None)), Ok(false));
        assert_eq!(done(Learner, 4, &cluster(3, &[], Some(4))), Ok(true));
        assert_eq!(done(Voter, 4, &cluster(3, &[], Some(4))), Ok(false));
        assert_eq!(done(Voter, 3, &cluster(3, &[], None)), Ok(true));
        assert!(done(Voter, 4, &cluster(3, &[], None)).is_err());
        // The address of another member is no join that has begun.
        let other = EtcdMember { name: Some("h9".into()), ..request(Learner, 3) };
        let refused = other.is_done(&cluster(3, &[], None)).unwrap_err().to_string();
        assert!(refused.contains("h9 has the peer URL https://h3:2380, which is that of the member h3"), "{refused}");
        assert_eq!(done(Absent, 4, &cluster(3, &[], None)), Ok(true));
        assert_eq!(done(Absent, 3, &cluster(3, &[], None)), Ok(false));
    }

    #[test]
    fn the_most_up_to_date_healthy_voter_becomes_the_leader() {
        assert_eq!(successor(&cluster(3, &[3], Some(4)), 1), Some(2));
        assert_eq!(successor(&cluster(1, &[], Some(4)), 1), None);
    }

    #[test]
    fn a_new_member_gets_the_list_with_its_own_name() {
        let mut unnamed = cluster(2, &[], Some(3));
        unnamed.members.iter_mut().filter(|member| member.id == 3).for_each(|member| member.name.clear());
        let outcome = request(MemberState::Learner, 3).outcome(&unnamed);
        let list = outcome.values["initial_cluster"].to_string();
        assert!(list.contains("h1=https://h1:2380") && list.contains("h3=https://h3:2380"), "{list}");
    }
}
