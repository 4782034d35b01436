//! Sends a run's events to its reports. A report that cannot be written is a warning, and does not stop the run.

use std::io;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::UnboundedReceiver;

use super::profile::{Profile, Timings};
use super::{Report, otlp, question};
use crate::engine::masking;
use crate::engine::{Event, TimedEvent};
use crate::modules::question::Question;
use crate::value::SecretTexts;

/// How often a view with times is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// Events that are taken at once; more is a burst that is shown in several pieces.
const BURST: usize = 256;

/// The reports of one run.
pub struct Reports {
    sinks: Vec<ReportSink>,
    hidden: SecretTexts,
    timings: Option<Timings>,
    exporter: Option<otlp::Exporter>,
}

struct ReportSink {
    /// Where it goes, for messages.
    name: String,
    report: Box<dyn Report>,
    state: State,
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
    pub(super) fn new(hidden: SecretTexts, profile: bool) -> Self {
        Reports { sinks: Vec::new(), hidden, timings: profile.then(Timings::default), exporter: None }
    }

    pub(super) fn add_report(&mut self, name: &str, report: impl Report + 'static) {
        self.sinks.push(ReportSink { name: name.to_string(), report: Box::new(report), state: State::Well });
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
        self.each(|report| report.end());
        self.ending().await
    }

    fn take(&mut self, reported: TimedEvent) {
        let at = reported.at;
        let event = masking::masked(reported.event, &self.hidden);
        if let Some(timings) = &mut self.timings {
            timings.event(at, &event);
            if let Event::Recap(recap) = &event {
                let profile = timings.finish_profile(recap.took);
                self.each(|report| report.profile(at, &profile));
            }
        }
        self.each(|report| report.event(at, &event));
        if let Event::Question(question) = &event {
            self.ask(at, question);
        }
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
            self.each(|report| report.event(at, &Event::Warning(words.to_owned())));
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
                sink.state = State::Failed(words);
            }
        }
        for words in news {
            let event = Event::Warning(words);
            for sink in self.sinks.iter_mut().filter(|sink| sink.state == State::Well) {
                #[expect(clippy::let_underscore_must_use, reason = "the end of the run reports a failed report")]
                let _ = sink.report.event(SystemTime::now(), &event);
            }
        }
    }

    async fn ending(self) -> ReportOutcome {
        let failed = |sink: ReportSink| match sink.state {
            State::Failed(words) => Some(words),
            State::Well | State::Closed => None,
        };
        // The reports go first: the exporter ends when the last sender of spans is dropped.
        let failures = self.sinks.into_iter().filter_map(failed).collect();
        let warnings = match self.exporter {
            Some(exporter) => exporter.flush().await,
            None => Vec::new(),
        };
        ReportOutcome { failures, warnings }
    }
}

impl Report for Box<dyn Report> {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        (**self).event(at, event)
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
            let style = human::HumanStyle { colour: false, width: 40, verbosity: 0, stamped: false };
            reports.add_report("standard output", human::Human::new(Box::new(sheet.clone()), style));
        }
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        example_run::example_events().into_iter().for_each(|reported| sender.send(reported).unwrap());
        drop(sender);
        reports.follow_events(receiver).await
    }

    #[tokio::test]
    async fn a_full_disk_is_reported_by_the_other_reports_and_at_the_end() {
        let mut reports = Reports::new(SecretTexts::default(), false);
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
        let mut reports = Reports::new(SecretTexts::default(), false);
        reports.add_report("standard output", json::Json::new(Full(io::ErrorKind::BrokenPipe)));
        assert_eq!(reported(reports, None).await, ReportOutcome::default());
    }
}
