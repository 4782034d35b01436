//! What is known of a deployment: its object, its Runs, and the processes and Jobs of this operator.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::children::{Children, Work};
use super::decide::{DeploymentView, LookView, PlanView, RunState, RunView, Seconds, destroyed_at};
use super::events::Sender;
use super::jobs::Jobs;
use super::metrics::Metrics;
use super::window::window_at;
use crate::resource::status::{Destroyed, Look};
use crate::resource::{EtcdBackup, KarmadaDeployment, Run, digest_of_spec};
use crate::value::mutex::Mutex;
use crate::worker::{INTERRUPTED, SILENCE, time_text};

/// What every reconcile needs.
pub(super) struct Context {
    pub client: Client,
    pub runs: Store<Run>,
    pub children: Children,
    /// None: Runs are done by processes of this machine.
    pub jobs: Option<Jobs>,
    pub metrics: Metrics,
    /// How long after a look the next one begins.
    pub look_every: Duration,
    pub max_runs: usize,
    pub max_looks: usize,
    pub heartbeats: Heartbeats,
    pub events: Sender,
}

/// What workers said last, by the uid of their Run, and when this operator saw it first: their clocks may not be its own.
#[derive(Default)]
pub(super) struct Heartbeats(Mutex<HashMap<String, (String, Instant)>>);

impl Heartbeats {
    /// Whether a worker that last said this may still be there.
    fn is_alive(&self, run: &str, heartbeat: &str) -> bool {
        let mut known = self.0.lock();
        let entry = known.entry(run.to_owned()).or_insert_with(|| (heartbeat.to_owned(), Instant::now()));
        if entry.0 != heartbeat {
            *entry = (heartbeat.to_owned(), Instant::now());
        }
        entry.1.elapsed() < SILENCE
    }

    fn forget(&self, run: &str) {
        self.0.lock().remove(run);
    }
}

impl Context {
    /// How many Runs have a process.
    pub(super) fn busy(&self) -> usize {
        self.children.counts().1 + self.jobs.as_ref().map_or(0, |jobs| jobs.active(&self.runs.state()))
    }

    /// The Runs of a deployment, in the order of their creation.
    pub(super) fn runs_of(&self, namespace: &str, deployment: &str) -> Vec<Arc<Run>> {
        let is_of = |run: &Arc<Run>| run.namespace().as_deref() == Some(namespace) && run.spec.deployment == deployment;
        let mut runs: Vec<Arc<Run>> = self.runs.state().into_iter().filter(is_of).collect();
        runs.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.name_any()));
        runs
    }

    /// The backups that are asked for of a deployment's etcd.
    pub(super) fn backups_of(&self, namespace: &str, deployment: &str) -> Vec<Arc<EtcdBackup>> {
        let is_of =
            |it: &Arc<EtcdBackup>| it.namespace().as_deref() == Some(namespace) && it.spec.deployment == deployment;
        self.metrics.backups.get().map(Store::state).into_iter().flatten().filter(is_of).collect()
    }

    pub(super) fn view(
        &self,
        deployment: &KarmadaDeployment,
        runs: &[Arc<Run>],
        now: OffsetDateTime,
    ) -> (DeploymentView, Option<Destroyed>) {
        let name = (deployment.namespace().unwrap_or_default(), deployment.name_any());
        let generation = deployment.metadata.generation.unwrap_or_default();
        let look = deployment.status.as_ref().and_then(|status| status.look.as_ref());
        let changes = runs.iter().rev().filter(|run| run.spec.operation.changes_hosts());
        let applied = changes.into_iter().find_map(|run| run.status.as_ref()?.generation);
        let mut views: Vec<RunView> = runs.iter().map(|run| self.run_view(run)).collect();
        let spec = serde_json::to_value(&deployment.spec).map_or_else(|_| String::new(), |spec| digest_of_spec(&spec));
        let before = deployment.status.as_ref().and_then(|status| status.destroyed.clone());
        let destroyed = destroyed_at(before.as_ref().map(|before| seconds_of(&before.time)), &views).map(|at| {
            let same = before.filter(|before| seconds_of(&before.time) == at);
            let time = OffsetDateTime::from_unix_timestamp(at).unwrap_or(now);
            same.unwrap_or_else(|| Destroyed { time: time_text(time), spec: spec.clone() })
        });
        // Somebody may have deleted the Run of a process that is still at work.
        let of_jobs = self.jobs.iter().flat_map(|jobs| jobs.runs_of(&name.0, &name.1));
        let unknown = self.children.runs_of(&name.0, &name.1).into_iter().chain(of_jobs);
        let unknown = unknown.filter(|run| !views.iter().any(|it| it.name == *run));
        let unknown: Vec<RunView> = unknown.map(RunView::without_object).collect();
        views.extend(unknown);
        let view = DeploymentView {
            generation,
            apply: deployment.spec.apply,
            paused: deployment.spec.paused,
            window: window_at(&deployment.spec.maintenance_windows, now),
            deleted: deployment.metadata.deletion_timestamp.is_some(),
            deletion_policy: deployment.spec.deletion_policy,
            look: look.map(look_view),
            changed_since_run: applied.is_some_and(|applied| applied != generation),
            destroyed: destroyed.is_some(),
            changed_since_destroyed: destroyed.as_ref().is_some_and(|destroyed| destroyed.spec != spec),
            looking: self.children.has(&Work::Look(name)),
            runs: views,
        };
        (view, destroyed)
    }

    /// Whether a Run has ended, or a process may still do it.
    pub(super) fn is_at_work(&self, run: &Run) -> bool {
        matches!(self.run_view(run).state, RunState::Ended { .. } | RunState::Running)
    }

    fn run_view(&self, run: &Run) -> RunView {
        let status = run.status.clone().unwrap_or_default();
        let work = Work::Run((run.namespace().unwrap_or_default(), run.name_any()));
        let (worker, uid) = (status.worker.as_ref(), run.uid().unwrap_or_default());
        let state = match status.succeeded() {
            Some(condition) if condition.status != "Unknown" => {
                self.heartbeats.forget(&uid);
                RunState::Ended {
                    well: condition.is_true(),
                    at: status.completion_time.as_deref().map_or(0, seconds_of),
                }
            }
            _ if self.children.may_begin(&work) || self.jobs.as_ref().is_some_and(|jobs| jobs.may_begin(run)) => {
                RunState::Running
            }
            // It said so itself.
            Some(condition) if condition.reason == INTERRUPTED => RunState::Lost,
            _ if worker.is_some_and(|worker| self.heartbeats.is_alive(&uid, &worker.heartbeat_time)) => {
                RunState::Running
            }
            _ if worker.is_some() => RunState::Lost,
            _ => RunState::Waiting,
        };
        RunView {
            name: run.name_any(),
            operation: run.spec.operation,
            plan_digest: run.spec.plan_digest.clone(),
            stop: run.spec.stop,
            deleted: run.metadata.deletion_timestamp.is_some(),
            attempts: status.attempts,
            has_changed: status.agreed.is_some(),
            state,
        }
    }
}

fn look_view(look: &Look) -> LookView {
    let plan = look.plan.as_ref().and_then(|plan| {
        Some(PlanView {
            digest: plan.digest.clone()?,
            refused: plan.refused.is_some(),
            removes: !plan.removals.is_empty(),
        })
    });
    LookView { at: seconds_of(&look.time), generation: look.generation, failed: look.error.is_some(), plan }
}

pub(super) fn seconds_of(text: &str) -> Seconds {
    OffsetDateTime::parse(text, &Rfc3339).map_or(0, OffsetDateTime::unix_timestamp)
}
