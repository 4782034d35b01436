//! Sends a run's events to its reports. A report that cannot be written is a warning, and does not stop the run.

use std::io;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::UnboundedReceiver;

use super::event_lines::EventLines;
use super::profile::{Profile, Timings};
use super::record::{Record, RecordSettings};
use super::{Report, otlp, question};
use crate::engine::masking;
use crate::engine::{CommandEvent, Event, TimedEvent};
use crate::modules::question::Question;
use crate::runs::{RecordedEvent, RunId};
use crate::value::SecretTexts;

/// How often a view with times is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// Events that are taken at once; more is a burst that is shown in several pieces.
const BURST: usize = 256;

/// The reports of one run.
pub struct Reports {
    sinks: Vec<ReportSink>,
    lines: EventLines,
    hidden: SecretTexts,
    timings: Option<Timings>,
    exporter: Option<otlp::Exporter>,
    /// Of optional reports, after the others have ended.
    warnings: Vec<String>,
    has_ended: bool,
}

struct ReportSink {
    /// Where it goes, for messages.
    name: String,
    report: Box<dyn Report>,
    state: State,
    /// That it failed is a warning, and no failure of the run.
    optional: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Well,
    /// The first error.
    Failed(String),
    /// The reader closed the pipe, which is not an error.
    Closed,
}

/// The state of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReportOutcome {
    /// Reports that are incomplete: the program must not exit with success.
    pub failures: Vec<String>,
    /// Warnings that do not change the exit code.
    pub warnings: Vec<String>,
}

impl Reports {
    pub(super) fn new(run: RunId, hidden: SecretTexts, profile: bool) -> Self {
        let (lines, timings) = (EventLines::of_run(run), profile.then(Timings::default));
        Reports { sinks: Vec::new(), lines, hidden, timings, exporter: None, warnings: Vec::new(), has_ended: false }
    }

    pub(super) fn add_report(&mut self, name: &str, report: impl Report + 'static) {
        let (name, report) = (name.to_string(), Box::new(report));
        self.sinks.push(ReportSink { name, report, state: State::Well, optional: false });
    }

    /// Records the run, too. To be called last: it records the end when the other reports are complete.
    pub(super) fn record(&mut self, run: RunId, settings: RecordSettings) {
        let (name, record) = (settings.name.clone(), Record::of_run(run, settings, self.hidden.clone()));
        self.sinks.push(ReportSink { name, report: Box::new(record), state: State::Well, optional: true });
    }

    pub(super) fn trace(&mut self, settings: otlp::OtlpSettings) {
        let (traces, exporter) = otlp::open_traces(settings);
        self.add_report("traces", traces);
        self.exporter = Some(exporter);
    }

    /// Reports events until their sender is dropped. Runs on its own thread, because a terminal, a pipe or a disk may
    /// block it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn follow_events(self, events: UnboundedReceiver<TimedEvent>) -> ReportOutcome {
        let runtime = tokio::runtime::Handle::current();
        let reported = tokio::task::spawn_blocking(move || runtime.block_on(self.follow(events))).await;
        reported.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    async fn follow(mut self, mut events: UnboundedReceiver<TimedEvent>) -> ReportOutcome {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut burst = Vec::with_capacity(BURST);
        loop {
            tokio::select! {
                biased;
                count = events.recv_many(&mut burst, BURST) => {
                    if count == 0 {
                        break;
                    }
                    burst.drain(..).for_each(|reported| self.take(reported));
                    self.each(|report| report.show());
                }
                _ = tick.tick() => self.each(|report| report.show()),
            }
        }
        self.has_ended = true;
        self.each(|report| report.end());
        let failures = self.has_failed();
        self.each(|report| report.close(failures));
        self.ending().await
    }

    fn take(&mut self, reported: TimedEvent) {
        let at = reported.at;
        let event = masking::masked(reported.event, &self.hidden);
        if let Some(timings) = &mut self.timings {
            timings.event(at, &event);
            if let Event::Recap(recap) = &event {
                let profile = timings.finish_profile(recap.took);
                let line = self.lines.profile_line(at, &profile);
                self.each(|report| {
                    report.profile(at, &profile)?;
                    report.line(&line)
                });
            }
        }
        let event = self.with_failures(event);
        self.pass_on(at, &event);
        if let Event::Question(question) = &event {
            self.ask(at, question);
        }
    }

    /// A run with an incomplete report does not exit with success.
    fn with_failures(&mut self, event: Event) -> Event {
        match event {
            Event::Command(CommandEvent::End { outcome, exit_code: 0 }) => {
                self.each(|report| report.show());
                let exit_code = u8::from(self.has_failed());
                Event::Command(CommandEvent::End { outcome, exit_code })
            }
            event => event,
        }
    }

    fn has_failed(&self) -> bool {
        self.sinks.iter().any(|sink| !sink.optional && matches!(sink.state, State::Failed(_)))
    }

    fn pass_on(&mut self, at: SystemTime, event: &Event) {
        let line = self.line(at, event);
        self.each(|report| told(report, at, event, line.as_ref()));
    }

    /// The event as a line, if a report takes lines.
    fn line(&mut self, at: SystemTime, event: &Event) -> Option<RecordedEvent> {
        let takes = self.sinks.iter().any(|sink| sink.report.takes_lines());
        takes.then(|| self.lines.event_line(at, event))
    }

