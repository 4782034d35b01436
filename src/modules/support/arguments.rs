//! From what a person wrote to what a module takes: aliases, types, choices, defaults, required ones.

mod coercion;

use std::sync::Arc;

use minijinja::value::ValueKind;
use serde::de::DeserializeOwned;

use crate::modules::Error;
use crate::template;
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, Doc};
use crate::value::nearest::did_you_mean;
use crate::value::{Value, Vars, truth};

/// Rendered arguments to what the module's `DOC` says: canonical names, coerced kinds, defaults filled in, choices
/// and required ones checked. The result has every argument of `DOC` that has a value.
///
/// Null is the same as not written, but for arguments of kind [`ArgumentKind::Any`] that have no default.
/// Arguments of any name ([`ANY_NAME`]) stay as they were written.
pub fn coerce(doc: &Doc, args: &Vars) -> Result<Value, Error> {
    let mut coerced = Vars::new();
    for (written, value) in args {
        let Some(argument) = doc.argument(written) else {
            return Err(unknown(doc, written));
        };
        if argument.name == ANY_NAME {
            coerced.insert(written.clone(), value.clone());
            continue;
        }
        let is_null = value.is_none() || value.is_undefined();
        if is_null && (argument.kind != ArgumentKind::Any || argument.default.is_some()) {
            continue;
        }
        let value = one(doc, argument, value)?;
        if coerced.insert(argument.name.into(), value).is_some() {
            return Err(Error::failed(format!("{}: {:?} is written twice (one is an alias)", doc.name, argument.name)));
        }
    }
    for argument in doc.arguments {
        if argument.name == ANY_NAME || coerced.contains_key(argument.name) {
            continue;
        }
        if let Some(default) = argument.default {
            coerced.insert(Arc::from(argument.name), one(doc, argument, &Value::from(default))?);
        } else if argument.required {
            return Err(missing(doc, argument));
        }
    }
    Ok(Value::from_pairs(coerced))
}

/// Arguments under the names of the documentation. Of an argument and its aliases the last alias that is given counts, and
/// Ansible's words for that are in the list.
pub fn without_aliases(doc: &Doc, mut args: Vars) -> (Vars, Vec<Value>) {
    let mut twice = Vec::new();
    for argument in doc.arguments {
        for alias in argument.aliases {
            let Some(value) = args.shift_remove(*alias) else { continue };
            if args.insert(argument.name.into(), value).is_some() {
                let name = argument.name;
                twice.push(Value::from(format!("Both option {name} and its alias {alias} are set.")));
            }
        }
    }
    (args, twice)
}

/// A value as a kind, or what it should have been.
pub fn fit(kind: ArgumentKind, value: &Value) -> Result<Value, &'static str> {
    coercion::coerce(kind, value).map_err(|problem| problem.wanted)
}

/// Coerced arguments to the module's own type.
pub fn parse_arguments<T: DeserializeOwned>(args: Value) -> Result<T, Error> {
    // The values were checked by `coerce`; what is left is a module whose type and DOC disagree. Serde's own words
    // would show the value, which may be secret.
    T::deserialize(plain(&args)).map_err(|error| {
        tracing::debug!(kind = ?error.kind(), "arguments do not fit the module's type");
        Error::failed("the arguments do not have the form that the module expects")
    })
}

/// Without objects, such as moments: for a module they are the texts that they print as.
fn plain(value: &Value) -> Value {
    match value.kind() {
        ValueKind::Plain if !template::is_omit(value) => Value::from(value.to_string()),
        ValueKind::Seq => value.try_iter().into_iter().flatten().map(|item| plain(&item)).collect(),
        ValueKind::Map => {
            let pairs = value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten();
            Value::from_pairs(pairs.map(|(key, item)| (key, plain(&item))))
        }
        _ => value.clone(),
    }
}

/// One value to its argument's kind and choices.
fn one(doc: &Doc, argument: &Argument, value: &Value) -> Result<Value, Error> {
    let coerced = coercion::coerce(argument.kind, value).map_err(|problem| {
        let got = shown(argument, value);
        Error::failed(format!("{}: argument {:?} must be {}, not {got}", doc.name, argument.name, problem.wanted))
    })?;
    let coerced = boolean_word(argument, value).map_or(coerced, Value::from);
    check_choices(doc, argument, &coerced)?;
    Ok(coerced)
}

