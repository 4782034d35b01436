//! `validate_argument_spec`: checks that variables match a specification. The loader inserts it before the tasks
//! of a role that has `meta/argument_specs.yml`.

mod check;
mod spec;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use check::ArgumentCheck;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidateArgumentSpec {
    argument_spec: Value,
    provided_arguments: IndexMap<String, Value>,
    validate_args_context: Value,
}

impl Local for ValidateArgumentSpec {
    const DOC: Doc = Doc {
        name: "validate_argument_spec",
        collection: "ansible.builtin",
        summary: "Fail unless variables match an argument specification",
        arguments: &[
            Argument::new(
                "argument_spec",
                ArgumentKind::Dict,
                "Names with type, required, choices, default, elements, options",
            )
            .required(),
            Argument::new(
                "provided_arguments",
                ArgumentKind::Dict,
                "Values that override the variables of the same names",
            )
            .default("{}"),
            Argument::new(
                "validate_args_context",
                ArgumentKind::Dict,
                "The origin of the specification, returned unchanged",
            )
            .default("{}"),
        ],
        free_form: None,
        example: "\
- name: Check the arguments of the next tasks
  validate_argument_spec:
    argument_spec:
      members:
        type: list
        elements: str
        required: true
      scheme:
        choices: [http, https]
        default: https
  vars:
    members: [a, b, c]
",
        returns: &[
            Return::new("argument_errors", "A list of errors"),
            Return::new("argument_spec_data", "The specification, if there are errors"),
            Return::new("validate_args_context", "As given"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let spec = spec::options(&self.argument_spec);
        let mut values = IndexMap::new();
        for (name, _) in &spec {
            let value = match (self.provided_arguments.get(name), here.scope.get(name)) {
                (Some(value), _) => value.clone(),
                (None, Some(value)) => match here.templar.render(value, here.scope)? {
                    left_out if crate::template::is_omit(&left_out) => continue,
                    value => value,
                },
                (None, None) => continue,
            };
            values.insert(name.clone(), value);
        }
        let strangers = self.provided_arguments.iter().filter(|(name, _)| !values.contains_key(*name));
        values.extend(strangers.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>());
        let errors = ArgumentCheck::default().check_all_arguments(&spec, values);
        let outcome = Outcome::default().with("validate_args_context", self.validate_args_context.clone());
        if errors.is_empty() {
            return Ok(ModuleResult::unchanged(outcome.message("The arg spec validation passed")));
        }
        let failed = format!("Validation of arguments failed:\n{}", errors.join("\n"));
        let outcome = outcome.with("argument_spec_data", self.argument_spec.clone()).with("argument_errors", errors);
        Ok(ModuleResult::unchanged(Outcome { failed: Some(failed), ..outcome }))
    }
}
