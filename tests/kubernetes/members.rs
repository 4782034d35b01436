//! Members join a control plane and leave it, by the playbooks that do it everywhere, without Karmada: one API server is
//! the control plane, with definitions of ours for Karmada's kinds and somebody who says that Clusters are ready; another
//! one is the member. What Karmada's own controllers make of it: `tests/e2e/karmada-cases/32_*` and those that follow.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::{Value as Json, json};

use crate::server::{Server, kubectl};
use crate::{programs, root};

const PASSWORD: &str = "the vault's";

/// A deployment beside its credentials, as a person has it.
struct Site {
    directory: tempfile::TempDir,
    plane: Server,
    member: Server,
}

impl Site {
    fn start() -> Site {
        let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
        let start = || {
            let mut server = Server::start(&etcd, &apiserver);
            server.ready();
            server.manage(&apiserver.parent().unwrap().join("kube-controller-manager"));
            server
        };
        let site = Site { directory: tempfile::tempdir().unwrap(), plane: start(), member: start() };
        site.plane.apply(&std::fs::read_to_string(root().join("tests/kubernetes/karmada.yml")).unwrap());
        for kind in ["clusters.cluster.karmada.io", "works.work.karmada.io"] {
            let definition = format!("crd/{kind}");
            site.plane.kubectl(&["wait", "--for=condition=Established", "--timeout=300s", &definition], "").unwrap();
            // Whoever is first is told to come back (429), which kubectl does.
            site.plane.kubectl(&["get", kind, "-A"], "").unwrap();
        }
        for directory in ["credentials", "group_vars"] {
            std::fs::create_dir(site.at(directory)).unwrap();
        }
        site.write("credentials/trial-admin.kubeconfig", &site.plane.whole_kubeconfig());
        site.write("member.kubeconfig", &site.member.whole_kubeconfig());
        site.write("password", PASSWORD);
        // Its one host is this machine.
        let vars = format!("ansible_connection: local\nkarmada_ports: {{apiserver: {}}}\n", site.plane.port());
        site.write("group_vars/all.yml", &vars);
        let (well, reported) = site.windlass(&["vault", "encrypt", "member.kubeconfig"]);
        assert!(well, "{reported}");
        site
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    /// The deployment with these lines below `members:`.
    fn has_members(&self, lines: &str) {
        let text = format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {{name: trial}}\nspec:\n  \
             bundle: none\n  instance: trial\n  hosts: [{{name: cp-1}}]\n  controlPlane: {{hosts: [cp-1]}}\n  \
             etcd: {{managed: {{hosts: [cp-1]}}}}\n  members:{lines}\n"
        );
        self.write("karmada.yaml", &text);
    }

    /// A line of a member that is the second API server; `name` and what else is said of it.
    fn member(&self, name: &str, more: &str) -> String {
        let port = self.member.port();
        format!(
            "\n    - {{name: {name}, kubeconfig: {{file: member.kubeconfig}}, apiEndpoint: 'https://0.0.0.0:{port}'{more}}}"
        )
    }

    fn windlass(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .env("NO_COLOR", "1")
            .env_remove("WINDLASS_KUBERNETES_DIR")
            .env("ANSIBLE_VAULT_PASSWORD_FILE", self.at("password"));
        let output = command.current_dir(self.directory.path()).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }

    fn play(&self, playbook: &str, more: &[&str]) -> (bool, String) {
        let path = root().join("playbooks").join(playbook).display().to_string();
        self.windlass(&[&["playbook", "-vv", "-i", "karmada.yaml", "-e", "member_timeout=30"], more, &[&path]].concat())
    }

    /// What windlass says of who joined, in one line of JSON, and all that it said.
    fn standing(&self, more: &[&str]) -> (Json, String) {
        let text = "- {hosts: del_member, gather_facts: false, tasks: []}\n- hosts: karmada_control_plane\n  gather_facts: false\n  tasks:\n    - debug: {msg: \"STANDING {{ {'add': groups.add_member, 'del': groups.del_member, 'foreign': foreign_members | default([])} | to_json | b64encode }} \"}\n";
        self.write("standing.yml", text);
        let (_, reported) = self.windlass(&[&["playbook", "-i", "karmada.yaml"], more, &["standing.yml"]].concat());
        let said =
            reported.split_once("STANDING ").unwrap_or_else(|| panic!("{reported}")).1.split(' ').next().unwrap();
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.decode(said).unwrap();
        (serde_json::from_slice(&text).unwrap(), reported)
    }
}

