//! Runs as Kubernetes Jobs: one Job for each process that is to do a Run, so that the scheduler of the cluster finds a place for it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::PodSpec;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions, PropagationPolicy};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::Value as Json;

use crate::resource::Run;
use crate::value::origin::Source;
use crate::value::yaml;

/// Every Job of an operator has this label.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// The deployment of a Job, as a label.
pub(super) const DEPLOYMENT: &str = "windlass.dev/deployment";

/// The container of the template that does the Run.
pub const CONTAINER: &str = "windlass";

/// How many characters of the name of a Run are in the name of its Jobs: pods and labels have at most 63.
const NAMED: usize = 36;

/// How long a worker may take to end after SIGTERM, in seconds: the tasks that are running come to their end.
const GRACE: i64 = 600;

/// How long a Job that has ended stays, in seconds.
const KEPT: i32 = 3600;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("cannot read the Job template {path}: {error}")]
    Read { path: String, error: std::io::Error },
    #[error("the Job template {path} {what}")]
    Bad { path: String, what: String },
}

/// Reads the Job that all Jobs are made from.
///
/// # Errors
/// It is not there, has fields that a Job does not have, or no container named windlass; or it sets what the operator sets.
pub fn read_template(path: &Path) -> Result<Job, TemplateError> {
    let shown = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| TemplateError::Read { path: shown(), error })?;
    job_of(path, &text).map_err(|what| TemplateError::Bad { path: shown(), what })
}

fn job_of(path: &Path, text: &str) -> Result<Job, String> {
    let source = Arc::new(Source::new(path, text));
    let documents = yaml::parse_yaml(&source).map_err(|complaint| format!("cannot be read: {complaint}"))?;
    let [document] = &documents[..] else { return Err("must be one document".to_owned()) };
    let given = document.to_json();
    let job: Job = serde_json::from_value(given.clone()).map_err(|error| format!("is not a Job: {error}"))?;
    let read = serde_json::to_value(&job).map_err(|error| error.to_string())?;
    if let Some(field) = lost(&given, &read, "") {
        return Err(format!("has the field {field}, which a Job does not have"));
    }
    if job.metadata.name.is_some() || job.metadata.namespace.is_some() {
        return Err("has a name or a namespace: the operator names its Jobs".to_owned());
    }
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.into_iter().flat_map(|pod| &pod.containers);
    match containers.filter(|container| container.name == CONTAINER).count() {
        1 => Ok(job),
        _ => Err(format!("needs one container with the name {CONTAINER} in spec.template.spec.containers")),
    }
}

/// A field that is in a document, and not in what was read from it.
fn lost(given: &Json, read: &Json, place: &str) -> Option<String> {
    match (given, read) {
        (Json::Object(given), Json::Object(read)) => given.iter().find_map(|(name, value)| {
            let place = format!("{place}{}{name}", if place.is_empty() { "" } else { "." });
            match read.get(name) {
                None if value.is_null() => None,
                None => Some(place),
                Some(found) => lost(value, found, &place),
            }
        }),
        (Json::Array(given), Json::Array(read)) => given.iter().zip(read).find_map(|(a, b)| lost(a, b, place)),
        _ => None,
    }
}

/// What became of the attempt to start a Run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Started {
    Created,
    /// A Job is there already.
    There,
    /// The Job that was there has ended, and its process had not even claimed the Run.
    Failed,
}

/// The Jobs that are there, and how to make one.
pub(super) struct Jobs {
    pub client: Client,
    pub store: Store<Job>,
    pub template: Job,
    /// Options of the worker.
    pub options: Vec<String>,
}

impl Jobs {
    /// Whether a Job is there whose process has not claimed the Run yet.
    pub(super) fn may_begin(&self, run: &Run) -> bool {
        self.of(run).is_some_and(|job| !has_ended(&job))
    }

    /// How many of these Runs have a Job that has not ended. Labels say nothing: a user who may create Jobs can set them.
    pub(super) fn active(&self, runs: &[Arc<Run>]) -> usize {
        let jobs: Vec<Arc<Job>> = self.store.state().into_iter().filter(|job| !has_ended(job)).collect();
        let owners = |job: &Arc<Job>| {
            let namespace = job.namespace();
            job.owner_references().iter().map(move |owner| (namespace.clone(), owner.uid.clone())).collect::<Vec<_>>()
        };
        let owners: HashSet<_> = jobs.iter().flat_map(owners).collect();
        runs.iter().filter(|run| run.uid().is_some_and(|uid| owners.contains(&(run.namespace(), uid)))).count()
    }

