//! `windlass plan`: what an apply would change, saved on request.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use super::{SiteArgs, plan_text, show, with_request};
use crate::cli::{CliError, ExitCode, files};
use crate::deployment::plan::{LAYOUT, Plan, PlanRequest};
use crate::deployment::planning;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Plan for these hosts only: a pattern, such as h1,h2 or @FILE
    #[arg(short = 'l', long, value_name = "HOSTS")]
    limit: Option<String>,
    /// Remove these members even if they do not answer; their lines must be gone
    #[arg(long, value_name = "MEMBERS", value_delimiter = ',')]
    remove_by_force: Vec<String>,
    /// Save the plan to this file, for `windlass apply FILE`
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Makes a dry run of every stage, and returns its changes.
pub(crate) fn run_plan(args: &PlanArgs) -> Result<ExitCode, CliError> {
    let wanted = PlanRequest { limit: args.limit.clone(), remove_by_force: args.remove_by_force.clone() };
    let command = with_request(args.site.command("plan"), &wanted);
    args.site.carry_out(command, &[], async |site, control| {
        let Some(plan) = planning::plan(site, wanted, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
        show(&plan_text::plan(&plan, site.verbosity > 0), site)?;
        if let Some(file) = &args.out {
            save(&plan, file)?;
        }
        Ok(plan.outcome().into())
    })
}

/// Writes a plan that only its owner may read.
fn save(plan: &Plan, file: &Path) -> Result<(), CliError> {
    let text = serde_json::to_vec_pretty(plan).context("cannot write the plan")?;
    files::write_file(file, &text)?;
    Ok(())
}

/// Reads a plan that was saved.
pub(crate) fn load_plan(file: &Path) -> Result<Plan, CliError> {
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
