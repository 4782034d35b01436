//! `spec.components`: what can be said of each program of the control plane. Names are those of Karmada's operator.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::KubeSchema;
use kube::core::{Message, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::table::{ComponentEntry, RunsOn, TABLE, component_fields};
use crate::value::unit_file;

/// The components that a document names, by field. The table of components says which fields there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Components(BTreeMap<String, Component>);

impl Components {
    /// What the document says of a component.
    pub fn get(&self, entry: &ComponentEntry) -> Option<&Component> {
        self.0.get(&entry.field)
    }
}

impl<'de> Deserialize<'de> for Components {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = BTreeMap::<String, Component>::deserialize(deserializer)?;
        match all.keys().find(|field| TABLE.iter().all(|entry| entry.field != **field)) {
            Some(unknown) => Err(serde::de::Error::custom(format!("unknown field `{unknown}`"))),
            None => Ok(Components(all)),
        }
    }
}

impl JsonSchema for Components {
    fn schema_name() -> Cow<'static, str> {
        "Components".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_one = |entry: &ComponentEntry| {
            let mut schema = generator.subschema_for::<Component>();
            let each = if entry.runs == RunsOn::ForEachMember { ", one for each member" } else { "" };
            let optional = if entry.optional { "; optional" } else { "" };
            schema.insert("description".to_owned(), format!("{}{each}{optional}.", entry.program).into());
            (entry.field.clone(), schema.to_value())
        };
        let properties: Map<String, Json> = TABLE.iter().map(of_one).collect();
        json_schema!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "x-kubernetes-validations": rules(),
        })
    }
}

/// What a document may not say of components.
fn rules() -> Vec<Rule> {
    let required = component_fields(|entry| !entry.optional);
    let optional = component_fields(|entry| entry.optional);
    let called = component_fields(|entry| entry.runs == RunsOn::WithTheApiServer);
    let off = required.iter().map(|it| format!("has(self.{it}) && has(self.{it}.enabled) && !self.{it}.enabled"));
    let placed = called.iter().map(|it| format!("has(self.{it}) && has(self.{it}.hosts)"));
    let mut rules = vec![
        Rule::new(format!("[{}].all(off, !off)", off.collect::<Vec<_>>().join(", ")))
            .message(Message::Message(format!("only {} can be disabled", listed(&optional)))),
        Rule::new(format!("[{}].all(placed, !placed)", placed.collect::<Vec<_>>().join(", "))).message(Message::Message(format!(
            "{} cannot have hosts of their own: each API server calls them on its own host, so they run on every host \
             with an API server",
            listed(&called)
        ))),
    ];
    rules.extend(component_fields(|entry| entry.runs == RunsOn::ForEachMember).into_iter().map(|it| {
        Rule::new(format!("!has(self.{it}) || !has(self.{it}.hosts)")).message(Message::Message(format!(
            "{it} cannot have hosts of its own: estimators run on every host with a scheduler or a descheduler"
        )))
    }));
    rules
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.concat(),
    }
}

/// Settings of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Component {
    /// Whether an optional component runs (default true). With false, its settings are kept for later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The hosts that it runs on, by their names in spec.hosts (default: all of controlPlane.hosts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<Vec<String>>,
    /// More flags, by name without dashes. They override those that windlass sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = super::flags())]
    pub extra_args: BTreeMap<String, String>,
    /// Feature gates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = Rule::new("self.all(name, name.matches('^[0-9A-Za-z][0-9A-Za-z:]*$'))")
        .message("the name of a feature gate must consist of letters and digits"))]
    pub feature_gates: BTreeMap<String, bool>,
    /// Limits of the service, in systemd's terms: `MemoryMax: 2G`, `CPUQuota: 200%`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = limits())]
    pub resources: BTreeMap<String, String>,
}

/// Limits, and no other directive of a unit.
fn limits() -> Rule {
    let names: Vec<String> = unit_file::LIMITS.iter().map(|name| format!("'{name}'")).collect();
    Rule::new(format!("self.all(name, name in [{}] && self[name].matches('^[0-9A-Za-z%:./ _,-]+$'))", names.join(", ")))
        .message("resources must be service limits in systemd's terms, such as MemoryMax: 2G and CPUQuota: 200%")
}

impl Component {
    /// Whether an optional one that is named is there.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}
