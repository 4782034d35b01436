//! The run: a [`Job`] goes in, [`Event`]s come out. Knows no terminal, no command line and no file layout.
//!
//! A host goes into a task and comes out of it by value ([`host::HostRun`]); a failed task is a [`Status`] of that
//! host and no error. A strategy is a way to group hosts: `linear` is one group, `free` is each host a group.

mod arguments;
mod asynchronous;
mod batch;
mod block;
mod command_event;
mod event;
mod fact_cache;
mod failure_limit;
mod handlers;
mod hooks;
mod host;
mod include;
mod item;
mod keyword;
mod loader_context;
mod loops;
pub mod masking;
mod meta;
mod notify;
mod options;
mod play;
mod pool;
mod precedence;
mod special_variables;
mod start_at;
mod stats;
mod step;
mod tags;
mod target;
mod task;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use indexmap::IndexMap;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

pub use command_event::{CommandEvent, CommandStart, Stream};
pub use event::{Counts, Event, HostFailures, Recap, Status, TaskResult, TaskStart, TimedEvent};
pub use loader_context::BuildContext;
pub use options::{FactCache, Gathering, Options};
pub use special_variables::VARIABLES;
pub use stats::Stats;
pub use tags::Tags;
pub use target::Defaults;

use crate::connection::{Connectors, Fence, Open, Target};
use crate::inventory::{Inventory, VarsFiles};
use crate::modules::Caches;
use crate::playbook::load::Loader;
use crate::playbook::{Keywords, Play};
use crate::remote::{Become, DeploymentLease};
use crate::template::Templar;
use crate::value::mutex::{Mutex, RwLock};
use crate::value::vault::Keyring;
use crate::value::{Template, Value, Vars};

/// What a run was asked to do, everything loaded and checked.
pub struct Job {
    /// Playbook by playbook, play by play; a playbook is not begun when one before it failed.
    pub playbooks: Vec<Vec<Arc<Play>>>,
    pub inventory: Inventory,
    pub limit: Option<String>,
    pub tags: Tags,
    pub check: bool,
    pub diff: bool,
    pub forks: usize,
    pub verbosity: u8,
    pub extra_vars: Arc<Vars>,
    /// What the command line says of connections; inventory variables win.
    pub defaults: Defaults,
    pub options: Options,
    pub keyring: Arc<Keyring>,
    pub templar: Arc<Templar>,
    pub loader: Arc<Loader>,
    /// Runs that belong together share it.
    pub caches: Arc<Caches>,
    /// Answers to `vars_prompt`, which the caller asks before the run: by variable name.
    pub prompted: Vars,
    /// The person's working directory.
    pub directory: PathBuf,
    /// What the run holds: it guards every change. None: other runs may make changes at the same time.
    pub hold: Option<DeploymentLease>,
}

impl Job {
    /// The limits of an offline run; None: the run is not offline.
    pub fn fence(&self) -> Option<Fence> {
        let besides = self.options.offline.as_ref()?;
        let addresses = self.inventory.hosts.keys().flat_map(|host| {
            let vars = self.inventory.vars_of(host, None);
            let address =
                ["ansible_host", "ansible_ssh_host"].iter().find_map(|name| Some(vars.get(*name)?.to_string()));
            std::iter::once(host.to_string()).chain(address)
        });
        Some(Fence::new(Arc::new(Connectors), addresses, besides.iter().map(String::as_str)))
    }
}

/// A run cannot continue at all (a single host's failure is not such an error).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Complaint(#[from] crate::value::origin::Diagnostic),
    #[error(transparent)]
    Template(#[from] crate::template::Error),
    #[error("{0}")]
    FactCache(String),
    #[error("{0}")]
    Credentials(String),
}

/// What never changes during a run, and the few things that are shared: the pool of connections, what hosts publish
/// for `hostvars`, the counts.
pub(crate) struct Run {
    job: Job,
    inventory: RwLock<Inventory>,
    /// The variable files beside the playbook of the present play.
    beside: RwLock<Arc<VarsFiles>>,
    /// The variable `groups`; built again when the inventory changes.
    groups: RwLock<Arc<Vars>>,
    pool: pool::Pool,
    board: host::PublishedVars,
    counts: Mutex<IndexMap<Arc<str>, Counts>>,
    stats: Mutex<Stats>,
    /// What became of hosts in the end.
    lost: Mutex<HostFailures>,
    forks: Semaphore,
    /// `--start-at-task`.
    start: Option<start_at::StartPoint>,
    step: step::StepMode,
    events: UnboundedSender<TimedEvent>,
    /// Tasks that were announced.
    announced: AtomicUsize,
    stopping: Arc<AtomicBool>,
}

impl Run {
    fn send_event(&self, event: Event) {
        #[expect(clippy::let_underscore_must_use, reason = "a change is not interrupted because its report ended")]
        let _ = self.events.send(event.into());
    }

