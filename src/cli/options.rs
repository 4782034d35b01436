//! Options that several sub-commands share, and what becomes of them together with the settings: the command line wins.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::{CliError, ask, vault};
use crate::connection::HostKeys;
use crate::deployment;
use crate::engine::Defaults;
use crate::inventory::Inventory;
use crate::settings::{Settings, list};
use crate::value::Secret;

/// Where hosts come from.
#[derive(Debug, Args)]
pub(super) struct InventorySource {
    /// Inventory: a file (INI, YAML), an executable script, a custom resource, a directory of these,
    /// a comma list "a,b,", or kube:[CONTEXT/]NAMESPACE/NAME
    #[arg(short = 'i', long = "inventory", alias = "inventory-file", value_name = "INVENTORY")]
    pub inventory: Vec<String>,
    /// Run only on hosts that also match this pattern
    #[arg(short = 'l', long, value_name = "PATTERN")]
    pub limit: Option<String>,
}

impl InventorySource {
    /// The inventories to read: those of the command line, or else of the settings; the default one only if it is there.
    pub(super) fn inventories(&self, settings: &Settings) -> Vec<String> {
        if !self.inventory.is_empty() {
            return self.inventory.clone();
        }
        let by_default = settings.given(&list::INVENTORY).is_none();
        let there = |path: &String| !by_default || std::path::Path::new(path).exists();
        settings.list_setting(&list::INVENTORY).into_iter().filter(there).collect()
    }
}

/// How a run goes about its work.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Variables: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    /// Change nothing; show what would change
    #[arg(short = 'C', long)]
    pub check: bool,
    /// Show how files change
    #[arg(short = 'D', long)]
    pub diff: bool,
    /// How many hosts to work on at once (20 unless configured)
    #[arg(short = 'f', long, value_name = "FORKS", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub forks: Option<usize>,
    #[command(flatten)]
    pub offline: Offline,
    /// More directories with your own modules
    #[arg(short = 'M', long, value_name = "DIRECTORY", value_delimiter = ':')]
    pub module_path: Vec<PathBuf>,
    /// Clear the fact cache of the hosts
    #[arg(long)]
    pub flush_cache: bool,
}

/// Whether a run connects only to its own hosts.
#[derive(Debug, Clone, Args)]
pub(super) struct Offline {
    /// Connect only to hosts of the inventory, to API servers, and to addresses given here; anything else is an error
    #[arg(
        id = "offline",
        long = "offline",
        value_name = "ADDRESS,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_delimiter = ','
    )]
    pub besides: Option<Vec<String>>,
}

/// Passwords of vaulted files and strings.
#[derive(Debug, Args)]
pub(super) struct VaultPasswords {
    /// File with a vault password, or an executable that prints it
    #[arg(long = "vault-password-file", alias = "vault-pass-file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A named vault password: NAME@FILE, or NAME@prompt
    #[arg(long = "vault-id", value_name = "NAME@SOURCE")]
    pub ids: Vec<String>,
    /// Ask for the vault password
    #[arg(short = 'J', long = "ask-vault-pass", alias = "ask-vault-password")]
    pub ask: bool,
}

