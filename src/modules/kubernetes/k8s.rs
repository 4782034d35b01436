//! `k8s`: objects of the Kubernetes API, applied, patched or removed.

use std::time::Duration;

use minijinja::value::Serde;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::access::{Access, arguments};
use super::api::Api;
use super::definitions::{self, DefinitionArguments, Object};
use super::wait::{Condition, WaitLimits};
use super::work::{ApplyJob, ApplyOptions, MergeType, ObjectState, ObjectStep, Operation};
use super::{compare, structure};
use crate::modules::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct K8s {
    state: ObjectState,
    definition: Option<Value>,
    src: Option<Vec<String>>,
    template: Option<Vec<String>>,
    kind: Option<String>,
    api_version: String,
    name: Option<String>,
    namespace: Option<String>,
    server_side_apply: Option<Value>,
    merge_type: Vec<MergeType>,
    delete_options: Option<Value>,
    wait: bool,
    wait_condition: Option<Value>,
    wait_timeout: u64,
    wait_sleep: u64,
    #[serde(flatten)]
    access: Access,
}

impl Module for K8s {
    const CHANGES: Changes = Changes::Objects;
    const DOC: Doc = Doc {
        name: "k8s",
        collection: "kubernetes.core",
        summary: "Apply, patch or remove objects of the Kubernetes API",
        arguments: &[
            Argument::new(
                "state",
                ArgumentKind::Str,
                "Whether to apply them, patch them if they exist, or remove them",
            )
            .default("present")
            .choices(&["present", "patched", "absent"]),
            Argument::new("definition", ArgumentKind::Any, "The object, a list of them, or YAML text")
                .alias(&["resource_definition", "inline"]),
            Argument::new(
                "src",
                ArgumentKind::List(&ArgumentKind::Str),
                "Files on the controller with the objects, searched in files/",
            ),
            Argument::new(
                "template",
                ArgumentKind::List(&ArgumentKind::Str),
                "Templates with the objects, searched in templates/",
            ),
            Argument::new("kind", ArgumentKind::Str, "The object's kind, if the definition has none"),
            Argument::new("api_version", ArgumentKind::Str, "Its group and version, if the definition has none")
                .default("v1")
                .alias(&["api", "version"]),
            Argument::new("name", ArgumentKind::Str, "Its name, if the definition has none"),
            Argument::new(
                "namespace",
                ArgumentKind::Str,
                "Its namespace, if the definition has none (default: the one of the kubeconfig)",
            ),
            Argument::new("server_side_apply", ArgumentKind::Dict, "field_manager (windlass), force_conflicts (false)"),
            Argument::new(
                "merge_type",
                ArgumentKind::List(&ArgumentKind::Str),
                "Patch types to try; the first that the kind supports is used",
            )
            .default("strategic-merge,merge")
            .choices(&["strategic-merge", "merge"]),
            Argument::new("delete_options", ArgumentKind::Dict, "propagationPolicy, gracePeriodSeconds"),
            Argument::new("wait", ArgumentKind::Bool, "Whether to wait until they are ready, or deleted")
                .default("false"),
            Argument::new(
                "wait_condition",
                ArgumentKind::Dict,
                "The condition that means ready: its type, status and reason",
            ),
            Argument::new("wait_timeout", ArgumentKind::Int, "Seconds to wait for each").default("120"),
            Argument::new("wait_sleep", ArgumentKind::Int, "Seconds between two checks").default("5"),
            arguments::KUBECONFIG,
            arguments::REMOTE_SRC,
            arguments::CONTEXT,
            arguments::HOST,
            arguments::API_KEY,
            arguments::CA_CERT,
            arguments::CLIENT_CERT,
            arguments::CLIENT_KEY,
            arguments::VALIDATE_CERTS,
        ],
        free_form: None,
        example: "\
- name: Create a namespace, through the host's loopback address
  k8s:
    kubeconfig: credentials/admin.kubeconfig
    host: https://127.0.0.1:6443
    api_version: v1
    kind: Namespace
    name: karmada-system

- name: Apply a file with definitions and wait until they are served
  k8s:
    src: crds.yaml
    wait: true

- name: Take over a field that another manager owns
  k8s:
    definition:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, namespace: default}
      spec: {replicas: 3}
    server_side_apply:
      force_conflicts: true

- name: Delete a deployment with its dependents
  k8s:
    state: absent
    api_version: apps/v1
    kind: Deployment
    name: web
    namespace: default
    delete_options: {propagationPolicy: Foreground}
    wait: true
",
        returns: &[
            Return::new("result", "The object after the task; for several a mapping with results, a list"),
            Return::new("method", "For one object: create, update, patch, delete, or nothing"),
            Return::new(
                "missing_namespaces",
                "In check mode: namespaces that the API does not have and the definition does not create",
            ),
        ],
    };
    type Change = ApplyJob;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<ApplyJob>, Error> {
        let objects = self.objects(here).await?;
        let options = self.options(here.check)?;
        let (client, namespace) = self.access.client(probe, here).await?;
        let work = ApplyJob::plan(Api::new(client, namespace), options, &objects).await?;
        let outcome = outcome(&work.steps);
        if work.is_done() {
            if !here.check {
                work.wait().await?;
            }
            return Ok(Plan::Unchanged(outcome));
        }
        let diff = work.steps.iter().filter_map(|step| step.diff.clone()).collect();
        Ok(Plan::Change { diff, outcome, change: work })
    }

    async fn apply(&self, mut work: ApplyJob, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        work.carry_out(remote).await?;
        Ok(outcome(&work.steps))
    }
}

