//! Loops: the items of a task, one after the other, and how their results become one.

use std::sync::Arc;

use minijinja::value::ValueKind;

use super::batch::Batch;
use super::event::{Event, Status, TaskResult, TaskStart, registered, result_vars};
use super::host::{HostRun, extend};
use super::item::{Delegate, Item, ItemResult, blank, failed_to_render};
use super::keyword;
use crate::modules::Effect;
use crate::playbook::{Loop, SourceValue, Task};
use crate::template::{self, Scope};
use crate::value::{Value, Vars, mapping};

/// What a whole task left on a host.
pub(super) struct TaskOutcome {
    pub result: TaskResult,
    pub effects: Vec<(Effect, Option<Delegate>)>,
    pub looped: bool,
    /// The module's arguments; of a loop those of the item that failed last.
    pub args: Option<Vars>,
    pub delegated: Option<String>,
}

pub(super) fn one_effect(effects: Vec<Effect>, delegate: Option<Delegate>) -> Vec<(Effect, Option<Delegate>)> {
    effects.into_iter().map(|effect| (effect, delegate.clone())).collect()
}

/// The items of a loop, one after the other.
pub(super) async fn all_items(
    batch: &Arc<Batch>,
    task: &Arc<Task>,
    start: &Arc<TaskStart>,
    host: &HostRun,
    repeat: &Loop,
    scope: Scope,
) -> TaskOutcome {
    let simple = |result| TaskOutcome { result, effects: Vec::new(), looped: false, args: None, delegated: None };
    let items = match loop_items(batch, repeat, &task.action.written, &scope) {
        Ok(items) => items,
        // Undefined items do not matter when the conditions already say no.
        Err(error) => {
            let item = Item::new(batch, host, task, start, scope);
            return simple(match item.admitted() {
                Ok(Some(skipped)) => skipped,
                _ => item.without_items(&error),
            });
        }
    };
    if items.is_empty() {
        let mut result = blank(Status::Skipped);
        result.values.insert("results".into(), Value::from(Vec::<Value>::new()));
        result.values.insert("skipped_reason".into(), Value::from("No items in the list"));
        return simple(result);
    }
    let pause = match keyword::keyword_number(&batch.run.job.templar, ("pause", repeat.control.pause.as_ref()), &scope)
    {
        Ok(pause) => pause,
        Err(error) => return simple(Item::new(batch, host, task, start, scope).without_items(&error)),
    };
    let mut whole = LoopResult::default();
    for (index, value) in items.iter().enumerate() {
        if let Some(seconds) = pause.filter(|_| index > 0) {
            tokio::time::sleep(std::time::Duration::from_secs_f64(seconds.clamp(0.0, 1e9))).await;
        }
        let mut scope = scope.with_layer(loop_vars(repeat, &items, index));
        // Items of a loop see what earlier items registered as facts.
        scope.push(whole.set.clone());
        let label = label(batch, repeat, value, &scope);
        let seen = scope.clone();
        let mut ran = Item::new(batch, host, task, start, scope).run_item().await;
        let enough = match enough(batch, task, repeat, &seen, &ran.result) {
            Ok(enough) => enough,
            Err(error) => {
                ran.result = TaskResult { no_log: ran.result.no_log, ..failed_to_render(&error).0 };
                Item::new(batch, host, task, start, seen).forgive(&mut ran.result);
                true
            }
        };
        ran.result.values.extend(of_item(repeat, index, value));
        let lost = ran.result.status == Status::Unreachable;
        let delegated = ran.delegate.as_ref().map(|delegate| delegate.name.clone());
        let event = Event::Item {
            task: start.clone(),
            host: host.name.clone(),
            delegated,
            label,
            result: Arc::new(ran.result.clone()),
        };
        batch.run.send_event(event);
        whole.add(ran);
        if lost || enough || batch.run.stopping() {
            break;
        }
    }
    whole.finish()
}

/// `break_when`, of an item that has been.
fn enough(
    batch: &Batch,
    task: &Task,
    repeat: &Loop,
    scope: &Scope,
    result: &TaskResult,
) -> Result<bool, template::Error> {
    match &task.register {
        Some(name) => breaks(batch, repeat, &scope.with_layer(Vars::from([(name.clone(), registered(result))]))),
        None => breaks(batch, repeat, scope),
    }
}

/// Whether the conditions of `break_when` hold.
pub(super) fn breaks(batch: &Batch, repeat: &Loop, scope: &Scope) -> Result<bool, template::Error> {
    let conditions = &repeat.control.break_when;
    let holds = |one: &SourceValue| batch.run.job.templar.condition(&one.value, Some(&one.origin), scope);
    Ok(!conditions.is_empty() && conditions.iter().try_fold(true, |all, one| Ok(all && holds(one)?))?)
}

/// The list that a loop goes through.
pub(super) fn loop_items(
    batch: &Batch,
    repeat: &Loop,
    action: &str,
    scope: &Scope,
) -> Result<Vec<Value>, template::Error> {
    let templar = &batch.run.job.templar;
    let rendered = templar.render(&repeat.items.value, scope)?;
    let list = match &repeat.lookup {
        None => rendered,
        Some(name) => templar.lookup(name, &rendered, action, scope)?,
    };
    match list.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(list.try_iter().into_iter().flatten().collect()),
        kind => Err(template::Error::Other {
            message: format!("loop needs a list, and this is of type {kind}: {list}"),
            origin: Some(repeat.items.origin.clone()),
        }),
    }
}

