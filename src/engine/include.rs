//! `include_tasks` and `include_role`: hosts that include the same thing run it together.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::batch::Batch;
use super::event::{Event, Status, TaskResult, TaskStart, registered};
use super::failure_limit::spread_failure;
use super::host::{HostRun, HostState, IncludeLayer};
use super::item::{Item, blank, failure_of};
use super::keyword::{self, Refused};
use super::masking::HIDDEN;
use super::task::start_of;
use super::{block, loops, step};
use crate::playbook::load::EntryPoint;
use crate::playbook::{Handler, Include, IncludeWhat, Role, SourceValue, Step};
use crate::template::{self, Scope};
use crate::value::Vars;
use crate::value::origin::Diagnostic;

/// How many includes may be within each other: enough for a file that includes itself until something is so, and an end
/// for one that never stops.
const DEEPEST: usize = 200;

/// One thing that a host asks for: what to load, and the loop variables for it.
#[derive(Debug, Clone, PartialEq)]
struct IncludeRequest {
    what: IncludeTarget,
    vars: Vars,
    /// The label of the loop's item.
    item: Option<String>,
    /// Nobody may see the item.
    no_log: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum IncludeTarget {
    Tasks(String),
    Role {
        name: String,
        tasks: Option<String>,
        vars: Option<String>,
        defaults: Option<String>,
        handlers: Option<String>,
    },
}

impl IncludeTarget {
    fn shown_name(&self) -> String {
        match self {
            IncludeTarget::Tasks(file) => file.clone(),
            IncludeTarget::Role { name, .. } => name.clone(),
        }
    }
}

/// Runs an include on those hosts of a group that still go.
pub(super) fn on_hosts<'a>(
    batch: &'a Arc<Batch>,
    include: &'a Arc<Include>,
    hosts: Vec<HostRun>,
) -> BoxFuture<'a, Vec<HostRun>> {
    Box::pin(async move {
        if !batch.run.job.tags.allow(&include.task.keywords.tags) {
            return hosts;
        }
        let (going, mut rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(HostRun::going);
        let start = Arc::new(start(batch, include, &going));
        if !step::agrees(&batch.run, &start).await {
            rest.extend(going);
            rest.sort_by_key(|host| host.order);
            return rest;
        }
        batch.run.send_event(Event::TaskStart(start.clone()));
        let (sharing, mut able, refused) = keyword::sharing(batch, &include.task, going);
        if sharing.once && able.len() > 1 {
            rest.extend(able.drain(1..));
        }
        rest.extend(refused.into_iter().map(|refused| refuse(batch, include, &start, refused)));
        let mut queue: Vec<(HostRun, std::collections::VecDeque<IncludeRequest>)> = Vec::new();
        for host in able {
            match include_requests(batch, include, &start, &host) {
                Ok(Some(requests)) => queue.push((host, requests.into())),
                Ok(None) => {
                    report_result(batch, &start, &host, blank(Status::Skipped));
                    rest.push(host);
                }
                Err(error) => rest.push(refuse(batch, include, &start, (host, error))),
            }
        }
        rest.extend(rounds(batch, include, &start, queue).await);
        // Hosts without an include must also be notified.
        spread_failure(batch, &include.task, &mut rest);
        batch.run.send_event(Event::TaskEnd(start));
        rest.sort_by_key(|host| host.order);
        rest
    })
}

/// As any task; an `include_role` without a name has that of the role, as it is written.
fn start(batch: &Batch, include: &Include, going: &[HostRun]) -> TaskStart {
    let start = start_of(batch, &include.task, going, false);
    match (&include.what, &include.task.name) {
        (IncludeWhat::Role { name, .. }, None) => {
            TaskStart { name: format!("{} : {}", include.task.action.written, name.value), ..start }
        }
        _ => start,
    }
}

/// Takes the first request of every host, and runs equal requests together, until no request is left.
async fn rounds(
    batch: &Arc<Batch>,
    include: &Include,
    start: &Arc<TaskStart>,
    mut queue: Vec<(HostRun, std::collections::VecDeque<IncludeRequest>)>,
) -> Vec<HostRun> {
    let mut done = Vec::new();
    loop {
        let (waiting, finished): (Vec<_>, Vec<_>) =
            queue.into_iter().partition(|(host, requests)| host.going() && !requests.is_empty());
        done.extend(finished.into_iter().map(|(host, _)| host));
        let Some(request) = waiting.first().and_then(|(_, requests)| requests.front().cloned()) else { return done };
        let (mut together, others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, requests)| requests.front() == Some(&request));
        let mut later: std::collections::HashMap<_, _> = together
            .iter_mut()
            .map(|(host, requests)| {
                requests.pop_front();
                (host.name.clone(), std::mem::take(requests))
            })
            .collect();
        let hosts = together.into_iter().map(|(host, _)| host).collect();
        let after = run(batch, include, start, &request, hosts).await;
        queue = others;
        queue.extend(after.into_iter().map(|host| {
            let requests = later.remove(&host.name).unwrap_or_default();
            (host, requests)
        }));
        queue.sort_by_key(|(host, _)| host.order);
        spread_failure(batch, &include.task, queue.iter_mut().map(|(host, _)| host));
    }
}

