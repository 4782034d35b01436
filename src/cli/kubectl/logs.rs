//! `kubectl windlass logs`: what the pods of a Run print.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};

use super::{Objects, show};
use crate::cli::{CliError, ExitCode};
use crate::kubernetes::{error_text, limited};
use crate::operator::JOB_CONTAINER;
use crate::resource::Run;

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The Run
    run: String,
    /// Follow the run until it ends
    #[arg(short, long)]
    follow: bool,
}

/// How long to wait before asking again for what is not there yet.
const PAUSE: Duration = Duration::from_secs(2);

impl Objects {
    pub(super) async fn logs(&self, args: &LogsArgs) -> Result<ExitCode, CliError> {
        let mut shown = HashSet::new();
        loop {
            let run = self.run(&args.run).await?;
            let has_ended = run.status.as_ref().is_some_and(|status| status.completion_time.is_some());
            let pods = self.pods_of(&run).await?;
            let fresh: Vec<&Pod> = pods.iter().filter(|pod| !shown.contains(&pod.name_any())).collect();
            for pod in &fresh {
                if has_begun(pod) {
                    shown.insert(pod.name_any());
                    self.print_log(&pod.name_any(), args.follow).await?;
                }
            }
            if !args.follow || (has_ended && fresh.is_empty()) {
                return if shown.is_empty() { Err(elsewhere(&run)) } else { Ok(ExitCode::Ok) };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn run(&self, name: &str) -> Result<Run, CliError> {
        let found = limited(async { Ok(self.runs().get(name).await) }).await.map_err(anyhow::Error::msg)?;
        found.map_err(|error| anyhow!("cannot read the Run {name}: {}", error_text(&error)).into())
    }

    /// The Jobs of a Run.
    pub(super) async fn jobs_of(&self, run: &Run) -> Result<Vec<Job>, CliError> {
        let uid = run.uid().unwrap_or_default();
        let api: Api<Job> = Api::namespaced(self.client.clone(), &self.namespace);
        let jobs = self.all(api, "").await?;
        Ok(jobs.into_iter().filter(|job| job.owner_references().iter().any(|owner| owner.uid == uid)).collect())
    }

    /// The pods of a Run, in the order of their creation.
    pub(super) async fn pods_of(&self, run: &Run) -> Result<Vec<Pod>, CliError> {
        let mut pods = Vec::new();
        for job in self.jobs_of(run).await? {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
            pods.extend(self.all(api, &format!("job-name={}", job.name_any())).await?);
        }
        pods.sort_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.name_any()));
        Ok(pods)
    }

    /// All objects of a kind with these labels, in the namespace.
    pub(super) async fn all<K>(&self, api: Api<K>, labels: &str) -> Result<Vec<K>, CliError>
    where
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let listed = limited(async { Ok(api.list(&ListParams::default().labels(labels)).await) });
        let listed = listed.await.map_err(anyhow::Error::msg)?;
        Ok(listed.map_err(|error| anyhow!("{}", error_text(&error)))?.items)
    }

    async fn print_log(&self, pod: &str, follow: bool) -> Result<(), CliError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let wanted = LogParams { container: Some(JOB_CONTAINER.to_owned()), follow, ..LogParams::default() };
        let cannot = |why: String| anyhow!("cannot read what the pod {pod} prints: {why}");
        let stream = api.log_stream(pod, &wanted).await.map_err(|error| cannot(error_text(&error)))?;
        let mut lines = Box::pin(stream).lines();
        while let Some(line) = lines.try_next().await.map_err(|error| cannot(error.to_string()))? {
            show(&format!("{line}\n"))?;
        }
        Ok(())
    }
}

/// Whether a pod has a process, or had one.
fn has_begun(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.is_some_and(|phase| phase != "Pending")
}

/// Where the output of a Run is that no pod of its own has done.
fn elsewhere(run: &Run) -> CliError {
    let name = run.name_any();
    match run.status.as_ref().and_then(|status| status.worker.as_ref()) {
        Some(worker) => anyhow!(
            "no pod of the Run {name} is there: a process on {} has done it\nhint: windlass logs {} shows there what it printed; in a pod of the operator: kubectl exec",
            worker.host,
            worker.record
        ),
        None => anyhow!("no process has begun the Run {name}"),
    }
    .into()
}
