//! An apply: makes a deployment what it is described to be. Only stages that differ are run, under the deployment's lock, with
//! a journal on its hosts.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::control::{Control, LockRequest, Outcome, Progress};
use super::journal::{self, Journal, JournalEntry};
use super::lock::Lock;
use super::plan::{ASKED, Plan, PlanRequest, PlannedStage, StageState, asked, moved};
use super::recorded_operation::RecordedOperation;
use super::stage::{self, Stage};
use super::{Deployment, Error, Phase, Run, Site, planning};
use crate::value::Vars;

/// A plan that can be applied, once it was agreed to.
pub struct Proposal<'s> {
    site: &'s Site,
    deployment: Deployment,
    pub plan: Plan,
    /// An earlier apply that did not come to its end: this one resumes it. Or another operation: this one cannot.
    pub interrupted: Option<Journal>,
    /// The plan was made by an earlier request.
    saved: bool,
}

/// What a person, or a policy, has agreed to.
#[derive(Debug, Clone, Copy)]
pub struct Agreement {
    /// To apply the plan.
    pub plan: bool,
    /// To remove as many members.
    pub removals: usize,
}

/// What has to be agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// These members would be removed, more than was agreed to.
    Remove(Vec<String>),
    /// The plan would be applied.
    Apply,
}

/// What became of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There was nothing to do.
    Nothing,
    /// This stage is refused, so nothing was applied.
    Refused(Stage),
    /// Nothing was done: these questions come first.
    Asks(Vec<Question>),
    Done(Outcome),
}

impl<'s> Proposal<'s> {
    /// Makes the wanted plan, or takes one that was saved. None: the caller cancelled it.
    ///
    /// # Errors
    /// The deployment cannot be read, is paused, locked by another run, its hosts' names were exchanged, or the pattern names no host.
    pub async fn make(
        site: &'s Site,
        saved: Option<Plan>,
        wanted: PlanRequest,
        request: &LockRequest,
        control: &Control,
    ) -> Result<Option<Proposal<'s>>, Error> {
        let phase = site.read_inventory().await?;
        let deployment = phase.deployment(control).await?;
        deployment.refuse_paused()?;
        deployment.refuse_held(request).await?;
        deployment.check_hooks(&phase)?;
        let interrupted = deployment.journal_of_same_hosts().await?.filter(|journal| !journal.done);
        let is_saved = saved.is_some();
        let plan = match saved {
            Some(plan) => plan,
            None => match planning::make_plan(&phase, &deployment, wanted, control).await? {
                Some(plan) => plan,
                None => return Ok(None),
            },
        };
        Ok(Some(Proposal { site, deployment, plan, interrupted, saved: is_saved }))
    }

    /// Applies the plan, if all that it needs was agreed to.
    ///
    /// # Errors
    /// The lock is held, the hosts have changed since the plan was made, or a run could not continue.
    pub async fn apply(&self, agreed: Agreement, request: &LockRequest, control: &Control) -> Result<Answer, Error> {
        if let Some(planned) = self.plan.refused() {
            return Ok(Answer::Refused(planned.stage));
        }
        // One that was interrupted is resumed; or ended, if it was another operation and nothing is left to do on any host.
        let ends_another =
            self.interrupted.as_ref().is_some_and(|journal| journal.is_apply() || self.plan.reach.is_whole());
        if self.plan.is_empty() && !ends_another {
            return Ok(Answer::Nothing);
        }
        let questions = self.questions(agreed);
        if !questions.is_empty() {
            return Ok(Answer::Asks(questions));
        }
        let lock = self.deployment.lock(request, control).await?;
        let done = self.locked(&lock, control).await;
        lock.release().await;
        // Done as far as could be: without the members that are refused and the hosts that are left out.
        done.map(|outcome| Answer::Done(if outcome == Outcome::Ok { self.plan.outcome() } else { outcome }))
    }

    fn questions(&self, agreed: Agreement) -> Vec<Question> {
        let removals = self.plan.stages.iter().find(|planned| planned.stage == Stage::Removals);
        let leaving = removals.filter(|planned| planned.state != StageState::Same).map(|planned| planned.hosts.clone());
        let many = leaving.filter(|leaving| leaving.len() > agreed.removals);
        let apply = (!agreed.plan).then_some(Question::Apply);
        many.map(Question::Remove).into_iter().chain(apply).collect()
    }

    /// What is done under the lock.
    async fn locked(&self, lock: &Lock, control: &Control) -> Result<Outcome, Error> {
        let Some(stages) = self.still(control).await? else { return Ok(Outcome::Interrupted) };
        // Somebody may have come and gone before the lock was taken.
        let newest =
            journal::read_journals(lock.hosts(), &self.deployment.directory, lock.hold().hosts.len()).await.newest();
        let unfinished = newest.filter(|journal| !journal.done);
        let interrupted = unfinished.as_ref().and_then(Journal::open_stage);
        let mut run = Stages::begin(self, lock, control);
        // Only an apply to all hosts shows that nothing is left of another operation.
        run.keeps_journal = !self.plan.reach.is_whole() && unfinished.is_some_and(|journal| !journal.is_apply());
        let outcome = run.all(&stages, interrupted).await?;
        if !run.keeps_journal {
            run.journal.finish_journal(outcome);
            run.journal.write_end(outcome, lock, control).await?;
        }
        Ok(outcome)
    }

    /// The stages of the plan, if it is still valid now that the lock is held. A plan of this run is
    /// made again where something changed, and is valid if the same stages differ. None: the run was ended.
    async fn still(&self, control: &Control) -> Result<Option<Vec<PlannedStage>>, Error> {
        let phase = self.site.read_inventory().await?;
        self.deployment.recheck(&phase, control).await?;
        // What the plan is compared with must be what the stages are run with: both are compared with the document as it was read first.
        self.deployment.refuse_another_spec(&phase, control).await?;
        let Some(now) = planning::observe(&phase, &self.deployment, Vars::default(), control).await? else {
            return Ok(None);
        };
        let what = moved(&self.plan.observed, &now);
        if what.is_empty() {
            return Ok(Some(self.plan.stages.clone()));
        }
        // The request is what the plan showed; hosts may have changed meanwhile.
        if !self.saved && self.plan.observed.get(ASKED) == now.get(ASKED) {
            control.report_progress(Progress::PlanningAgain);
            let wanted = self.plan.reach.request();
            let Some(again) = planning::make_plan(&phase, &self.deployment, wanted, control).await? else {
                return Ok(None);
            };
            if again.stages == self.plan.stages && again.reach == self.plan.reach {
                return Ok(Some(again.stages));
            }
        }
        let since = if self.saved { "the plan was saved" } else { "planning began" };
        Err(Error::Moved { since, what })
    }
}

