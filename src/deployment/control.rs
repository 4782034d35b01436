//! How a caller follows a request, and how a request ends.

use std::path::PathBuf;
use std::sync::Arc;

use super::stage::Stage;
use crate::engine::{self, Recap};
use crate::launch;
use crate::runs::RunId;

/// The caller's handle of a running request. The events of runs that change something go to `run.events`;
/// those of check runs are only counted.
#[derive(Clone)]
pub struct Control {
    /// Of the command's record, its lock and its journal.
    pub id: RunId,
    pub run: launch::Control,
    /// Takes what happens between runs. Called from any thread.
    pub progress: Arc<dyn Fn(Progress) + Send + Sync>,
}

/// What happens between runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The deployment that the request is about.
    Deployment { name: String, hosts: Vec<String> },
    /// A stage or operation begins, by its name.
    StageStart { stage: &'static str, playbook: PathBuf, check: bool },
    /// It ended. `changes`: how many were found in check mode.
    StageEnd { stage: &'static str, outcome: Outcome, changes: Option<usize> },
    /// A stage is run in check mode.
    Planning(Stage),
    /// Something changed on the hosts while the plan was made, so it is made again.
    PlanningAgain,
    /// A run in check mode waits for these hosts, for this task.
    Waiting(String),
    /// A playbook of a stage, or of its hooks, is run.
    Applying { stage: Stage, playbook: PathBuf },
    /// The playbook of an operation is run in check mode.
    DryRun(PathBuf),
    /// The playbook of an operation is run.
    Running(PathBuf),
    /// What is done about another holder of the lock.
    Lock(String),
    /// A warning; the request continues.
    Warning(String),
    /// A removal ended early; these parts may still be there.
    NotRemoved(RemainingParts),
}

/// What a removal that ended early may have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemainingParts {
    /// A member could not be removed; nothing else was tried.
    Everything,
    ControlPlaneAndEtcd,
    Etcd,
}

impl Control {
    pub(super) fn report_progress(&self, progress: Progress) {
        (self.progress)(progress);
    }

    /// Runs a job as a stage that is one playbook.
    pub(super) async fn run_stage(
        &self,
        stage: &'static str,
        playbook: PathBuf,
        job: engine::Job,
    ) -> Result<Outcome, launch::Error> {
        self.report_progress(Progress::StageStart { stage, playbook, check: false });
        let outcome = self.run.run(job).await?.map_or(Outcome::Interrupted, |recap| Outcome::of_recap(&recap));
        self.report_progress(Progress::StageEnd { stage, outcome, changes: None });
        Ok(outcome)
    }
}

/// A stage that is checked. One that is dropped was interrupted.
pub(super) struct OpenStage<'a> {
    control: &'a Control,
    stage: Stage,
    end: (Outcome, Option<usize>),
}

impl<'a> OpenStage<'a> {
    pub(super) fn start_check(control: &'a Control, stage: Stage, playbook: PathBuf) -> OpenStage<'a> {
        control.report_progress(Progress::StageStart { stage: stage.name(), playbook, check: true });
        control.report_progress(Progress::Planning(stage));
        OpenStage { control, stage, end: (Outcome::Interrupted, None) }
    }

    /// `changes`: how many were found.
    pub(super) fn end(mut self, outcome: Outcome, changes: usize) {
        self.end = (outcome, Some(changes));
    }
}

impl Drop for OpenStage<'_> {
    fn drop(&mut self) {
        let (outcome, changes) = self.end;
        self.control.report_progress(Progress::StageEnd { stage: self.stage.name(), outcome, changes });
    }
}

/// How a request is to take the lock.
#[derive(Debug, Clone)]
pub struct LockRequest {
    /// What others see of this run, such as its command line.
    pub command: String,
    /// A holder that is still there is taken over, too.
    pub breaks: bool,
    /// Another operation that did not come to its end is given up.
    pub abandons: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// A check refused it, so nothing was changed.
    Refused,
    /// A task failed on a host.
    Failed,
    /// A host could not be reached.
    Unreachable,
    /// The caller cancelled it.
    Interrupted,
}

impl Outcome {
    /// Of a run that came to its end.
    pub fn of_recap(recap: &Recap) -> Outcome {
        if recap.interrupted {
            Outcome::Interrupted
        } else if !recap.lost.unreachable.is_empty() {
            Outcome::Unreachable
        } else if !recap.lost.failed.is_empty() {
            Outcome::Failed
        } else {
            Outcome::Ok
        }
    }
}
