//! The operator: looks at the hosts of every `KarmadaDeployment` of an API, says in its status what it sees, and carries out Runs.
//! Whatever is done on hosts is done by processes of their own; here is only what decides and reports.

mod backups;
mod children;
mod conditions;
pub mod decide;
mod events;
mod jobs;
mod lease;
mod metrics;
mod probes;
mod reconcile;
mod schedule;
mod view;
mod window;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, PostParams};
use kube::runtime::controller::{Action as Requeue, Config as ControllerConfig};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{Controller, WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use time::OffsetDateTime;

use crate::kubernetes::{Cluster, error_text, limited};
use crate::resource::{EtcdBackup, GROUP, KarmadaDeployment, Run};

use children::Children;
use decide::Seconds;
use jobs::Jobs;
pub use jobs::{CONTAINER as JOB_CONTAINER, TemplateError, read_template};
use lease::Election;
use metrics::Metrics;
use probes::Health;
use view::Context;

/// How an operator works.
#[derive(Debug, Clone)]
pub struct OperatorOptions {
    /// The API with the custom resources.
    pub cluster: Cluster,
    /// The namespace whose deployments it looks after. None: all.
    pub namespace: Option<String>,
    /// How long after a look at hosts the next one begins.
    pub look_every: Duration,
    /// How many runs and looks there may be at once.
    pub max_runs: usize,
    pub max_looks: usize,
    /// Where probes and metrics are served. None: nowhere.
    pub listen: Option<SocketAddr>,
    /// The namespace of the Lease by which one of several operators works. None: this is the only one.
    pub lease: Option<String>,
    /// This program, and the options that each of its workers gets.
    pub program: PathBuf,
    pub worker_options: Vec<String>,
    /// The Job that a Job for each Run is made from. None: Runs are done by processes of this machine.
    pub job_template: Option<Job>,
    /// This machine, as others see it.
    pub host: String,
    /// Whether the system ends all processes with this one, as in a container: then workers are asked to end, and waited for.
    pub stops_workers: bool,
}

/// The name of the Lease; of an operator for one namespace, the beginning.
const LEASE: &str = "windlass-operator";

/// Why an operator could not work, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Cluster(String),
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("this account may not {}\nhint: docs/how-to/operator.md lists the rights of the operator", .0.join(", nor "))]
    NotAllowed(Vec<String>),
    #[error("lost the lease of the leader: another operator may be the leader now")]
    LostLease,
    #[error("internal error: the watches ended")]
    Ended,
}

/// What the operator must be allowed to do, by resource of the group `windlass.dev`.
const RIGHTS: &[(&str, Option<&str>, &[&str])] = &[
    ("karmadadeployments", None, &["get", "list", "watch", "patch"]),
    ("karmadadeployments", Some("status"), &["update"]),
    ("etcdbackups", None, &["get", "list", "watch"]),
    ("etcdbackups", Some("status"), &["update"]),
    ("runs", None, &["get", "list", "watch", "create", "delete"]),
    ("runs", Some("status"), &["update", "patch"]),
];

/// Works until `stop` is ready. Processes that it has started continue, if they can.
///
/// # Errors
/// The API cannot be used; the Lease was lost.
pub async fn run_operator(options: OperatorOptions, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let client = limited(options.cluster.client()).await.map_err(Error::Cluster)?;
    check_rights(&client, &options).await?;
    check_definitions(&client, &options).await?;
    let (health, metrics) = (Health::default(), Metrics::new());
    health.api_answered.store(now(), Ordering::Relaxed);
    if let Some(address) = options.listen {
        let listener = probes::listen(address).await.map_err(|error| Error::Listen { address, error })?;
        tokio::spawn(probes::serve(listener, health.clone(), metrics.clone()));
    }
    let asking = ask_again_and_again(deployments(&client, &options), health.clone(), metrics.clone());
    tokio::pin!(stop, asking);
    health.ready.store(true, Ordering::Relaxed);
    let mut election = options.lease.as_ref().map(|namespace| {
        let identity = format!("{}_{}_{:08x}", options.host, std::process::id(), rand::random::<u32>());
        // Operators for different namespaces do not wait for each other.
        let name = options.namespace.as_ref().map_or_else(|| LEASE.to_owned(), |of| format!("{LEASE}-{of}"));
        Election::new(client.clone(), namespace, &name, identity)
    });
    if let Some(election) = &mut election {
        tokio::select! {
            () = election.win() => {}
            () = &mut stop => return Ok(()),
            () = &mut asking => {}
        }
    }
    metrics.leader.set(1);
    tracing::info!("the operator works");
    let children =
        Children::new(options.program.clone(), options.cluster.context.clone(), options.worker_options.clone());
    let work = control(client, &options, metrics, children.clone());
    let held = async {
        match &mut election {
            Some(election) => election.hold().await,
            None => std::future::pending().await,
        }
    };
    let done = tokio::select! {
        () = &mut stop => Ok(()),
        () = held => Err(Error::LostLease),
        () = work => Err(Error::Ended),
        () = &mut asking => Err(Error::Ended),
    };
    if let (Ok(()), Some(election)) = (&done, &election) {
        election.release().await;
    }
    if options.stops_workers {
        children.stop_all().await;
    }
    done
}