/// A file or role that cannot be loaded, as a result: all that is wrong with it.
fn wrong(complaints: &[Diagnostic]) -> TaskResult {
    let mut results = complaints.iter().map(failure_of);
    let mut whole = results.next().unwrap_or_else(|| blank(Status::Failed));
    for result in results {
        // With several errors, each hint is below its own error; that of the last one stays in the usual place.
        let hint = whole.hint.take().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        whole.message =
            Some(format!("{}{hint}\n{}", whole.message.unwrap_or_default(), result.message.unwrap_or_default()));
        whole.hint = result.hint;
    }
    whole
}

async fn run(
    batch: &Arc<Batch>,
    include: &Include,
    start: &Arc<TaskStart>,
    request: &IncludeRequest,
    mut hosts: Vec<HostRun>,
) -> Vec<HostRun> {
    let deepest = hosts.iter().map(|host| host.include_params.len()).max().unwrap_or(0) / 2;
    let loaded =
        if deepest < DEEPEST { load(batch, include, request, &mut hosts) } else { Err(vec![endless(request)]) };
    let steps = match loaded {
        Ok(steps) => steps,
        Err(complaints) => {
            for host in &mut hosts {
                fail(batch, start, host, TaskResult { no_log: request.no_log, ..wrong(&complaints) });
            }
            return hosts;
        }
    };
    let names = hosts.iter().map(|host| host.name.clone()).collect();
    let path = match request.what {
        IncludeTarget::Tasks(_) => {
            steps.first().map(|step| batch.run.job.templar.surroundings().absolute(file_of(step)))
        }
        IncludeTarget::Role { .. } => None,
    };
    let item = if request.no_log { request.item.as_ref().map(|_| HIDDEN.to_owned()) } else { request.item.clone() };
    batch.run.send_event(Event::Included { what: request.what.shown_name(), path, item, hosts: names });
    for host in &hosts {
        batch.run.count(&host.name, |counts| counts.ok += 1);
    }
    let layer = Arc::new(request.vars.clone());
    let params = include.params.clone().unwrap_or_default();
    hosts.iter_mut().for_each(|host| {
        host.include_params
            .extend([(&params, true), (&layer, false)].map(|(vars, own)| IncludeLayer { vars: vars.clone(), own }))
    });
    let mut after = block::steps(batch, &steps, hosts).await;
    after.iter_mut().for_each(|host| {
        host.include_params.pop();
        host.include_params.pop();
    });
    after
}

/// The file that a step was read from.
fn file_of(step: &Step) -> &Path {
    let origin = match step {
        Step::Task(task) => &task.origin,
        Step::Block(block) => &block.origin,
        Step::Include(include) => &include.task.origin,
    };
    origin.path()
}

fn endless(request: &IncludeRequest) -> Diagnostic {
    let message = format!("more than {DEEPEST} nested includes, the last one of {:?}", request.what.shown_name());
    Diagnostic::new(message, None).hint("a file that includes itself needs a condition that stops it")
}

fn load(
    batch: &Batch,
    include: &Include,
    request: &IncludeRequest,
    hosts: &mut [HostRun],
) -> Result<Vec<Step>, Vec<Diagnostic>> {
    let loader = &batch.run.job.loader;
    match &request.what {
        IncludeTarget::Tasks(file) => loader.included_tasks(include, file),
        IncludeTarget::Role { name, tasks, vars, defaults, handlers } => {
            let from = EntryPoint {
                tasks: tasks.as_deref(),
                vars: vars.as_deref(),
                defaults: defaults.as_deref(),
                handlers: handlers.as_deref(),
            };
            let (roles, steps) = loader.included_role(include, name, &from)?;
            for role in &roles {
                bring_handlers(batch, role, &request.vars);
                if role.public {
                    hosts.iter_mut().for_each(|host| host.vars.roles.push(role.clone()));
                }
            }
            Ok(steps)
        }
    }
}

