//! The CustomResourceDefinitions that follow from the types, and the schemas in them as the checks need them.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::cel::{CompiledSchema, compile_schema};
use serde_json::Value as Json;

use super::deployment::among;
use super::table::{RunsOn, component_fields};
use super::{EtcdBackup, KarmadaDeployment, Run};

/// The definitions of all kinds, as an API server takes them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let unwrapped = |definition: CustomResourceDefinition| {
        let mut json = serde_json::to_value(definition).expect("a definition is valid JSON");
        plain(&mut json);
        for version in json["spec"]["versions"].as_array_mut().into_iter().flatten() {
            let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            bounded(spec);
            if !spec["properties"]["components"].is_null() {
                placed(spec);
            }
        }
        serde_json::from_value(json).expect("it was a definition before")
    };
    [KarmadaDeployment::crd(), Run::crd(), EtcdBackup::crd()].into_iter().map(unwrapped).collect()
}

/// Adds a rule for the hosts of each component that can have some, behind the rules for other lists of hosts.
fn placed(spec: &mut Json) {
    let rules = spec["x-kubernetes-validations"].as_array_mut().expect("the spec has rules");
    let of_hosts = |rule: &Json| rule["fieldPath"].as_str().is_some_and(|path| path.ends_with(".hosts"));
    let place = rules.iter().take_while(|rule| of_hosts(rule)).count();
    let of_components = component_fields(|entry| entry.runs == RunsOn::OnItsGroup)
        .into_iter()
        .map(|field| serde_json::to_value(among(field)).expect("a rule is JSON"));
    rules.splice(place..place, of_components);
}

/// Cleans up the derived schema: descriptions are not broken where a source file's lines
/// end, and a field that may be left out may not be null besides, which servers of different ages take differently.
fn plain(json: &mut Json) {
    match json {
        Json::Object(entries) => {
            entries.retain(|key, value| !(key == "nullable" && value.is_boolean()));
            for (key, value) in entries {
                match value {
                    Json::String(text) if key == "description" => *text = text.replace('\n', " "),
                    Json::Array(choices) if key == "enum" => choices.retain(|choice| !choice.is_null()),
                    other => plain(other),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// What a text is that has no pattern of its own: most end in a file of a service, in a shell or in a path.
pub(super) const ONE_LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
const MAX_TEXT: u64 = 4096;
const MAX_ENTRIES: u64 = 64;

/// Gives every text a pattern and a length, and every mapping a number of entries, where it has none. An encrypted value
/// has several lines, and what a person's own command is given is that person's affair.
fn bounded(schema: &mut Json) {
    let Json::Object(schema) = schema else { return };
    if schema.get("type").is_some_and(|kind| kind == "string") && !schema.contains_key("enum") {
        schema.entry("pattern").or_insert(ONE_LINE.into());
        schema.entry("maxLength").or_insert(MAX_TEXT.into());
    }
    if schema.get("additionalProperties").is_some_and(Json::is_object) {
        schema.entry("maxProperties").or_insert(MAX_ENTRIES.into());
    }
    for place in ["items", "additionalProperties"] {
        schema.get_mut(place).into_iter().for_each(bounded);
    }
    let fields = schema.get_mut("properties").and_then(Json::as_object_mut).into_iter().flatten();
    fields.filter(|(name, _)| !matches!(name.as_str(), "vault" | "command")).for_each(|(_, field)| bounded(field));
}

/// A kind and its schema.
pub(super) struct ResourceKind {
    pub name: String,
    /// The structural schema of a whole document.
    pub schema: Json,
    /// Its CEL rules, compiled.
    pub rules: CompiledSchema,
}

/// All kinds, made from the definitions once.
pub(super) static KINDS: LazyLock<Vec<ResourceKind>> = LazyLock::new(|| {
    let kind = |definition: CustomResourceDefinition| {
        let version = definition.spec.versions.into_iter().next().expect("a definition has a version");
        let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).expect("a version has a schema");
        let schema = serde_json::to_value(schema).expect("a schema is JSON");
        ResourceKind { name: definition.spec.names.kind, rules: compile_schema(&schema), schema }
    };
    definitions().into_iter().map(kind).collect()
});
