//! `windlass plan`: what an apply would change, saved on request.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use sha2::{Digest, Sha256};

use super::{Deployment, Site, SiteArgs, show, stages};
use crate::bundle::Bundle;
use crate::cli::launch::{self, Telling};
use crate::cli::{ExitCode, Failure, print};
use crate::deployment::holder;
use crate::deployment::observation::{self, Observer};
use crate::deployment::plan::{ASKED, LAYOUT, Observed, Plan, State};
use crate::engine;
use crate::report::{Form, harmless, plain};
use crate::value::Vars;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Save the plan to this file, for `windlass apply FILE`
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Tries every stage out, and says what it would change.
pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let site = Site::open(&args.site, &[])?;
    launch::in_runtime(async || {
        let mut telling = site.telling()?;
        let deployment = site.deployment()?;
        deployment.check_hooks(&site)?;
        deployment.journal_of_same_hosts().await?;
        let made = make(&site, &deployment, &mut telling).await?;
        let Some(plan) = made else { return telling.end(ExitCode::Interrupted).await };
        print(harmless(&show::plan(&plan, args.site.reporting.verbosity(&site.settings) > 0)).as_bytes())?;
        if let Some(file) = &args.out {
            save(&plan, file)?;
        }
        let failed = plan.stages.iter().any(|planned| planned.state == State::Unknown);
        telling.end(if failed { ExitCode::Failed } else { ExitCode::Ok }).await
    })
}

impl Site<'_> {
    /// Opens the reports of the runs.
    pub(crate) fn telling(&self) -> Result<Telling, Failure> {
        let fence = self.job(None, true, Vars::new(), None)?.fence();
        Telling::open(&self.args.reporting, &self.settings, Form::Human, &self.keyring().hidden, fence.as_ref())
    }
}

/// A plan, with what was observed before it was made. None: Ctrl-C.
pub(crate) async fn make(
    site: &Site<'_>,
    deployment: &Deployment,
    telling: &mut Telling,
) -> Result<Option<Plan>, Failure> {
    let Some(observed) = observe(site, deployment, telling).await? else { return Ok(None) };
    let Some(stages) = stages::plan(site, telling).await? else { return Ok(None) };
    let me = holder::this_run("plan");
    Ok(Some(Plan {
        windlass_plan: LAYOUT,
        deployment: deployment.name.clone(),
        made: me.since,
        by: me.holder,
        sources: site.sources()?,
        stages,
        observed,
    }))
}

/// What the world is like, and what was asked for. None: Ctrl-C.
pub(crate) async fn observe(
    site: &Site<'_>,
    deployment: &Deployment,
    telling: &mut Telling,
) -> Result<Option<Observed>, Failure> {
    let job = site.job(Some(&site.playbook(observation::PLAYBOOK)), true, Vars::new(), None)?;
    let mut observer = Observer::new([(ASKED.into(), inputs(&job, deployment)?)].into());
    let recap = telling.watch(job, |event| observer.take(event)).await?;
    match recap.filter(|_| !telling.is_stopping()) {
        Some(_) => Ok(Some(observer.finish().map_err(|error| anyhow!(error))?)),
        None => Ok(None),
    }
}

/// Digests of the inventory with all its variables, and of the bundles that it names.
fn inputs(job: &engine::Job, deployment: &Deployment) -> Result<std::collections::BTreeMap<String, String>, Failure> {
    let mut found = std::collections::BTreeMap::new();
    let mut digest = Sha256::new();
    let mut bundles = Vec::new();
    for host in job.inventory.hosts.keys() {
        let vars = job.inventory.vars_of(host, None);
        digest.update(format!("{host}\n"));
        for (name, value) in vars.iter().chain(job.extra_vars.iter()) {
            digest.update(format!("{name}={}\n", plain(value)));
        }
        for name in ["etcd_bundle", "karmada_bundle"] {
            let value = engine::variable(job, host, name).map_err(anyhow::Error::new)?;
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
        found.insert(format!("bundle {path}"), bundle(Path::new(&path)));
    }
    Ok(found)
}

/// The digest of a bundle's manifest, or of its files' names, sizes and times; why it cannot be read otherwise.
fn bundle(path: &Path) -> String {
    let read = || -> Result<String, crate::bundle::Error> {
        let mut digest = Sha256::new();
        digest.update(Bundle::open(path)?.manifest()?.to_yaml());
        Ok(hex(digest))
    };
    read().unwrap_or_else(|error| error.to_string())
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a plan that nobody else may read.
fn save(plan: &Plan, file: &Path) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(plan).context("cannot write the plan")?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = directory.join(format!(".{}.new", file.file_name().unwrap_or_default().to_string_lossy()));
    let write = || -> std::io::Result<()> {
        #[expect(
            clippy::let_underscore_must_use,
            reason = "what was left by an interrupted plan; create_new reports what stays"
        )]
        let _ = std::fs::remove_file(&beside);
        let mut new = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        new.write_all(&text)?;
        new.sync_all()?;
        std::fs::rename(&beside, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// Reads a plan that was saved.
pub(crate) fn load(file: &Path) -> Result<Plan, Failure> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let plan: Result<Plan, _> = serde_json::from_slice(&text);
    match plan {
        Ok(plan) if plan.windlass_plan == LAYOUT => Ok(plan),
        Ok(plan) => Err(anyhow!(
            "{} has plan layout {}, and this windlass reads layout {LAYOUT}",
            file.display(),
            plan.windlass_plan
        )
        .into()),
        Err(error) => Err(anyhow!("{} is not a plan file: {error}", file.display()).into()),
    }
}
