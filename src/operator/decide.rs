//! What to do next for one deployment: a function of what is known, without any input or output of its own.

use super::window::Window;
use crate::resource::{ApplyPolicy, DeletionPolicy, RunOperation};

/// A time in seconds since 1970.
pub type Seconds = i64;

/// What is known of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentView {
    pub generation: i64,
    pub apply: ApplyPolicy,
    pub paused: bool,
    /// Whether a change may begin.
    pub window: Window,
    /// Its object was deleted, and waits for its finalizer.
    pub deleted: bool,
    pub deletion_policy: DeletionPolicy,
    /// The last look at its hosts.
    pub look: Option<LookView>,
    /// The spec has another generation than when the last run began.
    pub changed_since_run: bool,
    /// A run has destroyed it, and nothing was installed since.
    pub destroyed: bool,
    /// The spec says something else about the hosts than when it was destroyed.
    pub changed_since_destroyed: bool,
    /// A process looks at its hosts now.
    pub looking: bool,
    /// In the order of their creation.
    pub runs: Vec<RunView>,
}

/// What the last look has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookView {
    pub at: Seconds,
    /// Of the spec that it compared the hosts with.
    pub generation: i64,
    /// The hosts could not be looked at.
    pub failed: bool,
    /// What an apply would do. None: nothing.
    pub plan: Option<PlanView>,
}

/// A plan that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanView {
    pub digest: String,
    /// A stage of it cannot be applied.
    pub refused: bool,
    /// It removes members.
    pub removes: bool,
}

/// A Run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    pub name: String,
    pub operation: RunOperation,
    pub plan_digest: Option<String>,
    pub stop: bool,
    /// Somebody may have deleted its object.
    pub deleted: bool,
    /// How many processes have begun it.
    pub attempts: i32,
    /// It may have changed hosts.
    pub has_changed: bool,
    pub state: RunState,
}

impl RunView {
    /// A Run whose object is gone while a process does it.
    pub fn without_object(name: String) -> RunView {
        RunView {
            name,
            operation: RunOperation::Apply,
            plan_digest: None,
            stop: true,
            deleted: true,
            attempts: 1,
            has_changed: true,
            state: RunState::Running,
        }
    }
}

/// How far a Run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// No process has begun it.
    Waiting,
    /// A process does it.
    Running,
    /// The process that did it has ended in the middle.
    Lost,
    Ended {
        well: bool,
        at: Seconds,
    },
}

/// What the operator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long after a look the next one begins.
    pub look_every: Seconds,
    /// Whether another run may begin; all deployments share the limit.
    pub may_run: bool,
    /// Whether another look may begin.
    pub may_look: bool,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a process that looks at the hosts.
    Look,
    /// Start a process for a Run.
    Start(String),
    /// Create a Run that applies this plan.
    Apply { digest: String },
    /// End a Run that no process does, for this reason.
    End { run: String, reason: &'static str },
    /// Delete the object of a Run that has ended long ago.
    Forget(String),
    /// Let the object of the deployment go.
    Release,
}

/// Why nothing is changed now although something should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    Paused,
    /// No maintenance window is open before this time.
    OutsideWindow {
        until: Seconds,
    },
    /// Runs of other deployments come first.
    Queued,
    /// The plan waits for a Run that names it.
    AwaitingApproval,
    /// A stage of the plan cannot be applied.
    PlanRefused,
    /// The last run of this plan has failed; the next one begins at this time.
    BackOff {
        until: Seconds,
    },
    /// The object was deleted, and a Run has to destroy the deployment first.
    AwaitingDestroy,
    /// A Run has destroyed it, and nobody asked for it again.
    Destroyed,
    /// The hosts are looked at; a Run waits for the end of that.
    Looking,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    pub actions: Vec<Action>,
    pub blocked: Option<Blocked>,
    /// In how many seconds to decide again, if nothing happens before.
    pub again: Seconds,
}

/// How soon to decide again while a process runs.
const WATCH: Seconds = 15;

/// How soon to decide again while other deployments have their turn.
const TURN: Seconds = 2;

/// After a look that failed.
const RETRY_LOOK: Seconds = 60;

/// The first pause after a run that failed; it doubles with each further one.
const FIRST_PAUSE: Seconds = 60;
const LONGEST_PAUSE: Seconds = 3600;

/// After so many processes that have ended in the middle of a Run, no other one is started.
const MOST_ATTEMPTS: i32 = 5;

/// How many Runs that have ended are kept, beside the newest one that failed.
pub const KEPT_RUNS: usize = 20;

