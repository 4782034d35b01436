//! Custom resources: every document in `resources/good/` is taken and gets the defaults that its `.json` has, every one
//! in `resources/bad/` is refused at the place and for the reason that its first line says. What a real API server says
//! of the same documents: `tests/e2e/karmada-cases/56_*` and `tests/kubernetes/`.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use windlass::resource::{self, ForeignResourceLimits, Resource};

fn documents(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resources").join(folder);
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    found.sort();
    found
}

#[test]
fn good_documents_get_the_defaults_that_an_api_server_gives_them() {
    let found = documents("good");
    assert!(found.len() >= 5);
    for path in found {
        let resources = resource::load_resources(&path, &ForeignResourceLimits::default()).unwrap();
        let [resource] = &resources[..] else { panic!("{}", path.display()) };
        let spec = match resource {
            Resource::KarmadaDeployment(it) => serde_json::to_value(&it.spec),
            Resource::EtcdBackup(it) => serde_json::to_value(&it.spec),
            Resource::Run(it) => serde_json::to_value(&it.spec),
        };
        let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
        assert_eq!(spec.unwrap(), serde_json::from_str::<Json>(&expected).unwrap(), "{}", path.display());
    }
}

#[test]
fn bad_documents_are_refused_for_their_reason_at_its_place() {
    let found = documents("bad");
    assert!(found.len() > 60);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let reason = text.lines().next().and_then(|line| line.strip_prefix("# windlass: ")).unwrap();
        let complaints =
            resource::load_resources(&path, &ForeignResourceLimits::default()).expect_err(&path.display().to_string());
        let origin = complaints[0].origin.as_ref().unwrap();
        let reported = format!("{}:{} {}", origin.line, origin.column, complaints[0].message);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, text.replacen(reason, &reported, 1)).unwrap();
        } else {
            assert_eq!(reported, reason, "{}", path.display());
        }
    }
}

/// A rule that no document breaks may be one that nothing can break.
#[test]
fn every_rule_of_the_definitions_is_broken_by_a_document() {
    let reported: Vec<String> = documents("bad")
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap().lines().next().unwrap().into())
        .collect();
    let mut rules = Vec::new();
    for definition in resource::definitions() {
        messages(&serde_json::to_value(definition).unwrap(), &mut rules);
    }
    assert!(rules.len() > 40);
    let of_components = |rule: &str| rule.starts_with("'components.") && rule.contains(".hosts names ");
    let one_of_components = rules.iter().position(|rule| of_components(rule)).unwrap();
    for (place, rule) in rules.iter().enumerate() {
        // The rules for the hosts of components are one rule, with the fields of the table.
        if of_components(rule) && place != one_of_components {
            continue;
        }
        // Of a message that is put together, the text before the name; a change needs an object that is there.
        let words = rule.split('\'').nth(1).filter(|_| rule.starts_with('\'')).unwrap_or(rule);
        let transitions = [
            "the deployment of a restore cannot change",
            "the deployment of a backup cannot change",
            "only stop may change",
            "a run that was stopped",
        ];
        let transition = transitions.iter().any(|start| words.starts_with(start));
        assert!(transition || reported.iter().any(|line| line.contains(words)), "no document breaks: {rule}");
    }
}

fn messages(schema: &Json, found: &mut Vec<String>) {
    match schema {
        Json::Object(entries) => {
            for rule in entries.get("x-kubernetes-validations").and_then(Json::as_array).into_iter().flatten() {
                let message = rule["message"].as_str().or(rule["messageExpression"].as_str());
                found.push(message.expect("every rule has words of its own").to_owned());
            }
            entries.values().for_each(|value| messages(value, found));
        }
        Json::Array(items) => items.iter().for_each(|item| messages(item, found)),
        _ => {}
    }
}

#[test]
fn an_ordinary_secret_of_a_bad_document_is_not_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resources/bad/field-is-no-secret.yaml");
    let complaints = resource::load_resources(&path, &ForeignResourceLimits::default()).unwrap_err();
    let shown = windlass::report::diagnostic::render_diagnostic(&complaints[0]);
    assert!(!shown.contains("hunter2") && shown.contains("must be a reference to a secret"), "{shown}");
}

#[test]
fn an_api_server_gets_definitions_of_kinds_that_windlass_acts_on() {
    let all: Vec<String> = resource::definitions().into_iter().map(|it| it.spec.names.kind).collect();
    assert_eq!(all, ["KarmadaDeployment", "Run", "EtcdBackup"]);
}

/// The text and the rule of a definition have the number that the roles use where a resource gives none.
#[test]
fn the_default_validity_of_certificates_is_the_one_of_the_roles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let default = |role: &str, name: &str| {
        let text = std::fs::read_to_string(root.join(format!("roles/{role}/defaults/main.yml"))).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
        found.unwrap_or_else(|| panic!("{role} has no {name}"))
    };
    let days = default("karmada_settings", "karmada_certificate_days");
    assert_eq!(default("etcd", "etcd_certificate_days"), days);
    let definitions = serde_json::to_string(&resource::definitions()).unwrap();
    for text in [
        format!("How many days certificates are valid (default {days})"),
        format!("less than leafCertValidityDays (default {days})"),
        format!("self.leafCertValidityDays : {days})"),
    ] {
        assert!(definitions.contains(&text), "{text}");
    }
}
