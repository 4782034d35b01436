//! The processes that the operator has started on this machine. They continue if the operator ends, unless it is the first process
//! of a container: the system ends them all with it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Command;

use super::decide::Seconds;
use crate::resource::status::{Look, short_message};
use crate::value::mutex::Mutex;
use crate::worker::SILENCE;

/// A look that takes longer is ended: a host that hangs must not keep others waiting.
const LONGEST_LOOK: Duration = Duration::from_secs(20 * 60);

/// How long a failure is remembered, in seconds: longer than any pause after one.
const LONGEST_MEMORY: Seconds = 7200;

/// A deployment or a Run: namespace and name.
pub(super) type Named = (String, String);

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// Looks at a deployment.
    Look(Named),
    /// Does a Run.
    Run(Named),
}

/// A process that is there.
#[derive(Debug, Clone)]
struct Child {
    id: u32,
    /// The deployment that it is about.
    deployment: String,
    since: Instant,
}

/// The processes that are there, and those that have ended without a result.
#[derive(Debug, Clone)]
pub(super) struct Children {
    program: PathBuf,
    /// The context of the kubeconfig.
    context: Option<String>,
    /// Options that every process gets.
    options: Vec<String>,
    there: Arc<Mutex<HashMap<Work, Child>>>,
    /// How often a process for this has failed to begin, and when it last did.
    failed: Arc<Mutex<HashMap<Work, (u32, Seconds)>>>,
}

impl Children {
    /// `program`: this program. `options`: of its sub-command worker.
    pub(super) fn new(program: PathBuf, context: Option<String>, options: Vec<String>) -> Children {
        Children { program, context, options, there: Arc::default(), failed: Arc::default() }
    }

    /// Whether a process does this.
    pub(super) fn has(&self, work: &Work) -> bool {
        self.there.lock().contains_key(work)
    }

    /// Whether a process for this was started so lately that it may not have said yet that it is there. One that says nothing for
    /// longer may be frozen, and is replaced: the lock on the hosts keeps it from changing anything.
    pub(super) fn may_begin(&self, work: &Work) -> bool {
        self.there.lock().get(work).is_some_and(|child| child.since.elapsed() < SILENCE)
    }

    /// The Runs of a deployment that processes do.
    pub(super) fn runs_of(&self, namespace: &str, deployment: &str) -> Vec<String> {
        let there = self.there.lock();
        let of_it = there.iter().filter(|(_, child)| child.deployment == deployment);
        let runs = of_it.filter_map(|(work, _)| match work {
            Work::Run((of, run)) if of == namespace => Some(run.clone()),
            _ => None,
        });
        runs.collect()
    }

    /// How many looks and how many runs there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        let there = self.there.lock();
        let looks = there.keys().filter(|work| matches!(work, Work::Look(_))).count();
        (looks, there.len() - looks)
    }

    /// Whether a process for this may be started now: after one that failed to begin, some time passes.
    pub(super) fn may_start(&self, work: &Work, now: Seconds) -> bool {
        let failed = self.failed.lock();
        !self.may_begin(work) && failed.get(work).is_none_or(|(count, at)| now >= at + (10 << (*count).min(6)))
    }

    /// Starts a process that does a Run, unless there are `most` already. Whether it did.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start_run(&self, namespace: &str, deployment: &str, run: &str, most: usize) -> std::io::Result<bool> {
        let work = Work::Run((namespace.to_owned(), run.to_owned()));
        let mut command = self.command(namespace, deployment);
        command.args(["--run", run]).stdout(Stdio::null());
        let Some(mut child) = self.begin(&mut command, &work, deployment, most)? else { return Ok(false) };
        let (children, id) = (self.clone(), child.id().unwrap_or_default());
        tokio::spawn(async move {
            let ended = child.wait().await;
            // Another one may have been started in its place.
            if children.there.lock().get(&work).is_some_and(|child| child.id == id) {
                children.end(&work, ended.is_ok_and(|status| status.success()));
            }
        });
        Ok(true)
    }

    /// Starts a process that looks at the hosts of a deployment, unless there are `most` already. The future gives what it found; it is
    /// there until [`Children::end`].
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start_look(
        &self,
        namespace: &str,
        deployment: &str,
        most: usize,
    ) -> std::io::Result<Option<impl Future<Output = Look> + Send + use<>>> {
        let work = Work::Look((namespace.to_owned(), deployment.to_owned()));
        let mut command = self.command(namespace, deployment);
        command.arg("--look").stdout(Stdio::piped());
        let Some(child) = self.begin(&mut command, &work, deployment, most)? else { return Ok(None) };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Some(async move {
            let Ok(ended) = tokio::time::timeout(LONGEST_LOOK, child.wait_with_output()).await else {
                // It is the leader of its group.
                if let Some(Err(error)) = group.map(|group| kill_process_group(group, Signal::KILL)) {
                    tracing::warn!("cannot end a look: {error}");
                }
                let why = format!("it did not end within {} minutes", LONGEST_LOOK.as_secs() / 60);
                return Look { error: Some(why), ..Look::default() };
            };
            let look = match ended {
                Ok(output) => serde_json::from_slice(&output.stdout)
                    .map_err(|_| format!("the process that looks at the hosts ended with {}", output.status)),
                Err(error) => Err(error.to_string()),
            };
            look.unwrap_or_else(|why| Look { error: Some(short_message(&why)), ..Look::default() })
        }))
    }

    /// Starts a process, unless there are `most` of its kind: nobody else starts one meanwhile.
    fn begin(
        &self,
        command: &mut Command,
        work: &Work,
        deployment: &str,
        most: usize,
    ) -> std::io::Result<Option<tokio::process::Child>> {
        let mut there = self.there.lock();
        let is_look = |work: &Work| matches!(work, Work::Look(_));
        if there.keys().filter(|other| is_look(other) == is_look(work) && *other != work).count() >= most {
            return Ok(None);
        }
        let process = command.spawn()?;
        let id = process.id().unwrap_or_default();
        there.insert(work.clone(), Child { id, deployment: deployment.to_owned(), since: Instant::now() });
        Ok(Some(process))
    }

    /// Asks all processes to end after the tasks that are running, and waits until those that do Runs have.
    pub(super) async fn stop_all(&self) {
        let ids: Vec<u32> = self.there.lock().values().map(|child| child.id).collect();
        for id in ids {
            let process = i32::try_from(id).ok().and_then(Pid::from_raw);
            // What it has started itself, it ends itself.
            if let Some(Err(error)) = process.map(|process| kill_process(process, Signal::TERM)) {
                tracing::debug!("cannot end the process {id}: {error}");
            }
        }
        while self.counts().1 > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Notes that a process has ended, and whether it did its work.
    pub(super) fn end(&self, work: &Work, well: bool) {
        self.there.lock().remove(work);
        let mut failed = self.failed.lock();
        if well {
            failed.remove(work);
        } else {
            let entry = failed.entry(work.clone()).or_default();
            *entry = (entry.0.saturating_add(1), super::now());
            // Those that nobody tries again.
            failed.retain(|_, (_, at)| *at + LONGEST_MEMORY > super::now());
        }
    }

    fn command(&self, namespace: &str, deployment: &str) -> Command {
        let context = self.context.as_ref().map_or_else(String::new, |context| format!("{context}/"));
        let mut command = Command::new(&self.program);
        command
            .args(["worker", "-f", &format!("kube:{context}{namespace}/{deployment}")])
            .args(&self.options)
            .stdin(Stdio::null())
            // Ctrl-C at the terminal of the operator is not for them.
            .process_group(0);
        command
    }
}
