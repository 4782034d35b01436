//! Events to words. Only this floor and `cli` print.
//!
//! [`open_reports`] opens the requested reports, [`Reports::follow_events`] sends them the run's events.
//! To add a report: write `src/report/<name>.rs` with an implementation of [`Report`], and add its arm in [`open_reports`].

mod ad_hoc;
pub mod ansible;
pub mod diagnostic;
pub mod diff;
#[cfg(test)]
mod event_fields;
mod event_lines;
#[cfg(test)]
mod example_run;
mod human;
mod json;
mod junit;
mod live;
pub mod log;
pub mod otlp;
mod paint;
mod profile;
mod question;
mod record;
mod replay;
mod reports;
mod screen;
mod summary;

pub(crate) use human::{message_text, without_host};
pub(crate) use paint::{harmless, one_line, plain_json};

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

pub use ad_hoc::AdHocStyle;
pub use json::to_json;
pub use record::RecordSettings;
pub use replay::Replay;
pub use reports::{ReportOutcome, Reports};

use crate::engine::Event;
use crate::runs::{RecordedEvent, RunId};
use crate::value::{ProcessEnvironment, SecretTexts};
use profile::Profile;

/// The forms of `--output`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// Words on standard output.
    #[default]
    Human,
    /// Words on standard output: one line for each host of a stage, failures, warnings and messages.
    Summary,
    /// Results of one task on standard output, without a play around them.
    AdHoc(AdHocStyle),
    /// As [`OutputFormat::AdHoc`], by the lines of `ansible`.
    AnsibleAdHoc(AdHocStyle),
    /// The lines of `ansible-playbook` on standard output, its warnings on standard error.
    Ansible(ansible::AnsibleStyle),
    /// One event per line; without a file on standard output.
    Json(Option<PathBuf>),
    /// Test results for a build server, in a file.
    Junit(PathBuf),
}

impl OutputFormat {
    /// Whether it goes to standard output; only one may.
    pub fn uses_standard_output(&self) -> bool {
        !matches!(self, OutputFormat::Json(Some(_)) | OutputFormat::Junit(_))
    }
}

/// Whether words are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// On a terminal that can, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// What words tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisplayOptions {
    /// Results that are well and changed nothing.
    pub ok: bool,
    pub skipped: bool,
    /// What `set_stats` has set, at the end.
    pub stats: bool,
    /// Lines around a change in a diff.
    pub context: usize,
}

impl Default for DisplayOptions {
    fn default() -> Self {
        DisplayOptions { ok: true, skipped: true, stats: true, context: 3 }
    }
}

/// What a run's reports are.
#[derive(Default)]
pub struct ReportSettings {
    pub forms: Vec<OutputFormat>,
    /// What goes to standard output if none of the forms does.
    pub usual: OutputFormat,
    /// See `docs/how-to/watching.md`.
    pub verbosity: u8,
    pub colour: Colour,
    pub shows: DisplayOptions,
    /// Timings at the end.
    pub profile: bool,
    pub log: Option<log::LogFile>,
    /// Where traces are sent.
    pub otlp: Option<otlp::OtlpSettings>,
    /// What no report may show.
    pub hidden: SecretTexts,
    /// Where the run is recorded; None: nowhere.
    pub record: Option<RecordSettings>,
    /// Whether the terminal is one that can show colours and a live view.
    pub surroundings: Arc<ProcessEnvironment>,
}

/// Turns events into words, one at a time. The content of a `no_log` result is removed before.
trait Report: Send {
    /// Takes an event. An error comes from the terminal, the pipe or the disk; the run continues.
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()>;

    /// Takes the JSON line of the same event, or of the timings.
    fn line(&mut self, _: &RecordedEvent) -> io::Result<()> {
        Ok(())
    }

    fn takes_lines(&self) -> bool {
        false
    }

