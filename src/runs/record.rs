//! What is recorded of a run. The field names are those of `windlass runs --output json`: see `docs/reference/events.md`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::RunId;

/// The version of events and of what `windlass runs --output json` prints.
pub const RUN_FORMAT: u32 = 1;

/// What is known when a run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunStart {
    #[schemars(with = "String")]
    pub id: RunId,
    /// The sub-command: `apply`, `etcd backup`.
    pub command: String,
    /// The command line, without variables and passwords.
    pub command_line: String,
    /// `alice@workstation`.
    pub user: String,
    pub pid: u32,
    /// Of windlass.
    pub version: String,
    /// A run in check mode.
    pub check: bool,
    #[serde(serialize_with = "timestamp")]
    #[schemars(with = "String")]
    pub started: SystemTime,
}

/// An event as it is printed and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// From 1, without gaps.
    pub sequence: u64,
    /// A JSON object on one line, without its newline.
    pub line: String,
}

/// What is known about a run while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    pub deployment: Option<String>,
    pub stages: Vec<StageRecord>,
    /// Of all plays of the run that were not in check mode; of a run in check mode, of all.
    pub hosts: BTreeMap<String, HostCounts>,
}

/// A stage of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRecord {
    pub stage: String,
    pub check: bool,
    /// RFC 3339, UTC.
    pub started: String,
    /// None: it is under way.
    pub ended: Option<String>,
    pub outcome: Option<String>,
    /// How many changes a stage in check mode found.
    pub changes: Option<usize>,
}

/// The results of tasks on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounts {
    pub ok: usize,
    pub changed: usize,
    pub unreachable: usize,
    pub failed: usize,
    pub skipped: usize,
    pub rescued: usize,
    pub ignored: usize,
}

impl HostCounts {
    pub fn add_counts(&mut self, more: &HostCounts) {
        self.ok += more.ok;
        self.changed += more.changed;
        self.unreachable += more.unreachable;
        self.failed += more.failed;
        self.skipped += more.skipped;
        self.rescued += more.rescued;
        self.ignored += more.ignored;
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Succeeded,
    /// A task failed on a host.
    Failed,
    /// A host could not be reached.
    Unreachable,
    /// A check refused it, and nothing was changed.
    Refused,
    /// It could not go on: the file is invalid, the lock was held, an error of windlass.
    Error,
    /// The user stopped it, or its process died.
    Interrupted,
}

impl RunOutcome {
    const ALL: [RunOutcome; 6] = [
        RunOutcome::Succeeded,
        RunOutcome::Failed,
        RunOutcome::Unreachable,
        RunOutcome::Refused,
        RunOutcome::Error,
        RunOutcome::Interrupted,
    ];

    /// The word for it in tables and JSON.
    pub fn outcome_word(self) -> &'static str {
        match self {
            RunOutcome::Succeeded => "succeeded",
            RunOutcome::Failed => "failed",
            RunOutcome::Unreachable => "unreachable",
            RunOutcome::Refused => "refused",
            RunOutcome::Error => "error",
            RunOutcome::Interrupted => "interrupted",
        }
    }

    /// The outcome of a word.
    pub fn outcome_named(word: &str) -> Option<RunOutcome> {
        RunOutcome::ALL.into_iter().find(|outcome| outcome.outcome_word() == word)
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    pub ended: SystemTime,
    pub outcome: RunOutcome,
    /// Of the process.
    pub exit_code: u8,
    /// All of its events are recorded.
    pub complete: bool,
}

/// A run as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RecordedRun {
    #[serde(flatten)]
    pub start: RunStart,
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Its process is there, and has not recorded its end.
    pub running: bool,
    #[serde(serialize_with = "optional_timestamp")]
    #[schemars(with = "Option<String>")]
    pub ended: Option<SystemTime>,
    /// None: it is running.
    pub outcome: Option<RunOutcome>,
    /// None: it is running, or its process died.
    pub exit_code: Option<u8>,
    /// False: events are missing at the end, as they could not be recorded.
    pub complete: bool,
    /// The sequence number of the last event.
    pub last_sequence: u64,
}

impl RecordedRun {
    /// How long it took, or takes by now.
    pub fn run_time(&self, now: SystemTime) -> Duration {
        self.ended.unwrap_or(now).duration_since(self.start.started).unwrap_or_default()
    }

    /// The counts of all hosts together.
    pub fn total_counts(&self) -> HostCounts {
        let mut total = HostCounts::default();
        self.summary.hosts.values().for_each(|counts| total.add_counts(counts));
        total
    }
}

/// A moment as events write it: `2026-11-20T13:40:01.123Z`.
pub fn timestamp_text(at: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(at).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn timestamp<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp_text(*at))
}

fn optional_timestamp<S: Serializer>(at: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => timestamp(at, serializer),
        None => serializer.serialize_none(),
    }
}
