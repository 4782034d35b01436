//! One task on a group of hosts: side by side within `forks`, results back in the group's order.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::batch::Batch;
use super::event::{Event, Status, TaskResult, TaskStart, registered, result_vars};
use super::failure_limit::spread_failure;
use super::host::{DelegatedFacts, HostRun, HostState, extend};
use super::item::{Delegate, Item};
use super::keyword::{self, Refused, SharedTaskKeywords};
use super::loops::{TaskOutcome, all_items, one_effect};
use super::{Run, meta, notify, precedence, step};
use crate::modules::{self, Effect};
use crate::playbook::Task;
use crate::value::{Value, Vars, mapping};

/// Runs a task on those hosts of a group that still go.
pub(super) async fn on_hosts(batch: &Arc<Batch>, task: &Arc<Task>, hosts: Vec<HostRun>) -> Vec<HostRun> {
    if !batch.run.job.tags.allow(&task.keywords.tags) || batch.run.stopping() {
        return hosts;
    }
    announced(batch, task, hosts, false).await
}

/// As [`on_hosts`], for a task that tags select.
pub(super) async fn announced(
    batch: &Arc<Batch>,
    task: &Arc<Task>,
    hosts: Vec<HostRun>,
    handler: bool,
) -> Vec<HostRun> {
    let (mut going, mut rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(HostRun::going);
    going.iter_mut().for_each(|host| batch.run.board.receive(host));
    if going.is_empty() {
        return rest;
    }
    if task.action.doc.name == "meta" {
        let mut going = meta::on_hosts(batch, task, going, &mut rest).await;
        spread_failure(batch, task, &mut going);
        rest.extend(going);
        rest.sort_by_key(|host| host.order);
        return rest;
    }
    let start = Arc::new(start_of(batch, task, &going, handler));
    if !step::agrees(&batch.run, &start).await {
        rest.extend(going);
        rest.sort_by_key(|host| host.order);
        return rest;
    }
    batch.run.send_event(Event::TaskStart(start.clone()));
    let (sharing, able, refused) = keyword::sharing(batch, task, going);
    let mut after = match able.is_empty() {
        true => able,
        false if sharing.once => on_first(batch, task, &start, able, &mut rest).await,
        false => on_each(batch, task, &start, able, sharing).await,
    };
    for refused in refused {
        after.push(refuse(batch, task, &start, refused).await);
    }
    batch.run.send_event(Event::TaskEnd(start));
    spread_failure(batch, task, &mut after);
    rest.extend(after);
    rest.sort_by_key(|host| host.order);
    rest
}

pub(super) fn start_of(batch: &Batch, task: &Task, going: &[HostRun], handler: bool) -> TaskStart {
    let scope = batch.task_scope(&going[0], task);
    let templar = &batch.run.job.templar;
    // As with results, a secret must not come out because reading the flag failed.
    let secret =
        || keyword::keyword_flag(templar, ("no_log", task.keywords.no_log.as_ref()), &scope).unwrap_or(Some(true));
    let name = match &task.name {
        Some(name) if secret() == Some(true) => name.to_string(),
        // A name may use the loop's item, which is not known here: then it is shown as written.
        Some(name) => templar.render_string(name, &scope).unwrap_or_else(|_| name.to_string()),
        None => task.action.written.to_string(),
    };
    let name = match &task.role {
        Some(role) => format!("{} : {name}", role.name),
        None => name,
    };
    TaskStart {
        id: batch.run.next_id(),
        name,
        role: task.role.as_ref().map(|role| Arc::from(&*role.name)),
        action: task.action.doc.name,
        origin: task.origin.clone(),
        handler,
        hosts: going.len(),
    }
}

/// A host on which the keywords of the task cannot be read fails.
async fn refuse(batch: &Arc<Batch>, task: &Arc<Task>, start: &Arc<TaskStart>, refused: Refused) -> HostRun {
    let (mut host, error) = refused;
    batch.run.send_event(Event::HostStart { task: start.clone(), host: host.name.clone() });
    let result = Item::new(batch, &host, task, start, batch.task_scope(&host, task)).without_items(&error);
    let all = TaskOutcome { result, effects: Vec::new(), looped: false, args: None, delegated: None };
    settle(batch, task, start, &mut host, all).await;
    host
}

/// `run_once`: the first host runs it, all keep the result, those that failed before too; its failure is everyone's.
async fn on_first(
    batch: &Arc<Batch>,
    task: &Arc<Task>,
    start: &Arc<TaskStart>,
    mut hosts: Vec<HostRun>,
    rest: &mut [HostRun],
) -> Vec<HostRun> {
    let first = hosts.remove(0);
    let (first, left) = on_host(batch.clone(), task.clone(), start.clone(), first).await;
    // Of a module that runs once by its nature, the others get nothing.
    let shares = task.keywords.run_once.is_some();
    let reached = |host: &&mut HostRun| host.state != HostState::Unreachable;
    for host in hosts.iter_mut().chain(rest.iter_mut().filter(reached)) {
        if shares {
            if !left.facts.is_empty() {
                host.vars.add_facts(left.facts.clone());
            }
            extend(&mut host.vars.set, left.set.clone());
            let behaviour = batch.run.job.options.hash_behaviour;
            for (own, merged) in &left.included {
                host.vars.include(own.clone(), merged.clone(), behaviour);
            }
        }
        if host.going() && !matches!(first.state, HostState::Going | HostState::Ended) {
            host.failure = first.failure.clone();
            host.state = HostState::Halted;
        }
        batch.run.board.publish(&host.name, &mut host.vars);
    }
    hosts.insert(0, first);
    hosts
}

async fn on_each(
    batch: &Arc<Batch>,
    task: &Arc<Task>,
    start: &Arc<TaskStart>,
    hosts: Vec<HostRun>,
    sharing: SharedTaskKeywords,
) -> Vec<HostRun> {
    let throttle = sharing.throttle.map(|permits| Arc::new(Semaphore::new(permits)));
    let mut running = JoinSet::new();
    for host in hosts {
        let (batch, task, start) = (batch.clone(), task.clone(), start.clone());
        // Taken here, so that hosts have their turns in their order.
        let turn = match &throttle {
            Some(throttle) => throttle.clone().acquire_owned().await.ok(),
            None => None,
        };
        let span = tracing::debug_span!("task", name = start.name, host = %host.name);
        let work = async move {
            let _turn = turn;
            on_host(batch, task, start, host).await.0
        };
        running.spawn(work.instrument(span));
    }
    let mut after = Vec::new();
    while let Some(done) = running.join_next().await {
        after.push(done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())));
    }
    after
}

