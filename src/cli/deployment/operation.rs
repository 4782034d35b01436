//! `windlass upgrade`, `rollback`, `certificates` and `remove-host`: what a running control plane needs beside an apply.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use super::{SiteArgs, agrees, declined, named, plan_text, progress_messages, show};
use crate::cli::{CliError, ExitCode, files, note, working_directory};
use crate::deployment::operation::{OPERATION_LAYOUT, Operation, OperationPlan, PreparedOperation};
use crate::deployment::{Control, Error, LockRequest, Outcome, Site};

#[derive(Debug, Args)]
pub(super) struct OperationArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Only show what would be done
    #[arg(long)]
    check: bool,
    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long, conflicts_with = "check")]
    break_lock: bool,
    /// Give up another operation that was interrupted and cannot be resumed
    #[arg(long)]
    abandon: bool,
}

/// A dry run that somebody approves before it is carried out.
#[derive(Debug, Args)]
pub(super) struct SavedArgs {
    /// With --check: save what would be done to this file, for --plan FILE
    #[arg(short = 'o', long, value_name = "FILE", requires = "check")]
    out: Option<PathBuf>,
    /// Do what --check --out FILE saved; refused if anything changed since
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "file", "inventory"])]
    plan: Option<PathBuf>,
}

impl SavedArgs {
    /// Whether a plan is carried out.
    pub(super) fn has_plan(&self) -> bool {
        self.plan.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// Bundle with the programs of the newer version (default: the one that the deployment names)
    #[arg(long, value_name = "BUNDLE", conflicts_with = "plan")]
    bundle: Option<PathBuf>,
    /// Upgrade one component only, as `windlass status` names it; or: estimators
    #[arg(long, value_name = "COMPONENT", conflicts_with = "plan")]
    component: Option<String>,
    #[command(flatten)]
    saved: SavedArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Roll back one component only, as `windlass status` names it; or: estimators
    #[arg(long, value_name = "COMPONENT", conflicts_with = "plan")]
    component: Option<String>,
    #[command(flatten)]
    saved: SavedArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertificatesArgs {
    #[command(flatten)]
    saved: SavedArgs,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveHostArgs {
    /// The host's name in the inventory
    #[arg(value_name = "HOST")]
    host: String,
    #[command(flatten)]
    operation: OperationArgs,
}

pub(crate) fn upgrade(args: &UpgradeArgs) -> Result<ExitCode, CliError> {
    let bundle = find_bundle(args.bundle.as_deref())?;
    run_or_save(&args.operation, &args.saved, Operation::Upgrade { component: args.component.clone(), bundle })
}

/// The bundle of an option, as an absolute path.
pub(super) fn find_bundle(bundle: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let here = working_directory()?;
    match bundle.map(|bundle| here.join(bundle)) {
        Some(bundle) if !bundle.exists() => Err(anyhow!("there is no bundle {}", bundle.display()).into()),
        bundle => Ok(bundle),
    }
}

pub(crate) fn rollback(args: &RollbackArgs) -> Result<ExitCode, CliError> {
    run_or_save(&args.operation, &args.saved, Operation::Rollback { component: args.component.clone() })
}

pub(crate) fn certificates(args: &CertificatesArgs) -> Result<ExitCode, CliError> {
    run_or_save(&args.operation, &args.saved, Operation::RenewCertificates)
}

pub(crate) fn remove_host(args: &RemoveHostArgs) -> Result<ExitCode, CliError> {
    run_operation(&args.operation, Operation::RemoveHost(args.host.clone()))
}

/// Shows what the operation would change, asks, and carries it out.
pub(super) fn run_operation(args: &OperationArgs, operation: Operation) -> Result<ExitCode, CliError> {
    run_or_save(args, &SavedArgs { out: None, plan: None }, operation)
}

/// As [`run_operation`]; or saves what it would change, or carries out what was saved.
pub(super) fn run_or_save(args: &OperationArgs, saved: &SavedArgs, operation: Operation) -> Result<ExitCode, CliError> {
    let name = operation.name();
    let plan = saved.plan.as_deref().map(|file| load_operation(file, name)).transpose()?;
    let operation = plan.as_ref().and_then(OperationPlan::planned_operation).unwrap_or(operation);
    let sources: Vec<PathBuf> = plan.iter().flat_map(|plan| &plan.sources).map(PathBuf::from).collect();
    let mut command = args.site.command(name);
    let (own, whole) = (name.split(' ').count(), operation.recorded().to_string());
    command.arguments.splice(0..0, whole.split(' ').skip(own).map(str::to_owned));
    command = command.option("--out", saved.out.as_ref().map(|file| file.display()));
    command = command.option("--plan", saved.plan.as_ref().map(|file| file.display()));
    command.check = args.check;
    args.site.carry_out(command, &sources, async |site, control| {
        let request =
            LockRequest { command: format!("windlass {name}"), breaks: args.break_lock, abandons: args.abandon };
        let consent = match (args.check, args.yes) {
            (true, _) => Consent::OnlyShow,
            (false, true) => Consent::Given,
            (false, false) => Consent::Asked,
        };
        let prepared = match plan {
            Some(plan) => PreparedOperation::of_plan(site, plan, &request, control).await?,
            None => match PreparedOperation::make(site, operation, &request, !args.check, control).await? {
                Some(prepared) => prepared,
                None => return Ok(ExitCode::Interrupted),
            },
        };
        if let Some(file) = &saved.out {
            save_operation(&prepared, file)?;
        }
        carry_out_prepared(&prepared, &request, consent, control).await
    })
}

/// Writes a dry run that only its owner may read.
fn save_operation(prepared: &PreparedOperation<'_>, file: &Path) -> Result<(), CliError> {
    let plan = prepared.operation_plan().ok_or_else(|| anyhow!("cannot save {}", prepared.operation.name()))?;
    let text = serde_json::to_vec_pretty(&plan).context("cannot write the plan")?;
    files::write_file(file, &text)?;
    Ok(())
}

/// Reads the dry run of a sub-command that was saved.
fn load_operation(file: &Path, name: &str) -> Result<OperationPlan, CliError> {
    let shown = file.display();
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    let plan: OperationPlan = serde_json::from_slice(&text)
        .map_err(|error| anyhow!("{shown} is not a plan file of an operation: {error}"))?;
    if plan.windlass_operation != OPERATION_LAYOUT {
        let layout = plan.windlass_operation;
        return Err(anyhow!(
            "{shown} has plan layout {layout}, and this windlass reads layout {OPERATION_LAYOUT}\nhint: make a new plan"
        )
        .into());
    }
    match plan.planned_operation() {
        Some(operation) if operation.name() == name => Ok(plan),
        _ => Err(anyhow!("{shown} is a plan of windlass {}, not of windlass {name}", plan.operation).into()),
    }
}

/// How a person agrees to what an operation would change.
pub(super) enum Consent {
    /// Nothing is to be changed.
    OnlyShow,
    Given,
    Asked,
    /// With the deployment's name, as an option or typed.
    Name(Option<String>),
}

/// As [`run_operation`], for a command with other options.
pub(super) async fn carry_out_operation(
    site: &Site,
    control: &Control,
    operation: Operation,
    request: &LockRequest,
    consent: Consent,
) -> Result<ExitCode, CliError> {
    let changes = !matches!(consent, Consent::OnlyShow);
    match PreparedOperation::make(site, operation, request, changes, control).await? {
        Some(prepared) => carry_out_prepared(&prepared, request, consent, control).await,
        None => Ok(ExitCode::Interrupted),
    }
}

async fn carry_out_prepared(
    prepared: &PreparedOperation<'_>,
    request: &LockRequest,
    consent: Consent,
    control: &Control,
) -> Result<ExitCode, CliError> {
    let (site, name) = (prepared.site(), prepared.operation.name());
    let changes = !matches!(consent, Consent::OnlyShow);
    show(&plan_text::operation(prepared, site.verbosity > 0), site)?;
    if let Some(journal) = &prepared.interrupted {
        note(&progress_messages::interrupted(journal, prepared.resumes()));
    }
    if !prepared.found.failures.is_empty() {
        note(&format!("error: cannot carry out {name}: its dry run failed"));
        return Ok(match prepared.found.outcome() {
            Outcome::Unreachable => ExitCode::Unreachable,
            _ => ExitCode::Failed,
        });
    }
    // One that is given up leaves its journal, which this one closes.
    let gives_up = request.abandons && prepared.interrupted.is_some() && !prepared.resumes();
    if !changes || prepared.is_empty() && !gives_up {
        return Ok(ExitCode::Ok);
    }
    match consent {
        Consent::OnlyShow | Consent::Given => {}
        Consent::Asked => {
            if !agrees("Continue?", "--yes skips the question, --check only shows this", control)? {
                return Ok(declined(control));
            }
        }
        Consent::Name(name) => {
            let deployment = &prepared.deployment.name;
            let question = "Name of the deployment, to continue: ";
            let Some(typed) = named(name, question, deployment, control)? else { return Ok(declined(control)) };
            if typed != *deployment {
                return Err(Error::WrongName { name: deployment.clone(), typed, done: "changed" }.into());
            }
        }
    }
    Ok(prepared.carry_out(request, control).await?.into())
}