/// How a stage ended.
struct StageResult {
    outcome: Outcome,
    /// Only member clusters failed, which nothing else depends on.
    members_only: bool,
}

/// The stages of an apply while they are run.
struct Stages<'a> {
    site: &'a Site,
    deployment: &'a Deployment,
    lock: &'a Lock,
    control: &'a Control,
    plan: &'a Plan,
    journal: Journal,
    /// The journal on the hosts is of another operation that did not come to its end, and stays.
    keeps_journal: bool,
    /// A stage was run, so that what was planned for those after it may not hold any more.
    has_run: bool,
}

impl<'a> Stages<'a> {
    fn begin(proposal: &'a Proposal<'_>, lock: &'a Lock, control: &'a Control) -> Self {
        let journal = Journal::new_journal(
            RecordedOperation::Apply,
            &proposal.deployment.name,
            asked(&proposal.plan.observed).as_deref(),
            lock,
        );
        let (site, deployment, plan) = (proposal.site, &proposal.deployment, &proposal.plan);
        Stages { site, deployment, lock, control, plan, journal, keeps_journal: false, has_run: false }
    }

    /// Runs the stages that differ, and the one at which an earlier apply was interrupted.
    async fn all(&mut self, stages: &[PlannedStage], interrupted: Option<Stage>) -> Result<Outcome, Error> {
        let mut all = Outcome::Ok;
        for planned in stages {
            let stage = planned.stage;
            if self.control.run.is_stopping() {
                return Ok(Outcome::Interrupted);
            }
            if interrupted != Some(stage) {
                let state = match self.has_run {
                    false => planned.state,
                    true => {
                        let (phase, reach) = (self.read_inventory().await?, &self.plan.reach);
                        let (_turn, shown) = watch::channel(stage);
                        match planning::check_run(&phase, stage, Vec::new(), reach, self.control, shown).await? {
                            // The run reports the members that are refused now.
                            Some(now) if !now.found.failures.is_empty() => StageState::Differs,
                            Some(now) => now.state,
                            None => return Ok(Outcome::Interrupted),
                        }
                    }
                };
                if state == StageState::Same {
                    continue;
                }
            }
            match self.stage(stage).await? {
                StageResult { outcome: Outcome::Ok, .. } => {}
                // The stages after it do not depend on single members.
                StageResult { outcome, members_only: true } => all = outcome,
                StageResult { outcome, .. } => return Ok(outcome),
            }
        }
        Ok(all)
    }

