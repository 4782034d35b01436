//! The list of settings that have a meaning here. From it come the reading of files and of the environment,
//! `windlass config` and the table in `docs/reference/configuration.md`; `ansible_only.rs` names all other settings of Ansible.
//!
//! To add one: a constant here, its name in [`SETTINGS`], and `UPDATE_DOCS=1 cargo test --test config`.

pub use super::resources::*;
use super::{Setting, SettingKind};

/// A setting of a file; what is not said by the methods below it has not.
pub(super) const fn setting(
    section: &'static str,
    key: &'static str,
    kind: SettingKind,
    default: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { section, key, also: &[], env: &[], kind, default, option: "", meaning }
}

impl Setting {
    const fn also(self, also: &'static [(&'static str, &'static str)]) -> Setting {
        Setting { also, ..self }
    }

    pub(super) const fn env(self, env: &'static [&'static str]) -> Setting {
        Setting { env, ..self }
    }

    const fn option(self, option: &'static str) -> Setting {
        Setting { option, ..self }
    }
}

// What a run is about.
pub const INVENTORY: Setting = setting(
    "defaults",
    "inventory",
    SettingKind::PathList,
    "/etc/ansible/hosts",
    "inventories; the default one is used only if it exists",
)
.env(&["ANSIBLE_INVENTORY"])
.option("inventory");
pub const ROLES_PATH: Setting = setting(
    "defaults",
    "roles_path",
    SettingKind::Paths,
    "~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles",
    "directories to search for roles, after roles/ next to the playbook",
)
.env(&["ANSIBLE_ROLES_PATH"])
.option("roles-path");
pub const COLLECTIONS_PATH: Setting = setting(
    "defaults",
    "collections_path",
    SettingKind::Paths,
    "~/.ansible/collections:/usr/share/ansible/collections",
    "directories to search for the roles of collections, after collections/ next to the playbook",
)
.env(&["ANSIBLE_COLLECTIONS_PATH"]);
pub const LIBRARY: Setting = setting(
    "defaults",
    "library",
    SettingKind::Paths,
    "~/.ansible/plugins/modules:/usr/share/ansible/plugins/modules",
    "directories to search for your own modules, after library/ of roles and next to the playbook",
)
.env(&["ANSIBLE_LIBRARY"])
.option("module-path");
pub const FILTER_PLUGINS: Setting = setting(
    "defaults",
    "filter_plugins",
    SettingKind::Paths,
    "~/.ansible/plugins/filter:/usr/share/ansible/plugins/filter",
    "directories to search for your own filters, after filter_plugins/ next to the playbook",
)
.env(&["ANSIBLE_FILTER_PLUGINS"]);
pub const LOOKUP_PLUGINS: Setting = setting(
    "defaults",
    "lookup_plugins",
    SettingKind::Paths,
    "~/.ansible/plugins/lookup:/usr/share/ansible/plugins/lookup",
    "directories to search for your own lookups, after lookup_plugins/ next to the playbook",
)
.env(&["ANSIBLE_LOOKUP_PLUGINS"]);
pub const PLAYBOOK_DIR: Setting = setting(
    "defaults",
    "playbook_dir",
    SettingKind::Path,
    "",
    "the directory whose group_vars/ and roles/ are used without a playbook",
)
.env(&["ANSIBLE_PLAYBOOK_DIR"])
.option("playbook-dir");
pub const TAGS_RUN: Setting = setting("tags", "run", SettingKind::List, "", "run only tasks with one of these tags")
    .env(&["ANSIBLE_RUN_TAGS"])
    .option("tags");
pub const TAGS_SKIP: Setting = setting("tags", "skip", SettingKind::List, "", "skip tasks with one of these tags")
    .env(&["ANSIBLE_SKIP_TAGS"])
    .option("skip-tags");
pub const MODULE_NAME: Setting =
    setting("defaults", "module_name", SettingKind::Text, "command", "the default module of windlass run")
        .option("module-name");
pub const MODULE_ARGS: Setting =
    setting("defaults", "module_args", SettingKind::Text, "", "the default arguments of windlass run")
        .env(&["ANSIBLE_MODULE_ARGS"])
        .option("args");

