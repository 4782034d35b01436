//! JSON Schema (draft 7, which editors know best) of what people write, made of the keywords and of the modules' own
//! documentation. A template may be wherever a value is rendered, so that a string is never wrong where it has one.

mod files;
mod modules;
mod shapes;
mod steps;

use serde_json::{Map, Value, json};

pub use files::{argument_specs, inventory, meta, vars};

/// The schema of playbooks.
pub fn playbook_schema() -> Value {
    let items = json!({
        "if": {"anyOf": [{"required": ["import_playbook"]}, {"required": ["ansible.builtin.import_playbook"]}]},
        "then": {"$ref": "#/definitions/import_playbook"},
        "else": {"$ref": "#/definitions/play"},
    });
    document("A playbook", json!({"type": "array", "items": items}))
}

/// The schema of files of tasks or handlers.
pub fn tasks() -> Value {
    document("Tasks", json!({"type": ["array", "null"], "items": {"$ref": "#/definitions/handler"}}))
}

/// A schema with all definitions of the language.
fn document(title: &str, root: Value) -> Value {
    let mut definitions = Map::new();
    shapes::define(&mut definitions);
    modules::define(&mut definitions);
    steps::define(&mut definitions);
    whole(title, root, definitions)
}

fn whole(title: &str, root: Value, definitions: Map<String, Value>) -> Value {
    let mut schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": title});
    if let (Value::Object(schema), Value::Object(root)) = (&mut schema, root) {
        schema.extend(root);
        schema.insert("definitions".to_owned(), Value::Object(definitions));
    }
    schema
}

/// A reference to a definition.
fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` in a schema.
    fn references(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    found.push(name.clone());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for schema in [playbook_schema(), tasks(), argument_specs(), meta(), inventory(), vars()] {
            let mut found = Vec::new();
            references(&schema, &mut found);
            for name in found {
                assert!(schema.pointer(&name[1..]).is_some(), "{name} of {}", schema["title"]);
            }
        }
    }

    #[test]
    fn every_module_and_every_argument_is_described() {
        let schema = playbook_schema();
        for entry in crate::modules::MODULES {
            let doc = entry.doc;
            let task = &schema["definitions"]["task"]["properties"];
            assert!(task[doc.name].is_object() && task[format!("{}.{}", doc.collection, doc.name)].is_object());
            let arguments = &schema["definitions"][format!("module_{}", doc.name)];
            for argument in doc.arguments.iter().filter(|argument| argument.name != crate::value::doc::ANY_NAME) {
                assert!(arguments.to_string().contains(&format!("\"{}\":", argument.name)), "{}", argument.name);
            }
        }
    }
}
