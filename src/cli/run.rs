//! `windlass run`: one task on the hosts of a pattern, as `ansible` runs it. A play made in memory goes the way of all
//! plays.

use std::path::PathBuf;

use clap::Args;

use super::launch;
use super::options::{ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::recording::StartedCommand;
use super::reporting::Reporting;
use super::{CliError, ExitCode};
use crate::engine::Tags;
use crate::launch::Launch;
use crate::playbook::ad_hoc::AdHoc;
use crate::report::{AdHocStyle, OutputFormat};
use crate::settings::{Settings, list};
use crate::value::ProcessEnvironment;
use crate::value::origin::Diagnostic;

#[derive(Debug, Args)]
pub(super) struct AdHocArgs {
    /// Hosts and groups, such as web, 'all:!db' or '*.example.org'
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// The module (command unless configured)
    #[arg(short = 'm', long, value_name = "MODULE")]
    pub module_name: Option<String>,
    /// Its arguments: key=value, a text for modules that take one, or a JSON object
    #[arg(short = 'a', long, value_name = "ARGS", allow_hyphen_values = true)]
    pub args: Option<String>,
    #[command(flatten)]
    source: InventorySource,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    /// Run the task in the background for at most this many seconds
    #[arg(short = 'B', long, value_name = "SECONDS")]
    background: Option<u64>,
    /// With -B: seconds between status queries; 0: do not wait for its end (15 unless configured)
    #[arg(short = 'P', long, value_name = "SECONDS")]
    poll: Option<u64>,
    /// Fail the task after this many seconds
    #[arg(long, value_name = "SECONDS")]
    task_timeout: Option<u64>,
    /// Directory with group_vars/, roles/ and files (default: the working directory)
    #[arg(long, value_name = "DIRECTORY")]
    playbook_dir: Option<PathBuf>,
    /// A line for each result
    #[arg(short = 'o', long)]
    pub one_line: bool,
    /// Also write each host's result into a file in this directory
    #[arg(short = 't', long, value_name = "DIRECTORY")]
    pub tree: Option<PathBuf>,
    /// List the hosts and exit
    #[arg(long)]
    pub list_hosts: bool,
    #[command(flatten)]
    pub reporting: Reporting,
}

/// How `windlass run` reports its results.
pub(super) fn form(args: &AdHocArgs) -> OutputFormat {
    OutputFormat::AdHoc(AdHocStyle { one_line: args.one_line, tree: args.tree.clone() })
}

/// Loads, checks and runs the task; its results are reported in this form.
pub(super) fn run_ad_hoc(args: &AdHocArgs, settings: &Settings, form: OutputFormat) -> Result<ExitCode, CliError> {
    let launch = launch::launch(settings, &args.source, &args.vault, &args.run)?;
    let hidden = launch.keyring.hidden.clone();
    launched(launch, args, settings, form).map_err(|failure| failure.masked(&hidden))
}

fn launched(
    mut launch: Launch,
    args: &AdHocArgs,
    settings: &Settings,
    form: OutputFormat,
) -> Result<ExitCode, CliError> {
    if args.list_hosts {
        return list_hosts(args, &launch);
    }
    let module = args.module_name.clone().or_else(|| settings.text_setting(&list::MODULE_NAME));
    let module = module.unwrap_or_else(|| "command".to_owned());
    let given = args.args.clone().or_else(|| settings.text_setting(&list::MODULE_ARGS)).unwrap_or_default();
    let directory = args.playbook_dir.clone().or_else(|| settings.path_setting(&list::PLAYBOOK_DIR));
    let doubt = directory.is_none().then(|| doubt_about_beside(&settings.surroundings)).flatten();
    launch.loader.ignores_beside = doubt.is_some();
    let keywords = [
        ("timeout", args.task_timeout),
        ("async", args.background),
        ("poll", args.poll.filter(|_| args.background.is_some())),
    ];
    let asked = AdHoc {
        pattern: &args.pattern,
        module: &module,
        args: &given,
        keywords: keywords.into_iter().filter_map(|(name, number)| Some((name, number?))).collect(),
        directory: &directory.unwrap_or_else(|| PathBuf::from(".")),
    };
    let play = launch.loader.ad_hoc(&asked);
    launch::warn(&launch);
    let uses =
        module.ends_with("_role") || BESIDE.iter().any(|name| settings.surroundings.directory.join(name).exists());
    doubt.iter().filter(|_| uses).for_each(super::warn_of);
    let playbooks = vec![vec![play?.into()]];
    launch::check_hosts(&launch, &playbooks, &args.source, settings)?;
    let mut job =
        launch.job(playbooks, Tags::default(), &launch::manner(&args.run, &args.reporting, settings)?, settings)?;
    launch::log_in(&mut job, &args.connection, settings)?;
    // Its arguments are often secret, and scripts run it all the time.
    let command = StartedCommand { recorded: false, ..StartedCommand::named("run") };
    launch::go(&args.reporting, settings, form, command, job, None)
}

/// What a playbook has beside it: variables are templates, the others start programs.
const BESIDE: [&str; 7] =
    ["group_vars", "host_vars", "library", "filter_plugins", "lookup_plugins", "roles", "collections"];

/// Why what is beside the task, in the working directory, is ignored: another user may have written it.
fn doubt_about_beside(around: &ProcessEnvironment) -> Option<Diagnostic> {
    let below = BESIDE.iter().flat_map(|name| {
        let path = around.directory.join(name);
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
        std::iter::once(path).chain(entries.collect::<Vec<_>>())
    });
    let doubt = std::iter::once(around.directory.clone()).chain(below).find_map(|path| around.doubt_about(&path))?;
    let message = format!("ignored {}/ of the working directory: {doubt}", BESIDE.join("/, "));
    Some(Diagnostic::new(message, None).hint("pass --playbook-dir to use them, or change the owner or mode"))
}

/// `--list-hosts`
fn list_hosts(args: &AdHocArgs, launch: &Launch) -> Result<ExitCode, CliError> {
    launch::warn(launch);
    let (mut hosts, unmatched) = launch.inventory.select(&args.pattern)?;
    super::warn_unmatched(&launch.inventory, &unmatched);
    if let Some(limit) = &args.source.limit {
        let (within, _) = launch.inventory.select_limit(limit)?;
        hosts.retain(|host| within.contains(host));
    }
    let lines: String = hosts.iter().map(|host| format!("    {host}\n")).collect();
    super::print(format!("  hosts ({}):\n{lines}", hosts.len()))?;
    Ok(ExitCode::Ok)
}
