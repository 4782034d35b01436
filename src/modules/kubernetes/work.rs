//! What `k8s` does to objects: first reads every object, and makes a dry run on the server; then the
//! changes are made, one after the other.

use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt, TryStreamExt};
use kube::core::params::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy, ValidationDirective};
use serde::Deserialize;
use serde_json::Value as Json;

use super::FIELD_MANAGER;
use super::api::{Api, ObjectLocation};
use super::compare;
use super::definitions::Object;
use super::failure::explain;
use super::wait::{self, Condition, WaitLimits};
use crate::modules::{Diff, Error};
use crate::remote::Remote;

/// Requests at once while looking.
const AT_ONCE: usize = 8;
/// How long a kind that was just defined may take to be served.
const DEFINED: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ObjectState {
    Present,
    Patched,
    Absent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSideApply {
    field_manager: Option<String>,
    force_conflicts: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MergeType {
    StrategicMerge,
    Merge,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct DeleteOptions {
    propagation_policy: Option<Propagation>,
    grace_period_seconds: Option<u32>,
}

/// What becomes of what belongs to a removed object.
#[derive(Debug, Clone, Copy, Deserialize)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl From<Propagation> for PropagationPolicy {
    fn from(propagation: Propagation) -> Self {
        match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        }
    }
}

/// What is wanted of all objects alike.
pub(crate) struct ApplyOptions {
    pub state: ObjectState,
    pub apply: ServerSideApply,
    pub merge: Vec<MergeType>,
    pub delete: DeleteOptions,
    pub wait: Option<WaitLimits>,
    pub condition: Option<Condition>,
    /// In check mode nothing changes, so a missing object may exist in the real run.
    pub check: bool,
}

/// What is to be done, and what it is done with.
pub(crate) struct ApplyJob {
    api: Api,
    options: ApplyOptions,
    pub steps: Vec<ObjectStep>,
}

/// One object.
pub(crate) struct ObjectStep {
    object: Object,
    /// None: the API has no such kind yet.
    place: Option<ObjectLocation>,
    /// None: nothing.
    pub operation: Option<Operation>,
    pub diff: Option<Diff>,
    /// The object as it is, or would be.
    pub known: Json,
    /// In a dry run: its namespace, if neither the API nor the definition has it.
    pub missing_namespace: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Patch,
    Delete,
}

impl ApplyJob {
    /// Looks at every object; nothing is changed.
    pub(crate) async fn plan(api: Api, options: ApplyOptions, objects: &[Object]) -> Result<ApplyJob, Error> {
        let mut work = ApplyJob { api, options, steps: Vec::new() };
        let mut looks = Vec::with_capacity(objects.len());
        for object in objects {
            looks.push(work.look(object, objects).boxed());
        }
        work.steps = futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        Ok(work)
    }

    /// Whether there is nothing to change.
    pub(crate) fn is_done(&self) -> bool {
        self.steps.iter().all(|step| step.operation.is_none())
    }

    /// Makes the changes, and waits for what is to be waited for.
    ///
    /// Requests go past the host's sessions, so it is asked before each whether the run may change anything still.
    pub(crate) async fn carry_out(&mut self, remote: &Remote) -> Result<(), Error> {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        // What depends on something comes after it, and goes before it.
        if self.options.state == ObjectState::Absent {
            order.reverse();
        }
        for at in order {
            if self.steps[at].operation.is_some() {
                remote.may_change().await?;
            }
            let (place, known) = self.act(&self.steps[at]).await?;
            let step = &mut self.steps[at];
            step.place = place;
            step.known = known;
        }
        self.wait().await
    }

    /// Waits for every object, if the options ask for it.
    pub(crate) async fn wait(&self) -> Result<(), Error> {
        let Some(patience) = self.options.wait else { return Ok(()) };
        for step in &self.steps {
            let Some(place) = &step.place else { continue };
            match self.options.state {
                ObjectState::Absent if step.operation.is_some() => {
                    wait::until_gone(&self.api, place, uid(&step.known), patience).await?;
                }
                ObjectState::Absent => {}
                ObjectState::Patched if step.known.is_null() => {}
                ObjectState::Present | ObjectState::Patched => {
                    wait::until_ready(&self.api, place, self.options.condition.as_ref(), patience).await?;
                }
            }
        }
        Ok(())
    }

    /// What is to be done about one object. The server tries it out.
    async fn look(&self, object: &Object, all: &[Object]) -> Result<ObjectStep, Error> {
        let Some(place) = self.api.object_location(object).await? else { return self.without_kind(object, all) };
        let before = self.api.get(&place).await?;
        let mut missing_namespace = None;
        let (operation, after) = match (self.options.state, &before) {
            (ObjectState::Absent | ObjectState::Patched, None) => (None, None),
            (ObjectState::Absent, Some(_)) => {
                if self.options.check {
                    self.api.delete(&place, &self.delete_params(None, true)).await?;
                }
                (Some(Operation::Delete), None)
            }
            (ObjectState::Patched, Some(before)) => {
                let after = self.patch(&place, object, true).await?;
                (compare::differs(before, &after, self.manager()).then_some(Operation::Patch), Some(after))
            }
            (ObjectState::Present, before) => {
                let is_created = makes_namespace(all, object);
                let tried = self.tried(&place, object, self.options.check || is_created).await?;
                if tried.is_none() && !is_created {
                    missing_namespace = object.namespace.clone();
                }
                let after = tried.unwrap_or_else(|| object.body.clone());
                let operation = match before {
                    None => Some(Operation::Create),
                    Some(before) => compare::differs(before, &after, self.manager()).then_some(Operation::Update),
                };
                (operation, Some(after))
            }
        };
        let diff =
            operation.map(|_| compare::object_diff(&place.label, before.as_ref(), after.as_ref(), self.manager()));
        let known = after.or(before).unwrap_or_default();
        Ok(ObjectStep { object: object.clone(), place: Some(place), operation, diff, known, missing_namespace })
    }

    /// The object as it would be. None: it has no namespace yet, and `namespace_comes`.
    async fn tried(
        &self,
        place: &ObjectLocation,
        object: &Object,
        namespace_comes: bool,
    ) -> Result<Option<Json>, Error> {
        match self.api.patch(place, &self.apply_params(true), &Patch::Apply(&object.body)).await {
            Ok(after) => Ok(Some(after)),
            Err(kube::Error::Api(status)) if status.is_not_found() && namespace_comes => Ok(None),
            Err(error) => Err(explain(error, &format!("apply {}", place.label))),
        }
    }

    /// An object of a kind that the API does not have, or not yet.
    fn without_kind(&self, object: &Object, all: &[Object]) -> Result<ObjectStep, Error> {
        let operation = (self.options.state == ObjectState::Present).then_some(Operation::Create);
        if operation.is_some() && !self.options.check && !is_defined(all, object) {
            let Object { api_version, kind, name, .. } = object;
            let message = format!("cannot apply {kind} {name}: the API has no kind {kind} in {api_version}");
            return Err(Error::failed(message));
        }
        let diff = operation.map(|_| compare::object_diff(&object.label(), None, Some(&object.body), self.manager()));
        let known = if operation.is_some() { object.body.clone() } else { Json::Null };
        Ok(ObjectStep { object: object.clone(), place: None, operation, diff, known, missing_namespace: None })
    }

    /// Does what is to be done about one object: where it is, and what is known of it now.
    async fn act(&self, step: &ObjectStep) -> Result<(Option<ObjectLocation>, Json), Error> {
        let Some(operation) = step.operation else { return Ok((step.place.clone(), step.known.clone())) };
        let place = match &step.place {
            Some(place) => place.clone(),
            None => self.place_of_defined(&step.object).await?,
        };
        let known = match operation {
            Operation::Create | Operation::Update => {
                let applied = self.api.patch(&place, &self.apply_params(false), &Patch::Apply(&step.object.body)).await;
                applied.map_err(|error| explain(error, &format!("apply {}", place.label)))?
            }
            Operation::Patch => self.patch(&place, &step.object, false).await?,
            Operation::Delete => {
                self.api.delete(&place, &self.delete_params(uid(&step.known), false)).await?;
                step.known.clone()
            }
        };
        Ok((Some(place), known))
    }

    /// Kinds that this task has just defined are served a moment later.
    async fn place_of_defined(&self, object: &Object) -> Result<ObjectLocation, Error> {
        let since = Instant::now();
        while since.elapsed() < DEFINED {
            if let Some(place) = self.api.object_location(object).await? {
                return Ok(place);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(Error::failed(format!("cannot apply {}: the API does not serve its kind yet", object.label())))
    }

    /// Tries the ways to merge in turn; the object afterwards.
    async fn patch(&self, place: &ObjectLocation, object: &Object, dry_run: bool) -> Result<Json, Error> {
        let params = PatchParams { dry_run, field_manager: Some(self.manager().to_owned()), ..PatchParams::default() };
        let what = format!("patch {}", place.label);
        let mut refused = Error::failed("k8s: merge_type is empty");
        for merge in &self.options.merge {
            let patch = match merge {
                MergeType::StrategicMerge => Patch::Strategic(&object.body),
                MergeType::Merge => Patch::Merge(&object.body),
            };
            match self.api.patch(place, &params, &patch).await {
                Ok(after) => return Ok(after),
                // The kind does not know this way.
                Err(kube::Error::Api(status)) if status.code == 415 => {
                    refused = explain(kube::Error::Api(status), &what);
                }
                Err(error) => return Err(explain(error, &what)),
            }
        }
        Err(refused)
    }

    fn manager(&self) -> &str {
        self.options.apply.field_manager.as_deref().unwrap_or(FIELD_MANAGER)
    }

    fn apply_params(&self, dry_run: bool) -> PatchParams {
        PatchParams {
            dry_run,
            force: self.options.apply.force_conflicts,
            field_manager: Some(self.manager().to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        }
    }

    fn delete_params(&self, uid: Option<&str>, dry_run: bool) -> DeleteParams {
        let options = &self.options.delete;
        DeleteParams {
            dry_run,
            grace_period_seconds: options.grace_period_seconds,
            propagation_policy: options.propagation_policy.map(Into::into),
            // Only what was looked at is removed.
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        }
    }
}

fn uid(object: &Json) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Json::as_str)
}

/// Whether one of the objects is the namespace of this one.
fn makes_namespace(all: &[Object], object: &Object) -> bool {
    let of = object.namespace.as_deref();
    all.iter().any(|other| other.kind == "Namespace" && Some(other.name.as_str()) == of)
}

/// Whether one of the objects defines the kind of this one.
fn is_defined(all: &[Object], object: &Object) -> bool {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    all.iter().any(|other| other.defines() == Some((group, object.kind.as_str())))
}
