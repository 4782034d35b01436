//! The keywords of tasks, handlers, blocks, roles and imports, many of which plays have too: what may be written for
//! each, where it is allowed, what it means, an example. `keywords.rs` describes how to add one.

use super::keywords::{BASE, BLOCK, HANDLER, IMPORT, INCLUDE, Keyword, KeywordType, ROLE, TASK, inherited, keyword};
use crate::value::doc::{Argument, ArgumentKind};

const DEBUGGER: KeywordType = KeywordType::Choice(&["never"]);

/// What `loop_control` takes.
pub(super) const LOOP_CONTROL: &[Argument] = &[
    Argument::new("loop_var", ArgumentKind::Str, "The variable that holds the item").default("item"),
    Argument::new("index_var", ArgumentKind::Str, "A variable for the item's position, from 0"),
    Argument::new("label", ArgumentKind::Any, "The text to show instead of the whole item"),
    Argument::new(
        "break_when",
        ArgumentKind::List(&ArgumentKind::Str),
        "The loop ends after an item for which these conditions are true",
    ),
    Argument::new("pause", ArgumentKind::Float, "Seconds to wait between two items"),
    Argument::new("extended", ArgumentKind::Bool, "Whether to set ansible_loop").default("false"),
    Argument::new("extended_allitems", ArgumentKind::Bool, "Whether ansible_loop also has all items").default("true"),
];

