//! `kubectl windlass`: this program under the name `kubectl-windlass`, for people who work with the operator's objects.

mod logs;
mod report;

use std::ffi::OsString;
use std::path::Path;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::{CliError, ExitCode, launch, note, print, surroundings};
use crate::kubernetes::{Cluster, error_text, is_absent, limited};
use crate::report::harmless;
use crate::resource::status::{Look, short_message};
use crate::resource::{Condition, KarmadaDeployment, Run, RunOperation, RunSpec};

/// Work with the KarmadaDeployments and Runs of an API server, which windlass operator acts on
#[derive(Debug, Parser)]
#[command(name = "kubectl-windlass", bin_name = "kubectl windlass", version, arg_required_else_help = true)]
struct Cli {
    /// Context of the kubeconfig (default: the current one)
    #[arg(long, global = true, value_name = "CONTEXT")]
    context: Option<String>,
    /// Namespace (default: that of the context)
    #[arg(short = 'n', long, global = true, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the conditions, the hosts and the problems of a deployment
    Status(Name),
    /// Show the plan that waits for approval
    Plan(Name),
    /// Approve the plan that `plan` shows, by its digest
    Approve(ApproveArgs),
    /// Create a Run of another operation
    Run(RunArgs),
    /// List the Runs, of one deployment or of all
    Runs(RunsArgs),
    /// Show what a Run prints that a Job does, or follow it
    Logs(logs::LogsArgs),
    /// Print what is known of a deployment, its Runs, their Jobs and the events, for a bug report; no Secret is read
    Report(report::ReportArgs),
    /// Stop a Run after the tasks that are running
    Stop(Name),
    /// Change nothing on the hosts of a deployment until it is resumed
    Pause(Name),
    /// End a pause
    Resume(Name),
}

#[derive(Debug, Args)]
struct Name {
    name: String,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    /// The deployment
    name: String,
    /// The digest that was read, so that no other plan is approved (default: that of the plan now)
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// upgrade, rollback, certificates, upgrade-etcd, downgrade-etcd, defragment-etcd, backup, restore, undo-restore, release-restore or destroy
    #[arg(value_parser = [
        "upgrade", "rollback", "certificates", "upgrade-etcd", "downgrade-etcd", "defragment-etcd",
        "backup", "restore", "undo-restore", "release-restore", "destroy",
    ])]
    operation: String,
    /// The deployment
    name: String,
    /// To destroy, and to restore, undo or release a restore: the name of the deployment again
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    /// To back up or restore etcd: the EtcdBackup that says where the backups are
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// To restore: the name of the backup (default: the newest one)
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
}

#[derive(Debug, Args)]
struct RunsArgs {
    /// The deployment
    name: Option<String>,
}

/// Whether the program was called by this name.
pub(super) fn is_called(argv: &[OsString]) -> bool {
    argv.first().and_then(|word| Path::new(word).file_name()).is_some_and(|name| name == "kubectl-windlass")
}

/// Runs the plugin; the result is the program's exit code.
pub(super) fn run_plugin(argv: Vec<OsString>) -> ExitCode {
    match Cli::try_parse_from(argv) {
        Ok(cli) => launch::wait(async || cli.run().await).unwrap_or_else(|failure| super::say(&failure)),
        Err(error) => {
            let wrong = error.use_stderr();
            #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
            let _ = error.print();
            if wrong { ExitCode::Usage } else { ExitCode::Ok }
        }
    }
}

impl Cli {
    async fn run(&self) -> Result<ExitCode, CliError> {
        let cluster = Cluster { context: self.context.clone(), around: surroundings().clone().into() };
        let client = limited(cluster.client()).await.map_err(anyhow::Error::msg)?;
        let namespace = self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let objects = Objects { client, namespace };
        match &self.command {
            Command::Status(args) => objects.status(&args.name).await,
            Command::Plan(args) => objects.plan(&args.name).await,
            Command::Approve(args) => objects.approve(args).await,
            Command::Run(args) => objects.create(args).await,
            Command::Runs(args) => objects.list(args.name.as_deref()).await,
            Command::Logs(args) => objects.logs(args).await,
            Command::Report(args) => objects.report(args).await,
            Command::Stop(args) => objects.stop(&args.name).await,
            Command::Pause(args) => objects.pause(&args.name, true).await,
            Command::Resume(args) => objects.pause(&args.name, false).await,
        }
    }
}

/// The objects of one namespace.
struct Objects {
    client: Client,
    namespace: String,
}

