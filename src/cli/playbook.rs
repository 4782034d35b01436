//! `windlass playbook`: loads and checks everything, then runs it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::options::{self, ConnectionArgs, InventorySource, VaultPasswords};
use super::reporting::{self, Reporting};
use super::{ExitCode, Failure, ask, extra_vars, vault};
use crate::engine::{self, Event, Job, Known, Recap, Tags, Told};
use crate::inventory::Inventory;
use crate::playbook::load::Loader;
use crate::playbook::{Play, Prompt};
use crate::report;
use crate::settings::{Settings, list};
use crate::template::Templar;
use crate::value::{Value, Vars};

#[derive(Debug, Args)]
pub struct PlaybookArgs {
    #[command(flatten)]
    source: InventorySource,
    /// Variables: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// Only tasks and plays with one of these tags
    #[arg(short = 't', long, value_name = "TAGS", value_delimiter = ',')]
    tags: Vec<String>,
    /// Not the tasks and plays with one of these tags
    #[arg(long = "skip-tags", value_name = "TAGS", value_delimiter = ',')]
    skip_tags: Vec<String>,
    /// Change nothing; say what would be changed
    #[arg(short = 'C', long)]
    check: bool,
    /// Show the changes of files
    #[arg(short = 'D', long)]
    diff: bool,
    /// How many hosts are at work at once (20 unless configured)
    #[arg(short = 'f', long, value_name = "FORKS", value_parser = at_least_one())]
    forks: Option<usize>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    /// Check the playbooks and end
    #[arg(long = "syntax-check")]
    syntax_check: bool,
    /// List the hosts and end
    #[arg(long = "list-hosts")]
    list_hosts: bool,
    /// List the tasks and end
    #[arg(long = "list-tasks")]
    list_tasks: bool,
    /// List the tags and end
    #[arg(long = "list-tags")]
    list_tags: bool,
    /// Run notified handlers on failed hosts too
    #[arg(long)]
    force_handlers: bool,
    /// Forget what the fact cache knows of the hosts
    #[arg(long)]
    flush_cache: bool,
    /// Further directories of roles
    #[arg(long = "roles-path", value_name = "DIRECTORY", value_delimiter = ':')]
    roles_path: Vec<PathBuf>,
    #[command(flatten)]
    reporting: Reporting,
    /// Playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Loads, checks and runs.
pub fn run(args: &PlaybookArgs) -> Result<ExitCode, Failure> {
    let settings = super::settings()?;
    let verbosity = args.reporting.verbosity(&settings);
    let keyring = Arc::new(vault::keyring(&args.vault, &settings)?);
    let extra_vars = Arc::new(extra_vars::read(&args.extra_vars, &keyring)?);
    let sources = args.source.inventories(&settings);
    let inventory = Inventory::load_with(&sources, &keyring, options::hash_behaviour(&settings))?;
    let templar = Templar::new();
    let known = Arc::new(Known { templar: templar.clone() });
    let mut loader = Loader::new(known, keyring.clone(), extra_vars.clone(), roles_path(args, &settings));
    loader.unsaid = options::unsaid(&settings);
    loader.unsaid.force_handlers |= args.force_handlers;
    let loader = Arc::new(loader);
    let mut playbooks: Vec<Vec<Arc<Play>>> = Vec::new();
    let mut complaints = Vec::new();
    for path in &args.playbooks {
        match loader.playbook(path) {
            Ok(plays) => playbooks.push(plays.into_iter().map(Arc::new).collect()),
            Err(more) => complaints.extend(more),
        }
    }
    warn(&inventory, &loader);
    if !complaints.is_empty() {
        return Err(Failure::Written(complaints));
    }
    if sources.is_empty() && settings.bool(&list::LOCALHOST_WARNING) && playbooks.iter().flatten().any(needs_inventory)
    {
        super::warn("no inventory was given: there is only localhost (-i names an inventory)");
    }
    if let Some(limit) = &args.source.limit {
        super::check_limit(&inventory, limit)?;
    }
    let mut job = Job {
        playbooks,
        inventory,
        limit: args.source.limit.clone(),
        tags: tags(args, &settings),
        check: args.check,
        diff: args.diff || settings.bool(&list::DIFF_ALWAYS),
        forks: args.forks.unwrap_or_else(|| settings.number(&list::FORKS) as usize),
        verbosity,
        extra_vars,
        defaults: engine::Defaults::default(),
        options: engine::Options { flush_cache: args.flush_cache, ..options::engine(&settings)? },
        keyring,
        templar,
        loader,
        prompted: Vars::new(),
        directory: std::env::current_dir().context("the working directory is gone")?,
    };
    if args.syntax_check || args.list_hosts || args.list_tasks || args.list_tags {
        return list(args, &job);
    }
    job.defaults = args.connection.defaults(&settings)?;
    for password in job.defaults.password.iter().chain(&job.defaults.become_password) {
        job.keyring.hidden.add(password.reveal());
    }
    job.prompted = prompted(&job)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(go(args, &settings, job))
}

/// `--roles-path`, or else the setting.
fn roles_path(args: &PlaybookArgs, settings: &Settings) -> Vec<PathBuf> {
    match args.roles_path.is_empty() {
        true => settings.list(&list::ROLES_PATH).into_iter().map(PathBuf::from).collect(),
        false => args.roles_path.clone(),
    }
}

fn tags(args: &PlaybookArgs, settings: &Settings) -> Tags {
    let or = |given: &Vec<String>, setting| if given.is_empty() { settings.list(setting) } else { given.clone() };
    Tags { only: or(&args.tags, &list::TAGS_RUN), skip: or(&args.skip_tags, &list::TAGS_SKIP) }
}

fn needs_inventory(play: &Arc<Play>) -> bool {
    !matches!(play.hosts.value.to_string().as_str(), "localhost" | "127.0.0.1" | "::1")
}

/// What is odd but not wrong, on standard error.
#[allow(clippy::print_stderr)]
fn warn(inventory: &Inventory, loader: &Loader) {
    inventory.warnings.iter().for_each(|warning| super::warn(warning));
    for warning in loader.take_warnings() {
        eprintln!("{}", report::complaint::render_as("warning", &warning));
    }
}

/// Runs the job; its events are told as they come; Ctrl-C once stops after the tasks in flight, twice at once.
async fn go(args: &PlaybookArgs, settings: &Settings, job: Job) -> Result<ExitCode, Failure> {
    let reports = args.reporting.open(&job.keyring.hidden, settings)?;
    let (sender, receiver) = unbounded_channel();
    let teller = tokio::spawn(reports.tell(receiver));
    let stopping = Arc::new(AtomicBool::new(false));
    let run = engine::run(job, sender.clone(), stopping.clone());
    let result = tokio::select! {
        result = run => Some(result),
        () = interrupted_twice(&stopping, &sender) => None,
    };
    drop(sender);
    let ending = teller.await.context("the report came to a bad end")?;
    let code = match result {
        None => ExitCode::Interrupted,
        Some(Ok(recap)) => exit_code(&recap),
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

async fn interrupted_twice(stopping: &AtomicBool, events: &UnboundedSender<Told>) {
    for words in ["stopping after the tasks in flight; Ctrl-C again stops at once", "stopped at once"] {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        stopping.store(true, Ordering::Relaxed);
        // The report may have ended already.
        let _ = events.send(Event::Warning(words.to_string()).into());
    }
}

fn exit_code(recap: &Recap) -> ExitCode {
    if recap.interrupted {
        ExitCode::Interrupted
    } else if recap.unreachable() {
        ExitCode::Unreachable
    } else if recap.failed() {
        ExitCode::Failed
    } else {
        ExitCode::Ok
    }
}

/// Answers to `vars_prompt`; what `-e` says is not asked.
fn prompted(job: &Job) -> Result<Vars, Failure> {
    let mut answers = Vars::new();
    for play in job.playbooks.iter().flatten() {
        for prompt in &play.vars_prompt {
            let name = prompt.name.as_str();
            if !job.extra_vars.contains_key(name) && !answers.contains_key(name) {
                let answer = answer(prompt)?;
                if prompt.private {
                    job.keyring.hidden.add(&answer.to_string());
                }
                answers.insert(name.into(), answer);
            }
        }
    }
    Ok(answers)
}

fn answer(prompt: &Prompt) -> Result<Value, Failure> {
    let words = prompt.prompt.clone().unwrap_or_else(|| prompt.name.clone());
    let words = match &prompt.default {
        Some(default) => format!("{words} [{default}]: "),
        None => format!("{words}: "),
    };
    let once = || -> anyhow::Result<String> {
        if prompt.private { Ok(ask::secret(&words)?.reveal().to_string()) } else { ask::line(&words) }
    };
    loop {
        let text = once()?;
        if prompt.confirm && once()? != text {
            super::note("the two answers differ; once more");
            continue;
        }
        return Ok(match (&prompt.default, text.is_empty()) {
            (Some(default), true) => default.clone(),
            _ => Value::from(text),
        });
    }
}

/// `--syntax-check` and the `--list-*` options.
#[allow(clippy::print_stdout)]
fn list(args: &PlaybookArgs, job: &Job) -> Result<ExitCode, Failure> {
    for (path, plays) in args.playbooks.iter().zip(&job.playbooks) {
        println!("\nplaybook: {}", path.display());
        if args.syntax_check && !args.list_hosts && !args.list_tasks && !args.list_tags {
            continue;
        }
        for (number, play) in plays.iter().enumerate() {
            let name = play.name.as_ref().map_or_else(|| play.hosts.value.to_string(), ToString::to_string);
            println!("\n  play #{} ({}): {name}", number + 1, play.hosts.value);
            if args.list_hosts {
                let hosts = engine::hosts_of(job, play).map_err(anyhow::Error::new)?;
                println!("    pattern: {}\n    hosts ({}):", play.hosts.value, hosts.len());
                hosts.iter().for_each(|host| println!("      {host}"));
            }
            if args.list_tasks || args.list_tags {
                list_tasks(args, job, play);
            }
        }
    }
    Ok(ExitCode::Ok)
}

#[allow(clippy::print_stdout)]
fn list_tasks(args: &PlaybookArgs, job: &Job, play: &Play) {
    let sections = [&play.pre_tasks, &play.roles, &play.tasks, &play.post_tasks];
    let tasks = sections.into_iter().flat_map(|section| engine::listed(section));
    let tasks: Vec<_> = tasks.filter(|task| job.tags.allow(&task.keywords.tags)).collect();
    if args.list_tasks {
        println!("    tasks:");
        for task in &tasks {
            let name = task.name.as_ref().map_or_else(|| task.action.doc.name.to_string(), ToString::to_string);
            let name = task.role.as_ref().map_or_else(|| name.clone(), |role| format!("{} : {name}", role.name));
            println!("      {name}\tTAGS: [{}]", task.keywords.tags.join(", "));
        }
    }
    if args.list_tags {
        let mut tags: Vec<&str> = tasks.iter().flat_map(|task| &task.keywords.tags).map(AsRef::as_ref).collect();
        tags.sort_unstable();
        tags.dedup();
        println!("    TASK TAGS: [{}]", tags.join(", "));
    }
}
