//! The shapes of values: each allows a template, and what the loader takes for one (`"yes"` for true, `"5"` for 5).

use serde_json::{Map, Value, json};

use super::reference;
use crate::playbook::keywords::KeywordType;
use crate::value::doc::ArgumentKind;
use crate::value::truth;

/// What the name of a variable looks like.
pub(super) const NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// Adds what the other schemas refer to.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    let template = || reference("template");
    let words: Vec<String> = truth::truth_words().collect();
    let shapes = [
        ("template", json!({"type": "string", "pattern": "\\{\\{|\\{%"})),
        ("bool", json!({"anyOf": [{"type": ["boolean", "null"]}, {"enum": words}, {"enum": [0, 1]}, template()]})),
        (
            "int",
            json!({"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "pattern": "^\\s*-?[0-9]+\\s*$"}, template()]}),
        ),
        (
            "number",
            json!({"anyOf": [{"type": ["number", "null"]}, {"type": "string", "pattern": "^\\s*-?[0-9.]+%?\\s*$"}, template()]}),
        ),
        ("text", json!({"type": ["string", "number", "boolean", "null"]})),
        ("texts", json!({"anyOf": [reference("text"), {"type": "array", "items": reference("text")}]})),
        (
            "conditions",
            json!({"anyOf": [{"type": ["string", "boolean", "null"]}, {"type": "array", "items": {"type": ["string", "boolean"]}}]}),
        ),
        ("mapping", json!({"anyOf": [{"type": ["object", "null"]}, template()]})),
        ("mappings", json!({"anyOf": [reference("mapping"), {"type": "array", "items": reference("mapping")}]})),
        ("loop", json!({"anyOf": [{"type": "array"}, template()]})),
        (
            "mode",
            json!({"anyOf": [
                {"type": ["integer", "null"]},
                {"type": "string", "pattern": "^(0?o?[0-7]{3,5}|preserve|[ugoa]*[-+=][rwxXstugo]*([-+=,][ugoarwxXst+=,-]*)?)$"},
                template(),
            ]}),
        ),
        ("vars", json!({"type": ["object", "null"], "propertyNames": {"pattern": NAME}})),
    ];
    definitions.extend(shapes.map(|(name, shape)| (name.to_owned(), shape)));
}

/// What may be written for a keyword of that shape.
pub(super) fn of_shape(shape: KeywordType) -> Value {
    match shape {
        KeywordType::Bool => reference("bool"),
        KeywordType::Int => reference("int"),
        KeywordType::Float => reference("number"),
        KeywordType::Text => reference("text"),
        KeywordType::Texts => reference("texts"),
        KeywordType::Choice(words) => json!({"anyOf": [{"enum": words}, reference("template")]}),
        KeywordType::Conditions => reference("conditions"),
        KeywordType::Mapping => reference("mapping"),
        KeywordType::Mappings => reference("mappings"),
        KeywordType::Loop => reference("loop"),
        KeywordType::Any => json!({}),
    }
}

/// What may be written for an argument of that kind.
pub(super) fn of_kind(kind: ArgumentKind) -> Value {
    match kind {
        ArgumentKind::Str | ArgumentKind::Path => reference("text"),
        ArgumentKind::Bool => reference("bool"),
        ArgumentKind::Int => reference("int"),
        ArgumentKind::Float => reference("number"),
        ArgumentKind::Mode => reference("mode"),
        // A lone value is a list of one, a string is split at commas.
        ArgumentKind::List(of) => {
            json!({"anyOf": [{"type": "array", "items": of_kind(*of)}, of_kind(*of), {"type": ["string", "null"]}]})
        }
        ArgumentKind::Dict => json!({"type": ["object", "string", "null"]}),
        ArgumentKind::Any => json!({}),
    }
}
