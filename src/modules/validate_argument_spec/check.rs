//! Values against a specification: everything that is wrong, in Ansible's words.

use indexmap::IndexMap;
use minijinja::value::ValueKind;

use super::spec::{Spec, options, spec_items, texts};
use crate::modules::arguments;
use crate::value::doc::ArgumentKind;
use crate::value::{Value, truth};

/// Values by the names of arguments.
type Values = IndexMap<String, Value>;

/// What was found so far, and how deep we are.
#[derive(Default)]
pub(super) struct ArgumentCheck {
    errors: Vec<String>,
    /// The names of the arguments that we are inside of.
    within: Vec<String>,
}

impl ArgumentCheck {
    /// Everything that is wrong with the values.
    pub(super) fn check_all_arguments(mut self, spec: &[(String, Spec)], mut values: Values) -> Vec<String> {
        let mut unknown = Vec::new();
        self.level(spec, &mut values, None, &mut unknown);
        self.errors.extend(unknown);
        self.errors
    }

    /// One mapping; `outer` is the argument that it is the value of.
    fn level(&mut self, spec: &[(String, Spec)], values: &mut Values, outer: Option<&Spec>, unknown: &mut Vec<String>) {
        self.resolve_aliases(spec, values);
        unknown.extend(self.unknown(spec, values));
        if let Some(outer) = outer {
            self.exclusive(outer, values);
        }
        for (name, spec) in spec {
            if let (Some(default), false) = (spec.get("default"), values.contains_key(name)) {
                values.insert(name.clone(), default);
            }
        }
        let mut missing: Vec<&str> = spec
            .iter()
            .filter(|(name, spec)| spec.is("required") && !values.contains_key(name))
            .map(|(name, _)| name.as_str())
            .collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            self.wrong(format!("missing required arguments: {}", missing.join(", ")));
        }
        for (name, spec) in spec {
            self.kind(name, spec, values);
        }
        for (name, spec) in spec {
            self.choice(name, spec, values);
        }
        if let Some(outer) = outer {
            self.together(outer, values);
        }
        for (name, spec) in spec {
            self.inside(name, spec, values, unknown);
        }
    }

    fn wrong(&mut self, message: String) {
        let within =
            if self.within.is_empty() { String::new() } else { format!(" found in {}", self.within.join(" -> ")) };
        self.errors.push(format!("{message}{within}"));
    }

    /// A value that is written under another name counts under the argument's own, too.
    fn resolve_aliases(&mut self, spec: &[(String, Spec)], values: &mut Values) {
        for (name, spec) in spec {
            if spec.get("default").is_some() && spec.is("required") {
                self.wrong(format!("internal error: required and default are mutually exclusive for {name}"));
            }
            for alias in spec.aliases() {
                if let Some(value) = values.get(&alias).cloned() {
                    values.insert(name.clone(), value);
                }
            }
        }
    }

    fn unknown(&self, spec: &[(String, Spec)], values: &Values) -> Option<String> {
        let known =
            |name: &str| spec.iter().any(|(it, spec)| it == name || spec.aliases().iter().any(|alias| alias == name));
        let prefix = self.within.iter().map(|name| format!("{name}.")).collect::<String>();
        let mut strangers: Vec<String> =
            values.keys().filter(|name| !known(name)).map(|name| format!("{prefix}{name}")).collect();
        if strangers.is_empty() {
            return None;
        }
        strangers.sort_unstable();
        let mut names: Vec<&str> = spec.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        Some(format!("{}. Supported parameters include: {}.", strangers.join(", "), names.join(", ")))
    }

    fn kind(&mut self, name: &str, spec: &Spec, values: &mut Values) {
        let Some(value) = values.get(name) else { return };
        if value.is_none() && !spec.is("required") && spec.get("default").is_none() {
            return;
        }
        let kind = spec.kind();
        let coerced = match convert(&kind, value, spec.is("no_log")) {
            Ok(coerced) => coerced,
            Err(why) => {
                let mut message = format!("argument '{name}' is of type {}", type_name(value));
                if !self.within.is_empty() {
                    message += &format!(" found in '{}'.", self.within.join(" -> "));
                }
                self.errors.push(format!("{message} and we were unable to convert to {kind}: {why}"));
                return;
            }
        };
        if let Some(wanted) = spec.elements().filter(|_| kind == "list") {
            for item in spec_items(&coerced) {
                if let Err(why) = convert(&wanted, &item, spec.is("no_log")) {
                    let mut message = format!("Elements value for option '{name}'");
                    if !self.within.is_empty() {
                        message += &format!(" found in '{}'", self.within.join(" -> "));
                    }
                    let got = type_name(&item);
                    self.errors
                        .push(format!("{message} is of type {got} and we were unable to convert to {wanted}: {why}"));
                }
            }
        }
        values.insert(name.to_owned(), coerced);
    }

    fn choice(&mut self, name: &str, spec: &Spec, values: &Values) {
        let (Some(choices), Some(value)) = (spec.get("choices"), values.get(name)) else { return };
        let choices = spec_items(&choices);
        let listed = choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let shown = |value: &Value| if spec.is("no_log") { "a hidden value".to_owned() } else { value.to_string() };
        if value.kind() == ValueKind::Seq {
            let strange: Vec<String> = spec_items(value).iter().filter(|it| !choices.contains(it)).map(shown).collect();
            if !strange.is_empty() {
                let strange = strange.join(", ");
                self.wrong(format!("value of {name} must be one or more of: {listed}. Got no match for: {strange}"));
            }
        } else if !choices.contains(value) && !is_boolean_word(value, &choices) {
            self.wrong(format!("value of {name} must be one of: {listed}, got: {}", shown(value)));
        }
    }

    fn exclusive(&mut self, outer: &Spec, values: &Values) {
        let groups = outer.get("mutually_exclusive").map(|terms| groups(&terms)).unwrap_or_default();
        let full: Vec<String> = groups
            .iter()
            .filter(|group| group.iter().filter(|name| values.contains_key(*name)).count() > 1)
            .map(|group| group.join("|"))
            .collect();
        if !full.is_empty() {
            self.wrong(format!("parameters are mutually exclusive: {}", full.join(", ")));
        }
    }

    /// `required_together`, `required_one_of`, `required_if`, `required_by` of a mapping.
    fn together(&mut self, outer: &Spec, values: &Values) {
        let there = |name: &String| values.get(name).is_some_and(|value| !value.is_none());
        for group in outer.get("required_together").map(|terms| groups(&terms)).unwrap_or_default() {
            if group.iter().any(|name| values.contains_key(name)) && !group.iter().all(|name| values.contains_key(name))
            {
                self.wrong(format!("parameters are required together: {}", group.join(", ")));
            }
        }
        for group in outer.get("required_one_of").map(|terms| groups(&terms)).unwrap_or_default() {
            if !group.iter().any(|name| values.contains_key(name)) {
                self.wrong(format!("one of the following is required: {}", group.join(", ")));
            }
        }
        for rule in outer.get("required_if").map(|rules| spec_items(&rules)).unwrap_or_default() {
            let [name, wanted, needed, any @ ..] = &spec_items(&rule)[..] else { continue };
            if values.get(&name.to_string()) != Some(wanted) {
                continue;
            }
            let needed = texts(needed);
            let missing: Vec<&String> = needed.iter().filter(|name| !there(name)).collect();
            let one_is_enough = any.first().is_some_and(Value::is_true);
            let (word, bad) = match one_is_enough {
                true => ("any", missing.len() == needed.len()),
                false => ("all", !missing.is_empty()),
            };
            if bad {
                let missing: Vec<&str> = missing.into_iter().map(String::as_str).collect();
                self.wrong(format!(
                    "{name} is {wanted} but {word} of the following are missing: {}",
                    missing.join(", ")
                ));
            }
        }
        for (name, _) in outer.get("required_by").map(|rules| options(&rules)).unwrap_or_default() {
            if !there(&name) {
                continue;
            }
            let needed = outer.get("required_by").and_then(|rules| rules.get_attr(&name).ok()).unwrap_or_default();
            let needed = if needed.as_str().is_some() { vec![needed.to_string()] } else { texts(&needed) };
            let missing: Vec<String> = needed.into_iter().filter(|name| !there(name)).collect();
            if !missing.is_empty() {
                self.wrong(format!("missing parameter(s) required by '{name}': {}", missing.join(", ")));
            }
        }
    }

    fn inside(&mut self, name: &str, spec: &Spec, values: &Values, unknown: &mut Vec<String>) {
        let Some(inside) = spec.inside() else { return };
        let value = match values.get(name).filter(|value| !value.is_none()) {
            Some(value) => value.clone(),
            None if spec.is("apply_defaults") => Value::from_pairs(Vec::<(Value, Value)>::new()),
            None => return,
        };
        self.within.push(name.to_owned());
        let mappings = if value.kind() == ValueKind::Seq { spec_items(&value) } else { vec![value] };
        for mapping in mappings {
            if mapping.kind() != ValueKind::Map {
                self.errors.push(format!("value of '{name}' must be of type dict or list of dicts"));
                continue;
            }
            let keys = mapping.try_iter().into_iter().flatten();
            let mut values: Values =
                keys.filter_map(|key| Some((key.to_string(), mapping.get_item(&key).ok()?))).collect();
            self.level(&inside, &mut values, Some(spec), unknown);
        }
        self.within.pop();
    }
}

