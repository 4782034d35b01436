//! What a result holds, as Ansible's callbacks show it.

use serde_json::{Map, Value as Plain, json};

use super::json::dumped;
use crate::engine::{Status, TaskResult};
use crate::report::to_json;
use crate::value::{Value, yaml};

/// What replaces a result under `no_log`; programs that read this format look for it.
const CENSORED: &str = "the output has been hidden due to the fact that 'no_log: true' was specified for this result";

/// Whose values are always shown, and a line for each.
const TALKATIVE: &[&str] = &["debug", "assert"];

/// Modules whose results are hundreds of facts; reports omit them.
const TACITURN: &[&str] = &["setup", "gather_facts"];

/// What `debug` shows of its own result with `var`.
const NOT_OF_DEBUG: &[&str] = &[
    "changed",
    "failed",
    "skipped",
    "invocation",
    "skip_reason",
    "ansible_loop_var",
    "ansible_index_var",
    "ansible_loop",
];

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultFormat {
    /// YAML (`callback_result_format`); otherwise JSON.
    pub yaml: bool,
    /// A line for each entry (`callback_format_pretty`); None: as the verbosity says.
    pub pretty: Option<bool>,
}

/// Whether a good or skipped result is shown with its values.
pub(super) fn is_shown(action: &str, result: &TaskResult, verbosity: u8) -> bool {
    let talks = TALKATIVE.contains(&action) && result.status != Status::Skipped;
    (verbosity > 0 || talks) && !TACITURN.contains(&action)
}

/// The result as text. `whole`: the result of a loop whose items were reported one by one.
pub(super) fn result_text(
    action: &str,
    result: &TaskResult,
    whole: bool,
    verbosity: u8,
    shape: ResultFormat,
) -> String {
    let talks = TALKATIVE.contains(&action) && result.status != Status::Skipped && !result.no_log;
    let mut object = object(result, verbosity);
    // A loop without items has no results either.
    if whole || object.contains_key("skipped_reason") {
        object.remove("results");
    }
    if action == "debug" && !result.no_log {
        only_of_debug(&mut object);
    }
    let indented = shape.pretty.unwrap_or(shape.yaml || talks || verbosity > 2);
    match shape.yaml {
        true => as_yaml(object),
        false => dumped(&Plain::Object(object), indented),
    }
}

/// Reduces a result of `debug` to the requested values.
pub(super) fn only_of_debug(object: &mut Map<String, Plain>) {
    match object.contains_key("msg") {
        true => object.retain(|name, _| name == "msg"),
        false => object.retain(|name, _| !NOT_OF_DEBUG.contains(&name.as_str())),
    }
}

/// The result as one object: return values, `changed` and what goes with how it ended.
pub(super) fn object(result: &TaskResult, verbosity: u8) -> Map<String, Plain> {
    let mut object: Map<String, Plain> =
        result.values.iter().map(|(name, value)| (name.to_string(), to_json(value))).collect();
    object.remove("failed");
    object.remove("skipped");
    object.insert("changed".into(), json!(result.changed));
    if result.no_log {
        object.insert("censored".into(), json!(CENSORED));
    }
    if let Some(message) = &result.message {
        object.entry("msg").or_insert_with(|| json!(message));
    }
    if result.status == Status::Unreachable {
        object.insert("unreachable".into(), json!(true));
    }
    if verbosity > 2 && !result.diff.is_empty() {
        let part = |diff: &crate::modules::Diff| {
            json!({"after": diff.after, "after_header": diff.after_header, "before": diff.before,
                "before_header": diff.before_header})
        };
        object.insert("diff".into(), result.diff.iter().map(part).collect());
    }
    object
}

/// Indented by four below the line that it belongs to; lines that the text already contains are omitted.
fn as_yaml(mut object: Map<String, Plain>) -> String {
    for (text, lines) in [("stdout", "stdout_lines"), ("stderr", "stderr_lines")] {
        if object.contains_key(text) && object.contains_key(lines) {
            object.insert(lines.into(), json!("<omitted>"));
        }
    }
    let value: Value = serde_json::from_value(Plain::Object(object)).unwrap_or_default();
    let style = yaml::YamlStyle { indent: 4, ..yaml::YamlStyle::default() };
    let text = yaml::emit(&value, &style);
    text.lines().map(|line| format!("\n{}{line}", if line.is_empty() { "" } else { "    " })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_run;
    use crate::value::Vars;

    fn shown(action: &str, values: &[(&str, &str)], verbosity: u8) -> String {
        let values: Vars = values.iter().map(|(name, value)| ((*name).into(), Value::from(*value))).collect();
        result_text(
            action,
            &TaskResult { values, ..example_run::result(Status::Ok) },
            false,
            verbosity,
            ResultFormat::default(),
        )
    }

    #[test]
    fn of_debug_only_what_it_was_asked_for_is_shown() {
        assert_eq!(shown("debug", &[("msg", "m"), ("item", "i")], 0), "{\n    \"msg\": \"m\"\n}");
        assert_eq!(shown("debug", &[("x", "1"), ("ansible_loop_var", "item")], 0), "{\n    \"x\": \"1\"\n}");
        assert_eq!(shown("ping", &[("ping", "pong")], 1), r#"{"changed": false, "ping": "pong"}"#);
    }

    #[test]
    fn facts_are_shown_to_nobody_and_a_skipped_debug_is_like_any_other() {
        assert!(!is_shown("setup", &example_run::result(Status::Ok), 4));
        assert!(is_shown("debug", &example_run::result(Status::Ok), 0));
        assert!(!is_shown("debug", &example_run::result(Status::Skipped), 0));
    }

    #[test]
    fn under_no_log_it_is_said_that_something_is_hidden() {
        let result = TaskResult { no_log: true, ..example_run::result(Status::Changed) };
        let reported = result_text("command", &result, false, 1, ResultFormat::default());
        assert_eq!(reported, format!(r#"{{"censored": "{CENSORED}", "changed": true}}"#));
    }

    #[test]
    fn yaml_stands_below_the_line_and_says_nothing_twice() {
        let values = Vars::from([("stdout".into(), Value::from("x")), ("stdout_lines".into(), Value::from(vec!["x"]))]);
        let result = TaskResult { values, ..example_run::result(Status::Changed) };
        let reported = result_text("command", &result, false, 1, ResultFormat { yaml: true, pretty: None });
        assert_eq!(reported, "\n    changed: true\n    stdout: x\n    stdout_lines: <omitted>");
    }
}
