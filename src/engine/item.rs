//! One item of one task on one host: conditions, arguments, the module, retries, what counts as changed and failed.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use minijinja::value::ValueKind;

use super::asynchronous::{seconds, timed_out};
use super::batch::Batch;
use super::event::{Event, Status, TaskResult, TaskStart, registered};
use super::host::HostRun;
use super::keyword;
use super::target;
use crate::connection::{Method, Target};
use crate::modules::{self, Async, Controller, Effect, ModuleResult, RunsAt};
use crate::playbook::{SourceValue, Task};
use crate::remote::Remote;
use crate::template::{self, Scope, Templar};
use crate::value::origin::Diagnostic;
use crate::value::{DEEPEST, Value, Vars, float, is_too_deep, mapping};

/// What one item left.
pub(crate) struct ItemResult {
    pub result: TaskResult,
    pub effects: Vec<Effect>,
    /// The module's arguments, as far as they could be rendered.
    pub args: Option<Vars>,
    /// The host it was delegated to.
    pub delegate: Option<Delegate>,
}

#[derive(Clone)]
pub(crate) struct Delegate {
    pub name: String,
    pub host: HostRun,
}

/// All that the steps of an item need.
pub(crate) struct Item<'a> {
    pub batch: &'a Arc<Batch>,
    pub host: &'a HostRun,
    pub task: &'a Arc<Task>,
    pub start: &'a Arc<TaskStart>,
    pub scope: Scope,
    /// The arguments, once they are rendered.
    args: OnceLock<Vars>,
}

impl<'a> Item<'a> {
    pub(super) fn new(
        batch: &'a Arc<Batch>,
        host: &'a HostRun,
        task: &'a Arc<Task>,
        start: &'a Arc<TaskStart>,
        scope: Scope,
    ) -> Self {
        Item { batch, host, task, start, scope, args: OnceLock::new() }
    }

    /// Runs it; whatever happens is a result.
    pub(super) async fn run_item(mut self) -> ItemResult {
        let begun = Instant::now();
        let no_log = self.no_log();
        let mut delegate = None;
        let mut outcome = match self.admitted() {
            Ok(None) => match self.delegate() {
                Ok(found) => {
                    delegate = found;
                    if let Some(delegate) = &delegate {
                        self.scope = self.scope.with_layer(self.delegated_vars(delegate));
                    }
                    self.attempts(delegate.as_ref(), no_log).await
                }
                Err(error) => failed_to_render(&error),
            },
            Ok(Some(skipped)) => (skipped, Vec::new()),
            Err(error) => failed_to_render(&error),
        };
        let result = &mut outcome.0;
        result.no_log = no_log;
        if result.no_log
            || !self.flag(("diff", self.task.keywords.diff.as_ref()), self.batch.run.job.diff).unwrap_or(false)
        {
            result.diff.clear();
        }
        result.took = begun.elapsed();
        self.forgive(result);
        let failed = result.failed() && !no_log;
        let args = failed.then(|| {
            let mut args = self.args.take().unwrap_or_else(|| self.arguments_as_far());
            let doc = self.task.action.doc;
            args.retain(|name, _| !doc.argument(name).is_some_and(|argument| argument.secret));
            args
        });
        ItemResult { result: outcome.0, effects: outcome.1, args, delegate }
    }

    /// A secret must not come out because reading the flag failed.
    pub(super) fn no_log(&self) -> bool {
        self.flag(("no_log", self.task.keywords.no_log.as_ref()), false).unwrap_or(true)
    }

    /// What becomes of an item whose loop cannot be read, so that there are no items.
    pub(super) fn without_items(&self, error: &template::Error) -> TaskResult {
        let mut result = failed_to_render(error).0;
        result.no_log = self.no_log();
        self.forgive(&mut result);
        result
    }

    /// None: run the task. Otherwise the result of not running it.
    pub(super) fn admitted(&self) -> Result<Option<TaskResult>, template::Error> {
        for condition in &self.task.keywords.when {
            if !self.holds(condition)? {
                let mut values = Vars::new();
                values.insert("skip_reason".into(), Value::from("Conditional result was False"));
                // A boolean condition is reported as a boolean.
                let bool = condition.value.kind() == ValueKind::Bool;
                let text = || Value::from(condition.value.to_string());
                values.insert("false_condition".into(), if bool { condition.value.clone() } else { text() });
                return Ok(Some(TaskResult { values, ..blank(Status::Skipped) }));
            }
        }
        Ok(None)
    }

