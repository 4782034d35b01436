//! `x509_ca`: a certificate authority: a key and a self-signed certificate.

use rcgen::{BasicConstraints, IsCa, KeyPair, KeyUsagePurpose};
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::x509::key::{self, KeyType};
use super::x509::{self, Certificate, MissingAttributes};
use super::{Changes, Controller, Error, Module, Outcome, Plan, vault_file};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct X509Ca {
    path: String,
    privatekey_path: String,
    common_name: String,
    organization: Option<String>,
    key_type: KeyType,
    path_length: Option<u8>,
    vault: bool,
    validity: i64,
    renew_before: i64,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

/// What is to be done.
pub(super) struct X509CaChange {
    /// Why a certificate is made; None: only attributes change.
    reason: Option<&'static str>,
    /// The key that was there.
    key: Option<KeyPair>,
    /// The key that is there has to be encrypted.
    seal: bool,
    lacking: MissingAttributes,
    wanted: DesiredAttributes,
    path: String,
    key_path: String,
}

impl Module for X509Ca {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "x509_ca",
        collection: "windlass",
        summary: "Create a certificate authority: a private key and a self-signed certificate",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The certificate").required(),
            Argument::new("privatekey_path", ArgumentKind::Path, "Its private key; generated if it does not exist")
                .required(),
            Argument::new("common_name", ArgumentKind::Str, "The CA's name; it can never change").required(),
            Argument::new("organization", ArgumentKind::Str, "Its organization; it can never change"),
            Argument::new("key_type", ArgumentKind::Str, "The curve of a new key")
                .default("p256")
                .choices(&["p256", "p384"]),
            Argument::new(
                "path_length",
                ArgumentKind::Int,
                "The maximum number of CA levels below this one (default: no limit)",
            ),
            Argument::new(
                "vault",
                ArgumentKind::Bool,
                "Whether to keep the key encrypted with the first vault password of the run, if there is one",
            )
            .default("false"),
            Argument::new("validity", ArgumentKind::Int, "How many days the certificate is valid").default("3650"),
            Argument::new(
                "renew_before",
                ArgumentKind::Int,
                "How many days before it expires to renew it, with the same key",
            )
            .default("90"),
            Argument::new("owner", ArgumentKind::Str, "The owner of both files"),
            Argument::new("group", ArgumentKind::Str, "The group of both files"),
            Argument::new(
                "mode",
                ArgumentKind::Mode,
                "The file mode of the certificate, 0644 for a new one; the key has 0600",
            ),
        ],
        free_form: None,
        example: "\
- name: Create the certificate authority of this cluster
  windlass.x509_ca:
    path: /etc/etcd/pki/ca.crt
    privatekey_path: /etc/etcd/pki/ca.key
    common_name: etcd-ca
    path_length: 0
",
        returns: RETURNS,
    };
    type Change = X509CaChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<X509CaChange>, Error> {
        x509::check_days(self.validity, self.renew_before)?;
        let (path, key_path) =
            (probe.expand_on_host(&self.path).await?, probe.expand_on_host(&self.privatekey_path).await?);
        let (found, found_key) = (x509::read_pem(probe, &path).await?, x509::read_pem(probe, &key_path).await?);
        let key = found_key.as_ref().map(|found| key::decrypt_private_key(here, &found.text, &key_path)).transpose()?;
        let certificate = found.as_ref().map(|found| Certificate::parse_certificate(&found.text, &path)).transpose()?;
        let reason = match (&certificate, &key) {
            (None, _) => Some("the certificate does not exist yet"),
            (Some(_), None) => return Err(lost_key(&path, &key_path)),
            (Some(certificate), Some(key)) => self.reason(certificate, key, &path, &key_path)?,
        };
        // A renewal would write one of them alone: while a CA is replaced, hosts trust two.
        let has_several = match &found {
            Some(found) => Certificate::parse_certificates(&found.text, &path)?.len() > 1,
            None => false,
        };
        let reason = reason.filter(|_| !has_several);
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let lacking = found.as_ref().map_or_else(MissingAttributes::default, |found| {
            MissingAttributes::of_certificate(&wanted, &found.stat, found_key.as_ref().map(|key| &key.stat))
        });
        let seal = self.vault
            && vault_file::seals(here)
            && found_key.as_ref().is_some_and(|found| !vault_file::is_sealed(&found.text));
        let outcome = x509::explained(reason.or(seal.then_some(SEAL)), &path, &key_path);
        let outcome = match &certificate {
            Some(certificate) => x509::described(outcome, certificate),
            None => outcome,
        };
        if reason.is_none() && lacking.is_empty() && !seal {
            return Ok(Plan::Unchanged(outcome));
        }
        let subject = x509::subject(&self.common_name, self.organization.as_deref());
        let after = x509::certificate::describe_certificate(&subject, &subject, &Default::default(), &[]);
        let diff = reason.map(|_| x509::certificate_diff(&path, certificate.as_ref(), &after)).into_iter().collect();
        Ok(Plan::Change { diff, outcome, change: X509CaChange { reason, key, seal, lacking, wanted, path, key_path } })
    }

    async fn apply(&self, change: X509CaChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let X509CaChange { reason, key, seal, lacking, wanted, path, key_path } = change;
        let (key, is_new) = match key {
            Some(key) => (key, false),
            None => (key::generate(self.key_type)?, true),
        };
        if is_new || seal {
            let sealed = self.vault.then(|| key::sealed(here, &key)).flatten();
            let text = sealed.unwrap_or_else(|| key.serialize_pem());
            match is_new {
                true => x509::write_new_key(remote, &key_path, &text, &wanted).await?,
                false => x509::rewrite_key(remote, &key_path, &text, &wanted).await?,
            }
        }
        if reason.is_some() {
            x509::write_certificate(remote, &path, &self.certificate(&key)?, &wanted).await?;
        }
        lacking.set_attributes(remote, &path, &key_path).await?;
        let made = x509::read_pem(remote, &path).await?.ok_or_else(|| Error::failed(format!("{path} vanished")))?;
        let said = reason.or(seal.then_some(SEAL));
        Ok(x509::described(
            x509::explained(said, &path, &key_path),
            &Certificate::parse_certificate(&made.text, &path)?,
        ))
    }
}

