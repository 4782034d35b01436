//! `windlass runs compare`: which results of two recorded runs differ, and which tasks took longer.

use std::collections::HashMap;

use anyhow::Context;
use clap::Args;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{ListFormat, aligned, table};
use crate::cli::deployment::plan_text;
use crate::cli::{CliError, ExitCode, logs, print};
use crate::report::{one_line, plain_json};
use crate::runs::{RecordedRun, RunId, RunStore};

/// How many rows of each kind are shown without -v.
const MOST_ROWS: usize = 20;

/// Differences of times below this many seconds are left out.
const NOTABLE_SECONDS: f64 = 1.0;

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// A run: the beginning of its id, or latest
    #[arg(value_name = "A")]
    first: String,
    /// The run to compare it with
    #[arg(value_name = "B")]
    second: String,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table, value_name = "FORMAT")]
    output: ListFormat,
    /// Show all rows, and the results that only one of the runs has
    #[arg(short = 'v', long = "verbose")]
    verbose: bool,
}

/// A result of a task on a host. Of several with the same name on a host, `turn` counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
struct ResultKey {
    stage: Option<String>,
    host: String,
    task: String,
    turn: usize,
}

/// What is compared of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct RecordedResult {
    status: String,
    seconds: f64,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    event: String,
    stage: Option<String>,
    host: Option<String>,
    task: Option<TaskField>,
    result: Option<ResultField>,
}

#[derive(Deserialize)]
struct TaskField {
    name: String,
}

#[derive(Deserialize)]
struct ResultField {
    status: String,
    #[serde(default)]
    seconds: f64,
    msg: Option<serde_json::Value>,
}

type Results = IndexMap<ResultKey, RecordedResult>;

/// A result that both runs have, and that is not the same.
#[derive(Debug, Serialize)]
struct Pair {
    #[serde(flatten)]
    key: ResultKey,
    a: RecordedResult,
    b: RecordedResult,
}

/// What differs between two runs.
#[derive(Debug, Serialize)]
struct Comparison {
    /// Results that both have.
    common: usize,
    /// Those with another status, in the order of the second run.
    different: Vec<Pair>,
    /// Those whose time differs, the largest difference first.
    times: Vec<Pair>,
    only_a: Vec<ResultKey>,
    only_b: Vec<ResultKey>,
}

/// Prints it.
pub(super) fn compare_runs(args: &CompareArgs) -> Result<ExitCode, CliError> {
    let settings = crate::cli::settings()?;
    let mut store = super::open_existing(&settings)?.ok_or_else(|| anyhow::anyhow!("no run is recorded yet"))?;
    let runs = [&args.first, &args.second].map(|named| logs::find_run(store.as_mut(), named));
    let [first, second] = runs;
    let (first, second) = (first?, second?);
    let (a, b) = (results_of(store.as_mut(), first.start.id)?, results_of(store.as_mut(), second.start.id)?);
    let comparison = compare(&a, &b);
    match args.output {
        ListFormat::Json => {
            let mut text = serde_json::json!(comparison);
            (text["a"], text["b"]) = (serde_json::json!(first), serde_json::json!(second));
            print(format!("{}\n", plain_json(&format!("{text:#}"))))?;
        }
        ListFormat::Table => print(text(&[first, second], &comparison, args.verbose))?,
    }
    Ok(ExitCode::Ok)
}

/// The results of a run, in their order.
fn results_of(store: &mut dyn RunStore, run: RunId) -> Result<Results, CliError> {
    let (mut results, mut turns) = (Results::new(), HashMap::new());
    let mut after = 0;
    loop {
        let events = store.read_events(run, after).map_err(anyhow::Error::new)?;
        let Some(last) = events.last() else { return Ok(results) };
        after = last.sequence;
        for event in &events {
            add_line(&event.line, &mut results, &mut turns).with_context(|| format!("event {}", event.sequence))?;
        }
    }
}

fn add_line(
    line: &str,
    results: &mut Results,
    turns: &mut HashMap<(Option<String>, String, String), usize>,
) -> anyhow::Result<()> {
    let line: Line = serde_json::from_str(line).context("a damaged record")?;
    let ("result", Some(host), Some(task), Some(result)) = (line.event.as_str(), line.host, line.task, line.result)
    else {
        return Ok(());
    };
    let turn = turns.entry((line.stage.clone(), host.clone(), task.name.clone())).or_default();
    *turn += 1;
    let key = ResultKey { stage: line.stage, host, task: task.name, turn: *turn };
    let message = result.msg.map(|msg| msg.as_str().map_or_else(|| msg.to_string(), str::to_owned));
    results.insert(key, RecordedResult { status: result.status, seconds: result.seconds, message });
    Ok(())
}

fn compare(a: &Results, b: &Results) -> Comparison {
    let pairs =
        || b.iter().filter_map(|(key, b)| a.get(key).map(|a| Pair { key: key.clone(), a: a.clone(), b: b.clone() }));
    let mut times: Vec<Pair> = pairs().filter(|pair| difference(pair).abs() >= NOTABLE_SECONDS).collect();
    times.sort_by(|one, other| difference(other).abs().total_cmp(&difference(one).abs()));
    let only =
        |these: &Results, those: &Results| these.keys().filter(|key| !those.contains_key(*key)).cloned().collect();
    Comparison {
        common: pairs().count(),
        different: pairs().filter(|pair| pair.a.status != pair.b.status).collect(),
        times,
        only_a: only(a, b),
        only_b: only(b, a),
    }
}

/// How much longer the second one took, in seconds.
fn difference(pair: &Pair) -> f64 {
    pair.b.seconds - pair.a.seconds
}

