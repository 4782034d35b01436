//! The command line: argv to a job, its end to an exit code. One file per sub-command.

mod ansible;
mod ask;
mod bundle;
mod carried;
mod completion;
mod config;
mod crd;
mod credentials;
mod deployment;
mod doc;
mod exit;
mod extra_vars;
mod files;
mod first_process;
mod init;
mod interrupt;
mod inventory;
mod kubeconfig;
mod kubectl;
mod launch;
mod lint;
mod listing;
mod logs;
mod man;
mod operator;
mod options;
mod playbook;
mod playbooks;
mod print;
mod recording;
mod reporting;
mod retry;
mod run;
mod runs;
mod schema;
mod serve;
mod toml;
mod vault;

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use exit::ExitCode;
use print::{MessageStyle, print, print_error, wording};

use crate::inventory::Inventory;
use crate::launch as launched;
use crate::launch::carried::EmbeddedPlaybooks;
use crate::report::{self, OutputFormat};
use crate::settings::Settings;
use crate::value::ProcessEnvironment;
use crate::value::SecretTexts;
use crate::value::origin::Diagnostic;

#[derive(Debug, Parser)]
#[command(name = "windlass", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what an apply would change on the hosts of a deployment
    Plan(Box<deployment::plan::PlanArgs>),
    /// Install or update a deployment as its file says, stage by stage
    Apply(Box<deployment::apply::ApplyArgs>),
    /// Show the state of a deployment: etcd, components, members, certificates
    Status(Box<deployment::status::StatusArgs>),
    /// Upgrade the control plane to the version in a bundle, one component and one host at a time
    Upgrade(Box<deployment::operation::UpgradeArgs>),
    /// Roll the control plane back to the version before the last upgrade
    Rollback(Box<deployment::operation::RollbackArgs>),
    /// Show all certificates with their days left, and renew those of the control plane that are due
    Certificates(Box<deployment::operation::CertificatesArgs>),
    /// Remove a healthy host from a running control plane
    RemoveHost(Box<deployment::operation::RemoveHostArgs>),
    /// Check, back up, restore and recover the etcd cluster of a deployment; remove and replace its members
    Etcd(Box<deployment::etcd::EtcdArgs>),
    /// Remove a deployment from its hosts, with all its data
    Destroy(Box<deployment::destroy::DestroyArgs>),
    /// Look after the KarmadaDeployments of an API server day and night: look at their hosts, and carry out their Runs
    Operator(operator::OperatorArgs),
    /// Do one Run of a KarmadaDeployment of an API server, or look at its hosts: what the operator starts
    Worker(Box<deployment::worker::WorkerArgs>),
    /// Serve an API, and a page in the browser: see deployments and runs, make and approve plans
    Serve(Box<serve::ServeArgs>),
    /// List the runs that are recorded on this machine, newest first
    Runs(runs::RunsArgs),
    /// Show what a recorded run printed, or follow one that is under way
    Logs(logs::LogsArgs),
    /// Run playbooks on the hosts of an inventory
    Playbook(Box<playbook::PlaybookArgs>),
    /// Run one module on hosts that match a pattern
    Run(Box<run::AdHocArgs>),
    /// Show hosts, groups and their variables
    Inventory(inventory::InventoryArgs),
    /// Explain modules, keywords, filters and variables: what they do, their arguments, an example
    Doc(doc::DocArgs),
    /// Create, check and show bundles: the programs to install, with their digests
    Bundle(bundle::BundleArgs),
    /// Encrypt and decrypt files and strings, in Ansible's vault format
    Vault(vault::VaultArgs),
    /// Show the current settings, and where each comes from
    Config(Box<config::ConfigArgs>),
    /// Write the playbooks and roles that windlass has in it to a directory
    Playbooks(playbooks::PlaybooksArgs),
    /// Check playbooks and roles without connecting to hosts, and give advice
    Lint(lint::LintArgs),
    /// Print a JSON Schema for playbooks, roles or inventories, for editors
    Schema(schema::SchemaArgs),
    /// Print a KarmadaDeployment to start from
    Init(init::InitArgs),
    /// Print the admin's kubeconfig of a deployment, or merge it into your own
    Kubeconfig(kubeconfig::KubeconfigArgs),
    /// Export and import the certificates and keys of a deployment that an API server keeps in a Secret
    Credentials(credentials::CredentialsArgs),
    /// Print the CustomResourceDefinitions of windlass, for an API server
    Crd,
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
    /// Print the manual page, or write one for each sub-command
    Man(man::ManArgs),
}

