//! `windlass plan`: what an apply would change, saved on request.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use super::{SiteArgs, messages, show};
use crate::cli::{ExitCode, Failure};
use crate::deployment::plan::{LAYOUT, Plan};
use crate::deployment::planning;

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
    args.site.carry_out(&[], async |site, control| {
        let Some(plan) = planning::plan(site, control).await? else { return Ok(ExitCode::Interrupted) };
        show(&messages::plan(&plan, site.verbosity > 0), site)?;
        if let Some(file) = &args.out {
            save(&plan, file)?;
        }
        Ok(plan.outcome().into())
    })
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
            "{} has plan layout {}, and this windlass reads layout {LAYOUT}\nhint: make a new plan",
            file.display(),
            plan.windlass_plan
        )
        .into()),
        Err(error) => Err(anyhow!("{} is not a plan file: {error}", file.display()).into()),
    }
}
