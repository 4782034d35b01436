//! `systemd_service` (also `systemd`) and `service`: units of systemd.

use indexmap::IndexMap;
use serde::Deserialize;

use super::execution::quote;
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

const STATES: &[&str] = &["reloaded", "restarted", "started", "stopped"];
const RETURNS: &[Return] = &[
    Return::new("name", "The unit"),
    Return::new("state", "The current state: started or stopped"),
    Return::new("enabled", "Whether it starts at boot"),
    Return::new("status", "The unit's properties from systemctl show, before any change"),
    Return::new("exists", "If the task failed: false if there is no such unit"),
];
const STATE: Argument =
    Argument::new("state", ArgumentKind::Str, "The wanted state; restarted and reloaded always act").choices(STATES);
const ENABLED: Argument = Argument::new("enabled", ArgumentKind::Bool, "Whether it should start at boot");
const MASKED: Argument = Argument::new("masked", ArgumentKind::Bool, "Whether to mask it, so that it cannot start");
const DAEMON_RELOAD: Argument =
    Argument::new("daemon_reload", ArgumentKind::Bool, "Whether to reload unit files first (daemon-reload)")
        .alias(&["daemon-reload"])
        .default("false");
const DAEMON_REEXEC: Argument =
    Argument::new("daemon_reexec", ArgumentKind::Bool, "Whether to restart systemd itself first (daemon-reexec)")
        .alias(&["daemon-reexec"])
        .default("false");
const SCOPE: Argument =
    Argument::new("scope", ArgumentKind::Str, "Which systemd: the system's, the user's, or that of all users")
        .default("system")
        .choices(&["system", "user", "global"]);
const NO_BLOCK: Argument = Argument::new(
    "no_block",
    ArgumentKind::Bool,
    "Whether to continue without waiting until the unit has started or stopped",
)
.default("false");
const FORCE: Argument =
    Argument::new("force", ArgumentKind::Bool, "Whether to replace conflicting links when enabling or masking")
        .default("false");
const NAME: Argument =
    Argument::new("name", ArgumentKind::Str, "The unit; .service is optional").alias(&["service", "unit"]);