/// Says of every Cluster that it is ready, as Karmada's controllers do; ends with the value.
struct Readiness {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Readiness {
    fn of(programs: &Path, kubeconfig: PathBuf) -> Readiness {
        let over = Arc::new(AtomicBool::new(false));
        let (ended, programs) = (over.clone(), programs.to_owned());
        let ready = r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#;
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let all = kubectl(&programs, &kubeconfig, &["get", "clusters.cluster.karmada.io", "-o", "name"], "");
                for name in all.unwrap_or_default().lines() {
                    kubectl(&programs, &kubeconfig, &["patch", name, "--type=merge", "-p", ready], "").ok();
                }
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        Readiness { over, thread: Some(thread) }
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn recap<'a>(reported: &'a str, host: &str) -> &'a str {
    let line = reported.lines().find(|line| line.starts_with(host) && line.contains(": ok="));
    line.unwrap_or_else(|| panic!("{reported}"))
}

fn names(list: &Json) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// What is of Karmada in a member: accounts, secrets, roles and whom they are given to.
fn accounts(member: &Server) -> Vec<String> {
    let mut found = Vec::new();
    for kind in ["serviceaccounts", "secrets"] {
        let list = member.get(&[kind, "-n", "karmada-cluster"]).unwrap();
        found.extend(names(&list).iter().map(|name| format!("{kind}/{name}")));
    }
    for kind in ["clusterroles", "clusterrolebindings"] {
        let list = member.get(&[kind]).unwrap();
        let ours = names(&list).into_iter().filter(|name| name.contains("karmada") || name.contains("windlass"));
        found.extend(ours.map(|name| format!("{kind}/{name}")));
    }
    found
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn a_member_joins_is_left_alone_and_leaves_by_the_lines_of_a_resource() {
    let site = Site::start();
    let _readiness = Readiness::of(programs().unwrap().1.parent().unwrap(), site.plane.kubeconfig());
    let uid = |server: &Server, namespace: &str| {
        server.get(&["namespace", namespace]).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let mark = site.plane.get(&["configmap", "windlass", "-n", "karmada-system"]).unwrap()["metadata"]["uid"].clone();

    // One that nobody reaches beside it: named, and no obstacle.
    site.write("nowhere.kubeconfig", &site.member.whole_kubeconfig().replace(&site.member.url(), "https://0.0.0.0:1"));
    let nowhere = "\n    - {name: nowhere, kubeconfig: {file: nowhere.kubeconfig}}";
    let north = site.member(
        "north",
        ", provider: metal, region: here, labels: {tier: gold}, taints: [{key: new, effect: NoSchedule}]",
    );
    site.has_members(&format!("{north}{nowhere}"));
    assert_eq!(site.standing(&[]).0, json!({"add": ["north", "nowhere"], "del": [], "foreign": []}));
    let (well, reported) = site.play("add-member.yml", &[]);
    assert!(
        !well && reported.contains("fatal: [nowhere]: ") && reported.contains("0.0.0.0:1: Connection refused"),
        "{reported}"
    );
    assert!(recap(&reported, "north").contains("failed=0"), "{reported}");

    // What karmadactl join leaves, on both sides, and our marks.
    let karmada = json!({"karmada.io/system": "true"});
    let namespace = site.member.get(&["namespace", "karmada-cluster"]).unwrap();
    assert_eq!(namespace["metadata"]["labels"]["karmada.io/system"], "true");
    assert_eq!(namespace["metadata"]["annotations"]["windlass.dev/deployment-uid"], mark);
    let role = "karmada-controller-manager:karmada-north";
    let all = [
        "serviceaccounts/karmada-impersonator",
        "serviceaccounts/karmada-north",
        "secrets/karmada-impersonator",
        "secrets/karmada-north",
        &format!("clusterroles/{role}"),
        &format!("clusterrolebindings/{role}"),
    ];
    let found = accounts(&site.member);
    for name in all {
        assert!(found.iter().any(|it| it == name), "{name} in {found:?}");
    }
    let others = |name: &&String| !all.contains(&name.as_str()) && !name.contains("/default");
    // Servers before 1.24 make a token for every account by themselves.
    let others: Vec<&String> = found.iter().filter(others).filter(|name| !name.contains("-token-")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(
        site.member.get(&["clusterrole", role]).unwrap()["rules"],
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["get"]}])
    );
    for account in ["karmada-impersonator", "karmada-north"] {
        let account = site.member.get(&["serviceaccount", account, "-n", "karmada-cluster"]).unwrap();
        assert_eq!(account["metadata"]["labels"], karmada);
    }
    let cluster = site.plane.get(&["clusters.cluster.karmada.io", "north"]).unwrap();
    assert_eq!(
        cluster["spec"],
        json!({
            "id": uid(&site.member, "kube-system"), "syncMode": "Push", "provider": "metal", "region": "here",
            "apiEndpoint": format!("https://0.0.0.0:{}", site.member.port()),
            "secretRef": {"namespace": "karmada-cluster", "name": "north"},
            "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "north-impersonator"},
            "taints": [{"key": "new", "effect": "NoSchedule"}],
        })
    );
    assert_eq!(cluster["metadata"]["labels"], json!({"tier": "gold", "windlass.dev/deployment": "trial"}));
    assert_eq!(cluster["metadata"]["annotations"]["windlass.dev/deployment-uid"], mark);
    let recorded = cluster["metadata"]["annotations"]["windlass.dev/member"].as_str().unwrap();
    assert!(recorded.contains("member.kubeconfig") && !recorded.contains("client-key-data"), "{recorded}");
    let owner = json!([{
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": "north",
        "uid": cluster["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    for (name, keys) in [("north", vec!["caBundle", "token"]), ("north-impersonator", vec!["token"])] {
        let secret = site.plane.get(&["secret", name, "-n", "karmada-cluster"]).unwrap();
        let mut there: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
        there.sort();
        assert_eq!(there, keys);
        assert_eq!(secret["metadata"]["ownerReferences"], owner);
    }
    for secret in [PASSWORD, "BEGIN EC PRIVATE KEY", "BEGIN PRIVATE KEY", "client-key-data"] {
        assert!(!reported.contains(secret), "{secret} is shown");
    }

    // Again: nothing. Under another name: refused, with the evidence, and no obstacle to the first.
    site.has_members(&north);
    let (well, reported) = site.play("add-member.yml", &[]);
    assert!(well && recap(&reported, "north").contains("changed=0"), "{reported}");
    site.has_members(&format!("{north}{}", site.member("again", "")));
    let (well, reported) = site.play("add-member.yml", &[]);
    let id = uid(&site.member, "kube-system");
    let evidence = format!(
        "again is refused: it is the same cluster as north: the namespace kube-system has the uid {id} in both; \
         it has already joined as north: the namespace kube-system has the uid {id}, which is the id of that Cluster"
    );
    assert!(!well && reported.contains(&evidence), "{reported}");
    assert!(recap(&reported, "north").contains("changed=0"), "{reported}");

    // What others joined stays whoever asks: without our label, or with it and for another control plane.
    for (name, marks) in [
        ("others", "{}"),
        ("pretender", "{labels: {windlass.dev/deployment: trial}, annotations: {windlass.dev/deployment-uid: other}}"),
    ] {
        site.plane.apply(&format!(
            "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{syncMode: Push}}\n"
        ));
        let patch = serde_yaml::from_str::<Json>(&format!("{{metadata: {marks}}}")).unwrap().to_string();
        site.plane.kubectl(&["patch", "clusters.cluster.karmada.io", name, "--type=merge", "-p", &patch], "").unwrap();
    }
    site.has_members(" []");
    let all = json!({"add": [], "del": ["north"], "foreign": ["others", "pretender"]});
    assert_eq!(site.standing(&[]).0, all);
    // A control plane that does not answer has nobody removed, and that is said.
    let (standing, reported) = site.standing(&["-e", r#"{"karmada_ports": {"apiserver": 1}}"#]);
    assert_eq!(standing["del"], json!([]));
    assert!(reported.contains("cannot list the members of trial, so windlass removes none: cp-1: "), "{reported}");
    let (well, reported) = site.play("del-member.yml", &["-e", r#"{"karmada_ports": {"apiserver": 1}}"#]);
    assert!(site.plane.get(&["clusters.cluster.karmada.io", "north"]).is_some(), "{well} {reported}");
    // No more than was allowed.
    let (well, reported) = site.play("del-member.yml", &["--max-removals", "0"]);
    assert!(!well && reported.contains("refusing to remove 1 member, more than 0: north"), "{reported}");
    // By name it is refused, too.
    let others = format!(
        "[karmada_control_plane]\ncp-1\n[del_member]\nothers member_kubeconfig={}\n[all:vars]\nkarmada_instance=trial\n",
        site.at("member.kubeconfig").display()
    );
    site.write("others.ini", &others);
    let playbook = root().join("playbooks/del-member.yml").display().to_string();
    let (well, reported) = site.windlass(&["playbook", "-i", "others.ini", &playbook]);
    assert!(
        !well
            && reported
                .contains("others is not removed: it was not joined for the deployment trial of this control plane"),
        "{reported}"
    );

    // Its lines are gone, and so is it: by what was recorded when it joined.
    let (well, reported) = site.play("del-member.yml", &["--check"]);
    assert!(
        well && reported
            .contains("north: has no objects of the control plane except its accounts, which windlass removes"),
        "{reported}"
    );
    assert!(site.plane.get(&["clusters.cluster.karmada.io", "north"]).is_some(), "check mode removed it");
    let (well, reported) = site.play("del-member.yml", &[]);
    assert!(well, "{reported}");
    assert_eq!(site.standing(&[]).0, json!({"add": [], "del": [], "foreign": ["others", "pretender"]}));
    assert!(site.member.get(&["namespace", "karmada-cluster"]).is_none(), "accounts are left in it");
    assert_eq!(accounts(&site.member), Vec::<String>::new());
    // The garbage collector looks for new kinds every half minute.
    for _ in 0..450 {
        if names(&site.plane.get(&["secrets", "-n", "karmada-cluster"]).unwrap())
            .iter()
            .all(|name| !name.starts_with("north"))
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let left = site.plane.get(&["secrets", "-n", "karmada-cluster"]).unwrap();
    assert!(!names(&left).iter().any(|name| name.starts_with("north")), "{:?}", names(&left));

    // And back again.
    site.has_members(&north);
    let (well, reported) = site.play("add-member.yml", &[]);
    assert!(well && recap(&reported, "north").contains("failed=0"), "{reported}");
    assert_eq!(site.standing(&[]).0, json!({"add": [], "del": [], "foreign": ["others", "pretender"]}));

    // It can no longer be reached: it stays, unless the resource names it, and no other name counts.
    let dead = site.member.whole_kubeconfig().replace(&site.member.url(), "https://0.0.0.0:1");
    site.write("member.kubeconfig", &dead);
    let patch = r#"{"spec": {"apiEndpoint": "https://0.0.0.0:1"}}"#;
    site.plane.kubectl(&["patch", "clusters.cluster.karmada.io", "north", "--type=merge", "-p", patch], "").unwrap();
    for by_force in ["", "\n  removeByForce: [others, south]"] {
        site.has_members(&format!(" []{by_force}"));
        let (well, reported) = site.play("del-member.yml", &[]);
        assert!(!well && reported.contains("north is not removed: it is unreachable"), "{reported}");
        assert!(site.plane.get(&["clusters.cluster.karmada.io", "north"]).is_some(), "{reported}");
    }
    site.has_members(" []\n  removeByForce: [north, others]");
    let (well, reported) = site.play("del-member.yml", &[]);
    assert!(well && reported.contains("north is unreachable. These objects stay in it:"), "{reported}");
    for (name, is_there) in [("north", false), ("others", true)] {
        let there = site.plane.get(&["clusters.cluster.karmada.io", name]).is_some();
        assert_eq!(there, is_there, "{name}: {reported}");
    }
}