    /// The Runs of a deployment that Jobs do.
    pub(super) fn runs_of(&self, namespace: &str, deployment: &str) -> Vec<String> {
        let is_of = |job: &Arc<Job>| {
            job.namespace().as_deref() == Some(namespace)
                && job.labels().get(DEPLOYMENT).is_some_and(|of| of == deployment)
                && !has_ended(job)
        };
        let jobs = self.store.state().into_iter().filter(is_of);
        jobs.filter_map(|job| Some(job.owner_references().first()?.name.clone())).collect()
    }

    fn of(&self, run: &Run) -> Option<Arc<Job>> {
        self.store.get(&ObjectRef::new(&job_name(run)).within(&run.namespace()?))
    }

    /// Creates the Job of the next process that does a Run. One that has ended without doing anything for it is deleted, for the next one
    /// to be created.
    ///
    /// # Errors
    /// The API refuses it.
    pub(super) async fn start(&self, namespace: &str, deployment: &str, run: &Run) -> kube::Result<Started> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), namespace);
        let (done, started) = match self.of(run) {
            Some(job) if has_ended(&job) => {
                let this = Preconditions { uid: job.uid(), resource_version: None };
                let parameters = DeleteParams {
                    preconditions: Some(this),
                    propagation_policy: Some(PropagationPolicy::Background),
                    ..DeleteParams::default()
                };
                (api.delete(&job.name_any(), &parameters).await.map(drop), Started::Failed)
            }
            Some(_) => (Ok(()), Started::There),
            None => {
                let job = self.job(namespace, deployment, run);
                (api.create(&PostParams::default(), &job).await.map(drop), Started::Created)
            }
        };
        match done {
            // The watch has not brought it yet.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(Started::There),
            done => done.map(|()| started),
        }
    }

    fn job(&self, namespace: &str, deployment: &str, run: &Run) -> Job {
        let mut job = self.template.clone();
        let name = run.name_any();
        let labels = [(MANAGED_BY.0, MANAGED_BY.1), (DEPLOYMENT, deployment)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        job.metadata.labels.get_or_insert_default().extend(labels.clone());
        job.metadata = ObjectMeta {
            name: Some(job_name(run)),
            namespace: Some(namespace.to_owned()),
            owner_references: run.owner_ref(&()).map(|owner| vec![owner]),
            ..job.metadata
        };
        let spec = job.spec.get_or_insert_default();
        // The operator starts the next process, which resumes by the journal on the hosts; only a pod that the cluster itself has
        // ended is replaced by the Job.
        spec.backoff_limit = Some(0);
        spec.pod_failure_policy.get_or_insert_with(disruptions);
        spec.pod_replacement_policy = Some("Failed".to_owned());
        spec.ttl_seconds_after_finished.get_or_insert(KEPT);
        add_to_pod(spec, labels);
        let pod = spec.template.spec.get_or_insert_default();
        pod.restart_policy = Some("Never".to_owned());
        pod.termination_grace_period_seconds.get_or_insert(GRACE);
        self.add_arguments(pod, &format!("kube:{namespace}/{deployment}"), &name);
        job
    }

    /// What the template has as arguments comes last.
    fn add_arguments(&self, pod: &mut PodSpec, deployment: &str, run: &str) {
        let words = ["worker", "-f", deployment].map(str::to_owned).into_iter().chain(self.options.iter().cloned());
        let words: Vec<String> = words.chain(["--run".to_owned(), run.to_owned()]).collect();
        for container in pod.containers.iter_mut().filter(|container| container.name == CONTAINER) {
            let more = container.args.take().unwrap_or_default();
            container.args = Some(words.iter().cloned().chain(more).collect());
        }
    }
}

