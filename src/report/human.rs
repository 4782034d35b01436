//! The report for a person: the words and the order that `ansible-playbook` users know.

mod text;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::live::Live;
use super::log::stamped;
use super::paint::{Colour, harmless, indented, one_line};
use super::profile::Profile;
use super::screen::Screen;
use super::{DisplayOptions, Report};
use crate::engine::masking::HIDDEN;
use crate::engine::{CommandEvent, Counts, Event, Recap, Status, TaskResult, TaskStart};
use crate::value::{Origin, Value};
pub(super) use text::{command_line, hosts_word};
use text::{counted, pretty};
pub(crate) use text::{message_text, without_host};

#[derive(Debug, Clone, Copy)]
pub(super) struct HumanStyle {
    pub colour: bool,
    /// Columns that banners fill.
    pub width: usize,
    /// 0: results are words. 1: values of every result are shown, skipped ones too. 2: where tasks are.
    pub verbosity: u8,
    /// Every line begins with the moment, for a log.
    pub stamped: bool,
    /// What the command printed itself is shown.
    pub messages: bool,
}

pub(super) struct Human {
    out: OutputTarget,
    style: HumanStyle,
    /// Lines that are not printed yet, with their newlines.
    pending: String,
    /// The time of the event that is being reported.
    at: SystemTime,
    /// Warnings are said once.
    warned: Vec<String>,
    shows: DisplayOptions,
    /// The banner of a task without output so far, while not all results are shown.
    held: Option<String>,
}

enum OutputTarget {
    Plain(Box<dyn Write + Send>),
    Live { screen: Screen, live: Live, drawn: Instant },
}

/// The shortest time between two redraws of a terminal that shows running tasks.
const CALM: Duration = Duration::from_millis(100);

impl Human {
    /// Plain lines.
    pub(super) fn new(out: Box<dyn Write + Send>, style: HumanStyle) -> Self {
        Self::on(OutputTarget::Plain(out), style)
    }

    /// Lines above a live view of running tasks.
    pub(super) fn live(screen: Screen, style: HumanStyle) -> Self {
        Self::on(OutputTarget::Live { screen, live: Live::default(), drawn: Instant::now() }, style)
    }

    fn on(out: OutputTarget, style: HumanStyle) -> Self {
        Human {
            out,
            style,
            pending: String::new(),
            at: SystemTime::UNIX_EPOCH,
            warned: Vec::new(),
            shows: DisplayOptions::default(),
            held: None,
        }
    }

    pub(super) fn showing(self, shows: DisplayOptions) -> Self {
        Human { shows, ..self }
    }

    pub(super) fn set_verbosity(&mut self, verbosity: u8) {
        self.style.verbosity = verbosity;
    }

    /// Whether a result is shown.
    fn shown(&self, result: &TaskResult) -> bool {
        match result.status {
            Status::Ok => self.shows.ok || result.changed,
            Status::Skipped => self.shows.skipped,
            _ => true,
        }
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        if self.style.colour { colour.paint(text) } else { text.to_string() }
    }

    pub(super) fn say(&mut self, colour: Colour, text: &str) {
        let text = self.paint(colour, &harmless(text));
        self.write(&text);
    }

    /// As [`Human::say`], without the banner of a task that has no output so far.
    pub(super) fn say_instead(&mut self, colour: Colour, text: &str) {
        self.held = None;
        self.say(colour, text);
    }

    /// Prints an event that does not belong to the task.
    pub(super) fn print_beside(&mut self, event: &Event) {
        let held = self.held.take();
        self.print_event(event);
        self.held = held;
    }

    /// Takes an event for the live view only.
    pub(super) fn follow(&mut self, at: SystemTime, event: &Event) {
        self.at = at;
        if let OutputTarget::Live { live, .. } = &mut self.out {
            live.event(event, Instant::now());
        }
    }

    fn write(&mut self, text: &str) {
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
        if self.style.stamped {
            self.pending.push_str(&stamped(self.at, text));
        } else {
            self.pending.push_str(text);
            self.pending.push('\n');
        }
    }

    fn starred(&self, text: &str) -> String {
        let stars = self.style.width.saturating_sub(text.chars().count() + 2).max(3);
        format!("\n{text} {}", "*".repeat(stars))
    }

    fn banner(&mut self, text: &str) {
        self.held = None;
        self.say(Colour::Plain, &self.starred(text));
    }

