//! `assert`: fails unless every condition holds.

use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assert {
    that: Value,
    fail_msg: Option<Value>,
    success_msg: Option<Value>,
    quiet: bool,
}

impl Local for Assert {
    const DOC: Doc = Doc {
        name: "assert",
        collection: "ansible.builtin",
        summary: "Fail unless all conditions are true",
        arguments: &[
            Argument::new("that", ArgumentKind::Any, "A condition or a list of them, without braces, as in when")
                .required(),
            Argument::new("fail_msg", ArgumentKind::Any, "The message if a condition is false").alias(&["msg"]),
            Argument::new("success_msg", ArgumentKind::Any, "The message if all conditions are true"),
            Argument::new("quiet", ArgumentKind::Bool, "Whether to print less").default("false"),
        ],
        free_form: None,
        example: "\
- name: Check that the number of members is odd
  assert:
    that:
      - members | length is odd
      - members | length < 8
    fail_msg: an even number of members is no safer than one less
  vars:
    members: [a, b, c]
",
        returns: &[
            Return::new("assertion", "The condition that is false"),
            Return::new("evaluated_to", "What it is: false"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        for condition in conditions(&self.that) {
            if !here.templar.condition(&condition, None, here.scope)? {
                let message = text(self.fail_msg.as_ref(), "Assertion failed");
                let outcome = Outcome::default().with("assertion", condition).with("evaluated_to", false);
                return Ok(ModuleResult::unchanged(Outcome { failed: Some(message), ..outcome }));
            }
        }
        let message = text(self.success_msg.as_ref(), "All assertions passed");
        // The result has the message; with quiet the report does not show it.
        Ok(ModuleResult::unchanged(match self.quiet {
            true => Outcome::default().with("msg", message),
            false => Outcome::default().message(message),
        }))
    }
}

fn conditions(that: &Value) -> Vec<Value> {
    match that.kind() {
        minijinja::value::ValueKind::Seq => that.try_iter().map(Iterator::collect).unwrap_or_default(),
        _ => vec![that.clone()],
    }
}

/// A message; a list of messages is joined line by line.
fn text(message: Option<&Value>, otherwise: &str) -> String {
    let Some(message) = message else { return otherwise.to_owned() };
    let lines: Vec<String> = conditions(message).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn a_lone_condition_is_a_list_of_one() {
        assert_eq!(conditions(&Value::from("a == 1")), vec![Value::from("a == 1")]);
        assert_eq!(conditions(&Value::from(vec!["a", "b"])).len(), 2);
        assert_eq!(conditions(&Value::from(true)), vec![Value::from(true)]);
    }

    #[tokio::test]
    async fn the_first_condition_that_does_not_hold_is_named() {
        let mut bench = Bench::new().await;
        bench.vars("{n: 3}");
        let good = bench.run("assert: {that: [n == 3, n is odd]}").await.unwrap();
        assert_eq!(good.outcome.message.as_deref(), Some("All assertions passed"));
        let bad = bench.run("assert: {that: [n == 3, n > 3], fail_msg: 'n is {{ n }}'}").await.unwrap();
        assert_eq!(bad.outcome.failed.as_deref(), Some("n is 3"));
        assert_eq!(value(&bad.outcome, "assertion"), "n > 3");
        assert_eq!(value(&bad.outcome, "evaluated_to"), "False");
        assert!(bench.failure("assert: {that: nowhere == 1}").await.contains("nowhere"));
        bench.close().await;
    }
}
