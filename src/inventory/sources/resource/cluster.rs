//! The Kubernetes cluster that the user's kubeconfig leads to.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};

use crate::resource::KarmadaDeployment;

/// A cluster that says nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A context of the user's kubeconfig (KUBECONFIG, or else ~/.kube/config); None: the current one.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    pub context: Option<String>,
}

impl Cluster {
    /// The text under a key of a Secret.
    ///
    /// # Errors
    /// One line that says why it cannot be had, and nothing of it.
    pub fn secret(&self, namespace: &str, name: &str, key: &str) -> Result<String, String> {
        self.ask(async |client: Client| {
            let secret: Secret = Api::namespaced(client, namespace).get(name).await.map_err(|error| words(&error))?;
            let value = secret.data.and_then(|mut data| data.remove(key)).ok_or("it has no such key")?;
            String::from_utf8(value.0).map_err(|_| "it is not UTF-8 text".to_owned())
        })
    }

    /// A `KarmadaDeployment` as JSON text.
    ///
    /// # Errors
    /// One line that says why it cannot be had.
    pub fn deployment(&self, namespace: &str, name: &str) -> Result<String, String> {
        self.ask(async |client: Client| {
            let kind = ApiResource::erase::<KarmadaDeployment>(&());
            let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
            let found = api.get(name).await.map_err(|error| words(&error))?;
            serde_json::to_string_pretty(&found).map_err(|error| error.to_string())
        })
    }

    /// Waits for an answer of the cluster, on a thread of its own: whoever asks may be within a runtime.
    fn ask<T: Send>(&self, question: impl AsyncFnOnce(Client) -> Result<T, String> + Send) -> Result<T, String> {
        let answer = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let client = limited(self.client()).await?;
                limited(question(client)).await
            })
        };
        std::thread::scope(|scope| scope.spawn(answer).join()).unwrap_or_else(|_| Err("the thread panicked".to_owned()))
    }

    async fn client(&self) -> Result<Client, String> {
        // The crate's own words might quote what is in the file.
        let kubeconfig =
            Kubeconfig::read().map_err(|_| "there is no kubeconfig that can be read (KUBECONFIG, ~/.kube/config)")?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|_| match &self.context {
            Some(context) => format!("the kubeconfig has no context {context:?} that can be used"),
            None => "the kubeconfig has no current context that can be used".to_owned(),
        })?;
        Client::try_from(config).map_err(|error| words(&error))
    }
}

async fn limited<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| Err(format!("the API did not answer within {} seconds", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(late)
}

fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
