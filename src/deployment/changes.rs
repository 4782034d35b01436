//! What a stage would change, from the events of a run in check mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contract::{Clients, Reported, ServiceAction, ServiceReport, WaitsFor};
use super::control::Outcome;
use super::stage::Stage;
use crate::credentials::Credentials;
use crate::engine::{Event, Status, TaskResult, TaskStart};
use crate::modules;
use crate::report::{diff, message_text};
use crate::value::{Value, Vars};

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    File,
    Unit,
    /// Of an API.
    Object,
    Package,
    /// A user or a group.
    Account,
    Mount,
    CronJob,
    KernelSetting,
    FirewallRule,
    Other,
}

/// One thing that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// Where: a host, or `localhost`.
    pub host: String,
    pub kind: ChangeKind,
    /// A path, a unit, `Cluster alpha`; of others the task's name.
    pub what: String,
    /// The task that would do it.
    pub task: String,
    /// How its content would change, as a unified diff. Empty if it was not requested, or is secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

#[cfg(test)]
impl PlannedChange {
    /// Without a diff, for tests.
    pub(crate) fn example_change(host: &str, kind: ChangeKind, what: &str) -> PlannedChange {
        PlannedChange { host: host.into(), kind, what: what.into(), task: "t".into(), diff: String::new() }
    }
}

/// A task that failed when it was tried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    pub host: String,
    pub task: String,
    pub message: String,
    /// The host did not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
}

/// What would happen to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    pub host: String,
    /// The systemd service, without `.service`.
    pub unit: String,
    pub action: ServiceAction,
    pub clients: Clients,
    /// Other services of the host that restart with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

/// A host that a stage cannot be checked on before an earlier stage has been applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub host: String,
    /// The stage that comes first.
    pub stage: Stage,
    /// What that stage creates.
    pub reason: String,
}

/// The events of a run in check mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub changes: Vec<PlannedChange>,
    pub failures: Vec<TaskFailure>,
    pub waits: Vec<Wait>,
    /// In the order in which a run would do it.
    pub services: Vec<ServiceChange>,
    /// The notes of its tasks, such as the size of a removal.
    pub notes: Vec<String>,
    /// What it warned of.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Values of results that say what was changed, the first that is there.
const NAMES: &[&str] = &["dest", "path", "name", "unit", "dst"];

impl Changes {
    /// Takes an event of the run.
    pub fn add_event(&mut self, event: &Event) {
        match event {
            Event::Item { task, host, delegated, result, .. } => self.result(task, host, delegated.as_deref(), result),
            // Its items have their own events.
            Event::Result { task, host, delegated, looped: false, result } => {
                self.result(task, host, delegated.as_deref(), result);
            }
            Event::Result { task, host, result, .. }
                if failed(result)
                    && !self.failures.iter().any(|failure| failure.task == task.name && failure.host == **host) =>
            {
                self.failure(task, host, result);
            }
            Event::Warning(words) => self.warnings.push(words.clone()),
            _ => {}
        }
    }

    /// Names files of credentials as they are in a directory, wherever this run has them.
    pub(super) fn name_credentials(&mut self, credentials: Option<&Credentials>) {
        let Some(credentials) = credentials else { return };
        for change in &mut self.changes {
            credentials.without_directory(&mut change.what);
            credentials.without_directory(&mut change.diff);
        }
        self.failures.iter_mut().for_each(|failure| credentials.without_directory(&mut failure.message));
        self.notes.iter_mut().for_each(|note| credentials.without_directory(note));
    }