    fn result(&mut self, host: &str, result: &TaskResult, item: Option<&str>, kind: Kind<'_>) {
        let item = match item {
            Some(label) => format!(" => (item={})", one_line(label)),
            None => String::new(),
        };
        let host = match kind.delegated {
            Some(delegate) => format!("[{} -> {}]", one_line(host), one_line(delegate)),
            None => format!("[{}]", one_line(host)),
        };
        for diff in &result.diff {
            super::diff::diff_lines(diff, self.shows.context)
                .into_iter()
                .for_each(|(colour, line)| self.say(colour, &line));
        }
        let (word, colour) = match result.status {
            Status::Ok | Status::Ignored if !result.changed => ("ok", Colour::Green),
            Status::Ok | Status::Changed | Status::Ignored => ("changed", Colour::Yellow),
            Status::Skipped => ("skipping", Colour::Cyan),
            Status::Failed => ("fatal", Colour::Red),
            Status::Unreachable => ("unreachable", Colour::Red),
        };
        if result.status == Status::Ignored {
            self.failure(&format!("failed: {host}{item}"), result, kind.place);
            if kind.looped || item.is_empty() {
                self.say(Colour::Cyan, "...ignoring");
            }
            return;
        }
        if result.failed() {
            return self.failure(&format!("{word}: {host}{item}"), result, kind.place);
        }
        let mut line = format!("{word}: {host}{item}");
        if let Some(words) = self.shown_details(result, kind.action) {
            line.push_str(&format!(" => {words}"));
        }
        self.say(colour, &line)
    }

    /// What is shown of a good result: the values of `debug` always, of others from `-v` on.
    pub(super) fn shown_details(&self, result: &TaskResult, action: &str) -> Option<String> {
        let shown = action == "debug" && result.status != Status::Skipped;
        if result.no_log {
            return (shown || self.style.verbosity > 0).then(|| HIDDEN.to_string());
        }
        if self.style.verbosity == 0 && !shown {
            let message = result.message.as_deref().filter(|_| action == "assert" || action == "pause")?;
            return Some(indented(message));
        }
        let mut values = result.values.clone();
        // The item is reported by its label.
        for named in ["ansible_loop_var", "ansible_index_var"] {
            if let Some(name) = values.shift_remove(named) {
                values.shift_remove(name.as_str().unwrap_or_default());
            }
        }
        if let Some(message) = &result.message {
            values.entry("msg".into()).or_insert_with(|| Value::from(message.as_str()));
        }
        (!values.is_empty()).then(|| pretty(&values))
    }

    /// The reason with its place, what the program said, where the task is, what to do.
    fn failure(&mut self, head: &str, result: &TaskResult, place: &Origin) {
        let message = match (&result.message, result.no_log) {
            (_, true) => "the reason is hidden by no_log",
            (Some(message), false) => message,
            (None, false) => "failed",
        };
        let mut text = format!("{head}: {}", indented(message));
        for name in ["assertion", "cmd", "rc", "stdout", "stderr"] {
            let Some(value) = result.values.get(name) else { continue };
            let words = if name == "cmd" { command_line(value) } else { value.to_string() };
            if !words.trim().is_empty() && !message.contains(words.trim()) {
                text.push_str(&format!("\n    {name}: {}", words.trim_end().replace('\n', "\n      ")));
            }
        }
        // A host that is not reached is no matter of the task.
        if result.status != Status::Unreachable {
            text.push_str(&format!("\n    task: {place}"));
        }
        if let Some(hint) = &result.hint {
            text.push_str(&format!("\n    hint: {}", indented(hint)));
        }
        self.say(Colour::Red, &text);
        if self.style.verbosity > 0 && !result.values.is_empty() {
            self.say(Colour::Red, &pretty(&result.values));
        }
    }

    fn recap(&mut self, recap: &Recap) {
        self.banner("PLAY RECAP");
        let longest = recap.hosts.keys().map(|host| host.chars().count()).max().unwrap_or(0).max(10);
        let mut hosts: Vec<(&Arc<str>, &Counts)> = recap.hosts.iter().collect();
        hosts.sort_by(|one, other| one.0.cmp(other.0));
        for (host, counts) in hosts {
            let colour = match counts {
                Counts { failed: 0, unreachable: 0, changed: 0, .. } => Colour::Green,
                Counts { failed: 0, unreachable: 0, .. } => Colour::Yellow,
                _ => Colour::Red,
            };
            let name = self.paint(colour, &format!("{:<longest$}", one_line(host)));
            self.write(&format!("{name} : {}", counted(counts)));
        }
        if self.shows.stats && !recap.stats.run.is_empty() {
            self.say(Colour::Plain, &format!("\nstats: {}", pretty(&recap.stats.run)));
        }
        let of_hosts = if self.shows.stats { recap.stats.hosts.clone() } else { indexmap::IndexMap::default() };
        for (host, stats) in &of_hosts {
            self.say(Colour::Plain, &format!("\nstats of {}: {}", one_line(host), pretty(stats)));
        }
        if recap.interrupted {
            self.say(Colour::Red, "\ninterrupted: windlass finished the running tasks and started no others");
        }
        let seconds = recap.took.as_secs_f64();
        self.say(Colour::Plain, &format!("\n{} in {seconds:.1} s", hosts_word(recap.hosts.len())))
    }
}

/// What a result line needs beside the result.
struct Kind<'a> {
    action: &'a str,
    /// Where the task is.
    place: &'a Origin,
    delegated: Option<&'a str>,
    looped: bool,
}

fn kind<'a>(task: &'a TaskStart, delegated: &'a Option<String>, looped: bool) -> Kind<'a> {
    Kind { action: task.action, place: &task.origin, delegated: delegated.as_deref(), looped }
}

