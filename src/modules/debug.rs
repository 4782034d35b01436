//! `debug`: shows a message or a variable.

use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::template;
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Debug {
    /// Nothing is a message, too.
    #[serde(default, deserialize_with = "given")]
    msg: Option<Value>,
    var: Option<String>,
    verbosity: u8,
}

impl Local for Debug {
    const DOC: Doc = Doc {
        name: "debug",
        collection: "ansible.builtin",
        summary: "Show a message or a variable",
        arguments: &[
            Argument::new(
                "msg",
                ArgumentKind::Any,
                "The message (default \"Hello world!\" if var is not given either)",
            ),
            Argument::new("var", ArgumentKind::Str, "The variable or expression to show, without braces"),
            Argument::new("verbosity", ArgumentKind::Int, "Shown only with at least this many -v").default("0"),
        ],
        free_form: None,
        example: "\
- name: Show the name of the host
  debug:
    msg: This is {{ inventory_hostname }}
- name: Show a variable
  debug:
    var: inventory_hostname
",
        returns: &[Return::new("msg", "The message; with var, the value is returned under the name of the expression")],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        if self.msg.is_some() && self.var.is_some() {
            return Err(Error::failed("only msg or var can be given, not both"));
        }
        if self.verbosity > here.verbosity {
            let outcome = Outcome { skipped: true, ..Outcome::default() };
            return Ok(ModuleResult::unchanged(outcome.with("skipped_reason", "Verbosity threshold not met.")));
        }
        Ok(ModuleResult::unchanged(match &self.var {
            Some(expression) => Outcome::default().with(expression, shown(expression, here)?),
            None => Outcome::default().with("msg", self.msg.clone().unwrap_or_else(|| Value::from("Hello world!"))),
        }))
    }
}

fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// The value of an expression; what is undefined is shown as such, it is no error.
fn shown(expression: &str, here: &Controller<'_>) -> Result<Value, Error> {
    let found = here.templar.expression_value(expression, None, here.scope);
    let rendered = found.and_then(|value| match value.is_undefined() {
        true => Err(template::Error::Undefined { name: expression.to_owned(), origin: None }),
        false => here.templar.render(&value, here.scope),
    });
    match rendered {
        Err(error @ (template::Error::Undefined { .. } | template::Error::Hint { .. })) => {
            Ok(Value::from(format!("VARIABLE IS NOT DEFINED!: {error}")))
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn a_message_or_a_variable_is_shown() {
        let mut bench = Bench::new().await;
        bench.vars("{a: {b: [1, 2]}}");
        let shown = async |task: &str, name: &str| value(&bench.run(task).await.unwrap().outcome, name);
        assert_eq!(shown("debug: {msg: 'a is {{ a.b[1] }}'}", "msg").await, "a is 2");
        assert_eq!(shown("debug:", "msg").await, "Hello world!");
        assert_eq!(shown("debug: {msg: null}", "msg").await, "None");
        assert_eq!(shown("debug: {var: a.b | length}", "a.b | length").await, "2");
        assert!(shown("debug: {var: nowhere}", "nowhere").await.starts_with("VARIABLE IS NOT DEFINED!"));
        let quiet = bench.run("debug: {msg: x, verbosity: 2}").await.unwrap();
        assert!(quiet.outcome.skipped);
        assert!(bench.failure("debug: {msg: x, var: a}").await.contains("not both"));
        bench.close().await;
    }
}
