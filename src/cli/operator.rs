//! `windlass operator`: custom resources of an API server, acted on day and night.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::options::PassedOn;
use super::{CliError, ExitCode, first_process, interrupt, launch, reporting, surroundings};
use crate::deployment::lock::holder::user_and_machine;
use crate::kubernetes::Cluster;
use crate::operator::{OperatorOptions, read_template, run_operator};
use crate::value::SecretTexts;

#[derive(Debug, Args)]
pub(super) struct OperatorArgs {
    /// Context of the kubeconfig (default: the current one; in a pod without a kubeconfig, the cluster of the pod)
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
    /// Look after the deployments of this namespace only (default: of all)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How many seconds after a look at the hosts of a deployment the next one begins
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(10..))]
    look_every: u64,
    /// How many runs may be under way at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    max_runs: u16,
    /// How many looks may be under way at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    max_looks: u16,
    /// Serve /healthz, /readyz and /metrics at this address, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Work only as the leader: of several operators one works, by a Lease in this namespace
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// Program to start in place of windlass for each look and each run, such as a script that sets limits and then starts windlass
    /// with the same arguments
    #[arg(long, value_name = "PROGRAM")]
    worker: Option<PathBuf>,
    /// At SIGTERM or Ctrl-C, end after the workers, and these after the tasks that are running: for a system that ends them all with
    /// the operator (default in a container; otherwise workers continue, and the next operator sees them)
    #[arg(long)]
    stop_workers: bool,
    /// Do each run as a Kubernetes Job in the namespace of its deployment, made from the Job in this file: it has a container named
    /// windlass (default: do runs as processes of this machine)
    #[arg(long, value_name = "FILE", conflicts_with = "worker")]
    job_template: Option<PathBuf>,
    #[command(flatten)]
    passed_on: PassedOn,
}

/// Works until SIGTERM or Ctrl-C.
pub(super) fn start_operator(args: &OperatorArgs) -> Result<ExitCode, CliError> {
    if first_process::is_first_process() {
        // The kernel ends all processes of a container with its first one.
        let more: &[&str] = if args.stop_workers { &[] } else { &["--stop-workers"] };
        return first_process::run_as_child(more);
    }
    let options = OperatorOptions {
        cluster: Cluster { context: args.context.clone(), around: surroundings().clone().into() },
        namespace: args.namespace.clone(),
        look_every: Duration::from_secs(args.look_every),
        max_runs: args.max_runs.into(),
        max_looks: args.max_looks.into(),
        listen: args.listen,
        lease: args.lease_namespace.clone(),
        job_template: args.job_template.as_deref().map(read_template).transpose().map_err(anyhow::Error::new)?,
        worker_options: args.passed_on.as_options(),
        program: match &args.worker {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot find this program")?,
        },
        host: user_and_machine(surroundings()),
        stops_workers: args.stop_workers,
    };
    reporting::log_parts("windlass=info", SecretTexts::default(), None);
    launch::wait(async || {
        let stop = interrupt::asked_to_end()?;
        run_operator(options, stop).await.map_err(anyhow::Error::new)?;
        Ok(ExitCode::Ok)
    })
}