    /// Whether nothing would be changed, as far as could be seen.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.failures.is_empty() && self.waits.is_empty()
    }

    /// How it would end at best, by what failed in the dry run.
    pub fn outcome(&self) -> Outcome {
        match self.failures.iter().any(|failure| failure.unreachable) {
            true => Outcome::Unreachable,
            false if self.failures.is_empty() => Outcome::Ok,
            false => Outcome::Refused,
        }
    }

    /// How many of each kind, by host.
    pub fn counts(&self) -> BTreeMap<&str, BTreeMap<ChangeKind, usize>> {
        let mut counts: BTreeMap<&str, BTreeMap<ChangeKind, usize>> = BTreeMap::new();
        for change in &self.changes {
            *counts.entry(&change.host).or_default().entry(change.kind).or_default() += 1;
        }
        counts
    }

    fn result(&mut self, task: &TaskStart, host: &Arc<str>, delegated: Option<&str>, result: &TaskResult) {
        if failed(result) {
            return self.failure(task, host, result);
        }
        self.reports(host, result);
        if let ("debug", false, Some(words)) = (task.action, result.no_log, result.values.get("msg")) {
            let note = message_text(words);
            // A playbook that shows something before and after its work shows the same twice in a dry run.
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        if !result.changed {
            return;
        }
        let kind = kind(task.action);
        let named = if result.no_log { None } else { what(kind, result) };
        let what = named.unwrap_or_else(|| task.name.clone());
        let diff = if result.no_log { String::new() } else { diff::diff_text(&result.diff) };
        let change =
            PlannedChange { host: delegated.unwrap_or(host).to_owned(), kind, what, task: task.name.clone(), diff };
        // One file may get its content and its owner from two tasks. Which file a hidden task changes is not known here.
        let known = |other: &PlannedChange| {
            !result.no_log && other.host == change.host && other.kind == kind && other.what == change.what
        };
        if !self.changes.iter().any(known) {
            self.changes.push(change);
        }
    }

    /// Takes what the roles report to windlass alone.
    fn reports(&mut self, host: &Arc<str>, result: &TaskResult) {
        if let Some(report) = reported::<WaitsFor>(result) {
            let wait = report.and_then(|wait| {
                let stage = Stage::stage_named(&wait.stage);
                let stage = stage.ok_or_else(|| format!("{} names no stage: {}", WaitsFor::VARIABLE, wait.stage))?;
                Ok(Wait { host: host.to_string(), stage, reason: wait.reason })
            });
            match wait {
                Ok(wait) => self.waits.push(wait),
                Err(message) => self.misreported(host, message),
            }
        }
        match reported::<ServiceReport>(result) {
            None => {}
            Some(Ok(ServiceReport { layout: _, unit, action, clients, with })) => {
                self.services.push(ServiceChange { host: host.to_string(), unit, action, clients, with });
            }
            Some(Err(message)) => self.misreported(host, message),
        }
    }

    fn misreported(&mut self, host: &str, message: String) {
        let task = "windlass".to_owned();
        self.failures.push(TaskFailure { host: host.to_owned(), task, message, unreachable: false });
    }

    fn failure(&mut self, task: &TaskStart, host: &Arc<str>, result: &TaskResult) {
        // It failed to end its dry run.
        if self.waits.iter().any(|wait| wait.host == **host) {
            return;
        }
        let said = result.message.clone().or_else(|| Some(result.values.get("msg")?.to_string()));
        let message = match result.no_log {
            true => "the result is hidden".to_owned(),
            false => said.unwrap_or_else(|| "it failed".to_owned()),
        };
        let unreachable = result.status == Status::Unreachable;
        self.failures.push(TaskFailure { host: host.to_string(), task: task.name.clone(), message, unreachable });
    }
}

/// What a role reports to windlass in its own fact. None: nothing.
fn reported<T: Reported>(result: &TaskResult) -> Option<Result<T, String>> {
    let value = result.values.get("ansible_facts")?.get_attr(T::VARIABLE).ok()?;
    (!value.is_undefined()).then(|| T::from_report(&value))
}

fn failed(result: &TaskResult) -> bool {
    matches!(result.status, Status::Failed | Status::Unreachable)
}

/// By what the module says of itself.
fn kind(module: &str) -> ChangeKind {
    match modules::find_module(module).map(|entry| entry.changes) {
        Some(modules::Changes::Files) => ChangeKind::File,
        Some(modules::Changes::Units) => ChangeKind::Unit,
        Some(modules::Changes::Objects) => ChangeKind::Object,
        Some(modules::Changes::Packages) => ChangeKind::Package,
        Some(modules::Changes::Accounts) => ChangeKind::Account,
        Some(modules::Changes::Mounts) => ChangeKind::Mount,
        Some(modules::Changes::CronJobs) => ChangeKind::CronJob,
        Some(modules::Changes::KernelSettings) => ChangeKind::KernelSetting,
        Some(modules::Changes::FirewallRules) => ChangeKind::FirewallRule,
        Some(modules::Changes::Nothing | modules::Changes::Other) | None => ChangeKind::Other,
    }
}

