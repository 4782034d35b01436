//! The report of one task on many hosts: the words that `ansible` users know, one result after the other, no recap.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value as Plain, json};

use super::json::to_json;
use super::paint::{Colour, harmless, indented, plain_json};
use super::{Report, diff};
use crate::engine::{Event, Status, TaskResult};
use crate::value::doc::COMMAND_MODULES;

/// How results are reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdHocStyle {
    /// A line for each result.
    pub one_line: bool,
    /// A directory that gets a file for each host, with its result as JSON.
    pub tree: Option<PathBuf>,
}

pub(super) struct AdHoc {
    out: Box<dyn Write + Send>,
    style: AdHocStyle,
    colour: bool,
    /// Lines around a change in a diff.
    context: usize,
}

impl AdHoc {
    pub(super) fn new(out: Box<dyn Write + Send>, style: AdHocStyle, colour: bool, context: usize) -> Self {
        AdHoc { out, style, colour, context }
    }

    fn say(&mut self, colour: Colour, text: &str) -> io::Result<()> {
        let text = harmless(text);
        match self.colour {
            true => writeln!(self.out, "{}", colour.paint(&text)),
            false => writeln!(self.out, "{text}"),
        }
    }

    fn result(&mut self, host: &str, action: &str, result: &TaskResult) -> io::Result<()> {
        for (colour, line) in
            result.diff.iter().flat_map(|diff| diff::diff_lines(diff, self.context)).collect::<Vec<_>>()
        {
            self.say(colour, &line)?;
        }
        let object = reported(result, action != "debug" || self.style.one_line);
        if let Some(directory) = &self.style.tree {
            write_result_file(directory, host, &object)?;
        }
        let (word, colour) = match result.status {
            Status::Skipped => return self.say(Colour::Cyan, &format!("{host} | SKIPPED")),
            Status::Unreachable => ("UNREACHABLE!", Colour::Red),
            Status::Failed => ("FAILED!", Colour::Red),
            _ if result.changed => ("CHANGED", Colour::Yellow),
            _ => ("SUCCESS", Colour::Green),
        };
        // A job that still runs, or that was waited for, is reported with its name.
        let there = |name| result.values.contains_key(name);
        let program = COMMAND_MODULES.contains(&action) && there("rc") && !there("ansible_job_id");
        let text = match (program, self.style.one_line) {
            (true, false) => format!("{host} | {} | {}", word.trim_end_matches('!'), command_output(&object)),
            (true, true) => format!("{host} | {} | {}", word.trim_end_matches('!'), line(&object)),
            (false, true) => format!("{host} | {word} => {}", plain_json(&object.to_string())),
            (false, false) => format!("{host} | {word} => {}", plain_json(&pretty(&object))),
        };
        self.say(colour, &text)?;
        match &result.hint {
            Some(hint) => self.say(Colour::Red, &format!("    hint: {}", indented(hint))),
            None => Ok(()),
        }
    }
}

impl Report for AdHoc {
    fn event(&mut self, _: SystemTime, event: &Event) -> io::Result<()> {
        match event {
            Event::Result { task, host, result, .. } => self.result(host, task.action, result),
            Event::NoHosts { .. } => self.say(Colour::Purple, "warning: no hosts matched, nothing to do"),
            Event::Warning(text) => self.say(Colour::Purple, &format!("warning: {}", indented(text))),
            _ => Ok(()),
        }
    }

    fn show(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The result as an object, its keys in order; `debug` omits the field changed.
fn reported(result: &TaskResult, changed: bool) -> Plain {
    let mut object: Map<String, Plain> =
        result.values.iter().map(|(name, value)| (name.to_string(), to_json(value))).collect();
    if result.no_log {
        object.insert("censored".into(), json!("hidden by no_log"));
    }
    if changed {
        object.insert("changed".into(), json!(result.changed));
    }
    if let Some(message) = &result.message {
        object.entry("msg").or_insert_with(|| json!(message));
    }
    if result.status == Status::Unreachable {
        object.insert("unreachable".into(), json!(true));
    }
    object.sort_keys();
    Plain::Object(object)
}

/// `rc=0 >>` and all that the program said.
fn command_output(object: &Plain) -> String {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let said: Vec<&str> = ["stdout", "stderr", "msg"].map(text).into_iter().filter(|text| !text.is_empty()).collect();
    format!("rc={} >>\n{}", object["rc"], said.join("\n"))
}

/// The same on one line.
fn line(object: &Plain) -> String {
    let text = |name: &str| object[name].as_str().unwrap_or_default().replace('\n', "\\n").replace('\r', "\\r");
    let stderr = Some(text("stderr")).filter(|text| !text.is_empty());
    let stderr = stderr.map(|text| format!(" (stderr) {text}")).unwrap_or_default();
    format!("rc={} | (stdout) {}{stderr}", object["rc"], text("stdout"))
}

/// JSON with four blanks for each step inwards, as `ansible` prints it.
fn pretty(object: &Plain) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b"    "));
    match serde::Serialize::serialize(object, &mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => object.to_string(),
    }
}

/// Writes the result of a host into the tree, for its owner alone: a result may hold a secret.
pub(super) fn write_result_file(directory: &Path, host: &str, object: &Plain) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    // A host may be named by a path.
    let path = directory.join(host.replace('/', "_"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(format!("{object}\n").as_bytes())
}
