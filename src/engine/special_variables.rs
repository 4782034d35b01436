//! The documentation of the variables that a run sets, and of those that it reads.
//! A new one is set or heeded in `scope.rs`, `loops.rs`, `task.rs` or `target.rs` and gets its line here.

use crate::value::doc::LanguageItem;

/// Sorted by name.
pub static VARIABLES: &[LanguageItem] = &[
    LanguageItem::new(
        "ansible_async_dir",
        "The directory on the host for the jobs of tasks with async (default ~/.ansible_async).",
    )
    .example("ansible_async_dir: /var/lib/jobs"),
    LanguageItem::new("ansible_become", "Whether tasks run as another user on the host. Overrides the keyword become.")
        .example("ansible_become: true"),
    LanguageItem::new("ansible_become_exe", "The program to become another user with.")
        .example("ansible_become_exe: /usr/local/bin/sudo"),
    LanguageItem::new("ansible_become_flags", "Options for the program to become another user with.")
        .example("ansible_become_flags: -H -S"),
    LanguageItem::new("ansible_become_method", "How to become another user on the host: sudo or su.")
        .example("ansible_become_method: su"),
    LanguageItem::new("ansible_become_pass", "The same as ansible_become_password.")
        .example("ansible_become_pass: \"{{ vault_sudo_password }}\""),
    LanguageItem::new("ansible_become_password", "The password that sudo or su asks for. Keep it in a vault file.")
        .example("ansible_become_password: \"{{ vault_sudo_password }}\""),
    LanguageItem::new("ansible_become_user", "The user to become on the host (default root).")
        .example("ansible_become_user: etcd"),
    LanguageItem::new("ansible_check_mode", "Whether the run only shows what it would change (check mode).")
        .example("when: not ansible_check_mode"),
    LanguageItem::new("ansible_collection_name", "In a role of a collection: the collection, with its namespace.")
        .example("\"{{ ansible_collection_name | default('none') }}\""),
    LanguageItem::new("ansible_config_file", "The settings file in use, if any.")
        .example("\"{{ ansible_config_file | default('', true) }}\""),
    LanguageItem::new("ansible_connection", "How to connect to the host: ssh or local.")
        .example("ansible_connection: local"),
    LanguageItem::new("ansible_connection_retries", "The same as ansible_ssh_retries.")
        .example("ansible_connection_retries: 3"),
    LanguageItem::new(
        "ansible_delegated_vars",
        "The variables of the host that the task is delegated to, by its name.",
    )
    .example("\"{{ ansible_delegated_vars['db1'].ansible_host }}\""),
    LanguageItem::new("ansible_dependent_role_names", "The roles of the play that others depend on.")
        .example("\"{{ ansible_dependent_role_names | join(', ') }}\""),
    LanguageItem::new("ansible_diff_mode", "Whether the run shows how files change.")
        .example("when: ansible_diff_mode"),
    LanguageItem::new("ansible_facts", "All facts of the host, by their names without ansible_.")
        .example("\"{{ ansible_facts.hostname }}\""),
    LanguageItem::new("ansible_failed_result", "In rescue and always: the result of the task that failed.")
        .example("\"{{ ansible_failed_result.msg }}\""),
    LanguageItem::new(
        "ansible_failed_task",
        "In rescue and always: the task that failed: name, action, args, register, tags.",
    )
    .example("\"{{ ansible_failed_task.name }}\""),
    LanguageItem::new("ansible_forks", "How many hosts windlass works on at once.").example("\"{{ ansible_forks }}\""),
    LanguageItem::new("ansible_host", "The address of the host, if it is not its name.")
        .example("ansible_host: 10.0.0.5"),
    LanguageItem::new("ansible_host_key_checking", "The same as ansible_ssh_host_key_checking.")
        .example("ansible_host_key_checking: false"),
    LanguageItem::new(
        "ansible_host_key_fingerprint",
        "The SHA-256 fingerprint that the host's key must have, as ssh-keygen -lf prints it; known hosts are then \
         ignored.",
    )
    .example("ansible_host_key_fingerprint: SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"),
    LanguageItem::new("ansible_index_var", "In a loop with index_var: the name of that variable.")
        .example("\"{{ lookup('vars', ansible_index_var) }}\""),
    LanguageItem::new("ansible_inventory_sources", "The inventories of the run, as a list of paths.")
        .example("\"{{ ansible_inventory_sources | first }}\""),
    LanguageItem::new("ansible_limit", "The pattern of --limit; undefined without it.")
        .example("when: ansible_limit is defined"),
    LanguageItem::new("ansible_local", "The host's own facts, from /etc/ansible/facts.d.")
        .example("\"{{ ansible_local.site.region }}\""),
    LanguageItem::new(
        "ansible_loop",
        "In a loop with extended: index, index0, revindex, revindex0, first, last, \
         length, previtem, nextitem, allitems.",
    )
    .example("when: not ansible_loop.last"),
    LanguageItem::new("ansible_loop_var", "In a loop: the name of the variable that holds the item.")
        .example("\"{{ lookup('vars', ansible_loop_var) }}\""),
    LanguageItem::new("ansible_parent_role_names", "The roles that use the current role, the nearest first.")
        .example("when: \"'etcd' in ansible_parent_role_names\""),
    LanguageItem::new(
        "ansible_parent_role_paths",
        "The directories of the roles that use the current role, the nearest first.",
    )
    .example("\"{{ ansible_parent_role_paths | first }}\""),
    LanguageItem::new("ansible_password", "The password to log in with. Keep it in a vault file, or use keys.")
        .example("ansible_password: \"{{ vault_password }}\""),
    LanguageItem::new("ansible_play_batch", "The hosts of the current batch that have not failed; see serial.")
        .example("\"{{ ansible_play_batch | length }}\""),
    LanguageItem::new("ansible_play_hosts", "The hosts of the play that have not failed.")
        .example("\"{{ ansible_play_hosts | join(', ') }}\""),
    LanguageItem::new("ansible_play_hosts_all", "All hosts of the play, including failed ones.")
        .example("\"{{ ansible_play_hosts_all | length }}\""),
    LanguageItem::new("ansible_play_name", "The name of the play.").example("\"{{ ansible_play_name }}\""),
    LanguageItem::new("ansible_play_role_names", "The roles that the play names itself.")
        .example("\"{{ ansible_play_role_names }}\""),
    LanguageItem::new("ansible_port", "The port to connect to.").example("ansible_port: 2222"),
    LanguageItem::new(
        "ansible_private_key",
        "The private key to log in with, as text. Used before any file and the agent.",
    )
    .example("ansible_private_key: \"{{ vault_private_key }}\""),
    LanguageItem::new("ansible_private_key_file", "A file on the controller with the private key to log in with.")
        .example("ansible_private_key_file: ~/.ssh/deploy"),
    LanguageItem::new("ansible_private_key_passphrase", "The same as ansible_ssh_private_key_passphrase.")
        .example("ansible_private_key_passphrase: \"{{ vault_passphrase }}\""),
    LanguageItem::new("ansible_role_name", "The name of the current role.").example("\"{{ ansible_role_name }}\""),
    LanguageItem::new("ansible_role_names", "The roles of the play and those they depend on.")
        .example("\"{{ ansible_role_names }}\""),
    LanguageItem::new("ansible_run_tags", "The tags of --tags; all without any.")
        .example("when: \"'backup' in ansible_run_tags\""),
    LanguageItem::new("ansible_search_path", "The directories that windlass searches for files of the current task.")
        .example("\"{{ ansible_search_path | join(':') }}\""),
    LanguageItem::new("ansible_skip_tags", "The tags of --skip-tags.").example("\"{{ ansible_skip_tags }}\""),
    LanguageItem::new("ansible_ssh_args", "ssh options for the host, before ansible_ssh_common_args.")
        .example("ansible_ssh_args: -o Compression=yes"),
    LanguageItem::new("ansible_ssh_common_args", "More ssh options for the host.")
        .example("ansible_ssh_common_args: -o ProxyJump=bastion"),
    LanguageItem::new("ansible_ssh_extra_args", "More ssh options for the host, added to ansible_ssh_common_args.")
        .example("ansible_ssh_extra_args: -o ServerAliveInterval=10"),
    LanguageItem::new("ansible_ssh_host", "The old name of ansible_host.").example("ansible_ssh_host: 10.0.0.5"),
    LanguageItem::new(
        "ansible_ssh_host_key_checking",
        "Whether the host's key must be known: true, false, or accept-new to record that \
         of a new host.",
    )
    .example("ansible_ssh_host_key_checking: accept-new"),
    LanguageItem::new("ansible_ssh_pass", "The same as ansible_password.")
        .example("ansible_ssh_pass: \"{{ vault_password }}\""),
    LanguageItem::new("ansible_ssh_password", "The same as ansible_password.")
        .example("ansible_ssh_password: \"{{ vault_password }}\""),
    LanguageItem::new("ansible_ssh_port", "The old name of ansible_port.").example("ansible_ssh_port: 2222"),
    LanguageItem::new("ansible_ssh_private_key", "The same as ansible_private_key.")
        .example("ansible_ssh_private_key: \"{{ vault_private_key }}\""),
    LanguageItem::new("ansible_ssh_private_key_file", "The same as ansible_private_key_file.")
        .example("ansible_ssh_private_key_file: ~/.ssh/deploy"),
    LanguageItem::new(
        "ansible_ssh_private_key_passphrase",
        "The passphrase of the private key. Keep it in a vault file.",
    )
    .example("ansible_ssh_private_key_passphrase: \"{{ vault_passphrase }}\""),
    LanguageItem::new("ansible_ssh_retries", "How often to retry a connection that fails.")
        .example("ansible_ssh_retries: 3"),
    LanguageItem::new("ansible_ssh_timeout", "The same as ansible_timeout.").example("ansible_ssh_timeout: 30"),
    LanguageItem::new("ansible_ssh_user", "The old name of ansible_user.").example("ansible_ssh_user: deploy"),
    LanguageItem::new("ansible_sudo_pass", "The old name of ansible_become_password.")
        .example("ansible_sudo_pass: \"{{ vault_sudo_password }}\""),
    LanguageItem::new("ansible_sudo_user", "The old name of ansible_become_user.").example("ansible_sudo_user: etcd"),
    LanguageItem::new("ansible_timeout", "Seconds to wait for a connection.").example("ansible_timeout: 30"),
    LanguageItem::new("ansible_user", "The user to log in as.").example("ansible_user: deploy"),
    LanguageItem::new("ansible_verbosity", "How many times -v was given.").example("when: ansible_verbosity > 1"),
    LanguageItem::new(
        "ansible_version",
        "The version of ansible-core whose language windlass implements; not that of \
        windlass.",
    )
    .example("when: ansible_version.full is version('2.15', '>=')"),
    LanguageItem::new("environment", "The environment keywords around the task, as a list.")
        .example("\"{{ environment }}\""),
    LanguageItem::new("group_names", "The groups that the host is in, without all.")
        .example("when: \"'etcd' in group_names\""),
    LanguageItem::new("groups", "All groups and the names of their hosts.")
        .example("\"{{ groups['etcd'] | join(',') }}\""),
    LanguageItem::new("hostvars", "The variables of all hosts, by their names.")
        .example("\"{{ hostvars['h1'].ansible_facts.hostname }}\""),
    LanguageItem::new("inventory_dir", "The directory of the inventory.")
        .example("\"{{ inventory_dir }}/credentials\""),
    LanguageItem::new("inventory_file", "The file of the inventory.").example("\"{{ inventory_file }}\""),
    LanguageItem::new("inventory_hostname", "The name of the host in the inventory.")
        .example("\"{{ inventory_hostname }}\""),
    LanguageItem::new("inventory_hostname_short", "The name of the host in the inventory up to its first dot.")
        .example("\"{{ inventory_hostname_short }}\""),
    LanguageItem::new("item", "In a loop: the current item, unless loop_control renames it.").example("\"{{ item }}\""),
    LanguageItem::new("omit", "A value that omits the argument that it is given to.")
        .example("\"{{ mode | default(omit) }}\""),
    LanguageItem::new("play_hosts", "The old name of ansible_play_batch.").example("\"{{ play_hosts }}\""),
    LanguageItem::new("playbook_dir", "The directory of the playbook.").example("\"{{ playbook_dir }}/files\""),
    LanguageItem::new("role_name", "The name of the current role.").example("\"{{ role_name }}\""),
    LanguageItem::new("role_names", "The old name of ansible_play_role_names.").example("\"{{ role_names }}\""),
    LanguageItem::new("role_path", "The directory of the current role.").example("\"{{ role_path }}/files/ca.pem\""),
    LanguageItem::new("vars", "All variables of the host by name, for computed names.")
        .example("\"{{ vars['etcd_' ~ inventory_hostname] }}\""),
    LanguageItem::new("windlass_hook_failed", "In the hooks after_play and after_role: whether this host has failed.")
        .example("when: windlass_hook_failed"),
    LanguageItem::new(
        "windlass_hook_failed_hosts",
        "In the hooks after_play and after_role: the hosts that failed or were unreachable.",
    )
    .example("\"{{ windlass_hook_failed_hosts | join(', ') }}\""),
    LanguageItem::new("windlass_hook_play", "In a hook: the name of the play.").example("\"{{ windlass_hook_play }}\""),
    LanguageItem::new("windlass_hook_role", "In the hooks before_role and after_role: the role.")
        .example("when: windlass_hook_role == 'etcd'"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::VARIABLES;

    #[test]
    fn the_list_is_sorted_and_every_variable_is_explained_with_an_example() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].name < pair[1].name));
        for word in VARIABLES {
            assert!(word.about.ends_with('.') && word.example.contains(word.name), "{}", word.name);
        }
    }

    /// Names in quotation marks that begin as such variables do.
    #[test]
    fn every_variable_that_the_engine_names_is_documented() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // This file names them all.
            let is_list = path.ends_with("variables.rs");
            let text = if is_list { String::new() } else { std::fs::read_to_string(path).unwrap_or_default() };
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for name in text.split('"').filter(|part| part.starts_with("ansible_") && part.len() > "ansible_".len()) {
                // A member of a job's result is no variable.
                if name == "ansible_job_id" {
                    continue;
                }
                if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                    found += 1;
                    assert!(VARIABLES.iter().any(|word| word.name == name), "{name} has no documentation");
                }
            }
        }
        assert!(found > 50, "only {found} names were found");
    }
}