fn text(runs: &[RecordedRun; 2], found: &Comparison, verbose: bool) -> String {
    let most = if verbose { usize::MAX } else { MOST_ROWS };
    let names = ["A", "B"];
    let listed = table(runs, std::time::SystemTime::now());
    let mut lines = listed.lines().zip(["  ", "A ", "B "]).map(|(line, name)| format!("{name} {line}\n"));
    let mut text: String = lines.by_ref().collect();
    let count = found.different.len();
    text.push_str(&format!("\n{} results are in both runs; ", found.common));
    text.push_str(&if count == 0 {
        "none has another status\n".to_owned()
    } else {
        format!("{count} of them have another status:\n")
    });
    let status = |result: &RecordedResult| one_line(&result.status).into_owned();
    let differing = found.different.iter().map(|pair| {
        let message =
            [&pair.b, &pair.a].into_iter().find(|result| is_lost(result)).and_then(|result| result.message.as_ref());
        let first = message.and_then(|message| message.lines().next()).map(one_line).unwrap_or_default();
        [place(&pair.key), status(&pair.a), status(&pair.b), first.into_owned()]
    });
    text.push_str(&rows(differing, most));
    if !found.times.is_empty() {
        text.push_str("\ntook longer or shorter, in seconds:\n");
        let seconds = |result: &RecordedResult| format!("{:.1}", result.seconds);
        let timed = found
            .times
            .iter()
            .map(|pair| [place(&pair.key), seconds(&pair.a), seconds(&pair.b), format!("{:+.1}", difference(pair))]);
        text.push_str(&rows(timed, most));
    }
    for (name, only) in names.into_iter().zip([&found.only_a, &found.only_b]).filter(|(_, only)| !only.is_empty()) {
        text.push_str(&format!("\n{} only in {name}", plan_text::counted(only.len(), "result")));
        match verbose {
            true => {
                text.push_str(":\n");
                text.push_str(&rows(only.iter().map(|key| [place(key)]), most));
            }
            false => text.push_str(" (-v lists them)\n"),
        }
    }
    text
}

fn is_lost(result: &RecordedResult) -> bool {
    ["failed", "unreachable", "ignored"].contains(&result.status.as_str())
}

/// `h1 etcd : Restart the member`, with a number where there are several.
fn place(key: &ResultKey) -> String {
    let turn = if key.turn > 1 { format!(" ({})", key.turn) } else { String::new() };
    format!("{}  {}{turn}", one_line(&key.host), one_line(&key.task))
}

/// Indented rows, and how many were left out.
fn rows<const N: usize>(rows: impl ExactSizeIterator<Item = [String; N]>, most: usize) -> String {
    let left_out = rows.len().saturating_sub(most);
    let rows: Vec<[String; N]> = rows.take(most).collect();
    let mut text: String = aligned(&rows).lines().map(|line| format!("  {line}\n")).collect();
    if left_out > 0 {
        text.push_str(&format!("  and {left_out} more (-v)\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(lines: &[(&str, &str, &str, f64, &str)]) -> Results {
        let (mut results, mut turns) = (Results::new(), HashMap::new());
        for (host, task, status, seconds, msg) in lines {
            let line = serde_json::json!({"event": "result", "stage": "etcd", "host": host, "task": {"id": 1, "name": task},
                "result": {"status": status, "changed": false, "seconds": seconds, "msg": msg}});
            add_line(&line.to_string(), &mut results, &mut turns).unwrap();
        }
        results
    }

    #[test]
    fn results_are_compared_by_host_task_and_turn() {
        let a = results(&[
            ("h1", "etcd : Install", "changed", 2.0, ""),
            ("h1", "etcd : Wait", "ok", 1.0, ""),
            ("h1", "etcd : Wait", "ok", 1.0, ""),
            ("h2", "etcd : Install", "ok", 0.1, ""),
        ]);
        let b = results(&[
            ("h1", "etcd : Install", "ok", 0.4, ""),
            ("h1", "etcd : Wait", "ok", 1.5, ""),
            ("h1", "etcd : Wait", "failed", 9.0, "no leader\nof three"),
            ("h3", "etcd : Install", "changed", 1.0, ""),
        ]);
        let found = compare(&a, &b);
        assert_eq!((found.common, found.only_a.len(), found.only_b.len()), (3, 1, 1));
        let statuses: Vec<(&str, usize, &str, &str)> = found
            .different
            .iter()
            .map(|pair| (pair.key.task.as_str(), pair.key.turn, pair.a.status.as_str(), pair.b.status.as_str()))
            .collect();
        assert_eq!(statuses, [("etcd : Install", 1, "changed", "ok"), ("etcd : Wait", 2, "ok", "failed")]);
        let times: Vec<f64> = found.times.iter().map(difference).collect();
        assert_eq!(times, [8.0, -1.6], "the largest first; half a second does not count");
        assert_eq!(compare(&a, &a).different.len(), 0);
    }

    #[test]
    fn rows_are_aligned_and_what_is_left_out_is_counted() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned);
        let all = [row(["h1  a", "ok"]), row(["h10  longer", "failed"]), row(["h2  b", "ok"])];
        assert_eq!(rows(all.clone().into_iter(), 2), "  h1  a        ok\n  h10  longer  failed\n  and 1 more (-v)\n");
        assert_eq!(rows(all.into_iter(), usize::MAX).lines().count(), 3);
    }

    #[test]
    fn other_events_are_passed_over_and_a_damaged_one_is_an_error() {
        let (mut results, mut turns) = (Results::new(), HashMap::new());
        add_line(r#"{"event": "play_start", "hosts": ["h1"]}"#, &mut results, &mut turns).unwrap();
        assert!(results.is_empty());
        assert!(add_line("{\"event\": ", &mut results, &mut turns).is_err());
    }
}
