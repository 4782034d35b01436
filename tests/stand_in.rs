//! The stand-ins for Karmada's programs refuse what the real ones refuse; else no test with them would mean anything.
//! What they do when all is well: `tests/e2e/karmada`.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

#[path = "shared/program.rs"]
mod program;
use program::write_program;

/// A stand-in as tests/stand-in/bundle makes it, and what it says when it ends by itself.
fn says(scratch: &TempDir, program: &str, version: &str, arguments: &[String]) -> String {
    let path = scratch.path().join(program);
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples/stand-in");
    let mut file = fs::read(built).unwrap();
    file.extend(format!("\nstand-in for {program} {version}\n").into_bytes());
    write_program(&path, &file);
    let output = Command::new(path).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn scheduler(arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    says(&tempfile::tempdir().unwrap(), "karmada-scheduler", "1.19.0", &arguments)
}

#[test]
fn it_says_that_it_is_a_stand_in() {
    assert!(scheduler(&["version"]).contains("v1.19.0-stand-in"));
    assert!(scheduler(&["--help"]).contains("A stand-in for karmada-scheduler"));
}

#[test]
fn flags_and_gates_that_its_release_does_not_have_end_it() {
    assert_eq!(scheduler(&["--kube-api-brust=1"]), "Error: unknown flag: --kube-api-brust\n");
    assert!(scheduler(&["--kube-api-burst=many"]).contains("invalid argument \"many\" for \"--kube-api-burst\" flag"));
    assert!(scheduler(&["--feature-gates=Failovr=true"]).contains("unrecognized feature gate: Failovr"));
    // 1.19 has it, 1.18 has not.
    let newer = ["--legacy-stderr-threshold-behavior=true".to_owned()];
    let of = |version: &str| says(&tempfile::tempdir().unwrap(), "karmada-scheduler", version, &newer);
    assert!(of("1.18.2").contains("unknown flag"));
    assert_eq!(of("1.19.0"), "Error: --kubeconfig is not given\n");
}

/// A certificate that ended or begins so many days from now, with its key.
fn certificate(scratch: &TempDir, name: &str, from: i64, to: i64) -> (PathBuf, PathBuf) {
    let day = |days: i64| time::OffsetDateTime::now_utc() + time::Duration::days(days);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (day(from), day(to));
    let at = |end: &str| scratch.path().join(format!("{name}.{end}"));
    fs::write(at("crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(at("key"), key.serialize_pem()).unwrap();
    (at("crt"), at("key"))
}

#[test]
fn certificates_that_are_of_no_use_end_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (good, key) = certificate(&scratch, "good", -1, 1);
    let (ended, of_ended) = certificate(&scratch, "ended", -2, -1);
    let (later, of_later) = certificate(&scratch, "later", 1, 2);
    let said = |certificate: &Path, key: &Path| {
        let flags = [("tls-cert-file", certificate), ("tls-private-key-file", key)];
        let flags: Vec<String> = flags.iter().map(|(flag, path)| format!("--{flag}={}", path.display())).collect();
        says(&scratch, "karmada-search", "1.19.0", &flags)
    };
    assert!(said(&ended, &of_ended).contains("ended.crt: the certificate has expired on "));
    assert!(said(&later, &of_later).contains("later.crt: the certificate is not valid before "));
    let mixed = said(&good, &of_later);
    assert!(mixed.contains("good.crt and") && mixed.contains("later.key"), "{mixed}");
    assert!(said(&good, Path::new("/nowhere")).contains("/nowhere is not a valid private key"));
    assert_eq!(said(&good, &key), "Error: --kubeconfig is not given\n");
}

#[test]
fn an_api_server_that_does_not_answer_ends_it() {
    let scratch = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = scratch.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: 'https://{free}'}}}}]\n\
         users: [{{name: a, user: {{token: t}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    fs::write(&kubeconfig, text).unwrap();
    let said = says(&scratch, "karmada-scheduler", "1.19.0", &[format!("--kubeconfig={}", kubeconfig.display())]);
    assert!(said.starts_with(&format!("Error: https://{free}/")), "{said}");
}
