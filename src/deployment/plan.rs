//! A plan: what each stage would change, and what the world was like when that was found out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::changes::{ChangeKind, Changes, PlannedChange, TaskFailure};
use super::control::Outcome;
use super::stage::Stage;
use crate::inventory::split;

/// What a stage has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageState {
    /// Nothing.
    Same,
    /// What its changes say.
    Differs,
    /// What its changes say, and what cannot be checked before an earlier stage has been applied: what its waits say.
    Waits,
    /// It cannot be applied: what its failures say.
    Refused,
}

/// A stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStage {
    pub stage: Stage,
    pub state: StageState,
    pub hosts: Vec<String>,
    pub found: Changes,
}

impl PlannedStage {
    /// The failures of single members, which hold up nothing else. Empty if the stage as a whole is refused.
    pub fn refused_members(&self) -> &[TaskFailure] {
        if self.state == StageState::Refused { &[] } else { &self.found.failures }
    }

    /// Leaves out the files, units, accounts and services of hosts that stages before it change: the playbook of members, for example, looks after
    /// estimators as that of the control plane does.
    pub(super) fn leave_to(&mut self, earlier: &[PlannedStage]) {
        if self.state != StageState::Differs {
            return;
        }
        let found = || earlier.iter().map(|planned| &planned.found);
        let (changes, services) = (self.found.changes.len(), self.found.services.len());
        self.found.changes.retain(|change| {
            let same = |other: &PlannedChange| {
                (&other.host, other.kind, &other.what) == (&change.host, change.kind, &change.what)
            };
            let may_repeat = matches!(change.kind, ChangeKind::Object | ChangeKind::Other);
            may_repeat || !found().any(|found| found.changes.iter().any(same))
        });
        self.found.services.retain(|service| !found().any(|found| found.services.contains(service)));
        let is_less = changes > self.found.changes.len() || services > self.found.services.len();
        // A removal is one even if nothing is left for it to do.
        if is_less
            && self.stage != Stage::Removals
            && self.found.changes.is_empty()
            && self.found.services.is_empty()
            && self.found.failures.is_empty()
        {
            self.state = StageState::Same;
        }
    }
}

/// What was read when a plan was made: digests and states, by place and name.
pub type Observed = BTreeMap<String, BTreeMap<String, String>>;

/// The place of [`Observed`] for what is not on any host.
pub const ASKED: &str = "what is asked for";

/// A plan that was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of this layout.
    pub windlass_plan: u32,
    pub deployment: String,
    /// Seconds since 1970.
    pub made: u64,
    /// `alice@workstation`.
    pub by: String,
    /// The inventories that it is for, absolute.
    pub sources: Vec<String>,
    #[serde(flatten)]
    pub reach: TargetHosts,
    pub stages: Vec<PlannedStage>,
    pub observed: Observed,
}

/// The layout that this program writes and reads. Layout 2 has more kinds of changes than 1; layout 3 has digests of each host, of
/// the resource and of files; layout 4 has which stages wait for others, and which hosts are left out.
pub const LAYOUT: u32 = 4;

/// What a plan is asked for, beside the deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanRequest {
    /// A host pattern, as for Ansible's `--limit`. None: all hosts.
    pub limit: Option<String>,
    /// Members to remove even if they do not answer, as `spec.removeByForce` says for a resource.
    pub remove_by_force: Vec<String>,
}

/// The hosts that a plan is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetHosts {
    /// A host pattern, as for Ansible's `--limit`, without files. None: all hosts.
    pub limit: Option<String>,
    /// Hosts within the limit that do not answer, of a deployment that the others can serve meanwhile.
    pub left_out: Vec<String>,
    /// Hosts outside of the limit that do not answer. Members and add-ons get nothing through them.
    #[serde(default)]
    pub silent_outside: Vec<String>,
    /// Members that are removed even if they do not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_by_force: Vec<String>,
}

impl TargetHosts {
    /// The request that leads to these hosts.
    pub fn request(&self) -> PlanRequest {
        PlanRequest { limit: self.limit.clone(), remove_by_force: self.remove_by_force.clone() }
    }

