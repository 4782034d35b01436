//! `windlass upgrade`, `rollback`, `certificates` and `remove-host`: what a running control plane needs beside an apply.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::{SiteArgs, agrees, declined, named, plan_text, progress_messages, show};
use crate::cli::{CliError, ExitCode, note, working_directory};
use crate::deployment::operation::{Operation, PreparedOperation};
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

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// Bundle with the programs of the newer version (default: the one that the deployment names)
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Upgrade one component only, as `windlass status` names it; or: estimators
    #[arg(long, value_name = "COMPONENT")]
    component: Option<String>,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Roll back one component only, as `windlass status` names it; or: estimators
    #[arg(long, value_name = "COMPONENT")]
    component: Option<String>,
    #[command(flatten)]
    operation: OperationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertificatesArgs {
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
    let here = working_directory()?;
    let bundle = args.bundle.as_ref().map(|bundle| here.join(bundle));
    if let Some(bundle) = bundle.as_ref().filter(|bundle| !bundle.exists()) {
        return Err(anyhow!("there is no bundle {}", bundle.display()).into());
    }
    run_operation(&args.operation, Operation::Upgrade { component: args.component.clone(), bundle })
}

pub(crate) fn rollback(args: &RollbackArgs) -> Result<ExitCode, CliError> {
    run_operation(&args.operation, Operation::Rollback { component: args.component.clone() })
}

pub(crate) fn certificates(args: &CertificatesArgs) -> Result<ExitCode, CliError> {
    run_operation(&args.operation, Operation::RenewCertificates)
}

pub(crate) fn remove_host(args: &RemoveHostArgs) -> Result<ExitCode, CliError> {
    run_operation(&args.operation, Operation::RemoveHost(args.host.clone()))
}

/// Shows what the operation would change, asks, and carries it out.
pub(super) fn run_operation(args: &OperationArgs, operation: Operation) -> Result<ExitCode, CliError> {
    let name = operation.name();
    let mut command = args.site.command(name);
    let (own, whole) = (name.split(' ').count(), operation.recorded().to_string());
    command.arguments.splice(0..0, whole.split(' ').skip(own).map(str::to_owned));
    command.check = args.check;
    args.site.carry_out(command, &[], async |site, control| {
        let request =
            LockRequest { command: format!("windlass {name}"), breaks: args.break_lock, abandons: args.abandon };
        let consent = match (args.check, args.yes) {
            (true, _) => Consent::OnlyShow,
            (false, true) => Consent::Given,
            (false, false) => Consent::Asked,
        };
        carry_out_operation(site, control, operation, &request, consent).await
    })
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
    let name = operation.name();
    let changes = !matches!(consent, Consent::OnlyShow);
    let Some(prepared) = PreparedOperation::make(site, operation, request, changes, control).await? else {
        return Ok(ExitCode::Interrupted);
    };
    show(&plan_text::operation(&prepared, site.verbosity > 0), site)?;
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
