//! Which commands are recorded, where, and how their records name them.

use std::path::PathBuf;
use std::time::Duration;

use super::ExitCode;
use crate::deployment::lock::holder::user_and_machine;
use crate::engine::{CommandEvent, CommandStart};
use crate::report::RecordSettings;
use crate::runs::{self, Retention, RunOutcome};
use crate::settings::{Settings, list};
use crate::value::ProcessEnvironment;

/// The command that starts runs.
pub(super) struct StartedCommand {
    /// `apply`, `etcd backup`
    pub name: String,
    /// What follows it, without variables and whatever else may be secret.
    pub arguments: Vec<String>,
    pub check: bool,
    /// It leaves a record in the store of runs.
    pub recorded: bool,
}

impl StartedCommand {
    pub(super) fn named(name: &str) -> StartedCommand {
        StartedCommand { name: name.to_owned(), arguments: Vec::new(), check: false, recorded: true }
    }

    /// With an option and its value.
    pub(super) fn option(mut self, option: &str, value: Option<impl ToString>) -> StartedCommand {
        self.arguments.extend(value.into_iter().flat_map(|value| [option.to_owned(), value.to_string()]));
        self
    }

    /// `windlass apply -f karmada.yaml`
    pub(super) fn command_line(&self) -> String {
        let words = ["windlass"].into_iter().chain(self.name.split(' '));
        let words: Vec<&str> = words.chain(self.arguments.iter().map(String::as_str)).collect();
        shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
    }

    /// The event that starts its record. `by`: who asked for it, if it was not the user of this process.
    pub(super) fn start(self, around: &ProcessEnvironment, verbosity: u8, by: Option<&str>) -> CommandEvent {
        let user = user_and_machine(around);
        CommandEvent::Start(CommandStart {
            command_line: self.command_line(),
            command: self.name,
            user: by.map_or_else(|| user.clone(), |by| format!("{by} by {user}")),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            check: self.check,
            verbosity,
        })
    }
}

/// Where runs are recorded. None: the settings say no.
pub(super) fn record_settings(settings: &Settings) -> Option<RecordSettings> {
    if !settings.bool(&list::RUNS) {
        return None;
    }
    let directory = store_directory(settings);
    let days = u64::try_from(settings.count(&list::RUNS_KEEP_DAYS)).unwrap_or(u64::MAX);
    let retention = Retention {
        count: settings.count(&list::RUNS_KEEP),
        age: Duration::from_secs(days.saturating_mul(24 * 60 * 60)),
    };
    let open = move || match directory {
        Some(directory) => runs::open_store(&directory),
        None => Err(runs::Error::NoHome),
    };
    Some(RecordSettings { name: "the store of runs".to_owned(), open: Box::new(open), retention, started: None })
}

/// The directory of the store. None: nothing names one.
pub(super) fn store_directory(settings: &Settings) -> Option<PathBuf> {
    settings.path_setting(&list::RUNS_DIRECTORY).or_else(|| runs::default_directory(&settings.surroundings))
}

/// How a run ended that has this exit code, and no error.
pub(super) fn outcome_of_code(code: ExitCode) -> RunOutcome {
    match code {
        ExitCode::Ok => RunOutcome::Succeeded,
        ExitCode::Failed => RunOutcome::Failed,
        ExitCode::Unreachable => RunOutcome::Unreachable,
        ExitCode::Interrupted => RunOutcome::Interrupted,
        ExitCode::Error => RunOutcome::Refused,
        ExitCode::Options => RunOutcome::Error,
    }
}