// How it goes.
pub const FORKS: Setting = setting("defaults", "forks", SettingKind::Int(1), "20", "how many hosts to work on at once")
    .env(&["ANSIBLE_FORKS"])
    .option("forks");
pub const GATHERING: Setting = setting(
    "defaults",
    "gathering",
    SettingKind::Choice(&["implicit", "explicit", "smart"]),
    "implicit",
    "gather facts unless a play says no, only if it says yes, or only for hosts that have none yet",
)
.env(&["ANSIBLE_GATHERING"]);
pub const HASH_BEHAVIOUR: Setting = setting(
    "defaults",
    "hash_behaviour",
    SettingKind::Choice(&["replace", "merge"]),
    "replace",
    "whether a mapping replaces one of lower precedence or is merged into it",
)
.env(&["ANSIBLE_HASH_BEHAVIOUR"]);
pub const ALLOW_BROKEN_CONDITIONALS: Setting = setting(
    "defaults",
    "allow_broken_conditionals",
    SettingKind::Bool,
    "false",
    "whether conditions may have any type, and are true as in Python",
)
.env(&["ANSIBLE_ALLOW_BROKEN_CONDITIONALS"]);
pub const STRATEGY: Setting = setting(
    "defaults",
    "strategy",
    SettingKind::Choice(&["linear", "free"]),
    "linear",
    "the default strategy of plays",
)
.env(&["ANSIBLE_STRATEGY"]);
pub const ANY_ERRORS_FATAL: Setting =
    setting("defaults", "any_errors_fatal", SettingKind::Bool, "false", "the default of any_errors_fatal in plays")
        .env(&["ANSIBLE_ANY_ERRORS_FATAL"]);
pub const FORCE_HANDLERS: Setting =
    setting("defaults", "force_handlers", SettingKind::Bool, "false", "the default of force_handlers in plays")
        .env(&["ANSIBLE_FORCE_HANDLERS"])
        .option("force-handlers");
pub const TASK_TIMEOUT: Setting =
    setting("defaults", "task_timeout", SettingKind::Int(0), "0", "the default timeout of tasks, in seconds; 0: none")
        .env(&["ANSIBLE_TASK_TIMEOUT"])
        .option("task-timeout");
pub const NO_LOG: Setting = setting("defaults", "no_log", SettingKind::Bool, "false", "the default of no_log in tasks")
    .env(&["ANSIBLE_NO_LOG"]);
pub const PRIVATE_ROLE_VARS: Setting = setting(
    "defaults",
    "private_role_vars",
    SettingKind::Bool,
    "false",
    "variables of roles are visible only in these roles",
)
.env(&["ANSIBLE_PRIVATE_ROLE_VARS"]);
pub const INJECT_FACTS_AS_VARS: Setting = setting(
    "defaults",
    "inject_facts_as_vars",
    SettingKind::Bool,
    "true",
    "facts are also variables, not only in ansible_facts",
)
.env(&["ANSIBLE_INJECT_FACT_VARS"]);
pub const ERROR_ON_MISSING_HANDLER: Setting = setting(
    "defaults",
    "error_on_missing_handler",
    SettingKind::Bool,
    "true",
    "notifying a missing handler is an error",
)
.env(&["ANSIBLE_ERROR_ON_MISSING_HANDLER"]);
pub const DUPLICATE_DICT_KEY: Setting = setting(
    "defaults",
    "duplicate_dict_key",
    SettingKind::Choice(&["warn", "error", "ignore"]),
    "warn",
    "what to do about duplicate keys in a YAML mapping",
)
.env(&["ANSIBLE_DUPLICATE_YAML_DICT_KEY"]);

pub const FACT_CACHING: Setting = setting(
    "defaults",
    "fact_caching",
    SettingKind::Choice(&["memory", "jsonfile", "ansible.builtin.memory", "ansible.builtin.jsonfile"]),
    "memory",
    "where to keep facts: in memory for the run, or in files across runs",
)
.env(&["ANSIBLE_CACHE_PLUGIN"]);
pub const FACT_CACHING_CONNECTION: Setting =
    setting("defaults", "fact_caching_connection", SettingKind::Path, "", "the directory of jsonfile")
        .env(&["ANSIBLE_CACHE_PLUGIN_CONNECTION"]);
