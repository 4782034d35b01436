//! Planning: every stage is run in check mode, and what it would change is noted.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::changes::Changes;
use super::control::{Control, Progress};
use super::lock::holder;
use super::observation::{self, Observer};
use super::plan::{ASKED, LAYOUT, Observed, Plan, Planned, State};
use super::stage::{STAGES, Stage};
use super::{Deployment, Error, Phase, Run, Site};
use crate::bundle::Bundle;
use crate::engine::{self, Job};
use crate::report::plain;
use crate::value::Surroundings;

/// What an apply would change. None: the face ended it.
///
/// # Errors
/// The deployment cannot be read, or its hosts' names were exchanged.
pub async fn plan(site: &Site, control: &Control) -> Result<Option<Plan>, Error> {
    let phase = site.read().await?;
    let deployment = phase.deployment(control).await?;
    deployment.check_hooks(&phase)?;
    deployment.journal_of_same_hosts().await?;
    make(&phase, &deployment, control).await
}

/// A plan, with what was observed before it was made. None: the face ended it.
pub(super) async fn make(phase: &Phase<'_>, deployment: &Deployment, control: &Control) -> Result<Option<Plan>, Error> {
    let Some(observed) = observe(phase, deployment, control).await? else { return Ok(None) };
    let mut stages: Vec<Planned> = Vec::new();
    for stage in STAGES {
        let before = stages.iter().any(|planned| planned.state != State::Same);
        match look(phase, stage, before, control).await? {
            Some(planned) => stages.push(planned),
            None => return Ok(None),
        }
    }
    let me = holder::this_run(&deployment.surroundings, "plan");
    Ok(Some(Plan {
        windlass_plan: LAYOUT,
        deployment: deployment.name.clone(),
        made: me.since,
        by: me.holder,
        sources: phase.site().absolute_sources(),
        stages,
        observed,
    }))
}

/// What one stage would change. `after`: a stage before it would change something, so that a failure says only that this one
/// cannot be tried out yet. None: the face ended it.
pub(super) async fn look(
    phase: &Phase<'_>,
    stage: Stage,
    after: bool,
    control: &Control,
) -> Result<Option<Planned>, Error> {
    let playbook = phase.site().playbook(stage.playbook());
    let job = phase.job(Run { playbook: Some(&playbook), check: true, ..Run::default() }, control).await?;
    let hosts: Vec<String> = stage.hosts(&job.inventory).iter().map(ToString::to_string).collect();
    if hosts.is_empty() {
        return Ok(Some(Planned { stage, state: State::Same, hosts, found: Changes::default() }));
    }
    control.tell(Progress::Planning(stage));
    let mut found = Changes::default();
    let recap = control.run.watch(job, |event| found.take(event)).await?;
    if recap.is_none() || control.run.is_stopping() {
        return Ok(None);
    }
    let state = match (found.failures.is_empty(), found.changes.is_empty()) {
        (true, true) => State::Same,
        (true, false) => State::Differs,
        (false, _) if after => State::NotYet,
        (false, _) => State::Unknown,
    };
    Ok(Some(Planned { stage, state, hosts, found }))
}

/// What the hosts are like, and digests of what was asked for. None: the face ended it.
pub(super) async fn observe(
    phase: &Phase<'_>,
    deployment: &Deployment,
    control: &Control,
) -> Result<Option<Observed>, Error> {
    let playbook = phase.site().playbook(observation::PLAYBOOK);
    let job = phase.job(Run { playbook: Some(&playbook), check: true, ..Run::default() }, control).await?;
    let mut observer = Observer::new([(ASKED.into(), inputs(&job, deployment)?)].into());
    let recap = control.run.watch_unmasked(job, |event| observer.take(event)).await?;
    match recap.filter(|_| !control.run.is_stopping()) {
        Some(_) => Ok(Some(observer.finish().map_err(Error::Observation)?)),
        None => Ok(None),
    }
}

/// Digests of the inventory with all its variables, and of the bundles that it names.
fn inputs(job: &Job, deployment: &Deployment) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    let mut digest = Sha256::new();
    let mut bundles = Vec::new();
    for host in job.inventory.hosts.keys() {
        let vars = job.inventory.vars_of(host, None);
        digest.update(format!("{host}\n"));
        for (name, value) in vars.iter().chain(job.extra_vars.iter()) {
            digest.update(format!("{name}={}\n", plain(value)));
        }
        for name in ["etcd_bundle", "karmada_bundle"] {
            let value = engine::variable(job, host, name)?;
            if let Some(path) = value.map(|value| value.to_string()).filter(|path| !path.is_empty())
                && !bundles.contains(&path)
            {
                bundles.push(path);
            }
        }
    }
    for (group, members) in &job.inventory.groups {
        digest.update(format!("[{group}] {:?}\n", members.hosts));
    }
    found.insert(format!("deployment {}", deployment.name), hex(digest));
    for path in bundles {
        found.insert(format!("bundle {path}"), bundle(Path::new(&path), job.templar.surroundings()));
    }
    Ok(found)
}

/// The digest of a bundle's manifest, or of its files' names, sizes and times; why it cannot be read otherwise.
fn bundle(path: &Path, around: &Surroundings) -> String {
    let read = || -> Result<String, crate::bundle::Error> {
        let mut digest = Sha256::new();
        digest.update(Bundle::open(path, around)?.manifest()?.to_yaml());
        Ok(hex(digest))
    };
    read().unwrap_or_else(|error| error.to_string())
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
