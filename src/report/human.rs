//! The report for a person: the words and the order that `ansible-playbook` users know.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use super::Report;
use super::live::Live;
use crate::engine::{Counts, Event, Recap, Status, TaskResult};
use crate::modules::Diff;
use crate::value::{Value, Vars};

#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub colour: bool,
    pub width: usize,
    /// 0: results are words. 1: values of every result are shown. 2: skipped ones too.
    pub verbosity: u8,
}

pub struct Human {
    out: Box<dyn Write + Send>,
    style: Style,
    live: Live,
    /// Warnings are said once.
    warned: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Green,
    Yellow,
    Red,
    Cyan,
    Purple,
    Plain,
}

impl Human {
    pub fn new(out: Box<dyn Write + Send>, style: Style, live: Live) -> Self {
        Human { out, style, live, warned: Vec::new() }
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Cyan => "36",
            Colour::Purple => "35",
            Colour::Plain => return text.to_string(),
        };
        if self.style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    fn say(&mut self, colour: Colour, text: &str) -> std::io::Result<()> {
        let text = self.paint(colour, &harmless(text));
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        let out = &mut self.out;
        self.live.above(|| {
            writeln!(out, "{text}")?;
            out.flush()
        })
    }

    fn banner(&mut self, text: &str) -> std::io::Result<()> {
        let stars = self.style.width.saturating_sub(text.chars().count() + 2).max(3);
        self.say(Colour::Plain, &format!("\n{text} {}", "*".repeat(stars)))
    }

    fn result(&mut self, host: &str, result: &TaskResult, item: Option<&str>, kind: Kind<'_>) -> std::io::Result<()> {
        let item = match item {
            Some(_) if result.no_log => " => (item=(hidden by no_log))".to_string(),
            Some(label) => format!(" => (item={label})"),
            None => String::new(),
        };
        let host = match kind.delegated {
            Some(delegate) => format!("[{host} -> {delegate}]"),
            None => format!("[{host}]"),
        };
        for diff in &result.diff {
            self.diff(diff)?;
        }
        let (word, colour) = match result.status {
            Status::Ok | Status::Ignored if !result.changed => ("ok", Colour::Green),
            Status::Ok | Status::Changed | Status::Ignored => ("changed", Colour::Yellow),
            Status::Skipped => ("skipping", Colour::Cyan),
            Status::Failed => ("fatal", Colour::Red),
            Status::Unreachable => ("unreachable", Colour::Red),
        };
        if result.status == Status::Ignored {
            self.failure(&format!("failed: {host}{item}"), result)?;
            return if kind.looped || item.is_empty() { self.say(Colour::Cyan, "...ignoring") } else { Ok(()) };
        }
        if result.failed() {
            return self.failure(&format!("{word}: {host}{item}"), result);
        }
        let mut line = format!("{word}: {host}{item}");
        if let Some(words) = self.words(result, kind.action) {
            line.push_str(&format!(" => {words}"));
        }
        self.say(colour, &line)
    }

    /// What is shown of a good result: the values of `debug` always, of others from `-v` on.
    fn words(&self, result: &TaskResult, action: &str) -> Option<String> {
        let shown = action == "debug" && result.status != Status::Skipped;
        if result.no_log {
            return (shown || self.style.verbosity > 0).then(|| "(hidden by no_log)".to_string());
        }
        if self.style.verbosity == 0 && !shown {
            let message = result.message.as_deref().filter(|_| action == "assert" || action == "pause")?;
            return Some(message.to_string());
        }
        let mut values = result.values.clone();
        if let Some(message) = &result.message {
            values.entry("msg".into()).or_insert_with(|| Value::from(message.as_str()));
        }
        (!values.is_empty()).then(|| pretty(&values))
    }

    fn failure(&mut self, head: &str, result: &TaskResult) -> std::io::Result<()> {
        let message = match (&result.message, result.no_log) {
            (_, true) => "the reason is hidden by no_log",
            (Some(message), false) => message,
            (None, false) => "failed",
        };
        let mut text = format!("{head}: {}", message.replace('\n', "\n    "));
        if !result.no_log {
            for name in ["cmd", "rc", "stdout", "stderr"] {
                let Some(value) = result.values.get(name) else { continue };
                let words = if name == "cmd" { command_line(value) } else { value.to_string() };
                if !words.trim().is_empty() && !message.contains(words.trim()) {
                    text.push_str(&format!("\n    {name}: {}", words.trim_end().replace('\n', "\n      ")));
                }
            }
        }
        if let Some(hint) = &result.hint {
            text.push_str(&format!("\n    hint: {}", hint.replace('\n', "\n    ")));
        }
        self.say(Colour::Red, &text)?;
        if self.style.verbosity > 0 && !result.no_log && !result.values.is_empty() {
            self.say(Colour::Red, &pretty(&result.values))?;
        }
        Ok(())
    }

    fn diff(&mut self, diff: &Diff) -> std::io::Result<()> {
        let text = similar::TextDiff::from_lines(diff.before.as_str(), diff.after.as_str());
        let mut unified = text.unified_diff();
        let name = |header: &str, other: &str| if header.is_empty() { other.to_string() } else { header.to_string() };
        let before = format!("before: {}", name(&diff.before_header, "(nothing)"));
        let after = format!("after: {}", name(&diff.after_header, &diff.before_header));
        unified.context_radius(3).header(&before, &after);
        for line in unified.to_string().lines() {
            let colour = match line.as_bytes().first() {
                Some(b'+') => Colour::Green,
                Some(b'-') => Colour::Red,
                Some(b'@') => Colour::Cyan,
                _ => Colour::Plain,
            };
            self.say(colour, line)?;
        }
        Ok(())
    }

