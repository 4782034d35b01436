//! `windlass runs`: the runs in the store, newest first.

mod compare;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};

use super::{CliError, ExitCode, print, recording};
use crate::deployment::lock::duration_text;
use crate::report::{one_line, plain_json};
use crate::runs::{self, RecordedRun, RunFilter, RunStore};
use crate::settings::Settings;
use crate::value::{Value, yaml};

const KIND: &str = "KarmadaDeployment";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Runs of the deployment in this file
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "deployment")]
    file: Option<PathBuf>,
    /// Runs of the deployment with this name
    #[arg(long, value_name = "NAME")]
    deployment: Option<String>,
    /// How many runs to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table, value_name = "FORMAT")]
    output: ListFormat,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Show which results of two runs differ, and which tasks took longer
    Compare(compare::CompareArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    Table,
    Json,
}

/// Lists them.
pub(super) fn print_runs(args: &RunsArgs) -> Result<ExitCode, CliError> {
    if let Some(RunsCommand::Compare(args)) = &args.command {
        return compare::compare_runs(args);
    }
    let settings = super::settings()?;
    let deployment = match &args.file {
        Some(file) => Some(deployment_of(file)?),
        None => args.deployment.clone(),
    };
    let filter = RunFilter { deployment, limit: Some(args.limit), ..RunFilter::default() };
    let found = match open_existing(&settings)? {
        Some(mut store) => store.find_runs(&filter).map_err(anyhow::Error::new)?,
        None => Vec::new(),
    };
    match args.output {
        ListFormat::Json => print(format!("{}\n", plain_json(&format!("{:#}", serde_json::json!(found)))))?,
        ListFormat::Table => print(table(&found, SystemTime::now()))?,
    }
    Ok(ExitCode::Ok)
}

/// The store of this user. None: nothing was recorded yet.
pub(super) fn open_existing(settings: &Settings) -> Result<Option<Box<dyn RunStore>>, CliError> {
    let directory = recording::store_directory(settings).ok_or(runs::Error::NoHome).map_err(anyhow::Error::new)?;
    if !runs::has_store(&directory) {
        return Ok(None);
    }
    Ok(Some(runs::open_store(&directory).context("cannot read the store of runs")?))
}

/// The name of the deployment that a file describes.
fn deployment_of(file: &std::path::Path) -> Result<String, CliError> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents = yaml::plain_values(&text).map_err(CliError::from)?;
    let field = |value: &Value, name: &str| value.get_attr(name).unwrap_or_default();
    let mut deployments = documents.iter().filter(|document| field(document, "kind").as_str() == Some(KIND));
    let name = deployments.next().map(|document| field(&field(document, "metadata"), "name"));
    let name = name.as_ref().and_then(Value::as_str).map(str::to_owned);
    Ok(name.with_context(|| format!("{} has no KarmadaDeployment with a name", file.display()))?)
}

/// How much of an id is shown: its time and two random digits.
const SHORT_ID: usize = 12;

fn table(found: &[RecordedRun], now: SystemTime) -> String {
    let mut rows = vec![
        ["ID", "STARTED", "COMMAND", "DEPLOYMENT", "USER", "OUTCOME", "DURATION", "CHANGED", "FAILED"]
            .map(str::to_owned),
    ];
    rows.extend(found.iter().map(|run| row(run, now)));
    aligned(&rows)
}

/// A line for each row, with aligned columns.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        row.iter().zip(&mut widths).for_each(|(cell, width)| *width = cell.chars().count().max(*width));
    }
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(run: &RecordedRun, now: SystemTime) -> [String; 9] {
    let started = chrono::DateTime::<chrono::Local>::from(run.start.started).format("%Y-%m-%d %H:%M:%S").to_string();
    let check = if run.start.check { " (check)" } else { "" };
    let counts = run.total_counts();
    let count = |count: usize| if run.summary.hosts.is_empty() { "-".to_owned() } else { count.to_string() };
    [
        run.start.id.to_string()[..SHORT_ID].to_owned(),
        started,
        format!("{}{check}", one_line(&run.start.command)),
        one_line(run.summary.deployment.as_deref().unwrap_or("-")).into_owned(),
        one_line(&run.start.user).into_owned(),
        run.outcome.map_or("running", |outcome| outcome.outcome_word()).to_owned(),
        duration_words(run.run_time(now)),
        count(counts.changed),
        count(counts.failed + counts.unreachable),
    ]
}

/// `0.4 s`, `45 s`, `12 min`
fn duration_words(time: Duration) -> String {
    if time < Duration::from_secs(10) { format!("{:.1} s", time.as_secs_f64()) } else { duration_text(time) }
}
