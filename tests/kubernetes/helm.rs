//! The chart in `packaging/helm`: it makes what `kubectl kustomize` makes of `packaging/kubernetes`, and an API server takes it, takes its
//! upgrades, and keeps the definitions when it goes. Needs `target/helm/helm` (`tests/helm-binary`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::operator::Bench;
use crate::server::Server;

const NAMESPACE: &str = "windlass-system";

fn helm(arguments: &[&str]) -> Result<String, String> {
    let program = crate::root().join("target/helm/helm");
    let output = Command::new(program).args(arguments).output().expect("helm is there: tests/helm-binary");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn chart() -> String {
    crate::root().join("packaging/helm/windlass").display().to_string()
}

/// The chart without the versions of Kubernetes that it is for: those that CI can have are older.
fn chart_for_every_version(scratch: &Path) -> String {
    let copied = Command::new("cp").args(["-rL", &chart()]).arg(scratch).status().unwrap();
    assert!(copied.success());
    let file = scratch.join("windlass/Chart.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let without = text.lines().filter(|line| !line.starts_with("kubeVersion:")).map(|line| format!("{line}\n"));
    std::fs::write(file, without.collect::<String>()).unwrap();
    scratch.join("windlass").display().to_string()
}

fn rendered(values: &[&str]) -> String {
    let chart = chart();
    helm(&[&["template", "windlass", &chart, "-n", NAMESPACE], values].concat()).unwrap()
}

/// By kind, namespace and name. `kubectl kustomize` adds a digest to the names of ConfigMaps.
fn objects(text: &str) -> BTreeMap<String, Json> {
    let documents = text.split("\n---").map(|document| serde_yaml::from_str::<Json>(document).unwrap());
    let of_chart = |mut object: Json| {
        let metadata = &object["metadata"];
        let kind = object["kind"].as_str().unwrap().to_owned();
        let mut name = metadata["name"].as_str().unwrap().to_owned();
        if let Some((before, _)) = name
            .rsplit_once('-')
            .filter(|(before, digest)| kind == "ConfigMap" && digest.len() == 10 && before.starts_with("windlass-"))
        {
            name = before.to_owned();
        }
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        object["metadata"]["name"] = name.as_str().into();
        (format!("{kind} {namespace}/{name}"), without_what_differs(object))
    };
    documents.filter(|object| !object.is_null() && object["kind"] != "Namespace").map(of_chart).collect()
}

/// Without what only one of both has, and only for itself: how images are pulled, and that pods follow their settings.
fn without_what_differs(mut object: Json) -> Json {
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove("helm.sh/resource-policy");
        if annotations.is_empty() {
            object["metadata"]["annotations"] = Json::Null;
        }
    }
    if let Some(job) = object["data"]["job.yaml"].as_str() {
        let job: Json = serde_yaml::from_str(job).unwrap();
        object["data"]["job.yaml"] = without_what_differs(job);
    }
    let pod = &mut object["spec"]["template"];
    if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() {
        annotations.remove("checksum/settings");
    }
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        container.as_object_mut().unwrap().remove("imagePullPolicy");
        for source in container["envFrom"].as_array_mut().into_iter().flatten() {
            shorten(&mut source["configMapRef"]["name"]);
        }
    }
    for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
        shorten(&mut volume["configMap"]["name"]);
    }
    without_nulls(object)
}

/// Names as the chart has them.
fn shorten(name: &mut Json) {
    if let Some((before, _)) = name.as_str().and_then(|name| name.rsplit_once('-')).filter(|(_, end)| end.len() == 10) {
        *name = before.into();
    }
}

/// Looking into a JSON value adds nulls.
fn without_nulls(value: Json) -> Json {
    match value {
        Json::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Json::Array(items) => items.into_iter().map(without_nulls).collect(),
        value => value,
    }
}