    /// Asks the person a question below the output so far. Nothing else is printed until the answer.
    fn ask(&mut self, at: SystemTime, question: &Question) {
        self.each(|report| report.settle());
        if question::is_possible() {
            match question::ask_question(question) {
                Ok(Some(answer)) => return question.answer(answer),
                Ok(None) => return,
                Err(error) => tracing::debug!(%error, "cannot ask on the terminal"),
            }
        }
        if question.limit.is_none() {
            let words = "not waiting for an answer: standard input is not a terminal";
            self.pass_on(at, &Event::Warning(words.to_owned()));
        }
    }

    /// Calls every report that still works; a failure is reported to the others.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Report) -> io::Result<()>) {
        let mut news = Vec::new();
        for sink in self.sinks.iter_mut().filter(|sink| sink.state != State::Closed) {
            let Err(error) = act(sink.report.as_mut()) else { continue };
            if error.kind() == io::ErrorKind::BrokenPipe {
                sink.state = State::Closed;
            } else if sink.state == State::Well {
                let words = format!("cannot write to {}: {error}", sink.name);
                news.push(words.clone());
                // The recorder continues, so that the end of the run can be recorded.
                sink.state = State::Failed(words);
            }
        }
        if self.has_ended {
            // Failures are reported at the end.
            let optional = self.sinks.iter().filter(|sink| sink.optional);
            let failed = optional.filter_map(|sink| match &sink.state {
                State::Failed(words) if news.contains(words) => Some(words.clone()),
                _ => None,
            });
            return self.warnings.extend(failed);
        }
        for words in news {
            let (at, event) = (SystemTime::now(), Event::Warning(words));
            let line = self.line(at, &event);
            for sink in self.sinks.iter_mut().filter(|sink| sink.state == State::Well) {
                #[expect(clippy::let_underscore_must_use, reason = "the end of the run reports a failed report")]
                let _ = told(sink.report.as_mut(), at, &event, line.as_ref());
            }
        }
    }

    async fn ending(self) -> ReportOutcome {
        let failed = |sink: ReportSink| match sink.state {
            State::Failed(words) if !sink.optional => Some(words),
            State::Failed(_) | State::Well | State::Closed => None,
        };
        // The reports go first: the exporter ends when the last sender of spans is dropped.
        let failures = self.sinks.into_iter().filter_map(failed).collect();
        let mut warnings = self.warnings;
        if let Some(exporter) = self.exporter {
            warnings.extend(exporter.flush().await);
        }
        ReportOutcome { failures, warnings }
    }
}

fn told(report: &mut dyn Report, at: SystemTime, event: &Event, line: Option<&RecordedEvent>) -> io::Result<()> {
    report.event(at, event)?;
    line.map_or(Ok(()), |line| report.line(line))
}

impl Report for Box<dyn Report> {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        (**self).event(at, event)
    }
    fn line(&mut self, line: &RecordedEvent) -> io::Result<()> {
        (**self).line(line)
    }
    fn takes_lines(&self) -> bool {
        (**self).takes_lines()
    }
    fn show(&mut self) -> io::Result<()> {
        (**self).show()
    }
    fn settle(&mut self) -> io::Result<()> {
        (**self).settle()
    }
    fn profile(&mut self, at: SystemTime, profile: &Profile) -> io::Result<()> {
        (**self).profile(at, profile)
    }
    fn end(&mut self) -> io::Result<()> {
        (**self).end()
    }
    fn close(&mut self, failures: bool) -> io::Result<()> {
        (**self).close(failures)
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_run::{self, CapturedOutput};
    use super::super::{human, json};
    use super::*;

    /// Fails from the first byte on.
    struct Full(io::ErrorKind);

    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn reported(mut reports: Reports, sheet: Option<&CapturedOutput>) -> ReportOutcome {
        if let Some(sheet) = sheet {
            let style = human::HumanStyle { colour: false, width: 40, verbosity: 0, stamped: false, messages: false };
            reports.add_report("standard output", human::Human::new(Box::new(sheet.clone()), style));
        }
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        example_run::example_events().into_iter().for_each(|reported| sender.send(reported).unwrap());
        drop(sender);
        reports.follow_events(receiver).await
    }

    #[tokio::test]
    async fn a_full_disk_is_reported_by_the_other_reports_and_at_the_end() {
        let mut reports = Reports::new(RunId::new_at(SystemTime::now()), SecretTexts::default(), false);
        reports.add_report("events.json", json::Json::new(Full(io::ErrorKind::StorageFull)));
        let sheet = CapturedOutput::default();
        let ending = reported(reports, Some(&sheet)).await;
        assert_eq!(ending.failures.len(), 1);
        assert!(ending.failures[0].starts_with("cannot write to events.json: "), "{ending:?}");
        assert_eq!(
            sheet.captured_text().matches("warning: cannot write to events.json").count(),
            1,
            "{}",
            sheet.captured_text()
        );
        assert!(sheet.captured_text().contains("PLAY RECAP"), "{}", sheet.captured_text());
    }

    #[tokio::test]
    async fn a_reader_that_went_away_is_no_failure() {
        let mut reports = Reports::new(RunId::new_at(SystemTime::now()), SecretTexts::default(), false);
        reports.add_report("standard output", json::Json::new(Full(io::ErrorKind::BrokenPipe)));
        assert_eq!(reported(reports, None).await, ReportOutcome::default());
    }
}
