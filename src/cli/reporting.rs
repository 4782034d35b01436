//! The options for the report of a run; shared by the sub-commands that run something.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgAction, Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::{CliError, ExitCode};
use crate::connection::Fence;
use crate::report::log::LogFile;
use crate::report::{self, Colour, OutputFormat, RecordSettings, ReportOutcome, Reports, otlp};
use crate::runs::RunId;
use crate::settings::{Settings, list};
use crate::value::SecretTexts;

#[derive(Debug, Args)]
pub(super) struct Reporting {
    /// Reports of the run: human, summary (one line per host), json, json=FILE, junit=FILE; may be given several times
    #[arg(long = "output", value_name = "FORM", value_parser = form, value_delimiter = ',')]
    outputs: Vec<OutputFormat>,
    /// Colours: auto means on a terminal, unless NO_COLOR is set
    #[arg(long, alias = "colour", value_enum, value_name = "WHEN")]
    color: Option<ColourWhen>,
    /// Print at the end how long tasks, roles and hosts took
    #[arg(long)]
    profile: bool,
    /// Also append the whole output to FILE, with times
    #[arg(long = "log-file", value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Send traces to an OpenTelemetry collector (OTLP over HTTP), such as http://localhost:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Record the run under this id, a ULID that no other run has (default: a new one)
    #[arg(long, value_name = "ID", value_parser = run_id)]
    pub(super) run_id: Option<RunId>,
    /// Record the run as started by this person (default: you)
    #[arg(long, value_name = "NAME")]
    pub(super) run_by: Option<String>,
    /// Print more: -v values of results, -vv locations of tasks, -vvv connections, -vvvv everything
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ColourWhen {
    Auto,
    Always,
    Never,
}

fn form(text: &str) -> Result<OutputFormat, String> {
    match text.split_once('=') {
        None if text == "human" => Ok(OutputFormat::Human),
        None if text == "summary" => Ok(OutputFormat::Summary),
        None if text == "json" => Ok(OutputFormat::Json(None)),
        Some(("json", file)) if !file.is_empty() => Ok(OutputFormat::Json(Some(file.into()))),
        Some(("junit", file)) if !file.is_empty() => Ok(OutputFormat::Junit(file.into())),
        None | Some(("junit", _)) if text.starts_with("junit") => Err("junit needs a file: junit=FILE".to_string()),
        _ => Err("expected human, summary, json, json=FILE or junit=FILE".to_string()),
    }
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::parse_id(text).ok_or_else(|| "expected a ULID, such as 01kb3m5zk8v3x7w2m4n6p8q0rs".to_owned())
}

impl Reporting {
    /// Opens the reports, and our own log. To be called within the runtime, before anything is reported; `hidden` is what
    /// none of them may show, `usual` what goes to standard output when `--output` does not say, `fence` what an offline
    /// run keeps to.
    pub(super) fn open_reporting(
        &self,
        hidden: &SecretTexts,
        settings: &Settings,
        usual: OutputFormat,
        fence: Option<&Fence>,
        run: RunId,
        record: Option<RecordSettings>,
    ) -> Result<Reports, CliError> {
        if self.outputs.iter().filter(|form| form.uses_standard_output()).count() > 1 {
            return Err(anyhow::anyhow!(
                "only one of human, summary and json can use standard output; json=FILE writes to a file"
            )
            .into());
        }
        let log = self.log_file.clone().or_else(|| settings.path_setting(&list::LOG_PATH));
        let log = log.as_deref().map(LogFile::open_log).transpose().map_err(anyhow::Error::new)?;
        let verbosity = self.verbosity(settings);
        trace(verbosity, hidden.clone(), log.clone());
        let usual = match usual {
            OutputFormat::Human | OutputFormat::Summary => match settings.text_setting(&list::OUTPUT).as_deref() {
                Some("human") => OutputFormat::Human,
                Some("summary") => OutputFormat::Summary,
                _ => usual,
            },
            own => own,
        };
        let otlp = otlp::OtlpSettings::from_option(
            self.otlp.clone().or_else(|| settings.text_setting(&list::OTLP)).as_deref(),
            |name| settings.surroundings.variables.get(name).cloned(),
        )
        .map_err(anyhow::Error::msg)?;
        if let Some((otlp, fence)) = otlp.as_ref().zip(fence) {
            fence.may_reach(&otlp.url.host).context("cannot send traces")?;
        }
        let settings = report::ReportSettings {
            forms: self.outputs.clone(),
            usual,
            verbosity,
            colour: self.colour(settings),
            shows: display_options(settings),
            profile: self.profile || settings.bool(&list::PROFILE),
            log,
            otlp,
            hidden: hidden.clone(),
            record,
            surroundings: settings.surroundings.clone(),
        };
        Ok(report::open_reports(run, settings).map_err(anyhow::Error::new)?)
    }

