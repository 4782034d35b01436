//! The events of a run: the engine's only output.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indexmap::IndexMap;

use super::{CommandEvent, Stats};
use crate::modules::question::Question;
use crate::modules::{Diff, Progress};
use crate::value::{Origin, Value, Vars, mapping};

/// An event and when it happened: reports may come to it later.
#[derive(Debug, Clone)]
pub struct TimedEvent {
    pub at: SystemTime,
    pub event: Event,
}

impl From<Event> for TimedEvent {
    fn from(event: Event) -> Self {
        TimedEvent { at: SystemTime::now(), event }
    }
}

/// In the order they happen; results of one task come in the order in which the hosts finish it.
#[derive(Debug, Clone)]
pub enum Event {
    PlayStart {
        name: String,
        origin: Origin,
        hosts: Vec<Arc<str>>,
        check: bool,
    },
    /// Another batch of the play's hosts begins (`serial`); the first one begins with the play.
    NextBatch,
    /// A play's pattern matched no host.
    NoHosts {
        pattern: String,
    },
    TaskStart(Arc<TaskStart>),
    /// All hosts are done with it; of an include: with what it included.
    TaskEnd(Arc<TaskStart>),
    /// A host begins a task; `what` is a further word (`installing`) or empty.
    HostStart {
        task: Arc<TaskStart>,
        host: Arc<str>,
    },
    /// One item of a loop is done.
    Item {
        task: Arc<TaskStart>,
        host: Arc<str>,
        delegated: Option<String>,
        label: String,
        result: Arc<TaskResult>,
    },
    /// A host finished a task. `looped`: its items had their own events.
    Result {
        task: Arc<TaskStart>,
        host: Arc<str>,
        delegated: Option<String>,
        looped: bool,
        result: Arc<TaskResult>,
    },
    /// `until` does not hold yet.
    Retry {
        task: Arc<TaskStart>,
        host: Arc<str>,
        attempt: u64,
        left: u64,
        result: Arc<TaskResult>,
    },
    /// The status of a task with `async` was queried, and it still runs. `elapsed` since its start, of `limit`.
    AsyncPoll {
        task: Arc<TaskStart>,
        host: Arc<str>,
        job: String,
        elapsed: Duration,
        limit: Duration,
    },
    Progress {
        host: Arc<str>,
        progress: Progress,
    },
    /// A task asks the person something; see [`Question`].
    Question(Question),
    /// A `meta` task was come to by a host, or by the first one for all where that is what it means.
    Meta {
        task: Arc<TaskStart>,
        host: Arc<str>,
        /// Its `when` was false.
        skipped: bool,
    },
    /// A file or role was included for some hosts.
    Included {
        what: String,
        /// The file, if it is one and was found.
        path: Option<PathBuf>,
        /// The item of the include's loop.
        item: Option<String>,
        hosts: Vec<Arc<str>>,
    },
    /// No host is left. `percentage`: more hosts failed than `max_fail_percentage` allows.
    NoHostsLeft {
        percentage: bool,
    },
    Warning(String),
    /// The last one of a run.
    Recap(Recap),
    /// Of the command that starts runs, between and around them.
    Command(CommandEvent),
}

/// A task as the reports name it.
#[derive(Debug, Clone)]
pub struct TaskStart {
    /// Another one for every `TaskStart` of a run.
    pub id: usize,
    /// Rendered (of a `no_log` task: as written), with `role : ` before it, as people read it.
    pub name: String,
    pub role: Option<Arc<str>>,
    /// The module.
    pub action: &'static str,
    pub origin: Origin,
    pub handler: bool,
    /// Its hosts that will run it at the most; for progress.
    pub hosts: usize,
}

/// What became of a task on a host.
#[derive(Debug, Clone, PartialEq, Eq, Copy)]
pub enum Status {
    Ok,
    Changed,
    Skipped,
    /// Failed, but `ignore_errors` made it continue.
    Ignored,
    Failed,
    Unreachable,
}

/// A task's result on a host, as `register` keeps it.
#[derive(Debug, Clone)]
pub struct TaskResult {
    pub status: Status,
    pub changed: bool,
    /// One line or more for the person.
    pub message: Option<String>,
    /// What to do about a failure.
    pub hint: Option<String>,
    /// Return values of the module.
    pub values: Vars,
    pub diff: Vec<Diff>,
    /// Values and diff are not to be shown.
    pub no_log: bool,
    pub took: Duration,
}

impl TaskResult {
    pub fn failed(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Unreachable)
    }
}

/// Counts by host, in inventory order.
#[derive(Debug, Clone, Default)]
pub struct Recap {
    pub hosts: IndexMap<Arc<str>, Counts>,
    /// `set_stats`.
    pub stats: Stats,
    pub lost: HostFailures,
    pub took: Duration,
    pub interrupted: bool,
}

/// The final state of hosts, which the run's exit code reports: without failures that were rescued, or that
/// `meta: clear_host_errors` forgave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFailures {
    pub failed: BTreeSet<Arc<str>>,
    pub unreachable: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub ok: usize,
    pub changed: usize,
    pub unreachable: usize,
    pub failed: usize,
    pub skipped: usize,
    pub rescued: usize,
    pub ignored: usize,
}

/// A result as a variable.
pub(crate) fn registered(result: &TaskResult) -> Value {
    mapping(result_vars(result))
}

/// What a registered result holds.
pub(crate) fn result_vars(result: &TaskResult) -> Vars {
    let mut vars = result.values.clone();
    vars.insert("changed".into(), Value::from(result.changed));
    if result.status == Status::Unreachable {
        vars.insert("unreachable".into(), Value::from(true));
    }
    let skipped = result.status == Status::Skipped;
    if skipped {
        vars.insert("skipped".into(), Value::from(true));
    }
    // A task that did not run because of a condition, or without items, neither failed nor succeeded.
    let not_run = skipped && ["skip_reason", "results"].iter().any(|reason| vars.contains_key(*reason));
    if !not_run && !vars.contains_key("unreachable") {
        let failed = matches!(result.status, Status::Failed | Status::Ignored);
        vars.entry("failed".into()).or_insert_with(|| Value::from(failed));
    }
    if let Some(message) = &result.message {
        vars.entry("msg".into()).or_insert_with(|| Value::from(message.as_str()));
    }
    vars
}
