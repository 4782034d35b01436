//! A few modules and a small template language, enough to load with.

use std::path::Path;

use crate::playbook::load::{Known, Words};
use crate::value::doc::{ANY_NAME, Argument, Doc, Kind};
use crate::value::origin::Complaint;
use crate::value::{Origin, Template, Value, Vars};

pub(super) struct Few;

const fn of(name: &'static str, arguments: &'static [Argument], free_form: Option<&'static str>) -> Doc {
    Doc { name, collection: "ansible.builtin", summary: "", arguments, free_form, example: "", returns: &[] }
}

static DOCS: &[Doc] = &[
    of("assert", &[Argument::new("that", Kind::List(&Kind::Any), "").required()], None),
    of(
        "command",
        &[
            Argument::new("cmd", Kind::Str, ""),
            Argument::new("argv", Kind::List(&Kind::Str), ""),
            Argument::new("chdir", Kind::Path, ""),
            Argument::new("creates", Kind::Path, ""),
        ],
        Some("cmd"),
    ),
    of(
        "copy",
        &[
            Argument::new("dest", Kind::Path, "").required(),
            Argument::new("src", Kind::Path, ""),
            Argument::new("content", Kind::Any, ""),
            Argument::new("mode", Kind::Mode, ""),
            Argument::new("backup", Kind::Bool, ""),
        ],
        None,
    ),
    of("debug", &[Argument::new("msg", Kind::Any, ""), Argument::new("var", Kind::Str, "")], None),
    of(
        "file",
        &[
            Argument::new("path", Kind::Path, "").alias(&["dest", "name"]).required(),
            Argument::new("state", Kind::Str, "").choices(&["absent", "directory", "file", "touch"]),
            Argument::new("recurse", Kind::Bool, ""),
        ],
        None,
    ),
    of("meta", &[Argument::new("free_form", Kind::Str, "").required()], Some("free_form")),
    of("ping", &[Argument::new("data", Kind::Str, "")], None),
    of("set_fact", &[Argument::new("cacheable", Kind::Bool, ""), Argument::new(ANY_NAME, Kind::Any, "")], None),
    of("setup", &[Argument::new("gather_subset", Kind::List(&Kind::Str), "")], None),
    of(
        "user",
        &[
            Argument::new("name", Kind::Str, "").required(),
            Argument::new("uid", Kind::Int, ""),
            Argument::new("groups", Kind::List(&Kind::Str), ""),
        ],
        None,
    ),
    of(
        "validate_argument_spec",
        &[Argument::new("argument_spec", Kind::Dict, ""), Argument::new("provided_arguments", Kind::Dict, "")],
        None,
    ),
];

/// The name in a lone `{{ name }}`.
fn name_in(template: &Template) -> &str {
    template.source.trim_start_matches("{{").trim_end_matches("}}").trim()
}

impl Known for Few {
    fn module(&self, name: &str) -> Option<&'static Doc> {
        let short = name.strip_prefix("ansible.builtin.").unwrap_or(name);
        DOCS.iter().find(|doc| doc.name == short)
    }

    fn own_module(&self, name: &str, file: &Path) -> Result<&'static Doc, (String, &'static str)> {
        Err((format!("{name} in {} is none", file.display()), "take another"))
    }

    fn own_words(&self, _: &Words) {}

    fn refuses_async(&self, _: &'static Doc, _: bool) -> Option<(String, &'static str)> {
        None
    }

    fn modules(&self) -> Vec<&'static str> {
        DOCS.iter().map(|doc| doc.name).collect()
    }

    fn check(&self, value: &Value) -> Result<(), Complaint> {
        if let Some(template) = value.downcast_object_ref::<Template>() {
            let balanced = template.source.matches("{{").count() == template.source.matches("}}").count();
            let complaint = || Complaint::new("template is not closed", template.origin.as_ref());
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

    fn check_expression(&self, expression: &str, origin: &Origin) -> Result<(), Complaint> {
        let wrong = expression.trim().ends_with("==");
        if wrong { Err(Complaint::new("the expression ends too early", Some(origin))) } else { Ok(()) }
    }

    fn render(&self, value: &Value, vars: &Vars) -> Result<Value, Complaint> {
        let Some(template) = value.downcast_object_ref::<Template>() else { return Ok(value.clone()) };
        let mut text = template.source.to_string();
        if let Some(found) = vars.get(name_in(template)) {
            return Ok(found.clone());
        }
        for (name, value) in vars {
            text = text.replace(&format!("{{{{ {name} }}}}"), &value.to_string());
        }
        match text.contains("{{") {
            true => Err(Complaint::new(format!("{:?} is undefined", name_in(template)), template.origin.as_ref())),
            false => Ok(Value::from(text)),
        }
    }
}
