//! The processes that do the work: the commands of windlass that a person would type. Each records its run itself, and continues when the
//! server ends; the next server finds it in the store.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::problem::Problem;
use super::stores::Stores;
use crate::credentials::{HANDED, HandedSecrets};
use crate::runs::{RecordedRun, RunId};
use crate::value::mutex::Mutex;
use crate::value::process::mark_of;

/// How long a process may take until its run is in the store.
const LONGEST_START: Duration = Duration::from_secs(30);

/// How much of what a process printed is shown when it did not begin its run, in bytes.
const LONGEST_MESSAGE: u64 = 4096;

pub(super) struct Processes {
    program: PathBuf,
    options: Vec<String>,
    /// Of the store of runs.
    directory: PathBuf,
    most: usize,
    /// The runs whose processes this server started and that have not ended.
    there: Arc<Mutex<HashMap<RunId, Started>>>,
    /// Those that ignore SIGHUP.
    asked_to_stop: Mutex<HashSet<RunId>>,
}

/// A command to start.
pub(super) struct StartedCommand<'a> {
    pub deployment: &'a str,
    /// Who asked for it.
    pub by: &'a str,
    /// The same without the token.
    pub person: &'a str,
    pub arguments: &'a [String],
    /// It changes hosts: only one of a deployment may do so at once.
    pub changes: bool,
    /// For a stored document: the secrets that it may name. Its process trusts no document.
    pub handed: Option<HandedSecrets>,
}

/// A process that was started.
struct Started {
    deployment: String,
    changes: bool,
    person: String,
}

impl Processes {
    pub(super) fn new(program: PathBuf, options: Vec<String>, directory: &Path, most: usize) -> Processes {
        Processes {
            program,
            options,
            directory: directory.to_owned(),
            most,
            there: Arc::default(),
            asked_to_stop: Mutex::default(),
        }
    }

    /// The deployment of a run that this server started.
    pub(super) fn deployment_of(&self, run: RunId) -> Option<String> {
        self.there.lock().get(&run).map(|started| started.deployment.clone())
    }

    /// Where plans are kept, for this user alone.
    pub(super) fn plan_path(&self, run: RunId) -> PathBuf {
        self.directory.join("plans").join(format!("{run}.json"))
    }

    /// Asks a run to stop after its running tasks, however often it was asked.
    ///
    /// # Errors
    /// It is not running, or its process is not known here.
    pub(super) fn stop_run(&self, stores: &Stores, run: &RecordedRun) -> Result<(), Problem> {
        let not_running = || Err(Problem::conflict("NotRunning", "the run has ended"));
        if !run.running {
            return not_running();
        }
        let (id, pid) = (run.start.id, run.start.pid);
        let expected = stores.with_store(|store| Ok(store.process_of(id)))?;
        // The number may be that of another process in this container, on this machine, or by now.
        if expected.is_none() || expected != mark_of(pid) {
            let detail = "the process of the run is on another machine or in another container, or cannot be looked at";
            return Err(Problem::conflict("OtherProcess", detail).with_hint("stop the run where it was started"));
        }
        // Closing its terminal counts as a first Ctrl-C, and never as the second one, which ends tasks in the middle.
        let was_sent = match ignores_hangup(pid) {
            false => send(pid, Signal::HUP),
            true => !self.asked_to_stop.lock().insert(id) || send(pid, Signal::INT),
        };
        if was_sent { Ok(()) } else { not_running() }
    }

    /// Starts a command on a deployment, and waits until its run is in the store. May block.
    ///
    /// # Errors
    /// There are too many runs, or another one changes the deployment; or it did not begin, with what it printed.
    pub(super) fn start_command(
        &self,
        stores: &Stores,
        run: RunId,
        command: &StartedCommand<'_>,
    ) -> Result<RecordedRun, Problem> {
        {
            let mut there = self.there.lock();
            let is_changed = |started: &Started| started.changes && started.deployment == command.deployment;
            if command.changes && there.values().any(is_changed) {
                let detail = "another run that changes this deployment is under way";
                return Err(Problem::conflict("AlreadyRunning", detail));
            }
            if there.len() >= self.most {
                let detail = format!("{} runs are under way already, which is the most at once", self.most);
                return Err(Problem::conflict("TooManyRuns", detail).with_hint("wait until one has ended"));
            }
            // Those who only look leave room for others, and for a change.
            let looks = || there.values().filter(|started| !started.changes);
            let own = looks().filter(|started| started.person == command.person).count();
            if !command.changes && (looks().count() >= (self.most - 1).max(1) || own >= (self.most / 2).max(1)) {
                let detail = format!(
                    "too many runs that change nothing are under way; you have {own} of the {} that one person may have",
                    (self.most / 2).max(1)
                );
                return Err(Problem::conflict("TooManyRuns", detail).with_hint("wait until one has ended"));
            }
            let [deployment, person] = [command.deployment, command.person].map(str::to_owned);
            there.insert(run, Started { deployment, changes: command.changes, person });
        }
        let started = self.spawn(run, command);
        let (child, output) = started.inspect_err(|_| {
            self.there.lock().remove(&run);
        })?;
        self.until_recorded(stores, run, child, output)
    }