fn kustomized(server: &Server, directory: &str) -> BTreeMap<String, Json> {
    let directory = crate::root().join("packaging/kubernetes").join(directory).display().to_string();
    objects(&server.kubectl(&["kustomize", &directory], "").unwrap())
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn the_chart_makes_what_kustomize_makes_and_an_api_server_takes_it() {
    let bench = Bench::start();
    let server = &bench.server;

    let of_chart = rendered(&[]);
    assert_eq!(of_chart.matches("helm.sh/resource-policy: keep").count(), 3, "the definitions are kept");
    assert!(objects(&of_chart).len() > 10, "{of_chart}");
    assert_eq!(objects(&of_chart), kustomized(server, "base"));
    assert_eq!(objects(&rendered(&["--set", "jobs.enabled=true"])), kustomized(server, "jobs"));

    // Values.
    let values = bench.scratch.path().join("values.yaml");
    let text = "
image: {repository: registry.example.com/windlass, tag: v9}
replicas: 3
settings: {WINDLASS_RESOURCE_NETWORKS: 10.0.0.0/8, WINDLASS_RESOURCE_BUNDLES: \"{\\\"a\\\": \\\"/b\\\"}\"}
args: [--max-runs=4]
namespaces: [default]
jobs: {enabled: true}
nodeSelector: {kubernetes.io/os: linux}
imagePullSecrets: [{name: pull}]
";
    std::fs::write(&values, text).unwrap();
    let values = values.display().to_string();
    let with_values = objects(&rendered(&["-f", &values]));
    let deployment = &with_values["Deployment windlass-system/windlass-operator"]["spec"];
    let pod = &deployment["template"]["spec"];
    assert_eq!((&deployment["replicas"], &pod["nodeSelector"]), (&json!(3), &json!({"kubernetes.io/os": "linux"})));
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/windlass:v9");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    let args = pod["containers"][0]["args"].as_array().unwrap();
    assert_eq!(args[args.len() - 2..], ["--job-template=/etc/windlass/job.yaml", "--max-runs=4"]);
    // A Job has the same image and settings: otherwise it would not apply the operator's plans.
    let job = &with_values["ConfigMap windlass-system/windlass-job"]["data"]["job.yaml"]["spec"]["template"]["spec"];
    assert_eq!(job["containers"][0]["image"], pod["containers"][0]["image"]);
    let settings = with_values["ConfigMap windlass-system/windlass-operator"]["data"].as_object().unwrap();
    let of_job: serde_json::Map<String, Json> = job["containers"][0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| (variable["name"].as_str().unwrap().to_owned(), variable["value"].clone()))
        .collect();
    assert_eq!((settings, settings.len()), (&of_job, 2));

    // What the chart does not know, and numbers that YAML writes in another way, are refused.
    for wrong in ["setings.A=b", "settings.WINDLASS_RUNS_KEEP=1000000", "jobs.enable=true", "replicas=two"] {
        let refused = helm(&["template", "windlass", &chart(), "--set", wrong]).unwrap_err();
        assert!(refused.contains("values don't meet the specifications of the schema"), "{wrong}: {refused}");
    }

    // A real server: install, upgrade, uninstall.
    let kubeconfig = server.kubeconfig().display().to_string();
    let chart = chart_for_every_version(bench.scratch.path());
    let of_server = ["-n", NAMESPACE, "--kubeconfig", &kubeconfig, "--set", "definitions.install=false"];
    let annotations = || {
        server.get(&["deployment", "windlass-operator", "-n", NAMESPACE]).unwrap()["spec"]["template"]["metadata"]["annotations"].clone()
    };
    helm(&[&["install", "windlass", &chart, "--create-namespace"], &of_server[..]].concat()).unwrap();
    let before = annotations();
    assert!(server.get(&["rolebinding", "windlass-worker"]).is_none(), "no namespace was named");
    helm(&[&["upgrade", "windlass", &chart, "-f", &values], &of_server[..]].concat()).unwrap();
    assert_ne!(annotations(), before, "other settings, and the same pods");
    for (binding, account) in
        [("windlass-worker", NAMESPACE), ("windlass-jobs", NAMESPACE), ("windlass-runner", "default")]
    {
        let binding = server.get(&["rolebinding", binding]).unwrap();
        assert_eq!(binding["subjects"][0]["namespace"], account, "{binding}");
    }
    let may = |verb: &str, what: &str, account: &str| {
        let account = format!("system:serviceaccount:{account}");
        server.kubectl(&["auth", "can-i", verb, what, "-n", "default", "--as", &account], "").is_ok()
    };
    assert!(may("create", "jobs", "windlass-system:windlass-operator"));
    assert!(may("get", "secrets", "default:windlass-runner") && !may("get", "pods", "default:windlass-runner"));
    helm(&["uninstall", "windlass", "-n", NAMESPACE, "--kubeconfig", &kubeconfig]).unwrap();
    assert!(server.get(&["deployment", "windlass-operator", "-n", NAMESPACE]).is_none());
    assert!(server.get(&["rolebinding", "windlass-worker"]).is_none());

    // Definitions of the chart's own stay when it is uninstalled, and so do their objects.
    server
        .kubectl(
            &["delete", "crd", "karmadadeployments.windlass.dev", "runs.windlass.dev", "etcdbackups.windlass.dev"],
            "",
        )
        .unwrap();
    let of_server = ["-n", NAMESPACE, "--kubeconfig", &kubeconfig, "--disable-openapi-validation"];
    helm(&[&["install", "windlass", &chart], &of_server[..]].concat()).unwrap();
    helm(&[&["upgrade", "windlass", &chart], &of_server[..]].concat()).unwrap();
    helm(&["uninstall", "windlass", "-n", NAMESPACE, "--kubeconfig", &kubeconfig]).unwrap();
    assert!(server.get(&["crd", "karmadadeployments.windlass.dev"]).is_some());
}
