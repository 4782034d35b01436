//! What runs of `status` found, in short: kept in memory, so that a list of deployments reads nothing twice.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::problem::Problem;
use super::{Server, runs};
use crate::runs::{RecordedRun, RunId};
use crate::value::mutex::Mutex;

/// What a look found.
#[derive(Debug, PartialEq)]
pub(super) struct Look {
    pub healthy: bool,
    pub wrong: Vec<String>,
    /// Of the components.
    pub version: Option<String>,
}

/// How many texts there are of what is wrong, and how long each is at most, in characters.
const MOST_TEXTS: usize = 100;
const LONGEST_TEXT: usize = 300;

/// The looks of runs that have ended; without one if a run had no result.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<RunId, Option<Arc<Look>>>>);

impl Looks {
    /// Those of a thousand deployments, with looks that failed.
    const MOST: usize = 5000;

    fn keep(&self, run: RunId, look: &Option<Arc<Look>>) {
        let mut kept = self.0.lock();
        if kept.len() >= Self::MOST {
            kept.clear();
        }
        kept.insert(run, look.clone());
    }
}

/// What a run of `status` that has ended found. None: it had no result. May block.
pub(super) fn look_of(server: &Server, run: &RecordedRun) -> Result<Option<Arc<Look>>, Problem> {
    let id = run.start.id;
    if let Some(known) = server.looks.0.lock().get(&id) {
        return Ok(known.clone());
    }
    let look = read_look(server, run)?.map(|status| Arc::new(Look::of_status(&status)));
    if !run.running {
        server.looks.keep(id, &look);
    }
    Ok(look)
}

/// What a run of `status` printed. None: it had no result, or one that is too long. May block.
pub(super) fn read_look(server: &Server, run: &RecordedRun) -> Result<Option<Json>, Problem> {
    let text = runs::printed_text(server, run)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

impl Look {
    fn of_status(status: &Json) -> Look {
        let texts = status["wrong"].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
        let unreachable = status["unreachable"].as_object().into_iter().flatten();
        let unreachable = unreachable.map(|(host, why)| format!("{host}: {}", why.as_str().unwrap_or("unreachable")));
        let all: Vec<String> = texts.chain(unreachable).collect();
        let more = all.len().saturating_sub(MOST_TEXTS);
        let mut wrong: Vec<String> =
            all.iter().take(MOST_TEXTS).map(|text| text.chars().take(LONGEST_TEXT).collect()).collect();
        if more > 0 {
            wrong.push(format!("and {more} more"));
        }
        Look { healthy: status["healthy"].as_bool().unwrap_or(false), wrong, version: version_in(status) }
    }
}

/// The version of the components that were found.
fn version_in(status: &Json) -> Option<String> {
    let rows = status["components"].as_array()?.iter();
    let karmada = rows.filter(|row| row["component"].as_str().is_some_and(|name| name.starts_with("karmada-")));
    let version = karmada.filter_map(|row| row["version"].as_str().filter(|version| !version.is_empty())).next();
    version.map(|version| version.chars().take(LONGEST_TEXT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_short_whatever_hosts_say() {
        let wrong: Vec<String> = (0..1000).map(|at| format!("{at}{}", "x".repeat(1000))).collect();
        let status = serde_json::json!({
            "healthy": true, "wrong": wrong, "unreachable": {"h1": "no route"},
            "components": [{"component": "etcd", "version": "3"}, {"component": "karmada-webhook", "version": "v".repeat(1000)}],
        });
        let look = Look::of_status(&status);
        assert_eq!((look.healthy, look.wrong.len(), look.wrong[0].len()), (true, 101, 300));
        assert_eq!((look.wrong[100].as_str(), look.version.map(|text| text.len())), ("and 901 more", Some(300)));
        let few = Look::of_status(&serde_json::json!({"wrong": ["etcd"], "unreachable": {"h1": "no route"}}));
        assert_eq!(few, Look { healthy: false, wrong: vec!["etcd".into(), "h1: no route".into()], version: None });
    }
}