/// Why a sub-command could not do its work.
#[derive(Debug)]
pub enum CliError {
    /// Invalid input: every error, with its location.
    Written(Vec<Diagnostic>),
    /// The request is contradictory, or names something that does not exist.
    Asked(anyhow::Error),
    /// Anything else.
    Other(anyhow::Error),
}

impl CliError {
    /// Without what is hidden.
    fn masked(self, hidden: &SecretTexts) -> CliError {
        let mask = |text: String| hidden.hide(&text).into_owned();
        let one = |error: anyhow::Error| match hidden.hide(&format!("{error:#}")) {
            Cow::Borrowed(_) => error,
            Cow::Owned(text) => anyhow::Error::msg(text),
        };
        match self {
            CliError::Written(complaints) => {
                let masked = complaints.into_iter().map(|complaint| Diagnostic {
                    message: mask(complaint.message),
                    hint: complaint.hint.map(mask),
                    origin: complaint.origin,
                });
                CliError::Written(masked.collect())
            }
            CliError::Asked(error) => CliError::Asked(one(error)),
            CliError::Other(error) => CliError::Other(one(error)),
        }
    }
}

impl From<launched::Error> for CliError {
    fn from(error: launched::Error) -> Self {
        match error {
            launched::Error::Written(complaints) => complaints.into(),
            error => anyhow::Error::new(error).into(),
        }
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        CliError::Other(error)
    }
}

impl From<Diagnostic> for CliError {
    fn from(complaint: Diagnostic) -> Self {
        CliError::Written(vec![complaint])
    }
}

impl From<Vec<Diagnostic>> for CliError {
    fn from(complaints: Vec<Diagnostic>) -> Self {
        CliError::Written(complaints)
    }
}

/// Runs the command line; the result is the program's exit code.
///
/// `carried`: the playbooks and roles that the program has in it.
pub fn run_command_line(argv: impl IntoIterator<Item = OsString>, carried: &'static EmbeddedPlaybooks) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    launch::with_runtime(|| carried::with_embedded(carried, || dispatch(argv)))
        .unwrap_or_else(|error| say(&error.into()))
}

fn dispatch(argv: Vec<OsString>) -> ExitCode {
    if let Some((tool, argv)) = ansible::called(&argv) {
        return ansible::run_ansible_tool(tool, argv);
    }
    if kubectl::is_called(&argv) {
        return kubectl::run_plugin(argv);
    }
    let parsed = Cli::command().try_get_matches_from(argv).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let wrong = error.use_stderr();
            #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
            let _ = error.print();
            return if wrong { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let result = match cli.command {
        Command::Plan(args) => deployment::plan::run_plan(&args),
        Command::Apply(args) => deployment::apply::run_apply(&args),
        Command::Status(args) => deployment::status::run_status(&args),
        Command::Upgrade(args) => deployment::operation::upgrade(&args),
        Command::Rollback(args) => deployment::operation::rollback(&args),
        Command::Certificates(args) => deployment::operation::certificates(&args),
        Command::RemoveHost(args) => deployment::operation::remove_host(&args),
        Command::Etcd(args) => deployment::etcd::run_etcd_command(&args),
        Command::Destroy(args) => deployment::destroy::run_destroy(&args),
        Command::Operator(args) => operator::start_operator(&args),
        Command::Worker(args) => deployment::worker::run_worker(&args),
        Command::Serve(args) => serve::run_serve(&args),
        Command::Runs(args) => runs::print_runs(&args),
        Command::Logs(args) => logs::print_log(&args),
        Command::Playbook(args) => {
            settings().and_then(|settings| playbook::run_playbooks(&args, &settings, |_, _, _| OutputFormat::Human))
        }
        Command::Run(args) => settings().and_then(|settings| run::run_ad_hoc(&args, &settings, run::form(&args))),
        Command::Inventory(args) => inventory::print_inventory(&args),
        Command::Doc(args) => doc::print_doc(&args),
        Command::Bundle(args) => bundle::run_bundle_command(&args),
        Command::Vault(args) => vault::run_vault_command(&args),
        Command::Playbooks(args) => playbooks::write_playbooks(&args),
        Command::Lint(args) => lint::run_lint(&args),
        Command::Schema(args) => schema::print_schema(&args),
        Command::Init(args) => init::print_new_deployment(&args),
        Command::Kubeconfig(args) => kubeconfig::write_kubeconfig(&args),
        Command::Credentials(args) => credentials::run_credentials_command(&args),
        Command::Crd => crd::print_crds(),
        Command::Completion(args) => completion::print_completion(&args),
        Command::Man(args) => man::write_man_pages(&args),
        Command::Config(args) => config::print_config(&args, matches.subcommand_matches("config")),
    };
    result.unwrap_or_else(|failure| say(&failure))
}

/// The environment and the working directory of the user. Read once; everything below the command line gets them from here.
fn surroundings() -> &'static ProcessEnvironment {
    static SURROUNDINGS: LazyLock<ProcessEnvironment> = LazyLock::new(ProcessEnvironment::of_process);
    &SURROUNDINGS
}

