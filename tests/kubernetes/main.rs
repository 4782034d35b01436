//! `k8s` and `k8s_info` against a real kube-apiserver and etcd: every playbook in `cases/` checks itself by `assert`.
//! Resources of a real API server as inventories: `live.rs`. Members that join and leave: `members.rs`.
//! The Helm chart of the operator: `helm.rs`.
//! Not run unless asked for, as no registry has a kube-apiserver: put one, kube-controller-manager and kubectl into
//! `WINDLASS_KUBERNETES_DIR` (or `target/kubernetes/`, by `tests/kubernetes-binaries`), then
//! `cargo test --test kubernetes -- --ignored`.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

mod credentials;
mod helm;
mod jobs;
mod live;
mod members;
mod operator;
#[path = "../shared/port.rs"]
mod port;
mod server;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "../ssh/server.rs"]
mod sshd;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

use server::Server;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn programs() -> Option<(PathBuf, PathBuf)> {
    let named = std::env::var_os("WINDLASS_KUBERNETES_DIR").map(PathBuf::from);
    let directory = named.unwrap_or_else(|| root().join("target/kubernetes"));
    let beside = directory.join("etcd");
    let etcd = if beside.is_file() { beside } else { root().join("target/etcd/3.5/etcd") };
    let apiserver = directory.join("kube-apiserver");
    (apiserver.is_file() && etcd.is_file()).then_some((etcd, apiserver))
}

/// Runs a playbook; what it printed, as an error if it failed.
fn play(playbook: &Path, arguments: &[String]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .env("NO_COLOR", "1")
        .args(["playbook", "-D", "-v"])
        .args(arguments)
        .arg(playbook)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let words = format!("{}\n{}{}", playbook.display(), text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok(words) } else { Err(words) }
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn on_this_machine() -> Vec<String> {
    words(&["-i", "localhost,", "-c", "local"])
}

/// To this machine by way of an SSH server.
fn over(sshd: &sshd::Server) -> Vec<String> {
    let port = format!("ansible_port={}", sshd.port);
    let key = sshd.path("id").display().to_string();
    let known = format!("-o IdentityAgent=none -o UserKnownHostsFile={}", sshd.path("known_hosts").display());
    words(&["-i", "127.0.0.1,", "-u", "root", "-e", &port, "--private-key", &key, "--ssh-common-args", &known])
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn every_case_holds_against_a_real_server_here_and_through_ssh() {
    let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
    let mut server = Server::start(&etcd, &apiserver);
    let of_server = words(&["-e", &format!("kubeconfig={} server={}", server.kubeconfig().display(), server.url())]);
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/kubernetes/cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|end| end == "yml"));
    cases.sort();
    assert!(cases.len() > 3);
    let here = [on_this_machine(), of_server.clone()].concat();
    server.until_ready(|| play(&root().join("tests/kubernetes/ready.yml"), &here).map(drop));
    let sshd = sshd::Server::start();
    let through = [over(&sshd), of_server].concat();
    let mut failed = Vec::new();
    for case in &cases {
        match play(case, &here) {
            Ok(reported) => failed.extend(wrongly_told(case, reported)),
            Err(reported) => failed.push(reported),
        }
    }
    failed.extend(play(&root().join("tests/kubernetes/through.yml"), &through).err());
    let dry = [here, words(&["--check"])].concat();
    failed.extend(play(&root().join("tests/kubernetes/dry_run.yml"), &dry).err());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn a_real_server_takes_our_definitions_and_refuses_bad_documents() {
    let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
    let mut server = Server::start(&etcd, &apiserver);
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), definitions_without_rules()).unwrap();
    let words = words(&[
        "-e",
        &format!("kubeconfig={} server={}", server.kubeconfig().display(), server.url()),
        "-e",
        &format!("crds={} documents={}", file.path().display(), root().join("tests/resources").display()),
    ]);
    let here = [on_this_machine(), words].concat();
    server.until_ready(|| play(&root().join("tests/kubernetes/ready.yml"), &here).map(drop));
    play(&root().join("tests/kubernetes/definitions.yml"), &here).unwrap_or_else(|reported| panic!("{reported}"));
}

/// What `windlass crd` prints.
fn definitions() -> String {
    let printed = Command::new(env!("CARGO_BIN_EXE_windlass")).args(["crd"]).output().unwrap();
    String::from_utf8(printed.stdout).unwrap()
}

/// The same as servers before 1.23 take it: they know no rules.
fn definitions_without_rules() -> String {
    let text = definitions();
    let documents = text.split("---\n").filter(|document| !document.is_empty());
    let documents = documents.map(|document| {
        let mut definition: serde_json::Value = serde_yaml::from_str(document).unwrap();
        without_rules(&mut definition);
        serde_yaml::to_string(&definition).unwrap()
    });
    documents.collect::<Vec<_>>().join("---\n")
}

fn without_rules(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(entries) => {
            entries.shift_remove("x-kubernetes-validations");
            entries.values_mut().for_each(without_rules);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

/// What the diffs must show, and must not.
fn wrongly_told(case: &Path, reported: String) -> Option<String> {
    let good = match case.file_stem().and_then(|name| name.to_str()) {
        Some("apply") => reported.contains("-  colour: red\n+  colour: blue\n"),
        // hunter2 and hunter3, and both in base64.
        Some("secrets") => {
            !["hunter", "aHVudGVyM"].iter().any(|secret| reported.contains(secret))
                && reported.contains("(hidden, changed)")
        }
        _ => true,
    };
    (!good).then_some(reported)
}

#[test]
fn a_host_that_forbids_forwarding_is_reported() {
    let sshd = sshd::Server::with("AllowTcpForwarding no");
    let reported = play(&root().join("tests/kubernetes/nowhere.yml"), &over(&sshd)).unwrap_err();
    assert!(reported.contains("the host's SSH server forbids it (AllowTcpForwarding)"), "{reported}");
}