    /// Reports the warnings of files that were read meanwhile.
    fn warn(&self) {
        for complaint in self.job.loader.take_warnings() {
            self.send_event(Event::Warning(complaint.to_string()));
        }
    }

    /// The next [`TaskStart::id`].
    fn next_id(&self) -> usize {
        self.announced.fetch_add(1, Ordering::Relaxed)
    }

    fn count(&self, host: &Arc<str>, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.lock();
        add(counts.entry(host.clone()).or_default());
    }

    /// How many tasks ran on a host, well or not.
    fn ran(&self, host: &str) -> usize {
        let counts = self.counts.lock();
        counts.get(host).map_or(0, |counts| counts.ok + counts.failed + counts.rescued)
    }

    /// The layer that holds the variable `groups`.
    fn groups(&self) -> Arc<Vars> {
        self.groups.read().clone()
    }

    /// Changes the inventory while plays run (`add_host`, `group_by`).
    fn change_inventory(&self, change: impl FnOnce(&mut Inventory)) {
        let mut inventory = self.inventory.write();
        change(&mut inventory);
        *self.groups.write() = precedence::groups_layer(&inventory);
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Runs all plays. `stopping`: once true, no further task is begun. The recap is also the last event.
pub async fn run(job: Job, events: UnboundedSender<TimedEvent>, stopping: Arc<AtomicBool>) -> Result<Recap, Error> {
    let ways: Arc<dyn Open> = match job.fence() {
        Some(fence) => Arc::new(fence),
        None => Arc::new(Connectors),
    };
    run_over(job, ways, events, stopping).await
}

/// As [`run`], with connections opened by `ways`.
pub async fn run_over(
    job: Job,
    ways: Arc<dyn Open>,
    events: UnboundedSender<TimedEvent>,
    stopping: Arc<AtomicBool>,
) -> Result<Recap, Error> {
    let begun = Instant::now();
    let groups = RwLock::new(precedence::groups_layer(&job.inventory));
    let inventory = RwLock::new(job.inventory.clone());
    let cache = job.options.fact_cache.clone().filter(|_| job.inventory.confined.is_none());
    let cache = cache.map(|place| fact_cache::Cache::open_cache(place, events.clone(), job.templar.surroundings()));
    let cache = cache.transpose().map_err(Error::FactCache)?;
    if let Some(cache) = cache.as_ref().filter(|_| job.options.flush_cache) {
        job.inventory.hosts.keys().for_each(|host| cache.forget_host(host));
    }
    let board = host::PublishedVars::new(cache);
    let forks = Semaphore::new(job.forks.max(1));
    let run = Arc::new(Run {
        inventory,
        beside: RwLock::default(),
        groups,
        pool: pool::Pool::new(ways, job.options.uploads, job.hold.clone()),
        start: start_at::StartPoint::of_job(&job)?,
        step: step::StepMode::of_job(&job),
        board,
        counts: Mutex::default(),
        stats: Mutex::default(),
        lost: Mutex::default(),
        forks,
        events,
        announced: AtomicUsize::default(),
        stopping,
        job,
    });
    let result = play::run_plays(&run).await;
    run.pool.close().await;
    if let Some(credentials) = &run.job.inventory.credentials {
        credentials.save().await.map_err(Error::Credentials)?;
    }
    result?;
    let recap = Recap {
        hosts: run.counts.lock().clone(),
        stats: run.stats.lock().clone(),
        lost: run.lost.lock().clone(),
        took: begun.elapsed(),
        interrupted: run.stopping(),
    };
    run.send_event(Event::Recap(recap.clone()));
    Ok(recap)
}

/// How a host is reached outside of any play, and as whom: by its variables, and by what the job says of all.
pub fn reach(job: &Job, host: &str) -> Result<(Target, Option<Become>), crate::template::Error> {
    let scope = precedence::outside_of_plays(job, host);
    let keywords = Keywords::default();
    Ok((target::target(job, host, &keywords, &scope)?, target::become_user(job, &keywords, &scope)?))
}

/// A variable of a host outside of any play, rendered. None: it has no such variable.
pub fn variable(job: &Job, host: &str, name: &str) -> Result<Option<Value>, crate::template::Error> {
    let scope = precedence::outside_of_plays(job, host);
    scope.get(name).map(|raw| job.templar.render(raw, &scope)).transpose()
}

/// A template of windlass's own, rendered with the variables of a host outside of any play.
///
/// # Errors
/// A variable of the host is not what the template expects, or cannot be rendered.
pub fn rendered(job: &Job, host: &str, template: &str) -> Result<Value, crate::template::Error> {
    let scope = precedence::outside_of_plays(job, host);
    job.templar.render(&Template::template_value(template, None), &scope)
}

/// The hosts of a play's pattern within the limit, as `--list-hosts` shows them.
pub fn hosts_of(job: &Job, play: &Play) -> Result<Vec<Arc<str>>, Error> {
    play::select(job, &job.inventory, play).map(|selected| selected.hosts)
}
