//! A resource of an API server is somebody else's text: what its writer may make windlass do, with a false API server and
//! a real OpenSSH server. The rules for each field: `src/resource/foreign/tests.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

#[path = "shared/port.rs"]
mod port;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "ssh/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass::value::mutex::Mutex;

use assert_cmd::Command;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};
use server::Server;

/// An API server of a few objects, by path; and the person who runs windlass beside it, with keys and secrets of their own.
struct World {
    scratch: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
    objects: Arc<Mutex<BTreeMap<String, Json>>>,
}

impl World {
    fn new() -> World {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, objects) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<BTreeMap<String, Json>>>::default());
        let (log, answers) = (asked.clone(), objects.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &log, &answers);
            }
        });
        let world = World { scratch: tempfile::tempdir().unwrap(), asked, objects };
        world.write("kubeconfig", &kubeconfig(&url, &json!({"token": "the person's token"})).to_string());
        world.write("home/.ssh/config", "Host *\n  UserKnownHostsFile /dev/null\n");
        world.write("home/.kube/config", "not a kubeconfig");
        world.write("ansible.cfg", "[windlass]\nresource_bundles = karmada=bundle\n");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// The resource `team/prod`, with this spec.
    fn resource(&self, spec: &Json) {
        let object = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "KarmadaDeployment", "spec": spec,
            "metadata": {"name": "prod", "namespace": "team", "uid": "7f", "resourceVersion": "1"},
        });
        let path = "/apis/windlass.dev/v1alpha1/namespaces/team/karmadadeployments/prod";
        self.objects.lock().insert(path.to_owned(), object);
    }

    fn secret(&self, namespace: &str, name: &str, value: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "data": {"value": BASE64.encode(value)},
        });
        self.objects.lock().insert(format!("/api/v1/namespaces/{namespace}/secrets/{name}"), object);
    }

    /// Runs windlass as the person would; the exit code and what is printed.
    fn windlass(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.env("NO_COLOR", "1").env("KUBECONFIG", self.path("kubeconfig")).env("HOME", self.path("home"));
        command.env_remove("ANSIBLE_CONFIG").env_remove("SSH_AUTH_SOCK").current_dir(self.scratch.path());
        let output = command.envs(variables.iter().copied()).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
    }

    /// Runs the tasks on the hosts of the resource.
    fn play(&self, hosts: &str, tasks: &str, variables: &[(&str, &str)]) -> (i32, String) {
        self.write("play/play.yml", &format!("- hosts: {hosts}\n  gather_facts: false\n  tasks: [{tasks}]\n"));
        self.windlass(&["playbook", "-i", "kube:team/prod", "play/play.yml"], variables)
    }
}

fn answer(mut stream: TcpStream, log: &Mutex<Vec<String>>, objects: &Mutex<BTreeMap<String, Json>>) {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        read.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&read).into_owned();
    let asked = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    // A server or a proxy before it may resolve `..`.
    let mut parts: Vec<&str> = Vec::new();
    for part in asked.split('/').skip(1) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let path = format!("/{}", parts.join("/"));
    log.lock().push(path.clone());
    let found = objects.lock().get(&path).cloned();
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let body =
        found.unwrap_or_else(|| json!({"kind": "Status", "status": "Failure", "code": 404, "message": "not found"}));
    let (body, head) = (body.to_string(), "Content-Type: application/json\r\nConnection: close");
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok();
}

fn kubeconfig(url: &str, user: &Json) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    })
}

/// The host's key as `ssh-keygen -lf` tells it.
fn fingerprint(server: &Server) -> String {
    let key = server.public("host_ed25519.pub");
    let blob = BASE64.decode(key.split(' ').nth(1).unwrap()).unwrap();
    use sha2::Digest as _;
    format!("SHA256:{}", BASE64.encode(sha2::Sha256::digest(blob)).trim_end_matches('='))
}

/// A resource that asks for nothing but its own.
fn honest(server: &Server) -> Json {
    json!({
        "bundle": "karmada",
        "hosts": [{
            "name": "cp-1", "address": "127.0.0.1", "port": server.port, "user": "root",
            "fingerprint": fingerprint(server),
        }],
        "ssh": {"privateKey": {"secret": {"name": "login", "key": "value"}}},
        "controlPlane": {"hosts": ["cp-1"]},
        "etcd": {"managed": {"hosts": ["cp-1"]}},
    })
}