/// The variables that a task left its host.
#[derive(Default)]
struct TaskVariables {
    facts: Vars,
    set: Vars,
    /// Of each `include_vars`: the person's own, and those merged with what a host may have said.
    included: Vec<(Vars, Vars)>,
}

/// One host goes in and comes out, with what the task left it.
async fn on_host(
    batch: Arc<Batch>,
    task: Arc<Task>,
    start: Arc<TaskStart>,
    mut host: HostRun,
) -> (HostRun, TaskVariables) {
    let run = batch.run.clone();
    let turn = run.forks.acquire().await;
    if run.stopping() {
        return (host, TaskVariables::default());
    }
    run.send_event(Event::HostStart { task: start.clone(), host: host.name.clone() });
    tracing::debug!(module = start.action, at = %start.origin, "begins");
    let scope = batch.task_scope(&host, &task);
    let mut ran = match &task.repeat {
        None => {
            let ran = Item::new(&batch, &host, &task, &start, scope).run_item().await;
            let delegated = ran.delegate.as_ref().map(|delegate| delegate.name.clone());
            let effects = one_effect(ran.effects, ran.delegate);
            TaskOutcome { result: ran.result, effects, looped: false, args: ran.args, delegated }
        }
        Some(repeat) => all_items(&batch, &task, &start, &host, repeat, scope).await,
    };
    drop(turn);
    // Before another task can send what this one has created to a host.
    if ran.result.status != Status::Skipped
        && let Some(why) = unsaved(&run).await
        && !ran.result.failed()
    {
        ran.result.status = Status::Failed;
        ran.result.message = Some(why);
    }
    let left = settle(&batch, &task, &start, &mut host, ran).await;
    (host, left)
}

/// Keeps the credentials that a task has written; why they could not be kept.
async fn unsaved(run: &Run) -> Option<String> {
    let credentials = run.job.inventory.credentials.as_ref()?;
    let saved = credentials.save().await;
    if let Some(warning) = credentials.take_warning() {
        run.send_event(Event::Warning(warning));
    }
    saved.err()
}

