//! `-i kube:[CONTEXT/]NAMESPACE/NAME`: a KarmadaDeployment of a real API server as the inventory, with Secrets beside it.

use std::path::Path;

use assert_cmd::Command;

use crate::server::Server;
use crate::{definitions, definitions_without_rules, programs};

/// The password and the member's kubeconfig are Secrets of the same API server.
const DEPLOYMENT: &str = r#"
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: prod, namespace: default}
spec:
  bundle: bundle
  hosts: [{name: cp-1, address: 127.0.0.1, port: 1, fingerprint: 'SHA256:0123456789012345678901234567890123456789012'}]
  ssh: {becomePassword: {secret: {name: sudo, key: password}}}
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
  members:
    - {name: north, kubeconfig: {secret: {name: north, key: kubeconfig}}}
    - {name: east, kubeconfig: {secret: {name: north, key: config}}}
    - {name: south, kubeconfig: {secret: {name: south, key: kubeconfig}}}
"#;

/// Uses both secrets: shows what a digest tells of one, and asks the API with the other.
const PLAYBOOK: &str = "
- hosts: members
  gather_facts: false
  tasks:
    - {debug: {msg: \"{{ ansible_become_password | hash('sha1') }}\"}}
    - {name: Ask the member, k8s_info: {kubeconfig: '{{ member_kubeconfig_content }}', kind: Namespace, name: kube-system}, register: found}
    - {assert: {that: found.resources | length == 1}}
";

/// What windlass prints with this kubeconfig, and whether it ended well.
fn windlass(kubeconfig: &Path, directory: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .env("NO_COLOR", "1")
        .env_remove("WINDLASS_KUBERNETES_DIR")
        .env("KUBECONFIG", kubeconfig)
        .env("WINDLASS_RESOURCE_BUNDLES", "bundle=bundle")
        .env("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8")
        .current_dir(directory);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn a_resource_of_an_api_server_is_an_inventory_and_its_secrets_are_read_there() {
    let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
    let mut server = Server::start(&etcd, &apiserver);
    let kubeconfig = server.kubeconfig();
    let scratch = tempfile::tempdir().unwrap();
    server.ready();
    let refused = |source: &str| {
        let (well, reported) = windlass(&kubeconfig, scratch.path(), &["inventory", "-i", source, "--list"]);
        assert!(!well, "{reported}");
        reported.trim().to_owned()
    };

    let unknown = "error: cannot read kube:default/prod: the API server does not serve KarmadaDeployments; install their definitions: windlass crd | kubectl apply -f -";
    assert_eq!(refused("kube:default/prod"), unknown);
    server.apply(&if server.knows_rules() { definitions() } else { definitions_without_rules() });
    let wait = ["wait", "--for=condition=Established", "--timeout=300s", "crd/karmadadeployments.windlass.dev"];
    server.kubectl(&wait, "").unwrap();
    server.apply(DEPLOYMENT);
    server.kubectl(&["create", "namespace", "ops"], "").unwrap();
    server.kubectl(&["create", "secret", "generic", "sudo", "--from-literal=password=hunter2-long"], "").unwrap();
    std::fs::write(scratch.path().join("north"), server.whole_kubeconfig()).unwrap();
    let from = format!("--from-file=kubeconfig={}", scratch.path().join("north").display());
    server.kubectl(&["create", "secret", "generic", "north", &from], "").unwrap();

    for source in ["kube:default/prod", "kube:admin/default/prod"] {
        let (well, reported) = windlass(&kubeconfig, scratch.path(), &["inventory", "-i", source, "--list"]);
        assert!(well, "{reported}");
        let list: serde_json::Value = serde_json::from_str(&reported[..=reported.rfind("\n}").unwrap() + 1]).unwrap();
        let vars = &list["_meta"]["hostvars"];
        assert_eq!(vars["cp-1"]["ansible_port"], 1, "{reported}");
        assert_eq!(
            vars["cp-1"]["ansible_become_password"],
            "a secret: the Kubernetes Secret default/sudo, key password"
        );
        assert_eq!(
            vars["north"]["member_kubeconfig_content"],
            "a secret: the Kubernetes Secret default/north, key kubeconfig"
        );
        assert_eq!(list["members"]["hosts"], serde_json::json!(["north", "east", "south"]), "{reported}");
    }

    // Read when a task needs them, and not shown, how loud it may be.
    let playbook = scratch.path().join("playbook.yml");
    std::fs::write(&playbook, PLAYBOOK).unwrap();
    let play = ["playbook", "-vvv", "-i", "kube:default/prod", "playbook.yml"];
    let (well, reported) = windlass(&kubeconfig, scratch.path(), &play);
    assert!(!well, "{reported}");
    // sha1 of hunter2-long
    assert!(reported.contains("e4a377423f539e3ccb0d3b3c765630d17f350c08"), "{reported}");
    assert!(!reported.contains("hunter2-long") && !reported.contains("client-key-data"), "{reported}");
    for said in [
        "the Kubernetes Secret default/north, key config: it does not have this key, only kubeconfig",
        "the Kubernetes Secret default/south, key kubeconfig: the Secret does not exist",
    ] {
        assert!(reported.contains(said), "{said} in {reported}");
    }
    let recap = reported.lines().find(|line| line.starts_with("north ")).unwrap_or_else(|| panic!("{reported}"));
    assert!(recap.contains("ok=3 ") && recap.contains("failed=0 "), "{reported}");

    // For a deployment as a whole, too: it gets as far as the host.
    let playbooks = crate::root().join("playbooks").display().to_string();
    let (well, reported) =
        windlass(&kubeconfig, scratch.path(), &["plan", "-f", "kube:default/prod", "--playbooks", &playbooks]);
    assert!(
        reported.contains("Plan for prod")
            && reported.contains("cannot connect to cp-1 (127.0.0.1:1): connection refused"),
        "{well} {reported}"
    );

    let may_not = "access denied: User \"reader\" cannot get resource \"karmadadeployments\" in API group \"windlass.dev\" in the namespace \"default\"";
    for (source, why) in [
        ("kube:default/test", "the namespace default has no KarmadaDeployment test, only prod"),
        ("kube:ops/prod", "the namespace ops has no KarmadaDeployment prod"),
        ("kube:nowhere/prod", "no such namespace: nowhere"),
        ("kube:other/default/prod", "your kubeconfig has no context other, only admin, reader"),
        ("kube:reader/default/prod", may_not),
    ] {
        assert_eq!(refused(source), format!("error: cannot read {source}: {why}"));
    }
    let words = refused("kube:prod");
    assert!(words.contains("write kube:NAMESPACE/NAME or kube:CONTEXT/NAMESPACE/NAME"), "{words}");

    // Whoever may read the resource may not read its Secrets.
    server
        .kubectl(&["create", "clusterrole", "kd", "--verb=get", "--resource=karmadadeployments.windlass.dev"], "")
        .unwrap();
    server.kubectl(&["create", "clusterrolebinding", "kd", "--clusterrole=kd", "--user=reader"], "").unwrap();
    let play = ["playbook", "-i", "kube:reader/default/prod", "--limit", "north", "playbook.yml"];
    let (well, reported) = windlass(&kubeconfig, scratch.path(), &play);
    let why =
        "access denied: User \"reader\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\"";
    assert!(!well && reported.contains(why), "{reported}");

    let nowhere = scratch.path().join("nowhere");
    let (_, reported) = windlass(&nowhere, scratch.path(), &["inventory", "-i", "kube:default/prod", "--list"]);
    assert!(reported.contains(&format!("cannot read the kubeconfig {}: ", nowhere.display())), "{reported}");
    let text = server.whole_kubeconfig().replace(&server.url(), "https://127.0.0.1:1");
    std::fs::write(&nowhere, &text).unwrap();
    let (_, reported) = windlass(&nowhere, scratch.path(), &["inventory", "-i", "kube:default/prod", "--list"]);
    assert!(
        reported.contains("cannot reach the API server: ") && reported.contains("Connection refused"),
        "{reported}"
    );
    std::fs::write(&nowhere, text.replace("current-context: admin", "current-context: ''")).unwrap();
    let (_, reported) = windlass(&nowhere, scratch.path(), &["inventory", "-i", "kube:default/prod", "--list"]);
    assert!(reported.contains("your kubeconfig has no current context"), "{reported}");
}
