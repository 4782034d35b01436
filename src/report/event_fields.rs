//! What the events of a run have in format 1. `docs/reference/events.md` is made of it, and a test compares it with what
//! [`event_lines`](super::event_lines) writes. Names are never changed or removed while the format is 1; more may come.

/// An event.
pub(super) struct EventDoc {
    pub name: &'static str,
    pub meaning: &'static str,
    /// Beside [`ENVELOPE`]: name and meaning.
    pub fields: &'static [(&'static str, &'static str)],
}

/// What every event has.
pub(super) const ENVELOPE: &[(&str, &str)] = &[
    ("event", "its name"),
    ("format", "the number 1"),
    ("run", "the id of the run: a ULID; ids sort by time"),
    ("sequence", "its number in the run, from 1, without gaps"),
    ("time", "RFC 3339, UTC, milliseconds"),
    ("stage", "the stage of the deployment that it belongs to, or null"),
];

const TASK: (&str, &str) = ("task", "the [task](#tasks)");
const HOST: (&str, &str) = ("host", "the host's name in the inventory");
const DELEGATED: (&str, &str) = ("delegated_to", "the host that the task was delegated to, or null");
const RESULT: (&str, &str) = ("result", "the [result](#results)");
const HOSTS: (&str, &str) = ("hosts", "their names");

/// All events, in alphabetical order.
pub(super) const EVENTS: &[EventDoc] = &[
    EventDoc {
        name: "async_poll",
        meaning: "a background task was queried and still runs",
        fields: &[
            TASK,
            HOST,
            ("job", "the id of the background task"),
            ("seconds", "since it started"),
            ("limit", "seconds that it may take"),
        ],
    },
    EventDoc {
        name: "deployment",
        meaning: "the deployment that the command is about is known",
        fields: &[("deployment", "its name"), ("hosts", "the hosts that hold its lock")],
    },
    EventDoc { name: "host_start", meaning: "a host begins a task; its `result` is the end", fields: &[TASK, HOST] },
    EventDoc {
        name: "included",
        meaning: "a file or role was included",
        fields: &[
            ("what", "the file or role"),
            ("path", "the path of the file, or null"),
            ("item", "the item of the include's loop, or null"),
            HOSTS,
        ],
    },
    EventDoc {
        name: "item",
        meaning: "a host finished an item of a loop",
        fields: &[TASK, HOST, DELEGATED, ("item", "the item's label"), RESULT],
    },
    EventDoc {
        name: "message",
        meaning: "text that the command printed itself: a plan, a note, an error",
        fields: &[("stream", "`stdout` or `stderr`"), ("text", "the text")],
    },
    EventDoc {
        name: "meta",
        meaning: "a host came to a `meta` task",
        fields: &[TASK, HOST, ("skipped", "whether its `when` was false")],
    },
    EventDoc { name: "next_batch", meaning: "the next batch of a play's hosts begins (`serial`)", fields: &[] },
    EventDoc {
        name: "no_hosts_left",
        meaning: "all hosts of a play have failed",
        fields: &[("percentage", "whether more hosts failed than `max_fail_percentage` allows")],
    },
    EventDoc {
        name: "no_hosts_matched",
        meaning: "a play's pattern matched no host",
        fields: &[("pattern", "the pattern")],
    },
    EventDoc {
        name: "play_start",
        meaning: "a play starts",
        fields: &[
            ("play", "its name"),
            ("path", "where it is written"),
            HOSTS,
            ("check", "whether it changes nothing"),
        ],
    },
    EventDoc {
        name: "profile",
        meaning: "timings, with `--profile`",
        fields: &[
            ("tasks", "a list of `name`, `path`, `seconds`, `share`, `times`; the longest first"),
            ("roles", "the same, without `path`"),
            ("hosts", "the same, without `path`"),
        ],
    },
    EventDoc {
        name: "progress",
        meaning: "how far a transfer is",
        fields: &[HOST, ("what", "what is transferred"), ("done", "bytes"), ("total", "bytes")],
    },
    EventDoc { name: "question", meaning: "a task asks the user something", fields: &[("words", "the question")] },
    EventDoc {
        name: "recap",
        meaning: "all plays of a playbook have ended; a command on a deployment may run several playbooks",
        fields: &[
            ("hosts", "by host: `ok`, `changed`, `unreachable`, `failed`, `skipped`, `rescued`, `ignored`"),
            ("stats", "what `set_stats` has set"),
            ("host_stats", "the same, by host"),
            ("failed_hosts", "hosts that have failed in the end"),
            ("unreachable_hosts", "hosts that could not be reached"),
            ("seconds", "how long it took"),
            ("interrupted", "whether the user stopped it"),
        ],
    },
    EventDoc {
        name: "result",
        meaning: "a host finished a task; of a loop, after its `item` events",
        fields: &[
            TASK,
            HOST,
            DELEGATED,
            ("looped", "whether its items had events of their own"),
            ("started", "when the host began the task; `time` is when it ended"),
            RESULT,
        ],
    },
    EventDoc {
        name: "retry",
        meaning: "the condition of `until` does not hold yet",
        fields: &[TASK, HOST, ("attempt", "the number of the attempt"), ("retries_left", "how many are left"), RESULT],
    },
    EventDoc {
        name: "run_end",
        meaning: "the last event",
        fields: &[
            ("outcome", "`succeeded`, `failed`, `unreachable`, `refused`, `error` or `interrupted`"),
            ("exit_code", "of the command"),
        ],
    },
    EventDoc {
        name: "run_start",
        meaning: "the first event",
        fields: &[
            ("command", "the sub-command, such as `apply` or `etcd backup`"),
            ("command_line", "the command line without variables and passwords"),
            ("user", "such as `alice@workstation`"),
            ("pid", "of the process"),
            ("version", "of windlass"),
            ("check", "whether it changes nothing"),
            ("verbosity", "the number of `-v`"),
        ],
    },
    EventDoc {
        name: "stage_end",
        meaning: "a stage of a deployment ended",
        fields: &[("outcome", "as in `run_end`"), ("changes", "how many changes a stage in check mode found, or null")],
    },
    EventDoc {
        name: "stage_start",
        meaning: "a stage of a deployment starts: the events until its end have its name as `stage`",
        fields: &[("playbook", "its playbook"), ("check", "whether it changes nothing, as in a plan")],
    },
    EventDoc {
        name: "task_end",
        meaning: "all hosts are done with a task; of an include: with what it included",
        fields: &[TASK],
    },
    EventDoc { name: "task_start", meaning: "a task starts", fields: &[TASK] },
    EventDoc { name: "warning", meaning: "a warning", fields: &[("message", "its text")] },
];

/// What a task has.
pub(super) const TASK_FIELDS: &[(&str, &str)] = &[
    ("id", "its number; no other task of the run has it"),
    ("name", "its name with values in it, and with `role : ` before it"),
    ("role", "its role, or null"),
    ("action", "its module"),
    ("path", "where it is written: file, line, column"),
    ("handler", "whether it is a handler"),
];

/// What a result may have; all have the first three.
pub(super) const RESULT_FIELDS: &[(&str, &str)] = &[
    ("status", "`ok`, `changed`, `skipped`, `ignored`, `failed` or `unreachable`"),
    ("changed", "whether the host was changed"),
    ("seconds", "how long it took"),
    ("censored", "why there is nothing more: the task has `no_log`"),
    ("msg", "text for the user"),
    ("hint", "what to do about a failure"),
    ("values", "the return values of the module"),
    ("diff", "a list of `before_header`, `after_header`, `before`, `after`"),
];
