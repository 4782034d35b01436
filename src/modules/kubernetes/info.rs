//! `k8s_info`: objects of the Kubernetes API.

use std::time::Duration;

use kube::core::params::ListParams;
use minijinja::value::Serde;
use serde::Deserialize;
use serde_json::Value as Json;

use super::access::{Access, arguments};
use super::api::Api;
use super::definitions::{DefinitionArguments, object_from_arguments};
use super::wait::{self, Condition, WaitLimits};
use crate::modules::{Controller, Error, Inspect, Outcome};
use crate::remote::Probe;
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct K8sInfo {
    kind: String,
    api_version: String,
    name: Option<String>,
    namespace: Option<String>,
    label_selectors: Vec<String>,
    field_selectors: Vec<String>,
    wait: bool,
    wait_condition: Option<Value>,
    wait_timeout: u64,
    wait_sleep: u64,
    #[serde(flatten)]
    access: Access,
}

impl Inspect for K8sInfo {
    const DOC: Doc = Doc {
        name: "k8s_info",
        collection: "kubernetes.core",
        summary: "Read objects from the Kubernetes API",
        arguments: &[
            Argument::new("kind", ArgumentKind::Str, "The kind of the objects").required(),
            Argument::new("api_version", ArgumentKind::Str, "Its group and version")
                .default("v1")
                .alias(&["api", "version"]),
            Argument::new("name", ArgumentKind::Str, "The one object of that name"),
            Argument::new("namespace", ArgumentKind::Str, "The namespace (default: all)"),
            Argument::new("label_selectors", ArgumentKind::List(&ArgumentKind::Str), "Labels to select by")
                .default("[]"),
            Argument::new("field_selectors", ArgumentKind::List(&ArgumentKind::Str), "Fields to select by")
                .default("[]"),
            Argument::new("wait", ArgumentKind::Bool, "Whether to wait until the named object exists and is ready")
                .default("false"),
            Argument::new(
                "wait_condition",
                ArgumentKind::Dict,
                "The condition that means ready: its type, status and reason",
            ),
            Argument::new("wait_timeout", ArgumentKind::Int, "Seconds to wait").default("120"),
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
- name: Wait until the aggregated API is available
  k8s_info:
    kubeconfig: credentials/admin.kubeconfig
    api_version: apiregistration.k8s.io/v1
    kind: APIService
    name: v1alpha1.cluster.karmada.io
    wait: true
    wait_condition: {type: Available}
",
        returns: &[
            Return::new("resources", "The objects, possibly none"),
            Return::new("api_found", "Whether the API has that kind"),
        ],
    };
    async fn inspect(&self, probe: &Probe, here: &Controller<'_>) -> Result<Outcome, Error> {
        let (client, namespace) = self.access.client(probe, here).await?;
        let api = Api::new(client, namespace);
        let found = match &self.name {
            Some(_) => self.one(&api).await?,
            None => self.many(&api).await?,
        };
        let api_found = found.is_some();
        let resources: Vec<Json> = found.unwrap_or_default();
        let outcome = Outcome::default().with("resources", Value::from(Serde(resources))).with("api_found", api_found);
        Ok(outcome)
    }
}

impl K8sInfo {
    async fn one(&self, api: &Api) -> Result<Option<Vec<Json>>, Error> {
        let object = object_from_arguments(DefinitionArguments {
            api_version: Some(&self.api_version),
            kind: Some(&self.kind),
            name: self.name.as_deref(),
            namespace: self.namespace.as_deref(),
        })?;
        let Some(place) = api.object_location(&object).await? else { return Ok(None) };
        if self.wait {
            let limit = Duration::from_secs(self.wait_timeout);
            let patience = WaitLimits { limit, pause: Duration::from_secs(self.wait_sleep) };
            let condition = Condition::given(self.wait_condition.as_ref())?;
            return wait::until_ready(api, &place, condition.as_ref(), patience).await.map(|it| Some(vec![it]));
        }
        Ok(Some(api.get(&place).await?.into_iter().collect()))
    }

    async fn many(&self, api: &Api) -> Result<Option<Vec<Json>>, Error> {
        let mut params = ListParams::default();
        if !self.label_selectors.is_empty() {
            params = params.labels(&self.label_selectors.join(","));
        }
        if !self.field_selectors.is_empty() {
            params = params.fields(&self.field_selectors.join(","));
        }
        api.list_objects(&self.api_version, &self.kind, self.namespace.as_deref(), &params).await
    }
}
