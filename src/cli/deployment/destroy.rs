//! `windlass destroy`: removes a deployment, by its typed name.

use anyhow::anyhow;
use clap::Args;

use super::SiteArgs;
use crate::cli::{CliError, ExitCode, ask, note};
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
        let typed = match &args.name {
            Some(name) => name.clone(),
            None => {
                let answer =
                    ask::line_unless("Name of the deployment to destroy: ", &control.run.stopping).map_err(|_| {
                        anyhow!(
                            "cannot ask for the name: standard input is not a terminal\nhint: pass --name {}",
                            deployment.name
                        )
                    })?;
                match answer {
                    Some(name) => name,
                    None => return Ok(ExitCode::Interrupted),
                }
            }
        };
        let request = LockRequest { command: "windlass destroy".to_owned(), breaks: args.break_lock, abandons: false };
        Ok(removal.carry_out(&typed, &request, control).await?.into())
    })
}
