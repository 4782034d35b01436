//! `windlass operator` and its workers against a real API server, without hosts: rights, election, what an unreachable host makes of
//! the status, and Runs that two processes want. What it does with hosts: `tests/e2e/karmada-cases/55_*`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::port::free_port;
use crate::server::Server;
use crate::{definitions, definitions_without_rules, programs};

/// Nothing listens at the address of its host.
pub(crate) const DEPLOYMENT: &str = r#"
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: prod, namespace: default}
spec:
  bundle: bundle
  hosts: [{name: cp-1, address: 127.0.0.1, port: 1, fingerprint: 'SHA256:0123456789012345678901234567890123456789012'}]
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
"#;

pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) scratch: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn start() -> Bench {
        let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
        let mut server = Server::start(&etcd, &apiserver);
        server.ready();
        server.apply(&if server.knows_rules() { definitions() } else { definitions_without_rules() });
        let definitions = ["crd/karmadadeployments.windlass.dev", "crd/runs.windlass.dev"];
        let wait = [&["wait", "--for=condition=Established", "--timeout=300s"], &definitions[..]].concat();
        server.kubectl(&wait, "").unwrap();
        Bench { server, scratch: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .env("NO_COLOR", "1")
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("WINDLASS_RESOURCE_BUNDLES", "bundle=bundle")
            .env("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8")
            .env("WINDLASS_RUNS", "true")
            .env("WINDLASS_RUNS_DIRECTORY", self.scratch.path().join("runs"))
            .env_remove("SSH_AUTH_SOCK")
            .current_dir(self.scratch.path())
            .stdin(Stdio::null())
            .args(arguments);
        command
    }

    /// An operator, and the address of its probes. What it says is in a file.
    pub(crate) fn operator(&self, name: &str, more: &[&str]) -> Operator {
        self.operator_as(&self.server.kubeconfig(), name, more)
    }

    /// One with the rights of a kubeconfig.
    pub(crate) fn operator_as(&self, kubeconfig: &std::path::Path, name: &str, more: &[&str]) -> Operator {
        let command = self.command(&[]);
        self.start_operator(command, kubeconfig, name, more)
    }

    /// One that is the first process of what it sees, as in a container. Needs root.
    fn operator_in_a_container(&self, name: &str) -> Operator {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", env!("CARGO_BIN_EXE_windlass")]);
        let own = self.command(&[]);
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(self.scratch.path());
        self.start_operator(command, &self.server.kubeconfig(), name, &[])
    }

    fn start_operator(
        &self,
        mut command: Command,
        kubeconfig: &std::path::Path,
        name: &str,
        more: &[&str],
    ) -> Operator {
        let address = format!("127.0.0.1:{}", free_port());
        let log = self.scratch.path().join(name);
        let file = std::fs::File::create(&log).unwrap();
        let playbooks = crate::root().join("playbooks").display().to_string();
        let options = ["operator", "--look-every", "3600", "--listen", &address, "--playbooks", &playbooks];
        let command = command.args(options).args(more).env("KUBECONFIG", kubeconfig);
        let command = command.stdout(file.try_clone().unwrap()).stderr(file);
        Operator { process: command.spawn().unwrap(), address, log }
    }

    pub(crate) fn deployment(&self) -> Json {
        self.server.get(&["kd", "prod"]).unwrap()
    }

    /// What `kubectl apply -k` creates, beside the definitions.
    pub(crate) fn apply_rights(&self) {
        let directory = crate::root().join("packaging/kubernetes/base").display().to_string();
        let built = self.server.kubectl(&["kustomize", &directory], "").unwrap();
        // An old server takes no rules; they are there already without these.
        let others = built.split("---\n").filter(|document| !document.contains("CustomResourceDefinition"));
        self.server.apply(&others.collect::<Vec<_>>().join("---\n"));
    }

    /// The options of the operator that is shipped, without the address of its probes; the file that it mounts is in the scratch directory.
    fn shipped_options(&self) -> Vec<String> {
        let directory = crate::root().join("packaging/kubernetes/jobs").display().to_string();
        let built = self.server.kubectl(&["kustomize", &directory], "").unwrap();
        let documents: Vec<Json> = built.split("---\n").map(|text| serde_yaml::from_str(text).unwrap()).collect();
        let of_kind = |kind: &str| documents.iter().filter(|it| it["kind"] == kind).cloned().collect::<Vec<Json>>();
        let deployment = of_kind("Deployment").remove(0);
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            assert_eq!(container[probe]["httpGet"]["path"], path);
        }
        let mount = container["volumeMounts"].as_array().unwrap().iter().find(|it| it["name"] == "job").unwrap();
        let volume = pod["volumes"].as_array().unwrap().iter().find(|it| it["name"] == "job").unwrap();
        let settings = of_kind("ConfigMap");
        let is_named = |it: &&Json| it["metadata"]["name"] == volume["configMap"]["name"];
        let template = settings.iter().find(is_named).unwrap()["data"]["job.yaml"].as_str().unwrap();
        let job: Json = serde_yaml::from_str(template).unwrap();
        assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["image"], container["image"]);
        std::fs::write(self.scratch.path().join("job.yaml"), template).unwrap();
        let mounted = format!("{}/job.yaml", mount["mountPath"].as_str().unwrap());
        let here = self.scratch.path().join("job.yaml").display().to_string();
        let words = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words = words.map(|word| word.replace(&mounted, &here)).filter(|word| !word.starts_with("--listen="));
        let words: Vec<String> = words.collect();
        assert_eq!(words[0], "operator");
        assert!(words.iter().any(|word| *word == format!("--job-template={here}")), "{words:?}");
        words[1..].to_vec()
    }

    /// A kubeconfig with the rights of an account.
    pub(crate) fn kubeconfig_of(&self, namespace: &str, account: &str) -> std::path::PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}"#;
        let answer = self.server.kubectl(&["create", "--raw", &path, "-f", "-"], request).unwrap();
        let token = serde_json::from_str::<Json>(&answer).unwrap()["status"]["token"].as_str().unwrap().to_owned();
        let kubeconfig = self.scratch.path().join(account);
        let mut config: Json = serde_yaml::from_str(&self.server.whole_kubeconfig()).unwrap();
        config["users"] = serde_json::json!([{"name": "admin", "user": {"token": token}}]);
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        kubeconfig
    }

    pub(crate) fn run(&self, name: &str) -> Json {
        self.server.get(&["runs", name]).unwrap()
    }

    pub(crate) fn create_run(&self, name: &str, spec: &str) {
        let text = format!("apiVersion: windlass.dev/v1alpha1\nkind: Run\nmetadata: {{name: {name}}}\nspec: {spec}\n");
        self.server.kubectl(&["create", "-f", "-"], &text).unwrap();
    }
}

