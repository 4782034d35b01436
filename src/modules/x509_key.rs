//! `x509_key`: a key pair without a certificate, for signing tokens; generated once, never replaced.

use rcgen::KeyPair;
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::x509::key::{self, KeyType};
use super::x509::{self, MissingAttributes};
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct X509Key {
    path: String,
    publickey_path: Option<String>,
    key_type: KeyType,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

/// What is to be done.
pub(super) struct X509KeyChange {
    /// The key that was there.
    key: Option<KeyPair>,
    /// Whether the file of the public half has to be written.
    publish: bool,
    lacking: MissingAttributes,
    wanted: DesiredAttributes,
    path: String,
    public_path: Option<String>,
}

impl Module for X509Key {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "x509_key",
        collection: "windlass",
        summary: "Generate a private key, and write its public key",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The private key; generated if it does not exist").required(),
            Argument::new("publickey_path", ArgumentKind::Path, "A file for the public key, PEM"),
            Argument::new("key_type", ArgumentKind::Str, "The curve of a new key")
                .default("p256")
                .choices(&["p256", "p384"]),
            Argument::new("owner", ArgumentKind::Str, "The owner of both files"),
            Argument::new("group", ArgumentKind::Str, "The group of both files"),
            Argument::new(
                "mode",
                ArgumentKind::Mode,
                "The file mode of the public key, 0644 for a new one; the private key has 0600",
            ),
        ],
        free_form: None,
        example: "\
- name: Generate the key that signs service account tokens
  windlass.x509_key:
    path: /etc/service/pki/sa.key
    publickey_path: /etc/service/pki/sa.pub
",
        returns: &[
            Return::new("path", "The private key"),
            Return::new("publickey_path", "The file of its public key, or null"),
        ],
    };
    type Change = X509KeyChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<X509KeyChange>, Error> {
        let path = probe.expand_on_host(&self.path).await?;
        let public_path = match &self.publickey_path {
            Some(path) => Some(probe.expand_on_host(path).await?),
            None => None,
        };
        let found = x509::read_pem(probe, &path).await?;
        let public = match &public_path {
            Some(path) => x509::read_pem(probe, path).await?,
            None => None,
        };
        let key = found.as_ref().map(|found| key::decrypt_private_key(here, &found.text, &path)).transpose()?;
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let publish = public_path.is_some()
            && match (&key, &public) {
                (Some(key), Some(public)) => public.text != key.public_key_pem().into_bytes(),
                _ => true,
            };
        let lacking = MissingAttributes {
            certificate: match &public {
                Some(public) if !publish => wanted.lacking(&public.stat),
                _ => Attributes::default(),
            },
            key: found.as_ref().map_or_else(Default::default, |found| MissingAttributes::of_key(&wanted, &found.stat)),
        };
        let outcome = Outcome::default().with("path", path.as_str()).with("publickey_path", public_path.clone());
        if key.is_some() && !publish && lacking.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        let change = X509KeyChange { key, publish, lacking, wanted, path, public_path };
        Ok(Plan::Change { diff: vec![], outcome, change })
    }

    async fn apply(&self, change: X509KeyChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let X509KeyChange { key, publish, lacking, wanted, path, public_path } = change;
        let key = match key {
            Some(key) => key,
            None => {
                let key = key::generate(self.key_type)?;
                x509::write_new_key(remote, &path, &key.serialize_pem(), &wanted).await?;
                key
            }
        };
        let outcome = Outcome::default().with("path", path.as_str()).with("publickey_path", public_path.clone());
        let public_path = public_path.unwrap_or_default();
        if publish {
            x509::write_certificate(remote, &public_path, &key.public_key_pem(), &wanted).await?;
        }
        lacking.set_attributes(remote, &public_path, &path).await?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    const TASK: &str = "x509_key: {path: HOST/sa.key, publickey_path: HOST/sa.pub}";

    fn openssl(arguments: &[&str]) -> String {
        let output = std::process::Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[tokio::test]
    async fn a_key_pair_is_made_once_and_openssl_agrees_on_its_public_half() {
        let bench = Bench::new().await;
        assert!(bench.check(TASK).await.unwrap().changed);
        assert!(!bench.host("sa.key").exists());
        bench.run_twice(TASK).await;
        assert_eq!((bench.mode("sa.key"), bench.mode("sa.pub")), (0o600, 0o644));
        assert_eq!(openssl(&["pkey", "-pubout", "-in", bench.host("sa.key").to_str().unwrap()]), bench.text("sa.pub"));
        bench.close().await;
    }

    #[tokio::test]
    async fn an_altered_public_half_is_mended_and_the_key_kept() {
        let bench = Bench::new().await;
        bench.run(TASK).await.unwrap();
        let (key, public) = (bench.text("sa.key"), bench.text("sa.pub"));
        bench.on_host("sa.pub", "altered");
        bench.run_twice(TASK).await;
        assert_eq!((bench.text("sa.key"), bench.text("sa.pub")), (key, public));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_key_that_everybody_can_read_is_shut() {
        let bench = Bench::new().await;
        bench.run(TASK).await.unwrap();
        std::fs::set_permissions(bench.host("sa.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        bench.run_twice(TASK).await;
        assert_eq!(bench.mode("sa.key"), 0o600);
        bench.close().await;
    }
}
