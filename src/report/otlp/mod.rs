//! Traces of a run for OpenTelemetry: a span for the run and one for each play, task and host, made of events and sent
//! in the background (OTLP over HTTP, in JSON). `span.rs` is the encoding, `send.rs` the sending.

mod send;
mod settings;
mod span;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

pub use send::Exporter;
pub use settings::OtlpSettings;

use self::send::Outbox;
use self::span::{Id, Span, SpanEvent};
use super::Report;
use super::event_lines::status_word;
use crate::engine::{Event, TaskResult, TaskStart};

/// The most items and retries in a host's span; further ones are omitted.
const NOTES: usize = 100;

/// Makes spans of events.
pub(super) struct Traces {
    outbox: Outbox,
    trace: Id<16>,
    run: Option<Span>,
    play: Option<Span>,
    tasks: HashMap<usize, Span>,
    hosts: HashMap<(usize, Arc<str>), Span>,
    /// The parent of the run's span, from `TRACEPARENT`.
    parent: Option<Id<8>>,
    /// When the last event was.
    last: SystemTime,
}

/// Opens the report, and what sends its spans.
pub(super) fn open_traces(settings: OtlpSettings) -> (Traces, Exporter) {
    let (trace, parent) = match settings.parent {
        Some((trace, span)) => (trace, Some(span)),
        None => (Id::new(), None),
    };
    let (outbox, exporter) = send::start_exporter(settings);
    (Traces::new(outbox, trace, parent), exporter)
}

impl Traces {
    fn new(outbox: Outbox, trace: Id<16>, parent: Option<Id<8>>) -> Self {
        Traces {
            outbox,
            trace,
            run: None,
            play: None,
            tasks: HashMap::new(),
            hosts: HashMap::new(),
            parent,
            last: SystemTime::UNIX_EPOCH,
        }
    }

    fn span(&self, parent: Option<Id<8>>, name: String, begun: SystemTime) -> Span {
        Span::new(self.trace, parent, name, begun)
    }

    fn play(&mut self, name: &str, check: bool, path: String, at: SystemTime) {
        self.end_play(at);
        let mut span = self.span(self.run.as_ref().map(|run| run.id), format!("play {name}"), at);
        span.attribute("windlass.play.name", name);
        span.attribute("windlass.play.path", path);
        span.attribute("windlass.check", check);
        self.play = Some(span);
    }

    fn task(&mut self, task: &TaskStart, at: SystemTime) {
        let parent = self.play.as_ref().or(self.run.as_ref()).map(|span| span.id);
        let mut span = self.span(parent, task.name.clone(), at);
        span.attribute("windlass.task.name", task.name.as_str());
        span.attribute("windlass.module", task.action);
        span.attribute("windlass.handler", task.handler);
        if let Some(role) = &task.role {
            span.attribute("windlass.role", &**role);
        }
        span.attribute("code.file.path", task.origin.path().display().to_string());
        span.attribute("code.line.number", task.origin.line as i64);
        self.tasks.insert(task.id, span);
    }

    fn host(&mut self, task: &TaskStart, host: &Arc<str>, at: SystemTime) -> &mut Span {
        let parent = self.tasks.get(&task.id).or(self.run.as_ref()).map(|span| span.id);
        let trace = self.trace;
        self.hosts.entry((task.id, host.clone())).or_insert_with(|| {
            let mut span = Span::new(trace, parent, format!("{host}: {}", task.name), at);
            span.attribute("windlass.host", &**host);
            span.attribute("windlass.task.name", task.name.as_str());
            span.attribute("windlass.module", task.action);
            span
        })
    }

    fn note(&mut self, task: &TaskStart, host: &Arc<str>, note: SpanEvent) {
        let span = self.host(task, host, note.at);
        if span.notes.len() < NOTES {
            span.notes.push(note);
        }
    }

    fn result(&mut self, task: &TaskStart, host: &Arc<str>, result: &TaskResult, at: SystemTime) {
        let begun = at.checked_sub(result.took).unwrap_or(at);
        self.host(task, host, begun);
        let Some(mut span) = self.hosts.remove(&(task.id, host.clone())) else { return };
        span.attribute("windlass.status", status_word(result.status));
        span.attribute("windlass.changed", result.changed);
        if result.failed() {
            let reason = result.message.as_deref().unwrap_or("the reason is hidden by no_log");
            span.error = Some(reason.to_string());
            let above = [self.tasks.get_mut(&task.id), self.play.as_mut()];
            for above in above.into_iter().flatten() {
                above.error = Some("failed on a host".to_string());
            }
        }
        self.outbox.send(span.ended(at));
    }

    /// Ends what is open below the run's span.
    fn end_play(&mut self, at: SystemTime) {
        let hosts = self.hosts.drain().map(|(_, span)| span);
        let spans = hosts.chain(self.tasks.drain().map(|(_, span)| span)).chain(self.play.take());
        spans.for_each(|span| self.outbox.send(span.ended(at)));
    }

    fn end_run(&mut self, at: SystemTime, error: Option<&str>) {
        self.end_play(at);
        if let Some(mut run) = self.run.take() {
            run.error = error.map(str::to_string);
            self.outbox.send(run.ended(at));
        }
    }
}

impl Report for Traces {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        // The command's own events come before and after what is traced.
        if matches!(event, Event::Command(_)) {
            return Ok(());
        }
        self.last = at;
        if self.run.is_none() {
            self.run = Some(self.span(self.parent, "windlass".to_string(), at));
        }
        match event {
            Event::PlayStart { name, origin, check, .. } => self.play(name, *check, origin.to_string(), at),
            Event::TaskStart(task) => self.task(task, at),
            Event::TaskEnd(task) => {
                if let Some(span) = self.tasks.remove(&task.id) {
                    self.outbox.send(span.ended(at));
                }
            }
            Event::HostStart { task, host } => _ = self.host(task, host, at),
            Event::Item { task, host, label, result, .. } => {
                let note = SpanEvent::new("item", at)
                    .with("windlass.item", label.as_str())
                    .with("windlass.status", status_word(result.status));
                self.note(task, host, note);
            }
            Event::Retry { task, host, attempt, .. } => {
                self.note(task, host, SpanEvent::new("retry", at).with("windlass.attempt", *attempt as i64));
            }
            Event::Result { task, host, result, .. } => self.result(task, host, result, at),
            Event::Recap(recap) => {
                let error = match recap {
                    recap if recap.interrupted => Some("interrupted"),
                    recap if !recap.lost.unreachable.is_empty() => Some("a host was unreachable"),
                    recap if !recap.lost.failed.is_empty() => Some("a task failed"),
                    _ => None,
                };
                self.end_run(at, error);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        // Without a recap the run was cut short.
        self.end_run(self.last, Some("stopped"));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