impl Objects {
    fn deployments(&self) -> Api<KarmadaDeployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn runs(&self) -> Api<Run> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn deployment(&self, name: &str) -> Result<KarmadaDeployment, CliError> {
        let found = limited(async { Ok(self.deployments().get(name).await) }).await.map_err(anyhow::Error::msg)?;
        found.map_err(|error| match is_absent(&error) {
            true => anyhow!("the namespace {} has no KarmadaDeployment {name}", self.namespace).into(),
            false => anyhow!("{}", error_text(&error)).into(),
        })
    }

    async fn look(&self, name: &str) -> Result<(KarmadaDeployment, Look), CliError> {
        let deployment = self.deployment(name).await?;
        let look = deployment.status.as_ref().and_then(|status| status.look.clone());
        let look = look.ok_or_else(|| {
            anyhow!("no operator has looked at the hosts of {name} yet\nhint: is windlass operator running?")
        })?;
        match &look.error {
            Some(why) => Err(anyhow!("the operator could not look at the hosts of {name}: {why}").into()),
            None => Ok((deployment, look)),
        }
    }

    async fn status(&self, name: &str) -> Result<ExitCode, CliError> {
        let deployment = self.deployment(name).await?;
        let status = deployment.status.unwrap_or_default();
        let mut text = String::new();
        for condition in &status.conditions {
            let Condition { r#type, status, reason, message, .. } = condition;
            let message = short_message(message);
            text.push_str(&format!("{type:<18} {status:<8} {reason:<20} {message}\n"));
        }
        if let Some(look) = &status.look {
            text.push_str(&format!("\nlooked at {}\n", look.time));
            for host in &look.hosts {
                let state = if host.reachable { &host.ready } else { &host.message };
                text.push_str(&format!("{:<24} {}\n", host.name, short_message(state)));
            }
            look.problems.iter().for_each(|problem| text.push_str(&format!("unhealthy: {}\n", short_message(problem))));
        }
        show(&text)?;
        let ready = status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.is_true());
        Ok(if ready { ExitCode::Ok } else { ExitCode::Failed })
    }

    async fn plan(&self, name: &str) -> Result<ExitCode, CliError> {
        let (_, look) = self.look(name).await?;
        let Some((plan, digest)) = look.plan.as_ref().and_then(|plan| Some((plan, plan.digest.as_ref()?))) else {
            show("Nothing to do.\n")?;
            return Ok(ExitCode::Ok);
        };
        let mut text: String = plan.lines.iter().map(|line| format!("{}\n", short_message(line))).collect();
        let shown = i64::try_from(plan.lines.len()).unwrap_or(i64::MAX);
        if plan.changes > shown {
            text.push_str(&format!("and {} more changes\n", plan.changes - shown));
        }
        plan.removals
            .iter()
            .for_each(|member| text.push_str(&format!("the member {} leaves\n", short_message(member))));
        if let Some(why) = &plan.refused {
            text.push_str(&format!("refused: {}\n", short_message(why)));
        }
        text.push_str(&format!("digest: {}\n", short_message(digest)));
        show(&text)?;
        Ok(if plan.refused.is_some() { ExitCode::Error } else { ExitCode::Ok })
    }

    async fn approve(&self, args: &ApproveArgs) -> Result<ExitCode, CliError> {
        let (deployment, look) = self.look(&args.name).await?;
        if Some(look.generation) != deployment.metadata.generation {
            let hint = "wait until the operator has looked at the hosts again";
            return Err(anyhow!("the plan is for an earlier spec of {}\nhint: {hint}", args.name).into());
        }
        let Some(digest) = look.plan.and_then(|plan| plan.digest) else {
            note("there is nothing to do");
            return Ok(ExitCode::Ok);
        };
        if args.digest.as_ref().is_some_and(|given| *given != digest) {
            return Err(anyhow!("the plan has become another one: its digest is {digest}; nothing was approved").into());
        }
        self.post(RunSpec { plan_digest: Some(digest), ..RunSpec::of_operation(&args.name, RunOperation::Apply) }).await
    }

