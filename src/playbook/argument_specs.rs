//! A role's own description of what it takes: `meta/argument_specs.yml`, or `argument_specs` in `meta/main.yml`.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;

use super::inherit::InheritedKeywords;
use super::loader::LoadState;
use super::{Action, Role, SourceValue, Step, Task};
use crate::value::Value;
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

impl LoadState<'_> {
    /// The entry of the description that fits the tasks in use: `main`, or `tasks_from` as it is written.
    pub(super) fn argument_spec(
        &mut self,
        path: &Path,
        in_meta: Option<&Node>,
        tasks: Option<&str>,
    ) -> Option<SourceValue> {
        let files = ["argument_specs.yml", "argument_specs.yaml", "argument_specs.json"];
        let file = files.iter().map(|name| path.join("meta").join(name)).find(|file| file.is_file());
        let tree = file.and_then(|file| self.load_file(&file));
        let specs = match &tree {
            // The key may be left out of a file of that name.
            Some(tree) => tree.get("argument_specs").unwrap_or(tree),
            None => in_meta?,
        };
        if !matches!(specs.kind, NodeKind::Map(_)) {
            let message = format!("\"argument_specs\" must be a mapping, this is {}", specs.what());
            self.complain(Diagnostic::new(message, Some(&specs.origin)));
            return None;
        }
        let entry = specs.get(tasks.unwrap_or("main"))?;
        let value = entry.to_value(&self.loader.keyring);
        Some(SourceValue { value: self.collect(value)?, origin: entry.origin.clone() })
    }

    /// The task that checks a role's arguments before its first, if there is a module that can.
    pub(super) fn validation(
        &mut self,
        role: &Arc<Role>,
        tasks: Option<&str>,
        around: &InheritedKeywords,
    ) -> Option<Step> {
        let spec = role.argument_spec.as_ref()?;
        let doc = self.loader.known.module("validate_argument_spec")?;
        let entry = tasks.unwrap_or("main");
        let options = spec.value.get_attr("options").ok().filter(|options| !options.is_undefined());
        let written = |value: Value| SourceValue { value, origin: spec.origin.clone() };
        let provided = role.params.iter().map(|(name, value)| (name.clone(), value.clone()));
        let facts = [
            ("type", Value::from("role")),
            ("name", Value::from(role.name.clone())),
            ("argument_spec_name", Value::from(entry)),
            ("path", Value::from(role.path.display().to_string())),
        ];
        let given = [
            ("argument_spec", options.unwrap_or_else(|| Value::from_pairs(Vec::<(Value, Value)>::new()))),
            ("provided_arguments", Value::from_pairs(provided.map(|(name, value)| (Value::from(name), value)))),
            ("validate_args_context", Value::from_pairs(facts.map(|(name, value)| (Value::from(name), value)))),
        ];
        let known = given.into_iter().filter(|(name, _)| doc.argument(name).is_some());
        let args: IndexMap<Arc<str>, SourceValue> = known.map(|(name, value)| (name.into(), written(value))).collect();
        let mut name = format!("Validating arguments against arg spec '{entry}'");
        let about = spec.value.get_attr("short_description").ok();
        if let Some(about) = about.as_ref().and_then(Value::as_str) {
            name += &format!(" - {about}");
        }
        let mut keywords = (*around.keywords).clone();
        keywords.tags.push("always".into());
        let action = Action { doc, written: format!("{}.{}", doc.collection, doc.name).into(), args, more_args: None };
        let name = Some(Value::from(name));
        let mut task =
            Task::plain_task(spec.origin.clone(), name, action, Arc::new(keywords), around.directory.clone());
        task.role = Some(role.clone());
        Some(Step::Task(Arc::new(task)))
    }
}
