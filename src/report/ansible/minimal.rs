//! The report of the command `ansible`: one task on many hosts, as Ansible's minimal and oneline callbacks tell it.

use std::io::{self, Write};
use std::time::SystemTime;

use serde_json::{Map, Value as Plain};

use super::{ACTIONS, diff, json, result};
use crate::engine::{Event, Status, TaskResult, TaskStart};
use crate::report::ad_hoc::{AdHocStyle, write_result_file};
use crate::report::paint::{Colour, harmless};
use crate::report::{DisplayOptions, Report};
use crate::value::doc::COMMAND_MODULES;

pub(in crate::report) struct Minimal {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    style: AdHocStyle,
    colour: bool,
    verbosity: u8,
    shows: DisplayOptions,
    /// Reasons and warnings are said once.
    said: Vec<String>,
}

impl Minimal {
    pub(crate) fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        style: AdHocStyle,
        colour: bool,
        verbosity: u8,
        shows: DisplayOptions,
    ) -> Self {
        Minimal { out, err, style, colour, verbosity, shows, said: Vec::new() }
    }

    fn say(&mut self, colour: Colour, text: &str) -> io::Result<()> {
        let text = harmless(text);
        match self.colour {
            true => writeln!(self.out, "{}", colour.paint(&text)),
            false => writeln!(self.out, "{text}"),
        }
    }

    fn warning(&mut self, text: &str) -> io::Result<()> {
        let text = format!("[WARNING]: {}", harmless(text));
        if self.said.contains(&text) {
            return Ok(());
        }
        self.said.push(text.clone());
        // Earlier output appears before it on a terminal.
        self.out.flush()?;
        writeln!(self.err, "{text}")
    }

    fn result(&mut self, task: &TaskStart, host: &str, result: &TaskResult) -> io::Result<()> {
        for (colour, line) in
            result.diff.iter().flat_map(|one| diff::ansible_diff_lines(one, self.shows.context)).collect::<Vec<_>>()
        {
            self.say(colour, &line)?;
        }
        let object = result::object(result, self.verbosity);
        if let Some(directory) = &self.style.tree {
            write_result_file(directory, host, &Plain::Object(object.clone()))?;
        }
        let failed = result.failed();
        if failed && !self.style.one_line {
            self.reason(task, result)?;
        }
        let (word, colour) = match result.status {
            Status::Skipped => return self.say(Colour::Cyan, &format!("{host} | SKIPPED")),
            Status::Unreachable => ("UNREACHABLE!", Colour::Red),
            Status::Failed => ("FAILED!", Colour::Red),
            _ if result.changed => ("CHANGED", Colour::Yellow),
            _ => ("SUCCESS", Colour::Green),
        };
        // A job is reported with its name.
        let program = COMMAND_MODULES.contains(&task.action)
            && result.status != Status::Unreachable
            && !object.contains_key("ansible_job_id");
        if program {
            let reported = if self.style.one_line { line(&object) } else { command_output(&object) };
            self.say(colour, &format!("{host} | {} | {reported}", word.trim_end_matches('!')))?;
            // The oneline callback prints a failure of a program twice.
            if !(self.style.one_line && failed) {
                return Ok(());
            }
        }
        let text = match self.style.one_line {
            true => json::on_one_line(&Plain::Object(object)),
            false => json::dumped(&Plain::Object(self.shown(task, result, object)), true),
        };
        self.say(colour, &format!("{host} | {word} => {text}"))
    }

    /// For `debug`, only the requested values, if it succeeded.
    fn shown(&self, task: &TaskStart, result: &TaskResult, mut object: Map<String, Plain>) -> Map<String, Plain> {
        if task.action == "debug" && !result.failed() {
            result::only_of_debug(&mut object);
        }
        object
    }

    fn reason(&mut self, task: &TaskStart, result: &TaskResult) -> io::Result<()> {
        let who = if ACTIONS.contains(&task.action) { "Action failed: " } else { "Module failed: " };
        let who = if result.status == Status::Unreachable { "" } else { who };
        let why = match (&result.message, result.no_log) {
            (Some(message), false) => message.as_str(),
            _ => "the reason is hidden by no_log",
        };
        let hint = result.hint.as_ref().map_or_else(String::new, |hint| format!("\n\n{hint}"));
        let text = format!("[ERROR]: Task failed: {who}{why}\nOrigin: <adhoc '{}' task>{hint}\n", task.action);
        if self.said.contains(&text) {
            return Ok(());
        }
        self.said.push(text.clone());
        self.say(Colour::Red, &text)
    }
}

