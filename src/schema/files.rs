//! The files next to playbooks: inventories, variables, and the metadata of roles.

use serde_json::{Map, Value, json};

use super::{document, reference, shapes, whole};

/// The schema of inventories in YAML.
pub fn inventory() -> Value {
    let group = json!({
        "type": ["object", "null"],
        "properties": {
            "hosts": {
                "description": "The hosts of the group, by name or pattern (web[1:3]), each with its variables.",
                "type": ["object", "string", "null"],
                "additionalProperties": reference("variables"),
            },
            "vars": {"allOf": [reference("variables")], "description": "The variables of all hosts of the group."},
            "children": {
                "description": "The groups in the group.",
                "type": ["object", "string", "null"],
                "additionalProperties": reference("group"),
            },
        },
        "additionalProperties": false,
    });
    let variables = json!({"type": ["object", "null"]});
    let definitions = Map::from_iter([("group".to_owned(), group), ("variables".to_owned(), variables)]);
    whole("An inventory", json!({"type": "object", "additionalProperties": reference("group")}), definitions)
}

/// The schema of files of variables.
pub fn vars() -> Value {
    let mut definitions = Map::new();
    shapes::define(&mut definitions);
    whole("Variables", reference_beside("vars"), definitions)
}

/// The schema of a role's `meta/main.yml`.
pub fn meta() -> Value {
    let mut schema = document(
        "Metadata of a role",
        json!({
            "type": ["object", "null"],
            "properties": {
                "dependencies": {
                    "description": "Roles that run before this one.",
                    "type": ["array", "null"],
                    "items": {"anyOf": [{"type": "string"}, reference("role")]},
                },
                "allow_duplicates": {
                    "allOf": [reference("bool")],
                    "description": "Whether the role runs again if it has run with the same parameters.",
                },
                "galaxy_info": {"type": "object"},
                "collections": reference("texts"),
                "argument_specs": reference("argument_specs"),
            },
        }),
    );
    add_argument_specs(&mut schema);
    schema
}

/// The schema of a role's `meta/argument_specs.yml`.
pub fn argument_specs() -> Value {
    let mut definitions = Map::new();
    shapes::define(&mut definitions);
    let root = json!({
        "type": "object",
        "properties": {"argument_specs": reference("argument_specs")},
        "required": ["argument_specs"],
        "additionalProperties": false,
    });
    let mut schema = whole("Arguments of a role", root, definitions);
    add_argument_specs(&mut schema);
    schema
}

fn add_argument_specs(schema: &mut Value) {
    let types = ["str", "list", "dict", "bool", "int", "float", "path", "raw", "jsonarg", "json", "bytes", "bits"];
    let names = json!({"type": "array", "items": {"type": "string"}});
    let groups = json!({"type": "array"});
    let option = json!({
        "type": "object",
        "properties": {
            "type": {"description": "The type (default str).", "enum": types},
            "elements": {"description": "The type of a list's items.", "enum": types},
            "required": {"description": "Whether it is required.", "type": "boolean"},
            "default": {"description": "Its default, as documentation; the role's defaults/ set the value."},
            "choices": {"description": "The allowed values.", "type": "array"},
            "description": {"description": "One text, or one for each paragraph.", "type": ["string", "array"], "items": {"type": "string"}},
            "options": {"description": "The keys of a mapping, or of each mapping in a list.", "type": "object", "additionalProperties": reference("option")},
            "aliases": names,
            "no_log": {"type": "boolean"},
            "apply_defaults": {"type": "boolean"},
            "version_added": {"type": ["string", "number"]},
            "mutually_exclusive": groups,
            "required_together": groups,
            "required_one_of": groups,
            "required_if": groups,
            "required_by": {"type": "object"},
        },
        "additionalProperties": false,
    });
    let entry = json!({
        "type": "object",
        "properties": {
            "short_description": {"description": "One line.", "type": "string"},
            "description": {"type": ["string", "array"], "items": {"type": "string"}},
            "author": {"type": ["string", "array"]},
            "version_added": {"type": ["string", "number"]},
            "seealso": {"type": "array"},
            "examples": {},
            "options": {"description": "The variables of the role.", "type": "object", "additionalProperties": reference("option")},
        },
        "additionalProperties": false,
    });
    let specs = json!({"type": "object", "additionalProperties": entry, "description": "By entry point: main, or the name of another file of tasks."});
    schema["definitions"]["option"] = option;
    schema["definitions"]["argument_specs"] = specs;
}

/// A reference with company: draft 7 sees nothing else beside a bare one.
fn reference_beside(name: &str) -> Value {
    json!({"allOf": [reference(name)]})
}
