//! From options and settings to a run: what `windlass playbook` and `windlass run` have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use tokio::sync::mpsc::unbounded_channel;

use super::options::{self, ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::reporting::{self, Reporting};
use super::{ExitCode, Failure, extra_vars, interrupt, retry, vault};
use crate::engine::{self, Job, Known, Recap, Tags};
use crate::inventory::Inventory;
use crate::playbook::Play;
use crate::playbook::load::Loader;
use crate::report::Form;
use crate::settings::{Settings, list};
use crate::template::Templar;
use crate::value::vault::Keyring;
use crate::value::{Value, Vars};

/// What is read before any play is: variables, the inventory, the loader of plays.
pub struct Launch {
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
    pub fn new(
        settings: &Settings,
        source: &InventorySource,
        vault: &VaultPasswords,
        run: &RunArgs,
    ) -> Result<Launch, Failure> {
        let keyring = Arc::new(vault::keyring(vault, settings)?);
        let extra_vars = Arc::new(extra_vars::read(&run.extra_vars, &keyring)?);
        let sources = source.inventories(settings);
        let inventory = Inventory::load_with(&sources, &keyring, options::hash_behaviour(settings))?;
        let templar = Templar::new();
        let known = Arc::new(Known { templar: templar.clone() });
        let roles_path = settings.list(&list::ROLES_PATH).into_iter().map(Into::into).collect();
        let mut loader = Loader::new(known, keyring.clone(), extra_vars.clone(), roles_path);
        loader.unsaid = options::unsaid(settings);
        let has_inventory = !sources.is_empty() || !settings.bool(&list::LOCALHOST_WARNING);
        Ok(Launch { inventory, loader, has_inventory, limit: source.limit.clone(), keyring, extra_vars, templar })
    }

    /// Says what is odd but not wrong in the inventory and in what was loaded so far.
    pub fn warn(&self) {
        self.inventory.warnings.iter().for_each(|warning| super::warn(warning));
        self.loader.take_warnings().iter().for_each(super::warn_of);
    }

    /// Refuses a limit that leaves no host; warns when plays name hosts and there is no inventory.
    pub fn check_hosts(&self, playbooks: &[Vec<Arc<Play>>]) -> Result<(), Failure> {
        if !self.has_inventory && playbooks.iter().flatten().any(needs_inventory) {
            super::warn("no inventory was given: there is only localhost (-i names an inventory)");
        }
        match &self.limit {
            Some(limit) => super::check_limit(&self.inventory, limit),
            None => Ok(()),
        }
    }

    /// The job; how hosts are reached comes with [`log_in`].
    pub fn job(
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
            forks: run.forks.unwrap_or_else(|| settings.number(&list::FORKS) as usize),
            verbosity: reporting.verbosity(settings),
            extra_vars: self.extra_vars,
            defaults: engine::Defaults::default(),
            options: engine::Options {
                flush_cache: run.flush_cache,
                offline: run.offline.clone(),
                ..options::engine(settings)?
            },
            keyring: self.keyring,
            templar: self.templar,
            loader: Arc::new(self.loader),
            prompted: Vars::new(),
            directory: std::env::current_dir().context("the working directory is gone")?,
            hold: None,
        })
    }
}

fn needs_inventory(play: &Arc<Play>) -> bool {
    let localhost = |name: &Value| matches!(name.to_string().as_str(), "localhost" | "127.0.0.1" | "::1");
    !localhost(&play.hosts.value)
}

/// Says how hosts are reached; asks for the passwords that were asked for, which no report shows.
pub fn log_in(job: &mut Job, connection: &ConnectionArgs, settings: &Settings) -> Result<(), Failure> {
    job.defaults = connection.defaults(settings)?;
    for password in job.defaults.password.iter().chain(&job.defaults.become_password) {
        job.keyring.hidden.add(password.reveal());
    }
    Ok(())
}

/// Bytes of stack for the run: as deeply as includes may be nested, and values that a template builds on its way,
/// whatever `ulimit -s` is. It takes memory as it is used.
const STACK: usize = 128 << 20;

/// Runs the job; its events are told as they come, on standard output in the `usual` form unless `--output` says
/// otherwise. Ctrl-C once stops after the tasks in flight, twice at once. Hosts that fail are written to `retry_file`.
pub fn go(
    reporting: &Reporting,
    settings: &Settings,
    usual: Form,
    job: Job,
    retry_file: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_stack_size(STACK)
            .build()
            .context("cannot start")?;
        let code = runtime.block_on(told(reporting, settings, usual, job, retry_file));
        // A thread may wait for a pipe that nobody writes to.
        runtime.shutdown_background();
        code
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).context("cannot start")?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

async fn told(
    reporting: &Reporting,
    settings: &Settings,
    usual: Form,
    job: Job,
    retry_file: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let reports = reporting.open(&job.keyring.hidden, settings, usual, job.fence().as_ref())?;
    let (sender, receiver) = unbounded_channel();
    let teller = tokio::spawn(reports.tell(receiver));
    let stopping = Arc::new(AtomicBool::new(false));
    let twice = interrupt::listen(stopping.clone(), &sender).context("cannot listen for interrupts")?;
    let result = tokio::select! {
        result = engine::run(job, sender.clone(), stopping) => Some(result),
        Ok(()) = twice => None,
    };
    drop(sender);
    let ending = teller.await.context("the report came to a bad end")?;
    let code = match result {
        None => ExitCode::Interrupted,
        Some(Ok(recap)) => {
            if let Some(file) = retry_file {
                retry::write(file, &recap)?;
            }
            exit_code(&recap)
        }
        Some(Err(error)) => {
            reporting::exit_code(&ending, ExitCode::Error);
            return Err(match error {
                engine::Error::Complaint(complaint) => complaint.into(),
                error => anyhow::Error::new(error).into(),
            });
        }
    };
    Ok(reporting::exit_code(&ending, code))
}

fn exit_code(recap: &Recap) -> ExitCode {
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
