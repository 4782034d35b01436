//! The keywords that plays alone have: what may be written for each, what it means, an example.
//! `keywords.rs` describes how to add one.

use super::keywords::{Keyword, KeywordType, PLAY, inherited, keyword};
use crate::value::doc::{Argument, ArgumentKind};

const ORDER: KeywordType =
    KeywordType::Choice(&["inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle"]);

/// What `encrypt` may be.
pub(super) const SCHEMES: &[&str] = &["bcrypt", "sha256_crypt", "sha512_crypt"];

/// The keys of each variable that a play asks for.
pub(super) const PROMPT: &[Argument] = &[
    Argument::new("name", ArgumentKind::Str, "The variable").required(),
    Argument::new("prompt", ArgumentKind::Str, "The text of the prompt (default: the name of the variable)"),
    Argument::new("default", ArgumentKind::Any, "The value if nothing is typed"),
    Argument::new("private", ArgumentKind::Bool, "Whether to hide the typed text").default("true"),
    Argument::new("confirm", ArgumentKind::Bool, "Whether to ask twice").default("false"),
    Argument::new("encrypt", ArgumentKind::Str, "The hash algorithm; the variable then gets the hash of the answer")
        .choices(SCHEMES),
    Argument::new("salt", ArgumentKind::Str, "The salt of the hash (default: random)"),
    Argument::new("salt_size", ArgumentKind::Int, "The length of a random salt").default("16"),
    Argument::new(
        "unsafe",
        ArgumentKind::Bool,
        "Whether to keep template expressions in the answer as text; windlass always does",
    ),
];

/// Sorted by name.
pub(super) const KEYWORDS: &[Keyword] = &[
    keyword("fact_path", KeywordType::Text, PLAY)
        .about("A directory with local facts on the host, for the facts that the play gathers first.")
        .example(
            "
- hosts: all
  fact_path: /etc/ansible/facts.d
",
        ),
    keyword("force_handlers", KeywordType::Bool, PLAY)
        .about("Whether notified handlers run even on hosts on which a task failed.")
        .example(
            "
- hosts: all
  force_handlers: true
",
        ),
    keyword("gather_facts", KeywordType::Bool, PLAY)
        .about("Whether the play first gathers facts of its hosts (default true).")
        .example(
            "
- hosts: all
  gather_facts: false
",
        ),
    keyword("gather_subset", KeywordType::Texts, PLAY).about("Which facts the play gathers first.").example(
        r#"
- hosts: all
  gather_subset: [network, "!hardware"]
"#,
    ),
    keyword("gather_timeout", KeywordType::Int, PLAY).about("How many seconds gathering facts may take.").example(
        "
- hosts: all
  gather_timeout: 30
",
    ),
    keyword("handlers", KeywordType::Any, PLAY)
        .about("Tasks that run at the end, if a changed task has notified them.")
        .example(
            "
- hosts: all
  handlers:
    - name: Restart etcd
      systemd_service: {name: etcd, state: restarted}
",
        ),
    keyword("hosts", KeywordType::Texts, PLAY)
        .about("The hosts of a play: a pattern of names and groups, or a list of them.")
        .example(
            "
- hosts: etcd:!h3
",
        ),
    keyword("max_fail_percentage", KeywordType::Float, PLAY)
        .about("The percentage of hosts of a batch that may fail before the play ends for all.")
        .example(
            "
- hosts: etcd
  max_fail_percentage: 30
",
        ),
    keyword("order", ORDER, PLAY).about("The order of the hosts of a play.").example(
        "
- hosts: all
  order: sorted
",
    ),
    keyword("post_tasks", KeywordType::Any, PLAY)
        .about("Tasks that run after roles and tasks, and after the handlers these have notified.")
        .example(
            "
- hosts: all
  post_tasks:
    - command: /usr/local/bin/back-in-service
",
        ),
    keyword("pre_tasks", KeywordType::Any, PLAY)
        .about("Tasks that run before roles; the handlers they notify also run before the roles.")
        .example(
            "
- hosts: all
  pre_tasks:
    - command: /usr/local/bin/out-of-service
",
        ),
    keyword("roles", KeywordType::Any, PLAY)
        .about("The roles of a play, which run between pre_tasks and tasks.")
        .example(
            "
- hosts: etcd
  roles: [preflight, etcd]
",
        ),
    keyword("serial", KeywordType::Any, PLAY)
        .about(
            "How many hosts run the play at a time: a number, a percentage, or a list of these for successive batches.",
        )
        .example(
            r#"
- hosts: etcd
  serial: [1, "30%"]
"#,
        ),
    keyword("strategy", KeywordType::Any, PLAY)
        .about("How hosts run the tasks: linear keeps them together, free lets each run at its own pace.")
        .example(
            "
- hosts: all
  strategy: free
",
        ),
    keyword("tasks", KeywordType::Any, PLAY).about("The tasks of a play, which run after its roles.").example(
        "
- hosts: all
  tasks:
    - ping:
",
    ),
    // The old name of `remote_user`, still read in plays.
    inherited("user", KeywordType::Text, PLAY, |k| &mut k.remote_user)
        .about("The old name of remote_user, in plays only.")
        .example(
            "
- hosts: all
  user: deploy
",
        ),
    keyword("vars_files", KeywordType::Any, PLAY)
        .about("Files with variables for the play; of a list inside the list, the first existing file is used.")
        .example(
            r#"
- hosts: all
  vars_files:
    - vars/common.yml
    - ["vars/{{ inventory_hostname }}.yml", vars/default.yml]
"#,
        ),
    keyword("vars_prompt", KeywordType::Any, PLAY)
        .about("Variables to ask for before the play starts.")
        .parts(PROMPT)
        .example(
            "
- hosts: all
  vars_prompt:
    - name: release
      prompt: Which release
      private: false
",
        ),
];
