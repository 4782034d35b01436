//! What a playbook of windlass reports, and what went wrong while it ran.

use std::collections::BTreeMap;

use super::contract::Reported;
use super::control::{Control, Outcome};
use super::lock::Lock;
use super::{Error, Phase, Run};
use crate::engine::{self, Event, TaskResult};
use crate::value::Vars;

/// The reply of a playbook that reports `T`.
pub struct Reply<T> {
    /// None: no host was left to report it.
    pub reported: Option<T>,
    /// Hosts that were not reached, with the reason.
    pub unreachable: BTreeMap<String, String>,
    /// Tasks that failed: `HOST: MESSAGE`.
    pub failures: Vec<String>,
    pub outcome: Outcome,
}

/// The end of what a program that failed wrote to stderr, unless it is to be hidden.
fn last_words(result: &TaskResult) -> String {
    let stderr = result.values.get("stderr").filter(|_| !result.no_log).and_then(|value| value.as_str().map(str::trim));
    match stderr {
        Some(text) if !text.is_empty() => {
            let from = text.char_indices().rev().nth(399).map_or(0, |(at, _)| at);
            format!(": {}", &text[from..])
        }
        _ => String::new(),
    }
}

/// Runs the playbook that reports `T`. None: the caller cancelled it.
///
/// # Errors
/// The playbook cannot be run, or reports something of another layout.
pub(super) async fn run_reporting_playbook<T: Reported>(
    phase: &Phase<'_>,
    vars: Vars,
    lock: Option<&Lock>,
    control: &Control,
) -> Result<Option<Reply<T>>, Error> {
    let playbook = phase.site().playbook_path(T::PLAYBOOK);
    let hold = lock.map(|lock| lock.hold().clone());
    let job = phase.job(Run { playbook: Some(&playbook), vars, hold, ..Run::default() }, control).await?;
    let mut unreachable = BTreeMap::new();
    let mut failures = Vec::new();
    let recap = control
        .run
        .watch(job, |event| {
            if let Event::Result { host, result, .. } = event
                && let Some(message) = &result.message
            {
                match result.status {
                    engine::Status::Unreachable => {
                        unreachable.entry(host.to_string()).or_insert_with(|| message.clone());
                    }
                    engine::Status::Failed => failures.push(format!("{host}: {message}{}", last_words(result))),
                    _ => {}
                }
            }
        })
        .await?;
    let Some(recap) = recap else { return Ok(None) };
    let reported = recap.stats.run.get(T::VARIABLE).map(T::from_report).transpose().map_err(Error::Observation)?;
    Ok(Some(Reply { reported, unreachable, failures, outcome: Outcome::of_recap(&recap) }))
}
