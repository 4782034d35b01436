//! What is left of an etcd cluster that may have lost its majority, and what can be done.

use serde::Deserialize;

use super::{Reply, ask};
use crate::deployment::backups::Backup;
use crate::deployment::contract::{Reported, StatusNumber};
use crate::deployment::{Control, Error, Site};
use crate::value::Vars;

/// What `etcd-survivors.yml` found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivors {
    pub layout: u32,
    pub cluster: String,
    /// The members that vote, as those that answer know them: their names, or the peer URL of one that never started.
    pub members: Vec<String>,
    /// The hosts that answer.
    pub hosts: Vec<Survivor>,
    /// The hosts that do not.
    pub silent: Vec<String>,
}

impl Reported for Survivors {
    const PLAYBOOK: &'static str = "etcd-survivors.yml";
    const VARIABLE: &'static str = "windlass_etcd_survivors";
    const LAYOUT: u32 = 1;
}

/// A host that answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivor {
    pub host: String,
    pub member: String,
    /// As `systemctl is-active` prints it.
    pub service: String,
    pub has_data: bool,
    /// Its data is of this cluster.
    pub can_start: bool,
    pub has_leader: bool,
    pub term: StatusNumber,
    pub index: StatusNumber,
    pub revision: StatusNumber,
}

fn number(number: &StatusNumber) -> u64 {
    match number {
        StatusNumber::Number(number) => u64::try_from(*number).unwrap_or_default(),
        StatusNumber::Text(text) => text.parse().unwrap_or_default(),
    }
}

impl Survivor {
    fn runs(&self) -> bool {
        matches!(self.service.as_str(), "active" | "activating")
    }
}

impl Survivors {
    /// Whether the cluster has a leader. A member that lost the others names the old one for some seconds.
    pub fn has_leader(&self) -> bool {
        // A learner has no vote, and does not notice that the leader is gone.
        let votes = |host: &&Survivor| self.members.contains(&host.member);
        let may_run = self.hosts.iter().filter(votes).filter(|host| host.runs()).count() + self.silent.len();
        may_run >= self.majority() && self.hosts.iter().filter(votes).any(|host| host.has_leader)
    }

    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Hosts whose member is stopped and can be started.
    pub fn startable(&self) -> Vec<&str> {
        let stopped = self.hosts.iter().filter(|host| host.can_start && !host.runs());
        stopped.map(|host| host.host.as_str()).collect()
    }

    /// The member whose data is the most up to date: the highest term, then the highest index. None: no member runs.
    fn best(&self) -> Option<&Survivor> {
        let running = self.hosts.iter().filter(|host| host.has_data && number(&host.index) > 0);
        running.max_by_key(|host| (number(&host.term), number(&host.index)))
    }

    /// A table of the hosts.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<16} {:<12} {:<5} {:<7} {:>8} {:>12} {:>12}\n",
            "HOST", "ETCD", "DATA", "LEADER", "TERM", "INDEX", "REVISION"
        );
        let word = |it: bool| if it { "yes" } else { "no" };
        for it in &self.hosts {
            let figure = |figure: &StatusNumber| match number(figure) {
                0 => "?".to_owned(),
                figure => figure.to_string(),
            };
            let (term, index, revision) = (figure(&it.term), figure(&it.index), figure(&it.revision));
            text.push_str(&format!(
                "{:<16} {:<12} {:<5} {:<7} {term:>8} {index:>12} {revision:>12}\n",
                it.host,
                it.service,
                word(it.has_data),
                word(it.has_leader),
            ));
        }
        self.silent.iter().for_each(|host| text.push_str(&format!("{host:<16} does not answer\n")));
        text
    }

    /// What can be done about a cluster without a leader. `newest`: of the verified backups. `named`: the options that name the
    /// deployment, `-f karmada.yaml`.
    pub fn choices(&self, newest: Option<&Backup>, named: &str) -> String {
        let majority = self.majority();
        let running: Vec<&str> =
            self.hosts.iter().filter(|it| it.has_data && it.runs()).map(|it| it.host.as_str()).collect();
        let mut text = format!(
            "{} has no leader: of its members {}, {majority} must run; running: {}\n\n",
            self.cluster,
            self.members.join(", "),
            if running.is_empty() { "none".to_owned() } else { running.join(", ") },
        );
        let lost: Vec<&str> = self
            .members
            .iter()
            .map(String::as_str)
            // A member that never started has no data that could be lost.
            .filter(|name| !name.contains("://") && !self.hosts.iter().any(|it| it.member == *name))
            .collect();
        let flags: String = lost.iter().map(|name| format!(" --lost {name}")).collect();
        if !self.startable().is_empty() {
            text.push_str(&format!(
                "Nothing is lost if stopped members start: windlass etcd recover starts {}.\n",
                self.startable().join(", ")
            ));
        }
        if !self.silent.is_empty() {
            text.push_str(&format!(
                "Nothing is lost if {} come{} back: repair the machines, then run this again.\n",
                self.silent.join(", "),
                if self.silent.len() == 1 { "s" } else { "" },
            ));
        }
        if !lost.is_empty() {
            text.push_str(&format!(
                "If the machines of {} are gone for good, take them out of the inventory and choose one of these:\n",
                lost.join(", ")
            ));
        }
        for host in self.hosts.iter().filter(|host| host.has_data && number(&host.index) == 0) {
            text.push_str(&format!(
                "{} has data, but shows it only when it runs with a majority: it may be newer than every backup.\n",
                host.host
            ));
        }
        let best = self.best();
        if let Some(best) = best {
            text.push_str(&format!(
                "\n- from the data of {}, the most up to date that is left (term {}, index {}, revision {}). Writes that it did not get \
                 are lost; what other members had is not known:\n    windlass etcd backup DIR {named}\n    windlass etcd restore DIR/NAME {named}{flags}\n",
                best.member,
                number(&best.term),
                number(&best.index),
                number(&best.revision),
            ));
        }
        match newest.and_then(|backup| Some((backup, backup.manifest.as_ref().ok()?))) {
            Some((backup, manifest)) => {
                let revision = best.map_or(0, |best| number(&best.revision));
                let loss = match revision.checked_sub(manifest.revision) {
                    Some(revisions) if best.is_some() => {
                        format!(
                            "the writes of {revisions} revision{} that {} has are lost",
                            if revisions == 1 { "" } else { "s" },
                            best.map_or("", |best| &best.member)
                        )
                    }
                    _ => "all that was written since is lost".to_owned(),
                };
                let key = if manifest.encryption.is_some() { " --identity FILE" } else { "" };
                text.push_str(&format!(
                    "\n- from the newest backup (revision {}): {loss}:\n    windlass etcd restore {}{key} {named}{flags}\n",
                    manifest.revision,
                    backup.path.display()
                ));
            }
            None => text.push_str("\n- from a backup: windlass etcd recover --backups PLACE shows the newest one\n"),
        }
        text
    }
}

