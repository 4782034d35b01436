//! Removes a deployment from its hosts, once its name was given.

use super::control::{Control, LockRequest, Outcome, Progress, RemainingParts};
use super::lock::Lock;
use super::stage::Stage;
use super::{Deployment, Error, Phase, Run, Site};
use crate::resource::names::{group, variable};
use crate::value::{Value, Vars};

/// What is removed, in this order: the stage that installed it, the playbook, the variable that takes the name, and what may be left
/// if it fails.
const STEPS: [(Stage, &str, &str, RemainingParts); 2] = [
    (Stage::ControlPlane, "karmada-reset.yml", variable::CONFIRM_INSTANCE, RemainingParts::ControlPlaneAndEtcd),
    (Stage::Etcd, "etcd-reset.yml", variable::CONFIRM_CLUSTER_NAME, RemainingParts::Etcd),
];

/// A deployment that is to be removed, once that was agreed to.
pub struct Removal<'s> {
    site: &'s Site,
    pub deployment: Deployment,
}

impl<'s> Removal<'s> {
    /// # Errors
    /// The deployment cannot be read, is paused, or its hosts' names were exchanged.
    pub async fn prepare(site: &'s Site, control: &Control) -> Result<Removal<'s>, Error> {
        let deployment = site.read_inventory().await?.deployment(control).await?;
        deployment.refuse_paused()?;
        deployment.journal_of_same_hosts().await?;
        Ok(Removal { site, deployment })
    }

    /// Removes all of it. `name`: the deployment's, as the person gave it.
    ///
    /// # Errors
    /// The name differs; the lock is held; a run could not continue.
    pub async fn carry_out(&self, name: &str, request: &LockRequest, control: &Control) -> Result<Outcome, Error> {
        if name != self.deployment.name {
            let (name, typed) = (self.deployment.name.clone(), name.to_owned());
            return Err(Error::WrongName { name, typed, done: "removed" });
        }
        let lock = self.deployment.lock(request, control).await?;
        let outcome = self.locked(&lock, control).await;
        match outcome {
            // With the lock's own directory nothing is left on the hosts.
            Ok(Outcome::Ok) => lock.forget().await,
            _ => lock.release().await,
        }
        outcome
    }

    async fn locked(&self, lock: &Lock, control: &Control) -> Result<Outcome, Error> {
        let phase = self.site.read_inventory().await?;
        self.deployment.recheck(&phase, control).await?;
        let inventory = phase.inventory();
        let is_there = |group: &str| inventory.groups.contains_key(group) && !inventory.hosts_of(group).is_empty();
        if is_there(group::MEMBERS) || is_there(group::DEL_MEMBER) {
            let outcome = self.remove_members(&phase, lock, control).await?;
            if outcome != Outcome::Ok {
                control.report_progress(Progress::NotRemoved(RemainingParts::Everything));
                return Ok(outcome);
            }
        }
        for (stage, playbook, variable, remaining) in STEPS {
            if !is_there(stage.group()) {
                continue;
            }
            let name = if stage == Stage::Etcd { &self.deployment.etcd_cluster } else { &self.deployment.instance };
            let mut vars = Vars::from([(variable.into(), Value::from(name.as_str()))]);
            // Kept for the data in an etcd that stays.
            vars.insert(variable::KARMADA_KEEP_ENCRYPTION_KEY.into(), Value::from(!is_there(group::ETCD)));
            let playbook = self.site.playbook_path(playbook);
            let run = Run { playbook: Some(&playbook), vars, hold: Some(lock.hold().clone()), ..Run::default() };
            let job = phase.job(run, control).await?;
            let outcome = control.run_stage(stage.name(), playbook, job).await?;
            if outcome != Outcome::Ok {
                control.report_progress(Progress::NotRemoved(remaining));
                return Ok(outcome);
            }
        }
        Ok(Outcome::Ok)
    }

    /// Removes all members, each as its variables say.
    async fn remove_members(&self, phase: &Phase<'_>, lock: &Lock, control: &Control) -> Result<Outcome, Error> {
        let playbook = self.site.playbook_path(Stage::Removals.playbook());
        let run = Run { playbook: Some(&playbook), hold: Some(lock.hold().clone()), ..Run::default() };
        let mut job = phase.job(run, control).await?;
        for member in Stage::Members.hosts(&job.inventory) {
            job.inventory.add_to_group(&member, Stage::Removals.group())?;
        }
        Ok(control.run_stage(Stage::Removals.name(), playbook, job).await?)
    }
}
