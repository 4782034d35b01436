//! The report for the store of runs: events with their secrets removed, and what they say of stages and hosts. A store that cannot be
//! written is a warning.

use std::borrow::Cow;
use std::io;
use std::time::SystemTime;

use serde_json::Value as Plain;

use super::Report;
use super::paint::plain_json;
use crate::engine::{CommandEvent, CommandStart, Event, Recap};
use crate::runs::recorder::{OpenStore, Recorder, StartRecorded};
use crate::runs::{
    HostCounts, RecordedEvent, Retention, RunEnd, RunId, RunOutcome, RunStart, RunSummary, StageRecord, timestamp_text,
};
use crate::value::SecretTexts;

/// Where a run is recorded.
pub struct RecordSettings {
    /// The store, in words.
    pub name: String,
    pub open: OpenStore,
    pub retention: Retention,
    /// Who waits until the start of the run is recorded.
    pub started: Option<StartRecorded>,
}

pub(super) struct Record {
    run: RunId,
    /// Until the run starts.
    settings: Option<RecordSettings>,
    recorder: Option<Recorder>,
    hidden: SecretTexts,
    events: Vec<RecordedEvent>,
    summary: RunSummary,
    end: Option<RunEnd>,
}

impl Record {
    pub(super) fn of_run(run: RunId, settings: RecordSettings, hidden: SecretTexts) -> Record {
        Record {
            run,
            settings: Some(settings),
            recorder: None,
            hidden,
            events: Vec::new(),
            summary: RunSummary::default(),
            end: None,
        }
    }

    fn start(&mut self, at: SystemTime, start: &CommandStart) {
        let Some(settings) = self.settings.take() else { return };
        let start = RunStart {
            id: self.run,
            command: start.command.clone(),
            command_line: start.command_line.clone(),
            user: start.user.clone(),
            pid: start.pid,
            version: start.version.to_owned(),
            check: start.check,
            started: at,
        };
        self.recorder = Some(Recorder::start_recording(start, settings.retention, settings.open, settings.started));
    }

    fn command_event(&mut self, at: SystemTime, event: &CommandEvent) {
        match event {
            CommandEvent::Start(start) => self.start(at, start),
            CommandEvent::Deployment { name, .. } => self.summary.deployment = Some(name.clone()),
            CommandEvent::StageStart { stage, check, .. } => self.summary.stages.push(StageRecord {
                stage: stage.clone(),
                check: *check,
                started: timestamp_text(at),
                ended: None,
                outcome: None,
                changes: None,
            }),
            CommandEvent::StageEnd { stage, outcome, changes } => {
                let open = self.summary.stages.iter_mut().rfind(|open| open.ended.is_none() && open.stage == *stage);
                if let Some(open) = open {
                    (open.ended, open.outcome) = (Some(timestamp_text(at)), Some((*outcome).to_owned()));
                    open.changes = *changes;
                }
            }
            CommandEvent::Message { .. } => {}
            CommandEvent::End { outcome, exit_code } => {
                let outcome = RunOutcome::outcome_named(outcome).unwrap_or(RunOutcome::Error);
                for open in self.summary.stages.iter_mut().filter(|open| open.ended.is_none()) {
                    (open.ended, open.outcome) = (Some(timestamp_text(at)), Some(outcome.outcome_word().to_owned()));
                }
                self.end = Some(RunEnd { ended: at, outcome, exit_code: *exit_code, complete: true });
            }
        }
    }

    fn recap(&mut self, recap: &Recap) {
        for (host, counts) in &recap.hosts {
            let counts = HostCounts {
                ok: counts.ok,
                changed: counts.changed,
                unreachable: counts.unreachable,
                failed: counts.failed,
                skipped: counts.skipped,
                rescued: counts.rescued,
                ignored: counts.ignored,
            };
            self.summary.hosts.entry(host.to_string()).or_default().add_counts(&counts);
        }
    }

    fn problem(&self) -> io::Result<()> {
        self.recorder.as_ref().and_then(Recorder::take_problem).map_or(Ok(()), |words| Err(io::Error::other(words)))
    }
}

impl Report for Record {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        match event {
            Event::Command(event) => self.command_event(at, event),
            Event::Recap(recap) => self.recap(recap),
            _ => {}
        }
        Ok(())
    }

    fn line(&mut self, event: &RecordedEvent) -> io::Result<()> {
        let line = as_recorded(&event.line, &self.hidden);
        self.events.push(RecordedEvent { sequence: event.sequence, line });
        Ok(())
    }

    fn takes_lines(&self) -> bool {
        true
    }

    fn show(&mut self) -> io::Result<()> {
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !self.events.is_empty()) {
            recorder.add_events(std::mem::take(&mut self.events), &self.summary);
        }
        self.problem()
    }

    fn close(&mut self, failures: bool) -> io::Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.add_events(std::mem::take(&mut self.events), &self.summary);
        if let Some(end) = self.end.take() {
            let exit_code = end.exit_code.max(u8::from(failures));
            recorder.finish_recording(&self.summary, RunEnd { exit_code, ..end });
        }
        self.problem()
    }
}

