//! A client of the Kubernetes API, and single objects of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::params::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config, Resource};

use crate::resource::{EtcdBackup, KarmadaDeployment};
use crate::template::wait_for;
use crate::value::ProcessEnvironment;

/// The type of Secrets with the credentials of deployments.
pub const CREDENTIALS_TYPE: &str = "windlass.dev/credentials";

/// A cluster that says nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A context of the user's kubeconfig (KUBECONFIG, or else ~/.kube/config); None: the current one. In a pod without a
/// kubeconfig: the cluster of the pod.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    pub context: Option<String>,
    /// Where the kubeconfig is, and the environment of the program that it may name for credentials.
    pub around: Arc<ProcessEnvironment>,
}

impl Cluster {
    /// The text under a key of a Secret.
    ///
    /// # Errors
    /// One line that says why it cannot be read, without any part of it.
    pub fn read_secret(&self, namespace: &str, name: &str, key: &str) -> Result<String, String> {
        [namespace, name].into_iter().try_for_each(one_segment)?;
        self.ask(async |api: Client| {
            let secrets: Api<Secret> = Api::namespaced(api.clone(), namespace);
            let secret = match secrets.get(name).await {
                Ok(secret) => secret,
                Err(error) if is_absent(&error) && !has(&api, namespace).await => return Err(no_namespace(namespace)),
                Err(error) if is_absent(&error) => return Err("the Secret does not exist".to_owned()),
                Err(error) => return Err(error_text(&error)),
            };
            // It is not the author's: a user who may name Secrets in a resource could send the authority's key to a host.
            if secret.type_.as_deref() == Some(CREDENTIALS_TYPE) {
                return Err("it holds the credentials of a deployment, which no resource may refer to".to_owned());
            }
            let mut data = secret.data.unwrap_or_default();
            let value = data.remove(key).ok_or_else(|| match data.is_empty() {
                true => "it is empty".to_owned(),
                false => format!("it does not have this key, only {}", listed(data.keys())),
            })?;
            String::from_utf8(value.0).map_err(|_| "it is not UTF-8 text".to_owned())
        })
    }

    /// A `KarmadaDeployment` as JSON text.
    ///
    /// # Errors
    /// One line that says why it cannot be read.
    pub fn deployment(&self, namespace: &str, name: &str) -> Result<String, String> {
        self.object::<KarmadaDeployment>(namespace, name)
    }

    /// As [`Cluster::deployment`], of an `EtcdBackup`.
    ///
    /// # Errors
    /// The API does not answer, or has no such object.
    pub fn etcd_backup(&self, namespace: &str, name: &str) -> Result<String, String> {
        self.object::<EtcdBackup>(namespace, name)
    }

    fn object<K: Resource<DynamicType = ()>>(&self, namespace: &str, name: &str) -> Result<String, String> {
        let word = K::kind(&());
        [namespace, name].into_iter().try_for_each(one_segment)?;
        self.ask(async |api: Client| {
            let kind = ApiResource::erase::<K>(&());
            let objects: Api<DynamicObject> = Api::namespaced_with(api.clone(), namespace, &kind);
            match objects.get(name).await {
                Ok(found) => serde_json::to_string_pretty(&found).map_err(|error| error.to_string()),
                Err(error) if is_unknown(&error) => Err(format!(
                    "the API server does not serve {word}s; install their definitions: windlass crd | kubectl apply -f -"
                )),
                Err(error) if is_absent(&error) && !has(&api, namespace).await => Err(no_namespace(namespace)),
                Err(error) if is_absent(&error) => {
                    let others = objects.list(&ListParams::default().limit(20)).await.ok();
                    let others = others.into_iter().flatten().filter_map(|other| other.metadata.name);
                    let others = listed(others);
                    let besides = if others.is_empty() { String::new() } else { format!(", only {others}") };
                    Err(format!("the namespace {namespace} has no {word} {name}{besides}"))
                }
                Err(error) => Err(error_text(&error)),
            }
        })
    }

    /// Waits for an answer of the cluster.
    fn ask<T>(&self, question: impl AsyncFnOnce(Client) -> Result<T, String>) -> Result<T, String> {
        wait_for(async {
            let client = limited(self.client()).await?;
            limited(question(client)).await
        })?
    }