    /// Whether standard output has JSON lines.
    pub(super) fn prints_json(&self) -> bool {
        self.outputs.contains(&OutputFormat::Json(None))
    }

    /// How many `-v` there are, or as many as the settings say.
    pub(super) fn verbosity(&self, settings: &Settings) -> u8 {
        self.verbose.max(settings.number_setting(&list::VERBOSITY).try_into().unwrap_or(u8::MAX))
    }

    fn colour(&self, settings: &Settings) -> Colour {
        match self.color {
            Some(ColourWhen::Always) => Colour::Always,
            Some(ColourWhen::Never) => Colour::Never,
            Some(ColourWhen::Auto) => Colour::Auto,
            None => usual_colour(settings),
        }
    }
}

/// Colours as the settings say.
pub(super) fn usual_colour(settings: &Settings) -> Colour {
    match (settings.bool(&list::FORCE_COLOR), settings.bool(&list::NOCOLOR)) {
        (true, _) => Colour::Always,
        (false, true) => Colour::Never,
        (false, false) => Colour::Auto,
    }
}

/// What words tell of, as the settings say.
pub(super) fn display_options(settings: &Settings) -> report::DisplayOptions {
    report::DisplayOptions {
        ok: settings.bool(&list::DISPLAY_OK_HOSTS),
        skipped: settings.bool(&list::DISPLAY_SKIPPED_HOSTS),
        stats: settings.bool(&list::SHOW_CUSTOM_STATS),
        context: settings.count(&list::DIFF_CONTEXT),
    }
}

/// Prints the failures of the reports; a run with an incomplete report does not exit with success.
pub(super) fn exit_code(ending: &ReportOutcome, code: ExitCode) -> ExitCode {
    ending.warnings.iter().for_each(|warning| super::warn(warning));
    ending.failures.iter().for_each(|failure| super::print_error(&format!("error: {failure}")));
    if code == ExitCode::Ok && !ending.failures.is_empty() { ExitCode::Error } else { code }
}

/// From `-vvv` on, our own log goes to standard error and the log file; `WINDLASS_LOG` says which parts.
fn trace(verbosity: u8, hidden: SecretTexts, log: Option<LogFile>) {
    let default = match verbosity {
        0..=2 => "off",
        3 => "windlass=debug",
        _ => "windlass=trace,russh=debug",
    };
    log_parts(default, hidden, log);
}

/// Our own log goes to standard error. `default`: which parts, unless `WINDLASS_LOG` says it.
pub(super) fn log_parts(default: &str, hidden: SecretTexts, log: Option<LogFile>) {
    let filter = EnvFilter::try_from_env("WINDLASS_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    std::panic::set_hook(Box::new(tells_panics(RedactingWriter { hidden: hidden.clone(), log: log.clone() })));
    let writer = move || RedactingWriter { hidden: hidden.clone(), log: log.clone() };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(writer);
    #[expect(
        clippy::let_underscore_must_use,
        reason = "a second run in one process (tests) keeps the log of the first"
    )]
    let _ = subscriber.try_init();
}

/// The words of a panic may quote what was at hand, so they are written as our own log is.
fn tells_panics(to: impl Write + Clone + Send + Sync + 'static) -> impl Fn(&PanicHookInfo<'_>) {
    move |panic| {
        let backtrace = match Backtrace::capture() {
            backtrace if backtrace.status() == BacktraceStatus::Captured => format!("{backtrace}\n"),
            _ => String::new(),
        };
        #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
        let _ = to.clone().write_all(format!("internal error: {panic}\n{backtrace}").as_bytes());
    }
}

/// Standard error and the log file, without what is hidden. Takes whole lines.
#[derive(Clone)]
struct RedactingWriter {
    hidden: SecretTexts,
    log: Option<LogFile>,
}

impl Write for RedactingWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = self.hidden.hide(&line);
        if let Some(log) = &mut self.log {
            log.write_all(line.as_bytes())?;
        }
        std::io::stderr().write_all(line.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_no_secret() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log");
        let hidden = SecretTexts::default();
        hidden.add_secret("tops3cret");
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(tells_panics(RedactingWriter {
            hidden,
            log: Some(LogFile::open_log(&path).unwrap()),
        })));
        let panicked = std::panic::catch_unwind(|| panic!("no {:?}", "tops3cret"));
        std::panic::set_hook(usual);
        assert!(panicked.is_err());
        let log = std::fs::read_to_string(path).unwrap();
        assert!(
            log.contains("internal error: panicked at src/cli/reporting.rs") && log.contains("no \"***\""),
            "{log}"
        );
    }
}