pub const FACT_CACHING_PREFIX: Setting =
    setting("defaults", "fact_caching_prefix", SettingKind::Text, "", "the prefix of its file names")
        .env(&["ANSIBLE_CACHE_PLUGIN_PREFIX"]);
pub const FACT_CACHING_TIMEOUT: Setting = setting(
    "defaults",
    "fact_caching_timeout",
    SettingKind::Int(0),
    "86400",
    "seconds until cached facts expire; 0: never",
)
.env(&["ANSIBLE_CACHE_PLUGIN_TIMEOUT"]);

// How hosts are reached.
pub const REMOTE_USER: Setting = setting("defaults", "remote_user", SettingKind::Text, "", "the user to log in as")
    .env(&["ANSIBLE_REMOTE_USER"])
    .option("user");
pub const REMOTE_PORT: Setting =
    setting("defaults", "remote_port", SettingKind::Int(1), "", "the SSH port").env(&["ANSIBLE_REMOTE_PORT"]);
pub const TRANSPORT: Setting = setting(
    "defaults",
    "transport",
    SettingKind::Choice(&["ssh", "smart", "paramiko", "local"]),
    "ssh",
    "the connection",
)
.env(&["ANSIBLE_TRANSPORT"])
.option("connection");
pub const PRIVATE_KEY_FILE: Setting =
    setting("defaults", "private_key_file", SettingKind::Path, "", "the private key to log in with")
        .env(&["ANSIBLE_PRIVATE_KEY_FILE"])
        .option("private-key");
pub const PRIVATE_KEY_PASSPHRASE: Setting =
    setting("ssh_connection", "private_key_passphrase", SettingKind::Secret, "", "the passphrase of the private key")
        .env(&["ANSIBLE_PRIVATE_KEY_PASSPHRASE"]);
/// The default is `connection::CONNECT_TIMEOUT`; a test compares them.
pub const TIMEOUT: Setting =
    setting("defaults", "timeout", SettingKind::Int(1), "10", "seconds to wait for a connection")
        .also(&[("ssh_connection", "timeout")])
        .env(&["ANSIBLE_TIMEOUT", "ANSIBLE_SSH_TIMEOUT"])
        .option("timeout");
pub const HOST_KEY_CHECKING: Setting = setting(
    "defaults",
    "host_key_checking",
    SettingKind::BoolOr(&["accept-new"]),
    "true",
    "whether to check host keys; accept-new records those of new hosts",
)
.also(&[("ssh_connection", "host_key_checking")])
.env(&["ANSIBLE_HOST_KEY_CHECKING", "ANSIBLE_SSH_HOST_KEY_CHECKING"])
.option("host-keys");
pub const SSH_ARGS: Setting =
    setting("ssh_connection", "ssh_args", SettingKind::Text, "", "ssh options").env(&["ANSIBLE_SSH_ARGS"]);
pub const SSH_COMMON_ARGS: Setting = setting(
    "ssh_connection",
    "ssh_common_args",
    SettingKind::Text,
    "",
    "more ssh options, such as -o ProxyJump=bastion",
)
.env(&["ANSIBLE_SSH_COMMON_ARGS"])
.option("ssh-common-args");
pub const SSH_EXTRA_ARGS: Setting =
    setting("ssh_connection", "ssh_extra_args", SettingKind::Text, "", "even more ssh options")
        .env(&["ANSIBLE_SSH_EXTRA_ARGS"])
        .option("ssh-extra-args");
pub const SSH_RETRIES: Setting =
    setting("ssh_connection", "retries", SettingKind::Int(0), "0", "how often to retry a connection that fails")
        .also(&[("connection", "retries")])
        .env(&["ANSIBLE_SSH_RETRIES"]);
pub const ASK_PASS: Setting = setting("defaults", "ask_pass", SettingKind::Bool, "false", "ask for the login password")
    .env(&["ANSIBLE_ASK_PASS"])
    .option("ask-pass");