pub(crate) struct Operator {
    process: Child,
    address: String,
    log: std::path::PathBuf,
}

impl Operator {
    /// The answer to a request, with its head; empty if nobody listens.
    fn ask(&self, path: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return String::new() };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn leads(&self) -> bool {
        self.ask("/metrics").contains("windlass_leader 1")
    }

    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Ends it as Kubernetes does.
    fn terminate(mut self) {
        let id = i32::try_from(self.process.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::TERM)
            .unwrap();
        assert!(self.process.wait().unwrap().success(), "{}", self.words());
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Waits for something that must come.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(180), "never: {what}: {}", otherwise());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The status and the reason of a condition.
pub(crate) fn condition(object: &Json, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.map_or(String::new(), |found| {
        for field in ["status", "reason", "message", "lastTransitionTime"] {
            assert!(found[field].as_str().is_some_and(|text| !text.is_empty()), "{kind} has no {field}: {found}");
        }
        assert!(found["observedGeneration"].is_i64(), "{found}");
        format!("{} {}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
    })
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn an_operator_says_what_it_sees_and_one_of_two_works() {
    let bench = Bench::start();
    // Whoever may not read is told so at the start.
    let refused = bench.command(&["operator", "--context", "reader"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success()
            && words.contains("this account may not get karmadadeployments.windlass.dev")
            && words.contains("update runs/status.windlass.dev"),
        "{words}"
    );

    bench.server.apply(DEPLOYMENT);
    let lease = ["--lease-namespace", "default"];
    let first = bench.operator("first", &lease);
    until("the first leads", || first.leads(), || first.words());
    let second = bench.operator("second", &lease);
    until("the second is ready", || second.ask("/readyz").contains("200 OK"), || second.words());
    // Every condition is there after the first look, and the host that does not answer is named.
    let is_looked = || condition(&bench.deployment(), "HostsReachable") == "False HostsUnreachable";
    until("the host is found unreachable", is_looked, || format!("{:#} {}", bench.deployment(), first.words()));
    let deployment = bench.deployment();
    for kind in [
        "Available",
        "UpToDate",
        "Progressing",
        "Degraded",
        "Paused",
        "Blocked",
        "HostsReachable",
        "EtcdHealthy",
        "ComponentsHealthy",
        "MembersJoined",
        "CertificatesValid",
        "Drifted",
        "Deleting",
        "Ready",
    ] {
        assert!(!condition(&deployment, kind).is_empty(), "no condition {kind}");
    }
    assert_ne!(condition(&deployment, "Ready").split(' ').next(), Some("True"));
    let text = deployment.to_string();
    assert!(text.contains("these hosts do not answer: cp-1"), "{text}");
    assert_eq!(deployment["status"]["observedGeneration"], deployment["metadata"]["generation"]);
    assert!(first.ask("/healthz").contains("200 OK"));
    let metrics = first.ask("/metrics");
    assert!(
        metrics
            .contains("windlass_condition{namespace=\"default\",deployment=\"prod\",condition=\"HostsReachable\"} 0"),
        "{metrics}"
    );
    assert!(!second.leads());
    figures_of_alerts_are_there(&metrics, &deployment);

    // A look that fails is said, too.
    let broken = bench.operator("broken", &["--worker", "/bin/false", "--namespace", "broken"]);
    bench.server.kubectl(&["create", "namespace", "broken"], "").unwrap();
    bench.server.apply(&DEPLOYMENT.replace("namespace: default", "namespace: broken"));
    let of_broken = || bench.server.get(&["kd", "prod", "-n", "broken"]).unwrap();
    let is_said = || condition(&of_broken(), "HostsReachable") == "Unknown LookFailed";
    until("the look has failed", is_said, || format!("{:#} {}", of_broken(), broken.words()));
    drop(broken);

    // Nothing is written as long as nothing changes.
    let version = || bench.deployment()["metadata"]["resourceVersion"].clone();
    let before = version();
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(before, version(), "the status is written again and again");

    // At once, as the first gives the Lease back.
    first.terminate();
    let since = Instant::now();
    until("the second leads", || second.leads(), || second.words());
    let handed_over = since.elapsed();
    let third = bench.operator("third", &lease);
    until("the third is ready", || third.ask("/readyz").contains("200 OK"), || third.words());
    drop(second);
    let since = Instant::now();
    until("the third leads", || third.leads(), || third.words());
    assert!(since.elapsed() > handed_over, "a Lease that was given back is taken sooner than one whose holder is gone");

    // A paused deployment is looked at, and no Run begins.
    bench.server.kubectl(&["patch", "kd", "prod", "--type=merge", "-p", r#"{"spec": {"paused": true}}"#], "").unwrap();
    bench.create_run("waits", "{deployment: prod, operation: Apply}");
    let is_paused = || condition(&bench.deployment(), "Blocked") == "True Paused";
    until("the run waits", is_paused, || format!("{:#} {}", bench.deployment(), third.words()));
    assert_eq!(bench.run("waits")["status"]["attempts"], Json::Null);
    bench.server.kubectl(&["patch", "run", "waits", "--type=merge", "-p", r#"{"spec": {"stop": true}}"#], "").unwrap();
    let is_stopped = || condition(&bench.run("waits"), "Succeeded") == "False Stopped";
    until("the run is ended", is_stopped, || format!("{:#} {}", bench.run("waits"), third.words()));
    third.terminate();
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn of_two_workers_one_does_the_run_and_says_how_it_ended() {
    let bench = Bench::start();
    bench.server.apply(DEPLOYMENT);
    let playbooks = crate::root().join("playbooks").display().to_string();
    bench.create_run("one", "{deployment: prod, operation: Apply}");
    let work = |run: &str| {
        let arguments = ["worker", "-f", "kube:default/prod", "--run", run, "--playbooks", &playbooks];
        bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let workers = [work("one"), work("one")];
    let outputs = workers.map(|worker| worker.wait_with_output().unwrap());
    let words = outputs.each_ref().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    // The host cannot be reached, so that the lock cannot be taken.
    let run = bench.run("one");
    assert!(condition(&run, "Succeeded").starts_with("False "), "{run:#} {words:?}");
    assert_eq!(run["status"]["attempts"], 1, "{words:?}");
    let other = |text: &String| {
        text.contains("has claimed the run") || text.contains("does the run one") || text.contains("has ended")
    };
    assert_eq!(words.iter().filter(|text| other(text)).count(), 1, "{words:?}");
    let logs = bench.command(&["logs", run["status"]["worker"]["record"].as_str().unwrap()]).output().unwrap();
    let printed = String::from_utf8_lossy(&logs.stdout).into_owned() + &String::from_utf8_lossy(&logs.stderr);
    assert!(printed.contains("planning controlPlane"), "{printed} {words:?}");

    // One that has ended is not done again, nor one of another deployment.
    let again = work("one").wait_with_output().unwrap();
    assert!(again.status.success() && String::from_utf8_lossy(&again.stderr).contains("has ended"));
    bench.create_run("other", "{deployment: another, operation: Apply}");
    work("other").wait_with_output().unwrap();
    assert_eq!(condition(&bench.run("other"), "Succeeded"), "False OtherDeployment");
    let gone = work("nowhere").wait_with_output().unwrap();
    assert!(!gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    assert!(!bench.scratch.path().join("credentials").exists());
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn a_worker_whose_run_another_one_has_taken_over_stops_and_writes_nothing() {
    let bench = Bench::start();
    // A host that accepts connections and says nothing keeps the worker at work.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    bench.server.apply(&DEPLOYMENT.replace("port: 1,", &format!("port: {port},")));
    bench.create_run("taken", "{deployment: prod, operation: Apply}");
    let playbooks = crate::root().join("playbooks").display().to_string();
    let arguments = ["worker", "-f", "kube:default/prod", "--run", "taken", "--playbooks", &playbooks];
    let worker = bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let record = || bench.run("taken")["status"]["worker"]["record"].clone();
    until("the run is claimed", || record().is_string(), String::new);
    // As another worker does after a minute without a sign of life.
    let mut run = bench.run("taken");
    let first = run["status"]["worker"]["record"].clone();
    run["status"]["worker"]["record"] = "another".into();
    run["status"]["attempts"] = 2.into();
    let status = "/apis/windlass.dev/v1alpha1/namespaces/default/runs/taken/status";
    until(
        "the run is another worker's",
        || {
            run["metadata"]["resourceVersion"] = bench.run("taken")["metadata"]["resourceVersion"].clone();
            bench.server.kubectl(&["replace", "--raw", status, "-f", "-"], &run.to_string()).is_ok()
        },
        String::new,
    );
    let output = worker.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("another process does the run taken now"), "{words}");
    let run = bench.run("taken");
    assert_eq!(run["status"]["worker"]["record"], "another", "{first} has written after it was replaced: {run:#}");
    assert_eq!(condition(&run, "Succeeded"), "Unknown Running", "{words}");
    assert_eq!(run["status"]["completionTime"], Json::Null);
    drop(silent);
}

/// The alerts and the dashboard are about figures and conditions that there are.
fn figures_of_alerts_are_there(metrics: &str, deployment: &Json) {
    let figure = regex::Regex::new(r#"(windlass_[a-z_]+)(?:\{condition="([A-Za-z]+)")?"#).unwrap();
    for file in ["alerts.yaml", "dashboard.json"] {
        let text = std::fs::read_to_string(crate::root().join("packaging/monitoring").join(file)).unwrap();
        let text = text.replace("\\\"", "\"");
        let mut found = 0;
        for captures in figure.captures_iter(&text) {
            let name = &captures[1];
            let kind = format!("# TYPE {} ", name.trim_end_matches("_total"));
            // Of a host that does not answer, no certificate is known.
            let is_there = metrics.contains(&kind) || name == "windlass_certificate_days_left";
            assert!(is_there, "{file}: there is no {name} in {metrics}");
            if let Some(kind) = captures.get(2) {
                assert!(!condition(deployment, kind.as_str()).is_empty(), "{file}: there is no condition {kind:?}");
            }
            found += 1;
        }
        assert!(found > 8, "{file}: {found}");
    }
}

/// The kernel ends all processes of a container with its first one: a worker that was killed would leave its run to be resumed a minute
/// later.
#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR, and root"]
fn an_operator_in_a_container_ends_after_its_workers() {
    let bench = Bench::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    bench.server.apply(&DEPLOYMENT.replace("port: 1,", &format!("port: {port},")));
    bench.create_run("one", "{deployment: prod, operation: Apply}");
    let mut operator = bench.operator_in_a_container("operator");
    let shown = || format!("{:#} {}", bench.run("one"), operator.words());
    let record = || bench.run("one")["status"]["worker"]["record"].as_str().unwrap_or_default().to_owned();
    until("the run is claimed", || !record().is_empty(), shown);
    let first = record();
    let unshare = operator.process.id();
    let child = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
    let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    // A process whose parent has ended becomes a child of the first one, which reaps it when it ends.
    let first_process = child.as_raw_pid().to_string();
    let orphan = ["--target", &first_process, "--pid", "sh", "-c", "setsid sleep 5 & exit"];
    assert!(Command::new("nsenter").args(orphan).status().unwrap().success());
    // Each thread has its own.
    let children = || {
        let threads = std::fs::read_dir(format!("/proc/{first_process}/task")).unwrap();
        let of_thread = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
        threads.filter_map(|thread| of_thread(thread.ok()?).ok()).collect::<String>()
    };
    assert!(children().split_whitespace().count() > 1, "the operator and the orphan: {}", children());
    until("the orphan is gone", || children().split_whitespace().count() == 1, children);
    rustix::process::kill_process(child, rustix::process::Signal::TERM).unwrap();
    assert!(operator.process.wait().unwrap().success(), "{}", operator.words());
    // The worker has given the run back: it is resumed at once, and this was no failure.
    assert_eq!(condition(&bench.run("one"), "Succeeded"), "Unknown Interrupted", "{}", operator.words());
    let next = bench.operator("next", &[]);
    until("another worker does the run", || ![&first, ""].contains(&&*record()), || next.words());
    assert_eq!(bench.run("one")["status"]["attempts"], 1, "{}", next.words());
    drop(silent);
}

/// The rights that are shipped are enough, and lead to no other Secrets.
#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn an_operator_works_with_the_rights_that_are_shipped() {
    let bench = Bench::start();
    bench.apply_rights();
    bench.server.apply(DEPLOYMENT);

    let kubeconfig = bench.kubeconfig_of("windlass-system", "windlass-operator");
    let options = bench.shipped_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let first = bench.operator_as(&kubeconfig, "first", &options);
    let is_looked = || condition(&bench.deployment(), "HostsReachable") == "False HostsUnreachable";
    until("the hosts are looked at", is_looked, || format!("{:#} {}", bench.deployment(), first.words()));
    let events = || bench.server.kubectl(&["get", "events", "-o", "custom-columns=:.reason,:.message"], "").unwrap();
    until("an event is sent", || events().contains("HostsUnreachable"), events);
    assert!(events().contains("these hosts do not answer: cp-1"), "{}", events());
    first.terminate();

    // Secrets only where somebody has given the rights of a worker.
    std::fs::create_dir(bench.scratch.path().join("copy")).unwrap();
    std::fs::write(bench.scratch.path().join("copy/key"), "key").unwrap();
    let credentials = |arguments: &[&str]| {
        let mut command = bench.command(&[&["credentials"], arguments].concat());
        let output = command.env("KUBECONFIG", &kubeconfig).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let import = ["import", "-f", "kube:default/prod", "copy"];
    let (well, words) = credentials(&import);
    assert!(!well && words.contains("cannot get resource \"secrets\""), "{words}");
    let bind = [
        "create",
        "rolebinding",
        "windlass-worker",
        "--clusterrole=windlass-worker",
        "--serviceaccount=windlass-system:windlass-operator",
    ];
    bench.server.kubectl(&bind, "").unwrap();
    // The server's cache of bindings takes a moment.
    until("the rights are there", || credentials(&import).0, || credentials(&import).1);
    std::fs::write(bench.scratch.path().join("copy/key"), "another").unwrap();
    let (well, words) = credentials(&["import", "--replace", "-f", "kube:default/prod", "copy"]);
    assert!(well, "{words}");
    let (well, words) = credentials(&["delete", "-f", "kube:default/prod", "--name", "prod"]);
    assert!(well, "{words}");

    let can = |namespace: &str, resource: &str| {
        let who = "--as=system:serviceaccount:windlass-system:windlass-operator";
        bench.server.kubectl(&["auth", "can-i", "get", resource, "-n", namespace, who], "").is_ok()
    };
    assert!(can("default", "secrets"));
    for namespace in ["kube-system", "windlass-system"] {
        assert!(!can(namespace, "secrets"), "{namespace}");
    }
    assert!(!can("default", "pods"));
}

/// `kubectl apply -k` has the definitions of this version.
#[test]
fn the_shipped_definitions_are_those_that_windlass_prints() {
    let path = crate::root().join("packaging/kubernetes/base/definitions.yaml");
    let printed = Command::new(env!("CARGO_BIN_EXE_windlass")).arg("crd").output().unwrap();
    let printed = format!("# windlass crd\n{}", String::from_utf8(printed.stdout).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shipped == printed, "outdated: UPDATE_DOCS=1 cargo test --test kubernetes shipped");
}