const ARGUMENTS: &[Argument] = &[NAME, STATE, ENABLED, MASKED, DAEMON_RELOAD, DAEMON_REEXEC, SCOPE, NO_BLOCK, FORCE];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemdService {
    name: Option<String>,
    state: Option<UnitState>,
    enabled: Option<bool>,
    masked: Option<bool>,
    daemon_reload: bool,
    daemon_reexec: bool,
    scope: Scope,
    no_block: bool,
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UnitState {
    Reloaded,
    Restarted,
    Started,
    Stopped,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scope {
    #[default]
    System,
    User,
    Global,
}

/// The calls of systemctl, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Actions {
    verbs: Vec<&'static str>,
    state: Option<&'static str>,
    enabled: Option<bool>,
}

/// The properties of a unit.
#[derive(Debug, Default)]
struct Status(IndexMap<String, String>);

impl Module for SystemdService {
    const CHANGES: Changes = Changes::Units;
    const DOC: Doc = Doc {
        name: "systemd_service",
        collection: "ansible.builtin",
        summary: "Start, stop, enable and mask systemd units",
        arguments: ARGUMENTS,
        free_form: None,
        example: "\
- name: Start etcd, now and at boot
  systemd_service:
    name: etcd
    state: started
    enabled: true
    daemon_reload: true
",
        returns: RETURNS,
    };
    type Change = (Actions, Outcome);

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Self::Change>, Error> {
        let Some(name) = &self.name else { return self.plan_without_unit(here) };
        if name.contains(['*', '?', '[']) {
            return Err(Error::failed(format!("{name:?} is a pattern; name one unit")));
        }
        let status = self.status(probe, name).await?;
        let outcome = Outcome::default().with("name", name.as_str()).with("status", status.value());
        if !status.exists() && (self.state.is_some() || self.enabled.is_some()) {
            if !here.check {
                return Err(missing(name));
            }
            // The task that would have written the unit file wrote none.
            let message = format!("{name} does not exist yet");
            let change = (Actions::default(), Outcome::default());
            return Ok(Plan::Change { diff: Vec::new(), outcome: outcome.message(message), change });
        }
        let actions = self.actions(&status, self.is_enabled(probe, name, &status).await?);
        let outcome = actions.describe(outcome);
        if !actions.verbs.is_empty() {
            return Ok(Plan::Change { diff: Vec::new(), outcome: outcome.clone(), change: (actions, outcome) });
        }
        Ok(match (self.daemon_reload || self.daemon_reexec) && !here.check {
            true => Plan::Unknown((actions, outcome)),
            false => Plan::Unchanged(outcome),
        })
    }

    async fn apply(&self, change: Self::Change, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let (actions, outcome) = change;
        for (wanted, verb) in [(self.daemon_reload, "daemon-reload"), (self.daemon_reexec, "daemon-reexec")] {
            if wanted {
                let output = remote.run(&self.systemctl(&[verb])).await?;
                check(&output, || format!("failure {} during {verb}", output.code))?;
            }
        }
        for verb in actions.verbs {
            let name = self.name.as_deref().unwrap_or_default();
            let mut words = vec![verb];
            words.extend(self.no_block.then_some("--no-block"));
            words.extend(self.force.then_some("--force"));
            words.extend(["--", name]);
            let output = remote.run(&self.systemctl(&words)).await?;
            if output.code != 0 {
                let text = String::from_utf8_lossy(&output.stderr);
                return Err(Error::Failed {
                    message: format!("unable to {verb} service {name}: {}", one_line(&text)),
                    hint: Some(format!("run journalctl -u {name} on the host for details")),
                });
            }
        }
        Ok(outcome)
    }
}

impl SystemdService {
    fn plan_without_unit(&self, here: &Controller<'_>) -> Result<Plan<(Actions, Outcome)>, Error> {
        if self.state.is_some() || self.enabled.is_some() || self.masked.is_some() {
            return Err(Error::failed("name is needed for state, enabled and masked"));
        }
        match (self.daemon_reload || self.daemon_reexec, here.check) {
            (false, _) => Err(Error::failed("state, enabled, masked, daemon_reload or daemon_reexec is needed")),
            (true, true) => Ok(Plan::Unchanged(Outcome::default())),
            (true, false) => Ok(Plan::Unknown(Default::default())),
        }
    }

    fn systemctl(&self, words: &[&str]) -> Command {
        let scope = match self.scope {
            Scope::System => None,
            Scope::User => Some("--user"),
            Scope::Global => Some("--global"),
        };
        let words = ["systemctl"].into_iter().chain(scope).chain(words.iter().copied());
        if self.scope != Scope::User {
            return Command::program(words);
        }
        // A user's systemd is found through a directory that only a login sets.
        let line: Vec<String> = words.map(quote).collect();
        Command::shell(format!(
            "XDG_RUNTIME_DIR=\"${{XDG_RUNTIME_DIR:-/run/user/$(id -u)}}\"; export XDG_RUNTIME_DIR; exec {}",
            line.join(" ")
        ))
    }

    async fn status(&self, probe: &Probe, name: &str) -> Result<Status, Error> {
        let output = probe.query(&self.systemctl(&["show", "--", name])).await?;
        let status = Status::parse(&String::from_utf8_lossy(&output.stdout));
        if output.code == 0 && status.0.contains_key("LoadState") {
            let failure = status.0.get("LoadError").filter(|_| status.exists() && status.get("LoadState") != "masked");
            return match failure {
                Some(why) => Err(Error::failed(format!("error loading unit file {name:?}: {why}"))),
                None => Ok(status),
            };
        }
        // Without a running systemd (a chroot, an image being built) unit files can still be enabled and masked.
        if self.state.is_some() {
            let words = one_line(&String::from_utf8_lossy(&output.stderr));
            return Err(Error::failed(format!("systemd does not answer on this host: {words}")));
        }
        let output = probe.query(&self.systemctl(&["is-enabled", "--", name])).await?;
        let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let known = !state.is_empty() && state != "not-found";
        let load = if known { "loaded" } else { "not-found" };
        Ok(Status(IndexMap::from([("LoadState".into(), load.into()), ("UnitFileState".into(), state)])))
    }

    /// Whether the unit starts with the system; None: it can be neither enabled nor disabled.
    async fn is_enabled(&self, probe: &Probe, name: &str, status: &Status) -> Result<Option<bool>, Error> {
        if self.enabled.is_none() {
            return Ok(None);
        }
        match status.enabled() {
            Enabled::Known(state) => Ok(state),
            Enabled::Ask => {
                let output = probe.query(&self.systemctl(&["is-enabled", "--", name])).await?;
                Ok(Some(output.code == 0))
            }
        }
    }

    fn actions(&self, status: &Status, enabled: Option<bool>) -> Actions {
        let mut actions = Actions { enabled: self.enabled, ..Actions::default() };
        let masked = status.get("LoadState") == "masked" || status.get("UnitFileState").starts_with("masked");
        match self.masked {
            Some(true) if !masked => actions.verbs.push("mask"),
            Some(false) if masked => actions.verbs.push("unmask"),
            _ => {}
        }
        match (self.enabled, enabled) {
            (Some(true), Some(false)) => actions.verbs.push("enable"),
            (Some(false), Some(true)) => actions.verbs.push("disable"),
            _ => {}
        }
        let active = status.get("ActiveState");
        let running = ["active", "activating", "reloading", "refreshing"].contains(&active);
        let verb = match self.state {
            None => None,
            Some(UnitState::Stopped) => (running || active == "deactivating").then_some("stop"),
            Some(UnitState::Started) => (!running).then_some("start"),
            Some(_) if !running => Some("start"),
            Some(UnitState::Restarted) => Some("restart"),
            Some(UnitState::Reloaded) => Some("reload"),
        };
        actions.verbs.extend(verb);
        actions.state = self.state.map(|state| if state == UnitState::Stopped { "stopped" } else { "started" });
        actions
    }
}

impl Actions {
    fn describe(&self, outcome: Outcome) -> Outcome {
        let outcome = match self.state {
            Some(state) => outcome.with("state", state),
            None => outcome,
        };
        match self.enabled {
            Some(enabled) => outcome.with("enabled", enabled),
            None => outcome,
        }
    }
}

/// What is known of `enabled` from the properties.
#[derive(Debug, PartialEq, Eq)]
enum Enabled {
    /// None: it can be neither enabled nor disabled.
    Known(Option<bool>),
    /// Init scripts: only `is-enabled` knows.
    Ask,
}

impl Status {
    /// Lines of `Name=value`; a value in braces may go over several lines.
    fn parse(text: &str) -> Status {
        let mut properties = IndexMap::new();
        let mut open: Option<(String, String)> = None;
        for line in text.lines() {
            if let Some((name, mut value)) = open.take() {
                value.push('\n');
                value.push_str(line);
                if line.trim_end().ends_with('}') {
                    properties.insert(name, value);
                } else {
                    open = Some((name, value));
                }
            } else if let Some((name, value)) = line.split_once('=') {
                let multiline = name.starts_with("Exec") && value.trim_start().starts_with('{');
                if multiline && !value.trim_end().ends_with('}') {
                    open = Some((name.to_owned(), value.to_owned()));
                } else {
                    properties.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        Status(properties)
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn exists(&self) -> bool {
        self.get("LoadState") != "not-found"
    }

    fn enabled(&self) -> Enabled {
        match self.get("UnitFileState") {
            "enabled" | "linked" => Enabled::Known(Some(true)),
            // A unit that is enabled only until the next reboot, or only under an alias, gets enabled if the task requests it.
            "disabled" | "enabled-runtime" | "linked-runtime" | "indirect" | "alias" | "masked" | "masked-runtime" => {
                Enabled::Known(Some(false))
            }
            "static" | "transient" => Enabled::Known(None),
            _ => Enabled::Ask,
        }
    }

    fn value(&self) -> Value {
        Value::from_pairs(self.0.clone())
    }
}

/// `service`: the same, with what other inits take, too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    name: Option<String>,
    state: Option<UnitState>,
    enabled: Option<bool>,
    masked: Option<bool>,
    daemon_reload: bool,
    daemon_reexec: bool,
    scope: Scope,
    no_block: bool,
    force: bool,
    sleep: Option<u64>,
    /// There is one init that is known, and it needs none of these.
    #[serde(rename = "use")]
    _use: String,
    #[serde(rename = "pattern")]
    _pattern: Option<String>,
    #[serde(rename = "runlevel")]
    _runlevel: String,
    #[serde(rename = "arguments")]
    _arguments: String,
}

impl Module for Service {
    const CHANGES: Changes = Changes::Units;
    const DOC: Doc = Doc {
        name: "service",
        collection: "ansible.builtin",
        summary: "Start, stop and enable services, with systemd",
        arguments: &[
            NAME,
            STATE,
            ENABLED,
            MASKED,
            DAEMON_RELOAD,
            DAEMON_REEXEC,
            SCOPE,
            NO_BLOCK,
            FORCE,
            Argument::new("sleep", ArgumentKind::Int, "How many seconds to wait after a restart"),
            Argument::new("use", ArgumentKind::Str, "The init system of the host")
                .default("auto")
                .choices(&["auto", "systemd"]),
            Argument::new("pattern", ArgumentKind::Str, "Accepted for compatibility; systemd tracks processes itself"),
            Argument::new("runlevel", ArgumentKind::Str, "Accepted for compatibility; systemd has no runlevels")
                .default("default"),
            Argument::new(
                "arguments",
                ArgumentKind::Str,
                "Accepted for compatibility; systemd units have no arguments",
            )
            .alias(&["args"])
            .default(""),
        ],
        free_form: None,
        example: "\
- name: Reload the SSH server
  service:
    name: ssh
    state: reloaded
",
        returns: RETURNS,
    };
    type Change = (Actions, Outcome);

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Self::Change>, Error> {
        let reloads = self.daemon_reload || self.daemon_reexec;
        if self.state.is_none() && self.enabled.is_none() && self.masked.is_none() && !reloads {
            return Err(Error::failed("state, enabled, masked, daemon_reload or daemon_reexec is needed"));
        }
        self.unit().plan(probe, here).await
    }

    async fn apply(&self, change: Self::Change, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let restarts = change.0.verbs.contains(&"restart");
        let outcome = self.unit().apply(change, remote, here).await?;
        if let (true, Some(seconds)) = (restarts, self.sleep) {
            tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
        }
        Ok(outcome)
    }
}

impl Service {
    fn unit(&self) -> SystemdService {
        SystemdService {
            name: self.name.clone(),
            state: self.state,
            enabled: self.enabled,
            masked: self.masked,
            daemon_reload: self.daemon_reload,
            daemon_reexec: self.daemon_reexec,
            scope: self.scope,
            no_block: self.no_block,
            force: self.force,
        }
    }
}

/// `systemd`: the older name of `systemd_service`.
pub(super) static SYSTEMD: Doc = Doc {
    name: "systemd",
    collection: "ansible.builtin",
    summary: "Start, stop, enable and mask systemd units; the same as systemd_service",
    arguments: ARGUMENTS,
    free_form: None,
    example: "\
- name: Reload systemd's unit files
  systemd:
    daemon_reload: true
",
    returns: RETURNS,
};

fn missing(name: &str) -> Error {
    Error::absent(format!("could not find the requested service {name}"))
}

fn check(output: &Output, what: impl Fn() -> String) -> Result<(), Error> {
    match output.code {
        0 => Ok(()),
        _ => Err(Error::failed(format!("{}: {}", what(), one_line(&String::from_utf8_lossy(&output.stderr))))),
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