/// Why only the key's file changes.
const SEAL: &str = "the private key is not encrypted yet";

const RETURNS: &[Return] = &[
    Return::new("reason", "Why a certificate was issued, or null"),
    Return::new("subject", "The certificate's subject"),
    Return::new("issuer", "The subject of its issuer"),
    Return::new("serial", "Its serial number, hex"),
    Return::new("fingerprint", "Its SHA-256 fingerprint, hex"),
    Return::new("not_before", "The start of its validity, UTC"),
    Return::new("not_after", "The end of its validity, UTC"),
    Return::new("subject_alt_name", "Its subject alternative names"),
    Return::new("path", "The certificate"),
    Return::new("privatekey_path", "Its private key"),
];

impl X509Ca {
    /// Why the certificate must be renewed with the same key, if it must; refuses changes that are not allowed.
    fn reason(
        &self,
        certificate: &Certificate,
        key: &KeyPair,
        path: &str,
        key_path: &str,
    ) -> Result<Option<&'static str>, Error> {
        if certificate.public_key != key::public(key) {
            return Err(Error::failed(format!("the private key {key_path} does not match the certificate {path}")));
        }
        let Some(path_length) = certificate.authority else {
            return Err(Error::failed(format!("the certificate {path} is not a CA certificate")));
        };
        let subject = x509::subject(&self.common_name, self.organization.as_deref());
        if certificate.subject != subject {
            return Err(Error::Failed {
                message: format!(
                    "the CA {path} has the subject {:?} and cannot change to {subject:?}",
                    certificate.subject
                ),
                hint: Some("the certificates that it signed name it; use other paths for a new CA".into()),
            });
        }
        Ok(if path_length != self.path_length.map(u32::from) {
            Some("the path length changed")
        } else if certificate.not_after <= x509::in_days(self.renew_before).unix_timestamp() {
            Some("the certificate expires soon")
        } else {
            None
        })
    }

    /// A self-signed certificate, PEM.
    fn certificate(&self, key: &KeyPair) -> Result<String, Error> {
        let not_after = x509::in_days(self.validity);
        let mut params = x509::parameters(&self.common_name, self.organization.as_deref(), not_after);
        params.is_ca =
            IsCa::Ca(self.path_length.map_or(BasicConstraints::Unconstrained, BasicConstraints::Constrained));
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(params.self_signed(key).map_err(x509::cannot("issue the certificate"))?.pem())
    }
}