/// Listens, and takes nobody's connection until it is asked whether there was one.
fn decoy() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

const THIS_NETWORK: (&str, &str) = ("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8");

#[test]
fn a_resource_that_asks_for_its_own_is_served() {
    let (world, server) = (World::new(), Server::start());
    world.resource(&honest(&server));
    world.secret("team", "login", &server.read("id"));
    let tasks = "{command: 'echo served by {{ inventory_hostname }}', register: said}, {debug: {var: said.stdout}}, \
                 {debug: {var: credentials_dir}}, {debug: {var: karmada_bundle}}";
    let (code, reported) = world.play("etcd", tasks, &[THIS_NETWORK]);
    assert_eq!(code, 0, "{reported}");
    assert!(reported.contains("served by cp-1"), "{reported}");
    // Its credentials are in a Secret, so that no directory of this machine has them; a name is the path that the configuration gives.
    let path = |name: &str| fs::canonicalize(world.scratch.path()).unwrap().join(name).display().to_string();
    assert!(
        reported.contains("/windlass-credentials-") && !world.scratch.path().join("credentials").exists(),
        "{reported}"
    );
    assert!(reported.contains(&path("bundle")), "{reported}");
}

#[test]
fn a_resource_runs_nothing_and_reads_nothing_here() {
    let (world, server) = (World::new(), Server::start());
    world.secret("kube-system", "admin", "hunter2-long");
    let (pwned, known, host) = (world.path("pwned"), world.path("known"), decoy());
    let run = format!("id > {}; echo x", pwned.display());
    for (field, given, reported) in [
        ("password", json!({"command": ["sh", "-c", run]}), "spec.ssh.password.command is not allowed"),
        ("password", json!({"env": "HOME"}), "spec.ssh.password.env is not allowed"),
        ("password", json!({"file": "/etc/hostname"}), "spec.ssh.password.file is not allowed"),
        ("password", json!({"vault": "$ANSIBLE_VAULT;1.1;AES256\n30"}), "spec.ssh.password.vault is not allowed"),
        (
            "password",
            json!({"secret": {"namespace": "kube-system", "name": "admin", "key": "value"}}),
            "spec.ssh.password.secret.namespace is kube-system, and the resource is in the namespace team",
        ),
        ("knownHosts", json!([known]), "spec.ssh.knownHosts is not allowed"),
        ("agent", json!("/run/agent.sock"), "spec.ssh.agent is not allowed"),
        ("hostKeys", json!("accept-new"), "spec.ssh.hostKeys must be strict"),
        ("bastion", json!({"address": "127.0.0.1"}), "spec.ssh.bastion is 127.0.0.1, which is not allowed"),
    ] {
        let mut spec = honest(&server);
        spec["hosts"][0]["port"] = json!(host.local_addr().unwrap().port());
        spec["ssh"][field] = given;
        world.resource(&spec);
        let (code, said) = world.play("all", "{command: 'true'}", &[THIS_NETWORK]);
        assert!(code != 0 && said.contains(reported), "{reported}: {said}");
    }
    for (field, given, reported) in [
        ("bundle", json!("/etc"), "spec.bundle is \"/etc\", which the setting resource_bundles does not list"),
        (
            "hooks",
            json!([{"stage": "etcd", "when": "before", "playbook": "/srv/x.yml"}]),
            "spec.hooks[0].playbook is \"/srv/x.yml\", which the setting resource_hooks does not list",
        ),
        (
            "addons",
            json!([{"name": "a", "to": ["control_plane"], "src": ["/etc/*"]}]),
            "spec.addons[0].src[0] is \"/etc/*\", which the setting resource_files does not list",
        ),
        (
            "certificates",
            json!({"ca": {"cert": {"file": "/etc/ssl/ca.crt"}, "key": {"file": "/etc/ssl/ca.key"}}}),
            "spec.certificates.ca.key.file is not allowed in a resource from an API",
        ),
    ] {
        let mut spec = honest(&server);
        spec[field] = given;
        world.resource(&spec);
        let (code, said) = world.windlass(&["plan", "-i", "kube:team/prod"], &[THIS_NETWORK]);
        assert!(code != 0 && said.contains(reported), "{reported}: {said}");
    }
    assert!(!pwned.exists() && !known.exists());
    assert!(!world.asked.lock().iter().any(|path| path.contains("/secrets/")));
    assert!(host.accept().is_err(), "windlass connected");
}

