//! Planning: every stage is run in check mode, and what it would change is noted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesOrdered;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::changes::{Changes, TaskFailure};
use super::control::{Control, OpenStage, Progress};
use super::lock::holder;
use super::observation::{self, Observer};
use super::plan::{ASKED, LAYOUT, Observed, Plan, PlanRequest, PlannedStage, StageState, TargetHosts, digest_to_hex};
use super::stage::{self, STAGES, Stage};
use super::{Deployment, Error, Phase, Run, Site, waiting};
use crate::bundle::{Bundle, RequiredSigners};
use crate::engine::{self, Job};
use crate::inventory::{Inventory, read_limit_files};
use crate::report::to_json;
use crate::resource::names::{group, variable};
use crate::value::{ProcessEnvironment, Value, Vars};

/// What an apply would change on the hosts of a pattern, or on all. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read, its hosts' names were exchanged, or the pattern names no host.
pub async fn plan(site: &Site, request: PlanRequest, control: &Control) -> Result<Option<Plan>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    deployment.check_hooks(&phase)?;
    if let Err(paused) = deployment.refuse_paused() {
        control.report_progress(Progress::Warning(format!("this plan cannot be applied now: {paused}")));
    }
    deployment.journal_of_same_hosts().await?;
    make_plan(&phase, &deployment, request, control).await
}

/// A plan, with what was observed before it was made. None: the caller cancelled it.
pub(super) async fn make_plan(
    phase: &Phase<'_>,
    deployment: &Deployment,
    PlanRequest { limit, remove_by_force }: PlanRequest,
    control: &Control,
) -> Result<Option<Plan>, Error> {
    let inventory = phase.inventory();
    let members = inventory.hosts_of(group::MEMBERS);
    if let Some(member) = remove_by_force.iter().find(|name| members.iter().any(|member| **member == ***name)) {
        return Err(Error::StillMember { member: member.clone() });
    }
    // A saved plan must not depend on what a file says later.
    let limit = limit.map(|limit| read_limit_files(&limit)).transpose()?.map(|parts| parts.join(","));
    let mut within = match &limit {
        None => inventory.hosts.keys().cloned().collect(),
        Some(limit) => inventory.select_limit(limit)?.0,
    };
    // It may name a member whose lines are gone, which the control plane knows.
    if let Some(limit) = limit.as_ref().filter(|_| within.is_empty()) {
        let playbook = phase.site().playbook_path(Stage::Removals.playbook());
        let run = Run { playbook: Some(&playbook), check: true, ..Run::default() };
        within = phase.job(run, control).await?.inventory.select_limit(limit)?.0;
    }
    if let Some(limit) = limit.as_ref().filter(|_| within.is_empty()) {
        return Err(Error::NoHostWithin { limit: limit.clone() });
    }
    let Some(observed) = observe(phase, deployment, Vars::default(), control).await? else { return Ok(None) };
    let silent = left_out(&observed, inventory, &deployment.hosts).into_iter().map(|host| host.to_string());
    let (left_out, silent_outside) = silent.partition(|host| within.iter().any(|it| **it == **host));
    let reach = TargetHosts { limit, left_out, silent_outside, remove_by_force };
    let Some(stages) = check_stages(phase, &reach, control).await? else { return Ok(None) };
    let removals = stages.iter().filter(|planned| planned.stage == Stage::Removals).flat_map(|planned| &planned.hosts);
    let leaving: BTreeSet<&String> = removals.collect();
    if let Some(member) = reach.remove_by_force.iter().find(|name| !leaving.contains(name)) {
        return Err(Error::NoSuchMember { member: member.clone() });
    }
    let me = holder::this_run(&deployment.surroundings, "plan");
    Ok(Some(Plan {
        windlass_plan: LAYOUT,
        deployment: deployment.name.clone(),
        made: me.since,
        by: me.holder,
        sources: phase.site().absolute_sources(),
        reach,
        stages,
        observed,
    }))
}

