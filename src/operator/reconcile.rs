//! One deployment, again and again: what is known of it goes to [`decide`], and what that says is done.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::controller::Action as Requeue;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use time::OffsetDateTime;

use super::backups::recency;
use super::children::Work;
use super::conditions::{Known, conditions};
use super::decide::{Action, Limits, RunState, RunView, Seconds, decide};
use super::events::news;
use super::jobs::Started;
use super::view::Context;
use crate::kubernetes::error_text;
use crate::resource::status::{Look, put_conditions, short_message};
use crate::resource::{
    ApplyPolicy, Condition, DeletionPolicy, KarmadaDeployment, Run, RunOperation, RunSpec, SUCCEEDED,
};
use crate::worker::time_text;

/// Keeps the object of a deployment whose hosts are to be cleaned first.
const FINALIZER: &str = "windlass.dev/destroy";

/// The name of the deployment, as a label of its Runs.
pub(super) const DEPLOYMENT: &str = "windlass.dev/deployment";

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{}", error_text(.0))]
    Api(#[from] kube::Error),
    #[error("cannot start a process: {0}")]
    Start(#[from] std::io::Error),
}

/// Decides and acts.
pub(super) async fn reconcile(deployment: Arc<KarmadaDeployment>, context: Arc<Context>) -> Result<Requeue, Error> {
    let now = OffsetDateTime::now_utc();
    let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let api: Api<KarmadaDeployment> = Api::namespaced(context.client.clone(), &namespace);
    let runs = context.runs_of(&namespace, &name);
    // Those of an earlier object of the same name are not about this one.
    let created = &deployment.metadata.creation_timestamp;
    let (runs, earlier): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.metadata.creation_timestamp >= *created);
    let (view, destroyed) = context.view(&deployment, &runs, now);
    let (looks, _) = context.children.counts();
    let work = Work::Look((namespace.clone(), name.clone()));
    let seconds = now.unix_timestamp();
    let limits = Limits {
        look_every: with_jitter(context.look_every, &deployment.uid().unwrap_or_default()),
        may_run: context.busy() < context.max_runs,
        may_look: looks < context.max_looks && context.children.may_start(&work, seconds),
    };
    let decision = decide(&view, limits, seconds);
    tracing::debug!(namespace, name, ?decision, "decided");
    let target = Target { context: &context, api: &api, namespace: &namespace, name: &name, deployment: &deployment };
    if target.keep_finalizer().await? {
        return Ok(Requeue::await_change());
    }
    // One that fails keeps neither the others nor the status from being written.
    let mut failure = None;
    for action in &decision.actions {
        if let Err(error) = target.act(action, &runs, now).await {
            failure = Some(error);
        }
    }
    for run in earlier.iter().filter(|run| !context.is_at_work(run)) {
        if let Err(error) = target.end(run, "DeploymentReplaced", now).await {
            failure = Some(error);
        }
    }
    let status = deployment.status.clone().unwrap_or_default();
    let mut wanted = status.clone();
    wanted.observed_generation = Some(view.generation);
    wanted.last_run = runs.last().map(|run| run.name_any());
    wanted.destroyed = destroyed;
    let backups = context.backups_of(&namespace, &name);
    let recency = recency(&backups, seconds);
    let known = Known { view: &view, look: status.look.as_ref(), decision: &decision, limits, backups: &recency };
    let failed = failure.as_ref().map(ToString::to_string);
    put_conditions(&mut wanted.conditions, conditions(&name, &known, failed.as_deref(), now));
    if wanted != status {
        let mut object = (*deployment).clone();
        object.status = Some(wanted.clone());
        if is_written(api.replace_status(&name, &PostParams::default(), &object).await)? {
            let has_changed =
                |run: &RunView| run.operation.changes_hosts() && matches!(run.state, RunState::Ended { .. });
            let was_installed = view.runs.iter().any(has_changed);
            let news = news(&status.conditions, &wanted.conditions, was_installed, &runs);
            context.events.send_events(deployment.object_ref(&()), news);
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Requeue::requeue(Duration::from_secs(u64::try_from(decision.again).unwrap_or(1)))),
    }
}

/// Up to a tenth more, always the same for one object: many deployments do not ask all at once.
fn with_jitter(every: Duration, uid: &str) -> Seconds {
    let mut hash = DefaultHasher::new();
    uid.hash(&mut hash);
    let every = every.as_secs();
    Seconds::try_from(every + hash.finish() % (every / 10).max(1)).unwrap_or(Seconds::MAX)
}