/// Sorted by name.
pub(super) const KEYWORDS: &[Keyword] = &[
    keyword("action", KeywordType::Any, TASK | INCLUDE)
        .about(
            "The module of a task and its arguments, in the long form. Writing the module's \
             name as a key is the usual way.",
        )
        .example(
            "
- action: copy src=motd dest=/etc/motd
",
        ),
    keyword("always", KeywordType::Any, BLOCK)
        .about("Tasks of a block that run at its end, whether or not something failed.")
        .example(
            "
- block:
    - command: /usr/local/bin/upgrade
  always:
    - command: /usr/local/bin/cleanup
",
        ),
    inherited("any_errors_fatal", KeywordType::Bool, BASE, |k| &mut k.any_errors_fatal)
        .about("Whether the play ends for all hosts as soon as a task fails on one.")
        .example(
            "
- hosts: etcd
  any_errors_fatal: true
",
        ),
    keyword("args", KeywordType::Mapping, TASK | INCLUDE)
        .about("More arguments of the module, in addition to its short form.")
        .example(
            "
- shell: make install
  args:
    chdir: /usr/src/etcd
",
        ),
    keyword("async", KeywordType::Int, TASK)
        .about("Runs the task in the background for at most this many seconds; see poll.")
        .example(
            "
- command: /usr/local/bin/backup
  async: 600
  poll: 10
",
        ),
    inherited("become", KeywordType::Bool, BASE, |k| &mut k.r#become)
        .about("Whether the task runs as another user (default root; see become_user).")
        .example(
            "
- command: systemctl daemon-reload
  become: true
",
        ),
    inherited("become_exe", KeywordType::Text, BASE, |k| &mut k.become_exe)
        .about("The program to become another user with, instead of sudo or su.")
        .example(
            "
- hosts: all
  become_exe: /usr/local/bin/sudo
",
        ),
    inherited("become_flags", KeywordType::Text, BASE, |k| &mut k.become_flags)
        .about("Options for the program to become another user with.")
        .example(
            "
- hosts: all
  become_flags: -H -S
",
        ),
    inherited("become_method", KeywordType::Text, BASE, |k| &mut k.become_method)
        .about("How to become another user: sudo or su.")
        .example(
            "
- hosts: all
  become_method: su
",
        ),
    inherited("become_user", KeywordType::Text, BASE, |k| &mut k.become_user).about("The user to become.").example(
        "
- command: whoami
  become: true
  become_user: etcd
",
    ),
    keyword("block", KeywordType::Any, BLOCK)
        .about("Tasks with common keywords, optionally with rescue and always.")
        .example(
            r#"
- block:
    - command: /bin/true
  when: inventory_hostname == "h1"
"#,
        ),
    keyword("changed_when", KeywordType::Conditions, TASK)
        .about("Conditions for the status changed, instead of the module's own result.")
        .example(
            "
- command: etcdctl member list
  changed_when: false
",
        ),
    inherited("check_mode", KeywordType::Bool, BASE, |k| &mut k.check_mode)
        .about("Whether the task runs in check mode. Overrides the command line.")
        .example(
            "
- command: etcdctl version
  check_mode: false
",
        ),
    keyword("collections", KeywordType::Texts, BASE | INCLUDE)
        .about(
            "The collections to search first for roles with a short name. Modules are found by their short names \
             without it.",
        )
        .example(
            "
- hosts: all
  collections: [my.collection]
",
        ),
    inherited("connection", KeywordType::Text, BASE, |k| &mut k.connection)
        .about("How to connect to hosts: ssh or local.")
        .example(
            "
- hosts: localhost
  connection: local
",
        ),
    inherited("debugger", DEBUGGER, BASE | INCLUDE, |k| &mut k.debugger)
        .about("When to start the debugger; only never is supported.")
        .example(
            "
- ping:
  debugger: never
",
        ),
    keyword("delay", KeywordType::Float, TASK)
        .about("How many seconds to wait between two attempts of until.")
        .example(
            "
- command: etcdctl endpoint health
  register: health
  until: health is succeeded
  delay: 2
",
        ),
    inherited("delegate_facts", KeywordType::Bool, BLOCK | TASK | ROLE, |k| &mut k.delegate_facts)
        .about("Whether facts that a delegated task finds belong to the host it is delegated to.")
        .example(
            "
- setup:
  delegate_to: h2
  delegate_facts: true
",
        ),
    inherited("delegate_to", KeywordType::Text, BLOCK | TASK | ROLE, |k| &mut k.delegate_to)
        .about("Another host to run the task on, with the variables of the host that the task is for.")
        .example(
            "
- command: register {{ inventory_hostname }}
  delegate_to: localhost
",
        ),
    inherited("diff", KeywordType::Bool, BASE, |k| &mut k.diff)
        .about("Whether to show how files change. Overrides the command line.")
        .example(
            "
- template: {src: secret.j2, dest: /etc/secret}
  diff: false
",
        ),
    keyword("environment", KeywordType::Mappings, BASE)
        .about("Environment variables for the programs that the task runs on the host.")
        .example(
            r#"
- command: etcdctl member list
  environment:
    ETCDCTL_API: "3"
"#,
        ),
    keyword("failed_when", KeywordType::Conditions, TASK)
        .about("Conditions for the status failed, instead of the module's own result.")
        .example(
            "
- command: grep -q etcd /etc/passwd
  register: found
  failed_when: found.rc > 1
",
        ),
    inherited("ignore_errors", KeywordType::Bool, BASE | INCLUDE, |k| &mut k.ignore_errors)
        .about("Whether the play continues for a host on which the task failed.")
        .example(
            "
- command: systemctl stop old.service
  ignore_errors: true
",
        ),
    inherited("ignore_unreachable", KeywordType::Bool, BASE, |k| &mut k.ignore_unreachable)
        .about("Whether the play continues for a host that was unreachable.")
        .example(
            "
- ping:
  ignore_unreachable: true
",
        ),
    keyword("import_playbook", KeywordType::Text, IMPORT)
        .about("Imports the plays of another file. Used in place of a play.")
        .example(
            "
- import_playbook: etcd.yml
",
        ),
    keyword("listen", KeywordType::Texts, HANDLER)
        .about("More names that notify a handler; several handlers may share one.")
        .example(
            "
- name: Restart etcd
  systemd_service: {name: etcd, state: restarted}
  listen: certificates changed
",
        ),
    keyword("local_action", KeywordType::Any, TASK).about("The same as action, run on the controller.").example(
        "
- local_action: command date
",
    ),
    keyword("loop", KeywordType::Loop, TASK | INCLUDE)
        .about(
            "Runs the task once for each item of a list. The item is the variable item \
             unless loop_control says otherwise.",
        )
        .example(
            r#"
- user: {name: "{{ item }}"}
  loop: [anna, ben]
"#,
        ),
    keyword("loop_control", KeywordType::Mapping, TASK | INCLUDE)
        .about("Settings of a loop: the names of its variables, the label of an item, pauses.")
        .parts(LOOP_CONTROL)
        .example(
            r#"
- debug: {msg: "{{ user.name }}"}
  loop: "{{ users }}"
  loop_control:
    loop_var: user
    label: "{{ user.name }}"
"#,
        ),
    keyword("module_defaults", KeywordType::Mappings, BASE)
        .about("Default arguments of modules for all tasks below, by module.")
        .example(
            "
- hosts: all
  module_defaults:
    file: {owner: root, group: root}
",
        ),
    keyword("name", KeywordType::Text, BASE | INCLUDE | IMPORT)
        .about("The name of the play, block or task in the report. Handlers are notified by it.")
        .example(
            "
- name: Check that etcd is installed
  stat: {path: /usr/local/bin/etcd}
",
        ),
    inherited("no_log", KeywordType::Bool, BASE | INCLUDE, |k| &mut k.no_log)
        .about("Whether to hide arguments and results in all reports.")
        .example(
            r#"
- user: {name: anna, password: "{{ hash }}"}
  no_log: true
"#,
        ),
    keyword("notify", KeywordType::Texts, BLOCK | TASK)
        .about("The handlers to run at the end if the task changed something, by name or listen.")
        .example(
            "
- template: {src: etcd.conf.j2, dest: /etc/etcd.conf}
  notify: Restart etcd
",
        ),
    keyword("poll", KeywordType::Int, TASK)
        .about(
            "How many seconds to wait between two status queries of a task with async (default 15); 0 does not \
            wait for its end.",
        )
        .example(
            "
- command: /usr/local/bin/backup
  async: 600
  poll: 10
",
        ),
    inherited("port", KeywordType::Int, BASE, |k| &mut k.port).about("The port to connect to.").example(
        "
- hosts: all
  port: 2222
",
    ),
    keyword("register", KeywordType::Text, TASK | INCLUDE).about("The variable for the task's result.").example(
        "
- command: etcd --version
  register: version
",
    ),
    inherited("remote_user", KeywordType::Text, BASE, |k| &mut k.remote_user).about("The user to log in as.").example(
        "
- hosts: all
  remote_user: deploy
",
    ),
    keyword("rescue", KeywordType::Any, BLOCK)
        .about("Tasks of a block that run on hosts on which one of its tasks failed; the host then counts as rescued.")
        .example(
            "
- block:
    - command: /usr/local/bin/upgrade
  rescue:
    - command: /usr/local/bin/roll-back
",
        ),
    keyword("retries", KeywordType::Int, TASK).about("The maximum number of retries of until (default 3).").example(
        "
- command: etcdctl endpoint health
  register: health
  until: health is succeeded
  retries: 10
",
    ),
    keyword("role", KeywordType::Text, ROLE)
        .about("The name of a role, in an entry of roles or of a role's dependencies.")
        .example(
            "
- hosts: all
  roles:
    - role: etcd
",
        ),
    inherited("run_once", KeywordType::Bool, BASE | INCLUDE, |k| &mut k.run_once)
        .about("Whether the task runs only on the first host of the batch; its result applies to all.")
        .example(
            "
- command: etcdctl snapshot save /var/backups/etcd.db
  run_once: true
",
        ),
    keyword("tags", KeywordType::Texts, BASE | INCLUDE | IMPORT)
        .about("Tags, by which the command line selects tasks; always and never have a special meaning.")
        .example(
            "
- command: /usr/local/bin/backup
  tags: [backup, never]
",
        ),
    inherited("throttle", KeywordType::Int, BASE, |k| &mut k.throttle)
        .about("The maximum number of hosts that run the task at once.")
        .example(
            "
- command: /usr/local/bin/download
  throttle: 2
",
        ),
    inherited("timeout", KeywordType::Int, BASE | INCLUDE, |k| &mut k.timeout)
        .about("How many seconds the task may take before it fails.")
        .example(
            "
- command: /usr/local/bin/check
  timeout: 60
",
        ),
    keyword("until", KeywordType::Conditions, TASK)
        .about("Conditions; the task is retried until they are true, see retries and delay.")
        .example(
            "
- command: etcdctl endpoint health
  register: health
  until: health is succeeded
",
        ),
    keyword("vars", KeywordType::Mapping, BASE | INCLUDE | IMPORT).about("Variables for everything below.").example(
        r#"
- debug: {msg: "{{ greeting }}"}
  vars:
    greeting: hello
"#,
    ),
    keyword("when", KeywordType::Conditions, BLOCK | TASK | ROLE | INCLUDE | IMPORT)
        .about("Conditions without braces; unless all are true, the task is skipped.")
        .example(
            r#"
- command: systemctl restart etcd
  when:
    - etcd_config is changed
    - inventory_hostname in groups["etcd"]
"#,
        ),
];