/// What to do for a deployment now.
pub fn decide(view: &DeploymentView, limits: Limits, now: Seconds) -> Decision {
    let mut decision = Decision { again: WATCH, ..Decision::default() };
    decision.actions.extend(forgotten(&view.runs).map(Action::Forget));
    if view.runs.iter().any(|run| run.state == RunState::Running) {
        return decision;
    }
    let mut open = Vec::new();
    for run in view.runs.iter().filter(|run| matches!(run.state, RunState::Waiting | RunState::Lost)) {
        match ended(view, run) {
            Some(reason) => decision.actions.push(Action::End { run: run.name.clone(), reason }),
            None => open.push(run),
        }
    }
    // One that was begun comes first: it may have left something half done.
    open.sort_by_key(|run| run.state != RunState::Lost);
    let paused = |run: &RunView| view.paused && run.operation.changes_hosts();
    // One that may have changed hosts is resumed at any time: they are half changed.
    let closed = |run: &RunView| match view.window {
        Window::Closed { until } if !run.has_changed && run.operation.waits_for_window() => Some(until),
        _ => None,
    };
    if let Some(run) = open.iter().find(|run| !paused(run) && closed(run).is_none()).or(open.first()) {
        // Frequent backups do not keep the hosts from being looked at.
        let due = |look: &LookView| is_due(view, look, limits, now);
        let is_look_due = !view.deleted && !view.looking && view.look.as_ref().is_none_or(due);
        if !run.operation.changes_hosts() && is_look_due && limits.may_look {
            decision.actions.push(Action::Look);
            return decision;
        }
        match (paused(run), closed(run), limits.may_run) {
            (true, ..) => decision.blocked = Some(Blocked::Paused),
            (false, Some(until), _) => {
                decision.blocked = Some(Blocked::OutsideWindow { until });
                decision.again = (until - now).clamp(1, limits.look_every);
            }
            (false, None, false) => {
                decision.blocked = Some(Blocked::Queued);
                decision.again = TURN;
            }
            // A look would compare with what the run changes.
            (false, None, true) if view.looking => decision.blocked = Some(Blocked::Looking),
            (false, None, true) => decision.actions.push(Action::Start(run.name.clone())),
        }
        return decision;
    }
    if view.deleted {
        match view.deletion_policy == DeletionPolicy::Keep || view.destroyed {
            true => decision.actions.push(Action::Release),
            false => decision.blocked = Some(Blocked::AwaitingDestroy),
        }
        return decision;
    }
    let Some(look) = view.look.as_ref().filter(|look| !view.looking && !is_due(view, look, limits, now)) else {
        match limits.may_look {
            _ if view.looking => {}
            true => decision.actions.push(Action::Look),
            false => decision.again = TURN,
        }
        decision.blocked = still_blocked(view, limits, now);
        return decision;
    };
    decision.again = (next_look(look, limits) - now).max(1);
    if let Some(plan) = look.plan.as_ref().filter(|_| !look.failed) {
        plan_is_there(view, plan, limits, now, &mut decision);
    }
    decision
}

/// What a plan waits for while the hosts are looked at again: the same as before, as long as it is about the same spec and no run has
/// ended since.
fn still_blocked(view: &DeploymentView, limits: Limits, now: Seconds) -> Option<Blocked> {
    let is_current =
        |look: &&LookView| !look.failed && look.generation == view.generation && !has_ended_since(view, look);
    let look = view.look.as_ref().filter(is_current)?;
    let mut decision = Decision::default();
    plan_is_there(view, look.plan.as_ref()?, limits, now, &mut decision);
    decision.blocked
}

/// What becomes of a plan that is not empty.
fn plan_is_there(view: &DeploymentView, plan: &PlanView, limits: Limits, now: Seconds, decision: &mut Decision) {
    if view.paused {
        decision.blocked = Some(Blocked::Paused);
        return;
    }
    if plan.refused {
        decision.blocked = Some(Blocked::PlanRefused);
        return;
    }
    if view.apply == ApplyPolicy::Automatic && view.destroyed && !view.changed_since_destroyed {
        decision.blocked = Some(Blocked::Destroyed);
        return;
    }
    match view.apply {
        ApplyPolicy::Never => {}
        ApplyPolicy::Approve => decision.blocked = Some(Blocked::AwaitingApproval),
        ApplyPolicy::Automatic if plan.removes => decision.blocked = Some(Blocked::AwaitingApproval),
        ApplyPolicy::Automatic => {
            let until = pause_until(&view.runs);
            if let Window::Closed { until } = view.window {
                decision.blocked = Some(Blocked::OutsideWindow { until });
                decision.again = decision.again.min((until - now).max(1));
            } else if until > now {
                decision.blocked = Some(Blocked::BackOff { until });
                decision.again = decision.again.min(until - now);
            } else if limits.may_run {
                decision.actions.push(Action::Apply { digest: plan.digest.clone() });
                decision.again = WATCH;
            } else {
                decision.blocked = Some(Blocked::Queued);
                decision.again = TURN;
            }
        }
    }
}