/// `item`, the index variable, `ansible_loop`.
pub(super) fn loop_vars(repeat: &Loop, items: &[Value], index: usize) -> Vars {
    let control = &repeat.control;
    let mut vars = Vars::from([
        (control.loop_var.clone(), items[index].clone()),
        ("ansible_loop_var".into(), Value::from(control.loop_var.as_ref())),
    ]);
    if let Some(name) = &control.index_var {
        vars.insert(name.clone(), Value::from(index));
        vars.insert("ansible_index_var".into(), Value::from(name.as_ref()));
    }
    if control.extended {
        let count = items.len();
        let mut extended = Vars::from([
            ("index".into(), Value::from(index + 1)),
            ("index0".into(), Value::from(index)),
            ("revindex".into(), Value::from(count - index)),
            ("revindex0".into(), Value::from(count - index - 1)),
            ("first".into(), Value::from(index == 0)),
            ("last".into(), Value::from(index + 1 == count)),
            ("length".into(), Value::from(count)),
        ]);
        if control.all_items {
            extended.insert("allitems".into(), items.iter().cloned().collect::<Value>());
        }
        if index > 0 {
            extended.insert("previtem".into(), items[index - 1].clone());
        }
        if let Some(next) = items.get(index + 1) {
            extended.insert("nextitem".into(), next.clone());
        }
        vars.insert("ansible_loop".into(), mapping(extended));
    }
    vars
}

/// What the result of an item has beside the module's values.
fn of_item(repeat: &Loop, index: usize, value: &Value) -> Vars {
    let control = &repeat.control;
    let mut vars = Vars::from([
        (control.loop_var.clone(), value.clone()),
        ("ansible_loop_var".into(), Value::from(control.loop_var.as_ref())),
    ]);
    if let Some(name) = &control.index_var {
        vars.insert(name.clone(), Value::from(index));
        vars.insert("ansible_index_var".into(), Value::from(name.as_ref()));
    }
    vars
}

pub(super) fn label(batch: &Batch, repeat: &Loop, value: &Value, scope: &Scope) -> String {
    match &repeat.control.label {
        Some(written) => {
            batch.run.job.templar.render_string(&written.value, scope).unwrap_or_else(|_| written.value.to_string())
        }
        None => value.to_string(),
    }
}

/// The results of all items become one.
#[derive(Default)]
struct LoopResult {
    results: Vec<Value>,
    statuses: Vec<Status>,
    changed: bool,
    no_log: bool,
    effects: Vec<(Effect, Option<Delegate>)>,
    args: Option<Vars>,
    delegated: Option<String>,
    set: Arc<Vars>,
    message: Option<String>,
    took: std::time::Duration,
}

impl LoopResult {
    fn add(&mut self, ran: ItemResult) {
        self.results.push(mapping(result_vars(&ran.result)));
        self.statuses.push(ran.result.status);
        self.changed |= ran.result.changed;
        self.no_log |= ran.result.no_log;
        self.took += ran.result.took;
        if ran.result.failed() {
            self.message = ran.result.message;
            self.args = ran.args;
        }
        for effect in &ran.effects {
            if let Effect::SetFact(vars) = effect {
                extend(&mut self.set, vars.clone());
            }
        }
        self.delegated = ran.delegate.as_ref().map(|delegate| delegate.name.clone());
        self.effects.extend(one_effect(ran.effects, ran.delegate));
    }

    fn finish(self) -> TaskOutcome {
        let any = |status| self.statuses.contains(&status);
        let status = if any(Status::Unreachable) {
            Status::Unreachable
        } else if any(Status::Failed) {
            Status::Failed
        } else if any(Status::Ignored) {
            Status::Ignored
        } else if self.statuses.iter().all(|status| *status == Status::Skipped) {
            Status::Skipped
        } else if self.changed {
            Status::Changed
        } else {
            Status::Ok
        };
        let skipped = self.statuses.iter().all(|status| *status == Status::Skipped);
        let lost = |item: &Value| item.get_attr("unreachable").is_ok_and(|lost| lost.is_true());
        let lost = self.results.iter().any(lost);
        let mut values = Vars::from([("skipped".into(), Value::from(skipped))]);
        if lost {
            values.insert("unreachable".into(), Value::from(true));
        }
        values.insert("results".into(), Value::from(self.results));
        let message = match status {
            Status::Unreachable => self.message,
            Status::Failed | Status::Ignored if !lost => Some("One or more items failed".to_string()),
            Status::Skipped => Some("All items skipped".to_string()),
            _ => Some("All items completed".to_string()),
        };
        let result = TaskResult {
            changed: self.changed,
            message,
            values,
            no_log: self.no_log,
            took: self.took,
            ..blank(status)
        };
        TaskOutcome { result, effects: self.effects, looped: true, args: self.args, delegated: self.delegated }
    }
}