/// The hosts of the deployment that do not answer, if the others can do without them: a majority of all hosts answers, which the lock
/// needs, a majority of etcd's hosts, and a host of the control plane. Otherwise none: their dry runs say what is wrong.
fn left_out(observed: &Observed, inventory: &Inventory, hosts: &[Arc<str>]) -> Vec<Arc<str>> {
    let silent = |host: &Arc<str>| {
        let of_host = observed.get(&**host).and_then(|of_host| of_host.get(observation::HOST));
        of_host.is_some_and(|state| state == observation::SILENT)
    };
    let count = |stage: Stage| {
        let hosts = stage.hosts(inventory);
        (hosts.iter().filter(|host| !silent(host)).count(), hosts.len())
    };
    let (etcd, of_etcd) = count(Stage::Etcd);
    let (control_plane, of_control_plane) = count(Stage::ControlPlane);
    let answering = hosts.iter().filter(|host| !silent(host)).count();
    let suffice = answering > hosts.len() / 2
        && (of_etcd == 0 || etcd > of_etcd / 2)
        && (of_control_plane == 0 || control_plane > 0);
    if suffice { hosts.iter().filter(|host| silent(host)).cloned().collect() } else { Vec::new() }
}

/// What all stages would change. They are checked side by side, as if the stages before them had nothing to do. If one has, those after
/// it are checked again, one after the other. None: the caller cancelled it.
async fn check_stages(
    phase: &Phase<'_>,
    reach: &TargetHosts,
    control: &Control,
) -> Result<Option<Vec<PlannedStage>>, Error> {
    let (turn, _) = watch::channel(Stage::Etcd);
    let check = |stage: Stage, pending| check_run(phase, stage, pending, reach, control, turn.subscribe());
    let mut together: FuturesOrdered<_> = STAGES.iter().map(|stage| check(*stage, Vec::new())).collect();
    let mut stages: Vec<PlannedStage> = Vec::new();
    for stage in STAGES {
        turn.send_replace(stage);
        let differing = stages.iter().filter(|planned| planned.state != StageState::Same);
        let pending: Vec<Stage> = differing.map(|planned| planned.stage).collect();
        let planned = if pending.is_empty() {
            together.next().await.transpose()?.flatten()
        } else {
            // They compared with hosts that an earlier stage changes.
            together.clear();
            check(stage, pending).await?
        };
        let Some(mut planned) = planned else { return Ok(None) };
        planned.leave_to(&stages);
        stages.push(planned);
    }
    Ok(Some(stages))
}

/// What one stage would change. `pending`: the stages before it that have something to do. `turn`: the stage that people see as the one that
/// is checked. None: the caller cancelled it.
pub(super) async fn check_run(
    phase: &Phase<'_>,
    stage: Stage,
    pending: Vec<Stage>,
    reach: &TargetHosts,
    control: &Control,
    mut turn: watch::Receiver<Stage>,
) -> Result<Option<PlannedStage>, Error> {
    let playbook = phase.site().playbook_path(stage.playbook());
    let mut vars = Vars::default();
    vars.insert(variable::PENDING_STAGES.into(), pending.iter().map(|stage| Value::from(stage.name())).collect());
    let limit = reach.pattern(stage);
    let remove_by_force = reach.remove_by_force.clone();
    let run = Run { playbook: Some(&playbook), check: true, vars, limit: limit.clone(), remove_by_force, hold: None };
    let job = phase.job(run, control).await?;
    let credentials = job.inventory.credentials.clone();
    let mut hosts = stage.hosts(&job.inventory);
    if let Some(limit) = &limit {
        let within = job.inventory.select_limit(limit)?.0;
        hosts.retain(|host| within.contains(host));
    }
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    if hosts.is_empty() {
        return Ok(Some(PlannedStage { stage, state: StageState::Same, hosts, found: Changes::default() }));
    }
    let mut found = Changes::default();
    let is_shown = async {
        // Its sender is there for as long as this is.
        let shown = turn.wait_for(|turn| *turn == stage).await.is_ok();
        shown.then(|| OpenStage::start_check(control, stage, playbook))
    };
    let (check, recap) = tokio::join!(is_shown, waiting::watch(control, job, |event| found.add_event(event)));
    let recap = recap?;
    found.name_credentials(credentials.as_ref());
    if recap.is_none() || control.run.is_stopping() {
        return Ok(None);
    }
    check.into_iter().for_each(|check| check.end(found.outcome(), found.changes.len()));
    let state = if found.failures.iter().any(|failure| !is_of_one_member(stage, failure, phase.inventory())) {
        StageState::Refused
    } else if !found.waits.is_empty() {
        StageState::Waits
    } else if !found.changes.is_empty() {
        StageState::Differs
    } else {
        StageState::Same
    };
    Ok(Some(PlannedStage { stage, state, hosts, found }))
}

/// Whether a failure is about one member, so that the others do not depend on it.
fn is_of_one_member(stage: Stage, failure: &TaskFailure, inventory: &Inventory) -> bool {
    matches!(stage, Stage::Members | Stage::Removals)
        && !stage::locked_hosts(inventory).iter().any(|host| **host == *failure.host)
}

