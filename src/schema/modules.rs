//! Modules: their arguments, from their own documentation.

use serde_json::{Map, Value, json};

use super::{reference, shapes};
use crate::modules::MODULES;
use crate::playbook::include;
use crate::value::doc::{ANY_NAME, Argument, Doc};
use crate::value::truth;

/// All modules, includes and imports among them.
fn docs() -> impl Iterator<Item = &'static Doc> {
    MODULES.iter().map(|entry| entry.doc).chain(&include::DOCS)
}

/// Adds a definition `module_NAME` for each.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    definitions.extend(docs().map(|doc| (format!("module_{}", doc.name), module(doc))));
}

/// All names of modules, short and long, with their documentation.
pub(super) fn module_names() -> impl Iterator<Item = (String, &'static Doc)> {
    docs().flat_map(|doc| {
        let legacy = (doc.collection == "ansible.builtin").then(|| format!("ansible.legacy.{}", doc.name));
        [Some(doc.name.to_owned()), Some(format!("{}.{}", doc.collection, doc.name)), legacy]
            .into_iter()
            .flatten()
            .map(move |name| (name, doc))
    })
}

/// The value of a module's key: a mapping, a text of the short form, or nothing.
fn module(doc: &Doc) -> Value {
    let takes_any = doc.argument(ANY_NAME).is_some();
    let mut properties = Map::new();
    for argument in doc.arguments.iter().filter(|argument| argument.name != ANY_NAME) {
        for name in [argument.name].iter().chain(argument.aliases) {
            properties.insert((*name).to_owned(), self::argument(argument));
        }
    }
    let required: Vec<Value> = doc.arguments.iter().filter(|argument| argument.required).map(needs).collect();
    let mut object = json!({"type": "object", "properties": properties, "additionalProperties": takes_any});
    if !required.is_empty() {
        object["allOf"] = required.into();
    }
    // Without a text of its own, a short form has arguments in it, or is a template.
    let text = match doc.free_form {
        Some(_) => json!({"type": ["string", "number", "boolean"]}),
        None => json!({"type": "string", "pattern": "=|\\{\\{"}),
    };
    // Required arguments may be in the task's args.
    json!({"description": doc.summary, "anyOf": [object, text, {"type": "null"}]})
}

fn needs(argument: &Argument) -> Value {
    let names = [argument.name].into_iter().chain(argument.aliases.iter().copied());
    json!({"anyOf": names.map(|name| json!({"required": [name]})).collect::<Vec<_>>()})
}

fn argument(argument: &Argument) -> Value {
    let mut schema = if argument.choices.is_empty() {
        shapes::of_kind(argument.kind)
    } else {
        let mut any = vec![json!({"enum": argument.choices}), json!({"type": "null"}), reference("template")];
        if argument.choices.iter().any(|choice| truth::of_yaml(choice).is_some()) {
            any.push(json!({"type": "boolean"}));
        }
        if !matches!(argument.kind, crate::value::doc::ArgumentKind::Str) {
            any.push(shapes::of_kind(argument.kind));
        }
        json!({"anyOf": any})
    };
    // Beside a reference, draft 7 sees nothing else.
    if schema.get("$ref").is_some() {
        schema = json!({"allOf": [schema]});
    }
    schema["description"] = argument.summary.into();
    if let Some(default) = argument.default {
        schema["default"] = default.into();
    }
    schema
}
