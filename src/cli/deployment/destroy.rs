//! `windlass destroy`: removes a deployment, by its typed name.

use clap::Args;

use super::{SiteArgs, named};
use crate::cli::{CliError, ExitCode, note};
use crate::deployment::LockRequest;
use crate::deployment::destroy::Removal;

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// The deployment's name, to skip the prompt
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long)]
    break_lock: bool,
}

/// Asks for the name, and removes it all.
pub(crate) fn run_destroy(args: &DestroyArgs) -> Result<ExitCode, CliError> {
    args.site.carry_out(args.site.command("destroy"), &[], async |site, control| {
        let removal = Removal::prepare(site, control).await?;
        let deployment = &removal.deployment;
        note(&format!(
            "this removes {} from {}: its control plane, its etcd and all data in it",
            deployment.name,
            deployment.hosts.join(", ")
        ));
        let question = "Name of the deployment to destroy: ";
        let Some(typed) = named(args.name.clone(), question, &deployment.name, control)? else {
            return Ok(ExitCode::Interrupted);
        };
        let request = LockRequest { command: "windlass destroy".to_owned(), breaks: args.break_lock, abandons: false };
        Ok(removal.carry_out(&typed, &request, control).await?.into())
    })
}