fn add_to_pod(spec: &mut JobSpec, labels: [(String, String); 2]) {
    let metadata = spec.template.metadata.get_or_insert_default();
    metadata.labels.get_or_insert_default().extend(labels);
    let annotations: &mut BTreeMap<_, _> = metadata.annotations.get_or_insert_default();
    // Autoscalers do not empty its node for it.
    for (name, value) in
        [("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"), ("karpenter.sh/do-not-disrupt", "true")]
    {
        annotations.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

fn disruptions() -> PodFailurePolicy {
    let disrupted = PodFailurePolicyOnPodConditionsPattern {
        type_: "DisruptionTarget".to_owned(),
        status: Some("True".to_owned()),
    };
    let rule = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_pod_conditions: Some(vec![disrupted]),
        ..PodFailurePolicyRule::default()
    };
    PodFailurePolicy { rules: vec![rule] }
}

/// Of the process that comes next: the same until one has claimed the Run, so that two operators create one.
fn job_name(run: &Run) -> String {
    let attempts = run.status.as_ref().map_or(0, |status| status.attempts);
    let uid = run.uid().unwrap_or_default();
    let name: String = run.name_any().chars().take(NAMED).map(|c| if c == '.' { '-' } else { c }).collect();
    format!("{}-{}-{attempts}", name.trim_end_matches('-'), uid.get(..8).unwrap_or(&uid))
}

fn has_ended(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ended = conditions.filter(|condition| condition.status == "True");
    job.metadata.deletion_timestamp.is_some()
        || ended.any(|condition| matches!(&*condition.type_, "Complete" | "Failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
        apiVersion: batch/v1
        kind: Job
        metadata: {labels: {team: a}}
        spec:
          template:
            spec:
              serviceAccountName: windlass-worker
              containers: [{name: windlass, image: 'windlass:1', args: [-vv]}]";

    fn run(name: &str, attempts: i32) -> Run {
        let spec = serde_json::json!({"deployment": "prod", "operation": "Apply"});
        let mut run = Run::new(name, serde_json::from_value(spec).unwrap());
        run.metadata.uid = Some("01234567-89ab".into());
        run.metadata.namespace = Some("default".into());
        run.status.get_or_insert_default().attempts = attempts;
        run
    }

    fn jobs() -> Jobs {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let store = kube::runtime::reflector::store().0;
        Jobs {
            client,
            store,
            template: job_of(Path::new("job.yml"), TEMPLATE).unwrap(),
            options: vec!["--playbooks=/p".into()],
        }
    }

    #[tokio::test]
    async fn a_job_is_the_template_with_what_the_worker_needs() {
        let job = jobs().job("default", "prod", &run("r", 2));
        assert_eq!(job.metadata.name.as_deref(), Some("r-01234567-2"));
        assert_eq!(job.labels()["team"], "a");
        assert_eq!(job.labels()[DEPLOYMENT], "prod");
        assert_eq!(job.owner_references()[0].name, "r");
        let spec = job.spec.unwrap();
        assert_eq!((spec.backoff_limit, spec.ttl_seconds_after_finished), (Some(0), Some(3600)));
        let pod = spec.template.spec.unwrap();
        assert_eq!((pod.restart_policy.as_deref(), pod.termination_grace_period_seconds), (Some("Never"), Some(600)));
        let arguments = pod.containers[0].args.clone().unwrap();
        assert_eq!(arguments, ["worker", "-f", "kube:default/prod", "--playbooks=/p", "--run", "r", "-vv"]);
    }

    #[tokio::test]
    async fn jobs_of_others_are_no_runs_whatever_they_say_they_are() {
        let (store, mut writer) = kube::runtime::reflector::store();
        let jobs = Jobs { store, ..jobs() };
        let runs = [run("r", 0), run("other", 0)].map(|run| {
            let uid = format!("{}-uid", run.name_any());
            Run { metadata: ObjectMeta { uid: Some(uid), ..run.metadata }, ..run }
        });
        let mut own = jobs.job("default", "prod", &runs[0]);
        own.metadata.uid = Some("j".into());
        let label = Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into());
        let foreign = |namespace: &str, name: &str| Job {
            metadata: ObjectMeta {
                name: Some(name.into()),
                namespace: Some(namespace.into()),
                labels: label.clone(),
                owner_references: own.metadata.owner_references.clone(),
                ..ObjectMeta::default()
            },
            ..Job::default()
        };
        let mut without_owner = foreign("elsewhere", "b");
        without_owner.metadata.owner_references = None;
        for job in [foreign("elsewhere", "a"), without_owner] {
            writer.apply_watcher_event(&kube::runtime::watcher::Event::Apply(job));
        }
        let runs = runs.map(Arc::new);
        assert_eq!(jobs.active(&runs), 0);
        // A second one of the same Run is none more.
        for job in [own.clone(), foreign("default", "c")] {
            writer.apply_watcher_event(&kube::runtime::watcher::Event::Apply(job));
        }
        assert_eq!(jobs.active(&runs), 1);
    }

    #[test]
    fn jobs_of_one_run_have_names_that_fit_and_differ() {
        let long = format!("{}.{}", "a".repeat(35), "b".repeat(200));
        assert_eq!(job_name(&run(&long, 0)), format!("{}-01234567-0", "a".repeat(35)));
        assert_ne!(job_name(&run("r", 0)), job_name(&run("r", 1)));
    }

    #[test]
    fn a_template_with_a_mistake_is_refused() {
        for (from, to, words) in [
            ("serviceAccountName", "serviceAcountName", "has the field spec.template.spec.serviceAcountName"),
            ("name: windlass,", "name: other,", "needs one container with the name windlass"),
            ("{labels", "{name: mine, labels", "the operator names its Jobs"),
            ("kind: Job", "kind: Pod", "is not a Job"),
            ("spec:\n", "spec: [\n", "cannot be read"),
        ] {
            let error = job_of(Path::new("job.yml"), &TEMPLATE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
