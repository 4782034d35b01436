//! etcd and kube-apiserver on free ports of the loopback address, with certificates made for the purpose; and
//! kube-controller-manager where it is asked for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::port::free_port;

/// A running API server; it ends with this.
pub(crate) struct Server {
    scratch: TempDir,
    programs: PathBuf,
    port: u16,
    children: Vec<Child>,
}

impl Server {
    /// kubectl lies beside the API server.
    pub(crate) fn start(etcd: &Path, program: &Path) -> Server {
        let scratch = tempfile::tempdir().unwrap();
        let [client, peer, port] = [(); 3].map(|()| free_port());
        certificates(scratch.path(), port);
        let at = |name: &str| scratch.path().join(name).display().to_string();
        let clients = format!("http://127.0.0.1:{client}");
        let etcd = run(
            etcd,
            &scratch,
            &[
                ("name", "t".to_owned()),
                ("data-dir", at("etcd")),
                ("listen-client-urls", clients.clone()),
                ("advertise-client-urls", clients.clone()),
                ("listen-peer-urls", format!("http://127.0.0.1:{peer}")),
                ("initial-advertise-peer-urls", format!("http://127.0.0.1:{peer}")),
                ("initial-cluster", format!("t=http://127.0.0.1:{peer}")),
            ],
        );
        let apiserver = run(
            program,
            &scratch,
            &[
                ("etcd-servers", clients),
                ("bind-address", "127.0.0.1".to_owned()),
                ("secure-port", port.to_string()),
                ("endpoint-reconciler-type", "none".to_owned()),
                ("tls-cert-file", at("server.crt")),
                ("tls-private-key-file", at("server.key")),
                ("client-ca-file", at("ca.crt")),
                ("authorization-mode", "RBAC".to_owned()),
                ("disable-admission-plugins", "ServiceAccount".to_owned()),
                ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
                ("service-account-key-file", at("sa.pub")),
                ("service-account-signing-key-file", at("sa.key")),
                ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
            ],
        );
        let programs = program.parent().unwrap().to_owned();
        Server { scratch, programs, port, children: vec![apiserver, etcd] }
    }

    /// Starts kube-controller-manager with what accounts need: tokens, and that namespaces and what belongs to others end.
    pub(crate) fn manage(&mut self, controller_manager: &Path) {
        let at = |name: &str| self.scratch.path().join(name).display().to_string();
        let port = free_port();
        let mut flags = vec![
            ("kubeconfig", at("kubeconfig")),
            ("controllers", "serviceaccount-token,namespace,garbagecollector,job".to_owned()),
            ("service-account-private-key-file", at("sa.key")),
            ("root-ca-file", at("ca.crt")),
            ("leader-elect", "false".to_owned()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", port.to_string()),
        ];
        // Old ones listen without TLS, too, all on the same port.
        let version = Command::new(controller_manager).arg("--version").output().unwrap();
        if String::from_utf8_lossy(&version.stdout).contains(" v1.20.") {
            flags.push(("port", "0".to_owned()));
        }
        self.children.push(run(controller_manager, &self.scratch, &flags));
    }

    /// What kubectl prints; an error if it fails.
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        kubectl(&self.programs, &self.kubeconfig(), arguments, input)
    }

    /// kubectl for this server, as words for a command.
    pub(crate) fn kubectl_words(&self) -> String {
        format!("{} --kubeconfig {}", self.programs.join("kubectl").display(), self.kubeconfig().display())
    }

    /// Waits until it says so itself.
    pub(crate) fn ready(&mut self) {
        let (programs, kubeconfig) = (self.programs.clone(), self.kubeconfig());
        self.until_ready(|| kubectl(&programs, &kubeconfig, &["get", "--raw", "/readyz"], "").map(drop));
    }

    pub(crate) fn apply(&self, documents: &str) {
        self.kubectl(&["apply", "-f", "-"], documents).unwrap();
    }