/// The state of the hosts, and digests of the request. `vars`: what the operation sets over the inventory, such as another
/// bundle. None: the caller cancelled it.
pub(super) async fn observe(
    phase: &Phase<'_>,
    deployment: &Deployment,
    vars: Vars,
    control: &Control,
) -> Result<Option<Observed>, Error> {
    let playbook = phase.site().playbook_path(observation::PLAYBOOK);
    let job = phase.job(Run { playbook: Some(&playbook), check: true, vars, ..Run::default() }, control).await?;
    let mut asked = inputs(&job, deployment)?;
    asked.insert("playbooks and roles".into(), playbooks(phase, &job));
    let mut observer = Observer::new([(ASKED.into(), asked)].into());
    let recap = control.run.watch_unmasked(job, |event| observer.observe_event(event)).await?;
    let unreached = observer.unreached_hosts();
    // If none answers, the stages say it.
    if unreached.len() < deployment.hosts.len() {
        for (host, why) in unreached {
            let why = format!("cannot reach {host}: {why}");
            let why = phase.site().keyring.hidden.hide(&why).into_owned();
            control.report_progress(Progress::Warning(why));
        }
    }
    match recap.filter(|_| !control.run.is_stopping()) {
        Some(_) => Ok(Some(observer.finish_observation().map_err(Error::Observation)?)),
        None => Ok(None),
    }
}

/// The files of this machine that variables of a host name and that end up on hosts or in a cluster. Paths as the roles read them:
/// from the inventory's directory, with patterns; of a directory its files. Not those whose contents change by themselves, such as
/// a member's kubeconfig.
const NAMED_FILES: &str = "\
    {% set all = [] %}{% set base = inventory_dir | default(lookup('ansible.builtin.env', 'PWD'), true) %}\
    {% for addon in karmada_addons | default([], true) + member_addons | default([], true) %}{% for src in addon.src %}\
    {% set path = [base, src | expanduser] | path_join %}\
    {% set _ = all.extend(query('ansible.builtin.fileglob', path, path ~ '/*')) %}{% endfor %}{% endfor %}\
    {% for file in load_balancer_package_files | default([], true) + [karmada_ca_cert | default('', true)] if file %}\
    {% set _ = all.append([base, file | expanduser] | path_join) %}{% endfor %}{{ all | unique }}";

/// Variables with the path of a bundle. What is in it counts, not where it is: a plan may be made in one container and applied in
/// another one.
const BUNDLES: [&str; 2] = [variable::ETCD_BUNDLE, variable::KARMADA_BUNDLE];

/// Digests of each host with its variables, of the groups, the resource, the bundles, and the files that these name. The order in
/// which an inventory program prints them does not count.
fn inputs(job: &Job, deployment: &Deployment) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    let mut bundles: BTreeMap<String, String> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for resource in &job.inventory.deployments {
        found.insert(format!("resource {}", resource.name), resource.digest.clone());
        files.extend(
            resource.spec.hooks.iter().map(|hook| resource.resolve_beside(&hook.playbook).display().to_string()),
        );
    }
    // A plan that was approved is not applied with other credentials: a kubeconfig, say, may lead to another cluster.
    if !job.inventory.handed_generation.is_empty() {
        found.insert(format!("credentials of {}", deployment.name), job.inventory.handed_generation.clone());
    }
    for host in job.inventory.hosts.keys() {
        let vars = job.inventory.vars_of(host, None);
        let lines = vars.iter().chain(job.extra_vars.iter()).filter(|(name, _)| !BUNDLES.contains(&name.as_ref()));
        let lines = lines.map(|(name, value)| format!("{name}={}", sorted(value)));
        found.insert(format!("host {host}"), unordered(lines.collect()));
        match engine::rendered(job, host, NAMED_FILES) {
            Ok(named) => files.extend(named.try_iter().into_iter().flatten().map(|path| path.to_string())),
            // The role that reads them says what is wrong.
            Err(error) => drop(found.insert(format!("files of {host}"), error.to_string())),
        }
        for name in BUNDLES {
            let value = engine::variable(job, host, name)?;
            if let Some(path) = value.map(|value| value.to_string()).filter(|path| !path.is_empty()) {
                let signers = job.options.signers.as_deref();
                let digest =
                    bundles.entry(path).or_insert_with_key(|path| bundle(path, job.templar.surroundings(), signers));
                found.insert(format!("{name} of {host}"), digest.clone());
            }
        }
    }
    let groups = job.inventory.groups.iter().map(|(group, members)| {
        let hosts: BTreeSet<_> = members.hosts.iter().collect();
        format!("[{group}] {hosts:?}")
    });
    found.insert(format!("deployment {}", deployment.name), unordered(groups.collect()));
    for path in files {
        found.insert(format!("file {path}"), file(Path::new(&path)));
    }
    Ok(found)
}