/// Reads what is left of the cluster. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read, or the playbook cannot be run.
pub async fn read_survivors(site: &Site, control: &Control) -> Result<Option<Reply<Survivors>>, Error> {
    ask(&site.read_inventory().await?, Vars::default(), None, control).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survivor(host: &str, service: &str, has_leader: bool, [term, index, revision]: [i64; 3]) -> Survivor {
        let [term, index, revision] = [term, index, revision].map(StatusNumber::Number);
        let (host, service) = (host.to_owned(), service.to_owned());
        Survivor {
            member: host.clone(),
            host,
            service,
            has_data: true,
            can_start: true,
            has_leader,
            term,
            index,
            revision,
        }
    }

    fn survivors(hosts: Vec<Survivor>, silent: &[&str]) -> Survivors {
        let silent = silent.iter().map(ToString::to_string).collect();
        let members = ["h1", "h2", "h3"].map(str::to_owned).into();
        Survivors { layout: 1, cluster: "etcd".into(), members, hosts, silent }
    }

    #[test]
    fn the_highest_term_comes_before_the_highest_index() {
        let two = survivors(
            vec![
                survivor("h1", "active", false, [5, 100, 90]),
                survivor("h2", "active", false, [4, 900, 800]),
                survivor("h3", "inactive", false, [0, 0, 0]),
            ],
            &[],
        );
        assert_eq!(two.best().unwrap().host, "h1");
        assert_eq!(two.startable(), ["h3"]);
        assert!(!two.has_leader());
        let choices = two.choices(None, "-f k.yaml");
        assert!(choices.contains("from the data of h1") && !choices.contains("--lost"), "{choices}");
    }

    #[test]
    fn a_member_alone_has_no_leader_whatever_it_says() {
        let [h2, h3] = ["h2", "h3"].map(|host| survivor(host, "inactive", false, [0, 0, 0]));
        let h1 = || survivor("h1", "active", true, [5, 100, 90]);
        assert!(!survivors(vec![h1(), h2.clone(), h3], &[]).has_leader());
        assert!(survivors(vec![h1(), h2.clone()], &["h3"]).has_leader());
        // Neither does a learner count.
        let [h3, learner] =
            [("h3", "inactive"), ("h4", "active")].map(|(host, service)| survivor(host, service, true, [5, 100, 90]));
        assert!(!survivors(vec![h1(), h2, h3, learner], &[]).has_leader());
    }

    #[test]
    fn a_member_that_never_started_counts_and_is_not_lost() {
        let mut one = survivors(vec![survivor("h1", "active", false, [5, 100, 90])], &[]);
        one.members = ["h1", "h2", "https://10.0.0.9:2380"].map(str::to_owned).into();
        let choices = one.choices(None, "-i hosts.ini");
        assert!(choices.contains("of its members h1, h2, https://10.0.0.9:2380, 2 must run"), "{choices}");
        assert!(choices.contains("-i hosts.ini --lost h2\n"), "{choices}");
    }

    #[test]
    fn members_without_a_host_that_answers_are_lost() {
        let one = survivors(vec![survivor("h1", "active", false, [5, 100, 90])], &["h2"]);
        let choices = one.choices(None, "-i hosts.ini");
        assert!(choices.contains("restore DIR/NAME -i hosts.ini --lost h2 --lost h3"), "{choices}");
        assert!(choices.contains("Nothing is lost if h2 comes back"), "{choices}");
        assert!(one.table().contains("h2               does not answer"));
    }
}
