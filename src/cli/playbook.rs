//! `windlass playbook`: loads and checks everything, then runs it.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::deployment::plan_text;
use super::launch;
use super::options::{ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::recording::StartedCommand;
use super::reporting::Reporting;
use super::{CliError, ExitCode, ask, carried, listing, retry};
use crate::deployment::members;
use crate::engine::{Job, Tags};
use crate::launch::{Launch, options};
use crate::playbook::{Encrypt, Play, Prompt};
use crate::report::OutputFormat;
use crate::settings::{Settings, list};
use crate::template::{self, Hashing};
use crate::value::{Value, Vars};

#[derive(Debug, Args)]
pub(super) struct PlaybookArgs {
    #[command(flatten)]
    source: InventorySource,
    #[command(flatten)]
    run: RunArgs,
    /// Run only tasks and plays with one of these tags
    #[arg(short = 't', long, value_name = "TAGS", value_delimiter = ',')]
    tags: Vec<String>,
    /// Skip tasks and plays with one of these tags
    #[arg(long = "skip-tags", value_name = "TAGS", value_delimiter = ',')]
    skip_tags: Vec<String>,
    /// Start at the first task with this name, or that matches this pattern
    #[arg(long, value_name = "NAME")]
    start_at_task: Option<String>,
    /// Ask before each task whether to run it: y, n, or c for this and all later ones
    #[arg(long)]
    step: bool,
    /// How many hosts to send files to at once (no limit unless configured)
    #[arg(long, value_name = "N")]
    uploads: Option<NonZeroUsize>,
    /// Write the failed hosts to this file, for --limit @FILE
    #[arg(long, value_name = "FILE")]
    retry_file: Option<PathBuf>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    /// Check the playbooks and exit
    #[arg(long = "syntax-check")]
    syntax_check: bool,
    /// List the hosts and exit
    #[arg(long = "list-hosts")]
    list_hosts: bool,
    /// List the tasks and exit
    #[arg(long = "list-tasks")]
    list_tasks: bool,
    /// List the tags and exit
    #[arg(long = "list-tags")]
    list_tags: bool,
    /// With a custom resource as inventory: remove at most this many members (default 1)
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_removals: usize,
    /// Also run notified handlers on failed hosts
    #[arg(long)]
    force_handlers: bool,
    /// More directories with roles
    #[arg(long = "roles-path", value_name = "DIRECTORY", value_delimiter = ':')]
    roles_path: Vec<PathBuf>,
    #[command(flatten)]
    pub reporting: Reporting,
    /// Playbooks; for a bare name that is not here, windlass takes its own
    #[arg(required = true, value_name = "PLAYBOOK")]
    pub playbooks: Vec<PathBuf>,
}

/// Loads, checks and runs. `usual`: how the run is reported unless `--output` says otherwise.
pub(super) fn run_playbooks(
    args: &PlaybookArgs,
    settings: &Settings,
    usual: fn(&PlaybookArgs, &Settings, &Job) -> OutputFormat,
) -> Result<ExitCode, CliError> {
    let launch = launch::launch(settings, &args.source, &args.vault, &args.run)?;
    let hidden = launch.keyring.hidden.clone();
    launched(launch, args, settings, usual).map_err(|failure| failure.masked(&hidden))
}

fn launched(
    mut launch: Launch,
    args: &PlaybookArgs,
    settings: &Settings,
    usual: fn(&PlaybookArgs, &Settings, &Job) -> OutputFormat,
) -> Result<ExitCode, CliError> {
    launch.loader.hooks = options::hooks(settings);
    launch.loader.play_defaults.force_handlers |= args.force_handlers;
    if !args.roles_path.is_empty() {
        launch.loader.roles_path = args.roles_path.clone();
    }
    launch.loader.last_roles = carried::roles(&settings.surroundings);
    let mut playbooks: Vec<Vec<Arc<Play>>> = Vec::new();
    let mut complaints = Vec::new();
    for path in &args.playbooks {
        match launch
            .loader
            .load_playbook(&carried::embedded_playbook(path, &settings.surroundings).map_err(anyhow::Error::new)?)
        {
            Ok(plays) => playbooks.push(plays.into_iter().map(Arc::new).collect()),
            Err(more) => complaints.extend(more),
        }
    }
    launch::warn(&launch);
    if !complaints.is_empty() {
        return Err(CliError::Written(complaints));
    }
    launch::check_hosts(&launch, &playbooks, &args.source, settings)?;
    let manner = launch::manner(&args.run, &args.reporting, settings)?;
    let mut job = launch.job(playbooks, tags(args, settings), &manner, settings)?;
    if args.syntax_check || args.list_hosts || args.list_tasks || args.list_tags {
        let what = listing::ListingOptions { hosts: args.list_hosts, tasks: args.list_tasks, tags: args.list_tags };
        return listing::print_listing(&args.playbooks, &job, what);
    }
    job.options.start_at_task = args.start_at_task.clone();
    if args.step && !std::io::stdin().is_terminal() {
        return Err(anyhow::anyhow!(
            "cannot use --step: it asks before each task, and standard input is not a terminal"
        )
        .into());
    }
    job.options.step = args.step;
    job.options.uploads = args.uploads.or(job.options.uploads);
    launch::log_in(&mut job, &args.connection, settings)?;
    if members::concern(&job) {
        find_members(&mut job, args.max_removals)?;
    }
    job.prompted = prompted(&job)?;
    let retry_file = retry::retry_file_path(args.retry_file.as_deref(), args.playbooks.first(), settings);
    let usual = usual(args, settings, &job);
    let mut command = StartedCommand::named("playbook");
    command.check = job.check;
    for inventory in args.source.inventories(settings) {
        command = command.option("-i", Some(inventory));
    }
    command = command.option("--limit", job.limit.as_ref());
    command.arguments.extend(args.playbooks.iter().map(|path| path.display().to_string()));
    launch::go(&args.reporting, settings, usual, command, job, retry_file.as_deref())
}

/// Asks the control plane for its members; refuses to remove more of them than `most`.
fn find_members(job: &mut Job, most: usize) -> Result<(), CliError> {
    let warning = launch::wait(async || members::find_members(job, &[]).await.map_err(CliError::from))?;
    warning.iter().for_each(|warning| super::warn(warning));
    match members::too_many(&job.inventory, most) {
        None => Ok(()),
        Some(gone) => Err(anyhow::anyhow!(
            "refusing to remove {}, more than {most}: {} (--max-removals {} allows it)",
            plan_text::counted(gone.len(), "member"),
            gone.join(", "),
            gone.len()
        )
        .into()),
    }
}

fn tags(args: &PlaybookArgs, settings: &Settings) -> Tags {
    let or =
        |given: &Vec<String>, setting| if given.is_empty() { settings.list_setting(setting) } else { given.clone() };
    Tags { only: or(&args.tags, &list::TAGS_RUN), skip: or(&args.skip_tags, &list::TAGS_SKIP) }
}

/// Answers to `vars_prompt`; what `-e` says is not asked.
fn prompted(job: &Job) -> Result<Vars, CliError> {
    let mut answers = Vars::new();
    for play in job.playbooks.iter().flatten() {
        for prompt in &play.vars_prompt {
            let name = prompt.name.as_str();
            if !job.extra_vars.contains_key(name) && !answers.contains_key(name) {
                let answer = answer(prompt)?;
                if prompt.private {
                    job.keyring.hidden.add_secret(&answer.to_string());
                }
                answers.insert(name.into(), kept(prompt, answer)?);
            }
        }
    }
    Ok(answers)
}

/// An answer as the play sees it.
fn kept(prompt: &Prompt, answer: Value) -> Result<Value, CliError> {
    let Some(Encrypt { scheme, salt, salt_size }) = &prompt.encrypt else { return Ok(answer) };
    let hashing = Hashing { scheme, salt: salt.clone(), salt_size: *salt_size, ..Hashing::default() };
    let hash = template::crypt(&answer.to_string(), &hashing);
    hash.map(Value::from).map_err(|error| anyhow::anyhow!("{}: {error}", prompt.name).into())
}

fn answer(prompt: &Prompt) -> Result<Value, CliError> {
    let words = prompt.prompt.clone().unwrap_or_else(|| prompt.name.clone());
    let words = match &prompt.default {
        Some(default) => format!("{words} [{default}]: "),
        None => format!("{words}: "),
    };
    let once = || -> anyhow::Result<String> {
        if prompt.private { Ok(ask::ask_secret(&words)?.reveal().to_string()) } else { ask::ask_line(&words) }
    };
    loop {
        let text = once()?;
        if prompt.confirm && once()? != text {
            super::note("the two answers differ; try again");
            continue;
        }
        return Ok(match (&prompt.default, text.is_empty()) {
            (Some(default), true) => default.clone(),
            _ => Value::from(text),
        });
    }
}
