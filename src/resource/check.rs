//! A document against the schema of its kind: the fields one by one, then the CEL rules. What is refused, and where, is
//! what an API server refuses with the same schema.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fancy_regex::Regex;
use kube::core::cel::{CompiledSchema, Validator};
use serde_json::{Map, Value as Json};

use super::place::field_origin;
use super::schema::ONE_LINE;
use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Origin, Source};
use crate::value::yaml::{Node, NodeKind};

/// How many complaints a document gets at most: it may be of somebody who wants many.
const MOST_COMPLAINTS: usize = 100;

/// Checks the field `name` of a mapping; gives its value with defaults filled in. Errors are added to `complaints`.
pub(super) fn check_fields(schema: &Json, parent: &Node, name: &str, complaints: &mut Vec<Diagnostic>) -> Json {
    match parent.get(name) {
        Some(node) => {
            let mut walk = Walk { complaints, left_out: None, patterns: HashMap::new() };
            let value = walk.value(schema, node, name);
            if walk.left_out.is_some() {
                let message = format!("the document has more mistakes; these are the first {MOST_COMPLAINTS}");
                complaints.push(Diagnostic::new(message, Some(&node.origin)));
            }
            value
        }
        None => {
            complaints.push(Diagnostic::new(format!("the document has no {name}"), Some(&parent.origin)));
            Json::Null
        }
    }
}

/// The CEL rules that a document (whose fields are right) breaks, in the rules' own words.
pub(super) fn rules(rules: &CompiledSchema, document: &Json, node: &Node) -> Vec<Diagnostic> {
    let Err(broken) = Validator::new().validate_compiled(rules, document, None) else { return Vec::new() };
    let complaint = |path: &str, message: &str| {
        // A rule of the whole document: of its name, as no other field of its top is the rules' affair.
        let path = if path.is_empty() { "metadata.name" } else { path };
        let origin = field_origin(node, path);
        let origin = if path.ends_with(".vault") { without_text(&origin) } else { origin };
        Diagnostic::new(format!("{path}: {message}"), Some(&origin))
    };
    broken.into_vec().iter().map(|error| complaint(&error.field_path, &error.message)).collect()
}

/// An unknown key.
pub(super) fn unknown<'a>(key: &Node, path: &str, known: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    let known: Vec<&str> = known.into_iter().collect();
    let within = if path.is_empty() { "a document".to_owned() } else { path.to_owned() };
    let complaint = Diagnostic::new(format!("unknown field {} in {within}", named(key)), Some(&key.origin));
    let hint = key.as_str().and_then(|key| did_you_mean(key, known.iter().copied()));
    complaint.hint(hint.unwrap_or_else(|| format!("the fields are {}", known.join(", "))))
}

/// A location whose line is not shown, because it contains a secret.
fn without_text(origin: &Origin) -> Origin {
    let source = Arc::new(Source::new(origin.path(), ""));
    Origin { source, line: origin.line, column: origin.column }
}

fn named(key: &Node) -> String {
    key.as_str().map_or_else(|| key.what(), |key| format!("{key:?}"))
}

struct Walk<'a> {
    complaints: &'a mut Vec<Diagnostic>,
    /// The last complaint after [`MOST_COMPLAINTS`].
    left_out: Option<Diagnostic>,
    /// Those that were needed, compiled.
    patterns: HashMap<String, Option<Regex>>,
}

