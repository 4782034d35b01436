//! Handlers: tasks that wait until something changed.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::batch::Batch;
use super::host::{HostRun, State};
use super::item::template_message;
use super::{Event, include, task};
use crate::playbook::{Handler, Task};
use crate::value::Value;

/// Notes what a changed task notifies; a name that no handler has is an error. Which handlers are meant is found when
/// they are run: an include may bring others of that name until then.
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
            if !named(batch, host, &handlers, &name).is_empty() {
                host.notified.insert(name.into());
                continue;
            }
            let words = format!("no handler has the name, or listens to, {name:?} ({})", written.origin);
            match batch.run.job.options.missing_handlers_pass {
                true => batch.run.tell(Event::Warning(words)),
                false => return Err(words),
            }
        }
    }
    Ok(())
}

fn snapshot(batch: &Batch) -> Vec<Arc<Handler>> {
    batch.handlers.read().clone()
}

/// The last handler of that name, and all that listen to it: of those that are written with one name, as the handlers of
/// a role that is used several times, the last one.
fn named(batch: &Batch, host: &HostRun, handlers: &[Arc<Handler>], name: &str) -> Vec<usize> {
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

/// Runs what was notified, in the order of definition, and again from the first on, until nobody waits any more.
pub(super) fn flush(batch: &Arc<Batch>, hosts: Vec<HostRun>, force: bool) -> BoxFuture<'_, Vec<HostRun>> {
    Box::pin(rounds(batch, hosts, force))
}

async fn rounds(batch: &Arc<Batch>, mut hosts: Vec<HostRun>, force: bool) -> Vec<HostRun> {
    // Where the present way through the list is: what was defined before waits for the next one.
    let mut at = 0;
    loop {
        let handlers = snapshot(batch);
        for host in &mut hosts {
            for name in std::mem::take(&mut host.notified) {
                let found = named(batch, host, &handlers, &name);
                host.waiting.extend(found);
            }
        }
        // Forced handlers run on hosts that another one's failure has stopped, too.
        let forced = |host: &HostRun| force && matches!(host.state, State::Failed | State::Halted);
        let waits = |host: &HostRun| !host.waiting.is_empty() && (host.going() || forced(host));
        let waiting = || hosts.iter().filter(|host| waits(host)).flat_map(|host| host.waiting.iter().copied());
        let Some(index) = waiting().filter(|index| *index >= at).min().or_else(|| waiting().min()) else {
            return hosts;
        };
        at = index + 1;
        if batch.run.stopping() {
            return hosts;
        }
        let handler = handlers[index].clone();
        let (mut chosen, rest): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|host| waits(host) && host.waiting.contains(&index));
        let mut stopped_before = std::collections::HashMap::new();
        for host in &mut chosen {
            host.waiting.shift_remove(&index);
            if !host.going() {
                stopped_before.insert(host.name.clone(), host.state);
                host.state = State::Going;
            }
        }
        let mut after = match &handler.include {
            Some(include) => include::on_hosts(batch, include, chosen).await,
            None => task::announced(batch, &handler.task, chosen, true).await,
        };
        for host in &mut after {
            // A host that fails in a handler runs no further ones, forced or not.
            if host.state == State::Failed {
                host.notified.clear();
                host.waiting.clear();
            }
            if let Some(before) = stopped_before.get(&host.name).filter(|_| host.going()) {
                host.state = *before;
            }
        }
        after.extend(rest);
        after.sort_by_key(|host| host.order);
        hosts = after;
    }
}
