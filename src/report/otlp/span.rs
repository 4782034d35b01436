//! A span and its OTLP form in JSON: ids are hexadecimal, times are decimal strings of nanoseconds.

use std::fmt;
use std::time::SystemTime;

use rand::Rng as _;
use serde_json::{Value as Plain, json};

/// A trace's id (16 bytes) or a span's (8).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Id<BYTES> {
    /// A random one.
    pub(super) fn new() -> Self {
        let mut bytes = [0; BYTES];
        rand::rng().fill_bytes(&mut bytes);
        Id(bytes)
    }

    /// From hexadecimal digits; None: they are no id (all zeros is none either).
    pub(super) fn parse_id(text: &str) -> Option<Self> {
        let mut bytes = [0; BYTES];
        if text.len() != BYTES * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        bytes.iter().any(|byte| *byte != 0).then_some(Id(bytes))
    }
}

impl<const BYTES: usize> fmt::Display for Id<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const BYTES: usize> fmt::Debug for Id<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attribute {
    Text(String),
    Bool(bool),
    Int(i64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Attribute::Text(text.to_string())
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Attribute::Text(text)
    }
}

impl From<bool> for Attribute {
    fn from(value: bool) -> Self {
        Attribute::Bool(value)
    }
}

impl From<i64> for Attribute {
    fn from(value: i64) -> Self {
        Attribute::Int(value)
    }
}

/// `{"key": ..., "value": {"stringValue": ...}}`
pub(super) fn attribute(key: &str, value: &Attribute) -> Plain {
    let value = match value {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Bool(value) => json!({"boolValue": value}),
        // 64 bits are a string in protobuf's JSON.
        Attribute::Int(value) => json!({"intValue": value.to_string()}),
    };
    json!({"key": key, "value": value})
}

/// Something that happened within a span.
#[derive(Debug, Clone)]
pub(super) struct SpanEvent {
    pub name: &'static str,
    pub at: SystemTime,
    attributes: Vec<(&'static str, Attribute)>,
}

impl SpanEvent {
    pub(super) fn new(name: &'static str, at: SystemTime) -> Self {
        SpanEvent { name, at, attributes: Vec::new() }
    }

    pub(super) fn with(mut self, key: &'static str, value: impl Into<Attribute>) -> Self {
        self.attributes.push((key, value.into()));
        self
    }
}

#[derive(Debug, Clone)]
pub(super) struct Span {
    pub id: Id<8>,
    trace: Id<16>,
    parent: Option<Id<8>>,
    name: String,
    begun: SystemTime,
    ended: SystemTime,
    attributes: Vec<(&'static str, Attribute)>,
    pub notes: Vec<SpanEvent>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Span {
    pub(super) fn new(trace: Id<16>, parent: Option<Id<8>>, name: String, begun: SystemTime) -> Self {
        let (attributes, notes) = (Vec::new(), Vec::new());
        Span { id: Id::new(), trace, parent, name, begun, ended: begun, attributes, notes, error: None }
    }

    pub(super) fn attribute(&mut self, key: &'static str, value: impl Into<Attribute>) {
        self.attributes.push((key, value.into()));
    }

    pub(super) fn ended(mut self, at: SystemTime) -> Self {
        self.ended = at.max(self.begun);
        self
    }

    pub(super) fn span_json(&self) -> Plain {
        let attributes = |list: &[(&'static str, Attribute)]| -> Plain {
            list.iter().map(|(key, value)| attribute(key, value)).collect()
        };
        let note = |note: &SpanEvent| json!({"name": note.name, "timeUnixNano": nanoseconds(note.at), "attributes": attributes(&note.attributes)});
        let mut span = json!({
            "traceId": self.trace.to_string(),
            "spanId": self.id.to_string(),
            "name": self.name,
            // SPAN_KIND_INTERNAL
            "kind": 1,
            "startTimeUnixNano": nanoseconds(self.begun),
            "endTimeUnixNano": nanoseconds(self.ended),
            "attributes": attributes(&self.attributes),
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(parent.to_string());
        }
        if !self.notes.is_empty() {
            span["events"] = self.notes.iter().map(note).collect();
        }
        if let Some(error) = &self.error {
            // STATUS_CODE_ERROR
            span["status"] = json!({"code": 2, "message": error});
        }
        span
    }
}

fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