fn what(kind: ChangeKind, result: &TaskResult) -> Option<String> {
    if kind == ChangeKind::Object {
        return object(&result.values);
    }
    let text = |name: &&str| Some(result.values.get(*name)?.as_str()?.to_owned());
    let named = NAMES.iter().find_map(text);
    let header = || {
        let diff = result.diff.first()?;
        let header = if diff.after_header.is_empty() { &diff.before_header } else { &diff.after_header };
        (!header.is_empty()).then(|| header.trim_end_matches(" (content)").to_owned())
    };
    named.or_else(header)
}

/// `Cluster alpha`, or of several what the first is and how many more there are.
fn object(values: &Vars) -> Option<String> {
    let result = values.get("result")?;
    let one = |object: &Value| {
        let kind = object.get_attr("kind").ok().filter(|kind| !kind.is_undefined())?;
        let name = object.get_attr("metadata").ok()?.get_attr("name").ok()?;
        Some(format!("{kind} {name}"))
    };
    let several = result.get_attr("results").ok().filter(|results| !results.is_undefined());
    let Some(several) = several else { return one(result) };
    let changed = several.try_iter().ok()?.filter(|entry| entry.get_attr("changed").is_ok_and(|it| it.is_true()));
    let names: Vec<String> = changed.filter_map(|entry| one(&entry.get_attr("result").ok()?)).collect();
    match names.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [first, rest @ ..] => Some(format!("{first} and {} more", rest.len())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::value::origin::{Origin, Source};

    fn task_result(module: &'static str, name: &str, looped: bool, result: TaskResult) -> Event {
        let task = TaskStart {
            id: 1,
            name: name.into(),
            role: None,
            action: module,
            origin: Origin { source: Arc::new(Source::new("p.yml", "")), line: 1, column: 1 },
            handler: false,
            hosts: 1,
        };
        let (task, host, result) = (Arc::new(task), Arc::from("h1"), Arc::new(result));
        Event::Result { task, host, delegated: None, looped, result }
    }

    fn result(status: Status, values: &[(&str, &str)]) -> TaskResult {
        TaskResult {
            status,
            changed: status == Status::Changed,
            message: None,
            hint: None,
            values: values.iter().map(|(name, value)| (Arc::from(*name), Value::from(*value))).collect(),
            diff: Vec::new(),
            no_log: false,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn each_thing_counts_once_and_by_what_it_is() {
        let mut changes = Changes::default();
        let changed = |values| result(Status::Changed, values);
        changes.add_event(&task_result("template", "a", false, changed(&[("dest", "/etc/x")])));
        changes.add_event(&task_result("file", "its owner", false, changed(&[("path", "/etc/x")])));
        changes.add_event(&task_result("systemd_service", "b", false, changed(&[("name", "etcd")])));
        changes.add_event(&task_result("command", "c", false, changed(&[])));
        changes.add_event(&task_result("ini_file", "a setting", false, changed(&[("path", "/etc/app.ini")])));
        changes.add_event(&task_result("sysctl", "d", false, changed(&[])));
        changes.add_event(&task_result("cron", "e", false, changed(&[])));
        changes.add_event(&task_result("mount", "f", false, changed(&[("path", "/mnt")])));
        changes.add_event(&task_result("copy", "not this", true, changed(&[("dest", "/etc/y")])));
        changes.add_event(&task_result("copy", "nor this", false, result(Status::Ok, &[("dest", "/etc/z")])));
        let names: Vec<&str> = changes.changes.iter().map(|change| change.what.as_str()).collect();
        assert_eq!(names, ["/etc/x", "etcd", "c", "/etc/app.ini", "d", "e", "/mnt"]);
        let counts = changes.counts();
        let expected = [
            (ChangeKind::File, 2),
            (ChangeKind::Unit, 1),
            (ChangeKind::Mount, 1),
            (ChangeKind::CronJob, 1),
            (ChangeKind::KernelSetting, 1),
            (ChangeKind::Other, 1),
        ];
        assert_eq!(counts["h1"], BTreeMap::from(expected));
    }

    #[test]
    fn a_host_that_does_not_answer_is_not_refused() {
        let mut changes = Changes::default();
        assert_eq!(changes.outcome(), Outcome::Ok);
        changes.add_event(&task_result("copy", "a", false, result(Status::Failed, &[])));
        assert_eq!(changes.outcome(), Outcome::Refused);
        changes.add_event(&task_result("copy", "b", false, result(Status::Unreachable, &[])));
        assert_eq!(changes.outcome(), Outcome::Unreachable);
    }

    #[test]
    fn a_host_that_waits_for_a_stage_is_no_failure() {
        let report = |stage: &str, layout: i64| {
            let wait = crate::value::mapping([
                ("layout", Value::from(layout)),
                ("stage", Value::from(stage)),
                ("reason", Value::from("no API server answers yet")),
            ]);
            let mut said = result(Status::Ok, &[]);
            said.values.insert("ansible_facts".into(), crate::value::mapping([(WaitsFor::VARIABLE, wait)]));
            task_result("set_fact", "Report", false, said)
        };
        let mut changes = Changes::default();
        changes.add_event(&report("controlPlane", 1));
        changes.add_event(&task_result("fail", "End the dry run", false, result(Status::Failed, &[])));
        let wait = Wait { host: "h1".into(), stage: Stage::ControlPlane, reason: "no API server answers yet".into() };
        assert_eq!((changes.waits.as_slice(), changes.failures.len()), ([wait].as_slice(), 0));
        assert!(!changes.is_empty());
        for (stage, layout, why) in [("unknown", 1, "names no stage: unknown"), ("etcd", 2, "layout 2")] {
            let mut changes = Changes::default();
            changes.add_event(&report(stage, layout));
            assert!(changes.failures[0].message.contains(why), "{:?}", changes.failures);
        }
    }

    #[test]
    fn a_message_of_several_lines_stays_so_and_is_shown_once() {
        let mut changes = Changes::default();
        let mut said = result(Status::Ok, &[]);
        said.values.insert("msg".into(), Value::from(vec!["HOST  DAYS", "h1    364"]));
        changes.add_event(&task_result("debug", "Show", false, said.clone()));
        changes.add_event(&task_result("debug", "Show it afterwards", false, said));
        changes.add_event(&task_result("debug", "Say", false, result(Status::Ok, &[("msg", "done")])));
        assert_eq!(changes.notes, ["HOST  DAYS\nh1    364", "done"]);
    }

    #[test]
    fn a_secret_s_values_are_not_kept() {
        let mut changes = Changes::default();
        let secret = TaskResult { no_log: true, ..result(Status::Changed, &[("dest", "/root/s3cret")]) };
        changes.add_event(&task_result("copy", "The key", false, secret.clone()));
        changes.add_event(&task_result("copy", "The key", false, secret));
        let lost = TaskResult { no_log: true, message: Some("s3cret".into()), ..result(Status::Failed, &[]) };
        changes.add_event(&task_result("copy", "The other key", false, lost));
        assert!(!serde_json::to_string(&changes).unwrap().contains("s3cret"), "{changes:?}");
        // Two files, for all that is known.
        assert_eq!(changes.changes.len(), 2);
        assert_eq!(changes.changes[0].what, "The key");
        assert_eq!(changes.failures[0].message, "the result is hidden");
    }

    #[test]
    fn an_object_is_named_by_kind_and_name() {
        let mut changed = result(Status::Changed, &[]);
        let metadata = crate::value::mapping([("name", Value::from("alpha"))]);
        let object = crate::value::mapping([("kind", Value::from("Cluster")), ("metadata", metadata)]);
        changed.values.insert("result".into(), object);
        let mut changes = Changes::default();
        changes.add_event(&task_result("k8s", "Join it", false, changed));
        assert_eq!((changes.changes[0].kind, changes.changes[0].what.as_str()), (ChangeKind::Object, "Cluster alpha"));
    }
}
