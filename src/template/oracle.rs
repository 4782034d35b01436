//! Every template of `cases.json` has the same result as in ansible-core 2.19.14, whose templar wrote the file.
//! A case with `error` must fail; the words of the error are ours.

use serde_json::Value as Json;

use super::*;
use crate::value::Vars;

fn with_templates(json: &Json) -> Value {
    match json {
        Json::String(text) => Template::template_value(text, None),
        Json::Array(items) => Value::from(items.iter().map(with_templates).collect::<Vec<_>>()),
        Json::Object(map) => Value::from_pairs(map.iter().map(|(key, value)| (key.clone(), with_templates(value)))),
        other => Value::from(minijinja::value::Serde(other.clone())),
    }
}

/// Where we mean to differ, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("{{ '$ANSIBLE_VAULT;1.1;AES256' is vault_encrypted }}", "our vault values are texts until they are decrypted"),
    ("{{ 'a\nb' | splitlines }}", "not in ansible-core, but in common use"),
    (
        "{{ users | groupby('active', default=false) | map('first') | list }}",
        "ansible-core fails because of its own bug",
    ),
    ("{{ d | json_query('b.c') }}", "of community.general"),
    ("{{ users | json_query('[?uid > `1`].name') }}", "of community.general"),
];

#[test]
fn templates_give_what_ansible_gives() {
    let cases: Json = serde_json::from_str(include_str!("cases.json")).unwrap();
    let vars: Vars =
        cases["vars"].as_object().unwrap().iter().map(|(k, v)| (k.as_str().into(), with_templates(v))).collect();
    let scope = Scope::default().with_layer(vars);
    let templar = Templar::new();
    let mut wrong = Vec::new();
    for case in cases["cases"].as_array().unwrap() {
        let source = case["template"].as_str().unwrap();
        if OTHERWISE.iter().any(|(template, _)| *template == source) {
            continue;
        }
        let ours = templar.render(&Template::template_value(source, None), &scope);
        let ours = ours.map(|value| serde_json::to_value(&value).unwrap());
        match (&ours, case.get("result")) {
            (Ok(ours), Some(theirs)) if same(ours, theirs) => {}
            (Err(_), None) => {}
            (ours, theirs) => {
                wrong.push(format!("{source:?}\n  ours   {ours:?}\n  theirs {theirs:?} {:?}", case.get("error")))
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Equal, numbers by value within what printing them loses.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.is_f64() == b.is_f64() && a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}