#[test]
fn what_the_person_has_for_own_hosts_is_not_given_to_a_foreign_one() {
    let (world, server) = (World::new(), Server::start());
    let key = server.read("id") + "\n";
    let mut spec = honest(&server);
    spec["ssh"] = json!({});
    world.resource(&spec);
    world.write("home/.ssh/id_ed25519", &key);
    world.write("key", &key);
    for name in ["home/.ssh/id_ed25519", "key"] {
        server::set_mode(&world.path(name), 0o600);
    }
    let file = world.path("key").display().to_string();
    for directory in ["group_vars/all.yml", "play/group_vars/all.yml", "play/host_vars/cp-1.yml"] {
        world.write(directory, &format!("ansible_private_key_file: {file}\nambient: the person's own\n"));
    }
    let tasks = "{raw: 'true'}";
    for variables in [
        vec![],
        vec![("ANSIBLE_PRIVATE_KEY_FILE", file.as_str())],
        vec![("ANSIBLE_HOST_KEY_CHECKING", "False")],
        vec![("ANSIBLE_TRANSPORT", "local")],
    ] {
        let (code, reported) = world.play("all", tasks, &[&[THIS_NETWORK][..], &variables[..]].concat());
        assert!(code == 4 && reported.contains("cannot log in to cp-1"), "{variables:?} {reported}");
    }
    let (code, reported) =
        world.windlass(&["playbook", "-i", "kube:team/prod", "--private-key", &file, "play/play.yml"], &[THIS_NETWORK]);
    assert!(
        code == 1 && reported.contains("cannot use --private-key with a resource from an API"),
        "{code} {reported}"
    );
    let (_, reported) = world.play("all", "{debug: {msg: \"{{ ambient | default('nothing') }}\"}}", &[THIS_NETWORK]);
    assert!(reported.contains("nothing") && !reported.contains("the person's own"), "{reported}");
    // Another inventory beside it could lend it the login of a host of the same name.
    world.write("hosts.ini", "cp-1 ansible_password=hunter2-long\n");
    let (code, reported) = world.windlass(&["inventory", "-i", "hosts.ini", "-i", "kube:team/prod", "--list"], &[]);
    assert!(code != 0 && reported.contains("came from an API and must be the only inventory"), "{reported}");
}

#[test]
fn a_host_shows_the_key_that_the_resource_pins() {
    let (world, server) = (World::new(), Server::start());
    let mut spec = honest(&server);
    spec["hosts"][0]["fingerprint"] = json!(format!("SHA256:{}", "A".repeat(43)));
    world.resource(&spec);
    world.secret("team", "login", &server.read("id"));
    for variables in [vec![], vec![("ANSIBLE_HOST_KEY_CHECKING", "False")]] {
        let (code, reported) = world.play("all", "{raw: 'true'}", &[&[THIS_NETWORK][..], &variables[..]].concat());
        assert!(code == 4 && reported.contains("is expected"), "{reported}");
    }
}

#[test]
fn addresses_of_this_machine_are_not_connected_to_unless_configured() {
    let (world, server, host) = (World::new(), Server::start(), decoy());
    world.secret("team", "login", &server.read("id"));
    for (address, why) in [
        ("127.0.0.1", "it is a loopback address"),
        ("localhost", "it is a loopback address"),
        ("::ffff:127.0.0.1", "it is a loopback address"),
        ("169.254.169.254", "it is a link-local address"),
    ] {
        let mut spec = honest(&server);
        spec["hosts"][0]["address"] = json!(address);
        spec["hosts"][0]["port"] = json!(host.local_addr().unwrap().port());
        world.resource(&spec);
        let (code, reported) = world.play("all", "{raw: 'true'}", &[]);
        assert!(
            code == 4 && reported.contains("must not connect to") && reported.contains(why),
            "{address}: {reported}"
        );
    }
    let (_, reported) = world.play("all", "{raw: 'true'}", &[("WINDLASS_RESOURCE_NETWORKS", "192.0.2.0/24")]);
    assert!(reported.contains("the setting resource_networks does not list it"), "{reported}");
    assert!(host.accept().is_err(), "windlass connected");
}

