//! What differs between an object as it is and as it would be.

use minijinja::value::Serde;
use serde_json::{Map, Value as Json};

use crate::modules::Diff;
use crate::value::{Value, yaml};

/// What the server keeps for itself.
const OF_THE_SERVER: &[&str] =
    &["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"];
/// Contains the whole object again, including secrets.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const HIDDEN: &str = "(hidden)";
const HIDDEN_CHANGED: &str = "(hidden, changed)";

/// Whether applying changes anything: the object itself, or which of its fields are `manager`'s.
pub(super) fn differs(before: &Json, after: &Json, manager: &str) -> bool {
    tidy(before) != tidy(after) || owned(before, manager) != owned(after, manager)
}

/// One object's change as YAML, without what the server keeps for itself. What secrets hold is hidden.
pub(super) fn object_diff(label: &str, before: Option<&Json>, after: Option<&Json>, manager: &str) -> Diff {
    let (mut old, mut new) = (before.map(tidy), after.map(tidy));
    hide(old.as_mut(), new.as_mut());
    let mut text = Diff {
        before_header: label.to_owned(),
        after_header: label.to_owned(),
        before: old.as_ref().map(to_yaml).unwrap_or_default(),
        after: new.as_ref().map(to_yaml).unwrap_or_default(),
    };
    if let (Some(before), Some(after)) = (before, after)
        && text.before == text.after
        && owned(before, manager) != owned(after, manager)
    {
        let fields = |object| owned(object, manager).map(to_yaml).unwrap_or_default();
        text.before = format!("fields of {manager}:\n{}", fields(before));
        text.after = format!("fields of {manager}:\n{}", fields(after));
    }
    text
}

/// The object for a task's result: what a secret holds is hidden.
pub(super) fn shown(object: &Json) -> Json {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("managedFields");
    }
    hide(None, Some(&mut object));
    object
}

fn tidy(object: &Json) -> Json {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        for name in OF_THE_SERVER {
            metadata.remove(*name);
        }
    }
    object
}

/// The fields that an applier owns.
fn owned<'a>(object: &'a Json, manager: &str) -> Option<&'a Json> {
    let managed = object.get("metadata")?.get("managedFields")?.as_array()?;
    let is_ours = |entry: &&Json| {
        entry.get("manager").and_then(Json::as_str) == Some(manager)
            && entry.get("operation").and_then(Json::as_str) == Some("Apply")
            && entry.get("subresource").is_none_or(|subresource| subresource == "")
    };
    managed.iter().find(is_ours)?.get("fieldsV1")
}

/// Of secrets only the names are left, and which of them change.
fn hide(mut before: Option<&mut Json>, mut after: Option<&mut Json>) {
    let is_secret = |object: &Option<&mut Json>| {
        object.as_ref().is_some_and(|object| object.get("kind").and_then(Json::as_str) == Some("Secret"))
    };
    if !is_secret(&before) && !is_secret(&after) {
        return;
    }
    for part in ["data", "stringData"] {
        let old: Map<String, Json> = contents(before.as_deref(), part);
        cover(before.as_deref_mut(), part, |_, _| false);
        cover(after.as_deref_mut(), part, |name, value| !old.is_empty() && old.get(name) != Some(value));
    }
    for object in [before, after].into_iter().flatten() {
        if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Json::as_object_mut)
            && annotations.contains_key(LAST_APPLIED)
        {
            annotations.insert(LAST_APPLIED.to_owned(), HIDDEN.into());
        }
    }
}

fn contents(object: Option<&Json>, part: &str) -> Map<String, Json> {
    object.and_then(|object| object.get(part)).and_then(Json::as_object).cloned().unwrap_or_default()
}

fn cover(object: Option<&mut Json>, part: &str, changed: impl Fn(&String, &Json) -> bool) {
    let Some(values) = object.and_then(|object| object.get_mut(part)).and_then(Json::as_object_mut) else { return };
    for (name, value) in values {
        *value = if changed(name, value) { HIDDEN_CHANGED } else { HIDDEN }.into();
    }
}

fn to_yaml(object: &Json) -> String {
    yaml::emit(&Value::from(Serde(object)), &yaml::YamlStyle { width: 1000, ..yaml::YamlStyle::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_keeps_for_itself_is_no_difference() {
        let before = json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}, "status": {"x": 1}});
        let after = json!({"metadata": {"name": "a", "resourceVersion": "2", "generation": 2}, "status": {"x": 2}});
        assert!(!differs(&before, &after, "windlass"));
    }

    #[test]
    fn taking_fields_over_is_a_difference_that_is_shown() {
        let object = |manager: &str| {
            let fields = json!({"f:data": {"f:a": {}}});
            let entry = json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
            json!({"kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [entry]}, "data": {"a": "1"}})
        };
        let (before, after) = (object("kubectl"), object("windlass"));
        assert!(differs(&before, &after, "windlass"));
        let diff = object_diff("ConfigMap a", Some(&before), Some(&after), "windlass");
        assert!(diff.after.contains("f:a") && !diff.before.contains("f:a"), "{diff:?}");
    }

    #[test]
    fn of_a_secret_only_the_names_and_what_changes_are_shown() {
        let secret = |a: &str| {
            let annotations = json!({LAST_APPLIED: format!("{{\"data\": \"{a}\"}}")});
            json!({"kind": "Secret", "metadata": {"name": "s", "annotations": annotations}, "data": {"a": a, "b": "same"}})
        };
        let diff = object_diff("Secret s", Some(&secret("old")), Some(&secret("new")), "windlass");
        for part in [&diff.before, &diff.after] {
            assert!(!part.contains("old") && !part.contains("new") && !part.contains("same"), "{part}");
        }
        assert!(
            diff.after.contains("a: (hidden, changed)\n") && diff.after.contains("b: (hidden)\n"),
            "{}",
            diff.after
        );
        assert!(diff.before != diff.after);
        assert_eq!(shown(&secret("new"))["data"], json!({"a": HIDDEN, "b": HIDDEN}));
    }
}