fn lost_key(path: &str, key_path: &str) -> Error {
    Error::Failed {
        message: format!("the certificate authority {path} exists, but not its private key {key_path}"),
        hint: Some(
            "restore the key; to create a new CA, remove the certificate (hosts that trust the old CA will not trust \
             the new one)"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::{Bench, value};
    use crate::value::Secret;
    use crate::value::vault::Keyring;

    const TASK: &str = "x509_ca: {path: HOST/ca.crt, privatekey_path: HOST/ca.key, common_name: ca, organization: Org, path_length: 0}";

    fn openssl(arguments: &[&str]) -> String {
        let output = std::process::Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[tokio::test]
    async fn an_authority_is_made_once_and_openssl_takes_it() {
        let bench = Bench::new().await;
        assert!(bench.check(TASK).await.unwrap().changed);
        let done = bench.run_twice(TASK).await;
        assert_eq!(value(&done.outcome, "reason"), "the certificate does not exist yet");
        assert_eq!(value(&done.outcome, "subject"), "O=Org, CN=ca");
        assert_eq!((bench.mode("ca.key"), bench.mode("ca.crt")), (0o600, 0o644));
        let path = bench.host("ca.crt");
        let path = path.to_str().unwrap();
        openssl(&["verify", "-x509_strict", "-CAfile", path, path]);
        let text = openssl(&["x509", "-in", path, "-noout", "-text"]);
        for part in ["CA:TRUE, pathlen:0", "Certificate Sign", "Subject Key Identifier", "ecdsa-with-SHA256"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        bench.close().await;
    }

    /// Each with a session of its own, as processes. Whether they meet is chance, so it is tried until they do.
    #[tokio::test]
    async fn of_several_runs_at_once_one_creates_the_authority() {
        let benches = futures::future::join_all((0..4).map(|_| Bench::new())).await;
        let mut met = false;
        for round in 0..50 {
            let path = benches[0].host(&round.to_string());
            std::fs::create_dir(&path).unwrap();
            let task = TASK.replace("HOST", path.to_str().unwrap());
            let mut created = 0;
            for done in futures::future::join_all(benches.iter().map(|bench| bench.run(&task))).await {
                match done {
                    Ok(done) => created += usize::from(done.changed),
                    Err(error) => {
                        assert!(error.to_string().contains("another process created it meanwhile"), "{error}");
                        met = true;
                    }
                }
            }
            assert!(created > 0);
            assert!(!benches[0].run(&task).await.unwrap().changed, "its key and its certificate belong together");
            if met {
                break;
            }
        }
        assert!(met, "none of them noticed the key of another");
        for bench in benches {
            bench.close().await;
        }
    }

    #[tokio::test]
    async fn an_authority_without_its_key_is_refused_and_left_alone() {
        let bench = Bench::new().await;
        bench.run(TASK).await.unwrap();
        std::fs::remove_file(bench.host("ca.key")).unwrap();
        let before = bench.text("ca.crt");
        assert!(bench.failure(TASK).await.contains("but not its private key"));
        assert_eq!(bench.text("ca.crt"), before);
        assert!(!bench.host("ca.key").exists());
        bench.close().await;
    }

    #[tokio::test]
    async fn another_name_or_another_key_is_refused() {
        let bench = Bench::new().await;
        bench.run(TASK).await.unwrap();
        assert!(bench.failure(&TASK.replace("common_name: ca", "common_name: cb")).await.contains("cannot change to"));
        let other = super::key::generate(super::KeyType::P256).unwrap();
        bench.on_host("ca.key", other.serialize_pem());
        assert!(bench.failure(TASK).await.contains("does not match"));
        bench.close().await;
    }

    #[tokio::test]
    async fn of_two_authorities_in_the_file_the_first_counts_and_none_is_renewed() {
        let bench = Bench::new().await;
        bench.run(TASK).await.unwrap();
        bench.run(&TASK.replace("HOST/ca.", "HOST/next.")).await.unwrap();
        let both = bench.text("ca.crt") + &bench.text("next.crt");
        bench.on_host("ca.crt", both.clone());
        assert!(!bench.run(TASK).await.unwrap().changed);
        let soon = TASK.replace("path_length: 0", "path_length: 0, validity: 5000, renew_before: 4000");
        assert!(!bench.run(&soon).await.unwrap().changed, "one of them alone would be renewed");
        assert_eq!(bench.text("ca.crt"), both);
        bench.on_host("ca.crt", bench.text("next.crt"));
        bench.on_host("ca.key", bench.text("next.key"));
        assert!(bench.run(&soon).await.unwrap().changed);
        bench.close().await;
    }

    #[tokio::test]
    async fn close_to_its_end_it_is_renewed_with_the_same_key() {
        let bench = Bench::new().await;
        bench.run(&format!("{}, validity: 30, renew_before: 1}}", TASK.trim_end_matches('}'))).await.unwrap();
        let (key, old) = (bench.text("ca.key"), bench.text("ca.crt"));
        let done = bench.run_twice(TASK).await;
        assert_eq!(value(&done.outcome, "reason"), "the certificate expires soon");
        assert!(done.diff[0].before.contains("not_after: "), "{:?}", done.diff);
        assert_eq!(bench.text("ca.key"), key);
        assert_ne!(bench.text("ca.crt"), old);
        bench.close().await;
    }

    #[tokio::test]
    async fn with_a_vault_password_the_key_is_kept_encrypted_and_still_signs() {
        let mut bench = Bench::new().await;
        let task = TASK.replace("path_length: 0", "path_length: 0, vault: true");
        bench.run(&task).await.unwrap();
        let plain = bench.text("ca.key");
        assert!(plain.contains("PRIVATE KEY"), "without a vault password it is as it is");

        let keyring = Keyring::new(vec![("default".to_owned(), Secret::new("hidden"))]);
        bench.scope.keyring = Arc::new(keyring.clone());
        let done = bench.run_twice(&task).await;
        assert_eq!(value(&done.outcome, "reason"), "the private key is not encrypted yet");
        let sealed = bench.text("ca.key");
        assert_eq!(String::from_utf8(keyring.decrypt(&sealed).unwrap()).unwrap(), plain);
        assert_eq!(bench.mode("ca.key"), 0o600);
        let leaf = "x509_certificate: {path: HOST/s.crt, privatekey_path: HOST/s.key, ca_path: HOST/ca.crt, \
            ca_privatekey_path: HOST/ca.key, common_name: s}";
        bench.run_twice(leaf).await;

        bench.scope.keyring = Arc::default();
        assert!(bench.failure(&task).await.contains("cannot decrypt the private key"));
        assert_eq!(bench.text("ca.key"), sealed);
        bench.close().await;
    }

    #[tokio::test]
    async fn an_rsa_key_that_was_brought_is_used_and_shut() {
        let bench = Bench::new().await;
        let path = bench.host("ca.key");
        openssl(&["genrsa", "-traditional", "-out", path.to_str().unwrap(), "2048"]);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let key = bench.text("ca.key");
        bench.run(TASK).await.unwrap();
        bench.run(TASK).await.unwrap();
        assert!(!bench.run(TASK).await.unwrap().changed);
        assert_eq!((bench.text("ca.key"), bench.mode("ca.key")), (key, 0o600));
        bench.close().await;
    }
}
