//! From options and settings to a run: what `windlass playbook` and `windlass run` have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::interrupt::Interrupts;
use super::options::{self, ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::reporting::{self, Reporting};
use super::{ExitCode, Failure, extra_vars, retry, vault};
use crate::connection::Fence;
use crate::engine::{self, Event, Job, Known, Recap, Tags, Told};
use crate::inventory::Inventory;
use crate::playbook::Play;
use crate::playbook::load::{Loader, Words};
use crate::report::{self, Form};
use crate::settings::{Settings, list};
use crate::template::Templar;
use crate::value::vault::Keyring;
use crate::value::{Hidden, Value, Vars};

/// What is read before any play is: variables, the inventory, the loader of plays.
pub(super) struct Launch {
    pub inventory: Inventory,
    pub loader: Loader,
    /// Whether anything names hosts beside the implicit localhost.
    pub has_inventory: bool,
    limit: Option<String>,
    keyring: Arc<Keyring>,
    extra_vars: Arc<Vars>,
    templar: Arc<Templar>,
}

impl Launch {
    pub(super) fn new(
        settings: &Settings,
        source: &InventorySource,
        vault: &VaultPasswords,
        run: &RunArgs,
    ) -> Result<Launch, Failure> {
        let keyring = Arc::new(vault::keyring(vault, settings)?);
        let extra_vars = Arc::new(extra_vars::read(&run.extra_vars, &keyring)?);
        let mut launch = Launch::with(settings, source, keyring, extra_vars)?;
        launch.loader.library.splice(0..0, run.module_path.iter().cloned());
        Ok(launch)
    }

    /// As [`Launch::new`], with passwords that were asked for and variables that were read before.
    pub(super) fn with(
        settings: &Settings,
        source: &InventorySource,
        keyring: Arc<Keyring>,
        extra_vars: Arc<Vars>,
    ) -> Result<Launch, Failure> {
        let sources = source.inventories(settings);
        let inventory = Inventory::load_with(&sources, &keyring, &options::reading(settings)?)?;
        let templar = Templar::lenient(settings.bool(&list::ALLOW_BROKEN_CONDITIONALS));
        let known = Arc::new(Known { templar: templar.clone() });
        let paths = |setting| settings.list(setting).into_iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut loader = Loader::new(known, keyring.clone(), extra_vars.clone(), paths(&list::ROLES_PATH));
        loader.unsaid = options::unsaid(settings);
        loader.collections = paths(&list::COLLECTIONS_PATH);
        loader.library = paths(&list::LIBRARY);
        loader.words = Words { filters: paths(&list::FILTER_PLUGINS), lookups: paths(&list::LOOKUP_PLUGINS) };
        let has_inventory = !sources.is_empty() || !settings.bool(&list::LOCALHOST_WARNING);
        Ok(Launch { inventory, loader, has_inventory, limit: source.limit.clone(), keyring, extra_vars, templar })
    }

    /// Says what is odd but not wrong in the inventory and in what was loaded so far.
    pub(super) fn warn(&self) {
        self.inventory.warnings.iter().for_each(|warning| super::warn(warning));
        self.keyring.duplicates.take().iter().chain(&self.loader.take_warnings()).for_each(super::warn_of);
    }

    /// Refuses a limit that leaves no host; warns when plays name hosts and there is no inventory.
    pub(super) fn check_hosts(&self, playbooks: &[Vec<Arc<Play>>]) -> Result<(), Failure> {
        if !self.has_inventory && playbooks.iter().flatten().any(needs_inventory) {
            super::warn("no inventory given: using only localhost (-i names an inventory)");
        }
        match &self.limit {
            // Who is in these groups is not known before the control plane was asked.
            Some(limit) if !self.inventory.deployments.is_empty() && super::clusters::names(limit) => Ok(()),
            Some(limit) => super::check_limit(&self.inventory, limit),
            None => Ok(()),
        }
    }

    /// The job; how hosts are reached comes with [`log_in`].
    pub(super) fn job(
        self,
        playbooks: Vec<Vec<Arc<Play>>>,
        tags: Tags,
        run: &RunArgs,
        reporting: &Reporting,
        settings: &Settings,
    ) -> Result<Job, Failure> {
        Ok(Job {
            playbooks,
            inventory: self.inventory,
            limit: self.limit,
            tags,
            check: run.check,
            diff: run.diff || settings.bool(&list::DIFF_ALWAYS),
            forks: run.forks.unwrap_or_else(|| settings.count(&list::FORKS)),
            verbosity: reporting.verbosity(settings),
            extra_vars: self.extra_vars,
            defaults: engine::Defaults::default(),
            options: engine::Options {
                flush_cache: run.flush_cache,
                offline: run.offline.besides.clone(),
                ..options::engine(settings)?
            },
            keyring: self.keyring,
            templar: self.templar,
            loader: Arc::new(self.loader),
            prompted: Vars::new(),
            directory: std::env::current_dir().context("the working directory does not exist any more")?,
            hold: None,
        })
    }
}

fn needs_inventory(play: &Arc<Play>) -> bool {
    let localhost = |name: &Value| matches!(name.to_string().as_str(), "localhost" | "127.0.0.1" | "::1");
    !localhost(&play.hosts.value)
}

/// Says how hosts are reached; asks for the passwords that were asked for, which no report shows.
pub(super) fn log_in(job: &mut Job, connection: &ConnectionArgs, settings: &Settings) -> Result<(), Failure> {
    connection.refuse_own_logins(&job.inventory)?;
    job.defaults = connection.defaults(settings)?;
    for password in job.defaults.password.iter().chain(&job.defaults.become_password) {
        job.keyring.hidden.add(password.reveal());
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
    usual: Form,
    job: Job,
    retry_file: Option<&Path>,
) -> Result<ExitCode, Failure> {
    in_runtime(async || {
        let mut telling = Telling::open(reporting, settings, usual, &job.keyring.hidden, job.fence().as_ref())?;
        let code = match telling.run(job).await {
            Ok(None) => ExitCode::Interrupted,
            Ok(Some(recap)) => {
                if let Some(file) = retry_file {
                    retry::write(file, &recap)?;
                }
                exit_code(&recap)
            }
            Err(failure) => {
                telling.end(ExitCode::Error).await?;
                return Err(failure);
            }
        };
        telling.end(code).await
    })
}

/// How long threads may take to end with their runtime. One of them may wait for a pipe that nobody writes to.
const FAREWELL: Duration = Duration::from_secs(2);

/// Does work that waits, on threads that have the stack for it. All of them have ended when this returns: `exit` is not
/// safe beside threads that run, and glibc's `pthread_detach` crashes on a thread that ends in the same moment (its
/// stack is too large to be kept, so what `pthread_detach` reads is no longer mapped).
pub(super) fn in_runtime<T, E>(work: impl AsyncFnOnce() -> Result<T, E> + Send) -> Result<T, E>
where
    T: Send,
    E: From<anyhow::Error> + Send,
{
    let work = || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_stack_size(STACK)
            .build()
            .context("cannot start")?;
        let done = runtime.block_on(work());
        runtime.shutdown_timeout(FAREWELL);
        done
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).context("cannot start")?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reports that are open, for one run or for several in turn.
pub(super) struct Telling {
    sender: UnboundedSender<Told>,
    teller: JoinHandle<report::Ending>,
    stopping: Arc<AtomicBool>,
    interrupts: Interrupts,
}

impl Telling {
    /// Opens the reports and listens for Ctrl-C. To be called within the runtime.
    pub(super) fn open(
        reporting: &Reporting,
        settings: &Settings,
        usual: Form,
        hidden: &Hidden,
        fence: Option<&Fence>,
    ) -> Result<Telling, Failure> {
        let reports = reporting.open(hidden, settings, usual, fence)?;
        let (sender, receiver) = unbounded_channel();
        let teller = tokio::spawn(reports.tell(receiver));
        let stopping = Arc::new(AtomicBool::new(false));
        let interrupts = Interrupts::listen(stopping.clone(), &sender).context("cannot listen for interrupts")?;
        Ok(Telling { sender, teller, stopping, interrupts })
    }

    /// Whether Ctrl-C said that nothing further is to be begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Runs a job, and tells of it. None: it was ended at once.
    ///
    /// # Errors
    /// It could not go on; its lock was taken over by another run.
    pub(super) async fn run(&mut self, job: Job) -> Result<Option<Recap>, Failure> {
        let sender = self.sender.clone();
        self.work(job, sender).await
    }

    /// Runs a job without telling of it; `each` sees its events.
    pub(super) async fn watch(&mut self, job: Job, mut each: impl FnMut(&Event)) -> Result<Option<Recap>, Failure> {
        let (sender, mut receiver) = unbounded_channel::<Told>();
        let watching = async {
            while let Some(told) = receiver.recv().await {
                each(&told.event);
            }
        };
        let (recap, ()) = tokio::join!(self.work(job, sender), watching);
        recap
    }

    async fn work(&mut self, job: Job, sender: UnboundedSender<Told>) -> Result<Option<Recap>, Failure> {
        let hold = job.hold.clone();
        let lost = async {
            match &hold {
                Some(hold) => hold.lease.lost().await,
                None => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            result = engine::run(job, sender, self.stopping.clone()) => result,
            () = self.interrupts.twice() => return Ok(None),
            why = lost => return Err(anyhow::anyhow!("the run was stopped: {why}").into()),
        };
        result.map(Some).map_err(|error| match error {
            engine::Error::Complaint(complaint) => complaint.into(),
            error => anyhow::Error::new(error).into(),
        })
    }

    /// Closes the reports. What they could not tell makes an exit code of success one of failure.
    pub(super) async fn end(self, code: ExitCode) -> Result<ExitCode, Failure> {
        drop(self.sender);
        let ending = self.teller.await.context("internal error: writing the report panicked")?;
        Ok(reporting::exit_code(&ending, code))
    }
}

/// What a run's end makes of the program's.
pub(super) fn exit_code(recap: &Recap) -> ExitCode {
    if recap.interrupted {
        ExitCode::Interrupted
    } else if recap.lost.unreachable {
        ExitCode::Unreachable
    } else if recap.lost.failed {
        ExitCode::Failed
    } else {
        ExitCode::Ok
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

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
        in_runtime(work).unwrap();
        assert!(ended.load(Ordering::SeqCst), "a thread was left running");
    }

    #[test]
    fn a_thread_that_waits_for_ever_does_not_keep_the_program_from_ending() {
        let (keep, wait) = std::sync::mpsc::channel::<()>();
        in_runtime(async || -> anyhow::Result<()> {
            tokio::task::spawn_blocking(move || wait.recv());
            Ok(())
        })
        .unwrap();
        assert_eq!(keep.send(()), Ok(()), "the thread no longer waits");
    }
}