/// The deployment that is acted on.
struct Target<'a> {
    context: &'a Arc<Context>,
    api: &'a Api<KarmadaDeployment>,
    namespace: &'a str,
    name: &'a str,
    deployment: &'a KarmadaDeployment,
}

impl Target<'_> {
    fn runs(&self) -> Api<Run> {
        Api::namespaced(self.context.client.clone(), self.namespace)
    }

    /// Adds the finalizer where the hosts are to be cleaned first, and takes it away where they are not. Whether the object was changed.
    async fn keep_finalizer(&self) -> Result<bool, Error> {
        let is_there = self.deployment.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        let destroys = self.deployment.spec.deletion_policy == DeletionPolicy::Destroy;
        let deleted = self.deployment.metadata.deletion_timestamp.is_some();
        if deleted || destroys == is_there {
            return Ok(false);
        }
        self.put_finalizer(destroys).await?;
        Ok(true)
    }

    async fn put_finalizer(&self, wanted: bool) -> Result<(), Error> {
        let mut finalizers = self.deployment.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        finalizers.extend(wanted.then(|| FINALIZER.to_owned()));
        let patch = json!({
            "metadata": {"finalizers": finalizers, "resourceVersion": self.deployment.resource_version()},
        });
        unless_changed(self.api.patch(self.name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    async fn act(&self, action: &Action, runs: &[Arc<Run>], now: OffsetDateTime) -> Result<(), Error> {
        let (context, namespace) = (self.context, self.namespace);
        match action {
            Action::Look => self.look(),
            Action::Start(name) => {
                let work = Work::Run((namespace.to_owned(), name.clone()));
                if !context.children.may_start(&work, now.unix_timestamp()) {
                    return Ok(());
                }
                let started = match &context.jobs {
                    None => context.children.start_run(namespace, self.name, name, context.max_runs)?,
                    Some(jobs) => {
                        let Some(run) = runs.iter().find(|it| it.name_any() == *name) else { return Ok(()) };
                        let started = jobs.start(namespace, self.name, run).await?;
                        if started == Started::Failed {
                            tracing::warn!(namespace, run = name, "a Job ended before its process had claimed the run");
                            context.children.end(&work, false);
                        }
                        started == Started::Created
                    }
                };
                if started {
                    tracing::info!(namespace, deployment = self.name, run = name, "started a run");
                }
                Ok(())
            }
            Action::Apply { digest } => self.create_apply(digest).await,
            Action::End { run, reason } => match runs.iter().find(|it| it.name_any() == *run) {
                Some(run) => self.end(run, reason, now).await,
                None => Ok(()),
            },
            Action::Forget(name) => {
                let Some(run) = runs.iter().find(|it| it.name_any() == *name) else { return Ok(()) };
                let this = Preconditions { uid: run.uid(), resource_version: run.resource_version() };
                let parameters = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
                unless_changed(self.runs().delete(name, &parameters).await)
            }
            Action::Release => match self.deployment.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
                true => self.put_finalizer(false).await,
                false => Ok(()),
            },
        }
    }

    /// Starts a look; what it finds is written when it ends.
    fn look(&self) -> Result<(), Error> {
        let (context, api) = (self.context.clone(), self.api.clone());
        let work = Work::Look((self.namespace.to_owned(), self.name.to_owned()));
        let Some(look) = context.children.start_look(self.namespace, self.name, context.max_looks)? else {
            return Ok(());
        };
        let (name, generation) = (self.name.to_owned(), self.deployment.metadata.generation.unwrap_or_default());
        tokio::spawn(async move {
            let mut found = look.await;
            if found.error.is_some() {
                found.time = time_text(OffsetDateTime::now_utc());
                found.generation = generation;
            }
            let well = found.error.is_none();
            let mut written = write_look(&api, &name, found).await;
            if let Err(error) = &written {
                // What is there is out of date, whatever the API does not like about this one.
                let error = Some(format!("cannot write what was found: {}", short_message(&error_text(error))));
                let time = time_text(OffsetDateTime::now_utc());
                written = write_look(&api, &name, Look { error, time, generation, ..Look::default() }).await;
            }
            if let Err(error) = &written {
                tracing::warn!(name, error = error_text(error), "cannot write what a look has found");
            }
            context.children.end(&work, well && written.is_ok());
        });
        Ok(())
    }

    async fn create_apply(&self, digest: &str) -> Result<(), Error> {
        let start = format!("{}-apply-{}", self.name, digest.get(..10).unwrap_or(digest));
        // Whatever they are about: names are taken once in a namespace.
        let runs = self.context.runs.state();
        let of_namespace = runs.iter().filter(|run| run.namespace().as_deref() == Some(self.namespace));
        let name = next_name(&start, &of_namespace.map(|run| run.name_any()).collect());
        let run = Run {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(self.namespace.to_owned()),
                labels: Some([(DEPLOYMENT.to_owned(), self.name.to_owned())].into()),
                owner_references: self.deployment.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: RunSpec {
                plan_digest: Some(digest.to_owned()),
                ..RunSpec::of_operation(self.name, RunOperation::Apply)
            },
            status: None,
        };
        debug_assert_eq!(self.deployment.spec.apply, ApplyPolicy::Automatic);
        match self.runs().create(&PostParams::default(), &run).await {
            // The watch has not brought it yet.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            created => {
                tracing::info!(run = created?.name_any(), "created a run");
                Ok(())
            }
        }
    }

    /// Ends a Run that no process does.
    async fn end(&self, run: &Run, reason: &str, now: OffsetDateTime) -> Result<(), Error> {
        let mut ended = run.clone();
        let status = ended.status.get_or_insert_default();
        status.completion_time = Some(time_text(now));
        put_conditions(
            &mut status.conditions,
            vec![Condition {
                r#type: SUCCEEDED.to_owned(),
                status: "False".to_owned(),
                reason: reason.to_owned(),
                message: why_ended(reason).to_owned(),
                last_transition_time: time_text(now),
                observed_generation: run.metadata.generation.unwrap_or_default(),
            }],
        );
        unless_changed(self.runs().replace_status(&run.name_any(), &PostParams::default(), &ended).await)
    }
}