/// The last look at what is written to a disk: gathered facts are left out, as they have the environment, which is full of credentials.
/// Events are masked before; this finds secrets in a field that nobody thought of.
fn as_recorded(line: &str, hidden: &SecretTexts) -> String {
    let is_clean = matches!(hidden.hide(line), Cow::Borrowed(_));
    if is_clean && !line.contains(FACTS) {
        return line.to_owned();
    }
    let Ok(mut event) = serde_json::from_str::<Plain>(line) else { return hidden.hide(line).into_owned() };
    let has_facts = leave_facts_out(&mut event);
    if is_clean && !has_facts {
        return line.to_owned();
    }
    let Plain::Object(fields) = event else { return hidden.hide(line).into_owned() };
    let masked: Plain = fields.into_iter().map(|(name, value)| masked_field(name, value, hidden, false)).collect();
    plain_json(&masked.to_string()).into_owned()
}

const FACTS: &str = "ansible_facts";

/// Removes what a task that gathers facts returned. False for every other event.
fn leave_facts_out(event: &mut Plain) -> bool {
    let action = event["task"]["action"].as_str().unwrap_or_default();
    if !matches!(action.rsplit('.').next(), Some("setup" | "gather_facts")) {
        return false;
    }
    let values = event.get_mut("result").and_then(|result| result.get_mut("values")).and_then(Plain::as_object_mut);
    values.is_some_and(|values| values.remove(FACTS).is_some())
}

/// Fields whose texts are words of the format: a secret that is the same word is not given away by them, and without them nobody could
/// read the record.
const WORDS_OF_THE_FORMAT: [&str; 9] =
    ["event", "run", "time", "command", "stage", "stream", "status", "outcome", "action"];

/// `named_by_others`: within what tasks return, whose names are texts, too.
fn masked_field(name: String, value: Plain, hidden: &SecretTexts, named_by_others: bool) -> (String, Plain) {
    if !named_by_others && WORDS_OF_THE_FORMAT.contains(&name.as_str()) {
        return (name, value);
    }
    let below = named_by_others || ["values", "stats", "host_stats"].contains(&name.as_str());
    let value = masked_texts(value, hidden, below);
    (if named_by_others { hidden.hide(&name).into_owned() } else { name }, value)
}

fn masked_texts(value: Plain, hidden: &SecretTexts, named_by_others: bool) -> Plain {
    match value {
        Plain::String(text) => Plain::String(hidden.hide(&text).into_owned()),
        Plain::Array(items) => items.into_iter().map(|item| masked_texts(item, hidden, named_by_others)).collect(),
        Plain::Object(fields) => {
            fields.into_iter().map(|(name, value)| masked_field(name, value, hidden, named_by_others)).collect()
        }
        // A time or a count may have the digits of a secret, and is none. Values of results are masked before.
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_any_field_is_hidden_and_a_line_stays_json() {
        let hidden = SecretTexts::default();
        hidden.add_secret("tops3cret");
        hidden.add_secret("123456");
        let line = r#"{"host":"tops3cret","seconds":0.123456,"values":{"tops3cret":["a tops3cret"]}}"#;
        let masked = as_recorded(line, &hidden);
        assert_eq!(masked, r#"{"host":"***","seconds":0.123456,"values":{"***":["a ***"]}}"#);
        assert_eq!(as_recorded("{}", &hidden), "{}");
    }

    #[test]
    fn a_secret_that_is_a_word_of_the_format_does_not_change_what_a_record_says() {
        let hidden = SecretTexts::default();
        for word in ["result", "failed", "format", "changed"] {
            hidden.add_secret(word);
        }
        let line = r#"{"event":"result","format":1,"result":{"status":"failed","changed":false,"msg":"failed","values":{"failed":"x"}}}"#;
        let expected = r#"{"event":"result","format":1,"result":{"status":"failed","changed":false,"msg":"***","values":{"***":"x"}}}"#;
        assert_eq!(as_recorded(line, &hidden), expected);
    }

    #[test]
    fn gathered_facts_are_not_recorded() {
        let hidden = SecretTexts::default();
        let line = |action: &str| {
            format!(
                r#"{{"event":"result","task":{{"action":"{action}"}},"result":{{"values":{{"ansible_facts":{{"ansible_env":{{"TOKEN":"x"}}}},"rc":0}}}}}}"#
            )
        };
        for action in ["gather_facts", "ansible.builtin.setup"] {
            let recorded = as_recorded(&line(action), &hidden);
            assert!(!recorded.contains("TOKEN") && recorded.contains(r#""rc":0"#), "{recorded}");
        }
        assert_eq!(as_recorded(&line("set_fact"), &hidden), line("set_fact"));
    }

    #[test]
    fn a_masked_line_keeps_the_escapes_of_characters_that_a_terminal_obeys() {
        let hidden = SecretTexts::default();
        hidden.add_secret("tops3cret");
        let line = r#"{"msg":"tops3cret \u009b31m"}"#.replace(r"\\", r"\");
        assert_eq!(as_recorded(&line, &hidden), line.replace("tops3cret", "***"));
    }
}