    async fn create(&self, args: &RunArgs) -> Result<ExitCode, CliError> {
        self.deployment(&args.name).await?;
        let operation = match args.operation.as_str() {
            "upgrade" => RunOperation::Upgrade,
            "rollback" => RunOperation::Rollback,
            "certificates" => RunOperation::RenewCertificates,
            "upgrade-etcd" => RunOperation::UpgradeEtcd,
            "downgrade-etcd" => RunOperation::DowngradeEtcd,
            "defragment-etcd" => RunOperation::DefragmentEtcd,
            "backup" => RunOperation::Backup,
            "restore" => RunOperation::Restore,
            "undo-restore" => RunOperation::UndoRestore,
            "release-restore" => RunOperation::ReleaseRestore,
            _ => RunOperation::Destroy,
        };
        if operation.needs_confirm() && args.confirm.as_deref() != Some(&*args.name) {
            let what = match operation {
                RunOperation::Destroy => format!("to destroy {} with all its data", args.name),
                RunOperation::Restore => {
                    format!(
                        "a restore stops the control plane {}, and what was written since the backup is lost: for this",
                        args.name
                    )
                }
                RunOperation::UndoRestore => "what was written since the restore is lost: for this".to_owned(),
                _ => "after the release, the restore cannot be undone: for this".to_owned(),
            };
            return Err(anyhow!("{what}, pass --confirm {}", args.name).into());
        }
        let has_backup = matches!(operation, RunOperation::Backup | RunOperation::Restore);
        if has_backup != args.backup.is_some() {
            let why = "the operations backup and restore need --backup NAME, an EtcdBackup, and no other has it";
            return Err(anyhow!("{why}").into());
        }
        if args.snapshot.is_some() && operation != RunOperation::Restore {
            return Err(anyhow!("--snapshot is for the operation restore only").into());
        }
        let confirm = args.confirm.clone().filter(|_| operation.needs_confirm());
        let (backup, snapshot) = (args.backup.clone(), args.snapshot.clone());
        self.post(RunSpec { confirm, backup, snapshot, ..RunSpec::of_operation(&args.name, operation) }).await
    }

    async fn post(&self, spec: RunSpec) -> Result<ExitCode, CliError> {
        let mut run = Run::new("", spec);
        run.metadata.name = None;
        let words = run.spec.operation.command().split([' ', '-']).filter(|word| !word.is_empty());
        let words: Vec<&str> = [&*run.spec.deployment].into_iter().chain(words).collect();
        run.metadata.generate_name = Some(format!("{}-", words.join("-")));
        let created = limited(async { Ok(self.runs().create(&PostParams::default(), &run).await) });
        let created = created.await.map_err(anyhow::Error::msg)?.map_err(|error| anyhow!("{}", error_text(&error)))?;
        note(&format!("created the run {}", created.name_any()));
        Ok(ExitCode::Ok)
    }

    async fn list(&self, deployment: Option<&str>) -> Result<ExitCode, CliError> {
        let found = limited(async { Ok(self.runs().list(&ListParams::default()).await) });
        let found = found.await.map_err(anyhow::Error::msg)?.map_err(|error| anyhow!("{}", error_text(&error)))?;
        let mut runs: Vec<Run> =
            found.items.into_iter().filter(|run| deployment.is_none_or(|name| run.spec.deployment == name)).collect();
        runs.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.name_any()));
        let line = |[name, deployment, operation, result, message]: [&str; 5]| {
            let line = format!("{name:<40} {deployment:<24} {operation:<18} {result:<16} {message}");
            format!("{}\n", line.trim_end())
        };
        let mut text = line(["RUN", "DEPLOYMENT", "OPERATION", "RESULT", ""]);
        for run in &runs {
            let status = run.status.clone().unwrap_or_default();
            let (result, message) = match status.succeeded() {
                Some(condition) => (condition.reason.clone(), short_message(&condition.message)),
                None => ("Waiting".to_owned(), String::new()),
            };
            let operation = format!("{:?}", run.spec.operation);
            text.push_str(&line([&run.name_any(), &run.spec.deployment, &operation, &result, &message]));
            status.failures.iter().for_each(|failure| text.push_str(&format!("    {}\n", short_message(failure))));
        }
        show(&text)?;
        Ok(ExitCode::Ok)
    }

    async fn stop(&self, name: &str) -> Result<ExitCode, CliError> {
        let patch = Patch::Merge(json!({"spec": {"stop": true}}));
        let runs = self.runs();
        let patched = limited(async { Ok(runs.patch(name, &PatchParams::default(), &patch).await) });
        patched.await.map_err(anyhow::Error::msg)?.map_err(|error| anyhow!("{}", error_text(&error)))?;
        note(&format!("the run {name} stops after the tasks that are running"));
        Ok(ExitCode::Ok)
    }

    async fn pause(&self, name: &str, paused: bool) -> Result<ExitCode, CliError> {
        let patch = Patch::Merge(json!({"spec": {"paused": paused}}));
        let deployments = self.deployments();
        let patched = limited(async { Ok(deployments.patch(name, &PatchParams::default(), &patch).await) });
        patched.await.map_err(anyhow::Error::msg)?.map_err(|error| anyhow!("{}", error_text(&error)))?;
        note(&format!("{name} is {}", if paused { "paused" } else { "not paused any more" }));
        Ok(ExitCode::Ok)
    }
}

/// Prints what others may have written, without control characters.
fn show(text: &str) -> Result<(), CliError> {
    Ok(print(harmless(text).as_bytes())?)
}