/// Lists of names; one list alone is a list of one.
fn groups(terms: &Value) -> Vec<Vec<String>> {
    let terms = spec_items(terms);
    match terms.first() {
        Some(first) if first.as_str().is_some() => vec![terms.iter().map(ToString::to_string).collect()],
        _ => terms.iter().map(texts).collect(),
    }
}

/// Whether YAML may have made one of the choices this boolean.
fn is_boolean_word(value: &Value, choices: &[Value]) -> bool {
    let said = match value.to_string().as_str() {
        "True" => true,
        "False" => false,
        _ => return false,
    };
    truth::choice_of(said, choices.iter().filter_map(Value::as_str)).is_some()
}

/// A value as its type, or why it is none.
fn convert(kind: &str, value: &Value, secret: bool) -> Result<Value, String> {
    let shown = || if secret { "the value".to_owned() } else { format!("{:?}", value.to_string()) };
    let known = match kind {
        "str" if value.is_none() => return Ok(Value::from("")),
        // Any value has a text.
        "str" | "path" if !matches!(value.kind(), ValueKind::Undefined) => return Ok(Value::from(value.to_string())),
        "str" => ArgumentKind::Str,
        "path" => ArgumentKind::Path,
        "bool" => ArgumentKind::Bool,
        "int" => ArgumentKind::Int,
        "float" => ArgumentKind::Float,
        "dict" => ArgumentKind::Dict,
        "list" if value.kind() == ValueKind::Map => {
            return Err(format!("{} cannot be converted to a list", type_name(value)));
        }
        "list" => ArgumentKind::List(&ArgumentKind::Any),
        "raw" => return Ok(value.clone()),
        "json" | "jsonarg" => {
            return json(value).ok_or_else(|| format!("{} cannot be converted to a json string", type_name(value)));
        }
        "bytes" | "bits" => {
            let is_size = value.as_i64().is_some() || is_size(&value.to_string());
            let unit = if kind == "bytes" { "Byte" } else { "Bit" };
            return is_size
                .then(|| value.clone())
                .ok_or_else(|| format!("{} cannot be converted to a {unit} value", shown()));
        }
        other => return Err(format!("there is no type {other:?}")),
    };
    arguments::fit(known, value).map_err(|wanted| match known {
        ArgumentKind::Int => format!("{} cannot be converted to an int", shown()),
        ArgumentKind::Bool => format!("{} cannot be converted to a bool", shown()),
        ArgumentKind::Float => format!("{} cannot be converted to a float", shown()),
        ArgumentKind::Dict if value.as_str().is_some() => {
            "dictionary requested, could not parse JSON or key=value".to_owned()
        }
        ArgumentKind::Dict => format!("{} cannot be converted to a dict", type_name(value)),
        ArgumentKind::List(_) => format!("{} cannot be converted to a list", type_name(value)),
        _ => format!("it must be {wanted}"),
    })
}

fn json(value: &Value) -> Option<Value> {
    match value.kind() {
        ValueKind::String => Some(Value::from(value.to_string().trim())),
        ValueKind::Seq | ValueKind::Map => serde_json::to_string(value).ok().map(Value::from),
        _ => None,
    }
}

/// `10`, `1.5M`, `2 GB`, `3Mb`.
fn is_size(text: &str) -> bool {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().trim_end_matches(['b', 'B']);
    number.parse::<f64>().is_ok() && (unit.is_empty() || unit.len() == 1 && "kKMGTPEZY".contains(unit))
}

/// Ansible's word for what a value is.
fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Bool => "bool",
        ValueKind::Number if value.as_i64().is_some() || value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Seq | ValueKind::Iterable => "list",
        ValueKind::Map => "dict",
        ValueKind::None => "NoneType",
        _ => "object",
    }
}
