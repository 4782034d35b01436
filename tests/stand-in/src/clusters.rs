//! Clusters: the real program keeps them in etcd. A stand-in keeps them as other objects of the API server that it serves
//! (tests/stand-in/crds), and says of each that it is ready.

use kube::Client;
use serde_json::{Value, json};

use crate::serve::{Request, Response};

const SERVED: &str = "cluster.karmada.io/v1alpha1";
const STORED: &str = "stand-in.windlass.dev/v1alpha1";

/// None for what is no Cluster, and while no API server keeps any.
pub(crate) async fn answer(client: &Client, request: &Request) -> Option<Response> {
    let rest = request.path.strip_prefix("/apis/")?.strip_prefix(SERVED)?.strip_prefix("/clusters")?;
    if !(rest.is_empty() || rest.starts_with(['/', '?'])) {
        return None;
    }
    let body = String::from_utf8_lossy(&request.body).replace(SERVED, STORED);
    let asked = hyper::Request::builder()
        .method(request.method.as_str())
        .uri(format!("/apis/{STORED}/clusterrecords{rest}"))
        .header("Content-Type", if request.kind.is_empty() { "application/json" } else { &request.kind })
        .header("Accept", "application/json")
        .body(body.into_bytes())
        .ok()?;
    let (status, text) = match client.request_text(asked).await {
        Ok(text) => ("200 OK".to_owned(), text),
        // It has no definition of them: every list is empty.
        Err(kube::Error::Api(reported)) if reported.code == 404 && !rest.starts_with('/') => return None,
        Err(kube::Error::Api(reported)) => {
            (format!("{} {}", reported.code, reported.reason), json!(reported).to_string())
        }
        // The API server of this host begins or ends. The real program asks etcd, so that it would have answered.
        Err(error) => ("429 Too Many Requests".to_owned(), failure(&error.to_string())),
    };
    Some(Response { status, kind: "application/json", body: ready(&text.replace(STORED, SERVED)) })
}

fn failure(message: &str) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": message}).to_string()
}

/// With the status that Karmada's controllers would have written.
fn ready(text: &str) -> String {
    let Ok(mut answer) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let status = json!({"kubernetesVersion": "v1.20.2", "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady"}]});
    let add = |object: &mut Value| {
        if object["kind"] == "Cluster" && object["status"].is_null() {
            object["status"] = status.clone();
        }
    };
    match answer.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(add),
        None => add(&mut answer),
    }
    answer.to_string()
}