    fn holds(&self, condition: &SourceValue) -> Result<bool, template::Error> {
        self.batch.run.job.templar.condition(&condition.value, Some(&condition.origin), &self.scope)
    }

    fn flag(&self, keyword: keyword::NamedKeyword<'_>, default: bool) -> Result<bool, template::Error> {
        Ok(keyword::keyword_flag(&self.batch.run.job.templar, keyword, &self.scope)?.unwrap_or(default))
    }

    pub(super) fn number_keyword(&self, keyword: keyword::NamedKeyword<'_>) -> Result<Option<f64>, template::Error> {
        keyword::keyword_number(&self.batch.run.job.templar, keyword, &self.scope)
    }

    fn delegate(&self) -> Result<Option<Delegate>, template::Error> {
        let Some(written) = &self.task.delegate_to else { return Ok(None) };
        let value = self.batch.run.job.templar.render(&written.value, &self.scope)?;
        if template::is_omit(&value) || (written.value.is_none() || written.value.as_str() == Some("")) {
            return Ok(None);
        }
        let name = if value.is_true() { value.to_string().trim().to_owned() } else { String::new() };
        if name.is_empty() {
            // As Ansible: it must not run on another host than was meant.
            return Err(template::Error::Other {
                message: format!("delegate_to is empty: {}", written.value),
                origin: Some(written.origin.clone()),
            });
        }
        let host = self.batch.enter(&Arc::from(name.as_str()), self.host.order);
        Ok(Some(Delegate { name, host }))
    }

    /// `ansible_delegated_vars`: what the host that the task is delegated to has, by its name.
    fn delegated_vars(&self, delegate: &Delegate) -> Vars {
        let mut scope = self.batch.host_scope(&delegate.host);
        let usual = |name: &str, value: Value| (Arc::from(name), scope.get(name).cloned().unwrap_or(value));
        let layer = Vars::from([
            usual("ansible_host", Value::from(delegate.name.as_str())),
            usual("ansible_port", Value::from(())),
            usual("ansible_user", Value::from(())),
            // As in Ansible: it stays the host that delegates.
            ("inventory_hostname".into(), Value::from(&*self.host.name)),
        ]);
        scope.push(Arc::new(layer));
        let of_host = mapping([(delegate.name.as_str(), Templar::view(&scope))]);
        Vars::from([("ansible_delegated_vars".into(), of_host)])
    }

    /// `until`, `retries` and `delay`.
    async fn attempts(&mut self, delegate: Option<&Delegate>, no_log: bool) -> (TaskResult, Vec<Effect>) {
        let retries = match self.number_keyword(("retries", self.task.retries.as_ref())) {
            Ok(number) => number.map(|number| u64::from(float::clamped(number))),
            Err(error) => return failed_to_render(&error),
        };
        let looping = !self.task.until.is_empty() || retries.is_some();
        let attempts = if looping { retries.unwrap_or(3) + 1 } else { 1 };
        let delay = match self.number_keyword(("delay", self.task.delay.as_ref())) {
            Ok(delay) => Duration::from_secs_f64(delay.unwrap_or(5.0).clamp(0.0, 1e9)),
            Err(error) => return failed_to_render(&error),
        };
        let outer = self.scope.clone();
        let mut attempt = 1;
        loop {
            self.scope = outer.clone();
            let (mut result, effects) = match self.attempt(delegate).await {
                Ok(done) => done,
                // Nothing was done that `failed_when` or another attempt could make right.
                Err(error) => return failed_to_render(&error),
            };
            if let Err(error) = self.judge(&mut result, (attempts > 1).then_some(attempt)) {
                // The report shows the first error, not that its result has no such value. What the module
                // did is still reported.
                if !result.failed() {
                    result.status = Status::Failed;
                    result.message = Some(template_message(&error));
                }
                return (result, effects);
            }
            if !looping || matches!(result.status, Status::Unreachable | Status::Skipped) {
                return (result, effects);
            }
            let done = match self.task.until.is_empty() {
                true => !result.failed(),
                false => match self.task.until.iter().try_fold(true, |all, one| Ok(all && self.holds(one)?)) {
                    Ok(done) => done,
                    Err(error) => return failed_to_render(&error),
                },
            };
            if done {
                return (result, effects);
            }
            if attempt >= attempts {
                // `failed_when` has the last word.
                match self.task.failed_when.is_empty() {
                    true => result.status = Status::Failed,
                    false => _ = result.values.insert("failed".into(), Value::from(true)),
                }
                // Ansible does not count the first attempt here.
                result.values.insert("attempts".into(), Value::from(attempts - 1));
                return (result, effects);
            }
            result.no_log = no_log;
            self.batch.run.send_event(Event::Retry {
                task: self.start.clone(),
                host: self.host.name.clone(),
                attempt,
                left: attempts - attempt,
                result: Arc::new(result),
            });
            tokio::time::sleep(delay).await;
            attempt += 1;
        }
    }

