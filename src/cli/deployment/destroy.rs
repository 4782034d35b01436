//! `windlass destroy`: removes a deployment, by its typed name.

use anyhow::anyhow;
use clap::Args;

use super::{Deployment, Site, SiteArgs, stages};
use crate::cli::launch::{self, Telling};
use crate::cli::{ExitCode, Failure, ask, note};
use crate::deployment::held::Lock;
use crate::deployment::stage::Stage;
use crate::value::{Value, Vars};

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

/// What is removed, in this order: playbook, the group it is for, the variable that takes the name, and what is left if it
/// fails.
const STEPS: [(&str, &str, &str, &str); 2] = [
    ("karmada-reset.yml", "karmada_control_plane", "confirm_instance", "the control plane, etcd and its data"),
    ("etcd-reset.yml", "etcd", "confirm_cluster_name", "etcd and its data"),
];

/// Asks for the name, and removes it all.
pub(crate) fn run(args: &DestroyArgs) -> Result<ExitCode, Failure> {
    let site = Site::open(&args.site, &[])?;
    launch::in_runtime(async || {
        let mut telling = site.telling()?;
        let code = match destroy(args, &site, &mut telling).await {
            Ok(code) => code,
            Err(failure) => {
                telling.end(ExitCode::Error).await?;
                return Err(failure);
            }
        };
        telling.end(code).await
    })
}

async fn destroy(args: &DestroyArgs, site: &Site<'_>, telling: &mut Telling) -> Result<ExitCode, Failure> {
    let deployment = site.deployment()?;
    deployment.refuse_paused()?;
    deployment.journal_of_same_hosts().await?;
    note(&format!(
        "this removes {} from {}: its control plane, its etcd and all data in it",
        deployment.name,
        deployment.hosts.join(", ")
    ));
    let typed = match &args.name {
        Some(name) => name.clone(),
        None => ask::line("Name of the deployment to destroy: ").map_err(|_| {
            anyhow!("cannot ask for the name: standard input is not a terminal\nhint: pass --name {}", deployment.name)
        })?,
    };
    if typed != deployment.name {
        return Err(
            anyhow!("the deployment is named {}, not {typed}; windlass removed nothing", deployment.name).into()
        );
    }
    let lock = deployment.lock("windlass destroy", args.break_lock).await?;
    let code = locked(site, &deployment, &lock, telling).await;
    match code {
        // With the lock's own directory nothing is left on the hosts.
        Ok(ExitCode::Ok) => lock.forget().await,
        _ => lock.release().await,
    }
    code
}

/// Lets all members leave, as each is asked to.
async fn leave(site: &Site<'_>, lock: &Lock, telling: &mut Telling) -> Result<ExitCode, Failure> {
    let path = site.playbook(Stage::Removals.playbook());
    let mut job = site.job(Some(&path), false, Vars::new(), Some(lock.hold().clone()))?;
    for member in Stage::Members.hosts(&job.inventory) {
        job.inventory.add_to_group(&member, Stage::Removals.group())?;
    }
    Ok(telling.run(job).await?.map_or(ExitCode::Interrupted, |recap| launch::exit_code(&recap)))
}

async fn locked(
    site: &Site<'_>,
    deployment: &Deployment,
    lock: &Lock,
    telling: &mut Telling,
) -> Result<ExitCode, Failure> {
    let inventory = site.job(None, true, Vars::new(), None)?.inventory;
    let is_there = |group: &str| inventory.groups.contains_key(group) && !inventory.hosts_of(group).is_empty();
    if is_there("members") || is_there("del_member") {
        let code = leave(site, lock, telling).await?;
        if code != ExitCode::Ok {
            note(
                "not removed: members, the control plane, etcd and its data\nhint: set member_force to remove a \
                 member that does not answer",
            );
            return Ok(code);
        }
    }
    for (playbook, group, variable, left) in STEPS {
        if !is_there(group) {
            continue;
        }
        let name = if group == "etcd" { &deployment.etcd_cluster } else { &deployment.instance };
        let answers = Vars::from([(variable.into(), Value::from(name.as_str()))]);
        let code = stages::playbook(site, telling, &site.playbook(playbook), answers, lock.hold()).await?;
        if code != ExitCode::Ok {
            note(&format!("possibly not removed: {left}\nhint: run destroy again to resume"));
            return Ok(code);
        }
    }
    Ok(ExitCode::Ok)
}
