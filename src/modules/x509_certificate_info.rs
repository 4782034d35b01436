//! `x509_certificate_info`: what a certificate says, and how many days it has left.

use serde::Deserialize;

use super::x509::{self, Certificate};
use super::{Controller, Error, Inspect, Outcome};
use crate::remote::Probe;
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct X509CertificateInfo {
    path: String,
}

impl Inspect for X509CertificateInfo {
    const DOC: Doc = Doc {
        name: "x509_certificate_info",
        collection: "windlass",
        summary: "Read a certificate: subject, issuer, names and days left",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The certificate, PEM; the first one of several").required()
        ],
        free_form: None,
        example: "\
- name: Check the expiry of the server certificate
  windlass.x509_certificate_info:
    path: /etc/etcd/pki/server.crt
  register: certificate
  failed_when: certificate.days_left < 14
",
        returns: &[
            Return::new("subject", "The certificate's subject"),
            Return::new("issuer", "The subject of its issuer"),
            Return::new("serial", "Its serial number, hex"),
            Return::new("fingerprint", "Its SHA-256 fingerprint, hex"),
            Return::new(
                "key_fingerprint",
                "The SHA-256 fingerprint of its public key, hex; a renewal with the same key keeps it",
            ),
            Return::new("key_fingerprints", "Those of all certificates in the file, in their order"),
            Return::new("not_before", "The start of its validity, UTC"),
            Return::new("not_after", "The end of its validity, UTC"),
            Return::new("days_left", "Whole days until it expires; negative if it has expired"),
            Return::new("subject_alt_name", "Its subject alternative names"),
            Return::new("exists", "If the task failed: false if there is no such file"),
        ],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let path = probe.expand_on_host(&self.path).await?;
        let found = probe.read_file(&path).await?;
        let found = found.ok_or_else(|| Error::absent(format!("there is no certificate {path}")))?;
        let certificate = Certificate::parse_certificate(&found, &path)?;
        let left = certificate.not_after - x509::in_days(0).unix_timestamp();
        let outcome = Outcome::default().with("days_left", left.div_euclid(24 * 60 * 60));
        let outcome = outcome.with("key_fingerprint", certificate.key_fingerprint());
        let all = Certificate::parse_certificates(&found, &path)?;
        let outcome = outcome.with("key_fingerprints", all.iter().map(Certificate::key_fingerprint).collect::<Value>());
        Ok(x509::described(outcome, &certificate))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::Error;
    use crate::value::Value;

    #[tokio::test]
    async fn it_tells_what_was_asked_for_when_the_certificate_was_made() {
        let bench = Bench::new().await;
        bench.run("x509_ca: {path: HOST/ca.crt, privatekey_path: HOST/ca.key, common_name: ca, validity: 30, renew_before: 1}")
            .await
            .unwrap();
        let reported = bench.run("x509_certificate_info: {path: HOST/ca.crt}").await.unwrap();
        assert!(!reported.changed);
        assert_eq!(value(&reported.outcome, "subject"), "CN=ca");
        // A second may have passed since.
        assert!(["29", "30"].contains(&value(&reported.outcome, "days_left").as_str()));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_renewed_authority_keeps_its_key_and_another_one_has_another() {
        let bench = Bench::new().await;
        let ca = |path: &str, days: u32| {
            format!(
                "x509_ca: {{path: HOST/{path}.crt, privatekey_path: HOST/{path}.key, common_name: ca, validity: {days}, renew_before: {}}}",
                days / 2
            )
        };
        for (path, days) in [("ca", 30), ("other", 30)] {
            bench.run(&ca(path, days)).await.unwrap();
        }
        let first = bench.run("x509_certificate_info: {path: HOST/ca.crt}").await.unwrap();
        // Half of the new validity is more than is left: it is renewed.
        assert!(bench.run(&ca("ca", 90)).await.unwrap().changed);
        let renewed = bench.run("x509_certificate_info: {path: HOST/ca.crt}").await.unwrap();
        let other = bench.run("x509_certificate_info: {path: HOST/other.crt}").await.unwrap();
        let key = |done: &super::super::ModuleResult| value(&done.outcome, "key_fingerprint");
        assert_ne!(value(&first.outcome, "fingerprint"), value(&renewed.outcome, "fingerprint"));
        assert_eq!(key(&first), key(&renewed));
        assert_ne!(key(&first), key(&other));
        bench.close().await;
    }

    #[tokio::test]
    async fn of_several_certificates_all_keys_are_named() {
        let bench = Bench::new().await;
        for path in ["ca", "other"] {
            let ca = format!("x509_ca: {{path: HOST/{path}.crt, privatekey_path: HOST/{path}.key, common_name: ca}}");
            bench.run(&ca).await.unwrap();
        }
        bench.on_host("both.crt", bench.text("other.crt") + &bench.text("ca.crt"));
        let mut keys = Vec::new();
        for path in ["both", "other", "ca"] {
            let reported = bench.run(&format!("x509_certificate_info: {{path: HOST/{path}.crt}}")).await.unwrap();
            let key = |name: &str| reported.outcome.values[name].clone();
            keys.push((key("key_fingerprint"), key("key_fingerprints")));
        }
        assert_eq!(keys[0].0, keys[1].0, "the first one counts");
        assert_eq!(keys[0].1, Value::from(vec![keys[1].0.clone(), keys[2].0.clone()]));
        assert_eq!(keys[2].1, Value::from(vec![keys[2].0.clone()]));
        bench.on_host(
            "both.crt",
            format!("{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", bench.text("ca.crt")),
        );
        assert!(bench.failure("x509_certificate_info: {path: HOST/both.crt}").await.contains("is damaged"));
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_not_there_or_no_certificate_is_named() {
        let bench = Bench::new().await;
        let absent = bench.run("x509_certificate_info: {path: HOST/no}").await;
        let Err(Error::Answered { message, values, .. }) = absent else { panic!() };
        assert!(message.contains("there is no certificate"));
        assert_eq!(values["exists"], Value::from(false));
        bench.on_host("rubbish", "nothing");
        assert!(bench.failure("x509_certificate_info: {path: HOST/rubbish}").await.contains("rubbish"));
        bench.close().await;
    }
}