    /// Runs the module once.
    ///
    /// # Errors
    /// The module did not run, as an argument or a keyword could not be rendered.
    async fn attempt(&self, delegate: Option<&Delegate>) -> Result<(TaskResult, Vec<Effect>), template::Error> {
        let limit = self.number_keyword(("timeout", self.task.keywords.timeout.as_ref()))?.and_then(seconds);
        let apart = match self.apart() {
            Ok(apart) => apart,
            Err(modules::Error::Template(error)) => return Err(error),
            Err(error) => return Ok((from_error(&error), Vec::new())),
        };
        let job = apart.filter(|apart| apart.kind == Async::Job).map(|apart| apart.limit);
        let limit = apart.filter(|_| job.is_none()).map(|apart| apart.limit).or(limit);
        let work = self.module(delegate, job);
        let done = match limit {
            None => work.await,
            Some(limit) => match tokio::time::timeout(limit, work).await {
                Ok(done) => done,
                Err(_) => return Ok((timed_out(limit), Vec::new())),
            },
        };
        Ok(match (done, apart) {
            (Ok(done), _) if done.outcome.values.values().any(is_too_deep) => {
                let message = format!("its value has more than {DEEPEST} nested lists and mappings");
                (from_error(&modules::Error::failed(message)), Vec::new())
            }
            (Ok(done), Some(apart)) => self.follow(delegate, apart, done).await,
            (Ok(done), None) => finished(done),
            (Err(ModuleError::NotRendered(error)), _) => return Err(error),
            (Err(ModuleError::Other(error)), _) => (from_error(&error), Vec::new()),
        })
    }

    async fn module(&self, delegate: Option<&Delegate>, apart: Option<Duration>) -> Result<ModuleResult, ModuleError> {
        let job = &self.batch.run.job;
        let entry = modules::entry_of_doc(self.task.action.doc);
        // Once for all attempts, as in Ansible.
        let (args, twice) = match self.args.get() {
            Some(args) => (args, Vec::new()),
            None => {
                let given = self.arguments(entry)?;
                self.check_connection_variables(entry, &given)?;
                let (args, twice) = modules::arguments::without_aliases(entry.doc, given);
                (self.args.get_or_init(|| args), twice)
            }
        };
        let args = modules::arguments::coerce(entry.doc, args)?;
        let check = self.flag(("check_mode", self.task.keywords.check_mode.as_ref()), job.check)?;
        let diff = self.flag(("diff", self.task.keywords.diff.as_ref()), job.diff)?;
        let no_log = self.flag(("no_log", self.task.keywords.no_log.as_ref()), false)?;
        let run = &self.batch.run;
        let host = &self.host.name;
        let progress = |progress| run.send_event(Event::Progress { host: host.clone(), progress });
        let ask = |question| run.send_event(Event::Question(question));
        let connection = ItemConnection { item: self, delegate };
        let here = Controller {
            templar: &job.templar,
            scope: &self.scope,
            search: &self.scope.search,
            check,
            diff,
            no_log,
            verbosity: job.verbosity,
            caches: &job.caches,
            signers: job.options.signers.as_ref(),
            apart,
            progress: &progress,
            ask: &ask,
            host: &connection,
        };
        let tell = |warning| run.send_event(Event::Warning(format!("{host}: {warning}")));
        twice.iter().for_each(|warning| tell(warning.to_string()));
        let mut done = match entry.place {
            RunsAt::Controller => (entry.run)(args, None, &here).await,
            RunsAt::Host => {
                let remote = self.remote(delegate).await?;
                (entry.run)(args, Some(&remote), &here).await
            }
        }?;
        let own = done.outcome.values.get("warnings").and_then(|own| own.try_iter().ok());
        let own: Vec<Value> = own.into_iter().flatten().collect();
        own.iter().filter(|_| !no_log).for_each(|warning| tell(warning.to_string()));
        if !twice.is_empty() {
            done.outcome = done.outcome.with("warnings", twice.into_iter().chain(own).collect::<Value>());
        }
        Ok(done)
    }