/// What is meant by the reason for which a Run ends that no process does.
fn why_ended(reason: &str) -> &'static str {
    match reason {
        "Stopped" => "it was stopped before a process began it, or after its process had ended",
        "Superseded" => "a newer Run of the same kind was created before this one began",
        "DeploymentDeleted" => "its deployment was deleted",
        "DeploymentReplaced" => "its deployment was created after it: it is about an earlier one of the same name",
        "WorkersEnded" => "five processes that did it ended in the middle",
        _ => "no process does it",
    }
}

/// Success also if the object has changed meanwhile, which calls again, or is gone.
fn unless_changed<T>(written: kube::Result<T>) -> Result<(), Error> {
    is_written(written).map(drop)
}

/// Not if the object has changed meanwhile, which calls again, or is gone.
pub(super) fn is_written<T>(written: kube::Result<T>) -> Result<bool, Error> {
    match written {
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(true),
    }
}

/// Writes what a look has found into the status, beside what is there.
async fn write_look(api: &Api<KarmadaDeployment>, name: &str, look: Look) -> kube::Result<()> {
    let mut turn = 0;
    loop {
        let mut object = match api.get(name).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            object => object?,
        };
        object.status.get_or_insert_default().look = Some(look.clone());
        match api.replace_status(name, &PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 && turn < 5 => turn += 1,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            written => return written.map(drop),
        }
    }
}

/// A name that no Run has: the start with the number after the highest one. Others choose names of Runs, too, so the highest number of
/// all may not leave any after it.
fn next_name(start: &str, taken: &BTreeSet<String>) -> String {
    let number = |name: &String| name.strip_prefix(start)?.strip_prefix('-')?.parse::<u32>().ok();
    let highest = taken.iter().filter_map(number).max().unwrap_or_default();
    let names = (u64::from(highest) + 1..).map(|number| format!("{start}-{number}"));
    names.into_iter().find(|name| !taken.contains(name)).expect("there are more numbers than Runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_leave_a_name() {
        let named = |taken: &[&str]| next_name("p-apply-1", &taken.iter().map(ToString::to_string).collect());
        assert_eq!(named(&[]), "p-apply-1-1");
        assert_eq!(named(&["p-apply-1-1", "p-apply-1-7", "p-apply-12-9", "q-apply-1-8", "p-apply-1-x"]), "p-apply-1-8");
        assert_eq!(named(&["p-apply-1-1", "p-apply-1-18446744073709551615"]), "p-apply-1-2");
        let last = "p-apply-1-4294967295";
        assert_eq!(named(&[last, "p-apply-1-4294967296"]), "p-apply-1-4294967297");
    }
}