    /// A client of it.
    ///
    /// # Errors
    /// One line that says what is wrong with the kubeconfig, without any part of it.
    pub async fn client(&self) -> Result<Client, String> {
        if self.context.is_none() && self.is_in_pod() {
            let config = Config::incluster().map_err(|error| format!("cannot use the account of the pod: {error}"))?;
            return Client::try_from(config).map_err(|error| error_text(&error));
        }
        // The crate's own words might quote what is in the file.
        let kubeconfig = self.kubeconfig().map_err(|error| match error {
            KubeconfigError::ReadConfig(error, path) => {
                format!("cannot read the kubeconfig {}: {error}", path.display())
            }
            KubeconfigError::FindPath => "found no kubeconfig (KUBECONFIG, ~/.kube/config)".to_owned(),
            _ => "your kubeconfig (KUBECONFIG, ~/.kube/config) is invalid".to_owned(),
        })?;
        let contexts = listed(kubeconfig.contexts.iter().map(|context| &context.name));
        let contexts = if contexts.is_empty() { "none".to_owned() } else { contexts };
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| match error {
            KubeconfigError::LoadContext(name) if !name.is_empty() => {
                format!("your kubeconfig has no context {name}, only {contexts}")
            }
            KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_) => {
                format!(
                    "your kubeconfig has no current context: write kube:CONTEXT/NAMESPACE/NAME with one of {contexts}"
                )
            }
            _ => format!(
                "cannot use {} of your kubeconfig",
                match &self.context {
                    Some(context) => format!("the context {context}"),
                    None => "the current context".to_owned(),
                }
            ),
        })?;
        Client::try_from(config).map_err(|error| error_text(&error))
    }

    /// Whether this process runs in a pod and has no kubeconfig.
    fn is_in_pod(&self) -> bool {
        self.around.variable("KUBERNETES_SERVICE_HOST").is_some()
            && !self.around.kubeconfig_files().iter().any(|file| file.exists())
    }

    fn kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        let files = self.around.kubeconfig_files();
        if files.is_empty() {
            return Err(KubeconfigError::FindPath);
        }
        let read = |all: Kubeconfig, file| all.merge(Kubeconfig::read_from(file)?);
        let mut kubeconfig = files.iter().try_fold(Kubeconfig::default(), read)?;
        for program in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()?.exec.as_mut()) {
            let variable = |(name, value): (&String, &String)| {
                [("name", name), ("value", value)].map(|(key, text)| (key.to_owned(), text.clone())).into()
            };
            // What the kubeconfig sets itself comes last, and counts.
            let own = program.env.take().unwrap_or_default();
            program.env = Some(self.around.variables.iter().map(variable).chain(own).collect());
        }
        Ok(kubeconfig)
    }
}

/// A name becomes a part of a path as it is: one of several parts would lead to another object.
///
/// # Errors
/// It has several parts.
pub fn one_segment(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match !name.is_empty() && name.chars().all(fits) && !name.contains("..") {
        true => Ok(()),
        false => Err(format!("{name:?} is not a valid name of an object or namespace")),
    }
}

/// Waits for an answer, but not for ever.
///
/// # Errors
/// There was none in time.
pub async fn limited<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| Err(format!("the API did not answer within {} seconds", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(late)
}

/// Whether a namespace is there, as far as one may know.
async fn has(api: &Client, namespace: &str) -> bool {
    let namespaces: Api<Namespace> = Api::all(api.clone());
    namespaces.get_opt(namespace).await.is_ok_and(|found| found.is_some())
}

fn no_namespace(name: &str) -> String {
    format!("no such namespace: {name}")
}

/// Whether there is no such object.
pub fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the kind is unknown and not only the object: that answer has no details.
fn is_unknown(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.details.is_none())
}

fn listed(names: impl IntoIterator<Item = impl ToString>) -> String {
    names.into_iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// An error in one line, without what is known from where it is shown.
pub fn error_text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            "the API server rejected your credentials: has your certificate or token expired?".to_owned()
        }
        // It begins with the object, which is known.
        kube::Error::Api(status) => match status.message.split_once(" is forbidden: ") {
            Some((_, why)) => format!("access denied: {why}"),
            None => status.message.clone(),
        },
        error => {
            let deepest = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source()).last();
            format!("cannot reach the API server: {}", deepest.map_or_else(String::new, ToString::to_string))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kubeconfig_is_that_of_the_run() {
        let directory = tempfile::tempdir().unwrap();
        for (file, context) in [("a", "blue"), ("b", "green")] {
            let text = format!("contexts: [{{name: {context}, context: {{cluster: c, user: u}}}}]\n");
            std::fs::write(directory.path().join(file), text).unwrap();
        }
        let around = Arc::new(ProcessEnvironment {
            variables: [("KUBECONFIG".to_owned(), "a:b".to_owned())].into(),
            directory: directory.path().to_owned(),
            ..ProcessEnvironment::default()
        });
        let failure = |cluster: Cluster| async move { cluster.client().await.map(drop).unwrap_err() };
        let named = Cluster { context: Some("red".into()), around };
        assert_eq!(failure(named).await, "your kubeconfig has no context red, only blue, green");
        assert_eq!(failure(Cluster::default()).await, "found no kubeconfig (KUBECONFIG, ~/.kube/config)");
    }

    #[test]
    fn the_program_for_credentials_gets_the_environment_of_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let text = "users: [{name: u, user: {exec: {command: x, env: [{name: REGION, value: own}]}}}]\n";
        std::fs::create_dir(directory.path().join(".kube")).unwrap();
        std::fs::write(directory.path().join(".kube/config"), text).unwrap();
        let around = Arc::new(ProcessEnvironment {
            variables: [("REGION".to_owned(), "theirs".to_owned()), ("TOKEN".to_owned(), "t".to_owned())].into(),
            home: Some(directory.path().to_owned()),
            ..ProcessEnvironment::default()
        });
        let kubeconfig = Cluster { context: None, around }.kubeconfig().unwrap();
        let exec = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap().exec.as_ref().unwrap();
        let given = exec.env.as_ref().unwrap().iter().map(|variable| (&*variable["name"], &*variable["value"]));
        assert_eq!(given.collect::<Vec<_>>(), [("REGION", "theirs"), ("TOKEN", "t"), ("REGION", "own")]);
    }
}
