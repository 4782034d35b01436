//! `kubectl windlass report`: what is known of a deployment, for a bug report. No Secret is read, and what pods get as settings is left out.

use clap::Args;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Objects, show};
use crate::cli::{CliError, ExitCode};
use crate::resource::{KarmadaDeployment, Run};
use crate::value::{Value, yaml};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The deployment
    name: String,
}

/// What of an object's metadata is shown. Annotations and managed fields may hold earlier texts of it.
const METADATA: &[&str] =
    &["name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "finalizers", "labels"];

impl Objects {
    pub(super) async fn report(&self, args: &ReportArgs) -> Result<ExitCode, CliError> {
        let deployment: KarmadaDeployment = self.deployment(&args.name).await?;
        let mut documents =
            vec![json!({"windlass": env!("CARGO_PKG_VERSION")}), shown(&deployment, &["spec", "status"])];
        let mut names = vec![deployment.name_any()];
        let mut runs: Vec<Run> = self.all(self.runs(), "").await?;
        runs.retain(|run| run.spec.deployment == args.name);
        runs.sort_by_key(|run| (run.metadata.creation_timestamp.clone(), run.name_any()));
        for run in &runs {
            documents.push(shown(run, &["spec", "status"]));
            names.push(run.name_any());
            for job in self.jobs_of(run).await? {
                documents.push(shown(&job, &["status"]));
                names.push(job.name_any());
            }
            for pod in self.pods_of(run).await? {
                documents.push(shown(&pod, &["status"]));
                names.push(pod.name_any());
            }
        }
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let is_about = |event: &Event| {
            let about = event.regarding.as_ref().and_then(|about| about.name.clone());
            about.is_some_and(|about| names.contains(&about))
        };
        let events = self.all(events, "").await?;
        let events = events.iter().filter(|event| is_about(event));
        documents
            .extend(events.map(|event| shown(event, &["regarding", "reason", "note", "type", "eventTime", "series"])));
        let mut text = String::new();
        for document in documents {
            let value: Value = serde_json::from_value(document).map_err(anyhow::Error::new)?;
            text.push_str("---\n");
            text.push_str(&yaml::emit(&value, &yaml::YamlStyle { sort_keys: false, ..yaml::YamlStyle::default() }));
        }
        show(&text)?;
        Ok(ExitCode::Ok)
    }
}

/// These parts of an object, with what names it.
fn shown(object: &impl Serialize, parts: &[&str]) -> Json {
    let object = serde_json::to_value(object).unwrap_or_default();
    let mut shown = serde_json::Map::new();
    for part in ["apiVersion", "kind"].iter().chain(parts) {
        if let Some(value) = object.get(part).filter(|value| !value.is_null()) {
            shown.insert((*part).to_owned(), value.clone());
        }
    }
    let metadata = object.get("metadata").and_then(Json::as_object).cloned().unwrap_or_default();
    let metadata: serde_json::Map<String, Json> =
        metadata.into_iter().filter(|(name, _)| METADATA.contains(&name.as_str())).collect();
    shown.insert("metadata".to_owned(), Json::Object(metadata));
    Json::Object(shown)
}
