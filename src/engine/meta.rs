//! `meta`: words to the engine itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::Batch;
use super::event::Event;
use super::host::{HostRun, HostState};
use super::item::template_message;
use super::target;
use super::task::start_of;
use crate::inventory::Inventory;
use crate::playbook::Task;
use crate::template;
use crate::value::Vars;
use crate::value::origin::Diagnostic;

/// Runs a `meta` task on the hosts whose conditions hold. `gone`: those that do not go any more.
pub(super) async fn on_hosts(
    batch: &Arc<Batch>,
    task: &Arc<Task>,
    hosts: Vec<HostRun>,
    gone: &mut [HostRun],
) -> Vec<HostRun> {
    let (mut chosen, mut rest) = choose(batch, task, hosts);
    if chosen.is_empty() {
        return rest;
    }
    let word = word(task);
    match word.as_str() {
        "end_host" => chosen.iter_mut().for_each(|host| host.state = HostState::Ended),
        "end_play" | "end_batch" => {
            chosen.iter_mut().for_each(|host| host.state = HostState::Ended);
            batch.ended.fetch_or(word == "end_play", Ordering::Relaxed);
        }
        "end_role" => chosen.iter_mut().for_each(|host| host.role_ended = true),
        // Of all hosts of the play, those that ended too.
        "clear_facts" => chosen.iter_mut().chain(gone.iter_mut()).for_each(|host| batch.run.board.clear_facts(host)),
        // They take part again from the next play on.
        "clear_host_errors" => {
            let lost = |host: &&mut HostRun| matches!(host.state, HostState::Failed | HostState::Unreachable);
            gone.iter_mut().filter(lost).for_each(|host| host.state = HostState::Ended);
            batch.forgiven.store(true, Ordering::Relaxed);
        }
        "refresh_inventory" => refresh_inventory(batch, &mut chosen, &mut rest),
        "reset_connection" => {
            for host in &mut chosen {
                if let Err(error) = reset_connection(batch, task, host).await {
                    fail(batch, host, &template_message(&error));
                }
            }
        }
        _ => {}
    }
    chosen.extend(rest);
    chosen.sort_by_key(|host| host.order);
    chosen
}

fn word(task: &Task) -> String {
    match task.action.args.values().next() {
        Some(written) => written.value.to_string(),
        None => "noop".to_string(),
    }
}

/// Whether a task is `meta: flush_handlers`, which runs other tasks.
pub(super) fn flushes_handlers(task: &Task) -> bool {
    task.action.doc.name == "meta" && word(task) == "flush_handlers"
}

/// Reports a `meta` task and divides hosts into those whose conditions hold and the others.
pub(super) fn choose(batch: &Batch, task: &Arc<Task>, hosts: Vec<HostRun>) -> (Vec<HostRun>, Vec<HostRun>) {
    let of_all = matches!(
        word(task).as_str(),
        "end_play" | "end_batch" | "refresh_inventory" | "clear_facts" | "clear_host_errors"
    );
    let start = Arc::new(start_of(batch, task, &hosts, false));
    let reported = |host: &HostRun, skipped| {
        batch.run.send_event(Event::Meta { task: start.clone(), host: host.name.clone(), skipped });
    };
    let (mut chosen, mut rest) = (Vec::new(), Vec::new());
    let mut refused = false;
    for mut host in hosts {
        // The first host's word counts for all, as the play is one thing.
        if of_all && !(chosen.is_empty() && rest.is_empty()) {
            if rest.is_empty() {
                chosen.push(host)
            } else {
                rest.push(host)
            }
            continue;
        }
        match holds(batch, task, &host) {
            Ok(true) => {
                reported(&host, false);
                chosen.push(host);
            }
            Ok(false) => {
                reported(&host, true);
                rest.push(host);
            }
            Err(error) => {
                fail(batch, &mut host, &template_message(&error));
                rest.push(host);
                refused = of_all;
            }
        }
    }
    // Whether the play ends is unknown, so no host continues.
    if refused {
        rest.iter_mut()
            .skip(1)
            .for_each(|host| fail(batch, host, &format!("the condition of meta: {} failed", word(task))));
    }
    (chosen, rest)
}

fn fail(batch: &Batch, host: &mut HostRun, message: &str) {
    batch.run.count(&host.name, |counts| counts.failed += 1);
    batch.run.send_event(Event::Warning(format!("{}: {message}", host.name)));
    host.state = HostState::Failed;
    let mut gone = batch.gone.write();
    gone.insert(host.name.clone(), host.state);
}

fn holds(batch: &Batch, task: &Task, host: &HostRun) -> Result<bool, template::Error> {
    let scope = batch.task_scope(host, task);
    for when in &task.keywords.when {
        if !batch.run.job.templar.condition(&when.value, Some(&when.origin), &scope)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads the inventory again. Hosts and groups that the run added are kept, and so are the play's hosts, with their new variables.
fn refresh_inventory(batch: &Batch, chosen: &mut [HostRun], rest: &mut [HostRun]) {
    let job = &batch.run.job;
    let sources: Vec<String> = job.inventory.sources.iter().map(|source| source.display().to_string()).collect();
    let read = match Inventory::load_with(&sources, &job.keyring, &job.inventory.reading()) {
        Ok(read) if read.confined == job.inventory.confined => read,
        read => {
            let became = Diagnostic::new(
                "its source has changed from a local file to a resource from an API: start windlass again",
                None,
            );
            let complaints = read.err().unwrap_or_else(|| vec![became]);
            let reported = complaints.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("; ");
            for host in chosen {
                fail(batch, host, &format!("cannot read the inventory again: {reported}"));
            }
            return;
        }
    };
    batch.run.change_inventory(|inventory| {
        let before = std::mem::replace(inventory, read);
        for (name, host) in &before.hosts {
            let known = job.inventory.hosts.get(name);
            let (added, vars): (Vec<String>, _) = match known {
                None => (host.groups.iter().map(ToString::to_string).collect(), host.vars.clone()),
                Some(known) => (host.groups.difference(&known.groups).map(ToString::to_string).collect(), Vars::new()),
            };
            if (known.is_none() || !added.is_empty())
                && let Err(complaint) = inventory.add_host(name, &added, vars)
            {
                batch.run.send_event(Event::Warning(format!("{name}: {complaint}")));
            }
        }
    });
    for host in chosen.iter_mut().chain(rest) {
        let HostRun { inventory, magic, .. } = batch.enter(&host.name, host.order);
        (host.inventory, host.magic) = (inventory, magic);
    }
}

/// The next task reconnects.
async fn reset_connection(batch: &Arc<Batch>, task: &Task, host: &HostRun) -> Result<(), template::Error> {
    let scope = batch.task_scope(host, task);
    let target = target::target(&batch.run.job, &host.name, &task.keywords, &scope)?;
    batch.run.pool.reset(&target).await;
    Ok(())
}
