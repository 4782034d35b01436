//! `windlass apply`: makes a deployment what it is described to be. Only stages that differ are run, under the deployment's
//! lock, with a journal on its hosts.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::{Deployment, Site, SiteArgs, agrees, plan, show, stages};
use crate::cli::launch::{self, Telling};
use crate::cli::{ExitCode, Failure, note, print};
use crate::deployment::held::Lock;
use crate::deployment::journal::{self, Entry, Journal};
use crate::deployment::lock;
use crate::deployment::plan::{Plan, Planned, State, moved};
use crate::deployment::stage::Stage;
use crate::report::harmless;

/// How many things that moved are named.
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// A plan that `windlass plan -o` saved; refused if anything changed since
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["file", "inventory"])]
    plan: Option<PathBuf>,
    /// Apply without asking
    #[arg(short = 'y', long)]
    yes: bool,
    /// How many members to remove without asking again
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_removals: usize,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long)]
    break_lock: bool,
}

/// Plans, asks, and applies.
pub(crate) fn run(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    let saved = args.plan.as_deref().map(plan::load).transpose()?;
    let sources: Vec<PathBuf> = saved.iter().flat_map(|plan| &plan.sources).map(PathBuf::from).collect();
    let site = Site::open(&args.site, &sources)?;
    launch::in_runtime(async || {
        let mut telling = site.telling()?;
        let code = match apply(args, &site, saved, &mut telling).await {
            Ok(code) => code,
            Err(failure) => {
                telling.end(ExitCode::Error).await?;
                return Err(failure);
            }
        };
        telling.end(code).await
    })
}

async fn apply(
    args: &ApplyArgs,
    site: &Site<'_>,
    saved: Option<Plan>,
    telling: &mut Telling,
) -> Result<ExitCode, Failure> {
    let deployment = site.deployment()?;
    deployment.refuse_paused()?;
    deployment.check_hooks(site)?;
    let owed = deployment.journal_of_same_hosts().await?.filter(|journal| !journal.done);
    let is_saved = saved.is_some();
    let plan = match saved {
        Some(plan) => plan,
        None => match plan::make(site, &deployment, telling).await? {
            Some(plan) => plan,
            None => return Ok(ExitCode::Interrupted),
        },
    };
    print(harmless(&show::plan(&plan, args.site.reporting.verbosity(&site.settings) > 0)).as_bytes())?;
    if let Some(owed) = &owed {
        note(&words_of(owed));
    }
    if let Some(unknown) = plan.stages.iter().find(|planned| planned.state == State::Unknown) {
        note(&format!("error: cannot apply stage {}: its dry run failed", unknown.stage.name()));
        return Ok(ExitCode::Failed);
    }
    if plan.is_empty() && owed.is_none() {
        return Ok(ExitCode::Ok);
    }
    if !agreed(args, &plan)? {
        note("nothing was changed");
        return Ok(ExitCode::Ok);
    }
    let lock = deployment.lock(&command(args), args.break_lock).await?;
    let done = locked(site, &deployment, plan, is_saved, &lock, telling).await;
    lock.release().await;
    done
}

/// What is done under the lock.
async fn locked(
    site: &Site<'_>,
    deployment: &Deployment,
    plan: Plan,
    is_saved: bool,
    lock: &Lock,
    telling: &mut Telling,
) -> Result<ExitCode, Failure> {
    let Some(plan) = still(site, deployment, plan, is_saved, telling).await? else { return Ok(ExitCode::Interrupted) };
    // Somebody may have come and gone before the lock was taken.
    let owed = journal::newest(journal::read(lock.hosts(), &deployment.directory).await);
    let owed = owed.filter(|journal| !journal.done);
    let owed = owed.and_then(|journal| journal.open_stage());
    let mut course = Course::begin(site, deployment, &plan, lock, telling);
    let code = course.all(&plan.stages, owed).await?;
    if code == ExitCode::Ok {
        course.journal.done = true;
        course.write().await?;
    }
    Ok(code)
}

/// The plan, if it still holds now that nobody else can change anything. One that was made a moment ago is made again where
/// something moved, and holds if the same stages differ. None: Ctrl-C.
async fn still(
    site: &Site<'_>,
    deployment: &Deployment,
    plan: Plan,
    is_saved: bool,
    telling: &mut Telling,
) -> Result<Option<Plan>, Failure> {
    let Some(now) = plan::observe(site, deployment, telling).await? else { return Ok(None) };
    let moved = moved(&plan.observed, &now);
    if moved.is_empty() {
        return Ok(Some(plan));
    }
    if !is_saved {
        note("something changed on the hosts while planning: planning again");
        let Some(again) = plan::make(site, deployment, telling).await? else { return Ok(None) };
        if again.course() == plan.course() {
            return Ok(Some(again));
        }
    }
    let since = if is_saved { "the plan was saved" } else { "planning began" };
    let mut list = moved[..moved.len().min(SHOWN)].join("\n  ");
    if moved.len() > SHOWN {
        list.push_str(&format!("\n  and {} more", moved.len() - SHOWN));
    }
    Err(anyhow!(
        "windlass changed nothing, because the hosts or the inventory changed since {since}:\n  {list}\nhint: \
        make a new plan"
    )
    .into())
}

