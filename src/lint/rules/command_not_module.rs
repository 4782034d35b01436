//! Commands that a module does better.

use crate::lint::project::Task;
use crate::lint::{Findings, Level, Project, Rule};
use crate::modules;
use crate::value::origin::Diagnostic;

pub(super) const RULE: Rule = Rule {
    id: "command-not-module",
    level: Level::Advice,
    about: "A command that a module can do: the module changes only what differs, supports check mode, and reports \
        its changes.",
    check,
};

/// Programs, the words behind them for which it holds (none: any), and the module.
const COMMANDS: &[(&str, &[&str], &str)] = &[
    ("apt", &["install", "remove", "update", "upgrade", "purge"], "apt"),
    ("apt-get", &["install", "remove", "update", "upgrade", "purge", "dist-upgrade"], "apt"),
    ("chgrp", &[], "file"),
    ("chmod", &[], "file"),
    ("chown", &[], "file"),
    ("cp", &[], "copy"),
    ("crontab", &[], "cron"),
    ("curl", &[], "uri"),
    ("dnf", &["install", "remove", "update", "upgrade"], "dnf"),
    ("git", &["clone", "pull", "checkout"], "git"),
    ("groupadd", &[], "group"),
    ("groupdel", &[], "group"),
    ("groupmod", &[], "group"),
    ("hostnamectl", &["set-hostname"], "hostname"),
    ("ln", &[], "file"),
    ("mkdir", &[], "file"),
    ("reboot", &[], "reboot"),
    ("rm", &[], "file"),
    ("rsync", &[], "synchronize"),
    ("sed", &["-i"], "lineinfile"),
    ("service", &[], "service"),
    ("sysctl", &["-w"], "sysctl"),
    (
        "systemctl",
        &["daemon-reload", "disable", "enable", "mask", "reload", "restart", "start", "stop", "unmask"],
        "systemd_service",
    ),
    ("tar", &["-x", "-xf", "-xzf", "-zxf", "-xvf", "-xvzf", "xf", "xzf", "zxf", "xvf", "xvzf"], "unarchive"),
    ("touch", &[], "file"),
    ("unzip", &[], "unarchive"),
    ("useradd", &[], "user"),
    ("userdel", &[], "user"),
    ("usermod", &[], "user"),
    ("wget", &[], "get_url"),
    ("yum", &["install", "remove", "update", "upgrade"], "dnf"),
];

fn check(project: &Project, found: &mut Findings) {
    for task in project.tasks().iter().filter(|task| matches!(task.module(), "command" | "shell")) {
        let Some((origin, line)) = command(task) else { continue };
        // A script of several commands is what shell is for.
        if line.contains(['|', ';', '&', '<', '>', '`', '\n']) || line.contains("$(") {
            continue;
        }
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or(program);
        let rest: Vec<&str> = words.collect();
        let known = COMMANDS.iter().find(|(name, verbs, _)| {
            *name == program && (verbs.is_empty() || rest.iter().any(|word| verbs.contains(word)))
        });
        let module = known.map(|(_, _, module)| *module).filter(|module| modules::find_module(module).is_some());
        if let Some(module) = module {
            let complaint = Diagnostic::new(format!("{program} has a module: {module}"), Some(&origin));
            found.add_finding(complaint.hint(format!("windlass doc {module}")));
        }
    }
}

/// The command line of a task, and where it is.
fn command(task: &Task<'_>) -> Option<(crate::value::Origin, String)> {
    if let Some(text) = task.module_text() {
        return Some((text.origin.clone(), text.as_str()?.trim().to_owned()));
    }
    if let Some((_, value)) = task.argument("cmd") {
        return Some((value.origin.clone(), value.as_str()?.trim().to_owned()));
    }
    let (_, words) = task.argument("argv")?;
    let line: Vec<&str> = crate::lint::project::node_items(words).iter().filter_map(|word| word.as_str()).collect();
    Some((words.origin.clone(), line.join(" ")))
}