    fn spawn(&self, run: RunId, started: &StartedCommand<'_>) -> Result<(Child, File), Problem> {
        let failed = |error| Problem::internal(format!("cannot start {}: {error}", self.program.display()));
        // Not a pipe: the process is to continue when this one ends.
        let output = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(started.arguments).args(&self.options);
        command.arg(format!("--run-id={run}")).arg(format!("--run-by={}", started.by));
        command.env("WINDLASS_RUNS", "true").env("WINDLASS_RUNS_DIRECTORY", &self.directory);
        match &started.handed {
            None => command.env_remove(HANDED).stdin(Stdio::null()),
            Some(handed) => {
                command.env(HANDED, "stdin").env("WINDLASS_RESOURCE_TRUST", "foreign");
                command.stdin(handed.as_input().map_err(failed)?)
            }
        };
        command.stdout(Stdio::null()).stderr(output.try_clone().map_err(failed)?);
        // SAFETY: signal(2) may be called between fork and exec.
        #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
        unsafe {
            // It is stopped with SIGHUP, which the server ignores if nohup has started it.
            command.pre_exec(|| match libc::signal(libc::SIGHUP, libc::SIG_DFL) {
                libc::SIG_ERR => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        // A Ctrl-C on the server's terminal is not for it.
        let child = command.process_group(0).spawn().map_err(failed)?;
        Ok((child, output))
    }

    fn until_recorded(
        &self,
        stores: &Stores,
        run: RunId,
        mut child: Child,
        mut output: File,
    ) -> Result<RecordedRun, Problem> {
        let begun = Instant::now();
        let recorded = loop {
            let ended = child.try_wait();
            match stores.with_store(|store| store.read_run(run)) {
                Ok(Some(recorded)) => break Ok(recorded),
                Ok(None) => {}
                Err(error) => break Err(Problem::from(error)),
            }
            if !matches!(ended, Ok(None)) {
                break Err(Problem::conflict("NotStarted", printed(&mut output)));
            }
            if begun.elapsed() > LONGEST_START {
                break Err(Problem::internal(format!("the run {run} did not begin within {LONGEST_START:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if recorded.is_err() {
            if !matches!(child.try_wait(), Ok(None)) {
                self.there.lock().remove(&run);
                return recorded;
            }
            // What cannot be seen must not work.
            if !send(child.id(), Signal::INT) {
                tracing::warn!("cannot stop the process of run {run}");
            }
        }
        self.wait_for(run, child);
        recorded
    }

    /// Forgets a process when it has ended.
    fn wait_for(&self, run: RunId, mut child: Child) {
        let there = self.there.clone();
        let wait = move || {
            if let Err(error) = child.wait() {
                tracing::warn!("cannot wait for the process of run {run}: {error}");
            }
            there.lock().remove(&run);
        };
        if let Err(error) = std::thread::Builder::new().name("wait for run".into()).spawn(wait) {
            tracing::warn!("cannot wait for the process of run {run}: {error}");
            self.there.lock().remove(&run);
        }
    }
}

/// Sends a signal. Whether the process is there.
fn send(process: u32, signal: Signal) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Whether a process was started to outlive its terminal.
fn ignores_hangup(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

/// What a process printed before it ended.
fn printed(output: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = output.seek(SeekFrom::Start(0)).and_then(|_| output.take(LONGEST_MESSAGE).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match (read, text.trim()) {
        (Ok(_), text) if !text.is_empty() => text.to_owned(),
        _ => "the process ended without a message".to_owned(),
    }
}
