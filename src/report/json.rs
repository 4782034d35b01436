//! The report for programs: one JSON object per line, one line per event.

use std::io::{self, Write};
use std::time::SystemTime;

use minijinja::value::ValueKind;
use serde_json::{Value as Plain, json};

use super::Report;
use crate::engine::Event;
use crate::runs::RecordedEvent;
use crate::value::Value;

pub(super) struct Json<W> {
    out: W,
    /// Lines that are not printed yet.
    pending: String,
}

impl<W: Write + Send> Json<W> {
    pub(super) fn new(out: W) -> Self {
        Json { out, pending: String::new() }
    }
}

impl<W: Write + Send> Report for Json<W> {
    fn event(&mut self, _: SystemTime, _: &Event) -> io::Result<()> {
        Ok(())
    }

    fn line(&mut self, line: &RecordedEvent) -> io::Result<()> {
        self.pending.push_str(&line.line);
        self.pending.push('\n');
        Ok(())
    }

    fn takes_lines(&self) -> bool {
        true
    }

    fn show(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(self.pending.as_bytes()).and_then(|()| self.out.flush());
        self.pending.clear();
        written
    }

    fn end(&mut self) -> io::Result<()> {
        self.show()
    }
}

/// A dynamic value as JSON; what JSON does not know becomes its text.
pub fn to_json(value: &Value) -> Plain {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Plain::Null,
        ValueKind::Map => Plain::Object(
            value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|key| (key.to_string(), to_json(&value.get_item(&key).unwrap_or_default())))
                .collect(),
        ),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().into_iter().flatten().map(|item| to_json(&item)).collect()
        }
        ValueKind::Bytes => json!(String::from_utf8_lossy(value.as_bytes().unwrap_or_default())),
        ValueKind::Bool | ValueKind::Number | ValueKind::String => {
            serde_json::to_value(value).unwrap_or_else(|_| json!(value.to_string()))
        }
        _ => json!(value.to_string()),
    }
}