    pub(super) async fn remote(&self, delegate: Option<&Delegate>) -> Result<Remote, modules::Error> {
        let job = &self.batch.run.job;
        let keywords = &self.task.keywords;
        let target = self.target(delegate)?;
        let scope = self.connection_scope(delegate);
        let user = target::become_user(job, keywords, &scope)?;
        let environment = target::task_environment(job, keywords, &self.scope)?;
        let sessions = self.batch.run.pool.sessions(&target).await.map_err(crate::remote::Error::from)?;
        Ok(Remote::open(&sessions, user.as_ref(), &environment).await?)
    }

    /// A delegate is reached by its own variables.
    fn connection_scope(&self, delegate: Option<&Delegate>) -> Scope {
        match delegate {
            Some(delegate) => self.batch.task_scope(&delegate.host, self.task),
            None => self.scope.clone(),
        }
    }

    pub(super) fn target(&self, delegate: Option<&Delegate>) -> Result<Target, template::Error> {
        let name = delegate.map_or(self.host.name.as_ref(), |delegate| delegate.name.as_str());
        target::target(&self.batch.run.job, name, &self.task.keywords, &self.connection_scope(delegate))
    }

    /// `changed_when` and `failed_when`; they see the result under its registered name.
    fn judge(&mut self, result: &mut TaskResult, attempt: Option<u64>) -> Result<(), template::Error> {
        if let Some(attempt) = attempt {
            result.values.insert("attempts".into(), Value::from(attempt));
        }
        if matches!(result.status, Status::Unreachable | Status::Skipped) {
            return Ok(());
        }
        self.see(result);
        if !self.task.failed_when.is_empty() {
            let failed = self.task.failed_when.iter().try_fold(true, |all, one| Ok(all && self.holds(one)?));
            let failed = failed.inspect_err(|error| said(result, "failed_when_result", error))?;
            result.values.insert("failed_when_result".into(), Value::from(failed));
            result.status = match failed {
                true => Status::Failed,
                false if result.changed => Status::Changed,
                false => Status::Ok,
            };
        }
        if !self.task.changed_when.is_empty() {
            let changed = self.task.changed_when.iter().try_fold(true, |all, one| Ok(all && self.holds(one)?));
            result.changed = changed.inspect_err(|error| said(result, "changed_when_result", error))?;
            result.status = match result.status {
                Status::Ok | Status::Changed if result.changed => Status::Changed,
                Status::Ok | Status::Changed => Status::Ok,
                other => other,
            };
        }
        self.see(result);
        Ok(())
    }

    fn see(&mut self, result: &TaskResult) {
        if let Some(name) = &self.task.register {
            self.scope = self.scope.with_layer(Vars::from([(name.clone(), registered(result))]));
        }
    }

    /// `ignore_errors` and `ignore_unreachable`.
    pub(super) fn forgive(&self, result: &mut TaskResult) {
        let keyword = match result.status {
            Status::Failed => ("ignore_errors", self.task.keywords.ignore_errors.as_ref()),
            Status::Unreachable => ("ignore_unreachable", self.task.keywords.ignore_unreachable.as_ref()),
            _ => return,
        };
        match self.flag(keyword, false) {
            Ok(false) => {}
            Ok(true) => {
                if result.status == Status::Unreachable {
                    result.values.insert("unreachable".into(), Value::from(true));
                }
                result.status = Status::Ignored;
            }
            // What failed first may be this very error.
            Err(error) => {
                let (before, error) = (result.message.take().unwrap_or_default(), template_message(&error));
                result.message = Some(if before.contains(&error) { before } else { format!("{before}\n{error}") });
            }
        }
    }
}

