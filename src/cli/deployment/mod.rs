//! What `windlass plan`, `apply`, `upgrade`, `status`, `destroy` and others have in common: which deployment is meant, and how a person follows
//! what is done.

pub(super) mod apply;
pub(super) mod destroy;
pub(super) mod etcd;
pub(super) mod operation;
pub(super) mod plan;
pub(super) mod plan_text;
mod progress_messages;
pub(super) mod status;
pub(super) mod worker;

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;

use super::launch::{self, ReportSession};
use super::options::{ConnectionArgs, InventorySource, Offline, VaultPasswords};
use super::print::PrintCopying;
use super::recording::StartedCommand;
use super::reporting::Reporting;
use super::{CliError, ExitCode, carried, extra_vars, vault};
use crate::deployment::plan::PlanRequest;
use crate::deployment::{Control, Error, Progress, Site, lock};
use crate::launch::options;
use crate::report::{OutputFormat, harmless};
use crate::runs::RunId;
use crate::value::mutex::Mutex;
use crate::value::ownership::{written_by_others, written_by_others_below};
use crate::value::truth;

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    /// The deployment: a file with a KarmadaDeployment, or kube:NAMESPACE/NAME
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Instead of -f: an inventory with the groups of a deployment; with -f: a further inventory
    #[arg(short = 'i', long = "inventory", value_name = "INVENTORY")]
    inventory: Vec<String>,
    /// Variables: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// Directory with etcd.yml, karmada.yml and the others (default: ./playbooks if it has them, else those in windlass)
    #[arg(long, value_name = "DIRECTORY")]
    playbooks: Option<PathBuf>,
    /// How many hosts to work on at once (20 unless configured)
    #[arg(long, value_name = "FORKS")]
    forks: Option<usize>,
    #[command(flatten)]
    offline: Offline,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    #[command(flatten)]
    pub reporting: Reporting,
}

impl SiteArgs {
    /// Reads what the options name, and asks for passwords. `files` are inventories beside those of `-i`.
    fn site(&self, files: &[PathBuf]) -> Result<Site, CliError> {
        let settings = super::settings()?;
        let named = self.file.iter().chain(files).map(|file| file.display().to_string());
        let source = InventorySource { inventory: named.chain(self.inventory.clone()).collect(), limit: None };
        let keyring = Arc::new(vault::keyring(&self.vault, &settings)?);
        let duplicates = options::reading(&settings)?.duplicates;
        let extra_vars = Arc::new(extra_vars::read_extra_vars(&self.extra_vars, &keyring, &duplicates)?);
        let site = Site {
            sources: source.inventories(&settings),
            keyring,
            duplicates,
            extra_vars,
            defaults: self.connection.defaults(&settings)?,
            own_login: self.connection.own_login(),
            playbooks: match self.playbooks.clone().or_else(playbooks_here) {
                Some(directory) => directory,
                None => carried::playbooks(&settings.surroundings).map_err(anyhow::Error::new)?,
            },
            directory: super::working_directory()?,
            forks: self.forks,
            offline: self.offline.besides.clone(),
            verbosity: self.reporting.verbosity(&settings),
            caches: Arc::default(),
            settings,
        };
        Ok(site.checked()?)
    }

    /// A command on the deployment of the options, as records and locks name it.
    fn command(&self, name: &str) -> StartedCommand {
        let command = StartedCommand::named(name).option("-f", self.file.as_ref().map(|file| file.display()));
        self.inventory.iter().fold(command, |command, inventory| command.option("-i", Some(inventory)))
    }

    /// Does work on a deployment, whose runs are reported as the options say.
    fn carry_out(
        &self,
        command: StartedCommand,
        files: &[PathBuf],
        work: impl AsyncFnOnce(&Site, &Control) -> Result<ExitCode, CliError> + Send,
    ) -> Result<ExitCode, CliError> {
        self.carry_out_as(None, command, files, work)
    }

    /// As [`SiteArgs::carry_out`], with an id that the caller knows before. None: a new one.
    fn carry_out_as(
        &self,
        id: Option<RunId>,
        command: StartedCommand,
        files: &[PathBuf],
        work: impl AsyncFnOnce(&Site, &Control) -> Result<ExitCode, CliError> + Send,
    ) -> Result<ExitCode, CliError> {
        let site = self.site(files)?;
        let done = launch::wait(async || {
            let mut telling = self.telling(id, command, &site).await?;
            if let Err(failure) = telling.until_recorded().await {
                return telling.end_with(Err(failure)).await;
            }
            let (copy, events) = (telling.print_copy(), telling.control.events.clone());
            let warned = Mutex::new(HashSet::new());
            let control = Control {
                id: telling.run,
                run: telling.control.clone(),
                progress: Arc::new(move |progress| {
                    // Each stage may find the same.
                    if let Progress::Warning(words) = &progress
                        && !warned.lock().insert(words.clone())
                    {
                        return;
                    }
                    let copying = PrintCopying::start_copying(copy.clone());
                    progress_messages::print_progress(&progress);
                    drop(copying);
                    progress_messages::send_progress(progress, &events);
                }),
            };
            let done = work(&site, &control).await;
            drop(control);
            telling.end_with(done).await
        });
        done.map_err(|failure: CliError| failure.masked(&site.keyring.hidden))
    }

