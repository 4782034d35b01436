//! A few modules and a small template language, enough to load with.

use std::path::Path;

use crate::playbook::load::{LoaderContext, OwnPrograms};
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, Doc};
use crate::value::origin::Diagnostic;
use crate::value::{Origin, Template, Value, Vars};

pub(super) struct Few;

const fn of(name: &'static str, arguments: &'static [Argument], free_form: Option<&'static str>) -> Doc {
    Doc { name, collection: "ansible.builtin", summary: "", arguments, free_form, example: "", returns: &[] }
}

static DOCS: &[Doc] = &[
    of("assert", &[Argument::new("that", ArgumentKind::List(&ArgumentKind::Any), "").required()], None),
    of(
        "command",
        &[
            Argument::new("cmd", ArgumentKind::Str, ""),
            Argument::new("argv", ArgumentKind::List(&ArgumentKind::Str), ""),
            Argument::new("chdir", ArgumentKind::Path, ""),
            Argument::new("creates", ArgumentKind::Path, ""),
        ],
        Some("cmd"),
    ),
    of(
        "copy",
        &[
            Argument::new("dest", ArgumentKind::Path, "").required(),
            Argument::new("src", ArgumentKind::Path, ""),
            Argument::new("content", ArgumentKind::Any, ""),
            Argument::new("mode", ArgumentKind::Mode, ""),
            Argument::new("backup", ArgumentKind::Bool, ""),
        ],
        None,
    ),
    of("debug", &[Argument::new("msg", ArgumentKind::Any, ""), Argument::new("var", ArgumentKind::Str, "")], None),
    of(
        "file",
        &[
            Argument::new("path", ArgumentKind::Path, "").alias(&["dest", "name"]).required(),
            Argument::new("state", ArgumentKind::Str, "").choices(&["absent", "directory", "file", "touch"]),
            Argument::new("recurse", ArgumentKind::Bool, ""),
        ],
        None,
    ),
    of("meta", &[Argument::new("free_form", ArgumentKind::Str, "").required()], Some("free_form")),
    of("ping", &[Argument::new("data", ArgumentKind::Str, "")], None),
    of(
        "set_fact",
        &[Argument::new("cacheable", ArgumentKind::Bool, ""), Argument::new(ANY_NAME, ArgumentKind::Any, "")],
        None,
    ),
    of("setup", &[Argument::new("gather_subset", ArgumentKind::List(&ArgumentKind::Str), "")], None),
    of(
        "user",
        &[
            Argument::new("name", ArgumentKind::Str, "").required(),
            Argument::new("uid", ArgumentKind::Int, ""),
            Argument::new("groups", ArgumentKind::List(&ArgumentKind::Str), ""),
        ],
        None,
    ),
    of(
        "validate_argument_spec",
        &[
            Argument::new("argument_spec", ArgumentKind::Dict, ""),
            Argument::new("provided_arguments", ArgumentKind::Dict, ""),
        ],
        None,
    ),
];

/// The name in a lone `{{ name }}`.
fn name_in(template: &Template) -> &str {
    template.source.trim_start_matches("{{").trim_end_matches("}}").trim()
}

impl LoaderContext for Few {
    fn module(&self, name: &str) -> Option<&'static Doc> {
        let short = name.strip_prefix("ansible.builtin.").unwrap_or(name);
        DOCS.iter().find(|doc| doc.name == short)
    }

    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)> {
        Err((format!("{name} in {} is none", file.display()), "take another"))
    }

    fn own_words(&self, _: &OwnPrograms) {}

    fn refuses_async(&self, _: &'static Doc, _: bool) -> Option<(String, &'static str)> {
        None
    }

    fn modules(&self) -> Vec<&'static str> {
        DOCS.iter().map(|doc| doc.name).collect()
    }

    fn check(&self, value: &Value) -> Result<(), Diagnostic> {
        if let Some(template) = value.downcast_object_ref::<Template>() {
            let balanced = template.source.matches("{{").count() == template.source.matches("}}").count();
            let complaint = || Diagnostic::new("template is not closed", template.origin.as_ref());
            return if balanced { Ok(()) } else { Err(complaint()) };
        }
        if value.as_str().is_some() {
            return Ok(());
        }
        let is_map = value.kind() == minijinja::value::ValueKind::Map;
        for item in value.try_iter().into_iter().flatten() {
            self.check(&if is_map { value.get_item(&item).unwrap() } else { item })?;
        }
        Ok(())
    }

    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Diagnostic> {
        let wrong = expression.trim().ends_with("==");
        if wrong { Err(Diagnostic::new("the expression ends too early", Some(origin))) } else { Ok(()) }
    }

    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Diagnostic> {
        let Some(template) = value.downcast_object_ref::<Template>() else { return Ok(value.clone()) };
        let mut text = template.source.to_string();
        if let Some(found) = vars.get(name_in(template)) {
            return Ok(found.clone());
        }
        for (name, value) in vars {
            text = text.replace(&format!("{{{{ {name} }}}}"), &value.to_string());
        }
        match text.contains("{{") {
            true => Err(Diagnostic::new(format!("{:?} is undefined", name_in(template)), template.origin.as_ref())),
            false => Ok(Value::from(text)),
        }
    }
}