/// Where the person is, which everything relative is relative to.
fn working_directory() -> Result<std::path::PathBuf, CliError> {
    let directory = surroundings().directory.clone();
    match directory.as_os_str().is_empty() {
        true => Err(anyhow::anyhow!("the working directory does not exist any more").into()),
        false => Ok(directory),
    }
}

/// Reads the settings; warns of what is odd about them.
fn settings() -> Result<Settings, CliError> {
    let settings = Settings::load(surroundings())?;
    settings.warnings.iter().for_each(warn_of);
    Ok(settings)
}

/// Prints the next step for the user.
fn note(message: &str) {
    print_error(message);
}

/// Prints a warning; the work continues.
fn warn(message: &str) {
    match wording() {
        MessageStyle::Own => print_error(&format!("warning: {message}")),
        MessageStyle::Ansible => print_error(&format!("[WARNING]: {message}")),
    }
}

/// The same, with the place that it is about.
fn warn_of(complaint: &Diagnostic) {
    match wording() {
        MessageStyle::Own => print_error(&report::diagnostic::render_as("warning", complaint)),
        MessageStyle::Ansible => {
            print_error(&format!("[WARNING]: {}", report::ansible::complaint(complaint, surroundings())))
        }
    }
}

/// Warns of names in a pattern that match no host.
fn warn_unmatched(inventory: &Inventory, names: &[String]) {
    for name in names {
        let hint = inventory.name_hint(name).map_or(String::new(), |hint| format!(", {hint}"));
        warn(&format!("{name:?} matches no host or group{hint}"));
    }
}

/// Refuses a limit that leaves no host, so that a slip in a name is not taken for success; warns of names without hosts.
fn check_limit(inventory: &Inventory, limit: &str) -> Result<(), CliError> {
    let (hosts, unmatched) = inventory.select_limit(limit)?;
    warn_unmatched(inventory, &unmatched);
    if hosts.is_empty() {
        return Err(anyhow::anyhow!("the limit {limit:?} matches no hosts").into());
    }
    Ok(())
}

/// A failure with its causes and hints, in our own words.
fn failure_text(failure: &CliError) -> String {
    match failure {
        CliError::Written(complaints) => {
            complaints.iter().map(report::diagnostic::render_diagnostic).collect::<Vec<_>>().join("\n\n")
        }
        CliError::Asked(error) | CliError::Other(error) => format!("error: {error:#}"),
    }
}

/// Prints a failure.
fn say(failure: &CliError) -> ExitCode {
    match failure {
        CliError::Written(complaints) => {
            match wording() {
                MessageStyle::Own => print_error(&failure_text(failure)),
                MessageStyle::Ansible => complaints.iter().for_each(|complaint| {
                    print_error(&format!("[ERROR]: {}", report::ansible::complaint(complaint, surroundings())))
                }),
            }
            ExitCode::Parse
        }
        CliError::Asked(error) | CliError::Other(error) => match wording() {
            MessageStyle::Own => {
                print_error(&failure_text(failure));
                ExitCode::Error
            }
            MessageStyle::Ansible => {
                print_error(&format!("[ERROR]: {error:#}"));
                if matches!(failure, CliError::Asked(_)) { ExitCode::Options } else { ExitCode::Error }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sub_command_is_well_formed() {
        Cli::command().debug_assert();
    }
}
