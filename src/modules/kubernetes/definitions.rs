//! Objects as they are written: inline, in files, in templates; many documents in one, and lists of objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use minijinja::value::ValueKind;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::modules::{Controller, Error, vault_file};
use crate::template::Options;
use crate::value::Value;
use crate::value::origin::Source;
use crate::value::yaml::{self, Node};

/// One object that is wanted, or unwanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
    /// As it goes to the API.
    pub body: Json,
}

/// What a task says in place of, or beside, a definition.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DefinitionArguments<'a> {
    pub api_version: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub name: Option<&'a str>,
    pub namespace: Option<&'a str>,
}

impl Object {
    /// `Deployment web`, for messages.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// The kind that this object defines, if it is a CustomResourceDefinition: group and kind.
    pub(crate) fn defines(&self) -> Option<(&str, &str)> {
        let spec = (self.kind == "CustomResourceDefinition").then(|| self.body.get("spec"))??;
        Some((spec.get("group")?.as_str()?, spec.get("names")?.get("kind")?.as_str()?))
    }

    fn new(mut body: Json, given: DefinitionArguments<'_>) -> Result<Object, Error> {
        let fields = body.as_object_mut().ok_or_else(|| Error::failed("a definition must be a mapping"))?;
        let mut take = |name: &str, given: Option<&str>| {
            if let (None | Some(Json::Null), Some(given)) = (fields.get(name), given) {
                fields.insert(name.to_owned(), given.into());
            }
            fields.get(name).and_then(Json::as_str).map(str::to_owned)
        };
        let kind = take("kind", given.kind).ok_or_else(|| Error::failed("a definition has no kind"))?;
        let api_version = take("apiVersion", given.api_version)
            .ok_or_else(|| Error::failed(format!("the definition of a {kind} has no apiVersion")))?;
        let metadata = fields.entry("metadata").or_insert_with(|| Json::Object(Map::new()));
        let metadata = metadata
            .as_object_mut()
            .ok_or_else(|| Error::failed(format!("the metadata of a {kind} must be a mapping")))?;
        let mut take = |name: &str, given: Option<&str>| {
            if let (None | Some(Json::Null), Some(given)) = (metadata.get(name), given) {
                metadata.insert(name.to_owned(), given.into());
            }
            metadata.get(name).and_then(Json::as_str).map(str::to_owned)
        };
        let name = take("name", given.name)
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Error::failed(format!("the definition of a {kind} has no name")))?;
        let namespace = take("namespace", given.namespace);
        // Written by hand or exported, it would be a condition on the object's past.
        for of_the_server in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
            metadata.remove(of_the_server);
        }
        Ok(Object { api_version, kind, name, namespace, body })
    }
}

/// The objects of an inline definition: a mapping, a list of them, or YAML text.
pub(super) fn inline(definition: &Value, given: DefinitionArguments<'_>) -> Result<Vec<Object>, Error> {
    if let Some(text) = definition.as_str() {
        return of_text(text, Path::new("definition"), given);
    }
    let json = Json::deserialize(definition.clone()).map_err(|_| Error::failed("the definition is not valid data"))?;
    match definition.kind() {
        ValueKind::Seq => objects(json.as_array().cloned().unwrap_or_default(), given),
        _ => objects(vec![json], given),
    }
}

/// The objects of a file of the controller, its text taken as it is.
pub(super) async fn of_file(
    name: &str,
    here: &Controller<'_>,
    given: DefinitionArguments<'_>,
) -> Result<Vec<Object>, Error> {
    let path = here.find_file("files", name)?;
    let text = text(&path, here).await?;
    of_text(&text, &path, given)
}

