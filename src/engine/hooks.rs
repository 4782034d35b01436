//! Hooks: tasks that configuration puts before and after every play and role.

use std::sync::Arc;

use super::batch::Batch;
use super::host::{HostRun, HostState, IncludeLayer};
use super::{block, handlers};
use crate::playbook::{Role, Step};
use crate::value::{Value, Vars};

/// The hook before a play: before its facts are gathered.
pub(super) async fn before_play(batch: &Arc<Batch>, hosts: Vec<HostRun>) -> Vec<HostRun> {
    if batch.play.hooks.before_play.is_empty() {
        return hosts;
    }
    let hosts = inside(batch, &batch.play.hooks.before_play, hosts, None).await;
    handlers::flush(batch, hosts, false).await
}

/// The hook after a play: for all hosts that can be reached, also those that failed or ended early.
pub(super) async fn after_play(batch: &Arc<Batch>, hosts: Vec<HostRun>) -> Vec<HostRun> {
    match batch.play.hooks.after_play.is_empty() {
        true => hosts,
        false => after(batch, &batch.play.hooks.after_play, hosts, None).await,
    }
}

pub(super) async fn before_role(batch: &Arc<Batch>, role: &Role, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let steps = &batch.play.hooks.before_role;
    match steps.is_empty() || in_hook(&hosts) {
        true => hosts,
        false => inside(batch, steps, hosts, Some(role)).await,
    }
}

/// As [`after_play`], for the hosts that entered the role.
pub(super) async fn after_role(batch: &Arc<Batch>, role: &Role, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let steps = &batch.play.hooks.after_role;
    match steps.is_empty() || in_hook(&hosts) {
        true => hosts,
        false => after(batch, steps, hosts, Some(role)).await,
    }
}

/// Roles that a hook uses have no hooks of their own.
fn in_hook(hosts: &[HostRun]) -> bool {
    hosts.iter().any(|host| host.in_hook)
}

/// Runs a hook whatever became of its hosts; what became of them stays, unless the hook itself fails.
async fn after(batch: &Arc<Batch>, steps: &[Step], hosts: Vec<HostRun>, role: Option<&Role>) -> Vec<HostRun> {
    let lost = |host: &&HostRun| matches!(host.state, HostState::Failed | HostState::Unreachable);
    let failed: Value = hosts.iter().filter(lost).map(|host| Value::from(host.name.as_ref())).collect();
    let mut before = std::collections::HashMap::new();
    let revived = hosts
        .into_iter()
        .map(|mut host| {
            let vars = Vars::from([
                ("windlass_hook_failed".into(), Value::from(host.state == HostState::Failed)),
                ("windlass_hook_failed_hosts".into(), failed.clone()),
            ]);
            host.include_params.push(IncludeLayer { vars: Arc::new(vars), own: false });
            if matches!(host.state, HostState::Failed | HostState::Halted | HostState::Ended) {
                // Handlers that it never came to are not the hook's.
                let handlers = (std::mem::take(&mut host.notified), std::mem::take(&mut host.waiting));
                before.insert(host.name.clone(), (host.state, handlers));
                host.state = HostState::Going;
            }
            host
        })
        .collect();
    let mut hosts = inside(batch, steps, revived, role).await;
    if role.is_none() {
        hosts = handlers::flush(batch, hosts, false).await;
    }
    for host in &mut hosts {
        host.include_params.pop();
        if let Some((state, (notified, waiting))) = before.remove(&host.name) {
            host.notified.extend(notified);
            host.waiting.extend(waiting);
            if host.going() {
                host.state = state;
            }
        }
    }
    hosts
}

/// Runs the steps of a hook, with the variables that say where they are.
async fn inside(batch: &Arc<Batch>, steps: &[Step], mut hosts: Vec<HostRun>, role: Option<&Role>) -> Vec<HostRun> {
    let mut vars = Vars::from([("windlass_hook_play".into(), Value::from(batch.play_name()))]);
    if let Some(role) = role {
        vars.insert("windlass_hook_role".into(), Value::from(role.name.as_ref()));
    }
    let vars = Arc::new(vars);
    for host in &mut hosts {
        host.in_hook = true;
        host.include_params.push(IncludeLayer { vars: vars.clone(), own: false });
    }
    let mut hosts = block::steps(batch, steps, hosts).await;
    for host in &mut hosts {
        host.in_hook = false;
        host.include_params.pop();
    }
    hosts
}
