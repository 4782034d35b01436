//! Runs as Jobs: a real API server, its controller for Jobs, and a node that runs pods as processes. The host of the deployment
//! accepts connections and says nothing, so that a worker is at work as long as the test wants.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::operator::{Bench, DEPLOYMENT, condition, until};
use crate::programs;

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Bench {
    fn node(&self) -> Node {
        let program = crate::root().join("tests/kubernetes/node");
        let image = format!("windlass={}", env!("CARGO_BIN_EXE_windlass"));
        let mut command = Command::new(program);
        command.arg(self.server.url()).args(self.server.certificates()).arg(image);
        Node(command.current_dir(self.scratch.path()).spawn().unwrap())
    }

    /// The Job that the operator makes Jobs from.
    fn template(&self, kubeconfig: &Path) -> String {
        let here = self.scratch.path().display();
        let variable = |name: &str, value: String| json!({"name": name, "value": value});
        let container = json!({
            "name": "windlass",
            "image": "windlass",
            "env": [
                variable("HOME", here.to_string()),
                variable("KUBECONFIG", kubeconfig.display().to_string()),
                variable("WINDLASS_RESOURCE_BUNDLES", "bundle=bundle".to_owned()),
                variable("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8".to_owned()),
                variable("WINDLASS_RUNS", "true".to_owned()),
                variable("WINDLASS_RUNS_DIRECTORY", format!("{here}/runs")),
            ],
        });
        let path = self.scratch.path().join("job.yml");
        let pod = json!({"automountServiceAccountToken": false, "containers": [container]});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}});
        std::fs::write(&path, job.to_string()).unwrap();
        path.display().to_string()
    }

    fn list(&self, kind: &str) -> Vec<Json> {
        let all = self.server.get(&[kind, "-l", "app.kubernetes.io/managed-by=windlass"]).unwrap();
        all["items"].as_array().unwrap().clone()
    }

    /// The process of the pod that runs.
    fn process(&self) -> Option<Pid> {
        let pods = self.list("pods");
        let running = pods
            .iter()
            .find(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null())?;
        let id = running["status"]["containerStatuses"][0]["containerID"].as_str()?.strip_prefix("process://")?;
        Pid::from_raw(id.parse().ok()?)
    }
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn a_run_is_done_by_a_job_and_resumed_by_another_one() {
    let mut bench = Bench::start();
    let (_, apiserver) = programs().unwrap();
    bench.server.manage(&apiserver.with_file_name("kube-controller-manager"));
    let node = bench.node();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    bench.server.apply(&DEPLOYMENT.replace("port: 1,", &format!("port: {port},")));
    // A Run that is there at the start does not wait for the first look.
    bench.create_run("one", "{deployment: prod, operation: Apply}");
    bench.apply_rights();
    bench.server.kubectl(&["create", "serviceaccount", "windlass-runner"], "").unwrap();
    let of_operator = bench.kubeconfig_of("windlass-system", "windlass-operator");
    let of_jobs = bench.kubeconfig_of("default", "windlass-runner");
    let operator = bench.operator_as(&of_operator, "operator", &["--job-template", &bench.template(&of_jobs)]);
    let is_refused = || condition(&bench.deployment(), "Blocked") == "True ActionFailed";
    until("the operator may create no Job", is_refused, || format!("{:#} {}", bench.deployment(), operator.words()));
    for (role, account) in [
        ("windlass-jobs", "windlass-system:windlass-operator"),
        ("windlass-runner", "default:windlass-runner"),
        ("windlass-worker", "default:windlass-runner"),
    ] {
        let (role, account) = (format!("--clusterrole={role}"), format!("--serviceaccount={account}"));
        bench.server.kubectl(&["create", "rolebinding", &role[14..], &role, &account], "").unwrap();
    }
    let shown = || format!("{:#} {:#?} {}", bench.run("one"), bench.list("jobs"), operator.words());
    let record = || bench.run("one")["status"]["worker"]["record"].as_str().unwrap_or_default().to_owned();
    until("a pod has claimed the run", || !record().is_empty(), shown);
    let first = record();
    assert_eq!(condition(&bench.run("one"), "Succeeded"), "Unknown Running");
    let jobs = bench.list("jobs");
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    assert_eq!(jobs[0]["metadata"]["ownerReferences"][0]["name"], "one");

    // What it prints can be read and followed.
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new("bash");
        command.arg("-c").arg("exec -a kubectl-windlass \"$@\"").arg("bash").arg(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).env("KUBECONFIG", bench.server.kubeconfig()).env("WINDLASS_RUNS", "false");
        command
    };
    let printed = |arguments: &[&str]| {
        let output = kubectl(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let has_printed = || printed(&["logs", "one"]).contains("planning controlPlane");
    until("its output can be read", has_printed, || printed(&["logs", "one"]));
    let absent = printed(&["logs", "none"]);
    assert!(absent.contains("cannot read the Run none"), "{absent}");
    let follower = kubectl(&["logs", "one", "-f"]).stdout(std::process::Stdio::piped()).spawn().unwrap();

    // A pod that is sent away gives the run back, and that does not count.
    let pods = bench.list("pods");
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    bench.server.kubectl(&["delete", "pod", name, "--wait=false"], "").unwrap();
    until("another pod has claimed the run", || ![&first, ""].contains(&&*record()), shown);
    assert_eq!(bench.run("one")["status"]["attempts"], 1, "{}", shown());

    // One that is killed is replaced by another Job, once it was silent for a minute.
    let second = record();
    until("its process is known", || bench.process().is_some(), shown);
    let second_has_printed = || {
        let printed = printed(&["logs", "one"]);
        printed.contains("planning controlPlane") && !printed.contains("its process was stopped")
    };
    until("the second has printed", second_has_printed, || printed(&["logs", "one"]));
    kill_process(bench.process().unwrap(), Signal::KILL).unwrap();
    until("a third pod has claimed the run", || record() != second, shown);
    assert_eq!(bench.run("one")["status"]["attempts"], 2, "{}", shown());

    // The host refuses connections now: the run ends, and no further Job is made for it.
    drop(silent);
    let has_ended = || condition(&bench.run("one"), "Succeeded").starts_with("False ");
    until("the run ends", has_ended, shown);
    let jobs = bench.list("jobs").len();
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(bench.list("jobs").len(), jobs, "{}", shown());

    // Who followed has seen all three processes.
    let followed = String::from_utf8(follower.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(followed.matches("etcd has one member").count(), 3, "{followed}");
    let report = printed(&["report", "prod"]);
    for expected in
        ["kind: KarmadaDeployment", "kind: Run", "kind: Job", "kind: Pod", "kind: Event", "reason: RunFailed"]
    {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    assert!(!report.contains("WINDLASS_RESOURCE"), "settings of pods are left out: {report}");

    // They go with it.
    bench.server.kubectl(&["delete", "run", "one"], "").unwrap();
    until("the Jobs are gone", || bench.list("jobs").is_empty(), shown);
    drop((operator, node));
}