    fn recap(&mut self, recap: &Recap) -> std::io::Result<()> {
        self.live.end();
        self.banner("PLAY RECAP")?;
        let longest = recap.hosts.keys().map(|host| host.chars().count()).max().unwrap_or(0).max(10);
        let mut hosts: Vec<(&Arc<str>, &Counts)> = recap.hosts.iter().collect();
        hosts.sort_by(|one, other| one.0.cmp(other.0));
        for (host, counts) in hosts {
            let colour = match counts {
                Counts { failed: 0, unreachable: 0, changed: 0, .. } => Colour::Green,
                Counts { failed: 0, unreachable: 0, .. } => Colour::Yellow,
                _ => Colour::Red,
            };
            let name = self.paint(colour, &harmless(&format!("{host:<longest$}")));
            self.write(&format!("{name} : {}", counted(counts)))?;
        }
        if !recap.stats.is_empty() {
            self.say(Colour::Plain, &format!("\nstats: {}", pretty(&recap.stats)))?;
        }
        if recap.interrupted {
            self.say(Colour::Red, "\ninterrupted: tasks that had begun were finished, nothing after them was begun")?;
        }
        let seconds = recap.took.as_secs_f64();
        self.say(Colour::Plain, &format!("\n{} in {seconds:.1} s", hosts_word(recap.hosts.len())))
    }
}

/// The text without what a terminal would obey: a host's answer may hold escape sequences.
fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => harmless.push_str("\\r"),
            c if obeyed(c) => harmless.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => harmless.push(c),
        }
    }
    Cow::Owned(harmless)
}

/// A command as one would type it.
fn command_line(value: &Value) -> String {
    let words: Vec<String> = match value.kind() {
        minijinja::value::ValueKind::Seq => {
            value.try_iter().into_iter().flatten().map(|word| word.to_string()).collect()
        }
        _ => return value.to_string(),
    };
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// What a result line needs beside the result.
struct Kind<'a> {
    action: &'a str,
    delegated: Option<&'a str>,
    looped: bool,
}

fn hosts_word(count: usize) -> String {
    if count == 1 { "1 host".to_string() } else { format!("{count} hosts") }
}

fn counted(counts: &Counts) -> String {
    format!(
        "ok={:<4} changed={:<4} unreachable={:<4} failed={:<4} skipped={:<4} rescued={:<4} ignored={}",
        counts.ok, counts.changed, counts.unreachable, counts.failed, counts.skipped, counts.rescued, counts.ignored
    )
}

/// Values as indented JSON, as Ansible shows them.
fn pretty(values: &Vars) -> String {
    let map: serde_json::Map<String, serde_json::Value> =
        values.iter().map(|(name, value)| (name.to_string(), super::json::plain(value))).collect();
    serde_json::to_string_pretty(&map).unwrap_or_default()
}

impl Report for Human {
    fn tick(&mut self) {
        self.live.draw();
    }

    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::PlayStart { name, check, .. } => {
                let check = if *check { " [CHECK MODE]" } else { "" };
                self.banner(&format!("PLAY [{name}]{check}"))
            }
            Event::NoHosts { pattern } => self.say(Colour::Cyan, &format!("skipping: no hosts matched {pattern:?}")),
            Event::TaskStart(task) => {
                self.live.task(&task.name);
                let word = if task.handler { "RUNNING HANDLER" } else { "TASK" };
                self.banner(&format!("{word} [{}]", task.name))?;
                if self.style.verbosity >= 2 {
                    self.say(Colour::Plain, &format!("task path: {}", task.origin))?;
                }
                Ok(())
            }
            Event::HostStart { host, .. } => {
                self.live.host_began(host);
                Ok(())
            }
            Event::Item { task, host, delegated, label, result } => {
                if result.status == Status::Skipped && self.style.verbosity == 0 {
                    return Ok(());
                }
                let kind = Kind { action: task.action, delegated: delegated.as_deref(), looped: false };
                self.result(host, result, Some(label), kind)
            }
            Event::Result { task, host, delegated, looped, result } => {
                self.live.host_ended(host);
                // The items have said it; only a whole that was skipped or ignored has something to add.
                if *looped && !matches!(result.status, Status::Skipped | Status::Ignored) {
                    return Ok(());
                }
                if *looped && result.status == Status::Ignored {
                    return self.say(Colour::Cyan, "...ignoring");
                }
                let kind = Kind { action: task.action, delegated: delegated.as_deref(), looped: *looped };
                self.result(host, result, None, kind)
            }
            Event::Retry { task, host, attempt: _, left, result } => {
                let why = match (&result.message, result.no_log) {
                    (Some(message), false) if self.style.verbosity > 0 => format!(": {message}"),
                    _ => String::new(),
                };
                self.say(Colour::Plain, &format!("retrying: [{host}]: {} ({left} retries left){why}", task.name))
            }
            Event::Progress { host, progress } => {
                self.live.progress(host, progress);
                Ok(())
            }
            Event::Included { what, hosts } => {
                let hosts: Vec<&str> = hosts.iter().map(AsRef::as_ref).collect();
                self.say(Colour::Cyan, &format!("included: {what} for {}", hosts.join(", ")))
            }
            Event::NoHostsLeft => self.banner("NO MORE HOSTS LEFT"),
            Event::Warning(text) => {
                if !self.warned.contains(text) {
                    self.warned.push(text.clone());
                    self.say(Colour::Purple, &format!("warning: {text}"))?;
                }
                Ok(())
            }
            Event::Recap(recap) => self.recap(recap),
        }
    }
}
