//! The credentials of a deployment in a Secret: written as soon as a task has created them, never replaced by those of another run,
//! and out of reach for resources.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value as Json;

use crate::server::Server;
use crate::{definitions, definitions_without_rules, programs, sshd};

const SECRET: &str = "secret/prod-credentials";

/// A deployment of one host, which is this machine behind an SSH server.
fn deployment(sshd: &sshd::Server, password: &str) -> String {
    let keys = std::process::Command::new("ssh-keygen")
        .args(["-lf", &sshd.path("host_ed25519.pub").display().to_string()])
        .output()
        .unwrap();
    let fingerprint = String::from_utf8(keys.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {{name: prod, namespace: default}}\n\
         spec:\n  bundle: bundle\n  hosts: [{{name: cp-1, address: 127.0.0.1, port: {}, user: root, fingerprint: '{fingerprint}'}}]\n  \
         ssh: {{privateKey: {{secret: {{name: ssh, key: id}}}}{password}}}\n  \
         controlPlane: {{hosts: [cp-1]}}\n  etcd: {{managed: {{hosts: [cp-1]}}}}\n",
        sshd.port
    )
}

/// Creates an authority and a certificate; then a task on the host shows whether the Secret had them before it.
const PLAYBOOK: &str = r#"
- hosts: etcd
  gather_facts: false
  become: false
  roles:
    - role: pki
      vars:
        pki_name: etcd
        pki_host_certificates: [{name: server, common_name: server, usages: [server_auth]}]
  tasks:
    - name: Look for the key in the Secret
      ansible.builtin.command: "{{ kubectl }} get secret prod-credentials -o json"
      register: kept
      changed_when: false
      failed_when: (kept.stdout | from_json).data['etcd__ca.key'] | b64decode | trim != lookup('ansible.builtin.file', credentials_dir ~ '/etcd/ca.key')
"#;

/// Another run, here kubectl, changes the Secret between two tasks that write credentials.
const CONFLICT: &str = r#"
- hosts: etcd
  gather_facts: false
  become: false
  tasks:
    - ansible.builtin.copy: {content: one, dest: "{{ credentials_dir }}/one", mode: "0600"}
      delegate_to: localhost
    - ansible.builtin.command: "{{ kubectl }} patch secret prod-credentials --type=merge -p {{ {'data': {'other': 'eA=='}} | to_json | quote }}"
    - name: Write second
      ansible.builtin.copy: {content: two, dest: "{{ credentials_dir }}/two", mode: "0600"}
      delegate_to: localhost
    - ansible.builtin.command: touch {{ reached }}
"#;

struct Bench {
    server: Server,
    scratch: tempfile::TempDir,
}

impl Bench {
    /// What windlass prints, and whether it ended well. Its directories in memory are below the scratch directory.
    fn windlass(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .env("NO_COLOR", "1")
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("XDG_RUNTIME_DIR", self.scratch.path().join("runtime"))
            .env("WINDLASS_RESOURCE_BUNDLES", "bundle=bundle")
            .env("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8")
            .env_remove("SSH_AUTH_SOCK")
            .current_dir(self.scratch.path());
        let output = command.args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }

    fn play(&self, playbook: &str, variables: &str) -> (bool, String) {
        let file = self.scratch.path().join("playbook.yml");
        std::fs::write(&file, playbook).unwrap();
        let kubectl = self.server.kubectl_words();
        let roles = crate::root().join("roles").display().to_string();
        let kubectl = format!("{{\"kubectl\": \"{kubectl}\"}}");
        self.windlass(&[
            "playbook",
            "-i",
            "kube:default/prod",
            "-e",
            &kubectl,
            "-e",
            variables,
            "--roles-path",
            &roles,
            "playbook.yml",
        ])
    }

    fn secret(&self) -> Json {
        self.server.get(&[SECRET]).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }
}

fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found
}