impl K8s {
    async fn objects(&self, here: &Controller<'_>) -> Result<Vec<Object>, Error> {
        let given = DefinitionArguments {
            api_version: Some(&self.api_version),
            kind: self.kind.as_deref(),
            name: self.name.as_deref(),
            namespace: self.namespace.as_deref(),
        };
        let ways = [self.definition.is_some(), self.src.is_some(), self.template.is_some()];
        if ways.iter().filter(|way| **way).count() > 1 {
            return Err(Error::failed("k8s: only one of definition, src and template can be given"));
        }
        // A definition names its own version; the default is for objects that are only named.
        let in_text = DefinitionArguments { api_version: None, ..given };
        let mut objects = Vec::new();
        match (&self.definition, &self.src, &self.template) {
            (Some(definition), ..) => objects = definitions::inline(definition, in_text)?,
            (_, Some(files), _) => {
                for file in files {
                    objects.extend(definitions::of_file(file, here, in_text).await?);
                }
            }
            (_, _, Some(templates)) => {
                for template in templates {
                    objects.extend(definitions::of_template(template, here, in_text).await?);
                }
            }
            (None, None, None) if self.kind.is_some() => objects.push(definitions::object_from_arguments(given)?),
            (None, None, None) => {
                return Err(Error::failed("k8s: definition, src, template, or kind and name is required"));
            }
        }
        Ok(objects)
    }

    /// The arguments that are mappings, taken apart; and those that all objects share.
    fn options(&self, check: bool) -> Result<ApplyOptions, Error> {
        let apply =
            structure("server_side_apply", "field_manager and force_conflicts", self.server_side_apply.as_ref())?;
        let takes = "propagationPolicy (Background, Foreground, Orphan) and gracePeriodSeconds";
        let delete = structure("delete_options", takes, self.delete_options.as_ref())?;
        let (limit, pause) = (Duration::from_secs(self.wait_timeout), Duration::from_secs(self.wait_sleep));
        Ok(ApplyOptions {
            state: self.state,
            apply: apply.unwrap_or_default(),
            merge: self.merge_type.clone(),
            delete: delete.unwrap_or_default(),
            wait: self.wait.then_some(WaitLimits { limit, pause }),
            condition: Condition::given(self.wait_condition.as_ref())?,
            check,
        })
    }
}

fn outcome(steps: &[ObjectStep]) -> Outcome {
    let method = |step: &ObjectStep| match step.operation {
        None => "nothing",
        Some(Operation::Create) => "create",
        Some(Operation::Update) => "update",
        Some(Operation::Patch) => "patch",
        Some(Operation::Delete) => "delete",
    };
    let value = |json: Json| Value::from(Serde(json));
    let mut missing: Vec<&str> = steps.iter().filter_map(|step| step.missing_namespace.as_deref()).collect();
    missing.sort_unstable();
    missing.dedup();
    let outcome = match missing.is_empty() {
        true => Outcome::default(),
        false => Outcome::default().with("missing_namespaces", value(json!(missing))),
    };
    match steps {
        [one] => outcome.with("result", value(compare::shown(&one.known))).with("method", method(one)),
        many => {
            let results: Vec<Json> = many
                .iter()
                .map(|step| json!({"changed": step.operation.is_some(), "method": method(step), "result": compare::shown(&step.known)}))
                .collect();
            outcome.with("result", value(json!({ "results": results })))
        }
    }
}