    /// One stage, with its hooks.
    async fn stage(&mut self, stage: Stage) -> Result<StageResult, Error> {
        let playbook = self.site.playbook_path(stage.playbook());
        self.control.report_progress(Progress::StageStart { stage: stage.name(), playbook, check: false });
        let ended = self.playbooks(stage).await?;
        let end = Progress::StageEnd { stage: stage.name(), outcome: ended.outcome, changes: None };
        self.control.report_progress(end);
        Ok(ended)
    }

    async fn playbooks(&mut self, stage: Stage) -> Result<StageResult, Error> {
        self.has_run = true;
        let entry = JournalEntry { stage: stage.name().into(), playbook: stage.playbook().into(), done: false };
        self.journal.stages.push(entry);
        self.write().await?;
        let hooks = self.deployment.hooks(stage);
        let own = self.site.playbook_path(stage.playbook());
        for playbook in hooks.before.iter().chain([&own]).chain(&hooks.after) {
            let ended = self.playbook(stage, playbook).await?;
            if ended.outcome != Outcome::Ok {
                return Ok(ended);
            }
        }
        if let Some(entry) = self.journal.stages.last_mut() {
            entry.done = true;
        }
        self.write().await?;
        Ok(StageResult { outcome: Outcome::Ok, members_only: false })
    }

    /// The inventory as it is now. It must describe the same hosts, and its resource must say the same.
    async fn read_inventory(&self) -> Result<Phase<'a>, Error> {
        let phase = self.site.read_inventory().await?;
        self.deployment.recheck(&phase, self.control).await?;
        self.deployment.refuse_another_spec(&phase, self.control).await?;
        Ok(phase)
    }

    /// Runs a playbook under the lock. The inventory is read again: the one before it may have changed what it says.
    async fn playbook(&self, stage: Stage, playbook: &Path) -> Result<StageResult, Error> {
        self.control.report_progress(Progress::Applying { stage, playbook: playbook.to_owned() });
        let phase = self.read_inventory().await?;
        let limit = match playbook == self.site.playbook_path(stage.playbook()) {
            true => self.plan.reach.pattern(stage),
            false => self.plan.reach.pattern_of_hooks(stage),
        };
        let hold = Some(self.lock.hold().clone());
        let remove_by_force = self.plan.reach.remove_by_force.clone();
        let run = Run { playbook: Some(playbook), hold, limit, remove_by_force, ..Run::default() };
        let job = phase.job(run, self.control).await?;
        if stage == Stage::Removals {
            refuse_unplanned(self.plan.removals(), &stage.hosts(&job.inventory))?;
        }
        let locked = stage::locked_hosts(&job.inventory);
        let Some(recap) = self.control.run.run(job).await? else {
            return Ok(StageResult { outcome: Outcome::Interrupted, members_only: false });
        };
        let outcome = Outcome::of_recap(&recap);
        let of_members = matches!(stage, Stage::Members | Stage::Removals) && outcome != Outcome::Interrupted;
        let mut lost = recap.lost.failed.iter().chain(&recap.lost.unreachable);
        Ok(StageResult { outcome, members_only: of_members && lost.all(|host| !locked.contains(host)) })
    }

    async fn write(&self) -> Result<(), Error> {
        match self.keeps_journal {
            true => Ok(()),
            false => journal::write_journal(self.lock, &self.journal).await.map_err(Error::Journal),
        }
    }
}

/// Refuses to remove a member that the plan did not show: the control plane may not have listed its members before.
fn refuse_unplanned(planned: &[String], leaving: &[Arc<str>]) -> Result<(), Error> {
    let more = leaving.iter().filter(|name| !planned.iter().any(|planned| **planned == ***name));
    let members: Vec<String> = more.map(ToString::to_string).collect();
    if members.is_empty() { Ok(()) } else { Err(Error::UnplannedRemovals { members }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_that_the_plan_showed_are_removed() {
        let leaving: [Arc<str>; 2] = ["m1".into(), "m2".into()];
        assert!(refuse_unplanned(&["m1".into(), "m2".into(), "m3".into()], &leaving).is_ok());
        let refused = refuse_unplanned(&["m1".into()], &leaving).unwrap_err().to_string();
        assert!(refused.contains("the removal of m2"), "{refused}");
        assert!(refuse_unplanned(&[], &[]).is_ok());
    }
}
