//! Removes secrets from events, for reports and for plans: results under `no_log`, and texts that were
//! encrypted wherever they turn up.

use std::sync::Arc;

use minijinja::value::ValueKind;

use super::{CommandEvent, CommandStart, Event, TaskResult, TaskStart};
use crate::modules::{Diff, Progress};
use crate::value::{SecretTexts, Value, Vars};

/// What replaces a label, and the reason of a failure, under `no_log`.
pub const HIDDEN: &str = "(hidden by no_log)";

/// Variables that log in: their values are secrets also where a task defines them.
const LOGIN_SECRETS: &[&str] = &[
    "ansible_password",
    "ansible_ssh_password",
    "ansible_ssh_pass",
    "ansible_private_key_passphrase",
    "ansible_ssh_private_key_passphrase",
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_sudo_pass",
];

/// The event as a person may see it. Secrets that it shows for the first time are hidden from then on.
pub fn masked(event: Event, hidden: &SecretTexts) -> Event {
    if let Event::Item { result, .. } | Event::Result { result, .. } | Event::Retry { result, .. } = &event {
        note_login_secrets(&result.values, hidden);
    }
    let event = match event {
        Event::Item { task, host, delegated, label, result } => {
            let label = if result.no_log { HIDDEN.to_string() } else { label };
            Event::Item { task, host, delegated, label, result: without_secrets(result) }
        }
        Event::Result { task, host, delegated, looped, result } => {
            Event::Result { task, host, delegated, looped, result: without_secrets(result) }
        }
        Event::Retry { task, host, attempt, left, result } => {
            Event::Retry { task, host, attempt, left, result: without_secrets(result) }
        }
        other => other,
    };
    if hidden.is_empty() { event } else { Mask(hidden).event(event) }
}

/// Of `set_fact` and `include_vars`, and of `add_host`; of a loop, too.
fn note_login_secrets(values: &Vars, hidden: &SecretTexts) {
    let of_host = values.get("add_host").and_then(|host| host.get_attr("host_vars").ok());
    for defined in values.get("ansible_facts").cloned().into_iter().chain(of_host) {
        let texts = LOGIN_SECRETS.iter().filter_map(|name| defined.get_attr(name).ok());
        texts.filter_map(|text| text.as_str().map(str::to_owned)).for_each(|text| hidden.add_secret(&text));
    }
    for result in values.get("results").and_then(|results| results.try_iter().ok()).into_iter().flatten() {
        let part = |name: &str| Some((name.into(), result.get_attr(name).ok().filter(|part| !part.is_undefined())?));
        note_login_secrets(&["ansible_facts", "add_host"].iter().filter_map(|name| part(name)).collect(), hidden);
    }
}

/// Of a result under `no_log` what happened stays, and how long it took.
fn without_secrets(result: Arc<TaskResult>) -> Arc<TaskResult> {
    if !result.no_log {
        return result;
    }
    let TaskResult { status, changed, no_log, took, .. } = *result;
    Arc::new(TaskResult {
        status,
        changed,
        no_log,
        took,
        message: None,
        hint: None,
        values: Vars::new(),
        diff: Vec::new(),
    })
}

struct Mask<'a>(&'a SecretTexts);