/// How hosts are reached, and as whom.
#[derive(Debug, Args)]
pub(super) struct ConnectionArgs {
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
    /// File with the connection password, or an executable that prints it
    #[arg(long, alias = "conn-pass-file", value_name = "FILE", conflicts_with = "ask_pass")]
    connection_password_file: Option<PathBuf>,
    /// Run as another user (default root, see --become-user)
    #[arg(short = 'b', long = "become")]
    r#become: bool,
    /// The user to become
    #[arg(long = "become-user", value_name = "USER")]
    become_user: Option<String>,
    /// How to become that user: sudo or su
    #[arg(long = "become-method", value_name = "METHOD", value_parser = ["sudo", "su"])]
    become_method: Option<String>,
    /// Ask for the become password
    #[arg(short = 'K', long = "ask-become-pass")]
    ask_become_pass: bool,
    /// File with the become password, or an executable that prints it
    #[arg(long, alias = "become-pass-file", value_name = "FILE", conflicts_with = "ask_become_pass")]
    become_password_file: Option<PathBuf>,
    /// Seconds to wait for a connection
    #[arg(short = 'T', long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// More ssh options, such as "-o ProxyJump=bastion"
    #[arg(long = "ssh-common-args", value_name = "ARGS", allow_hyphen_values = true)]
    ssh_common_args: Option<String>,
    /// Even more ssh options
    #[arg(long = "ssh-extra-args", value_name = "ARGS", allow_hyphen_values = true)]
    ssh_extra_args: Option<String>,
    /// Accepted and ignored: windlass does not use sftp or scp
    #[arg(
        long = "sftp-extra-args",
        alias = "scp-extra-args",
        value_name = "ARGS",
        allow_hyphen_values = true,
        hide = true
    )]
    _sftp_extra_args: Option<String>,
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
    /// The options of the engine; prompts for the requested passwords.
    pub(super) fn defaults(&self, settings: &Settings) -> Result<Defaults, CliError> {
        let given = |setting| settings.given(setting).map(|found| found.value.to_string());
        let password = self.password(settings)?;
        Ok(Defaults {
            user: self.user.clone().or_else(|| settings.text_setting(&list::REMOTE_USER)),
            port: settings.given(&list::REMOTE_PORT).and_then(|port| port.value.as_i64()?.try_into().ok()),
            connection: self.connection.clone().or_else(|| given(&list::TRANSPORT)),
            private_key_file: self.private_key.clone().or_else(|| settings.path_setting(&list::PRIVATE_KEY_FILE)),
            private_key_passphrase: settings.secret_setting(&list::PRIVATE_KEY_PASSPHRASE),
            connect_timeout: self
                .timeout
                .or_else(|| settings.given(&list::TIMEOUT).map(|_| settings.number_setting(&list::TIMEOUT)))
                .map(Duration::from_secs),
            host_keys: self.host_keys(settings),
            retries: settings.number_setting(&list::SSH_RETRIES).try_into().unwrap_or(u32::MAX),
            r#become: self.r#become || settings.bool(&list::BECOME),
            become_user: self.become_user.clone().or_else(|| given(&list::BECOME_USER)),
            become_method: self.become_method.clone().or_else(|| given(&list::BECOME_METHOD)),
            become_exe: settings.text_setting(&list::BECOME_EXE),
            become_flags: settings.text_setting(&list::BECOME_FLAGS),
            become_password: self.become_password(settings, password.as_ref())?,
            password,
            ssh_args: settings.text_setting(&list::SSH_ARGS).unwrap_or_default(),
            ssh_common_args: self.ssh_common_args.clone().or_else(|| given(&list::SSH_COMMON_ARGS)).unwrap_or_default(),
            ssh_extra_args: self.ssh_extra_args.clone().or_else(|| given(&list::SSH_EXTRA_ARGS)).unwrap_or_default(),
            ssh_config: None,
        })
    }

    /// The first option that gives a password or a key of the person's own. `defaults` keeps them from hosts of a resource
    /// of another user, so that typing one there is a mistake.
    pub(super) fn own_login(&self) -> Option<&'static str> {
        let typed = [
            ("--private-key", self.private_key.is_some()),
            ("--ask-pass", self.ask_pass),
            ("--connection-password-file", self.connection_password_file.is_some()),
            ("--ask-become-pass", self.ask_become_pass),
            ("--become-password-file", self.become_password_file.is_some()),
        ];
        typed.into_iter().find_map(|(option, typed)| typed.then_some(option))
    }

    /// Refuses such an option for the inventory of a resource from an API.
    pub(super) fn refuse_own_login(&self, inventory: &Inventory) -> Result<(), CliError> {
        Ok(deployment::refuse_own_login(self.own_login(), inventory)?)
    }

    /// The login password: from a prompt or a file.
    fn password(&self, settings: &Settings) -> Result<Option<Secret>, CliError> {
        let file = self.connection_password_file.clone();
        let setting = || settings.path_setting(&list::CONNECTION_PASSWORD_FILE);
        match file.or_else(|| setting().filter(|_| !self.ask_pass)) {
            Some(file) => Ok(Some(vault::password_of(&file, "connection")?)),
            None if self.ask_pass || settings.bool(&list::ASK_PASS) => Ok(Some(ask::ask_secret("SSH password: ")?)),
            None => Ok(None),
        }
    }

    /// The become password: from a prompt, a file, or a setting.
    fn become_password(&self, settings: &Settings, login: Option<&Secret>) -> Result<Option<Secret>, CliError> {
        let file = self.become_password_file.clone();
        let setting = || settings.path_setting(&list::BECOME_PASSWORD_FILE);
        match file.or_else(|| setting().filter(|_| !self.ask_become_pass)) {
            Some(file) => Ok(Some(vault::password_of(&file, "become")?)),
            None if self.ask_become_pass || settings.bool(&list::BECOME_ASK_PASS) => {
                let typed = ask::ask_secret("BECOME password[defaults to SSH password]: ")?;
                // Nothing typed: the login password, as with ansible-playbook.
                Ok(Some(typed).filter(|typed| !typed.reveal().is_empty()).or_else(|| login.cloned()))
            }
            None => Ok(settings.secret_setting(&list::BECOME_PASSWORD)),
        }
    }

    fn host_keys(&self, settings: &Settings) -> Option<HostKeys> {
        match self.host_keys {
            Some(HostKeyPolicy::Strict) => Some(HostKeys::Strict),
            Some(HostKeyPolicy::AcceptNew) => Some(HostKeys::AcceptNew),
            Some(HostKeyPolicy::Off) => Some(HostKeys::Off),
            None => settings.given(&list::HOST_KEY_CHECKING).map(|found| match found.value.as_str() {
                Some(_) => HostKeys::AcceptNew,
                None if found.value.is_true() => HostKeys::Strict,
                None => HostKeys::Off,
            }),
        }
    }
}

/// Options of a command that starts others on many deployments, which get them too.
#[derive(Debug, Args)]
pub(super) struct PassedOn {
    /// Variables of all deployments: KEY=VALUE, JSON or YAML text, or @FILE; no resource can replace them
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// Directory with etcd.yml, karmada.yml and the others (default: those in windlass)
    #[arg(long, value_name = "DIRECTORY")]
    playbooks: Option<PathBuf>,
}

impl PassedOn {
    /// As a command line has them.
    pub(super) fn as_options(&self) -> Vec<String> {
        let playbooks = self.playbooks.iter().map(|path| ("--playbooks", path.display().to_string()));
        let vars = self.extra_vars.iter().map(|vars| ("--extra-vars", vars.clone()));
        playbooks.chain(vars).map(|(option, value)| format!("{option}={value}")).collect()
    }
}