impl Walk<'_> {
    fn refuse(&mut self, path: &str, message: &str, node: &Node) -> &mut Diagnostic {
        if self.is_full() {
            return self.left_out.insert(Diagnostic::new("more", None));
        }
        self.complaints.push(Diagnostic::new(format!("{path} {message}"), Some(&node.origin)));
        self.complaints.last_mut().expect("it was just inserted")
    }

    fn is_full(&self) -> bool {
        self.complaints.len() >= MOST_COMPLAINTS
    }

    /// The value as JSON, defaults filled in; what is wrong in it is null.
    fn value(&mut self, schema: &Json, node: &Node, path: &str) -> Json {
        if node.tag.as_deref() == Some("!vault") && !path.ends_with(".vault") {
            self.refuse(path, "must not be an encrypted value", node).hint =
                Some("use a reference to a secret: put the value below it, as vault: !vault".to_owned());
            return Json::Null;
        }
        let value = match (schema["type"].as_str(), &node.kind) {
            (_, NodeKind::Null) if !schema["default"].is_null() => return schema["default"].clone(),
            (Some("object"), NodeKind::Map(pairs)) => self.object(schema, node, pairs, path),
            (Some("array"), NodeKind::Seq(items)) => self.array(schema, node, items, path),
            (Some("string"), NodeKind::Str(text)) => self.string(schema, node, text, path),
            (Some("boolean"), NodeKind::Bool(value)) => Json::from(*value),
            (Some("integer"), NodeKind::Int(value)) => self.integer(schema, node, *value, path),
            (Some("object"), NodeKind::Str(_)) if is_reference(schema) => return self.bare_secret(node, path),
            (wanted, _) => return self.mistyped(wanted.unwrap_or("nothing"), node, path),
        };
        let choices = schema["enum"].as_array();
        if let Some(choices) = choices.filter(|choices| !choices.contains(&value)) {
            let choices: Vec<&str> = choices.iter().filter_map(Json::as_str).collect();
            let message = format!("must be one of {}, this is {}", choices.join(", "), node.what());
            let hint = node.as_str().and_then(|text| did_you_mean(text, choices));
            self.refuse(path, &message, node).hint = hint;
        }
        value
    }

    /// A text where a reference to a secret is wanted is most likely the secret.
    fn bare_secret(&mut self, node: &Node, path: &str) -> Json {
        let message = format!("{path} must be a reference to a secret, not the secret itself");
        let hint = "say where the secret is: {file: PATH}, {env: NAME}, {vault: TEXT}, {command: [PROGRAM]} or \
            {secret: {name, key}}";
        self.complaints.push(Diagnostic::new(message, Some(&without_text(&node.origin))).hint(hint));
        Json::Null
    }

    fn mistyped(&mut self, wanted: &str, node: &Node, path: &str) -> Json {
        let (name, fix) = match wanted {
            "object" => ("a mapping", Some("write each of its fields on a line of its own, indented")),
            "array" => ("a list", Some("write each item on a line of its own, after \"- \"")),
            "string" => ("a string", Some("put it in quotes")),
            "boolean" => ("true or false", None),
            _ => ("a whole number", None),
        };
        let fix = match node.kind {
            NodeKind::Null => Some("give it a value, or remove the line"),
            NodeKind::Seq(_) | NodeKind::Map(_) if wanted == "string" => None,
            _ => fix,
        };
        self.refuse(path, &format!("must be {name}, this is {}", node.what()), node).hint = fix.map(str::to_owned);
        Json::Null
    }

    fn object(&mut self, schema: &Json, node: &Node, pairs: &[(Node, Node)], path: &str) -> Json {
        let mut object = Map::new();
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let others = Some(&schema["additionalProperties"]).filter(|others| others.is_object());
        if !self.within(schema, ["minProperties", "maxProperties"], pairs.len(), "entries", node, path) {
            return Json::Object(object);
        }
        for (key, value) in pairs {
            let Some(name) = key.as_str() else {
                self.refuse(path, &format!("has a key that is not a string: {}", key.what()), key).hint =
                    Some("put it in quotes".to_owned());
                continue;
            };
            let Some(schema) = properties.get(name).or(others) else {
                match self.is_full() {
                    true => self.left_out = Some(Diagnostic::new("more", None)),
                    false => self.complaints.push(unknown(key, path, properties.keys().map(String::as_str))),
                }
                continue;
            };
            object.insert(name.to_owned(), self.value(schema, value, &format!("{path}.{name}")));
        }
        for (name, schema) in properties.iter().filter(|(_, schema)| !schema["default"].is_null()) {
            object.entry(name.clone()).or_insert_with(|| schema["default"].clone());
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !pairs.iter().any(|(key, _)| key.as_str() == Some(name)) {
                let what = properties.get(name).and_then(|schema| schema["description"].as_str());
                self.refuse(path, &format!("has no {name}"), node).hint =
                    what.map(|what| format!("{name}: {}", first_sentence(what)));
            }
        }
        Json::Object(object)
    }

    fn array(&mut self, schema: &Json, node: &Node, items: &[Node], path: &str) -> Json {
        if !self.within(schema, ["minItems", "maxItems"], items.len(), "items", node, path) {
            return Json::Array(Vec::new());
        }
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            list.push(self.value(&schema["items"], item, &format!("{path}[{index}]")));
        }
        let keys = schema["x-kubernetes-list-map-keys"].as_array();
        let identity = |item: &Json| match keys {
            Some(keys) => Json::from_iter(keys.iter().filter_map(Json::as_str).map(|key| item[key].clone())),
            None => item.clone(),
        };
        if matches!(schema["x-kubernetes-list-type"].as_str(), Some("set" | "map")) {
            let mut seen = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                if !seen.insert(identity(&list[index]).to_string()) {
                    let what = list[index]["name"].as_str().or(list[index].as_str()).unwrap_or_default();
                    self.refuse(&format!("{path}[{index}]"), &format!("duplicates an earlier item: {what:?}"), item);
                }
            }
        }
        Json::Array(list)
    }

    fn string(&mut self, schema: &Json, node: &Node, text: &str, path: &str) -> Json {
        self.within(schema, ["minLength", "maxLength"], text.chars().count(), "characters", node, path);
        if let Some(pattern) = schema["pattern"].as_str() {
            // Compiling one takes longer than all that it is used for.
            if !self.patterns.contains_key(pattern) {
                self.patterns.insert(pattern.to_owned(), Regex::new(pattern).ok());
            }
            let regex = self.patterns.get(pattern).and_then(Option::as_ref);
            let fits = regex.is_some_and(|regex| regex.is_match(text).unwrap_or(false));
            if !fits {
                let wanted = match pattern {
                    ONE_LINE => "must be one line without control characters".to_owned(),
                    pattern => format!("must match {pattern}"),
                };
                self.refuse(path, &format!("{wanted}, this is {}", node.what()), node);
            }
        }
        Json::from(text)
    }

    fn integer(&mut self, schema: &Json, node: &Node, value: i64, path: &str) -> Json {
        let bound = |name: &str| schema[name].as_f64();
        #[expect(clippy::cast_precision_loss, reason = "limits in schemas are small")]
        let number = value as f64;
        let least = bound("minimum").filter(|least| number < *least).map(|least| format!("at least {least}"));
        let most = bound("maximum").filter(|most| number > *most).map(|most| format!("at most {most}"));
        if let Some(bound) = least.or(most) {
            self.refuse(path, &format!("must be {bound}, this is {value}"), node);
        }
        Json::from(value)
    }

    /// Checks a length against its bounds. Whether it is not too long.
    fn within(&mut self, schema: &Json, names: [&str; 2], length: usize, what: &str, node: &Node, path: &str) -> bool {
        let bound = |name: &str| schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok());
        if length == 0 && bound(names[0]) == Some(1) {
            self.refuse(path, "must not be empty", node);
            return true;
        }
        let least = bound(names[0]).filter(|least| length < *least).map(|least| format!("at least {least}"));
        let most = bound(names[1]).filter(|most| length > *most).map(|most| format!("at most {most}"));
        let is_short = most.is_none();
        if let Some(bound) = least.or(most) {
            self.refuse(path, &format!("must have {bound} {what}, this has {length}"), node);
        }
        is_short
    }
}

/// Whether a schema is that of a reference to a secret.
fn is_reference(schema: &Json) -> bool {
    ["vault", "command"].iter().all(|place| !schema["properties"][place].is_null())
}

fn first_sentence(text: &str) -> &str {
    text.split(['.', ';', '\n']).next().unwrap_or(text)
}