fn sorted(value: &Value) -> serde_json::Value {
    let mut value = to_json(value);
    value.sort_all_objects();
    value
}

/// The digest of lines in whatever order.
fn unordered(mut lines: Vec<String>) -> String {
    lines.sort();
    let mut digest = Sha256::new();
    lines.iter().for_each(|line| digest.update(format!("{line}\n")));
    digest_to_hex(digest)
}

/// Where playbooks have what they import, beside them.
const BESIDE: [&str; 7] = ["group_vars", "host_vars", "tasks", "handlers", "vars", "templates", "files"];

/// The parts of a role.
const ROLE: [&str; 10] = [
    "tasks",
    "handlers",
    "defaults",
    "vars",
    "meta",
    "templates",
    "files",
    "library",
    "filter_plugins",
    "lookup_plugins",
];

/// The digest of the playbooks of stages, operations and hooks, of what they usually import, and of all roles. The same for a copy
/// elsewhere. Other files, such as a log, do not count.
fn playbooks(phase: &Phase<'_>, job: &Job) -> String {
    let resources = &job.inventory.deployments;
    let hooks = resources.iter().flat_map(|one| one.spec.hooks.iter().map(|hook| one.resolve_beside(&hook.playbook)));
    let named = [phase.site().playbook_path(observation::PLAYBOOK)].into_iter().chain(hooks);
    let mut lines = BTreeSet::new();
    let mut of_roles: BTreeSet<PathBuf> = phase.launch().loader.roles_path.into_iter().collect();
    for playbook in named {
        let directory = playbook.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        for path in entries(directory) {
            if path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml") {
                lines.insert(format!("{} {}", path.strip_prefix(directory).unwrap_or(&path).display(), file(&path)));
            }
        }
        BESIDE.iter().for_each(|name| tree(directory, &directory.join(name), &mut lines));
        of_roles.extend(["roles", "../roles"].map(|name| directory.join(name)));
    }
    for top in of_roles {
        for role in entries(&top).filter(|path| path.is_dir()) {
            ROLE.iter().for_each(|part| tree(&top, &role.join(part), &mut lines));
        }
    }
    unordered(lines.into_iter().collect())
}

/// The digests of all files of a directory and below, by their paths below `top`.
fn tree(top: &Path, directory: &Path, lines: &mut BTreeSet<String>) {
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                // A link to a folder above would have no end.
                folders.extend((!path.is_symlink()).then_some(path));
            } else {
                lines.insert(format!("{} {}", path.strip_prefix(top).unwrap_or(&path).display(), file(&path)));
            }
        }
    }
}

/// What is in a folder, without hidden files.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")))
}

/// The digest of a file; why it cannot be read otherwise.
fn file(path: &Path) -> String {
    crate::bundle::file_digest(path).unwrap_or_else(|error| error.to_string())
}

/// The digest of a bundle's manifest, or of its files' names, sizes and times; why it cannot be read otherwise.
fn bundle(path: &str, around: &ProcessEnvironment, signers: Option<&RequiredSigners>) -> String {
    let read = || -> Result<String, crate::bundle::Error> {
        let mut digest = Sha256::new();
        // As the modules that install from it take the path.
        let path = around.absolute(around.expand_home(path));
        digest.update(Bundle::open_bundle(&path, around, signers)?.manifest()?.to_yaml());
        Ok(digest_to_hex(digest))
    };
    read().unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_in_which_an_inventory_was_printed_does_not_count() {
        let digest = |text: &str| {
            let value = crate::value::yaml::plain_values(text).unwrap().remove(0);
            unordered(vec!["b=1".into(), format!("a={}", sorted(&value))])
        };
        let one = digest(r#"{"x": [{"k": 1, "l": 2}, 3], "y": 4}"#);
        assert_eq!(one, digest(r#"{"y": 4, "x": [{"l": 2, "k": 1}, 3]}"#));
        // That of a list does.
        assert_ne!(one, digest(r#"{"y": 4, "x": [3, {"l": 2, "k": 1}]}"#));
        assert_ne!(one, digest(r#"{"y": 5, "x": [{"l": 2, "k": 1}, 3]}"#));
    }
}