fn deployments(client: &Client, options: &OperatorOptions) -> Api<KarmadaDeployment> {
    match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Watches deployments and Runs, and decides about each deployment when something has changed.
async fn control(client: Client, options: &OperatorOptions, metrics: Metrics, children: Children) {
    let runs: Api<Run> = match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    // Load balancers drop connections that are quiet for four minutes without a word.
    let watched = || watcher::Config::default().timeout(200);
    let (store, writer) = reflector::store();
    let reflected = reflector::reflector(writer, watcher(runs.clone(), watched())).default_backoff();
    let reflecting = reflected.for_each(|event| async {
        if let Err(error) = event {
            tracing::warn!("cannot watch runs: {error}");
        }
    });
    let jobs: Api<Job> = match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let of_operators = format!("{}={}", jobs::MANAGED_BY.0, jobs::MANAGED_BY.1);
    let watched_jobs = || watched().labels(&of_operators);
    let (job_store, job_writer) = reflector::store();
    let reflected_jobs = reflector::reflector(job_writer, watcher(jobs.clone(), watched_jobs())).default_backoff();
    let reflecting_jobs = async {
        if options.job_template.is_none() {
            return std::future::pending().await;
        }
        reflected_jobs
            .for_each(|event| async {
                if let Err(error) = event {
                    tracing::warn!("cannot watch jobs: {error}");
                }
            })
            .await;
    };
    let context = Arc::new(Context {
        client: client.clone(),
        runs: store.clone(),
        jobs: options.job_template.clone().map(|template| Jobs {
            client: client.clone(),
            store: job_store.clone(),
            template,
            options: options.worker_options.clone(),
        }),
        children,
        events: events::Sender::new(client.clone(), &options.host),
        metrics: metrics.clone(),
        look_every: options.look_every,
        max_runs: options.max_runs,
        max_looks: options.max_looks,
        heartbeats: view::Heartbeats::default(),
    });
    let of_run = |run: Run| {
        let namespace = run.namespace()?;
        Some(ObjectRef::<KarmadaDeployment>::new(&run.spec.deployment).within(&namespace))
    };
    let backups: Api<EtcdBackup> = match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let of_backup = |backup: EtcdBackup| {
        let namespace = backup.namespace()?;
        Some(ObjectRef::<KarmadaDeployment>::new(&backup.spec.deployment).within(&namespace))
    };
    let backup_of = |run: Run| {
        let (namespace, backup) = (run.namespace()?, run.spec.backup.as_ref()?);
        Some(ObjectRef::<EtcdBackup>::new(backup).within(&namespace))
    };
    let of_job = |job: Job| {
        let deployment = job.labels().get(jobs::DEPLOYMENT)?;
        Some(ObjectRef::<KarmadaDeployment>::new(deployment).within(&job.namespace()?))
    };
    let controlling = async {
        // Without the Runs that are there, nothing can be decided.
        if store.wait_until_ready().await.is_err() {
            return;
        }
        if context.jobs.is_some() && job_store.wait_until_ready().await.is_err() {
            return;
        }
        let controller = Controller::new(deployments(&client, options), watched());
        if metrics.deployments.set(controller.store()).is_err() {
            return;
        }
        let of_backups = Controller::new(backups.clone(), watched());
        if metrics.backups.set(of_backups.store()).is_err() {
            return;
        }
        let backing_up = of_backups
            .with_config(ControllerConfig::default().concurrency(4))
            .watches(runs.clone(), watched(), backup_of)
            .run(backups::reconcile_backup, on_backup_error, context.clone())
            .for_each(|done| {
                if let Err(error) = done {
                    tracing::warn!("{error}");
                }
                std::future::ready(())
            });
        let mut controller = controller
            .with_config(ControllerConfig::default().concurrency(16))
            .watches(runs, watched(), of_run)
            .watches(backups, watched(), of_backup);
        if context.jobs.is_some() {
            controller = controller.watches(jobs, watched_jobs(), of_job);
        }
        let deciding = controller.run(reconcile::reconcile, on_error, context.clone()).for_each(|done| {
            metrics.reconciles.inc();
            let runs = context.busy();
            metrics.runs_active.set(i64::try_from(runs).unwrap_or(i64::MAX));
            if let Err(error) = done {
                tracing::warn!("{error}");
            }
            std::future::ready(())
        });
        tokio::select! {
            () = deciding => {}
            () = backing_up => {}
        }
    };
    tokio::select! {
        () = reflecting => {}
        () = reflecting_jobs => {}
        () = controlling => {}
    }
}

fn on_error(_: Arc<KarmadaDeployment>, error: &reconcile::Error, context: Arc<Context>) -> Requeue {
    tracing::warn!("{error}");
    context.metrics.reconcile_errors.inc();
    Requeue::requeue(Duration::from_secs(15))
}

fn on_backup_error(_: Arc<EtcdBackup>, error: &reconcile::Error, context: Arc<Context>) -> Requeue {
    tracing::warn!("{error}");
    context.metrics.reconcile_errors.inc();
    Requeue::requeue(Duration::from_secs(15))
}

/// Asks the API for something small, again and again: watches alone do not say whether it answers.
async fn ask_again_and_again(api: Api<KarmadaDeployment>, health: Health, metrics: Metrics) {
    loop {
        let asked = limited(async { Ok(api.list_metadata(&ListParams::default().limit(1)).await) }).await;
        if let Ok(Ok(_)) = asked {
            let now = now();
            health.api_answered.store(now, Ordering::Relaxed);
            #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have 31 bits")]
            metrics.api_last_success.set(now as f64);
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

/// Refuses to start without a right: a watch without it would fail for ever, and hold up the others.
async fn check_rights(client: &Client, options: &OperatorOptions) -> Result<(), Error> {
    let place = options.namespace.as_deref();
    let own = RIGHTS.iter().map(|(resource, part, verbs)| ((GROUP, *resource, *part), *verbs, place));
    let jobs = options.job_template.iter().map(|_| (("batch", "jobs", None), &["list", "watch"][..], place));
    let leases = options.lease.iter().map(|namespace| {
        (("coordination.k8s.io", "leases", None), &["get", "create", "update"][..], Some(namespace.as_str()))
    });
    let mut missing = Vec::new();
    for (what, verbs, namespace) in own.chain(jobs).chain(leases) {
        for verb in verbs {
            if !has_right(client, what, verb, namespace).await? {
                let (group, resource, part) = what;
                let part = part.map(|part| format!("/{part}")).unwrap_or_default();
                let place = namespace.map_or("in all namespaces".to_owned(), |name| format!("in the namespace {name}"));
                missing.push(format!("{verb} {resource}{part}.{group} {place}"));
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::NotAllowed(missing)) }
}

/// Refuses to start without the definition of backups, which earlier versions did not need: a watch of it would hold up the others.
async fn check_definitions(client: &Client, options: &OperatorOptions) -> Result<(), Error> {
    let backups: Api<EtcdBackup> = match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    match limited(async { Ok(backups.list_metadata(&ListParams::default().limit(1)).await) }).await {
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Error::Cluster(
            "the API server does not serve EtcdBackups; install their definitions: windlass crd | kubectl apply -f -"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// `what`: group, resource and subresource.
async fn has_right(
    client: &Client,
    what: (&str, &str, Option<&str>),
    verb: &str,
    namespace: Option<&str>,
) -> Result<bool, Error> {
    let (group, resource, part) = what;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let asked = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: part.map(str::to_owned),
                verb: Some(verb.to_owned()),
                namespace: namespace.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer =
        limited(async { reviews.create(&PostParams::default(), &asked).await.map_err(|error| error_text(&error)) });
    Ok(answer.await.map_err(Error::Cluster)?.status.is_some_and(|status| status.allowed))
}

/// Seconds since 1970.
fn now() -> Seconds {
    OffsetDateTime::now_utc().unix_timestamp()
}
