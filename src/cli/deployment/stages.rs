//! Stages as runs: tried out in check mode, then run.

use anyhow::anyhow;

use super::{Deployment, Site};
use crate::cli::launch::Telling;
use crate::cli::{ExitCode, Failure, launch, note};
use crate::deployment::changes::Changes;
use crate::deployment::journal::{self, Journal};
use crate::deployment::plan::{Planned, State};
use crate::deployment::stage::{STAGES, Stage};
use crate::remote::Hold;
use crate::value::Vars;

/// What every stage would change. None: Ctrl-C.
pub(super) async fn plan(site: &Site<'_>, telling: &mut Telling) -> Result<Option<Vec<Planned>>, Failure> {
    let mut stages: Vec<Planned> = Vec::new();
    for stage in STAGES {
        let before = stages.iter().any(|planned| planned.state != State::Same);
        match look(site, telling, stage, before).await? {
            Some(planned) => stages.push(planned),
            None => return Ok(None),
        }
    }
    Ok(Some(stages))
}

/// What one stage would change. `after`: a stage before it would change something, so that a failure says only that this one
/// cannot be tried out yet.
pub(super) async fn look(
    site: &Site<'_>,
    telling: &mut Telling,
    stage: Stage,
    after: bool,
) -> Result<Option<Planned>, Failure> {
    let job = site.job(Some(&site.playbook(stage.playbook())), true, Vars::new(), None)?;
    let hosts: Vec<String> = stage.hosts(&job.inventory).iter().map(ToString::to_string).collect();
    if hosts.is_empty() {
        return Ok(Some(Planned { stage, state: State::Same, hosts, found: Changes::default() }));
    }
    note(&format!("planning {}", stage.name()));
    let mut found = Changes::default();
    if telling.watch(job, |event| found.take(event)).await?.is_none() || telling.is_stopping() {
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

/// Runs a playbook under the lock.
pub(super) async fn playbook(
    site: &Site<'_>,
    telling: &mut Telling,
    path: &std::path::Path,
    answers: Vars,
    hold: &Hold,
) -> Result<ExitCode, Failure> {
    let job = site.job(Some(path), false, answers, Some(hold.clone()))?;
    Ok(telling.run(job).await?.map_or(ExitCode::Interrupted, |recap| launch::exit_code(&recap)))
}

impl Deployment {
    /// The journal of the last apply, from the hosts that answer.
    pub(crate) async fn journal(&self) -> Option<Journal> {
        journal::newest(journal::read(&self.doors().await, &self.directory).await)
    }

    /// As [`Deployment::journal`], before anything is planned or changed.
    ///
    /// # Errors
    /// A host is the machine that an earlier apply knew under the name of another one.
    pub(crate) async fn journal_of_same_hosts(&self) -> Result<Option<Journal>, Failure> {
        let journals = journal::read(&self.doors().await, &self.directory).await;
        let exchanged = journal::exchanged(&journals, &self.hosts);
        if exchanged.is_empty() {
            return Ok(journal::newest(journals));
        }
        let known = |(name, known): &(&str, &str)| format!("{name} is the machine that was known as {known}");
        let list = exchanged.iter().map(known).collect::<Vec<_>>().join(", ");
        Err(anyhow!(
            "the inventory swaps the names of hosts of {}: {list}; windlass changed nothing\n\
             hint: correct their addresses in the inventory; if you exchanged the names on purpose, remove {}/journal from \
             these hosts",
            self.name,
            self.directory
        )
        .into())
    }
}
