//! Plays, blocks, tasks, handlers and uses of roles, from the keywords.

use serde_json::{Map, Value, json};

use super::{modules, reference, shapes};
use crate::playbook::keywords::{self, Keyword, KeywordScope};

/// Adds a definition for each place where keywords stand.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    let places = [
        ("play", KeywordScope::Play, json!({"required": ["hosts"]})),
        ("import_playbook", KeywordScope::ImportPlaybook, json!({})),
        ("block", KeywordScope::Block, json!({"required": ["block"]})),
        ("task", KeywordScope::Task, of_module()),
        ("handler_task", KeywordScope::Handler, of_module()),
        // Any other key is a parameter of the role.
        (
            "role",
            KeywordScope::Role,
            json!({"additionalProperties": true, "anyOf": [{"required": ["role"]}, {"required": ["name"]}]}),
        ),
    ];
    for (name, place, more) in places {
        definitions.insert(name.to_owned(), object(place, more));
    }
    let step = |task: &str| json!({"type": "object", "if": {"required": ["block"]}, "then": reference("block"), "else": reference(task)});
    definitions.insert("step".to_owned(), step("task"));
    definitions.insert("handler".to_owned(), step("handler_task"));
}

/// A task has a module; `action` and `local_action` name one.
fn of_module() -> Value {
    let mut properties = Map::new();
    let mut one_of = vec![json!({"required": ["action"]}), json!({"required": ["local_action"]})];
    for (name, doc) in modules::module_names() {
        one_of.push(json!({"required": [name]}));
        properties.insert(name, reference(&format!("module_{}", doc.name)));
    }
    json!({"properties": properties, "patternProperties": {"^with_[a-z_]+$": {}}, "anyOf": one_of})
}

/// The mapping with all keywords of a place, and what `more` adds.
fn object(place: KeywordScope, more: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for keyword in keywords::all_keywords().filter(|keyword| keyword.is_at(place)) {
        schema["properties"][keyword.name] = described(keyword);
    }
    if place == KeywordScope::ImportPlaybook {
        schema["properties"]["ansible.builtin.import_playbook"] = reference("text");
    }
    let (Value::Object(all), Value::Object(more)) = (&mut schema, more) else { return schema };
    for (key, value) in more {
        match (all.get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(value)) => there.extend(value),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
    schema
}

fn described(keyword: &Keyword) -> Value {
    let mut schema = special(keyword).unwrap_or_else(|| shapes::of_shape(keyword.shape));
    // Beside a reference, draft 7 sees nothing else.
    if schema.get("$ref").is_some() {
        schema = json!({"allOf": [schema]});
    }
    schema["description"] = keyword.about.into();
    schema
}

/// Keywords with a form of their own.
fn special(keyword: &Keyword) -> Option<Value> {
    let list_of = |name: &str| json!({"type": ["array", "null"], "items": reference(name)});
    Some(match keyword.name {
        "always" | "block" | "post_tasks" | "pre_tasks" | "rescue" | "tasks" => list_of("step"),
        "handlers" => list_of("handler"),
        "roles" => json!({"type": ["array", "null"], "items": {"anyOf": [{"type": "string"}, reference("role")]}}),
        "serial" => json!({"anyOf": [reference("number"), {"type": "array", "items": reference("number")}]}),
        "strategy" => {
            json!({"enum": ["linear", "free", "host_pinned", "ansible.builtin.linear", "ansible.builtin.free", "ansible.builtin.host_pinned"]})
        }
        "register" => json!({"type": "string", "pattern": shapes::NAME}),
        "vars" => reference("vars"),
        "vars_files" => json!({"type": ["string", "array", "null"]}),
        "loop_control" | "vars_prompt" => {
            let properties: Map<String, Value> =
                keyword.parts.iter().map(|part| (part.name.to_owned(), part_of(part))).collect();
            let object = json!({"type": "object", "properties": properties, "additionalProperties": false});
            match keyword.name {
                "vars_prompt" => json!({"type": ["array", "null"], "items": object}),
                _ => json!({"anyOf": [object, {"type": "null"}]}),
            }
        }
        _ => return None,
    })
}

fn part_of(part: &crate::value::doc::Argument) -> Value {
    json!({"allOf": [shapes::of_kind(part.kind)], "description": part.summary})
}
