//! The command line: argv to a job, its end to an exit code. One file per sub-command.

mod ask;
mod doc;
mod exit;
mod extra_vars;
mod inventory;
mod playbook;
mod vault;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use exit::ExitCode;

use crate::connection::HostKeys;
use crate::engine::Defaults;
use crate::inventory::Inventory;
use crate::value::origin::Complaint;

#[derive(Debug, Parser)]
#[command(name = "windlass", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run playbooks on the hosts of an inventory
    Playbook(Box<playbook::PlaybookArgs>),
    /// Show hosts, groups and their variables
    Inventory(inventory::InventoryArgs),
    /// Explain modules: what they do, their arguments, an example
    Doc(doc::DocArgs),
    /// Encrypt and decrypt files and strings, in Ansible's vault format
    Vault(vault::VaultArgs),
}

/// Where hosts come from; shared by the sub-commands.
#[derive(Debug, Args)]
pub struct InventorySource {
    /// Inventory: a file (INI, YAML), an executable script, a directory of them, or a comma list "a,b,"
    #[arg(short = 'i', long = "inventory", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Further restrict the hosts to a pattern
    #[arg(short = 'l', long, value_name = "PATTERN")]
    pub limit: Option<String>,
}

/// Passwords of vaulted files and strings; shared by the sub-commands.
#[derive(Debug, Args)]
pub struct VaultPasswords {
    /// File that holds a vault password, or an executable that prints it
    #[arg(long = "vault-password-file", alias = "vault-pass-file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A vault password under a name: NAME@FILE, or NAME@prompt
    #[arg(long = "vault-id", value_name = "NAME@SOURCE")]
    pub ids: Vec<String>,
    /// Ask for the vault password
    #[arg(short = 'J', long = "ask-vault-pass", alias = "ask-vault-password")]
    pub ask: bool,
}

impl VaultPasswords {
    /// Whether the command line says where passwords come from, without asking for a new one.
    fn named(&self) -> bool {
        self.ask || !self.files.is_empty() || !self.ids.is_empty()
    }
}

/// How hosts are reached, and as whom.
#[derive(Debug, Args)]
pub struct ConnectionArgs {
    /// Log in as this user
    #[arg(short = 'u', long = "user", value_name = "USER")]
    user: Option<String>,
    /// Connection: ssh or local
    #[arg(short = 'c', long, value_name = "CONNECTION", value_parser = ["ssh", "local", "smart"])]
    connection: Option<String>,
    /// Private key file
    #[arg(long = "private-key", alias = "key-file", value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Ask for the connection password
    #[arg(short = 'k', long = "ask-pass")]
    ask_pass: bool,
    /// Run as another user (root unless --become-user says otherwise)
    #[arg(short = 'b', long = "become")]
    r#become: bool,
    /// The user to become
    #[arg(long = "become-user", value_name = "USER")]
    become_user: Option<String>,
    /// How to become: sudo or su
    #[arg(long = "become-method", value_name = "METHOD", value_parser = ["sudo", "su"])]
    become_method: Option<String>,
    /// Ask for the become password
    #[arg(short = 'K', long = "ask-become-pass")]
    ask_become_pass: bool,
    /// Seconds to wait for a connection
    #[arg(short = 'T', long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Further ssh options, such as "-o ProxyJump=bastion"
    #[arg(long = "ssh-common-args", alias = "ssh-extra-args", value_name = "ARGS", allow_hyphen_values = true)]
    ssh_common_args: Option<String>,
    /// What to do about host keys: check them, record those of new hosts, or (unsafe) trust any
    #[arg(long = "host-keys", value_enum, value_name = "POLICY")]
    host_keys: Option<HostKeyPolicy>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HostKeyPolicy {
    Strict,
    AcceptNew,
    Off,
}

impl ConnectionArgs {
    /// What the engine is told; asks for the passwords that were asked for.
    fn defaults(&self) -> Result<Defaults, Failure> {
        let password = self.ask_pass.then(|| ask::secret("SSH password: ")).transpose()?;
        let become_password = match self.ask_become_pass {
            // Nothing typed: the login password, as with ansible-playbook.
            true => Some(ask::secret("BECOME password[defaults to SSH password]: ")?)
                .filter(|typed| !typed.reveal().is_empty())
                .or_else(|| password.clone()),
            false => None,
        };
        Ok(Defaults {
            user: self.user.clone(),
            connection: self.connection.clone(),
            private_key_file: self.private_key.clone(),
            password,
            connect_timeout: self.timeout.map(Duration::from_secs),
            host_keys: self.host_keys.map(|policy| match policy {
                HostKeyPolicy::Strict => HostKeys::Strict,
                HostKeyPolicy::AcceptNew => HostKeys::AcceptNew,
                HostKeyPolicy::Off => HostKeys::Off,
            }),
            r#become: self.r#become,
            become_user: self.become_user.clone(),
            become_method: self.become_method.clone(),
            become_password,
            ssh_arguments: self.ssh_common_args.clone().unwrap_or_default(),
            ssh_config: None,
        })
    }
}

/// Why a sub-command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// What a person wrote wrongly: every complaint, with its place.
    Written(Vec<Complaint>),
    /// Anything else.
    Other(anyhow::Error),
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

/// Runs the command line; the result is the program's exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            // Nothing can be done about a closed standard error.
            let _ = error.print();
            return if wrong { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let result = match cli.command {
        Command::Playbook(args) => playbook::run(&args),
        Command::Inventory(args) => inventory::run(&args),
        Command::Doc(args) => doc::run(&args),
        Command::Vault(args) => vault::run(&args),
    };
    result.unwrap_or_else(|failure| say(&failure))
}

/// Prints what a person should do now.
#[allow(clippy::print_stderr)]
fn note(message: &str) {
    eprintln!("{message}");
}

/// Prints what a person should know although the work goes on.
#[allow(clippy::print_stderr)]
fn warn(message: &str) {
    eprintln!("warning: {message}");
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
        return Err(anyhow::anyhow!("the limit {limit:?} leaves no hosts").into());
    }
    Ok(())
}

/// Prints a failure with its causes and hints.
#[allow(clippy::print_stderr)]
fn say(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Written(complaints) => {
            for complaint in complaints {
                eprintln!("{}", crate::report::complaint::render(complaint));
            }
            ExitCode::Parse
        }
        Failure::Other(error) => {
            eprintln!("error: {error:#}");
            ExitCode::Error
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_sub_command_is_well_formed() {
        Cli::command().debug_assert();
    }
}