impl Report for Minimal {
    fn event(&mut self, _: SystemTime, event: &Event) -> io::Result<()> {
        match event {
            Event::Result { task, host, result, .. } => self.result(task, host, result),
            Event::NoHosts { .. } => self.warning("No hosts matched, nothing to do"),
            Event::Warning(text) => self.warning(text),
            _ => Ok(()),
        }
    }

    fn show(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.err.flush()
    }
}

/// `rc=0 >>` and all that the program said, nothing between its parts.
fn command_output(object: &Map<String, Plain>) -> String {
    let text = |name: &str| object.get(name).and_then(Plain::as_str).unwrap_or_default();
    let said = format!("{}{}{}", text("stdout"), text("stderr"), text("msg"));
    format!("rc={} >>\n{said}", code(object))
}

/// The same on one line.
fn line(object: &Map<String, Plain>) -> String {
    let text = |name: &str| object.get(name).and_then(Plain::as_str).unwrap_or_default();
    let escaped = |name: &str| text(name).replace('\n', "\\n").replace('\r', "\\r");
    let stderr = match text("stderr").is_empty() {
        true => String::new(),
        false => format!(" (stderr) {}", escaped("stderr")),
    };
    format!("rc={} | (stdout) {}{stderr}", code(object), escaped("stdout"))
}

fn code(object: &Map<String, Plain>) -> String {
    object.get("rc").map_or_else(|| "-1".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_run::{self, CapturedOutput};
    use crate::value::{Value, Vars};

    fn reported(one_line: bool, result: TaskResult) -> String {
        let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
        let style = AdHocStyle { one_line, tree: None };
        let mut report = Minimal::new(Box::new(out.clone()), Box::new(err), style, false, 0, DisplayOptions::default());
        let task = std::sync::Arc::new(example_run::task(1, "command"));
        report.event(SystemTime::UNIX_EPOCH, &example_run::ended(&task, "h1", result)).unwrap();
        out.captured_text()
    }

    fn ran(status: Status, code: i32) -> TaskResult {
        let values = [("rc", Value::from(code)), ("stdout", Value::from("a\nb")), ("stderr", Value::from("c"))];
        let values: Vars = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        TaskResult { values, message: Some("m".into()), ..example_run::result(status) }
    }

    #[test]
    fn a_program_is_reported_by_its_words() {
        assert_eq!(reported(false, ran(Status::Changed, 0)), "h1 | CHANGED | rc=0 >>\na\nbcm\n");
        assert_eq!(reported(true, ran(Status::Changed, 0)), "h1 | CHANGED | rc=0 | (stdout) a\\nb (stderr) c\n");
    }

    #[test]
    fn a_failure_has_a_reason_and_on_one_line_its_result() {
        let long = reported(false, ran(Status::Failed, 1));
        assert!(
            long.starts_with("[ERROR]: Task failed: Module failed: m\nOrigin: <adhoc 'command' task>\n\n"),
            "{long}"
        );
        assert!(long.ends_with("h1 | FAILED | rc=1 >>\na\nbcm\n"), "{long}");
        let short = reported(true, ran(Status::Failed, 1));
        assert!(short.ends_with("\nh1 | FAILED! => {\"changed\": false,\"msg\": \"m\",\"rc\": 1,\"stderr\": \"c\",\"stdout\": \"a\\nb\"}\n"), "{short}");
    }
}
