//! Documents: the results of valid ones, and the errors of invalid ones.

use std::sync::Arc;

use super::{ForeignResourceLimits, Resource, Trust, of_source};
use crate::value::origin::Source;

const SMALL: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata:
  name: production
spec:
  bundle: karmada.tar.zst
  hosts:
    - name: cp-1
      address: 192.0.2.11
  controlPlane:
    hosts: [cp-1]
  etcd:
    managed:
      hosts: [cp-1]
";

fn read(text: &str) -> Result<Vec<Resource>, Vec<String>> {
    let source = Arc::new(Source::new("karmada.yaml", text));
    let reported = |complaint: &crate::value::origin::Diagnostic| match &complaint.hint {
        Some(hint) => format!("{complaint} ({hint})"),
        None => complaint.to_string(),
    };
    of_source(&source, Trust::Own, &ForeignResourceLimits::default())
        .map(|(resources, _)| resources)
        .map_err(|complaints| complaints.iter().map(reported).collect())
}

#[test]
fn a_small_document_has_its_defaults() {
    let resources = read(SMALL).unwrap();
    let [Resource::KarmadaDeployment(deployment)] = &resources[..] else { panic!("{resources:?}") };
    assert_eq!((deployment.name.as_str(), deployment.spec.instance.as_str()), ("production", "karmada"));
    assert!(!deployment.spec.paused && !deployment.spec.hosts[0].reset);
    assert_eq!(deployment.digest.len(), 64);
}

#[test]
fn documents_that_ask_for_the_same_have_one_digest() {
    let digest = |text: &str| match &read(text).unwrap()[..] {
        [Resource::KarmadaDeployment(deployment)] => deployment.digest.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(digest(SMALL), digest(&SMALL.replace("cp-1\n", "cp-1   # the first\n")));
    assert_ne!(digest(SMALL), digest(&SMALL.replace("192.0.2.11", "192.0.2.12")));
}

#[test]
fn everything_wrong_is_reported_at_once_with_its_place() {
    let text = SMALL
        .replace("address: 192", "adress: 192")
        .replace("bundle: karmada.tar.zst", "bundle: 1.18\n  paused: never");
    assert_eq!(
        read(&text).unwrap_err(),
        [
            "karmada.yaml:6:11: spec.bundle must be a string, this is the number 1.18 (put it in quotes)",
            "karmada.yaml:7:11: spec.paused must be true or false, this is the string \"never\"",
            "karmada.yaml:10:7: unknown field \"adress\" in spec.hosts[0] (did you mean \"address\"?)",
        ]
    );
}

/// A document of somebody else must not cost more than it is worth.
#[test]
fn many_mistakes_are_reported_up_to_a_limit() {
    let wrong: String = (0..5000).map(|number| format!("      field{number}: {{a: b}}\n")).collect();
    let complaints =
        read(&SMALL.replace("      address: 192.0.2.11\n", &format!("      address: 192.0.2.11\n{wrong}")));
    let complaints = complaints.unwrap_err();
    assert_eq!(complaints.len(), 101, "{:?}", complaints.last());
    assert!(complaints[100].ends_with("the document has more mistakes; these are the first 100"), "{complaints:?}");
    // The items of a list that is too long are not looked at.
    let hosts: String = (0..300).map(|number| format!("    - name: H_{number}\n      address: no\n")).collect();
    let complaints = read(&SMALL.replace("    - name: cp-1\n", &format!("{hosts}    - name: cp-1\n"))).unwrap_err();
    let of_hosts: Vec<&String> = complaints.iter().filter(|complaint| complaint.contains("spec.hosts")).collect();
    assert_eq!(of_hosts.len(), 1, "{complaints:?}");
    assert!(of_hosts[0].contains("must have at most 256 items, this has 301"), "{of_hosts:?}");
}

#[test]
fn rules_over_several_fields_name_the_field_that_breaks_them() {
    let complaints = read(&SMALL.replace("hosts: [cp-1]\n  etcd", "hosts: [cp-1, cp-2]\n  etcd")).unwrap_err();
    assert_eq!(
        complaints,
        ["karmada.yaml:11:12: spec.controlPlane.hosts: controlPlane.hosts names cp-2, which is not in spec.hosts"]
    );
}

#[test]
fn a_template_is_text_and_a_document_of_others_is_left_out() {
    let text = format!("apiVersion: v1\nkind: ConfigMap\n---\n{}", SMALL.replace("karmada.tar.zst", "\"{{ boom }}\""));
    let resources = read(&text).unwrap();
    let [Resource::KarmadaDeployment(deployment)] = &resources[..] else { panic!("{resources:?}") };
    assert_eq!(deployment.spec.bundle, "{{ boom }}");
}

/// What of a schema has neither a pattern nor a bound, by its place.
fn unbounded(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    let text = schema["type"] == "string" && schema["enum"].is_null();
    if text && (schema["pattern"].is_null() || schema["maxLength"].is_null())
        || schema["additionalProperties"].is_object() && schema["maxProperties"].is_null()
    {
        found.push(path.to_owned());
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        unbounded(field, &format!("{path}.{name}"), found);
    }
    for place in ["items", "additionalProperties"] {
        unbounded_if_there(&schema[place], &format!("{path}[]"), found);
    }
}

fn unbounded_if_there(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    if schema.is_object() {
        unbounded(schema, path, found);
    }
}

#[test]
fn every_text_of_a_spec_has_a_pattern_and_a_length() {
    let mut found = Vec::new();
    for definition in super::definitions() {
        let definition = serde_json::to_value(definition).unwrap();
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert!(spec["properties"].as_object().is_some_and(|fields| !fields.is_empty()));
        unbounded(spec, "spec", &mut found);
    }
    // An encrypted value has several lines, and a person's own command is given what that person wants.
    found.retain(|path| !path.ends_with(".vault") && !path.ends_with(".command[]"));
    assert!(found.is_empty(), "{found:?}");
}
