//! Values as a person reads them.

use minijinja::value::ValueKind;

use super::super::json::to_json;
use super::super::paint::plain_json;
use crate::engine::Counts;
use crate::value::{Value, Vars};

/// A command as one would type it.
pub(in crate::report) fn command_line(value: &Value) -> String {
    let words: Vec<String> = match value.kind() {
        ValueKind::Seq => value.try_iter().into_iter().flatten().map(|word| word.to_string()).collect(),
        _ => return value.to_string(),
    };
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

pub(in crate::report) fn hosts_word(count: usize) -> String {
    if count == 1 { "1 host".to_string() } else { format!("{count} hosts") }
}

pub(super) fn counted(counts: &Counts) -> String {
    format!(
        "ok={:<4} changed={:<4} unreachable={:<4} failed={:<4} skipped={:<4} rescued={:<4} ignored={}",
        counts.ok, counts.changed, counts.unreachable, counts.failed, counts.skipped, counts.rescued, counts.ignored
    )
}

/// Values as indented JSON, as Ansible shows them.
pub(super) fn pretty(values: &Vars) -> String {
    let map: serde_json::Map<String, serde_json::Value> =
        values.iter().map(|(name, value)| (name.to_string(), to_json(value))).collect();
    // The line ends between its parts stay.
    plain_json(&serde_json::to_string_pretty(&map).unwrap_or_default()).into_owned()
}

/// A message behind the name of its host, which it may begin with as well.
pub(crate) fn without_host<'a>(message: &'a str, host: &str) -> &'a str {
    message.strip_prefix(host).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message)
}

/// The message of a task; of a list, one line for each of its items.
pub(crate) fn message_text(message: &Value) -> String {
    match (message.kind(), message.try_iter()) {
        (ValueKind::Seq, Ok(lines)) => lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n"),
        _ => message.to_string(),
    }
}