/// Puts the handlers of an included role last, where they count, with the loop variables of the include.
fn bring_handlers(batch: &Batch, role: &Role, vars: &Vars) {
    let with_vars = |handler: &Handler| {
        let mut handler = handler.clone();
        if !vars.is_empty() {
            let task = Arc::make_mut(&mut handler.task);
            Arc::make_mut(&mut task.keywords).include_loop_vars = Some(Arc::new(vars.clone()));
        }
        Arc::new(handler)
    };
    let brought: Vec<Arc<Handler>> = role.handlers.iter().map(with_vars).collect();
    let use_vars = |handler: &Handler| handler.task.role.as_ref().map(|role| role.use_vars.clone());
    let same = |(one, other): (&Arc<Handler>, &Arc<Handler>)| {
        one.task.origin == other.task.origin
            && one.task.keywords.vars == other.task.keywords.vars
            && one.task.keywords.include_loop_vars == other.task.keywords.include_loop_vars
            && use_vars(one) == use_vars(other)
    };
    let mut known = batch.handlers.write();
    let tail = &known[known.len().saturating_sub(brought.len())..];
    // Hosts may come to the same include one after the other.
    if tail.len() != brought.len() || !tail.iter().zip(&brought).all(same) {
        known.extend(brought);
    }
}

/// What a host asks for, item by item; None: its conditions say no.
fn include_requests(
    batch: &Arc<Batch>,
    include: &Include,
    start: &Arc<TaskStart>,
    host: &HostRun,
) -> Result<Option<Vec<IncludeRequest>>, template::Error> {
    let no_log = |scope: Scope| Item::new(batch, host, &include.task, start, scope).no_log();
    let scope = batch.task_scope(host, &include.task);
    let Some(repeat) = &include.task.repeat else {
        let request = include_request(batch, include, &scope, Vars::new())?;
        return Ok(request.map(|request| vec![IncludeRequest { no_log: no_log(scope), ..request }]));
    };
    let items = loops::loop_items(batch, repeat, &include.task.action.written, &scope)?;
    let mut requests = Vec::new();
    for index in 0..items.len() {
        let vars = loops::loop_vars(repeat, &items, index);
        let scope = scope.with_layer(vars.clone());
        let item = loops::label(batch, repeat, &items[index], &scope);
        requests.extend(include_request(batch, include, &scope, vars)?.map(|request| IncludeRequest {
            item: Some(item),
            no_log: no_log(scope.clone()),
            ..request
        }));
        if loops::breaks(batch, repeat, &scope)? {
            break;
        }
    }
    Ok((!requests.is_empty()).then_some(requests))
}

fn include_request(
    batch: &Batch,
    include: &Include,
    scope: &Scope,
    vars: Vars,
) -> Result<Option<IncludeRequest>, template::Error> {
    let templar = &batch.run.job.templar;
    for when in &include.task.keywords.when {
        if !templar.condition(&when.value, Some(&when.origin), scope)? {
            return Ok(None);
        }
    }
    let text = |written: &SourceValue| templar.render_string(&written.value, scope);
    let maybe = |written: &Option<SourceValue>| written.as_ref().map(text).transpose();
    let what = match &include.what {
        IncludeWhat::Tasks { file } => IncludeTarget::Tasks(text(file)?),
        IncludeWhat::Role { name, tasks_from, vars_from, defaults_from, handlers_from, .. } => IncludeTarget::Role {
            name: text(name)?,
            tasks: maybe(tasks_from)?,
            vars: maybe(vars_from)?,
            defaults: maybe(defaults_from)?,
            handlers: maybe(handlers_from)?,
        },
    };
    Ok(Some(IncludeRequest { what, vars, item: None, no_log: false }))
}

/// A host for which it cannot be known what, or whether, to include.
fn refuse(batch: &Arc<Batch>, include: &Include, start: &Arc<TaskStart>, refused: Refused) -> HostRun {
    let (mut host, error) = refused;
    let scope = batch.task_scope(&host, &include.task);
    let result = Item::new(batch, &host, &include.task, start, scope).without_items(&error);
    match result.status {
        Status::Ignored => {
            batch.run.count(&host.name, |counts| {
                counts.ok += 1;
                counts.ignored += 1;
            });
            report_result(batch, start, &host, result);
        }
        _ => fail(batch, start, &mut host, result),
    }
    host
}

fn fail(batch: &Batch, start: &Arc<TaskStart>, host: &mut HostRun, result: TaskResult) {
    host.state = HostState::Failed;
    host.failure = Vars::from([("ansible_failed_result".into(), registered(&result))]);
    batch.gone.write().insert(host.name.clone(), host.state);
    batch.run.count(&host.name, |counts| counts.failed += 1);
    report_result(batch, start, host, result);
}

fn report_result(batch: &Batch, start: &Arc<TaskStart>, host: &HostRun, result: TaskResult) {
    if result.status == Status::Skipped {
        batch.run.count(&host.name, |counts| counts.skipped += 1);
    }
    batch.run.send_event(Event::Result {
        task: start.clone(),
        host: host.name.clone(),
        delegated: None,
        looped: false,
        result: Arc::new(result),
    });
}