/// Applies what a task left: effects, `register`, `notify`, the counts, the host's state, the report.
async fn settle(
    batch: &Arc<Batch>,
    task: &Task,
    start: &Arc<TaskStart>,
    host: &mut HostRun,
    mut all: TaskOutcome,
) -> TaskVariables {
    let begun = Instant::now();
    let mut left = TaskVariables::default();
    for (effect, delegate) in std::mem::take(&mut all.effects) {
        apply(batch, task, host, effect, delegate, &mut left).await;
    }
    // A failure that is ignored notifies nobody, as in Ansible.
    if all.result.status == Status::Changed
        && let Err(message) = notify::notify(batch, task, host)
    {
        all.result.status = Status::Failed;
        all.result.message = Some(message);
    }
    if let Some(name) = &task.register {
        let mut values = result_vars(&all.result);
        // Of a loop in which nothing failed Ansible says no word of failure.
        if all.looped && !values.get("failed").is_some_and(Value::is_true) {
            values.shift_remove("failed");
        }
        let registered = Vars::from([(name.clone(), mapping(values))]);
        left.set.extend(registered.clone());
        extend(&mut host.vars.set, registered);
    }
    count(batch, host, &all.result);
    match all.result.status {
        Status::Failed => {
            host.failure = Vars::from([
                ("ansible_failed_task".into(), failed_task(task, start, all.args.take())),
                ("ansible_failed_result".into(), registered(&all.result)),
            ]);
            host.state = HostState::Failed;
        }
        Status::Unreachable => host.state = HostState::Unreachable,
        _ => {}
    }
    if !host.going() {
        batch.gone.write().insert(host.name.clone(), host.state);
    }
    batch.run.board.publish(&host.name, &mut host.vars);
    batch.run.warn();
    all.result.took += begun.elapsed();
    tracing::debug!(status = ?all.result.status, seconds = all.result.took.as_secs_f64(), "ended");
    batch.run.send_event(Event::Result {
        task: start.clone(),
        host: host.name.clone(),
        delegated: all.delegated,
        looped: all.looped,
        result: Arc::new(all.result),
    });
    left
}

/// What `ansible_failed_task` has of Ansible's. A task without a name has none here.
fn failed_task(task: &Task, start: &TaskStart, args: Option<Vars>) -> Value {
    let role = task.role.as_ref().map_or_else(String::new, |role| format!("{} : ", role.name));
    let name = start.name.strip_prefix(&role).unwrap_or(&start.name);
    let name = if task.name.is_some() { name } else { "" };
    let none = || Value::from(());
    mapping([
        ("name", Value::from(name)),
        ("action", Value::from(&*task.action.written)),
        ("args", args.map_or_else(none, mapping)),
        ("register", task.register.as_deref().map_or_else(none, Value::from)),
        ("tags", task.keywords.tags.iter().map(|tag| Value::from(&**tag)).collect()),
    ])
}

fn count(batch: &Batch, host: &HostRun, result: &TaskResult) {
    batch.run.count(&host.name, |counts| match result.status {
        Status::Ok => counts.ok += 1,
        Status::Changed => {
            counts.ok += 1;
            counts.changed += 1;
        }
        Status::Skipped => counts.skipped += 1,
        Status::Ignored => {
            counts.ok += 1;
            counts.ignored += 1;
            counts.changed += usize::from(result.changed);
        }
        Status::Failed => counts.failed += 1,
        Status::Unreachable => counts.unreachable += 1,
    });
}

async fn apply(
    batch: &Arc<Batch>,
    task: &Task,
    host: &mut HostRun,
    effect: Effect,
    delegate: Option<Delegate>,
    left: &mut TaskVariables,
) {
    match effect {
        Effect::Facts(facts) => match delegate.filter(|_| task.delegate_facts) {
            Some(delegate) => batch.run.board.give(&delegate.host.name, DelegatedFacts::Facts(facts)),
            None => {
                if modules::gathers_facts(task.action.doc) {
                    host.vars.gathered = true;
                    batch.run.pool.admit(&facts);
                }
                left.facts.extend(facts.clone());
                host.vars.add_facts(facts);
                batch.run.board.publish_host(host);
            }
        },
        Effect::SetFact(vars) => match delegate.filter(|_| task.delegate_facts) {
            Some(delegate) => batch.run.board.give(&delegate.host.name, DelegatedFacts::Set(vars)),
            None => {
                left.set.extend(vars.clone());
                extend(&mut host.vars.set, vars);
            }
        },
        Effect::IncludeVars { own, merged } => {
            let behaviour = batch.run.job.options.hash_behaviour;
            left.included.push((own.clone(), merged.clone()));
            host.vars.include(own, merged, behaviour);
        }
        Effect::AddHost { name, groups, vars } => batch.run.change_inventory(|inventory| {
            if let Err(complaint) = inventory.add_host(&name, &groups, vars) {
                batch.run.send_event(Event::Warning(format!("{name}: {complaint}")));
            }
        }),
        Effect::GroupBy { group, parents } => batch.run.change_inventory(|inventory| {
            let mut added = vec![inventory.add_to_group(&host.name, &group)];
            added.extend(parents.iter().map(|parent| inventory.add_child_group(parent, &group)));
            for complaint in added.into_iter().filter_map(Result::err) {
                batch.run.send_event(Event::Warning(format!("{}: {complaint}", host.name)));
            }
            host.magic = Arc::new(precedence::host_magic(inventory, &host.name));
        }),
        Effect::Stats { vars, per_host, aggregate } => {
            let of = per_host.then_some(&host.name);
            batch.run.stats.lock().add_stats(of, vars, aggregate);
        }
    }
}
