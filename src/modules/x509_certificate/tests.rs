//! With openssl as the judge.

use super::super::testing::{Bench, value};

const CA: &str = "x509_ca: {path: HOST/ca.crt, privatekey_path: HOST/ca.key, common_name: ca}";
const TASK: &str = "x509_certificate: {path: HOST/s.crt, privatekey_path: HOST/s.key, ca_path: HOST/ca.crt, \
    ca_privatekey_path: HOST/ca.key, common_name: etcd-1, organization: etcd, \
    subject_alt_name: ['DNS:etcd-1', 10.0.0.1, 'IP:fd00::1'], usages: [server_auth, client_auth]}";

fn with(more: &str) -> String {
    format!("{}, {more}}}", TASK.trim_end_matches('}'))
}

fn openssl(arguments: &[&str]) -> String {
    let output = std::process::Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn verify(bench: &Bench, purpose: &str) {
    let (ca, certificate) = (bench.host("ca.crt"), bench.host("s.crt"));
    openssl(&[
        "verify",
        "-x509_strict",
        "-purpose",
        purpose,
        "-CAfile",
        ca.to_str().unwrap(),
        certificate.to_str().unwrap(),
    ]);
}

async fn bench() -> Bench {
    let bench = Bench::new().await;
    bench.run(CA).await.unwrap();
    bench
}

#[tokio::test]
async fn a_certificate_is_made_once_and_openssl_verifies_it() {
    let bench = bench().await;
    assert!(bench.check(TASK).await.unwrap().changed);
    let done = bench.run_twice(TASK).await;
    assert_eq!(value(&done.outcome, "subject"), "O=etcd, CN=etcd-1");
    assert_eq!(value(&done.outcome, "subject_alt_name"), "['DNS:etcd-1', 'IP:10.0.0.1', 'IP:fd00::1']");
    assert_eq!((bench.mode("s.key"), bench.mode("s.crt")), (0o600, 0o644));
    verify(&bench, "sslserver");
    verify(&bench, "sslclient");
    let text = openssl(&["x509", "-in", bench.host("s.crt").to_str().unwrap(), "-noout", "-text"]);
    for part in ["CA:FALSE", "Authority Key Identifier", "DNS:etcd-1", "IP Address:10.0.0.1", "TLS Web Client"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    bench.close().await;
}

#[tokio::test]
async fn a_private_key_is_never_in_what_is_shown() {
    let bench = bench().await;
    let done = bench.run(TASK).await.unwrap();
    let shown = format!("{:?} {:?}", done.outcome, done.diff);
    let key = bench.text("s.key");
    let secret = key.lines().nth(1).unwrap();
    assert!(!shown.contains(secret) && !shown.contains("PRIVATE"), "{shown}");
    bench.close().await;
}

#[tokio::test]
async fn whatever_changes_makes_a_new_certificate_with_the_same_key_and_says_why() {
    let bench = bench().await;
    bench.run(TASK).await.unwrap();
    let key = bench.text("s.key");
    let changes = [
        (TASK.replace("10.0.0.1", "10.0.0.2"), "subject_alt_name changed from "),
        (TASK.replace("server_auth, ", ""), "the usages changed"),
        (TASK.replace("common_name: etcd-1", "common_name: etcd-2"), "the subject changed from O=etcd, CN=etcd-1"),
        (with("validity: 400, renew_before: 380"), "the certificate expires on "),
    ];
    for (task, reason) in changes {
        bench.run(TASK).await.unwrap();
        let done = bench.run_twice(&task).await;
        assert!(value(&done.outcome, "reason").starts_with(reason), "{}", value(&done.outcome, "reason"));
        assert_eq!(done.outcome.message, Some(value(&done.outcome, "reason")));
    }
    assert_eq!(bench.text("s.key"), key);
    bench.close().await;
}

#[tokio::test]
async fn a_lost_or_strange_key_and_a_damaged_certificate_are_mended() {
    let bench = bench().await;
    bench.run(TASK).await.unwrap();
    std::fs::remove_file(bench.host("s.key")).unwrap();
    assert_eq!(value(&bench.run_twice(TASK).await.outcome, "reason"), "the private key does not exist");
    bench.on_host("s.key", super::key::generate(super::KeyType::P384).unwrap().serialize_pem());
    let done = bench.run(TASK).await.unwrap();
    assert_eq!(value(&done.outcome, "reason"), "the certificate does not match the private key");
    bench.on_host("s.crt", "rubbish");
    assert_eq!(value(&bench.run_twice(TASK).await.outcome, "reason"), "the certificate is damaged");
    verify(&bench, "sslserver");
    bench.close().await;
}

#[tokio::test]
async fn with_another_authority_comes_another_key_if_asked_for() {
    let bench = bench().await;
    bench.run(TASK).await.unwrap();
    let first = bench.text("s.key");
    let replace = async || {
        std::fs::remove_file(bench.host("ca.key")).unwrap();
        std::fs::remove_file(bench.host("ca.crt")).unwrap();
        bench.run(CA).await.unwrap();
    };
    let with_new_key = with("new_key: true");
    assert!(!bench.run(&with_new_key).await.unwrap().changed, "its own authority has issued it");
    replace().await;
    bench.run_twice(TASK).await;
    assert_eq!(bench.text("s.key"), first);
    replace().await;
    assert!(bench.check(&with_new_key).await.unwrap().changed);
    assert_eq!(bench.text("s.key"), first, "a dry run writes nothing");
    bench.run_twice(&with_new_key).await;
    assert_ne!(bench.text("s.key"), first);
    assert_eq!(bench.mode("s.key"), 0o600);
    verify(&bench, "sslserver");
    bench.close().await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_of_the_same_name_is_replaced() {
    let bench = bench().await;
    bench.run(TASK).await.unwrap();
    std::fs::remove_file(bench.host("ca.key")).unwrap();
    std::fs::remove_file(bench.host("ca.crt")).unwrap();
    bench.run(CA).await.unwrap();
    let done = bench.run_twice(TASK).await;
    assert!(value(&done.outcome, "reason").contains("not issued by this CA"));
    verify(&bench, "sslserver");
    bench.close().await;
}

#[tokio::test]
async fn a_certificate_never_outlives_its_authority_and_is_not_renewed_for_that() {
    let bench = Bench::new().await;
    bench.run(&CA.replace("common_name", "validity: 10, renew_before: 5, common_name")).await.unwrap();
    let done = bench.run_twice(TASK).await;
    let ca = bench.run(&CA.replace("common_name", "validity: 10, renew_before: 5, common_name")).await.unwrap();
    assert_eq!(value(&done.outcome, "not_after"), value(&ca.outcome, "not_after"));
    bench.close().await;
}

#[tokio::test]
async fn without_the_authoritys_key_nothing_is_written_but_what_is_valid_stays_so() {
    let bench = bench().await;
    std::fs::rename(bench.host("ca.key"), bench.host("away.key")).unwrap();
    assert!(bench.failure(TASK).await.contains("no such private key of the CA"));
    assert!(!bench.host("s.key").exists() && !bench.host("s.crt").exists());
    std::fs::rename(bench.host("away.key"), bench.host("ca.key")).unwrap();
    bench.run(TASK).await.unwrap();
    std::fs::remove_file(bench.host("ca.key")).unwrap();
    assert!(!bench.run(TASK).await.unwrap().changed);
    bench.close().await;
}

#[tokio::test]
async fn check_mode_takes_it_that_the_authority_is_made_before() {
    let bench = Bench::new().await;
    assert!(bench.check(TASK).await.unwrap().changed);
    assert!(bench.failure(TASK).await.starts_with("no such certificate authority: "));
    bench.close().await;
}

#[tokio::test]
async fn rsa_keys_of_both_are_accepted_when_brought() {
    let bench = Bench::new().await;
    for name in ["ca.key", "s.key"] {
        openssl(&["genrsa", "-out", bench.host(name).to_str().unwrap(), "2048"]);
    }
    bench.run(CA).await.unwrap();
    bench.run_twice(TASK).await;
    verify(&bench, "sslserver");
    bench.close().await;
}