impl Human {
    /// Prints what is shown of an event.
    pub(super) fn print_event(&mut self, event: &Event) {
        match event {
            Event::PlayStart { name, check, .. } => {
                let check = if *check { " [CHECK MODE]" } else { "" };
                self.banner(&format!("PLAY [{}]{check}", one_line(name)));
            }
            Event::NoHosts { pattern } => self.say(Colour::Cyan, &format!("skipping: no hosts matched {pattern:?}")),
            Event::TaskStart(task) => {
                let word = if task.handler { "RUNNING HANDLER" } else { "TASK" };
                let words = format!("{word} [{}]", one_line(&task.name));
                match self.shows.ok && self.shows.skipped {
                    true => self.banner(&words),
                    false => self.held = Some(self.starred(&words)),
                }
                if self.style.verbosity >= 2 {
                    self.say(Colour::Plain, &format!("task path: {}", task.origin));
                }
            }
            Event::Item { result, .. } | Event::Result { result, .. } if !self.shown(result) => {}
            Event::Command(CommandEvent::Message { text, .. }) if self.style.messages => {
                self.say(Colour::Plain, text.trim_end_matches('\n'));
            }
            // A live view shows these.
            Event::TaskEnd(_)
            | Event::HostStart { .. }
            | Event::Progress { .. }
            | Event::Meta { .. }
            | Event::Command(_)
            | Event::NextBatch => {}
            // It is put to the person when all that came before it is shown.
            Event::Question(_) => {}
            Event::Item { task, host, delegated, label, result } => {
                if result.status != Status::Skipped || self.style.verbosity > 0 {
                    let kind = kind(task, delegated, false);
                    self.result(host, result, Some(label), kind);
                }
            }
            // The items have said it; only a whole that was skipped or ignored has something to add.
            Event::Result { looped: true, result, .. } if result.status == Status::Ignored => {
                self.say(Colour::Cyan, "...ignoring");
            }
            Event::Result { looped: true, result, .. } if result.status != Status::Skipped => {}
            Event::Result { task, host, delegated, looped, result } => {
                let kind = kind(task, delegated, *looped);
                self.result(host, result, None, kind);
            }
            Event::Retry { task, host, attempt: _, left, result } => {
                let why = match &result.message {
                    Some(message) if self.style.verbosity > 0 => format!(": {}", indented(message)),
                    _ => String::new(),
                };
                self.say(
                    Colour::Plain,
                    &format!("retrying: [{}]: {} ({left} retries left){why}", one_line(host), one_line(&task.name)),
                );
            }
            Event::AsyncPoll { host, job, .. } => {
                self.say(
                    Colour::Cyan,
                    &format!("ASYNC POLL on {}: jid={job} started=True finished=False", one_line(host)),
                );
            }
            Event::Included { what, hosts, .. } => {
                let hosts: Vec<&str> = hosts.iter().map(AsRef::as_ref).collect();
                self.say(Colour::Cyan, &one_line(&format!("included: {what} for {}", hosts.join(", "))));
            }
            Event::NoHostsLeft { .. } => self.banner("NO MORE HOSTS LEFT"),
            Event::Warning(text) => {
                if !self.warned.contains(text) {
                    self.warned.push(text.clone());
                    self.say(Colour::Purple, &format!("warning: {}", indented(text)));
                }
            }
            Event::Recap(recap) => self.recap(recap),
        }
    }
}

impl Report for Human {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        self.follow(at, event);
        self.print_event(event);
        Ok(())
    }

    fn show(&mut self) -> io::Result<()> {
        match &mut self.out {
            OutputTarget::Plain(_) if self.pending.is_empty() => Ok(()),
            OutputTarget::Plain(out) => {
                let written = out.write_all(self.pending.as_bytes()).and_then(|()| out.flush());
                self.pending.clear();
                written
            }
            OutputTarget::Live { screen, drawn, .. } if screen.has_frame() && drawn.elapsed() < CALM => Ok(()),
            OutputTarget::Live { screen, live, drawn } => {
                let now = Instant::now();
                *drawn = now;
                let written = screen.draw(
                    &self.pending,
                    &live
                        .frame(screen.size().0, now)
                        .iter()
                        .map(|line| one_line(line).into_owned())
                        .collect::<Vec<_>>(),
                );
                self.pending.clear();
                written
            }
        }
    }

    fn profile(&mut self, at: SystemTime, profile: &Profile) -> io::Result<()> {
        self.at = at;
        for (heading, lines) in profile.sections() {
            self.banner(heading);
            lines.iter().for_each(|line| self.say(Colour::Plain, line));
        }
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        if let OutputTarget::Live { screen, .. } = &mut self.out {
            let written = screen.draw(&self.pending, &[]);
            self.pending.clear();
            return written;
        }
        self.show()
    }

    fn end(&mut self) -> io::Result<()> {
        self.settle()
    }
}

#[cfg(test)]
mod tests;
