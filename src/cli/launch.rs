//! From options to a run, and from its end to an exit code: what the sub-commands that run something have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::interrupt::Interrupts;
use super::options::{ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::print::{PrintCopy, PrintCopying};
use super::recording::{self, StartedCommand};
use super::reporting::{self, Reporting};
use super::{CliError, ExitCode, extra_vars, retry, vault};
use crate::connection::Fence;
use crate::deployment::{Outcome, members};
use crate::engine::{CommandEvent, Event, Job, Recap, Stream, TimedEvent};
use crate::inventory::Inventory;
use crate::launch::{Control, Launch, RunOptions, options};
use crate::playbook::Play;
use crate::report::{self, OutputFormat};
use crate::runs::{RunId, RunOutcome};
use crate::settings::{Settings, list};
use crate::value::{SecretTexts, Value};

/// What is read before any play is, with what the options of a run say.
pub(super) fn launch(
    settings: &Settings,
    source: &InventorySource,
    vault: &VaultPasswords,
    run: &RunArgs,
) -> Result<Launch, CliError> {
    let keyring = Arc::new(vault::keyring(vault, settings)?);
    let reading = options::reading(settings)?;
    let extra_vars = Arc::new(extra_vars::read_extra_vars(&run.extra_vars, &keyring, &reading.duplicates)?);
    let sources = source.inventories(settings);
    let inventory = Inventory::load_with(&sources, &keyring, &reading)?;
    let mut launch = Launch::over(settings, inventory, source.limit.clone(), keyring, extra_vars);
    launch.loader.library.splice(0..0, run.module_path.iter().cloned());
    Ok(launch)
}

/// What the options say of a run.
pub(super) fn manner(run: &RunArgs, reporting: &Reporting, settings: &Settings) -> Result<RunOptions, CliError> {
    Ok(RunOptions {
        check: run.check,
        diff: run.diff,
        forks: run.forks,
        verbosity: reporting.verbosity(settings),
        offline: run.offline.besides.clone(),
        flush_cache: run.flush_cache,
        directory: super::working_directory()?,
    })
}

/// Says what is odd but not wrong in the inventory and in what was loaded so far.
pub(super) fn warn(launch: &Launch) {
    launch.inventory.warnings.iter().for_each(|warning| super::warn(warning));
    launch.loader.take_warnings().iter().for_each(super::warn_of);
}

/// Refuses a limit that leaves no host; warns when plays name hosts and there is no inventory.
pub(super) fn check_hosts(
    launch: &Launch,
    playbooks: &[Vec<Arc<Play>>],
    source: &InventorySource,
    settings: &Settings,
) -> Result<(), CliError> {
    let has_inventory = !source.inventories(settings).is_empty() || !settings.bool(&list::LOCALHOST_WARNING);
    if !has_inventory && playbooks.iter().flatten().any(needs_inventory) {
        super::warn("no inventory given: using only localhost (-i names an inventory)");
    }
    match &launch.limit {
        // Who is in these groups is not known before the control plane was asked.
        Some(limit) if !launch.inventory.deployments.is_empty() && members::names_members(limit) => Ok(()),
        Some(limit) => super::check_limit(&launch.inventory, limit),
        None => Ok(()),
    }
}

fn needs_inventory(play: &Arc<Play>) -> bool {
    let localhost = |name: &Value| matches!(name.to_string().as_str(), "localhost" | "127.0.0.1" | "::1");
    !localhost(&play.hosts.value)
}

/// Returns how to connect to hosts; prompts for the requested passwords, which no report shows.
pub(super) fn log_in(job: &mut Job, connection: &ConnectionArgs, settings: &Settings) -> Result<(), CliError> {
    connection.refuse_own_login(&job.inventory)?;
    job.defaults = connection.defaults(settings)?;
    for password in job.defaults.password.iter().chain(&job.defaults.become_password) {
        job.keyring.hidden.add_secret(password.reveal());
    }
    Ok(())
}

/// Bytes of stack for the run: as deeply as includes may be nested, and values that a template builds on its way,
/// whatever `ulimit -s` is. It takes memory as it is used.
pub(super) const STACK: usize = 128 << 20;

/// Runs the job; its events are reported as they come, on standard output in the `usual` form unless `--output` says
/// otherwise. Ctrl-C once stops after the tasks in flight, twice at once. Hosts that fail are written to `retry_file`.
pub(super) fn go(
    reporting: &Reporting,
    settings: &Settings,
    usual: OutputFormat,
    command: StartedCommand,
    job: Job,
    retry_file: Option<&Path>,
) -> Result<ExitCode, CliError> {
    wait(async || {
        let (hidden, fence) = (&job.keyring.hidden, job.fence());
        let mut telling =
            ReportSession::open_report_session(reporting, settings, usual, (None, command), hidden, fence.as_ref())?;
        if let Err(failure) = telling.until_recorded().await {
            return telling.end_with(Err(failure)).await;
        }
        let done = match telling.control.run(job).await {
            Ok(None) => Ok(ExitCode::Interrupted),
            Ok(Some(recap)) => {
                let written = retry_file.map_or(Ok(()), |file| retry::write_retry_file(file, &recap));
                written.map(|()| exit_code(&recap)).map_err(CliError::from)
            }
            Err(error) => Err(error.into()),
        };
        telling.end_with(done).await
    })
}

/// How long threads may take to end with their runtime. A thread may block on a pipe without a writer.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs a command line on a thread with enough stack, and with the one runtime of the process around it: whatever waits on the
/// way, in a run or before one, waits there. All threads have ended when this returns: `exit` is not safe beside threads that run,
/// and glibc's `pthread_detach` crashes on a thread that ends in the same moment (its stack is too large to be kept, so what
/// `pthread_detach` reads is no longer mapped).
///
/// # Errors
/// The system has no threads left.
pub(super) fn with_runtime<T: Send>(work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_stack_size(STACK)
            .build()
            .context("cannot start")?;
        let inside = runtime.enter();
        let done = work();
        drop(inside);
        runtime.shutdown_timeout(FAREWELL);
        Ok(done)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).context("cannot start")?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Does work that waits, in the runtime of [`with_runtime`].
pub(super) fn wait<T>(work: impl AsyncFnOnce() -> T) -> T {
    tokio::runtime::Handle::current().block_on(work())
}

/// Reports that are open, for one run or for several in turn.
pub(super) struct ReportSession {
    pub run: RunId,
    pub control: Control,
    copy: PrintCopy,
    /// Of what this thread prints, until the reports are closed.
    copying: PrintCopying,
    reporter: JoinHandle<report::ReportOutcome>,
    /// None: nobody needs the record.
    recorded: Option<oneshot::Receiver<Result<(), String>>>,
    /// Listens until the reports are closed.
    _interrupts: Interrupts,
}

impl ReportSession {
    /// Opens the reports and listens for Ctrl-C. Without an id, the run gets a new one. To be called within the runtime.
    pub(super) fn open_report_session(
        reporting: &Reporting,
        settings: &Settings,
        usual: OutputFormat,
        (id, command): (Option<RunId>, StartedCommand),
        hidden: &SecretTexts,
        fence: Option<&Fence>,
    ) -> Result<ReportSession, CliError> {
        let id = id.or(reporting.run_id);
        let run = id.unwrap_or_else(|| RunId::new_at(SystemTime::now()));
        let mut record =
            if command.recorded || reporting.run_id.is_some() { recording::record_settings(settings) } else { None };
        // The program that gave the run its id finds it by its record alone.
        let recorded = record.as_mut().filter(|_| reporting.run_id.is_some()).map(|record| {
            let (sender, receiver) = oneshot::channel();
            record.started = Some(sender);
            receiver
        });
        let reports = reporting.open_reporting(hidden, settings, usual, fence, run, record)?;
        let (events, receiver) = unbounded_channel();
        send_event(
            &events,
            command.start(&settings.surroundings, reporting.verbosity(settings), reporting.run_by.as_deref()),
        );
        let reporter = tokio::spawn(reports.follow_events(receiver));
        let stopping = Arc::new(AtomicBool::new(false));
        let (end, at_once) = watch::channel(false);
        let interrupts = Interrupts::listen(stopping.clone(), end, &events).context("cannot listen for interrupts")?;
        let copy = PrintCopy { events: events.downgrade(), json: reporting.prints_json() };
        let copying = PrintCopying::start_copying(copy.clone());
        let control = Control { events, stopping, at_once };
        Ok(ReportSession { run, control, copy, copying, reporter, recorded, _interrupts: interrupts })
    }

    /// Waits until the start of a run with a given id is recorded. Nothing must be done before.
    pub(super) async fn until_recorded(&mut self) -> Result<(), CliError> {
        let Some(recorded) = self.recorded.take() else { return Ok(()) };
        let why = match recorded.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => "the report ended".to_owned(),
        };
        Err(anyhow::anyhow!("cannot record the run, so nothing was done: {why}").into())
    }

    /// For what other threads print.
    pub(super) fn print_copy(&self) -> PrintCopy {
        self.copy.clone()
    }

    /// Closes the reports. What they could not tell makes an exit code of success one of failure.
    async fn close_reports(self, outcome: RunOutcome, code: ExitCode) -> Result<ExitCode, CliError> {
        let end = CommandEvent::End { outcome: outcome.outcome_word(), exit_code: code as u8 };
        send_event(&self.control.events, end);
        drop((self.control, self.copying));
        let ending = self.reporter.await.context("internal error: writing the report panicked")?;
        Ok(reporting::exit_code(&ending, code))
    }

    /// Closes the reports after work that ended so; a failure of the work is the one that counts.
    pub(super) async fn end_with(self, done: Result<ExitCode, CliError>) -> Result<ExitCode, CliError> {
        match done {
            Ok(code) => self.close_reports(recording::outcome_of_code(code), code).await,
            Err(failure) => {
                // It is printed when the reports are closed.
                let text = super::failure_text(&failure);
                send_event(&self.control.events, CommandEvent::Message { stream: Stream::Stderr, text });
                let code = if matches!(failure, CliError::Written(_)) { ExitCode::Parse } else { ExitCode::Error };
                self.close_reports(RunOutcome::Error, code).await?;
                Err(failure)
            }
        }
    }
}

