//! Documentation as JSON, one object for each thing.

use serde_json::{Value, json};

use super::catalogue::DocEntry;
use crate::value::doc::{Argument, Return};

/// The documentation of one thing; what it has not is left out.
pub(super) fn object(entry: &DocEntry) -> Value {
    let mut object = json!({"kind": entry.kind().kind_name(), "name": entry.entry_name(), "about": entry.about()});
    let more = match entry {
        DocEntry::Module(doc) => json!({
            "collection": doc.collection,
            "arguments": arguments(doc.arguments),
            "free_form": doc.free_form,
            "returns": returns(doc.returns),
            "example": doc.example.trim_matches('\n'),
        }),
        DocEntry::Keyword(keyword) => json!({
            "takes": keyword.shape.shape_text(),
            "places": keyword.places().map(|place| place.scope_text()).collect::<Vec<_>>(),
            "inherited": keyword.field.is_some(),
            "arguments": arguments(keyword.parts),
            "example": keyword.example.trim_matches('\n'),
        }),
        DocEntry::Word(_, word) => json!({
            "call": word.call(),
            "example": word.example,
            "gives": Some(word.gives).filter(|gives| !gives.is_empty()),
        }),
    };
    let (Value::Object(all), Value::Object(more)) = (&mut object, more) else { return object };
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    all.extend(more.into_iter().filter(|(_, value)| !empty(value)));
    object
}

fn returns(returns: &[Return]) -> Value {
    returns.iter().map(|value| json!({"name": value.name, "about": value.summary})).collect()
}

fn arguments(arguments: &[Argument]) -> Value {
    let one = |argument: &Argument| {
        json!({
            "name": argument.name,
            "type": argument.kind.kind_text(),
            "required": argument.required,
            "default": argument.default,
            "choices": argument.choices,
            "aliases": argument.aliases,
            "secret": argument.secret,
            "about": argument.summary,
        })
    };
    arguments.iter().map(one).collect()
}
