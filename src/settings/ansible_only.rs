//! Ansible's settings beside those of [`list`](super::list): not needed here, or not honoured, and why. A line is the
//! setting's place (`SECTION.*`: the whole section), its variables of the environment, and the value that is in force
//! anyway, if one is.

/// What becomes of a setting that has no meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relevance {
    /// Nothing is lost by leaving it out: no warning.
    NotNeeded,
    /// Setting it has no effect, so windlass warns.
    NotHonoured,
}

/// Place, variables of the environment, the value that is in force anyway.
pub type Row = (&'static str, &'static [&'static str], &'static str);

/// Settings that share a reason.
#[derive(Debug)]
pub struct SettingGroup {
    pub standing: Relevance,
    pub why: &'static str,
    pub settings: &'static [Row],
}

/// Variables of ours, of our tests and of Ansible's own workers that are no settings.
pub const NO_SETTINGS: &[&str] = &[
    "ANSIBLE_CONFIG",
    "WINDLASS_LOG",
    "WINDLASS_HOSTS_STATE",
    "WINDLASS_HANDED_SECRETS",
    "ANSIBLE_WORKER_SHUTDOWN_POLL_COUNT",
    "ANSIBLE_WORKER_SHUTDOWN_POLL_DELAY",
];

/// All of them.
pub static GROUPS: &[SettingGroup] = &[
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "hosts need no Python",
        settings: &[
            ("defaults.interpreter_python", &["ANSIBLE_PYTHON_INTERPRETER"], "auto"),
            ("defaults.module_compression", &[], "ZIP_DEFLATED"),
            ("defaults.python_module_rlimit_nofile", &["ANSIBLE_PYTHON_MODULE_RLIMIT_NOFILE"], "0"),
            ("defaults.module_strict_utf8_response", &["ANSIBLE_MODULE_STRICT_UTF8_RESPONSE"], "true"),
            ("defaults.no_target_syslog", &["ANSIBLE_NO_TARGET_SYSLOG"], "false"),
            ("defaults.syslog_facility", &["ANSIBLE_SYSLOG_FACILITY"], "LOG_USER"),
            ("defaults.target_log_info", &["ANSIBLE_TARGET_LOG_INFO"], ""),
            ("defaults.module_ignore_exts", &["ANSIBLE_MODULE_IGNORE_EXTS"], ""),
            ("defaults.keep_remote_files", &["ANSIBLE_KEEP_REMOTE_FILES"], "false"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass writes nothing to a temporary directory of the host",
        settings: &[
            ("defaults.remote_tmp", &["ANSIBLE_REMOTE_TEMP", "ANSIBLE_REMOTE_TMP"], "~/.ansible/tmp"),
            ("defaults.system_tmpdirs", &["ANSIBLE_SYSTEM_TMPDIRS"], "/var/tmp,/tmp"),
            ("defaults.allow_world_readable_tmpfiles", &["ANSIBLE_SHELL_ALLOW_WORLD_READABLE_TEMP"], "false"),
            ("defaults.common_remote_group", &["ANSIBLE_COMMON_REMOTE_GROUP"], ""),
            ("defaults.admin_users", &["ANSIBLE_ADMIN_USERS"], "root,toor"),
            ("defaults.local_tmp", &["ANSIBLE_LOCAL_TEMP"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass keeps one session per host and user open for the whole run",
        settings: &[
            ("defaults.pipelining", &["ANSIBLE_PIPELINING", "ANSIBLE_SSH_PIPELINING"], "false"),
            ("connection.pipelining", &[], "false"),
            ("ssh_connection.pipelining", &[], "false"),
            ("ssh_connection.control_path", &["ANSIBLE_SSH_CONTROL_PATH"], ""),
            ("ssh_connection.control_path_dir", &["ANSIBLE_SSH_CONTROL_PATH_DIR"], "~/.ansible/cp"),
            ("defaults.use_persistent_connections", &["ANSIBLE_USE_PERSISTENT_CONNECTIONS"], "false"),
            ("persistent_connection.*", &["ANSIBLE_PERSISTENT_*", "ANSIBLE_CONNECTION_PATH"], ""),
            ("defaults.old_plugin_cache_clear", &["ANSIBLE_OLD_PLUGIN_CACHE_CLEAR"], "false"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass sends files through the session, without sftp or scp",
        settings: &[
            ("ssh_connection.transfer_method", &["ANSIBLE_SSH_TRANSFER_METHOD"], "smart"),
            ("ssh_connection.scp_executable", &["ANSIBLE_SCP_EXECUTABLE"], "scp"),
            ("ssh_connection.scp_extra_args", &["ANSIBLE_SCP_EXTRA_ARGS"], ""),
            ("ssh_connection.sftp_executable", &["ANSIBLE_SFTP_EXECUTABLE"], "sftp"),
            ("ssh_connection.sftp_extra_args", &["ANSIBLE_SFTP_EXTRA_ARGS"], ""),
            ("ssh_connection.sftp_batch_mode", &["ANSIBLE_SFTP_BATCH_MODE"], "true"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "SSH is built in and asks no program for passwords",
        settings: &[
            ("ssh_connection.usetty", &["ANSIBLE_SSH_USETTY"], "true"),
            ("ssh_connection.sshpass_prompt", &["ANSIBLE_SSHPASS_PROMPT"], ""),
            ("ssh_connection.password_mechanism", &["ANSIBLE_SSH_PASSWORD_MECHANISM"], "ssh_askpass"),
            ("ssh_connection.verbosity", &["ANSIBLE_SSH_VERBOSITY"], "0"),
            ("paramiko_connection.*", &["ANSIBLE_PARAMIKO_*", "ANSIBLE_REMOTE_PARAMIKO_PORT"], ""),
            ("privilege_escalation.agnostic_become_prompt", &["ANSIBLE_AGNOSTIC_BECOME_PROMPT"], "true"),
            ("su_become_plugin.localized_prompts", &["ANSIBLE_SU_PROMPT_L10N"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass always does this",
        settings: &[
            ("defaults.jinja2_native", &["ANSIBLE_JINJA2_NATIVE"], "true"),
            ("defaults.error_on_undefined_vars", &["ANSIBLE_ERROR_ON_UNDEFINED_VARS"], "true"),
            ("defaults.invalid_task_attribute_failed", &["ANSIBLE_INVALID_TASK_ATTRIBUTE_FAILED"], "true"),
            ("inventory.any_unparsed_is_failed", &["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"], "true"),
            ("inventory.unparsed_is_failed", &["ANSIBLE_INVENTORY_UNPARSED_FAILED"], "true"),
            ("jinja2.dont_type_filters", &["ANSIBLE_STRING_TYPE_FILTERS"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass does not support this option",
        settings: &[
            ("defaults.validate_action_group_metadata", &["ANSIBLE_VALIDATE_ACTION_GROUP_METADATA"], "true"),
            ("inventory.inventory_unparsed_warning", &["ANSIBLE_INVENTORY_UNPARSED_WARNING"], "true"),
            ("defaults.allow_unsafe_lookups", &[], "false"),
            ("defaults.nocows", &["ANSIBLE_NOCOWS"], "false"),
            ("defaults.cowpath", &["ANSIBLE_COW_PATH"], ""),
            ("defaults.cow_selection", &["ANSIBLE_COW_SELECTION"], "default"),
            ("defaults.cowsay_enabled_stencils", &["ANSIBLE_COW_ACCEPTLIST"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass has nothing of this kind to warn about or to wait for",
        settings: &[
            ("defaults.deprecation_warnings", &["ANSIBLE_DEPRECATION_WARNINGS"], "true"),
            ("defaults.devel_warning", &["ANSIBLE_DEVEL_WARNING"], "true"),
            ("defaults.action_warnings", &["ANSIBLE_ACTION_WARNINGS"], "true"),
            ("defaults.system_warnings", &["ANSIBLE_SYSTEM_WARNINGS"], "true"),
            ("defaults.docsite_root_url", &[], "https://docs.ansible.com/ansible-core/"),
            ("defaults.internal_poll_interval", &[], "0.001"),
            (
                "defaults.collections_on_ansible_version_mismatch",
                &["ANSIBLE_COLLECTIONS_ON_ANSIBLE_VERSION_MISMATCH"],
                "warning",
            ),
            ("defaults.win_async_startup_timeout", &["ANSIBLE_WIN_ASYNC_STARTUP_TIMEOUT"], "5"),
            ("winrm.*", &[], ""),
            ("powershell.*", &[], ""),
            ("runas_become_plugin.*", &["ANSIBLE_RUNAS_FLAGS", "ANSIBLE_RUNAS_PASS", "ANSIBLE_RUNAS_USER"], ""),
            ("netconf_connection.*", &["ANSIBLE_NETCONF_SSH_CONFIG"], ""),
            ("defaults.netconf_plugins", &["ANSIBLE_NETCONF_PLUGINS"], ""),
            ("defaults.httpapi_plugins", &["ANSIBLE_HTTPAPI_PLUGINS"], ""),
            ("defaults.cliconf_plugins", &["ANSIBLE_CLICONF_PLUGINS"], ""),
            ("defaults.terminal_plugins", &["ANSIBLE_TERMINAL_PLUGINS"], ""),
            ("defaults.network_group_modules", &["ANSIBLE_NETWORK_GROUP_MODULES"], ""),
            ("selinux.libvirt_lxc_noseclabel", &["ANSIBLE_LIBVIRT_LXC_NOSECLABEL"], "false"),
            ("defaults.display_traceback", &["ANSIBLE_DISPLAY_TRACEBACK"], "never"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass does not download from Galaxy",
        settings: &[("galaxy.*", &["ANSIBLE_GALAXY_*"], "")],
    },
    SettingGroup {
        standing: Relevance::NotNeeded,
        why: "windlass has no such directory",
        settings: &[("defaults.home", &["ANSIBLE_HOME"], "~/.ansible")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass runs no Python plugins; your own modules, filters and lookups are programs \
            (docs/how-to/own-code.md)",
        settings: &[
            ("defaults.action_plugins", &["ANSIBLE_ACTION_PLUGINS"], ""),
            ("defaults.become_plugins", &["ANSIBLE_BECOME_PLUGINS"], ""),
            ("defaults.cache_plugins", &["ANSIBLE_CACHE_PLUGINS"], ""),
            ("defaults.callback_plugins", &["ANSIBLE_CALLBACK_PLUGINS"], ""),
            ("defaults.connection_plugins", &["ANSIBLE_CONNECTION_PLUGINS"], ""),
            ("defaults.doc_fragment_plugins", &["ANSIBLE_DOC_FRAGMENT_PLUGINS"], ""),
            ("defaults.inventory_plugins", &["ANSIBLE_INVENTORY_PLUGINS"], ""),
            ("defaults.module_utils", &["ANSIBLE_MODULE_UTILS"], ""),
            ("defaults.strategy_plugins", &["ANSIBLE_STRATEGY_PLUGINS"], ""),
            ("defaults.test_plugins", &["ANSIBLE_TEST_PLUGINS"], ""),
            ("defaults.vars_plugins", &["ANSIBLE_VARS_PLUGINS"], ""),
            ("defaults.vars_plugins_enabled", &["ANSIBLE_VARS_ENABLED"], ""),
            ("defaults.jinja2_extensions", &["ANSIBLE_JINJA2_EXTENSIONS"], ""),
            ("defaults.plugin_filters_cfg", &[], ""),
            ("inventory.enable_plugins", &["ANSIBLE_INVENTORY_ENABLED"], ""),
            ("defaults.facts_modules", &["ANSIBLE_FACTS_MODULES"], "smart"),
            ("inventory_plugins.*", &["ANSIBLE_INVENTORY_USE_EXTRA_VARS"], ""),
            ("inventory_plugin_script.*", &["ANSIBLE_INVENTORY_PLUGIN_SCRIPT_STDERR"], ""),
            ("vars_host_group_vars.*", &["ANSIBLE_VARS_PLUGIN_STAGE"], ""),
            ("defaults.run_vars_plugins", &["ANSIBLE_RUN_VARS_PLUGINS"], "demand"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass uses only roles of collections, from collections_path",
        settings: &[("defaults.collections_scan_sys_path", &["ANSIBLE_COLLECTIONS_SCAN_SYS_PATH"], "true")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass has no callback plugins; --output chooses the report",
        settings: &[
            ("defaults.callbacks_enabled", &["ANSIBLE_CALLBACKS_ENABLED"], ""),
            ("defaults.stdout_callback", &["ANSIBLE_STDOUT_CALLBACK"], "default"),
            ("defaults.bin_ansible_callbacks", &["ANSIBLE_LOAD_CALLBACK_PLUGINS"], "false"),
            ("callback_tree.*", &["ANSIBLE_CALLBACK_TREE_DIR"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "the report has no such option",
        settings: &[
            ("defaults.display_args_to_stdout", &["ANSIBLE_DISPLAY_ARGS_TO_STDOUT"], "false"),
            ("defaults.verbose_to_stderr", &["ANSIBLE_VERBOSE_TO_STDERR"], "false"),
            ("colors.*", &["ANSIBLE_COLOR_*"], ""),
            ("defaults.max_diff_size", &["ANSIBLE_MAX_DIFF_SIZE"], "104448"),
            ("defaults.log_filter", &["ANSIBLE_LOG_FILTER"], ""),
            ("defaults.log_verbosity", &["ANSIBLE_LOG_VERBOSITY"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "the precedence of variables is Ansible's default",
        settings: &[
            ("defaults.precedence", &["ANSIBLE_PRECEDENCE"], ""),
            ("defaults.playbook_vars_root", &["ANSIBLE_PLAYBOOK_VARS_ROOT"], "top"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "file extensions are Ansible's defaults",
        settings: &[
            (
                "defaults.yaml_valid_extensions",
                &["ANSIBLE_YAML_FILENAME_EXT", "ANSIBLE_INVENTORY_PLUGIN_EXTS"],
                ".yml,.yaml,.json",
            ),
            ("inventory_plugin_yaml.*", &[], ""),
            ("defaults.inventory_ignore_extensions", &["ANSIBLE_INVENTORY_IGNORE"], ""),
            ("defaults.inventory_ignore_patterns", &["ANSIBLE_INVENTORY_IGNORE_REGEX"], ""),
            ("inventory.ignore_extensions", &[], ""),
            ("inventory.ignore_patterns", &[], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass does not change group names",
        settings: &[("defaults.force_valid_group_names", &["ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS"], "never")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "a pattern that matches nothing is a warning",
        settings: &[("inventory.host_pattern_mismatch", &["ANSIBLE_HOST_PATTERN_MISMATCH"], "warning")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "the behaviour of templates cannot be changed",
        settings: &[
            ("defaults.allow_embedded_templates", &["ANSIBLE_ALLOW_EMBEDDED_TEMPLATES"], "true"),
            ("defaults.null_representation", &["ANSIBLE_NULL_REPRESENTATION"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "ansible-core no longer has it; set the variable ansible_managed",
        settings: &[("defaults.ansible_managed", &[], "Ansible managed")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "set the variable ansible_async_dir instead",
        settings: &[("defaults.async_dir", &["ANSIBLE_ASYNC_DIR"], "~/.ansible_async")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass has no debugger",
        settings: &[
            ("defaults.enable_task_debugger", &["ANSIBLE_ENABLE_TASK_DEBUGGER"], "false"),
            ("defaults.task_debugger_ignore_errors", &["ANSIBLE_TASK_DEBUGGER_IGNORE_ERRORS"], "true"),
            ("defaults.debug", &["ANSIBLE_DEBUG"], "false"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass has no pager",
        settings: &[("defaults.pager", &["ANSIBLE_PAGER", "PAGER"], "less")],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "SSH is built in, without such a program or option",
        settings: &[
            ("ssh_connection.ssh_executable", &["ANSIBLE_SSH_EXECUTABLE"], "ssh"),
            ("ssh_connection.private_key", &["ANSIBLE_PRIVATE_KEY"], ""),
            ("ssh_connection.pkcs11_provider", &["ANSIBLE_PKCS11_PROVIDER"], ""),
            ("connection.ssh_agent", &["ANSIBLE_SSH_AGENT"], "none"),
            ("connection.ssh_agent_executable", &["ANSIBLE_SSH_AGENT_EXECUTABLE"], "ssh-agent"),
            ("connection.ssh_agent_key_lifetime", &["ANSIBLE_SSH_AGENT_KEY_LIFETIME"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "commands run by /bin/sh unless a task says otherwise",
        settings: &[
            ("defaults.executable", &["ANSIBLE_EXECUTABLE"], "/bin/sh"),
            ("sudo_become_plugin.chdir", &["ANSIBLE_SUDO_CHDIR"], ""),
            ("privilege_escalation.become_allow_same_user", &["ANSIBLE_BECOME_ALLOW_SAME_USER"], "false"),
            ("defaults.su", &["ANSIBLE_SU"], "false"),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass tries every vault password, and gives every text its own salt",
        settings: &[
            ("defaults.vault_id_match", &["ANSIBLE_VAULT_ID_MATCH"], "false"),
            ("defaults.vault_encrypt_salt", &["ANSIBLE_VAULT_ENCRYPT_SALT"], ""),
        ],
    },
    SettingGroup {
        standing: Relevance::NotHonoured,
        why: "windlass does not support SELinux",
        settings: &[("selinux.special_context_filesystems", &["ANSIBLE_SELINUX_SPECIAL_FS"], "")],
    },
];