    /// Whether these are all hosts of the deployment.
    pub fn is_whole(&self) -> bool {
        self.limit.is_none() && self.left_out.is_empty() && self.silent_outside.is_empty()
    }
}

impl TargetHosts {
    /// The hosts that a stage runs on, as a pattern. None: all hosts.
    pub fn pattern(&self, stage: Stage) -> Option<String> {
        if self.limit.is_none() && self.left_out.is_empty() {
            return None;
        }
        let limit = self.limit.as_deref().unwrap_or("all");
        // Without a positive part, a pattern starts from all hosts, which another part would end.
        let start = if split(limit).iter().all(|part| part.starts_with(['!', '&'])) { "all," } else { "" };
        // What members and add-ons get is decided and done through hosts of the control plane.
        let through = match stage {
            Stage::Etcd | Stage::ControlPlane => "",
            Stage::Members | Stage::Removals | Stage::Addons => ",karmada_control_plane",
        };
        let out: String = self.left_out.iter().chain(&self.silent_outside).map(|host| format!(",!{host}")).collect();
        Some(format!("{start}{limit}{through}{out}"))
    }

    /// The same for hooks: they may have something to do on this machine, which is not one of all hosts.
    pub fn pattern_of_hooks(&self, stage: Stage) -> Option<String> {
        self.pattern(stage).map(|hosts| format!("{hosts},localhost"))
    }
}

impl Plan {
    /// The stages to run.
    pub fn stages_to_run(&self) -> Vec<Stage> {
        let runs = self.stages.iter().filter(|planned| planned.state != StageState::Same);
        runs.map(|planned| planned.stage).collect()
    }

    /// The members that the stage of removals may be run for: those that it removes, or for which it found nothing left to do.
    pub fn removals(&self) -> &[String] {
        let removals = self.stages.iter().find(|planned| planned.stage == Stage::Removals);
        removals.map_or(&[], |planned| &planned.hosts)
    }

    /// The stage that cannot be applied, so that none is.
    pub fn refused(&self) -> Option<&PlannedStage> {
        self.stages.iter().find(|planned| planned.state == StageState::Refused)
    }

    /// How an apply of it would end at best: refused, or without the members that are refused and the hosts that are left out.
    pub fn outcome(&self) -> Outcome {
        if let Some(planned) = self.refused() {
            return planned.found.outcome();
        }
        let mut members = self.stages.iter().flat_map(PlannedStage::refused_members).peekable();
        if !self.reach.left_out.is_empty() {
            Outcome::Unreachable
        } else if members.peek().is_none() {
            Outcome::Ok
        } else if members.any(|failure| failure.unreachable) {
            Outcome::Unreachable
        } else {
            Outcome::Failed
        }
    }

    /// Names exactly this plan: what it would change, what was asked for, and what the hosts were like. Not who made it, and
    /// when; nor the order in which hosts answered. In hexadecimal.
    pub fn digest(&self) -> String {
        let mut plan = self.clone();
        (plan.made, plan.by, plan.sources) = (0, String::new(), Vec::new());
        for planned in &mut plan.stages {
            let found = &mut planned.found;
            found.changes.iter_mut().for_each(|change| change.diff.clear());
            found
                .changes
                .sort_by(|a, b| (&a.host, &a.kind, &a.what, &a.task).cmp(&(&b.host, &b.kind, &b.what, &b.task)));
            found.failures.sort_by(|a, b| (&a.host, &a.task).cmp(&(&b.host, &b.task)));
            found.waits.sort_by(|a, b| (&a.host, &a.reason).cmp(&(&b.host, &b.reason)));
            found.services.sort_by(|a, b| (&a.host, &a.unit).cmp(&(&b.host, &b.unit)));
            found.notes.clear();
        }
        let mut digest = Sha256::new();
        digest.update(serde_json::to_vec(&plan).expect("a plan is JSON"));
        digest_to_hex(digest)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(|planned| planned.state == StageState::Same)
    }
}

/// The digest of the request.
pub fn asked(observed: &Observed) -> Option<String> {
    let mut digest = Sha256::new();
    observed.get(ASKED)?.iter().for_each(|(name, value)| digest.update(format!("{name} {value}\n")));
    Some(digest_to_hex(digest))
}