impl Mask<'_> {
    fn event(&self, event: Event) -> Event {
        match event {
            Event::PlayStart { name, origin, hosts, check } => {
                Event::PlayStart { name: self.text(name), origin, hosts, check }
            }
            Event::NoHosts { pattern } => Event::NoHosts { pattern: self.text(pattern) },
            Event::TaskStart(task) => Event::TaskStart(self.task(task)),
            Event::TaskEnd(task) => Event::TaskEnd(self.task(task)),
            Event::HostStart { task, host } => Event::HostStart { task: self.task(task), host },
            Event::Item { task, host, delegated, label, result } => Event::Item {
                task: self.task(task),
                host,
                delegated: delegated.map(|delegate| self.text(delegate)),
                label: self.text(label),
                result: self.result(result),
            },
            Event::Result { task, host, delegated, looped, result } => Event::Result {
                task: self.task(task),
                host,
                delegated: delegated.map(|delegate| self.text(delegate)),
                looped,
                result: self.result(result),
            },
            Event::Retry { task, host, attempt, left, result } => {
                Event::Retry { task: self.task(task), host, attempt, left, result: self.result(result) }
            }
            Event::AsyncPoll { task, host, job, elapsed, limit } => {
                Event::AsyncPoll { task: self.task(task), host, job, elapsed, limit }
            }
            Event::Progress { host, progress } => {
                Event::Progress { host, progress: Progress { what: self.text(progress.what), ..progress } }
            }
            Event::Question(question) => {
                let words = self.text(question.words.clone());
                Event::Question(question.with_words(words))
            }
            Event::Included { what, path, item, hosts } => {
                Event::Included { what: self.text(what), path, item: item.map(|item| self.text(item)), hosts }
            }
            Event::Meta { task, host, skipped } => Event::Meta { task: self.task(task), host, skipped },
            Event::Warning(text) => Event::Warning(self.text(text)),
            Event::Recap(mut recap) => {
                recap.stats.run = self.vars(&recap.stats.run);
                recap.stats.hosts.values_mut().for_each(|stats| *stats = self.vars(stats));
                Event::Recap(recap)
            }
            Event::Command(event) => Event::Command(self.command(event)),
            Event::NextBatch => Event::NextBatch,
            Event::NoHostsLeft { percentage } => Event::NoHostsLeft { percentage },
        }
    }

    fn command(&self, event: CommandEvent) -> CommandEvent {
        match event {
            CommandEvent::Start(start) => {
                CommandEvent::Start(CommandStart { command_line: self.text(start.command_line), ..start })
            }
            CommandEvent::Deployment { name, hosts } => CommandEvent::Deployment { name: self.text(name), hosts },
            CommandEvent::Message { stream, text } => CommandEvent::Message { stream, text: self.text(text) },
            CommandEvent::StageStart { .. } | CommandEvent::StageEnd { .. } | CommandEvent::End { .. } => event,
        }
    }

    fn text(&self, text: String) -> String {
        self.0.hide(&text).into_owned()
    }

    fn task(&self, task: Arc<TaskStart>) -> Arc<TaskStart> {
        match self.0.hide(&task.name) {
            std::borrow::Cow::Borrowed(_) => task,
            std::borrow::Cow::Owned(name) => Arc::new(TaskStart { name, ..(*task).clone() }),
        }
    }

    fn result(&self, result: Arc<TaskResult>) -> Arc<TaskResult> {
        let diff = |diff: &Diff| Diff {
            before_header: self.text(diff.before_header.clone()),
            after_header: self.text(diff.after_header.clone()),
            before: self.text(diff.before.clone()),
            after: self.text(diff.after.clone()),
        };
        Arc::new(TaskResult {
            message: result.message.clone().map(|text| self.text(text)),
            hint: result.hint.clone().map(|text| self.text(text)),
            values: self.vars(&result.values),
            diff: result.diff.iter().map(diff).collect(),
            ..(*result).clone()
        })
    }

    fn vars(&self, vars: &Vars) -> Vars {
        let shown = |value: &Value| self.value(value).unwrap_or_else(|| value.clone());
        vars.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
    }

    /// None: there is nothing to hide in it.
    fn value(&self, value: &Value) -> Option<Value> {
        let shown = |value: &Value| self.value(value).unwrap_or_else(|| value.clone());
        match value.kind() {
            ValueKind::String => {
                let text = value.as_str()?;
                let shown = self.0.hide(text);
                (shown != text).then(|| Value::from(shown.into_owned()))
            }
            ValueKind::Bytes => {
                let text = String::from_utf8_lossy(value.as_bytes()?).into_owned();
                let shown = self.0.hide(&text);
                (shown != text).then(|| Value::from(shown.into_owned()))
            }
            // A number is a secret too when its digits are.
            ValueKind::Number => {
                let text = value.to_string();
                let shown = self.0.hide(&text);
                (shown != text).then(|| Value::from(shown.into_owned()))
            }
            ValueKind::Map => {
                let keys = value.try_iter().ok()?;
                let pairs = keys.map(|key| {
                    let item = value.get_item(&key).unwrap_or_default();
                    (shown(&key), shown(&item))
                });
                Some(Value::from_object(pairs.collect::<indexmap::IndexMap<Value, Value>>()))
            }
            ValueKind::Seq | ValueKind::Iterable => {
                Some(Value::from(value.try_iter().ok()?.map(|item| shown(&item)).collect::<Vec<Value>>()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::Status;
    use crate::value::mapping;
    use crate::value::origin::{Origin, Source};

    fn result(status: Status) -> TaskResult {
        TaskResult {
            status,
            changed: false,
            message: None,
            hint: None,
            values: Vars::new(),
            diff: Vec::new(),
            no_log: false,
            took: Duration::ZERO,
        }
    }

    fn task(name: &str) -> TaskStart {
        TaskStart {
            id: 1,
            name: name.into(),
            role: None,
            action: "command",
            origin: Origin { source: Arc::new(Source::new("p.yml", "")), line: 1, column: 1 },
            handler: false,
            hosts: 1,
        }
    }

    #[test]
    fn of_a_result_under_no_log_only_what_happened_is_left() {
        let result = TaskResult {
            message: Some("m".into()),
            hint: Some("h".into()),
            values: Vars::from([("stdout".into(), Value::from("s"))]),
            diff: vec![Diff::default()],
            no_log: true,
            ..result(Status::Failed)
        };
        let shown = without_secrets(Arc::new(result));
        assert_eq!((shown.message.as_ref(), shown.hint.as_ref(), shown.diff.len()), (None, None, 0));
        assert!(shown.values.is_empty() && shown.failed());
    }

    #[test]
    fn passwords_that_a_task_defines_are_masked_from_its_own_result_on() {
        let hidden = SecretTexts::default();
        let host = mapping([("host_vars", mapping([("ansible_ssh_pass", Value::from("of-the-host"))]))]);
        let facts =
            mapping([("ansible_become_password", Value::from("of-become")), ("other", Value::from("of-become"))]);
        let results = vec![mapping([("ansible_facts", mapping([("ansible_password", Value::from("in-a-loop"))]))])];
        let result = TaskResult {
            values: Vars::from([
                ("add_host".into(), host),
                ("ansible_facts".into(), facts),
                ("results".into(), Value::from(results)),
            ]),
            ..result(Status::Ok)
        };
        let task = Arc::new(task("t"));
        let event = Event::Result { task, host: "h1".into(), delegated: None, looped: false, result: Arc::new(result) };
        let shown = format!("{:?}", masked(event, &hidden));
        for secret in ["of-the-host", "of-become", "in-a-loop"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(hidden.hide("x of-the-host"), "x ***");
    }

    #[test]
    fn encrypted_texts_are_masked_in_names_messages_nested_values_and_diffs() {
        let hidden = SecretTexts::default();
        hidden.add_secret("tops3cret");
        let inner = mapping([("b", Value::from("x tops3cret y"))]);
        let nested = mapping([("a", Value::from(vec![inner])), ("n", Value::from(1))]);
        let diff = Diff { after: "key=tops3cret\n".into(), ..Diff::default() };
        let result = TaskResult {
            message: Some("not tops3cret".into()),
            values: Vars::from([("out".into(), nested)]),
            diff: vec![diff],
            ..result(Status::Ok)
        };
        let task = Arc::new(task("use tops3cret"));
        let event = Event::Result { task, host: "h1".into(), delegated: None, looped: false, result: Arc::new(result) };
        let shown = masked(event, &hidden);
        assert!(!format!("{shown:?}").contains("tops3cret"), "{shown:?}");
        let Event::Result { task, result, .. } = shown else { panic!("another event") };
        assert_eq!(task.name, "use ***");
        let shown = serde_json::to_value(&result.values["out"]).unwrap();
        assert_eq!(shown, serde_json::json!({"a": [{"b": "x *** y"}], "n": 1}));
    }
}