pub const CONNECTION_PASSWORD_FILE: Setting =
    setting("defaults", "connection_password_file", SettingKind::Path, "", "the file with the login password")
        .env(&["ANSIBLE_CONNECTION_PASSWORD_FILE"])
        .option("connection-password-file");

// Whom tasks become.
pub const BECOME: Setting =
    setting("privilege_escalation", "become", SettingKind::Bool, "false", "run tasks as another user")
        .env(&["ANSIBLE_BECOME"])
        .option("become");
pub const BECOME_USER: Setting =
    setting("privilege_escalation", "become_user", SettingKind::Text, "root", "the user to become")
        .also(&[("su_become_plugin", "user"), ("sudo_become_plugin", "user")])
        .env(&["ANSIBLE_BECOME_USER", "ANSIBLE_SU_USER", "ANSIBLE_SUDO_USER"])
        .option("become-user");
pub const BECOME_METHOD: Setting = setting(
    "privilege_escalation",
    "become_method",
    SettingKind::Choice(&["sudo", "su"]),
    "sudo",
    "how to become that user",
)
.env(&["ANSIBLE_BECOME_METHOD"])
.option("become-method");
pub const BECOME_EXE: Setting =
    setting("privilege_escalation", "become_exe", SettingKind::Text, "", "the become program, instead of sudo or su")
        .also(&[("su_become_plugin", "executable"), ("sudo_become_plugin", "executable")])
        .env(&["ANSIBLE_BECOME_EXE", "ANSIBLE_SU_EXE", "ANSIBLE_SUDO_EXE"]);
pub const BECOME_FLAGS: Setting =
    setting("privilege_escalation", "become_flags", SettingKind::Text, "", "options of that program")
        .also(&[("su_become_plugin", "flags"), ("sudo_become_plugin", "flags")])
        .env(&["ANSIBLE_BECOME_FLAGS", "ANSIBLE_SU_FLAGS", "ANSIBLE_SUDO_FLAGS"]);
pub const BECOME_ASK_PASS: Setting =
    setting("privilege_escalation", "become_ask_pass", SettingKind::Bool, "false", "ask for the become password")
        .env(&["ANSIBLE_BECOME_ASK_PASS"])
        .option("ask-become-pass");
pub const BECOME_PASSWORD: Setting = setting(
    "sudo_become_plugin",
    "password",
    SettingKind::Secret,
    "",
    "the become password; better in become_password_file",
)
.also(&[("su_become_plugin", "password")])
.env(&["ANSIBLE_BECOME_PASS", "ANSIBLE_SU_PASS", "ANSIBLE_SUDO_PASS"]);
pub const BECOME_PASSWORD_FILE: Setting =
    setting("defaults", "become_password_file", SettingKind::Path, "", "the file with the become password")
        .env(&["ANSIBLE_BECOME_PASSWORD_FILE"])
        .option("become-password-file");

// Vaults.
pub const VAULT_PASSWORD_FILE: Setting = setting(
    "defaults",
    "vault_password_file",
    SettingKind::Path,
    "",
    "the vault password file, or an executable that prints it",
)
.env(&["ANSIBLE_VAULT_PASSWORD_FILE"])
.option("vault-password-file");
pub const VAULT_IDENTITY_LIST: Setting = setting(
    "defaults",
    "vault_identity_list",
    SettingKind::List,
    "",
    "named vault passwords, NAME@FILE each; before those of --vault-id",
)
.env(&["ANSIBLE_VAULT_IDENTITY_LIST"]);
pub const VAULT_IDENTITY: Setting =
    setting("defaults", "vault_identity", SettingKind::Text, "default", "the name of vault passwords without a name")
        .env(&["ANSIBLE_VAULT_IDENTITY"]);
pub const VAULT_ENCRYPT_IDENTITY: Setting = setting(
    "defaults",
    "vault_encrypt_identity",
    SettingKind::Text,
    "",
    "the name of the vault password to encrypt with",
)
.env(&["ANSIBLE_VAULT_ENCRYPT_IDENTITY"])
.option("encrypt-vault-id");
pub const ASK_VAULT_PASS: Setting =
    setting("defaults", "ask_vault_pass", SettingKind::Bool, "false", "ask for the vault password")
        .env(&["ANSIBLE_ASK_VAULT_PASS"])
        .option("ask-vault-pass");