/// Why a module gave no result.
enum ModuleError {
    /// An argument, a keyword, or what the module itself had to render could not be rendered. In ansible-core the action raises an error
    /// then, which is no result of the task.
    NotRendered(template::Error),
    Other(modules::Error),
}

impl From<template::Error> for ModuleError {
    fn from(error: template::Error) -> Self {
        ModuleError::NotRendered(error)
    }
}

impl From<modules::Error> for ModuleError {
    fn from(error: modules::Error) -> Self {
        match error {
            modules::Error::Template(error) => ModuleError::NotRendered(error),
            other => ModuleError::Other(other),
        }
    }
}

/// Puts what is wrong with a condition where its outcome would be.
fn said(result: &mut TaskResult, name: &str, error: &template::Error) {
    result.values.insert(name.into(), Value::from(error.complaint().message));
}

/// The item's host, for modules that open it themselves.
struct ItemConnection<'a> {
    item: &'a Item<'a>,
    delegate: Option<&'a Delegate>,
}

#[async_trait]
impl modules::Open for ItemConnection<'_> {
    async fn open(&self, anew: bool) -> Result<Remote, modules::Error> {
        if anew {
            self.item.batch.run.pool.reset(&self.item.target(self.delegate)?).await;
        }
        self.item.remote(self.delegate).await
    }

    fn is_this_machine(&self) -> bool {
        self.item.target(self.delegate).is_ok_and(|target| target.method == Method::Local)
    }
}

/// A result of nothing done yet.
pub(crate) fn blank(status: Status) -> TaskResult {
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

pub(super) fn finished(done: ModuleResult) -> (TaskResult, Vec<Effect>) {
    let outcome = done.outcome;
    let status = match (&outcome.failed, outcome.skipped, done.changed) {
        (Some(_), _, _) => Status::Failed,
        (None, true, _) => Status::Skipped,
        (None, false, true) => Status::Changed,
        (None, false, false) => Status::Ok,
    };
    let result = TaskResult {
        changed: done.changed,
        message: outcome.failed.or(outcome.message),
        values: outcome.values,
        diff: done.diff,
        ..blank(status)
    };
    (result, outcome.effects)
}

pub(super) fn from_error(error: &modules::Error) -> TaskResult {
    let (status, hint) = match error {
        modules::Error::Failed { hint, .. } => (Status::Failed, hint.clone()),
        modules::Error::Answered { message, hint, values } => {
            let (message, hint, values) = (Some(message.clone()), hint.clone(), values.clone());
            return TaskResult { message, hint, values, ..blank(Status::Failed) };
        }
        modules::Error::Template(error) => return failed_to_render(error).0,
        modules::Error::Remote(error @ crate::remote::Error::Connection(_)) => (Status::Unreachable, error.hint()),
        // Ansible, too, counts a refused sudo as a failure of the host, which was reached.
        modules::Error::Remote(error) => (Status::Failed, error.hint()),
    };
    TaskResult { message: Some(chain(error)), hint, ..blank(status) }
}

/// An error and what caused it, one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// A task whose words could not be rendered fails with the place of the words.
pub(crate) fn failed_to_render(error: &template::Error) -> (TaskResult, Vec<Effect>) {
    (failure_of(&error.complaint()), Vec::new())
}

/// What a person wrote wrongly, as a result: the message with its place, and the hint.
pub(super) fn failure_of(complaint: &Diagnostic) -> TaskResult {
    TaskResult { message: Some(placed(complaint)), hint: complaint.hint.clone(), ..blank(Status::Failed) }
}

/// The error, and the place that it names.
pub(crate) fn template_message(error: &template::Error) -> String {
    placed(&error.complaint())
}

/// A message with its place, and the line with a caret below it.
fn placed(complaint: &Diagnostic) -> String {
    let Some(origin) = &complaint.origin else { return complaint.message.clone() };
    let line = origin.line_text();
    let (text, indentation) = (line.trim(), line.chars().take_while(|c| c.is_whitespace()).count());
    if text.is_empty() {
        return format!("{}\n  at {origin}", complaint.message);
    }
    let before = text.chars().take((origin.column - 1).saturating_sub(indentation));
    // A tab stays a tab, so that the caret is below its character.
    let blanks: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{}\n  at {origin}\n    {text}\n    {blanks}^", complaint.message)
}
