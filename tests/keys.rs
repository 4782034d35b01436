//! Whose keys are on the controller: what the role pki records, refuses and leaves alone. Hosts are this machine.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// A directory with keys, and playbooks about them.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        Bench(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Runs tasks of the role for a deployment, or without a name; whether it succeeds, and its words.
    fn run(&self, name: &str, more: &str, options: &[&str]) -> (bool, String) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = format!(
            "- hosts: all\n  gather_facts: false\n  vars: {{ansible_connection: local, credentials_dir: {0}/keys, \
             pki_directory: {0}/keys/etcd}}\n  tasks:\n    - {{import_role: {{name: {1}/roles/karmada_settings}}, when: false}}\n{more}",
            self.0.path().display(),
            root.display()
        )
        .replace("PKI", &format!("{}/roles/pki", root.display()));
        fs::write(self.path("play.yml"), text).unwrap();
        let mut windlass = Command::cargo_bin("windlass").unwrap();
        windlass.env("WINDLASS_RUNS", "false").args(["playbook", "-i", "h1,h2,"]).args(options);
        if !name.is_empty() {
            windlass.args(["-e", &format!("karmada_deployment={name}")]);
        }
        let output = windlass.arg(self.path("play.yml")).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }

    fn record(&self) -> Option<String> {
        fs::read_to_string(self.path("keys/etcd/.deployment.json")).ok()
    }
}

const CLAIM: &str = "    - include_role: {name: PKI, tasks_from: claim}\n";
const KEYS: &str = "    - include_role: {name: PKI}\n      vars: {pki_host_certificates: [{name: peer, common_name: h1, usages: [server_auth]}]}\n";
const RECORD: &str = "{\"kind\": \"KarmadaDeployment\", \"name\": \"prod\"}\n";

#[test]
fn keys_are_those_of_the_first_deployment_that_records_them() {
    let bench = Bench::new();
    let (succeeds, said) = bench.run("prod", CLAIM, &["--check"]);
    assert!(succeeds && !bench.path("keys").exists(), "{said}");
    let (succeeds, said) = bench.run("prod", &format!("{CLAIM}{KEYS}"), &[]);
    assert!(succeeds, "{said}");
    assert_eq!(bench.record().as_deref(), Some(RECORD));
    assert_eq!(fs::metadata(bench.path("keys/etcd/.deployment.json")).unwrap().permissions().mode() & 0o777, 0o600);
    let (succeeds, said) = bench.run("prod", CLAIM, &[]);
    assert!(succeeds && said.contains("changed=0"), "{said}");
    for name in ["test", ""] {
        for options in [&["--check"][..], &[]] {
            let (succeeds, said) = bench.run(name, CLAIM, options);
            assert!(!succeeds && said.contains("belong to the deployment prod"), "{said}");
        }
    }
    assert_eq!(bench.record().as_deref(), Some(RECORD));
    assert_eq!(fs::read_dir(bench.path("keys/etcd")).unwrap().count(), 4, "ca.crt, ca.key, hosts and the record");
    fs::write(bench.path("keys/etcd/.deployment.json"), "prod").unwrap();
    assert!(!bench.run("prod", CLAIM, &[]).0, "a record that cannot be read names nobody");
}

#[test]
fn keys_without_a_record_are_those_of_the_deployment_whose_hosts_trust_them() {
    let bench = Bench::new();
    let (succeeds, said) = bench.run("", &format!("{CLAIM}{KEYS}"), &[]);
    assert!(succeeds, "{said}");
    assert_eq!(bench.record(), None, "there is no name to record");
    let owner = |ca: &str, refuses: bool| {
        format!(
            "    - include_role: {{name: PKI, tasks_from: owner}}\n      vars: {{pki_host_ca: {ca}, pki_refuses_unknown: {refuses}}}\n    \
             - debug: {{msg: \"own {{{{ pki_is_own }}}}\"}}\n{}",
            if refuses { CLAIM } else { "" }
        )
    };
    let (succeeds, said) = bench.run("test", &owner("/nonexistent", true), &[]);
    assert!(!succeeds && said.contains("nothing says to which deployment the keys in"), "{said}");
    let (succeeds, said) = bench.run("test", &owner("/nonexistent", false), &[]);
    assert!(succeeds && (said.contains("own False") || said.contains("own false")), "{said}");
    let (succeeds, said) = bench.run("", &owner("/nonexistent", true), &[]);
    assert!(succeeds && bench.record().is_none(), "{said}");
    let trusted = bench.path("keys/etcd/ca.crt");
    let (succeeds, said) = bench.run("prod", &owner(&trusted.to_string_lossy(), true), &[]);
    assert!(succeeds, "{said}");
    assert_eq!(bench.record().as_deref(), Some(RECORD));
    // A new directory is nobody's yet.
    fs::remove_dir_all(bench.path("keys")).unwrap();
    let (succeeds, said) = bench.run("test", &owner("/nonexistent", true), &[]);
    assert!(succeeds && bench.record().unwrap().contains("\"test\""), "{said}");
}