fn send_event(events: &UnboundedSender<TimedEvent>, event: CommandEvent) {
    #[expect(clippy::let_underscore_must_use, reason = "reports that ended early say so themselves")]
    let _ = events.send(Event::Command(event).into());
}

/// What a run's end makes of the program's.
pub(super) fn exit_code(recap: &Recap) -> ExitCode {
    Outcome::of_recap(recap).into()
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Ok => ExitCode::Ok,
            Outcome::Refused => ExitCode::Error,
            Outcome::Failed => ExitCode::Failed,
            Outcome::Unreachable => ExitCode::Unreachable,
            Outcome::Interrupted => ExitCode::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::Ordering;

    use super::*;

    /// Ends with its thread, and takes its time for it.
    struct Slow(Arc<AtomicBool>);

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(200));
            self.0.store(true, Ordering::SeqCst);
        }
    }

    thread_local! {
        static SLOW: RefCell<Option<Slow>> = const { RefCell::new(None) };
    }

    #[test]
    fn every_thread_of_a_runtime_has_ended_when_the_work_is_done() {
        let ended: Arc<AtomicBool> = Arc::default();
        let slow = Slow(ended.clone());
        let work = async || -> anyhow::Result<()> {
            tokio::task::spawn_blocking(|| SLOW.set(Some(slow))).await?;
            Ok(())
        };
        with_runtime(|| wait(work)).unwrap().unwrap();
        assert!(ended.load(Ordering::SeqCst), "a thread was left running");
    }

    #[test]
    fn a_thread_that_waits_for_ever_does_not_keep_the_program_from_ending() {
        let (keep, wait) = std::sync::mpsc::channel::<()>();
        let blocks = async || {
            tokio::task::spawn_blocking(move || wait.recv());
        };
        with_runtime(|| super::wait(blocks)).unwrap();
        assert_eq!(keep.send(()), Ok(()), "the thread no longer waits");
    }
}