// The amount of output.
pub const VERBOSITY: Setting = setting("defaults", "verbosity", SettingKind::Int(0), "0", "how many times -v applies")
    .env(&["ANSIBLE_VERBOSITY"])
    .option("verbose");
pub const LOG_PATH: Setting = setting("defaults", "log_path", SettingKind::Path, "", "a file to append all output to")
    .env(&["ANSIBLE_LOG_PATH"])
    .option("log-file");
pub const FORCE_COLOR: Setting =
    setting("defaults", "force_color", SettingKind::Bool, "false", "print colours even without a terminal")
        .env(&["ANSIBLE_FORCE_COLOR"])
        .option("color");
pub const NOCOLOR: Setting = setting("defaults", "nocolor", SettingKind::Bool, "false", "print no colours")
    .env(&["ANSIBLE_NOCOLOR"])
    .option("color");
pub const DIFF_ALWAYS: Setting = setting("diff", "always", SettingKind::Bool, "false", "show how files change")
    .env(&["ANSIBLE_DIFF_ALWAYS"])
    .option("diff");
pub const LOCALHOST_WARNING: Setting =
    setting("defaults", "localhost_warning", SettingKind::Bool, "true", "warn if there is no inventory")
        .env(&["ANSIBLE_LOCALHOST_WARNING"]);
pub const INVENTORY_EXPORT: Setting =
    setting("inventory", "export", SettingKind::Bool, "false", "windlass inventory shows variables at their groups")
        .env(&["ANSIBLE_INVENTORY_EXPORT"])
        .option("export");

pub const DIFF_CONTEXT: Setting =
    setting("diff", "context", SettingKind::Int(0), "3", "how many lines to show around a change")
        .env(&["ANSIBLE_DIFF_CONTEXT"]);
pub const DISPLAY_OK_HOSTS: Setting =
    setting("defaults", "display_ok_hosts", SettingKind::Bool, "true", "show successful results that changed nothing")
        .env(&["ANSIBLE_DISPLAY_OK_HOSTS"]);
pub const DISPLAY_SKIPPED_HOSTS: Setting =
    setting("defaults", "display_skipped_hosts", SettingKind::Bool, "true", "show results of skipped tasks")
        .env(&["ANSIBLE_DISPLAY_SKIPPED_HOSTS"]);
pub const SHOW_CUSTOM_STATS: Setting =
    setting("defaults", "show_custom_stats", SettingKind::Bool, "true", "show the values of set_stats at the end")
        .env(&["ANSIBLE_SHOW_CUSTOM_STATS"]);
// Further options of the output of ansible-playbook.
pub const CHECK_MODE_MARKERS: Setting = setting(
    "defaults",
    "check_mode_markers",
    SettingKind::Bool,
    "false",
    "ansible-playbook marks plays and tasks in check mode",
)
.env(&["ANSIBLE_CHECK_MODE_MARKERS"]);
pub const DISPLAY_FAILED_STDERR: Setting = setting(
    "defaults",
    "display_failed_stderr",
    SettingKind::Bool,
    "false",
    "ansible-playbook prints failures on standard error",
)
.env(&["ANSIBLE_DISPLAY_FAILED_STDERR"]);
pub const SHOW_PER_HOST_START: Setting = setting(
    "defaults",
    "show_per_host_start",
    SettingKind::Bool,
    "false",
    "ansible-playbook prints when a host starts a task",
)
.env(&["ANSIBLE_SHOW_PER_HOST_START"]);
pub const SHOW_TASK_PATH_ON_FAILURE: Setting = setting(
    "defaults",
    "show_task_path_on_failure",
    SettingKind::Bool,
    "false",
    "ansible-playbook prints the location of a task that fails",
)
.env(&["ANSIBLE_SHOW_TASK_PATH_ON_FAILURE"]);
pub const CALLBACK_RESULT_FORMAT: Setting = setting(
    "defaults",
    "callback_result_format",
    SettingKind::Choice(&["json", "yaml"]),
    "json",
    "how ansible-playbook and ansible print results",
)
.env(&["ANSIBLE_CALLBACK_RESULT_FORMAT"]);
pub const CALLBACK_FORMAT_PRETTY: Setting = setting(
    "defaults",
    "callback_format_pretty",
    SettingKind::Bool,
    "",
    "whether ansible-playbook prints results with a line for each entry",
)
.env(&["ANSIBLE_CALLBACK_FORMAT_PRETTY"]);
pub const PROFILE: Setting =
    setting("windlass", "profile", SettingKind::Bool, "false", "print at the end how long tasks took")
        .env(&["WINDLASS_PROFILE"])
        .option("profile");