/// An apply on its way.
struct Course<'a, 's> {
    site: &'a Site<'s>,
    deployment: &'a Deployment,
    lock: &'a Lock,
    telling: &'a mut Telling,
    journal: Journal,
    /// A stage was run, so that what was planned for those after it may not hold any more.
    has_run: bool,
}

impl<'a, 's> Course<'a, 's> {
    fn begin(
        site: &'a Site<'s>,
        deployment: &'a Deployment,
        plan: &Plan,
        lock: &'a Lock,
        telling: &'a mut Telling,
    ) -> Self {
        let record = &lock.hold().record;
        let journal = Journal {
            token: record.token,
            apply: record.run.clone().unwrap_or_default(),
            deed: "apply".into(),
            deployment: deployment.name.clone(),
            digest: plan.asked().unwrap_or_default().to_owned(),
            who: record.holder.clone(),
            begun: record.since,
            stages: Vec::new(),
            done: false,
            host: String::new(),
        };
        Course { site, deployment, lock, telling, journal, has_run: false }
    }

    /// Runs the stages that differ, and the one that an interrupted apply owes.
    async fn all(&mut self, stages: &[Planned], owed: Option<Stage>) -> Result<ExitCode, Failure> {
        for planned in stages {
            let stage = planned.stage;
            if self.telling.is_stopping() {
                return Ok(ExitCode::Interrupted);
            }
            let needed = owed == Some(stage)
                || match self.has_run {
                    false => planned.state != State::Same,
                    true => match stages::look(self.site, self.telling, stage, true).await? {
                        Some(now) => now.state != State::Same,
                        None => return Ok(ExitCode::Interrupted),
                    },
                };
            if !needed {
                continue;
            }
            let code = self.stage(stage).await?;
            if code != ExitCode::Ok {
                return Ok(code);
            }
        }
        Ok(ExitCode::Ok)
    }

    /// One stage, with its hooks.
    async fn stage(&mut self, stage: Stage) -> Result<ExitCode, Failure> {
        self.has_run = true;
        let entry = Entry { stage: stage.name().into(), playbook: stage.playbook().into(), done: false };
        self.journal.stages.push(entry);
        self.write().await?;
        let hold = self.lock.hold();
        let playbooks = self.deployment.around(stage);
        let own = self.site.playbook(stage.playbook());
        let steps = playbooks.before.iter().chain([&own]).chain(&playbooks.after);
        for playbook in steps {
            note(&format!("applying {}: {}", stage.name(), playbook.display()));
            let answers = crate::value::Vars::new();
            let code = stages::playbook(self.site, self.telling, playbook, answers, hold).await?;
            if code != ExitCode::Ok {
                return Ok(code);
            }
        }
        if let Some(entry) = self.journal.stages.last_mut() {
            entry.done = true;
        }
        self.write().await?;
        Ok(ExitCode::Ok)
    }

    async fn write(&self) -> Result<(), Failure> {
        let written = journal::write(self.lock, &self.journal).await;
        written.map_err(|why| anyhow!("cannot write the journal to a majority of the hosts: {why}").into())
    }
}

/// What is said of an apply that did not come to its end.
fn words_of(owed: &Journal) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ago = lock::words(now.saturating_sub(std::time::Duration::from_secs(owed.begun)));
    match owed.open_stage() {
        Some(stage) => format!(
            "the {} that {} started {ago} ago was interrupted: resuming at stage {}",
            owed.deed,
            owed.who,
            stage.name()
        ),
        None => format!(
            "the {} that {} started {ago} ago was interrupted: resuming with the stages that have changes",
            owed.deed, owed.who
        ),
    }
}

/// Asks what has to be asked.
fn agreed(args: &ApplyArgs, plan: &Plan) -> Result<bool, Failure> {
    let removals = plan.stages.iter().find(|planned| planned.stage == Stage::Removals && planned.state != State::Same);
    let leaving = removals.map_or(&[][..], |planned| &planned.hosts);
    let many = leaving.len() > args.max_removals;
    if args.yes && many {
        return Err(anyhow!(
            "refusing to remove {} ({}): --max-removals allows {}",
            show::counted(leaving.len(), "member"),
            leaving.join(", "),
            args.max_removals
        )
        .into());
    }
    if args.yes {
        return Ok(true);
    }
    let otherwise = "--yes applies without asking";
    if many
        && !agrees(&format!("Remove {}: {}?", show::counted(leaving.len(), "member"), leaving.join(", ")), otherwise)?
    {
        return Ok(false);
    }
    agrees("Apply?", otherwise)
}

/// The command line that the lock shows for this run.
fn command(args: &ApplyArgs) -> String {
    let what = args.plan.as_deref().or(args.site.file.as_deref()).map(Path::display);
    let what = what.map_or_else(|| format!("-i {}", args.site.inventory.join(" -i ")), |path| path.to_string());
    let flag = if args.site.file.is_some() { "-f " } else { "" };
    format!("windlass apply {flag}{what}")
}