/// When a run has destroyed the deployment, if nothing was installed since. `before`: as it was known before, as the Run may have
/// been deleted.
pub fn destroyed_at(before: Option<Seconds>, runs: &[RunView]) -> Option<Seconds> {
    runs.iter().fold(before, |destroyed, run| match (run.operation, run.state) {
        (RunOperation::Destroy, RunState::Ended { well: true, at }) => destroyed.max(Some(at)),
        (RunOperation::Destroy, _) => destroyed,
        // A run that is older than that has not installed anything since.
        (_, RunState::Ended { at, .. }) if run.has_changed => destroyed.filter(|destroyed| at < *destroyed),
        (..) if run.has_changed => None,
        _ => destroyed,
    })
}

/// Why a run that no process does is ended without being done.
fn ended(view: &DeploymentView, run: &RunView) -> Option<&'static str> {
    let newer = view.runs.iter().rev().take_while(|other| other.name != run.name);
    let replaced = || {
        newer.into_iter().any(|other| {
            other.operation == RunOperation::Apply && other.state == RunState::Waiting && !other.stop && !other.deleted
        })
    };
    if run.stop || run.deleted {
        Some("Stopped")
    } else if view.deleted && run.operation != RunOperation::Destroy {
        Some("DeploymentDeleted")
    } else if run.operation == RunOperation::Apply && run.state == RunState::Waiting && replaced() {
        Some("Superseded")
    } else if run.state == RunState::Lost && run.attempts >= MOST_ATTEMPTS {
        Some("WorkersEnded")
    } else {
        None
    }
}

/// Whether the hosts are to be looked at again.
fn is_due(view: &DeploymentView, look: &LookView, limits: Limits, now: Seconds) -> bool {
    look.generation != view.generation || has_ended_since(view, look) || now >= next_look(look, limits)
}

/// Whether a run has ended after a look, so that the hosts may be others.
fn has_ended_since(view: &DeploymentView, look: &LookView) -> bool {
    let mut changes = view.runs.iter().filter(|run| run.operation.changes_hosts());
    changes.any(|run| matches!(run.state, RunState::Ended { at, .. } if at >= look.at))
}

fn next_look(look: &LookView, limits: Limits) -> Seconds {
    look.at + if look.failed { RETRY_LOOK.min(limits.look_every) } else { limits.look_every }
}

/// Until when nothing is applied by itself, as runs have failed one after the other.
fn pause_until(runs: &[RunView]) -> Seconds {
    let ended = runs.iter().rev().filter(|run| run.operation == RunOperation::Apply);
    let mut failures = 0u32;
    let mut last = Seconds::MIN;
    for run in ended {
        match run.state {
            RunState::Ended { well: false, at } => {
                failures += 1;
                last = last.max(at);
            }
            RunState::Ended { well: true, .. } => break,
            _ => {}
        }
    }
    match failures {
        0 => Seconds::MIN,
        _ => last.saturating_add((FIRST_PAUSE << (failures - 1).min(10)).min(LONGEST_PAUSE)),
    }
}

/// The Runs that have ended and are not kept.
fn forgotten(runs: &[RunView]) -> impl Iterator<Item = String> {
    let mut forgotten = Vec::new();
    // Frequent backups do not push the others out.
    for changes in [true, false] {
        let of_kind = || runs.iter().rev().filter(move |run| run.operation.changes_hosts() == changes);
        let failed = |run: &&RunView| matches!(run.state, RunState::Ended { well: false, .. });
        let newest_failure = of_kind().find(failed).map(|run| &run.name);
        let ended = of_kind().filter(|run| matches!(run.state, RunState::Ended { .. }) && !run.deleted);
        let old = ended.skip(KEPT_RUNS).map(|run| &run.name).filter(|name| Some(*name) != newest_failure);
        forgotten.extend(old.cloned());
    }
    forgotten.into_iter()
}

#[cfg(test)]
mod tests;
