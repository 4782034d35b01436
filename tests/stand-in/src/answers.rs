//! What each program answers: health where and as the real one tells it, discovery, admission.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Client;
use serde_json::{Value, json};

use crate::api::Etcd;
use crate::clusters;
use crate::serve::{Answers, Request, Response};

fn text(status: &str, body: &str) -> Response {
    Response { status: status.to_owned(), kind: "text/plain; charset=utf-8", body: body.to_owned() }
}

fn object(body: &Value) -> Response {
    Response { status: "200 OK".to_owned(), kind: "application/json", body: body.to_string() }
}

fn not_found() -> Response {
    text("404 Not Found", "404 page not found")
}

/// A port without TLS: "ok" at these paths.
pub(crate) fn plain(paths: Vec<&'static str>) -> Answers {
    Arc::new(move |request: Request| {
        let answer = if paths.contains(&request.path.as_str()) { text("200 OK", "ok") } else { not_found() };
        Box::pin(async { answer })
    })
}

/// A port that is there, and no more.
pub(crate) fn nothing() -> Answers {
    Arc::new(|_| Box::pin(async { not_found() }))
}

/// The API that a program serves for the API server: group, versions, and resources with their kinds.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    name: &'static str,
    versions: &'static [&'static str],
    resources: &'static [(&'static str, &'static str)],
}

/// None for a program that is no API server.
pub(crate) fn aggregated_group(program: &str) -> Option<&'static [Group]> {
    const CLUSTERS: &[Group] =
        &[Group { name: "cluster.karmada.io", versions: &["v1alpha1"], resources: &[("clusters", "Cluster")] }];
    const SEARCH: &[Group] = &[Group {
        name: "search.karmada.io",
        versions: &["v1alpha1"],
        resources: &[("resourceregistries", "ResourceRegistry")],
    }];
    const METRICS: &[Group] = &[
        Group { name: "metrics.k8s.io", versions: &["v1beta1"], resources: &[("pods", "PodMetrics")] },
        Group { name: "custom.metrics.k8s.io", versions: &["v1beta1", "v1beta2"], resources: &[] },
    ];
    match program {
        "karmada-aggregated-apiserver" => Some(CLUSTERS),
        "karmada-search" => Some(SEARCH),
        "karmada-metrics-adapter" => Some(METRICS),
        _ => None,
    }
}

/// Health to everybody, as long as etcd answers and once the API server has; the API to the front proxy alone. Clusters are
/// kept; every other list is empty.
pub(crate) fn aggregated(
    groups: &'static [Group],
    etcd: Option<Etcd>,
    known: Arc<AtomicBool>,
    client: Client,
) -> Answers {
    let etcd = Arc::new(etcd);
    Arc::new(move |request: Request| {
        let (etcd, known, client) = (etcd.clone(), known.clone(), client.clone());
        Box::pin(async move {
            match request.path.split('?').next().unwrap_or_default() {
                "/livez" | "/healthz" => text("200 OK", "ok"),
                "/readyz" if !known.load(Ordering::Relaxed) => text("500 Internal Server Error", "no API server yet"),
                "/readyz" => match etcd.as_ref() {
                    Some(etcd) => match etcd.answers().await {
                        Ok(()) => text("200 OK", "ok"),
                        Err(words) => text("500 Internal Server Error", &words),
                    },
                    None => text("200 OK", "ok"),
                },
                _ if !request.trusted => text("401 Unauthorized", "Unauthorized"),
                path => match clusters::answer(&client, &request).await {
                    Some(answer) => answer,
                    None => discovery(groups, path).unwrap_or_else(not_found),
                },
            }
        })
    })
}

fn discovery(groups: &[Group], path: &str) -> Option<Response> {
    let mut parts = path.trim_matches('/').split('/');
    (parts.next() == Some("apis")).then_some(())?;
    let version_of =
        |group: &Group, version: &str| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let described = |group: &Group| {
        let versions: Vec<Value> = group.versions.iter().map(|version| version_of(group, version)).collect();
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": group.name, "preferredVersion": versions[0], "versions": versions})
    };
    let Some(name) = parts.next() else {
        let all: Vec<Value> = groups.iter().map(described).collect();
        return Some(object(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": all})));
    };
    let group = groups.iter().find(|group| group.name == name)?;
    let Some(version) = parts.next() else { return Some(object(&described(group))) };
    let version = group.versions.iter().find(|known| **known == version)?;
    let api_version = format!("{name}/{version}");
    let Some(resource) = parts.next() else {
        let resources = group.resources.iter().map(|(plural, kind)| {
            json!({"name": plural, "singularName": "", "namespaced": false, "kind": kind, "verbs": ["create", "delete", "get", "list", "patch"]})
        });
        let resources: Vec<Value> = resources.collect();
        let list =
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources});
        return Some(object(&list));
    };
    let (_, kind) = group.resources.iter().find(|(plural, _)| *plural == resource)?;
    let list = json!({"kind": format!("{kind}List"), "apiVersion": api_version, "metadata": {"resourceVersion": "1"}, "items": []});
    parts.next().is_none().then(|| object(&list))
}

/// Admission: everything is allowed as it is. Conversion: another version by name alone.
pub(crate) fn webhook() -> Answers {
    Arc::new(|request: Request| {
        let answer = match request.path.split('?').next().unwrap_or_default() {
            "/readyz/" | "/healthz/" => text("200 OK", "ok"),
            // The real one's router adds the slash.
            "/readyz" | "/healthz" => text("307 Temporary Redirect", ""),
            "/convert" => review(&request.body, converted),
            path if path.starts_with("/mutate-") || path.starts_with("/validate-") => {
                review(&request.body, |asked| json!({"uid": asked["uid"], "allowed": true}))
            }
            _ => not_found(),
        };
        Box::pin(async { answer })
    })
}

fn review(body: &[u8], answer: impl Fn(&Value) -> Value) -> Response {
    match serde_json::from_slice::<Value>(body) {
        Ok(review) if review["request"].is_object() => object(&json!({
            "apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer(&review["request"]),
        })),
        _ => text("400 Bad Request", "no review"),
    }
}

fn converted(asked: &Value) -> Value {
    let objects = asked["objects"].as_array().cloned().unwrap_or_default().into_iter().map(|mut object| {
        object["apiVersion"] = asked["desiredAPIVersion"].clone();
        object
    });
    json!({"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": objects.collect::<Vec<_>>()})
}