    /// Brings out what was taken; called after every burst of events and while time passes.
    fn show(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Flushes all output and removes the live view: another writer uses the terminal next.
    fn settle(&mut self) -> io::Result<()> {
        self.show()
    }

    /// Timings, shortly before the last event; only if they were requested.
    fn profile(&mut self, _: SystemTime, _: &Profile) -> io::Result<()> {
        Ok(())
    }

    /// No more events follow, even if the run was interrupted.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// All reports have ended; with failures the program does not exit with success.
    fn close(&mut self, _failures: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Opens the reports of a run. The error names the file that cannot be written.
pub fn open_reports(run: RunId, settings: ReportSettings) -> io::Result<Reports> {
    let mut reports = Reports::new(run, settings.hidden, settings.profile);
    let mut forms = settings.forms;
    if !forms.iter().any(|form| form.uses_standard_output()) {
        forms.insert(0, settings.usual);
    }
    for form in forms {
        match form {
            OutputFormat::Human => reports.add_report(
                "standard output",
                human(settings.colour, settings.verbosity, &settings.surroundings).showing(settings.shows),
            ),
            OutputFormat::Summary => {
                let shows = DisplayOptions { ok: false, skipped: false, ..settings.shows };
                let human = human(settings.colour, settings.verbosity, &settings.surroundings).showing(shows);
                let record = settings.record.is_some().then_some(run);
                reports.add_report("standard output", summary::Summary::new(human, record));
            }
            OutputFormat::AdHoc(style) => {
                let out = Box::new(io::stdout());
                reports.add_report(
                    "standard output",
                    ad_hoc::AdHoc::new(
                        out,
                        style,
                        coloured(settings.colour, &settings.surroundings),
                        settings.shows.context,
                    ),
                );
            }
            OutputFormat::AnsibleAdHoc(style) => {
                let (out, err) = (Box::new(io::stdout()), Box::new(io::stderr()));
                let (colour, verbosity) = (coloured(settings.colour, &settings.surroundings), settings.verbosity);
                let report = ansible::Minimal::new(out, err, style, colour, verbosity, settings.shows);
                reports.add_report("standard output", report);
            }
            OutputFormat::Ansible(style) => {
                let page = ansible::PageStyle {
                    columns: if io::stdout().is_terminal() {
                        screen::size().1.saturating_sub(1)
                    } else {
                        ansible::COLUMNS
                    },
                    colour: coloured(settings.colour, &settings.surroundings),
                    verbosity: settings.verbosity,
                    surroundings: settings.surroundings.clone(),
                };
                let (out, err) = (Box::new(io::stdout()), Box::new(io::stderr()));
                reports.add_report("standard output", ansible::Ansible::new(out, err, style, page, settings.shows));
            }
            OutputFormat::Json(None) => reports.add_report("standard output", json::Json::new(io::stdout())),
            OutputFormat::Json(Some(path)) => {
                reports.add_report(&path.display().to_string(), json::Json::new(create(&path, 0o600)?))
            }
            OutputFormat::Junit(path) => {
                reports.add_report(&path.display().to_string(), junit::Junit::new(create(&path, 0o666)?))
            }
        }
    }
    if let Some(log) = settings.log {
        let style =
            human::HumanStyle { colour: false, width: 0, verbosity: settings.verbosity, stamped: true, messages: true };
        let name = log.log_path().display().to_string();
        reports.add_report(&name, human::Human::new(Box::new(log), style).showing(settings.shows));
    }
    if let Some(otlp) = settings.otlp {
        reports.trace(otlp);
    }
    if let Some(record) = settings.record {
        reports.record(run, record);
    }
    Ok(reports)
}

/// `mode`: of a new file.
fn create(path: &std::path::Path, mode: u32) -> io::Result<std::fs::File> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()));
    OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path).map_err(named)
}

/// Whether standard output is a terminal that can do more than show lines.
fn clever(around: &ProcessEnvironment) -> bool {
    io::stdout().is_terminal() && around.variable("TERM").is_some_and(|term| term != "dumb")
}

fn coloured(colour: Colour, around: &ProcessEnvironment) -> bool {
    match colour {
        Colour::Auto => clever(around) && around.variable("NO_COLOR").is_none(),
        Colour::Always => true,
        Colour::Never => false,
    }
}

/// Words on standard output: with colours and a live view as far as it is a terminal that can.
fn human(colour: Colour, verbosity: u8, around: &ProcessEnvironment) -> human::Human {
    let colour = coloured(colour, around);
    // Our own log goes to the same terminal and would tear the view.
    let live = clever(around) && verbosity < 3 && !around.variables.contains_key("WINDLASS_LOG");
    let width = if io::stdout().is_terminal() { screen::size().1.clamp(40, 200) } else { 80 };
    let style = human::HumanStyle { colour, width, verbosity, stamped: false, messages: false };
    let out: Box<dyn Write + Send> = Box::new(io::stdout());
    match live {
        true => human::Human::live(screen::Screen::new(out, screen::size), style),
        false => human::Human::new(out, style),
    }
}
