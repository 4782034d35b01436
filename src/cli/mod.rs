//! The command line: argv to a job, its end to an exit code. One file per sub-command.

mod ansible;
mod ask;
mod bundle;
mod carried;
mod completion;
mod config;
mod crd;
mod deployment;
mod doc;
mod exit;
mod extra_vars;
mod files;
mod init;
mod interrupt;
mod inventory;
mod kubeconfig;
mod launch;
mod lint;
mod listing;
mod man;
mod options;
mod playbook;
mod playbooks;
mod print;
mod reporting;
mod retry;
mod run;
mod schema;
mod toml;
mod vault;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use exit::ExitCode;
use print::{Wording, print, tell, wording};

use crate::inventory::Inventory;
use crate::launch as launched;
use crate::launch::carried::Carried;
use crate::report::{self, Form};
use crate::settings::Settings;
use crate::value::Hidden;
use crate::value::Surroundings;
use crate::value::origin::Complaint;

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
    /// Look after the etcd cluster of a deployment: check it, back it up
    Etcd(Box<deployment::etcd::EtcdArgs>),
    /// Remove a deployment from its hosts, with all its data
    Destroy(Box<deployment::destroy::DestroyArgs>),
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
    /// Print the CustomResourceDefinitions of windlass, for an API server
    Crd(crd::CrdArgs),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
    /// Print the manual page, or write one for each sub-command
    Man(man::ManArgs),
}

/// Why a sub-command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// What a person wrote wrongly: every complaint, with its place.
    Written(Vec<Complaint>),
    /// What was asked for does not go together, or is not there.
    Asked(anyhow::Error),
    /// Anything else.
    Other(anyhow::Error),
}

impl Failure {
    /// Without what is hidden.
    fn masked(self, hidden: &Hidden) -> Failure {
        let mask = |text: String| hidden.hide(&text).into_owned();
        let one = |error: anyhow::Error| match hidden.hide(&format!("{error:#}")) {
            Cow::Borrowed(_) => error,
            Cow::Owned(text) => anyhow::Error::msg(text),
        };
        match self {
            Failure::Written(complaints) => {
                let masked = complaints.into_iter().map(|complaint| Complaint {
                    message: mask(complaint.message),
                    hint: complaint.hint.map(mask),
                    origin: complaint.origin,
                });
                Failure::Written(masked.collect())
            }
            Failure::Asked(error) => Failure::Asked(one(error)),
            Failure::Other(error) => Failure::Other(one(error)),
        }
    }
}

impl From<launched::Error> for Failure {
    fn from(error: launched::Error) -> Self {
        match error {
            launched::Error::Written(complaints) => complaints.into(),
            error => anyhow::Error::new(error).into(),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Other(error)
    }
}

impl From<Complaint> for Failure {
    fn from(complaint: Complaint) -> Self {
        Failure::Written(vec![complaint])
    }
}

impl From<Vec<Complaint>> for Failure {
    fn from(complaints: Vec<Complaint>) -> Self {
        Failure::Written(complaints)
    }
}

/// Runs the command line; the result is the program's exit code.
///
/// `carried`: the playbooks and roles that the program has in it.
pub fn run(argv: impl IntoIterator<Item = OsString>, carried: &'static Carried) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    launch::with_runtime(|| carried::with(carried, || dispatch(argv))).unwrap_or_else(|error| say(&error.into()))
}

fn dispatch(argv: Vec<OsString>) -> ExitCode {
    if let Some((tool, argv)) = ansible::called(&argv) {
        return ansible::run(tool, argv);
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
        Command::Plan(args) => deployment::plan::run(&args),
        Command::Apply(args) => deployment::apply::run(&args),
        Command::Status(args) => deployment::status::run(&args),
        Command::Upgrade(args) => deployment::operation::upgrade(&args),
        Command::Rollback(args) => deployment::operation::rollback(&args),
        Command::Certificates(args) => deployment::operation::certificates(&args),
        Command::RemoveHost(args) => deployment::operation::remove_host(&args),
        Command::Etcd(args) => deployment::etcd::run(&args),
        Command::Destroy(args) => deployment::destroy::run(&args),
        Command::Playbook(args) => {
            settings().and_then(|settings| playbook::run(&args, &settings, |_, _, _| Form::Human))
        }
        Command::Run(args) => settings().and_then(|settings| run::run(&args, &settings, run::form(&args))),
        Command::Inventory(args) => inventory::run(&args),
        Command::Doc(args) => doc::run(&args),
        Command::Bundle(args) => bundle::run(&args),
        Command::Vault(args) => vault::run(&args),
        Command::Playbooks(args) => playbooks::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Kubeconfig(args) => kubeconfig::run(&args),
        Command::Crd(args) => crd::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Config(args) => config::run(&args, matches.subcommand_matches("config")),
    };
    result.unwrap_or_else(|failure| say(&failure))
}

/// Where the person is, which everything relative is relative to.
fn working_directory() -> Result<std::path::PathBuf, Failure> {
    let directory = Surroundings::of_process().directory;
    match directory.as_os_str().is_empty() {
        true => Err(anyhow::anyhow!("the working directory does not exist any more").into()),
        false => Ok(directory),
    }
}

/// Reads the settings; warns of what is odd about them.
fn settings() -> Result<Settings, Failure> {
    let settings = Settings::load(&Surroundings::of_process())?;
    settings.warnings.iter().for_each(warn_of);
    Ok(settings)
}

/// Prints what a person should do now.
fn note(message: &str) {
    tell(message);
}

/// Prints what a person should know although the work goes on.
fn warn(message: &str) {
    match wording() {
        Wording::Own => tell(&format!("warning: {message}")),
        Wording::Ansible => tell(&format!("[WARNING]: {message}")),
    }
}

/// The same, with the place that it is about.
fn warn_of(complaint: &Complaint) {
    match wording() {
        Wording::Own => tell(&report::complaint::render_as("warning", complaint)),
        Wording::Ansible => tell(&format!("[WARNING]: {}", report::ansible::complaint(complaint))),
    }
}

/// Warns of names in a pattern that match no host.
fn warn_unmatched(inventory: &Inventory, names: &[String]) {
    for name in names {
        let near = inventory.nearest_name(name).map_or(String::new(), |near| format!(", did you mean {near:?}?"));
        warn(&format!("{name:?} matches no host or group{near}"));
    }
}

/// Refuses a limit that leaves no host, so that a slip in a name is not taken for success; warns of names without hosts.
fn check_limit(inventory: &Inventory, limit: &str) -> Result<(), Failure> {
    let (hosts, unmatched) = inventory.select_limit(limit)?;
    warn_unmatched(inventory, &unmatched);
    if hosts.is_empty() {
        return Err(anyhow::anyhow!("the limit {limit:?} matches no hosts").into());
    }
    Ok(())
}

/// Prints a failure with its causes and hints.
fn say(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Written(complaints) => {
            match wording() {
                Wording::Own => {
                    let words: Vec<String> = complaints.iter().map(report::complaint::render).collect();
                    tell(&words.join("\n\n"));
                }
                Wording::Ansible => complaints
                    .iter()
                    .for_each(|complaint| tell(&format!("[ERROR]: {}", report::ansible::complaint(complaint)))),
            }
            ExitCode::Parse
        }
        Failure::Asked(error) | Failure::Other(error) => match wording() {
            Wording::Own => {
                tell(&format!("error: {error:#}"));
                ExitCode::Error
            }
            Wording::Ansible => {
                tell(&format!("[ERROR]: {error:#}"));
                if matches!(failure, Failure::Asked(_)) { ExitCode::Options } else { ExitCode::Error }
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
