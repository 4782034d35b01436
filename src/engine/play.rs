//! Plays in order, their hosts in batches, the sections of a play.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::batch::Batch;
use super::host::{HostRun, HostState};
use super::{
    Error, Event, Gathering, HostFailures, Job, Run, batch, block, handlers, hooks, keyword, precedence, task,
};
use crate::inventory::{Inventory, VarsFiles, split};
use crate::playbook::load::setup_task;
use crate::playbook::{Order, Play, SourceValue, Strategy};
use crate::value::mutex::RwLock;
use crate::value::origin::Diagnostic;
use crate::value::{Value, float};

/// Runs every play of every playbook.
pub(super) async fn run_plays(run: &Arc<Run>) -> Result<(), Error> {
    let mut gone = HashMap::new();
    let result = playbooks(run, &mut gone).await;
    run.warn();
    let hosts =
        |wanted: HostState| gone.iter().filter(|(_, state)| **state == wanted).map(|(host, _)| host.clone()).collect();
    *run.lost.lock() = HostFailures { failed: hosts(HostState::Failed), unreachable: hosts(HostState::Unreachable) };
    result
}

/// Hosts that failed or were lost, and which of both.
type FailedHosts = HashMap<Arc<str>, HostState>;

async fn playbooks(run: &Arc<Run>, gone: &mut FailedHosts) -> Result<(), Error> {
    let mut files: IndexMap<PathBuf, Arc<VarsFiles>> = IndexMap::new();
    for playbook in &run.job.playbooks {
        for play in playbook {
            if run.stopping() {
                return Ok(());
            }
            if run.start.as_ref().is_some_and(|start| start.skips(play)) {
                continue;
            }
            let beside = vars_files_of(run, &mut files, &play.directory)?;
            *run.beside.write() = beside.clone();
            let span = tracing::debug_span!("play", at = %play.origin);
            if !one(run, play, beside, gone).instrument(span).await? {
                return Ok(());
            }
        }
        if !gone.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

fn vars_files_of(
    run: &Run,
    read: &mut IndexMap<PathBuf, Arc<VarsFiles>>,
    directory: &Path,
) -> Result<Arc<VarsFiles>, Error> {
    if run.job.loader.ignores_beside {
        return Ok(Arc::new(VarsFiles::unread(directory)));
    }
    let inventory = run.inventory.read();
    match read.get_mut(directory) {
        // A play before this one may have added hosts and groups.
        Some(files) => Arc::make_mut(files).complete(&inventory, &run.job.keyring)?,
        None => {
            let files = crate::inventory::vars_files(directory, &inventory, &run.job.keyring)?;
            read.insert(directory.to_path_buf(), Arc::new(files));
        }
    }
    Ok(read[directory].clone())
}

/// One play; false: nothing after it shall run.
async fn one(run: &Arc<Run>, play: &Arc<Play>, files: Arc<VarsFiles>, gone: &mut FailedHosts) -> Result<bool, Error> {
    let Selected { hosts, pattern, unmatched } = {
        let inventory = run.inventory.read();
        select(&run.job, &inventory, play)?
    };
    let left = |hosts: &[Arc<str>], gone: &FailedHosts| -> Vec<Arc<str>> {
        hosts.iter().filter(|host| !gone.contains_key(*host)).cloned().collect()
    };
    let going = left(&hosts, gone);
    run.warn();
    for part in unmatched {
        run.send_event(Event::Warning(format!("{part:?} matches no host or group")));
    }
    run.send_event(Event::PlayStart {
        name: batch::play_name(&run.job, play, &pattern),
        origin: play.origin.clone(),
        hosts: going.clone(),
        check: run.job.check,
    });
    if going.is_empty() {
        // Hosts that failed before are listed as failed.
        if hosts.is_empty() {
            run.send_event(Event::NoHosts { pattern });
        }
        return Ok(true);
    }
    let play_hosts = Arc::new(hosts);
    let scope = precedence::before_any_host(&run.job, play);
    let templar = &run.job.templar;
    let gather_facts = keyword::keyword_flag(templar, ("gather_facts", play.gather_facts.as_ref()), &scope)?
        .unwrap_or(run.job.options.gathering != Gathering::Explicit);
    let max_fail_percentage =
        keyword::percentage(templar, ("max_fail_percentage", play.max_fail_percentage.as_ref()), &scope)?;
    // Failed hosts keep their positions: earlier failures do not change which hosts share a batch.
    let mut first = true;
    for members in batches(run, play, &play_hosts)? {
        let members = left(&members, gone);
        if members.is_empty() {
            continue;
        }
        if run.stopping() {
            return Ok(false);
        }
        if !std::mem::take(&mut first) {
            run.send_event(Event::NextBatch);
        }
        let shared = precedence::BatchVars::new(run, play, &play_hosts, &members);
        let handlers = play.all_roles.iter().flat_map(|role| &role.handlers).chain(&play.handlers);
        let batch = Arc::new(Batch {
            run: run.clone(),
            play: play.clone(),
            play_hosts: play_hosts.clone(),
            hosts: members.clone(),
            gather_facts,
            max_fail_percentage,
            files: files.clone(),
            handlers: RwLock::new(handlers.cloned().map(Arc::new).collect()),
            shared,
            gone: RwLock::new(gone.clone()),
            forgiven: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let after = sections(&batch).await;
        if batch.forgiven.load(Ordering::Relaxed) {
            gone.retain(|host, _| !play_hosts.contains(host));
        }
        let lost = |host: &&HostRun| matches!(host.state, HostState::Failed | HostState::Unreachable);
        gone.extend(after.iter().filter(lost).map(|host| (host.name.clone(), host.state)));
        let halted = after.iter().any(|host| host.state == HostState::Halted);
        if halted || after.iter().all(|host| lost(&host)) {
            run.send_event(Event::NoHostsLeft { percentage: halted && play.max_fail_percentage.is_some() });
            return Ok(false);
        }
        if batch.ended.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(true)
}

/// What a play's `hosts` names.
pub(super) struct Selected {
    /// Within the limit.
    pub hosts: Vec<Arc<str>>,
    pub pattern: String,
    /// Parts of the pattern that match nothing.
    pub unmatched: Vec<String>,
}

/// A play's hosts within the limit, in the play's order.
pub(super) fn select(job: &Job, inventory: &Inventory, play: &Play) -> Result<Selected, Error> {
    let scope = precedence::before_any_host(job, play);
    let written = job.templar.render(&play.hosts.value, &scope)?;
    let patterns: Vec<String> = match written.try_iter() {
        Ok(items) if written.kind() == minijinja::value::ValueKind::Seq => items.map(|item| item.to_string()).collect(),
        _ => vec![written.to_string()],
    };
    // As in Ansible: an empty list is no host, and an empty name is an error. Without any part, a pattern would be all hosts.
    if patterns.is_empty() {
        return Ok(Selected { hosts: Vec::new(), pattern: "[]".to_owned(), unmatched: Vec::new() });
    }
    if written.is_undefined() || written.is_none() || patterns.iter().any(|pattern| split(pattern).is_empty()) {
        let complaint = Diagnostic::new("\"hosts\" has an empty value", Some(&play.hosts.origin));
        return Err(complaint.hint("name a host or group, or use an empty list for no host").into());
    }
    let at = |complaint: Diagnostic| Diagnostic {
        origin: complaint.origin.or_else(|| Some(play.hosts.origin.clone())),
        ..complaint
    };
    let (mut hosts, unmatched) = inventory.select_all(&patterns).map_err(at)?;
    if let Some(limit) = &job.limit {
        let (within, _) = inventory.select_limit(limit)?;
        hosts.retain(|host| within.contains(host));
    }
    match play.order {
        Order::Inventory => {}
        Order::ReverseInventory => hosts.reverse(),
        Order::Sorted => hosts.sort(),
        Order::ReverseSorted => {
            hosts.sort();
            hosts.reverse();
        }
        Order::Shuffle => {
            use rand::seq::SliceRandom;
            hosts.shuffle(&mut rand::rng());
        }
    }
    Ok(Selected { hosts, pattern: patterns.join(","), unmatched })
}

/// `serial`: sizes or percentages, the last one repeated until no host is left.
fn batches(run: &Run, play: &Play, hosts: &[Arc<str>]) -> Result<Vec<Vec<Arc<str>>>, Error> {
    let scope = precedence::before_any_host(&run.job, play);
    let mut sizes = Vec::new();
    for written in &play.serial {
        let value = run.job.templar.render(&written.value, &scope)?;
        let items: Vec<Value> = match value.try_iter() {
            Ok(items) if value.kind() == minijinja::value::ValueKind::Seq => items.collect(),
            _ => vec![value],
        };
        for item in items {
            sizes.push(share(&item, hosts.len(), written)?);
        }
    }
    let mut batches = Vec::new();
    let mut rest = hosts;
    let mut sizes = sizes.into_iter();
    let mut size = hosts.len();
    while !rest.is_empty() {
        size = sizes.next().unwrap_or(size).min(rest.len());
        let (batch, others) = rest.split_at(size);
        batches.push(batch.to_vec());
        rest = others;
    }
    Ok(batches)
}

/// `2`, `"30%"`: how many of `total` that is, at least one.
fn share(value: &Value, total: usize, written: &SourceValue) -> Result<usize, Error> {
    let text = value.to_string();
    let size = match text.strip_suffix('%') {
        Some(percent) => {
            percent.trim().parse::<f64>().ok().map(|percent| float::clamped(total as f64 * percent / 100.0) as usize)
        }
        None => text.trim().parse::<usize>().ok().map(|size| if size == 0 { total } else { size }),
    };
    let wrong =
        || Diagnostic::new(format!("serial must be a number or a percentage, not {text:?}"), Some(&written.origin));
    Ok(size.ok_or_else(wrong)?.max(1))
}

/// Takes a batch through the sections of the play: in step, or with `free` each host on its own.
async fn sections(batch: &Arc<Batch>) -> Vec<HostRun> {
    let hosts = batch.hosts.iter().enumerate().map(|(order, name)| {
        let mut host = batch.enter(name, order);
        host.vars.files = Some(batch.files.clone());
        host.vars.roles.clear();
        batch.run.board.publish(name, &mut host.vars);
        host
    });
    let hosts = hooks::before_play(batch, precedence::read_vars_files(batch, hosts.collect())).await;
    let after = match batch.play.strategy {
        Strategy::Linear => group(batch.clone(), hosts).await,
        strategy @ (Strategy::Free | Strategy::HostPinned) => {
            let places = if strategy == Strategy::Free { hosts.len() } else { batch.run.job.forks };
            let places = Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS)));
            let way = |host| {
                let (batch, places) = (batch.clone(), places.clone());
                async move {
                    let _place = places.acquire().await.expect("it is never closed");
                    group(batch, vec![host]).await
                }
            };
            let mut running: JoinSet<Vec<HostRun>> = hosts.into_iter().map(way).collect();
            let mut after = Vec::new();
            while let Some(done) = running.join_next().await {
                after.extend(done.expect("a host's way through a play does not panic"));
            }
            after.sort_by_key(|host| host.order);
            after
        }
    };
    hooks::after_play(batch, after).await
}

/// A group of hosts that keeps step within itself.
async fn group(batch: Arc<Batch>, mut hosts: Vec<HostRun>) -> Vec<HostRun> {
    let play = batch.play.clone();
    hosts = gather(&batch, hosts).await;
    if let Some(start) = &batch.run.start {
        hosts.iter_mut().for_each(|host| host.waits_for = start.awaited(&batch.play));
    }
    for section in [&play.pre_tasks, &play.roles, &play.tasks, &play.post_tasks] {
        hosts = block::steps(&batch, section, hosts).await;
        // Handlers notified in `roles` wait for the end of `tasks`.
        if !std::ptr::eq(section, &play.roles) {
            hosts = handlers::flush(&batch, hosts, play.force_handlers).await;
        }
    }
    hosts
}

/// Gathers facts, where play and configuration say so.
async fn gather(batch: &Arc<Batch>, hosts: Vec<HostRun>) -> Vec<HostRun> {
    let gathering = batch.run.job.options.gathering;
    let (true, Some(entry)) =
        (batch.gather_facts && batch.run.job.tags.allow(&["always".into()]), crate::modules::find_module("setup"))
    else {
        return hosts;
    };
    let known = |host: &HostRun| gathering == Gathering::Smart && host.vars.gathered;
    let (mut known, asked): (Vec<_>, Vec<_>) = hosts.into_iter().partition(known);
    known.extend(task::on_hosts(batch, &Arc::new(setup_task(&batch.play, entry.doc)), asked).await);
    known.sort_by_key(|host| host.order);
    known
}