/// The choice that YAML made a boolean.
fn boolean_word(argument: &Argument, value: &Value) -> Option<String> {
    let is_boolean = argument.kind == ArgumentKind::Str && value.kind() == minijinja::value::ValueKind::Bool;
    is_boolean.then(|| truth::choice_of(value.is_true(), argument.choices)).flatten()
}

fn check_choices(doc: &Doc, argument: &Argument, value: &Value) -> Result<(), Error> {
    if argument.choices.is_empty() {
        return Ok(());
    }
    let items: Vec<Value> = match argument.kind {
        ArgumentKind::List(_) => value.try_iter().map(Iterator::collect).unwrap_or_default(),
        _ => vec![value.clone()],
    };
    for item in items {
        let text = item.to_string();
        if !argument.choices.contains(&text.as_str()) {
            let choices = argument.choices.join(", ");
            let got = shown(argument, &item);
            return Err(Error::Failed {
                message: format!("{}: argument {:?} must be one of {choices}; not {got}", doc.name, argument.name),
                hint: did_you_mean(&text, argument.choices.iter().copied()),
            });
        }
    }
    Ok(())
}

fn unknown(doc: &Doc, written: &str) -> Error {
    let names = doc.arguments.iter().flat_map(|a| std::iter::once(a.name).chain(a.aliases.iter().copied()));
    Error::Failed { message: format!("{} has no argument {written:?}", doc.name), hint: did_you_mean(written, names) }
}

fn missing(doc: &Doc, argument: &Argument) -> Error {
    let aliases = match argument.aliases {
        [] => String::new(),
        aliases => format!(" (or {})", aliases.join(", ")),
    };
    Error::failed(format!("{}: argument {:?}{aliases} is required", doc.name, argument.name))
}