pub const OTLP: Setting =
    setting("windlass", "otlp", SettingKind::Text, "", "the OpenTelemetry collector to send traces to")
        .env(&["WINDLASS_OTLP"])
        .option("otlp");
pub const OUTPUT: Setting = setting(
    "windlass",
    "output",
    SettingKind::Choice(&["default", "human", "summary"]),
    "default",
    "what standard output shows of playbooks: human every task, summary one line per host; default means summary for commands on a deployment without -v, else human",
)
.env(&["WINDLASS_OUTPUT"])
.option("output");
pub const RUNS: Setting =
    setting("windlass", "runs", SettingKind::Bool, "true", "record runs, for windlass runs and windlass logs")
        .env(&["WINDLASS_RUNS"]);
pub const RUNS_DIRECTORY: Setting = setting(
    "windlass",
    "runs_directory",
    SettingKind::Path,
    "",
    "where runs are recorded; without it windlass/ in XDG_STATE_HOME, or else in ~/.local/state",
)
.env(&["WINDLASS_RUNS_DIRECTORY"]);
pub const RUNS_KEEP: Setting = setting(
    "windlass",
    "runs_keep",
    SettingKind::Int(1),
    "100",
    "how many runs of each command of a deployment to keep",
)
.env(&["WINDLASS_RUNS_KEEP"]);
pub const RUNS_KEEP_DAYS: Setting =
    setting("windlass", "runs_keep_days", SettingKind::Int(1), "365", "how many days to keep runs")
        .env(&["WINDLASS_RUNS_KEEP_DAYS"]);
pub const EDITOR: Setting = setting(
    "defaults",
    "editor",
    SettingKind::Text,
    "vi",
    "the editor of vault edit and vault create, with its options",
)
.env(&["EDITOR", "ANSIBLE_EDITOR"]);
// What a run does beside its plays.
pub const POLL_INTERVAL: Setting = setting(
    "defaults",
    "poll_interval",
    SettingKind::Int(1),
    "15",
    "how often to query a task with async and no poll, in seconds",
)
.env(&["ANSIBLE_POLL_INTERVAL"]);
pub const RETRY_FILES_ENABLED: Setting =
    setting("defaults", "retry_files_enabled", SettingKind::Bool, "false", "write failed hosts to PLAYBOOK.retry")
        .env(&["ANSIBLE_RETRY_FILES_ENABLED"]);
pub const RETRY_FILES_SAVE_PATH: Setting = setting(
    "defaults",
    "retry_files_save_path",
    SettingKind::Path,
    "",
    "the directory of these files; if empty, that of the playbook",
)
.env(&["ANSIBLE_RETRY_FILES_SAVE_PATH"]);
pub const UPLOADS: Setting =
    setting("windlass", "uploads", SettingKind::Int(0), "0", "how many hosts to send files to at once; 0: no limit")
        .env(&["WINDLASS_UPLOADS"])
        .option("uploads");
pub const BEFORE_PLAY: Setting =
    setting("windlass", "before_play", SettingKind::Path, "", "a file of tasks that run before every play")
        .env(&["WINDLASS_BEFORE_PLAY"]);
pub const AFTER_PLAY: Setting =
    setting("windlass", "after_play", SettingKind::Path, "", "a file of tasks that run after every play")
        .env(&["WINDLASS_AFTER_PLAY"]);
