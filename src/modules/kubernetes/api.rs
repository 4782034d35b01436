//! Requests for objects of any kind, as JSON.

use std::collections::HashMap;
use std::time::Duration;

use kube::Client;
use kube::core::discovery::Scope;
use kube::core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersion, Request, Resource as _};
use serde_json::Value as Json;

use super::definitions::Object;
use super::failure::explain;
use crate::modules::Error;
use crate::value::mutex::Mutex;

/// An API server that says nothing for so long is taken for dead.
const PATIENCE: Duration = Duration::from_secs(60);

/// An API server, and what is known of its kinds.
pub(crate) struct Api {
    client: Client,
    /// Of objects that name none.
    namespace: String,
    kinds: Mutex<HashMap<(String, String), Kind>>,
}

#[derive(Clone)]
struct Kind {
    resource: ApiResource,
    namespaced: bool,
}

/// Where an object is.
#[derive(Clone)]
pub(crate) struct ObjectLocation {
    /// Of the collection.
    path: String,
    name: String,
    /// `Deployment default/web`, for messages.
    pub label: String,
}

impl Api {
    pub(crate) fn new(client: Client, namespace: String) -> Api {
        Api { client, namespace, kinds: Mutex::default() }
    }

    /// None: the API has no such kind.
    pub(crate) async fn object_location(&self, object: &Object) -> Result<Option<ObjectLocation>, Error> {
        let Some(kind) = self.kind(&object.api_version, &object.kind).await? else { return Ok(None) };
        let namespace = kind.namespaced.then(|| object.namespace.as_deref().unwrap_or(&self.namespace));
        let label = match namespace {
            Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
            None => format!("{} {}", object.kind, object.name),
        };
        let path = DynamicObject::url_path(&kind.resource, namespace);
        Ok(Some(ObjectLocation { path, name: object.name.clone(), label }))
    }

    async fn kind(&self, api_version: &str, kind: &str) -> Result<Option<Kind>, Error> {
        let key = (api_version.to_owned(), kind.to_owned());
        let known = self.kinds.lock().get(&key).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let version: GroupVersion =
            api_version.parse().map_err(|_| Error::failed(format!("invalid apiVersion {api_version:?}")))?;
        let what = format!("query the kinds of {api_version}");
        let wanted = version.with_kind(kind);
        let found = limited(&what, kube::discovery::pinned_kind(&self.client, &wanted)).await?;
        let (resource, capabilities) = match found {
            Ok(found) => found,
            Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(error) => return self.absence(error, &what).await.map(|()| None),
        };
        let found = Kind { resource, namespaced: capabilities.scope == Scope::Namespaced };
        self.kinds.lock().insert(key, found.clone());
        Ok(Some(found))
    }

    /// None: there is no such object.
    pub(crate) async fn get(&self, place: &ObjectLocation) -> Result<Option<Json>, Error> {
        let what = format!("read {}", place.label);
        let request = Request::new(&*place.path).get(&place.name, &GetParams::default());
        match self.send(&what, request).await? {
            Ok(object) => Ok(Some(object)),
            Err(error) => self.absence(error, &what).await.map(|()| None),
        }
    }

    /// The objects of a kind; None: the API has no such kind.
    pub(crate) async fn list_objects(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Option<Vec<Json>>, Error> {
        let Some(found) = self.kind(api_version, kind).await? else { return Ok(None) };
        let what = format!("list {kind}");
        let namespace = namespace.filter(|_| found.namespaced);
        let request = Request::new(DynamicObject::url_path(&found.resource, namespace)).list(params);
        let mut list = self.send(&what, request).await?.map_err(|error| explain(error, &what))?;
        let mut items = match list.get_mut("items").map(Json::take) {
            Some(Json::Array(items)) => items,
            _ => Vec::new(),
        };
        for item in &mut items {
            // Lists leave it out of their items.
            item["apiVersion"] = api_version.into();
            item["kind"] = kind.into();
        }
        Ok(Some(items))
    }

    /// Server-side apply, or another patch. The object as it is, or would be, afterwards.
    pub(crate) async fn patch(
        &self,
        place: &ObjectLocation,
        params: &PatchParams,
        patch: &Patch<&Json>,
    ) -> Result<Json, kube::Error> {
        let request =
            Request::new(&*place.path).patch(&place.name, params, patch).map_err(kube::Error::BuildRequest)?;
        match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(kube::Error::Service(silence().into())),
        }
    }

    /// Asks for an object's end. None: it was not there.
    pub(crate) async fn delete(&self, place: &ObjectLocation, params: &DeleteParams) -> Result<Option<Json>, Error> {
        let what = format!("delete {}", place.label);
        match self.send(&what, Request::new(&*place.path).delete(&place.name, params)).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => self.absence(error, &what).await.map(|()| None),
        }
    }

    /// Whether an error only says that there is no such thing; all others stay errors. Of an object, a status of the API tells. Of a
    /// group or a kind that it does not have it says `page not found`, as any web server does: an ingress without a backend knows
    /// nothing of the cluster. So such a server is asked for its groups.
    async fn absence(&self, error: kube::Error, what: &str) -> Result<(), Error> {
        let status = match &error {
            kube::Error::Api(status) if status.code == 404 => status,
            _ => return Err(explain(error, what)),
        };
        if status.is_not_found() {
            return Ok(());
        }
        let groups = hyper::Request::get("/apis").body(Vec::new());
        let groups = groups.map_err(|error| Error::failed(format!("cannot {what}: {error}")))?;
        match limited(what, self.client.request::<Json>(groups)).await? {
            Ok(list) if list["kind"] == "APIGroupList" => Ok(()),
            // The status names the reason.
            Err(kube::Error::Api(status)) if matches!(status.reason.as_str(), "Forbidden" | "Unauthorized") => Ok(()),
            _ => Err(Error::Failed {
                message: format!("cannot {what}: the server responds with HTTP 404, and is not a Kubernetes API"),
                hint: Some(
                    "check the server's URL in the kubeconfig, and what is between the host and the API".to_owned(),
                ),
            }),
        }
    }

    async fn send(
        &self,
        what: &str,
        request: Result<hyper::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Result<Json, kube::Error>, Error> {
        let request = request.map_err(|error| Error::failed(format!("cannot {what}: {error}")))?;
        limited(what, self.client.request(request)).await
    }
}

fn silence() -> String {
    format!("the API timed out after {} seconds", PATIENCE.as_secs())
}

async fn limited<T>(what: &str, answer: impl Future<Output = T>) -> Result<T, Error> {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.map_err(|_| Error::failed(format!("cannot {what}: {}", silence())))
}
