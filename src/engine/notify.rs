//! `notify`: which handlers a changed task asks for.

use std::sync::Arc;

use super::Event;
use super::batch::Batch;
use super::host::HostRun;
use super::item::template_message;
use crate::playbook::{Handler, Task};
use crate::value::Value;

/// Notes what a changed task notifies; a name that no handler has is an error. Which handlers are meant is found when
/// they are run: an include may add others of that name until then.
pub(super) fn notify(batch: &Batch, task: &Task, host: &mut HostRun) -> Result<(), String> {
    if task.notify.is_empty() {
        return Ok(());
    }
    let scope = batch.task_scope(host, task);
    let handlers = snapshot(batch);
    for written in &task.notify {
        let rendered =
            batch.run.job.templar.render(&written.value, &scope).map_err(|error| template_message(&error))?;
        let names: Vec<Value> = match rendered.kind() {
            minijinja::value::ValueKind::Seq => rendered.try_iter().into_iter().flatten().collect(),
            _ => vec![rendered],
        };
        for name in names.iter().map(ToString::to_string) {
            if !handlers_named(batch, host, &handlers, &name).is_empty() {
                host.notified.insert(name.into());
                continue;
            }
            let words = format!("no handler has the name, or listens to, {name:?} ({})", written.origin);
            match batch.run.job.options.missing_handlers_pass {
                true => batch.run.send_event(Event::Warning(words)),
                false => return Err(words),
            }
        }
    }
    Ok(())
}

pub(super) fn snapshot(batch: &Batch) -> Vec<Arc<Handler>> {
    batch.handlers.read().clone()
}

/// The last handler of that name, and all that listen to it: of those that are written with one name, as the handlers of
/// a role that is used several times, the last one.
pub(super) fn handlers_named(batch: &Batch, host: &HostRun, handlers: &[Arc<Handler>], name: &str) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let by_name = handlers.iter().enumerate().rev().find(|(_, handler)| {
        let Some(own) = &handler.task.name else { return false };
        let scope = batch.task_scope(host, &handler.task);
        let own = batch.run.job.templar.render_string(own, &scope).unwrap_or_else(|_| own.to_string());
        own == name || handler.task.role.as_ref().is_some_and(|role| format!("{} : {own}", role.name) == name)
    });
    found.extend(by_name.map(|(index, _)| index));
    let listens = |handler: &Handler| handler.listen.iter().any(|topic| topic.as_ref() == name);
    let mut seen = Vec::new();
    for (index, handler) in handlers.iter().enumerate().rev().filter(|(_, handler)| listens(handler)) {
        let written = handler.task.name.as_ref().map(ToString::to_string);
        if written.is_none() || !seen.contains(&written) {
            found.push(index);
            seen.push(written);
        }
    }
    found
}
