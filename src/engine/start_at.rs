//! `--start-at-task`: the first task of that name, and its play.

use std::sync::Arc;

use super::Job;
use super::host::HostRun;
use crate::playbook::{Play, Step, Task};
use crate::value::origin::Diagnostic;

/// Where a run begins.
pub(crate) struct StartPoint {
    play: Arc<Play>,
    task: Arc<Task>,
    reached: std::sync::atomic::AtomicBool,
}

impl StartPoint {
    /// What the job says; None: at the beginning.
    ///
    /// # Errors
    /// No task is called so.
    pub(super) fn of_job(job: &Job) -> Result<Option<StartPoint>, Diagnostic> {
        let Some(name) = &job.options.start_at_task else { return Ok(None) };
        let wrong = |message: String| Diagnostic::new(message, None);
        let glob = fancy_regex::Regex::new(&crate::inventory::glob(name))
            .map_err(|error| wrong(format!("invalid pattern in --start-at-task {name:?}: {error}")))?;
        let fits = |text: &str| text == name || glob.is_match(text).unwrap_or(false);
        for play in job.playbooks.iter().flatten() {
            let sections = [&play.pre_tasks, &play.roles, &play.tasks, &play.post_tasks];
            let mut tasks = sections.into_iter().flat_map(|section| listed(section));
            if let Some(task) = tasks.find(|task| names(task).iter().any(|name| fits(name))) {
                return Ok(Some(StartPoint { play: play.clone(), task, reached: false.into() }));
            }
        }
        Err(wrong(format!("no such task: {name:?}")).hint(
            "--list-tasks shows task names, without those of include_tasks and include_role, which are known only \
             during the run",
        ))
    }

    /// Whether a play comes before the start.
    pub(super) fn skips(&self, play: &Arc<Play>) -> bool {
        let here = Arc::ptr_eq(&self.play, play);
        if here {
            self.reached.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        !self.reached.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// What the hosts of a play wait for.
    pub(super) fn awaited(&self, play: &Arc<Play>) -> Option<Arc<Task>> {
        Arc::ptr_eq(&self.play, play).then(|| self.task.clone())
    }
}

/// Every task in order, including those that run only after a failure.
fn listed(steps: &[Step]) -> Vec<Arc<Task>> {
    let mut tasks = Vec::new();
    for step in steps {
        match step {
            Step::Task(task) => tasks.push(task.clone()),
            Step::Include(include) => tasks.push(include.task.clone()),
            Step::Block(block) => {
                tasks.extend([&block.steps, &block.rescue, &block.always].into_iter().flat_map(|inner| listed(inner)));
            }
        }
    }
    tasks
}

/// As written, alone and with its role; of a task without one, its module.
fn names(task: &Task) -> Vec<String> {
    let own = task.name.as_ref().map_or_else(|| task.action.doc.name.to_owned(), ToString::to_string);
    let long = task.role.as_ref().map(|role| format!("{} : {own}", role.name));
    std::iter::once(own).chain(long).collect()
}

/// Divides hosts that come to a task into those that run it and those that wait for a later one.
pub(super) fn arrive(task: &Arc<Task>, hosts: Vec<HostRun>) -> (Vec<HostRun>, Vec<HostRun>) {
    let arrived = |mut host: HostRun| {
        host.waits_for = host.waits_for.filter(|awaited| !Arc::ptr_eq(awaited, task));
        host
    };
    hosts.into_iter().map(arrived).partition(|host| host.waits_for.is_none())
}