#[test]
#[ignore = "needs a kube-apiserver in WINDLASS_KUBERNETES_DIR"]
fn credentials_are_kept_in_a_secret_before_anything_depends_on_them() {
    let (etcd, apiserver) = programs().expect("kube-apiserver and etcd are in WINDLASS_KUBERNETES_DIR");
    let mut server = Server::start(&etcd, &apiserver);
    server.ready();
    server.apply(&if server.knows_rules() { definitions() } else { definitions_without_rules() });
    let wait = ["wait", "--for=condition=Established", "--timeout=300s", "crd/karmadadeployments.windlass.dev"];
    server.kubectl(&wait, "").unwrap();
    let sshd = sshd::Server::start();
    let from = format!("--from-file=id={}", sshd.path("id").display());
    server.kubectl(&["create", "secret", "generic", "ssh", &from], "").unwrap();
    server.apply(&deployment(&sshd, ""));
    let bench = Bench { server, scratch: tempfile::tempdir().unwrap() };
    std::fs::create_dir(bench.path("runtime")).unwrap();

    // What an older version kept in the working directory is not replaced by a new authority.
    std::fs::create_dir_all(bench.path("credentials/_api/default/prod/etcd")).unwrap();
    std::fs::write(bench.path("credentials/_api/default/prod/etcd/ca.key"), "key").unwrap();
    let (well, words) = bench.play(PLAYBOOK, "{}");
    assert!(!well && words.contains("import them with windlass credentials import -f kube:default/prod"), "{words}");
    assert!(bench.server.get(&[SECRET]).is_none());
    std::fs::remove_dir_all(bench.path("credentials")).unwrap();

    // The task after the role finds the key in the Secret, and the second run creates nothing.
    let (well, words) = bench.play(PLAYBOOK, "{}");
    assert!(well, "{words}");
    let first = bench.secret();
    assert_eq!(first["type"], "windlass.dev/credentials");
    assert_eq!(first["metadata"]["finalizers"], serde_json::json!(["windlass.dev/credentials"]));
    let (well, words) = bench.play(PLAYBOOK, "{}");
    assert!(well && words.contains("changed=0"), "{words}");
    assert_eq!(bench.secret()["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    // No key stays on this machine.
    assert_eq!(std::fs::read_dir(bench.path("runtime")).unwrap().count(), 0);
    assert!(!Path::new(&bench.path("credentials")).exists());

    // A second writer loses nothing of the first, and what depends on its file is not run.
    let reached = bench.path("reached");
    let (well, words) = bench.play(CONFLICT, &format!("reached={reached}"));
    assert!(!well && words.contains("another run has changed it meanwhile"), "{words}");
    assert!(!Path::new(&reached).exists());
    let secret = bench.secret();
    assert_eq!(
        (&secret["data"]["one"], &secret["data"]["other"], &secret["data"]["two"]),
        (&"b25l".into(), &"eA==".into(), &Json::Null)
    );
    assert_eq!(secret["data"]["etcd__ca.key"], first["data"]["etcd__ca.key"]);

    // Deleted by mistake, it is still there; exported and imported, it is whole again.
    bench.server.kubectl(&["delete", SECRET, "--wait=false"], "").unwrap();
    let (well, words) = bench.play(PLAYBOOK, "{}");
    assert!(well && words.contains("changed=0") && words.contains("only its finalizer keeps it"), "{words}");
    let copy = bench.path("copy");
    let (well, words) = bench.windlass(&["credentials", "export", "-f", "kube:default/prod", &copy]);
    assert!(well && words.contains("was deleted, and only its finalizer keeps it"), "{words}");
    assert!(files(Path::new(&copy)).iter().any(|file| file.ends_with("etcd/hosts/cp-1/server.key")));
    let (well, words) = bench.windlass(&["credentials", "import", "-f", "kube:default/prod", &copy]);
    assert!(!well && words.contains("pass --replace"), "{words}");
    let (well, words) = bench.windlass(&["credentials", "import", "--replace", "-f", "kube:default/prod", &copy]);
    assert!(well, "{words}");
    let again = bench.secret();
    assert_eq!(again["metadata"]["deletionTimestamp"], Json::Null);
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(again["data"], secret["data"]);
    let (well, words) = bench.play(PLAYBOOK, "{}");
    assert!(well && words.contains("changed=0"), "{words}");

    // An author of resources cannot have the key sent to a host as a password.
    let theft = ", password: {secret: {name: prod-credentials, key: etcd__ca.key}}";
    bench.server.apply(&deployment(&sshd, theft));
    let (well, words) = bench.play("- {hosts: etcd, gather_facts: false, tasks: [ping: ]}", "{}");
    assert!(!well && words.contains("it holds the credentials of a deployment"), "{words}");

    let (well, words) = bench.windlass(&["credentials", "delete", "-f", "kube:default/prod", "--name", "other"]);
    assert!(!well && words.contains("nothing was deleted"), "{words}");
    assert!(bench.server.get(&[SECRET]).is_some());
    let (well, words) = bench.windlass(&["credentials", "delete", "-f", "kube:default/prod", "--name", "prod"]);
    assert!(well, "{words}");
    assert!(bench.server.get(&[SECRET]).is_none());
}