/// A value for a message: short, and never a secret.
fn shown(argument: &Argument, value: &Value) -> String {
    const LONGEST: usize = 60;
    if argument.secret {
        return "the value that was given".to_owned();
    }
    let Some(text) = value.as_str() else {
        return coercion::what(value);
    };
    if text.chars().count() <= LONGEST {
        format!("{text:?}")
    } else {
        format!("{:?} and more", text.chars().take(LONGEST).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;
    use serde::Deserialize;

    use super::*;

    const DOC: Doc = Doc {
        name: "sample",
        collection: "ansible.builtin",
        summary: "Shows every kind",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "a path").required().alias(&["dest", "name"]),
            Argument::new("state", ArgumentKind::Str, "a choice").default("present").choices(&["present", "absent"]),
            Argument::new("force", ArgumentKind::Bool, "a truth").default("false"),
            Argument::new("count", ArgumentKind::Int, "a number"),
            Argument::new("mode", ArgumentKind::Mode, "permissions"),
            Argument::new("items", ArgumentKind::List(&ArgumentKind::Str), "words").default("[]"),
            Argument::new("env", ArgumentKind::Dict, "a mapping"),
            Argument::new("any", ArgumentKind::Any, "anything"),
            Argument::new("password", ArgumentKind::Int, "a secret number").mark_secret(),
        ],
        free_form: None,
        example: "",
        returns: &[],
    };

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        path: String,
        state: String,
        force: bool,
        count: Option<i64>,
        mode: Option<String>,
        items: Vec<String>,
        env: Option<indexmap::IndexMap<String, Value>>,
        any: Option<Value>,
        #[expect(dead_code, reason = "only its place among the arguments counts")]
        password: Option<i64>,
    }

    fn vars(json: serde_json::Value) -> Vars {
        let object = json.as_object().cloned().unwrap_or_default();
        object.into_iter().map(|(name, value)| (Arc::from(name.as_str()), Value::from(Serde(value)))).collect()
    }

    fn sample(json: serde_json::Value) -> Result<Sample, Error> {
        parse_arguments(coerce(&DOC, &vars(json))?)
    }

    fn complaint(json: serde_json::Value) -> (String, Option<String>) {
        match sample(json) {
            Err(Error::Failed { message, hint }) => (message, hint),
            other => panic!("expected a complaint, got {other:?}"),
        }
    }

    #[test]
    fn defaults_are_filled_in_and_aliases_become_canonical() {
        let sample = sample(serde_json::json!({"dest": "/x"})).unwrap();
        assert_eq!((sample.path.as_str(), sample.state.as_str(), sample.force), ("/x", "present", false));
        assert!(sample.items.is_empty());
        assert!(sample.count.is_none() && sample.env.is_none() && sample.any.is_none());
    }

    #[test]
    fn null_is_the_same_as_not_written() {
        let sample = sample(serde_json::json!({"path": "/x", "state": null, "count": null})).unwrap();
        assert_eq!(sample.state, "present");
        assert_eq!(sample.count, None);
    }

    #[test]
    fn values_are_coerced_as_ansible_does() {
        let sample = sample(serde_json::json!({
            "path": 5, "force": "yes", "count": " 7", "mode": 420, "items": "a,b", "env": "a=1 b='x y'", "any": [1],
        }))
        .unwrap();
        assert_eq!(sample.path, "5");
        assert!(sample.force);
        assert_eq!(sample.count, Some(7));
        assert_eq!(sample.mode.as_deref(), Some("0644"));
        assert_eq!(sample.items, ["a", "b"]);
        let env = sample.env.unwrap();
        assert_eq!(env["a"].as_str(), Some("1"));
        assert_eq!(env["b"].as_str(), Some("x y"));
        assert_eq!(sample.any.unwrap().len(), Some(1));
    }

    #[test]
    fn an_unknown_argument_is_refused_with_its_neighbour() {
        let (message, hint) = complaint(serde_json::json!({"path": "/x", "stat": "present"}));
        assert_eq!(message, "sample has no argument \"stat\"");
        assert_eq!(hint.as_deref(), Some("did you mean \"state\"?"));
    }

    #[test]
    fn a_required_argument_that_is_missing_is_named_with_its_aliases() {
        let (message, _) = complaint(serde_json::json!({}));
        assert_eq!(message, "sample: argument \"path\" (or dest, name) is required");
    }

    #[test]
    fn a_wrong_choice_is_refused_with_its_neighbour() {
        let (message, hint) = complaint(serde_json::json!({"path": "/x", "state": "presnt"}));
        assert_eq!(message, "sample: argument \"state\" must be one of present, absent; not \"presnt\"");
        assert_eq!(hint.as_deref(), Some("did you mean \"present\"?"));
    }

    #[test]
    fn a_wrong_type_is_named_with_what_was_written() {
        let (message, _) = complaint(serde_json::json!({"path": "/x", "force": "perhaps"}));
        assert_eq!(message, "sample: argument \"force\" must be a boolean (yes or no), not \"perhaps\"");
        let (message, _) = complaint(serde_json::json!({"path": ["/x"]}));
        assert_eq!(message, "sample: argument \"path\" must be a string, not a list");
    }

    #[test]
    fn an_alias_beside_the_name_is_refused() {
        let (message, _) = complaint(serde_json::json!({"path": "/x", "dest": "/y"}));
        assert_eq!(message, "sample: \"path\" is written twice (one is an alias)");
    }

    #[test]
    fn of_a_name_and_its_aliases_the_last_alias_counts_and_that_is_reported() {
        let args = vars(serde_json::json!({"name": "/z", "path": "/x", "dest": "/y", "mode": "0600"}));
        let (args, twice) = without_aliases(&DOC, args);
        let twice: Vec<String> = twice.iter().map(ToString::to_string).collect();
        assert_eq!((args.len(), args["path"].as_str()), (2, Some("/z")));
        assert_eq!(
            twice,
            ["Both option path and its alias dest are set.", "Both option path and its alias name are set."]
        );
        let (args, twice) = without_aliases(&DOC, vars(serde_json::json!({"dest": "/y"})));
        assert_eq!((args["path"].as_str(), twice.len()), (Some("/y"), 0));
    }

    #[test]
    fn a_boolean_is_the_one_choice_that_yaml_took_for_it() {
        const UPGRADE: Argument = Argument::new("upgrade", ArgumentKind::Str, "x").choices(&["no", "yes", "dist"]);
        const UNCLEAR: Argument = Argument::new("unclear", ArgumentKind::Str, "x").choices(&["yes", "on"]);
        assert_eq!(one(&DOC, &UPGRADE, &Value::from(true)).unwrap().as_str(), Some("yes"));
        assert_eq!(one(&DOC, &UPGRADE, &Value::from(false)).unwrap().as_str(), Some("no"));
        assert!(one(&DOC, &UNCLEAR, &Value::from(true)).is_err());
    }

    #[test]
    fn a_secret_is_never_in_a_message() {
        let (message, _) = complaint(serde_json::json!({"path": "/x", "password": "hunter2"}));
        assert!(!message.contains("hunter2"), "{message}");
        let wrong = Vars::from_iter([(Arc::from("path"), Value::from("/x")), (Arc::from("x"), Value::from("hunter2"))]);
        assert!(!parse_arguments::<Sample>(Value::from_pairs(wrong)).unwrap_err().to_string().contains("hunter2"));
    }
}