/// The objects of a rendered template.
pub(super) async fn of_template(
    name: &str,
    here: &Controller<'_>,
    given: DefinitionArguments<'_>,
) -> Result<Vec<Object>, Error> {
    let path = here.find_file("templates", name)?;
    let text = text(&path, here).await?;
    let mut search: Vec<PathBuf> =
        here.search.iter().flat_map(|directory| [directory.join("templates"), directory.clone()]).collect();
    search.extend(path.parent().map(Path::to_owned));
    let options = Options { trim_blocks: true, keep_trailing_newline: true, search, ..Options::default() };
    let rendered = here.templar.render_file(&text, &path, &options, here.scope)?;
    of_text(&rendered, &path, given)
}

/// The object that is meant by its name alone.
pub(super) fn object_from_arguments(given: DefinitionArguments<'_>) -> Result<Object, Error> {
    Object::new(Json::Object(Map::new()), given)
}

async fn text(path: &Path, here: &Controller<'_>) -> Result<String, Error> {
    let bytes = vault_file::read_decrypted(here, path).await?;
    String::from_utf8(bytes).map_err(|_| Error::failed(format!("{} is not UTF-8", path.display())))
}

fn of_text(text: &str, path: &Path, given: DefinitionArguments<'_>) -> Result<Vec<Object>, Error> {
    let source = Arc::new(Source::new(path, text));
    let documents = yaml::parse_yaml(&source)
        .map_err(|complaint| Error::Failed { message: complaint.to_string(), hint: complaint.hint })?;
    let named = |error: Error| match error {
        Error::Failed { message, hint } => Error::Failed { message: format!("{}: {message}", path.display()), hint },
        other => other,
    };
    objects(documents.iter().map(Node::to_json).collect(), given).map_err(named)
}

/// Empty documents are skipped; lists of any kind count as what is in them.
fn objects(bodies: Vec<Json>, given: DefinitionArguments<'_>) -> Result<Vec<Object>, Error> {
    let mut found = Vec::new();
    for mut body in bodies {
        let is_list = body.get("kind").and_then(Json::as_str).is_some_and(|kind| kind.ends_with("List"));
        match body.get_mut("items").map(Json::take) {
            Some(Json::Array(items)) if is_list => found.extend(objects(items, given)?),
            Some(items) => {
                body["items"] = items;
                found.push(Object::new(body, given)?);
            }
            None if body.is_null() => {}
            None => found.push(Object::new(body, given)?),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, given: DefinitionArguments<'_>) -> Result<Vec<Object>, Error> {
        of_text(text, Path::new("x.yml"), given)
    }

    #[test]
    fn documents_and_lists_become_objects_in_the_order_written() {
        let text = "
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}, data: {x: '{{ kept }}'}}
- {apiVersion: v1, kind: Secret, metadata: {name: c}}
";
        let given = DefinitionArguments { namespace: Some("n"), ..DefinitionArguments::default() };
        let objects = parsed(text, given).unwrap();
        let labels: Vec<_> = objects.iter().map(Object::label).collect();
        assert_eq!(labels, ["Namespace a", "ConfigMap b", "Secret c"]);
        assert_eq!(objects[1].namespace.as_deref(), Some("a"));
        assert_eq!(objects[2].namespace.as_deref(), Some("n"));
        assert_eq!(objects[1].body["data"]["x"], "{{ kept }}");
    }

    #[test]
    fn what_an_exported_object_says_of_its_past_is_left_out() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: '5', uid: x}}";
        let objects = parsed(text, DefinitionArguments::default()).unwrap();
        assert_eq!(objects[0].body["metadata"], serde_json::json!({"name": "a"}));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, complaint) in [
            ("{apiVersion: v1}", "x.yml: a definition has no kind"),
            ("{kind: ConfigMap}", "x.yml: the definition of a ConfigMap has no apiVersion"),
            ("{apiVersion: v1, kind: ConfigMap}", "x.yml: the definition of a ConfigMap has no name"),
            ("just a text", "x.yml: a definition must be a mapping"),
        ] {
            assert_eq!(parsed(text, DefinitionArguments::default()).unwrap_err().to_string(), complaint);
        }
    }
}