#[test]
fn the_kubeconfig_of_a_member_runs_nothing_reads_nothing_and_leads_outside() {
    let (world, server) = (World::new(), Server::start());
    let mut spec = honest(&server);
    spec["members"] = json!([{"name": "m1", "kubeconfig": {"secret": {"name": "m1", "key": "value"}}}]);
    world.resource(&spec);
    let pwned = world.path("pwned").display().to_string();
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [pwned],
                               "interactiveMode": "Never"}});
    world.write("token", "the person's other token");
    let file = world.path("token").display().to_string();
    let own = decoy();
    let url = format!("http://{}", own.local_addr().unwrap());
    let task = "{k8s_info: {kubeconfig: '{{ member_kubeconfig_content }}', kind: Namespace}}, {debug: {msg: reached}}";
    let mapping = task.replace("content }}", "content | from_yaml }}");
    for (content, reported) in [
        (kubeconfig(&url, &exec).to_string(), "the kubeconfig has exec at \"c\""),
        (kubeconfig(&url, &json!({"tokenFile": file})).to_string(), "the kubeconfig has tokenFile at \"c\""),
        (kubeconfig(&url, &json!({"client-key": file})).to_string(), "the kubeconfig has client-key at \"c\""),
        (kubeconfig(&url, &json!({"auth-provider": {"name": "gcp", "config": {}}})).to_string(), "has auth-provider"),
        (world.path("kubeconfig").display().to_string(), "it is not a valid kubeconfig"),
        ("# nothing\n".to_owned(), "the kubeconfig has no cluster or no context"),
        ("!!null x".to_owned(), "the kubeconfig has no cluster or no context"),
        (kubeconfig(&url, &json!({"token": "t"})).to_string(), "it is a loopback address"),
    ] {
        world.secret("team", "m1", &content);
        for task in [task, mapping.as_str()] {
            let (code, said) = world.play("members", task, &[]);
            assert!(
                code != 0 && said.contains(reported) && !said.contains("\"msg\": \"reached\""),
                "{reported}: {said}"
            );
        }
    }
    // Without one the person's own would be taken.
    world.write("home/.kube/config", &kubeconfig(&url, &json!({"token": "t"})).to_string());
    let task = "{k8s_info: {kind: Namespace}}";
    let (code, said) = world.play("members", task, &[("WINDLASS_RESOURCE_NETWORKS", "127.0.0.0/8")]);
    assert!(code != 0 && said.contains("a resource from an API must not"), "{task}: {said}");
    assert!(!Path::new(&pwned).exists());
    assert!(own.accept().is_err(), "somebody connected");
}

#[test]
fn a_document_that_was_exported_or_stored_for_another_is_foreign_too() {
    let (world, server) = (World::new(), Server::start());
    let run = format!("touch {}", world.path("pwned").display());
    let mut spec = honest(&server);
    spec["ssh"]["password"] = json!({"command": ["sh", "-c", run]});
    let document = |metadata: Json| {
        json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "KarmadaDeployment", "metadata": metadata, "spec": spec})
            .to_string()
    };
    world.write("play.yml", "- hosts: all\n  gather_facts: false\n  tasks: [{raw: 'true'}]\n");
    let play = ["playbook", "-i", "stored.yaml", "play.yml"];
    world.write("stored.yaml", &document(json!({"name": "prod", "namespace": "team", "uid": "7f"})));
    let (code, reported) = world.windlass(&play, &[]);
    assert!(code != 0 && reported.contains("spec.ssh.password.command is not allowed"), "{reported}");
    assert!(reported.contains("this file was exported from an API"), "{reported}");
    world.write("stored.yaml", &document(json!({"name": "prod", "namespace": "team"})));
    let (code, reported) = world.windlass(&play, &[("WINDLASS_RESOURCE_TRUST", "foreign")]);
    assert!(code != 0 && reported.contains("spec.ssh.password.command is not allowed"), "{reported}");
    assert!(!world.path("pwned").exists());
}