    /// Opens the reports of the runs.
    async fn telling(
        &self,
        id: Option<RunId>,
        command: StartedCommand,
        site: &Site,
    ) -> Result<ReportSession, CliError> {
        let usual = match id.is_some() || self.reporting.verbosity(&site.settings) > 0 {
            // A worker's output is a log that nobody watches.
            true => OutputFormat::Human,
            false => OutputFormat::Summary,
        };
        // Only a run that connects only to its own hosts needs to know them.
        let fence = match &self.offline.besides {
            None => None,
            Some(_) => site.read_inventory().await?.fence()?,
        };
        ReportSession::open_report_session(
            &self.reporting,
            &site.settings,
            usual,
            (id, command),
            &site.keyring.hidden,
            fence.as_ref(),
        )
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        let hint = match &error {
            Error::Run(_) => None,
            Error::NoSource => Some("pass -f FILE, a file with a KarmadaDeployment"),
            Error::Lock(lock::Error::Held(_)) => Some(
                "wait until it has ended, or take over its lock with --break-lock: then it can change nothing more",
            ),
            _ => None,
        };
        match (error, hint) {
            (Error::Run(error), _) => error.into(),
            (error, Some(hint)) => anyhow!("{error}\nhint: {hint}").into(),
            (error, None) => anyhow::Error::new(error).into(),
        }
    }
}

/// A command with the options of what is planned, as records and locks name it.
fn with_request(command: StartedCommand, request: &PlanRequest) -> StartedCommand {
    let by_force = (!request.remove_by_force.is_empty()).then(|| request.remove_by_force.join(","));
    command.option("--limit", request.limit.as_ref()).option("--remove-by-force", by_force)
}

/// `./playbooks`, if it has those of windlass. Not if another user may have written them.
fn playbooks_here() -> Option<PathBuf> {
    let here = Path::new("playbooks");
    if !here.join("karmada.yml").is_file() {
        return None;
    }
    let writable = || -> std::io::Result<Option<PathBuf>> {
        let roles = Path::new("roles");
        let mut found = written_by_others(here)?;
        for directory in [here, roles].into_iter().filter(|directory| directory.is_dir()) {
            found = found.or(written_by_others(directory)?).or(written_by_others_below(directory)?);
        }
        Ok(found)
    };
    if let Some(writable) = writable().unwrap_or_else(|_| Some(here.to_owned())) {
        super::note(&format!(
            "warning: ignored ./playbooks: another user can write to {}\nhint: name it with --playbooks, or change its owner or mode",
            writable.display()
        ));
        return None;
    }
    Some(here.to_owned())
}

/// Prints what was found out about a deployment, without secrets and control characters.
///
/// # Errors
/// Standard output takes no more.
fn show(text: &str, site: &Site) -> Result<(), CliError> {
    Ok(super::print(harmless(&site.keyring.hidden.hide(text)).as_bytes())?)
}

/// Asks for confirmation on the terminal. Ending the run counts as no.
///
/// # Errors
/// There is no terminal.
fn agrees(question: &str, otherwise: &str, control: &Control) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(anyhow!("cannot ask: standard input is not a terminal ({otherwise})").into());
    }
    let prompt = format!("{question} [y/N] ");
    let answer = super::ask::line_unless(&prompt, &control.run.stopping).context("cannot ask")?;
    Ok(answer.is_some_and(|answer| truth::is_yes(&answer)))
}

/// The deployment's name, given as an option or typed. None: the run was ended.
///
/// # Errors
/// There is no terminal.
fn named(
    given: Option<String>,
    question: &str,
    deployment: &str,
    control: &Control,
) -> Result<Option<String>, CliError> {
    if given.is_some() {
        return Ok(given);
    }
    let answer = super::ask::line_unless(question, &control.run.stopping);
    Ok(answer.map_err(|_| {
        anyhow!("cannot ask for the name: standard input is not a terminal\nhint: pass --name {deployment}")
    })?)
}

/// Reports that nothing was changed, because the answer was no or the run was ended.
fn declined(control: &Control) -> ExitCode {
    super::note("nothing was changed");
    if control.run.is_stopping() { ExitCode::Interrupted } else { ExitCode::Ok }
}
