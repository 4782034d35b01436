//! Handlers: tasks that wait until something changed.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::batch::Batch;
use super::host::{HostRun, HostState};
use super::notify::{handlers_named, snapshot};
use super::{failure_limit, include, meta, task};
use crate::playbook::Task;

/// `meta: flush_handlers`, on those hosts of a group that still go.
pub(super) async fn on_request(batch: &Arc<Batch>, meta: &Arc<Task>, hosts: Vec<HostRun>) -> Vec<HostRun> {
    if !batch.run.job.tags.allow(&meta.keywords.tags) || batch.run.stopping() {
        return hosts;
    }
    let (mut going, rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(HostRun::going);
    going.iter_mut().for_each(|host| batch.run.board.receive(host));
    if going.is_empty() {
        return rest;
    }
    let (chosen, skipped) = meta::choose(batch, meta, going);
    let mut after = flush(batch, chosen, batch.play.force_handlers).await;
    after.extend(skipped);
    failure_limit::spread_failure(batch, meta, &mut after);
    after.extend(rest);
    after.sort_by_key(|host| host.order);
    after
}

/// Runs the notified handlers in the order of definition, and starts over until none is notified.
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
                let found = handlers_named(batch, host, &handlers, &name);
                host.waiting.extend(found);
            }
        }
        // Forced handlers run on hosts that another one's failure has stopped, too.
        let forced = |host: &HostRun| force && matches!(host.state, HostState::Failed | HostState::Halted);
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
                host.state = HostState::Going;
            }
        }
        let mut after = match &handler.include {
            Some(include) => include::on_hosts(batch, include, chosen).await,
            None => task::announced(batch, &handler.task, chosen, true).await,
        };
        for host in &mut after {
            // A host that fails in a handler runs no further ones, forced or not.
            if host.state == HostState::Failed {
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