pub const BEFORE_ROLE: Setting =
    setting("windlass", "before_role", SettingKind::Path, "", "a file of tasks that run before every role")
        .env(&["WINDLASS_BEFORE_ROLE"]);
pub const AFTER_ROLE: Setting =
    setting("windlass", "after_role", SettingKind::Path, "", "a file of tasks that run after every role")
        .env(&["WINDLASS_AFTER_ROLE"]);

/// All of them, in the order in which they are shown.
pub static SETTINGS: &[&Setting] = &[
    &INVENTORY,
    &ROLES_PATH,
    &COLLECTIONS_PATH,
    &LIBRARY,
    &FILTER_PLUGINS,
    &LOOKUP_PLUGINS,
    &PLAYBOOK_DIR,
    &TAGS_RUN,
    &TAGS_SKIP,
    &MODULE_NAME,
    &MODULE_ARGS,
    &FORKS,
    &GATHERING,
    &HASH_BEHAVIOUR,
    &ALLOW_BROKEN_CONDITIONALS,
    &STRATEGY,
    &ANY_ERRORS_FATAL,
    &FORCE_HANDLERS,
    &TASK_TIMEOUT,
    &NO_LOG,
    &PRIVATE_ROLE_VARS,
    &INJECT_FACTS_AS_VARS,
    &ERROR_ON_MISSING_HANDLER,
    &DUPLICATE_DICT_KEY,
    &FACT_CACHING,
    &FACT_CACHING_CONNECTION,
    &FACT_CACHING_PREFIX,
    &FACT_CACHING_TIMEOUT,
    &REMOTE_USER,
    &REMOTE_PORT,
    &TRANSPORT,
    &PRIVATE_KEY_FILE,
    &PRIVATE_KEY_PASSPHRASE,
    &TIMEOUT,
    &HOST_KEY_CHECKING,
    &SSH_ARGS,
    &SSH_COMMON_ARGS,
    &SSH_EXTRA_ARGS,
    &SSH_RETRIES,
    &ASK_PASS,
    &CONNECTION_PASSWORD_FILE,
    &BECOME,
    &BECOME_USER,
    &BECOME_METHOD,
    &BECOME_EXE,
    &BECOME_FLAGS,
    &BECOME_ASK_PASS,
    &BECOME_PASSWORD,
    &BECOME_PASSWORD_FILE,
    &VAULT_PASSWORD_FILE,
    &VAULT_IDENTITY_LIST,
    &VAULT_IDENTITY,
    &VAULT_ENCRYPT_IDENTITY,
    &ASK_VAULT_PASS,
    &VERBOSITY,
    &LOG_PATH,
    &FORCE_COLOR,
    &NOCOLOR,
    &DIFF_ALWAYS,
    &DIFF_CONTEXT,
    &DISPLAY_OK_HOSTS,
    &DISPLAY_SKIPPED_HOSTS,
    &SHOW_CUSTOM_STATS,
    &CHECK_MODE_MARKERS,
    &DISPLAY_FAILED_STDERR,
    &SHOW_PER_HOST_START,
    &SHOW_TASK_PATH_ON_FAILURE,
    &CALLBACK_RESULT_FORMAT,
    &CALLBACK_FORMAT_PRETTY,
    &EDITOR,
    &PROFILE,
    &OTLP,
    &OUTPUT,
    &RUNS,
    &RUNS_DIRECTORY,
    &RUNS_KEEP,
    &RUNS_KEEP_DAYS,
    &LOCALHOST_WARNING,
    &INVENTORY_EXPORT,
    &POLL_INTERVAL,
    &RETRY_FILES_ENABLED,
    &RETRY_FILES_SAVE_PATH,
    &UPLOADS,
    &BEFORE_PLAY,
    &AFTER_PLAY,
    &BEFORE_ROLE,
    &AFTER_ROLE,
    &RESOURCE_TRUST,
    &RESOURCE_NETWORKS,
    &RESOURCE_BASTIONS,
    &RESOURCE_BUNDLES,
    &RESOURCE_FILES,
    &RESOURCE_HOOKS,
    &BUNDLE_SIGNERS,
    &BUNDLE_REVOKED,
    &BUNDLE_PRINCIPALS,
];