/// A digest in hexadecimal.
pub(super) fn digest_to_hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What has changed now than it was: `h1: file /etc/etcd/etcd.yaml`, each with what became of it.
pub fn moved(before: &Observed, now: &Observed) -> Vec<String> {
    let mut moved = Vec::new();
    let none = BTreeMap::new();
    let places: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    for place in places {
        let (was, is) = (before.get(place).unwrap_or(&none), now.get(place).unwrap_or(&none));
        let names: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for name in names {
            let how = match (was.get(name), is.get(name)) {
                (Some(was), Some(is)) if was == is => continue,
                (Some(_), Some(_)) => "has changed",
                (Some(_), None) => "was removed",
                (None, _) => "was added",
            };
            let shown = if place == ASKED { "input" } else { place };
            moved.push(format!("{shown}: {name} {how}"));
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::super::changes::ServiceChange;
    use super::super::contract::{Clients, ServiceAction};
    use super::*;

    fn observed(entries: &[(&str, &str, &str)]) -> Observed {
        let mut observed = Observed::new();
        for (place, name, value) in entries {
            observed.entry((*place).to_owned()).or_default().insert((*name).to_owned(), (*value).to_owned());
        }
        observed
    }

    fn planned(stage: Stage, changes: &[(&str, ChangeKind, &str)], restarts: &[(&str, &str)]) -> PlannedStage {
        let change = |(host, kind, what): &(&str, ChangeKind, &str)| PlannedChange::example_change(host, *kind, what);
        let restart = |(host, unit): &(&str, &str)| ServiceChange {
            host: (*host).into(),
            unit: (*unit).into(),
            action: ServiceAction::Restart,
            clients: Clients::Unaffected,
            with: Vec::new(),
        };
        let (changes, services) = (changes.iter().map(change).collect(), restarts.iter().map(restart).collect());
        let found = Changes { changes, services, ..Changes::default() };
        PlannedStage { stage, state: StageState::Differs, hosts: vec!["h1".into()], found }
    }

    #[test]
    fn what_an_earlier_stage_does_is_planned_once() {
        let file = ("h1", ChangeKind::File, "/etc/windlass/karmada/estimator-m1/pki/tls.crt");
        let other = ("h2", ChangeKind::File, "/etc/windlass/karmada/estimator-m1/pki/tls.crt");
        let script = ("h1", ChangeKind::Other, "Run a script");
        let restart = ("h1", "karmada-estimator-m1");
        let earlier = [planned(Stage::ControlPlane, &[file, script], &[restart])];
        let mut members = planned(Stage::Members, &[file], &[restart]);
        members.leave_to(&earlier);
        assert_eq!(
            (members.state, members.found.changes.len(), members.found.services.len()),
            (StageState::Same, 0, 0)
        );
        // Another host, and what is no file, may be done twice.
        let mut members = planned(Stage::Members, &[file, other, script], &[restart, ("h2", "karmada-estimator-m1")]);
        members.leave_to(&earlier);
        assert_eq!(
            (members.state, members.found.changes.len(), members.found.services.len()),
            (StageState::Differs, 2, 1)
        );
        // A removal is always one.
        let mut removals = planned(Stage::Removals, &[file], &[restart]);
        removals.leave_to(&earlier);
        assert_eq!((removals.state, removals.found.changes.len()), (StageState::Differs, 0));
        // A member that is refused is still named.
        let mut members = planned(Stage::Members, &[file], &[]);
        let message = "its kubeconfig has expired".to_owned();
        members.found.failures.push(TaskFailure { host: "m1".into(), task: "t".into(), message, unreachable: false });
        members.leave_to(&earlier);
        assert_eq!(members.state, StageState::Differs);
    }

    #[test]
    fn a_removal_that_has_nothing_left_to_do_can_be_resumed() {
        let stages = [(Stage::Etcd, StageState::Differs, "h1"), (Stage::Removals, StageState::Same, "m1")];
        let planned = stages.map(|(stage, state, host)| PlannedStage {
            stage,
            state,
            hosts: vec![host.to_owned()],
            found: Changes::default(),
        });
        let plan = Plan {
            windlass_plan: LAYOUT,
            deployment: "d".into(),
            made: 1,
            by: "a@b".into(),
            sources: Vec::new(),
            reach: TargetHosts::default(),
            stages: planned.to_vec(),
            observed: Observed::new(),
        };
        assert_eq!(plan.stages_to_run(), [Stage::Etcd]);
        assert_eq!(plan.removals(), ["m1"]);
    }

    #[test]
    fn a_digest_is_of_what_a_plan_would_do_and_not_of_who_made_it() {
        let change = |host: &str, what: &str| PlannedChange {
            host: host.into(),
            kind: ChangeKind::File,
            what: what.into(),
            task: "t".into(),
            diff: String::new(),
        };
        let plan = |changes: Vec<PlannedChange>, by: &str, observed| Plan {
            windlass_plan: LAYOUT,
            deployment: "d".into(),
            made: 1,
            by: by.into(),
            sources: vec![by.to_owned()],
            reach: TargetHosts::default(),
            stages: vec![PlannedStage {
                stage: Stage::Etcd,
                state: StageState::Differs,
                hosts: vec!["h1".into()],
                found: Changes { changes, ..Changes::default() },
            }],
            observed,
        };
        let now = || observed(&[("h1", "file /a", "1")]);
        let one = plan(vec![change("h1", "/a"), change("h2", "/b")], "alice", now()).digest();
        assert_eq!(one.len(), 64);
        assert_eq!(one, plan(vec![change("h2", "/b"), change("h1", "/a")], "bob", now()).digest());
        assert_ne!(one, plan(vec![change("h1", "/a")], "alice", now()).digest());
        let moved = observed(&[("h1", "file /a", "2")]);
        assert_ne!(one, plan(vec![change("h1", "/a"), change("h2", "/b")], "alice", moved).digest());
    }

    #[test]
    fn hosts_that_are_left_out_are_left_out_of_every_stage() {
        let reach = |limit: Option<&str>, out: &[&str]| TargetHosts {
            limit: limit.map(str::to_owned),
            left_out: out.iter().map(ToString::to_string).collect(),
            ..TargetHosts::default()
        };
        assert_eq!(reach(None, &[]).pattern(Stage::Etcd), None);
        assert_eq!(reach(None, &["h3"]).pattern(Stage::Etcd).unwrap(), "all,!h3");
        assert_eq!(reach(Some("h1,h2"), &["h2"]).pattern(Stage::ControlPlane).unwrap(), "h1,h2,!h2");
        assert_eq!(reach(Some("m1"), &["h3"]).pattern(Stage::Members).unwrap(), "m1,karmada_control_plane,!h3");
        // Without a positive part, a limit is about all hosts.
        assert_eq!(reach(Some("!m1"), &[]).pattern(Stage::Members).unwrap(), "all,!m1,karmada_control_plane");
        assert_eq!(reach(Some("!m1:&dc1"), &[]).pattern(Stage::Etcd).unwrap(), "all,!m1:&dc1");
        // A host outside of the limit that does not answer is one of the control plane, too.
        let outside = TargetHosts { silent_outside: vec!["h3".into()], ..reach(Some("h1"), &[]) };
        assert_eq!(outside.pattern(Stage::Addons).unwrap(), "h1,karmada_control_plane,!h3");
        assert_eq!(outside.pattern_of_hooks(Stage::Etcd).unwrap(), "h1,!h3,localhost");
        assert_eq!(reach(None, &[]).pattern_of_hooks(Stage::Etcd), None);
    }

    #[test]
    fn what_moved_is_named_with_its_place_and_how() {
        let before = observed(&[("h1", "file /a", "1"), ("h1", "file /b", "1"), ("h2", "unit etcd", "active")]);
        let now = observed(&[("h1", "file /a", "2"), ("h2", "unit etcd", "active"), ("h3", "file /c", "1")]);
        assert_eq!(
            moved(&before, &now),
            ["h1: file /a has changed", "h1: file /b was removed", "h3: file /c was added"]
        );
        assert!(moved(&before, &before).is_empty());
    }
}
