//! Steps in order; a block splits its hosts: `rescue` for those that failed, `always` for all together.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::batch::Batch;
use super::host::{HostRun, HostState, extend};
use super::{handlers, hooks, include, meta, start_at, task};
use crate::playbook::{Block, Role, Step};

/// Takes a group of hosts through steps. Hosts that no longer go come back untouched.
pub(super) fn steps<'a>(batch: &'a Arc<Batch>, steps: &'a [Step], hosts: Vec<HostRun>) -> BoxFuture<'a, Vec<HostRun>> {
    Box::pin(async move {
        let mut hosts = hosts;
        for step in steps {
            if batch.run.stopping() || !hosts.iter().any(HostRun::going) {
                break;
            }
            let here = match step {
                Step::Task(task) => task,
                Step::Include(include) => &include.task,
                Step::Block(block) => {
                    hosts = one(batch, block, hosts).await;
                    continue;
                }
            };
            let (arrived, waiting) = start_at::arrive(here, hosts);
            hosts = match step {
                Step::Include(include) if !arrived.is_empty() => include::on_hosts(batch, include, arrived).await,
                Step::Task(task) if !arrived.is_empty() && meta::flushes_handlers(task) => {
                    handlers::on_request(batch, task, arrived).await
                }
                Step::Task(task) if !arrived.is_empty() => task::on_hosts(batch, task, arrived).await,
                _ => arrived,
            };
            if !waiting.is_empty() {
                hosts.extend(waiting);
                hosts.sort_by_key(|host| host.order);
            }
        }
        hosts
    })
}

async fn one(batch: &Arc<Batch>, block: &Block, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let (mut inside, mut outside): (Vec<_>, Vec<_>) = hosts
        .into_iter()
        .partition(|host| host.going() && !block.role_entry.as_ref().is_some_and(|role| has_run(host, role)));
    if let Some(role) = &block.role_entry {
        inside.iter_mut().for_each(|host| host.roles_done.push(role.clone()));
        inside = hooks::before_role(batch, role, inside).await;
    }
    let before: HashMap<Arc<str>, usize> =
        inside.iter().map(|host| (host.name.clone(), batch.run.ran(&host.name))).collect();
    let rescues = usize::from(!block.rescue.is_empty());
    inside.iter_mut().for_each(|host| host.rescues += rescues);
    inside = steps(batch, &block.steps, inside).await;
    inside.iter_mut().for_each(|host| host.rescues -= rescues);
    if let Some(role) = &block.role_entry {
        // A role of which nothing ran has not run.
        for host in &mut inside {
            if before.get(&host.name) == Some(&batch.run.ran(&host.name)) {
                host.roles_done.retain(|done| !Arc::ptr_eq(done, role));
            }
        }
        // `meta: end_role` took effect.
        inside.iter_mut().for_each(|host| host.role_ended = false);
        inside = hooks::after_role(batch, role, inside).await;
    }
    if !block.rescue.is_empty() {
        inside = rescue(batch, block, inside).await;
    }
    if !block.always.is_empty() {
        inside = always(batch, block, inside).await;
    }
    outside.extend(inside);
    outside.sort_by_key(|host| host.order);
    outside
}

/// A role runs once per play and host with the same parameters, unless it allows more.
fn has_run(host: &HostRun, role: &Role) -> bool {
    let same = |done: &Arc<Role>| {
        let named = done.name == role.name && done.path == role.path && done.distinction == role.distinction;
        named && done.params == role.params && done.use_vars == role.use_vars
    };
    !role.allow_duplicates && host.roles_done.iter().any(same)
}

async fn rescue(batch: &Arc<Batch>, block: &Block, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let saved = |host: &HostRun| matches!(host.state, HostState::Failed | HostState::Halted);
    let (mut failed, mut rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(saved);
    for host in &mut failed {
        if host.state == HostState::Failed {
            batch.run.count(&host.name, |counts| {
                counts.failed = counts.failed.saturating_sub(1);
                counts.rescued += 1;
            });
        }
        host.state = HostState::Going;
        extend(&mut host.vars.set, std::mem::take(&mut host.failure));
        batch.run.board.publish(&host.name, &mut host.vars);
        batch.gone.write().remove(&host.name);
    }
    rest.extend(steps(batch, &block.rescue, failed).await);
    rest.sort_by_key(|host| host.order);
    rest
}

/// Hosts that failed run it too, and stay failed.
async fn always(batch: &Arc<Batch>, block: &Block, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let mut before = HashMap::new();
    let inside = hosts
        .into_iter()
        .map(|mut host| {
            if matches!(host.state, HostState::Failed | HostState::Halted) {
                before.insert(host.name.clone(), host.state);
                host.state = HostState::Going;
            }
            host
        })
        .collect();
    let mut after = steps(batch, &block.always, inside).await;
    for host in &mut after {
        if let Some(state) = before.remove(&host.name).filter(|_| host.state == HostState::Going) {
            host.state = state;
        }
    }
    after
}