    /// An object, or the list of them, as JSON; None: there is none.
    pub(crate) fn get(&self, words: &[&str]) -> Option<Json> {
        let text = self.kubectl(&[&["get", "-o", "json"], words].concat(), "");
        match text {
            Ok(text) => Some(serde_json::from_str(&text).unwrap()),
            Err(why) if why.contains("NotFound") => None,
            Err(why) => panic!("{why}"),
        }
    }

    /// Whether it checks CEL rules.
    pub(crate) fn knows_rules(&self) -> bool {
        let version: Json = serde_json::from_str(&self.kubectl(&["get", "--raw", "/version"], "").unwrap()).unwrap();
        version["minor"].as_str().unwrap().trim_end_matches('+').parse::<u32>().unwrap() >= 25
    }

    /// A kubeconfig without references to files.
    pub(crate) fn whole_kubeconfig(&self) -> String {
        self.kubectl(&["config", "view", "--raw", "--flatten", "--minify"], "").unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.scratch.path().join("kubeconfig")
    }

    /// The certificate authority, and the certificate and key of an administrator.
    pub(crate) fn certificates(&self) -> [PathBuf; 3] {
        ["ca.crt", "admin.crt", "admin.key"].map(|name| self.scratch.path().join(name))
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Tries until it works, for ten minutes.
    pub(crate) fn until_ready(&mut self, works: impl Fn() -> Result<(), String>) {
        let since = Instant::now();
        while let Err(words) = works() {
            let ended = self.children.iter_mut().any(|child| child.try_wait().unwrap().is_some());
            let late = since.elapsed() > Duration::from_secs(600);
            assert!(!ended && !late, "the API server does not get ready: {words}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// `programs` is the directory that it lies in.
pub(crate) fn kubectl(programs: &Path, kubeconfig: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new(programs.join("kubectl"));
    // What it remembers of an API server is forgotten with it.
    command.env("HOME", kubeconfig.parent().unwrap()).arg("--kubeconfig").arg(kubeconfig).args(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn run(program: &Path, scratch: &TempDir, flags: &[(&str, String)]) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(scratch.path().join("log")).unwrap();
    Command::new(program)
        .args(flags.iter().map(|(name, value)| format!("--{name}={value}")))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// An authority, the server's and an administrator's certificate, and a kubeconfig that refers to them.
fn certificates(scratch: &Path, port: u16) {
    let write = |name: &str, text: String| std::fs::write(scratch.join(name), text).unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "test");
    write("ca.crt", ca.self_signed(&ca_key).unwrap().pem());
    let issuer = Issuer::new(ca, ca_key);
    let issue = |name: &str, names: &[&str], groups: &str, usage: ExtendedKeyUsagePurpose| {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, groups);
        params.extended_key_usages = vec![usage];
        write(&format!("{name}.crt"), params.signed_by(&key, &issuer).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    };
    // 0.0.0.0 leads to this machine, too, and is not taken for a name that everybody has for himself.
    issue("server", &["127.0.0.1", "localhost", "0.0.0.0"], "none", ExtendedKeyUsagePurpose::ServerAuth);
    issue("admin", &[], "system:masters", ExtendedKeyUsagePurpose::ClientAuth);
    issue("reader", &[], "nobody", ExtendedKeyUsagePurpose::ClientAuth);
    let tokens = KeyPair::generate().unwrap();
    write("sa.key", tokens.serialize_pem());
    write("sa.pub", tokens.public_key_pem());
    write(
        "kubeconfig",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: admin\n\
             clusters:\n- name: test\n  cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: ca.crt}}\n\
             users:\n\
             - {{name: admin, user: {{client-certificate: admin.crt, client-key: admin.key}}}}\n\
             - {{name: reader, user: {{client-certificate: reader.crt, client-key: reader.key}}}}\n\
             contexts:\n\
             - {{name: admin, context: {{cluster: test, user: admin}}}}\n\
             - {{name: reader, context: {{cluster: test, user: reader, namespace: elsewhere}}}}\n"
        ),
    );
}
