//! `windlass logs`: what a recorded run printed, as text or as events; also while it is under way.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};

use super::{CliError, ExitCode, note, reporting, runs};
use crate::report::Replay;
use crate::runs::{RecordedRun, RunFilter, RunOutcome, RunStore};
use crate::settings::{Settings, list};

/// How often a run that is under way is read.
const INTERVAL: Duration = Duration::from_millis(250);

/// The word for the run that started last.
const LATEST: &str = "latest";

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The run: the beginning of its id, or latest
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait for more until the run ends
    #[arg(short = 'f', long)]
    follow: bool,
    /// Output format: the text as it was shown, or the events
    #[arg(short = 'o', long, value_enum, default_value_t = LogFormat::Human, value_name = "FORMAT")]
    output: LogFormat,
    /// Show more, as -v of the run would have
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Human,
    Json,
}

/// Prints it.
pub(super) fn print_log(args: &LogsArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let mut store = runs::open_existing(&settings)?.ok_or_else(|| anyhow!("no run is recorded yet"))?;
    let run = find_run(store.as_mut(), &args.run)?;
    let mut printer = Printer::for_args(args, &settings);
    match print_events(store.as_mut(), &run, args.follow, &mut printer) {
        Ok(Some(end)) => {
            printer.print_note(&end);
            Ok(ExitCode::Ok)
        }
        // A reader that closed the pipe has seen enough.
        Ok(None) => Ok(ExitCode::Ok),
        Err(error) => Err(error.into()),
    }
}

/// The run that is meant.
pub(super) fn find_run(store: &mut dyn RunStore, named: &str) -> Result<RecordedRun, CliError> {
    let prefix = (named != LATEST).then(|| named.to_owned());
    let is_latest = prefix.is_none();
    let limit = if is_latest { 1 } else { 10 };
    let found = store.find_runs(&RunFilter { prefix, limit: Some(limit), ..RunFilter::default() });
    let mut found = found.map_err(anyhow::Error::new)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 if is_latest => Err(anyhow!("no run is recorded yet").into()),
        0 => Err(anyhow!("no run starts with {named:?}\nhint: windlass runs lists them").into()),
        _ => {
            let ids: Vec<String> = found.iter().map(|run| run.start.id.to_string()).collect();
            Err(anyhow!("several runs start with {named:?}: {}", ids.join(", ")).into())
        }
    }
}

/// Prints what there is, and with `follow` what comes until the end. Returns the run as it was last. None: the output was closed.
fn print_events(
    store: &mut dyn RunStore,
    run: &RecordedRun,
    follow: bool,
    printer: &mut Printer,
) -> anyhow::Result<Option<RecordedRun>> {
    let id = run.start.id;
    let mut after = 0;
    loop {
        // Its state is read first: what is recorded before the end is seen.
        let filter = RunFilter { prefix: Some(id.to_string()), ..RunFilter::default() };
        let now = store.find_runs(&filter)?.pop().context("the run was deleted meanwhile")?;
        loop {
            let events = store.read_events(id, after)?;
            let Some(last) = events.last() else { break };
            after = last.sequence;
            for event in &events {
                match printer.print_line(&event.line) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(None),
                    printed => printed.context("cannot write to standard output")?,
                }
            }
        }
        match printer.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(None),
            flushed => flushed.context("cannot write to standard output")?,
        }
        if !follow || !now.running {
            return Ok(Some(now));
        }
        std::thread::sleep(INTERVAL);
    }
}

enum Printer {
    Human(Box<Replay>),
    Json(io::Stdout),
}

impl Printer {
    fn for_args(args: &LogsArgs, settings: &Settings) -> Printer {
        match args.output {
            LogFormat::Json => Printer::Json(io::stdout()),
            LogFormat::Human => Printer::Human(Box::new(Replay::to_writer(
                Box::new(io::stdout()),
                reporting::usual_colour(settings),
                args.verbose.max(settings.number_setting(&list::VERBOSITY).try_into().unwrap_or(u8::MAX)),
                reporting::display_options(settings),
                &settings.surroundings,
            ))),
        }
    }

    fn print_line(&mut self, line: &str) -> io::Result<()> {
        match self {
            Printer::Human(replay) => replay.show_event(line),
            Printer::Json(out) => writeln!(out, "{line}"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Printer::Human(replay) => replay.print_shown(),
            Printer::Json(out) => out.flush(),
        }
    }

    /// What the events do not say about the end.
    fn print_note(&self, run: &RecordedRun) {
        if run.running {
            note("the run is under way: -f follows it");
        } else if run.exit_code.is_none() && run.outcome == Some(RunOutcome::Interrupted) {
            note("interrupted: the process of the run ended without recording its end");
        } else if !run.complete {
            note("the last events of the run could not be recorded");
        }
    }
}
