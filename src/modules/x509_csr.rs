//! `x509_csr`: a certificate signing request for another CA, from an existing key. Writes nothing.

use rcgen::CertificateParams;
use serde::Deserialize;

use super::x509::{self, key};
use super::{Controller, Error, Inspect, Outcome};
use crate::remote::Probe;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct X509Csr {
    privatekey_path: String,
    common_name: String,
    organization: Option<String>,
}

impl Inspect for X509Csr {
    const DOC: Doc = Doc {
        name: "x509_csr",
        collection: "windlass",
        summary: "Create a certificate signing request",
        arguments: &[
            Argument::new("privatekey_path", ArgumentKind::Path, "The private key, PEM; it must exist").required(),
            Argument::new("common_name", ArgumentKind::Str, "The common name").required(),
            Argument::new("organization", ArgumentKind::Str, "Its organization"),
        ],
        free_form: None,
        example: "\
- name: Create the request for the agent's certificate
  windlass.x509_csr:
    privatekey_path: /etc/agent/agent.key
    common_name: system:karmada:agent:member-1
    organization: system:karmada:agents
  register: request
",
        returns: &[Return::new("csr", "The request, PEM")],
    };
    async fn inspect(&self, probe: &Probe, here: &Controller<'_>) -> Result<Outcome, Error> {
        let path = probe.expand_on_host(&self.privatekey_path).await?;
        let found = x509::read_pem(probe, &path).await?;
        let found = found.ok_or_else(|| Error::failed(format!("no such private key: {path}")))?;
        let key = key::decrypt_private_key(here, &found.text, &path)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = x509::distinguished_name(&self.common_name, self.organization.as_deref());
        let request = params.serialize_request(&key).map_err(x509::cannot("create a certificate signing request"))?;
        let text = request.pem().map_err(x509::cannot("write a certificate signing request"))?;
        Ok(Outcome::default().with("csr", text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    const TASK: &str = "x509_csr: {privatekey_path: HOST/k, common_name: 'system:agent:m', organization: agents}";

    #[tokio::test]
    async fn openssl_reads_the_request_and_finds_it_signed_by_its_own_key() {
        let bench = Bench::new().await;
        bench.run("x509_key: {path: HOST/k}").await.unwrap();
        let reported = bench.run(TASK).await.unwrap();
        assert!(!reported.changed);
        bench.on_host("csr", value(&reported.outcome, "csr"));
        let output = std::process::Command::new("openssl")
            .args(["req", "-verify", "-noout", "-subject", "-in"])
            .arg(bench.host("csr"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("O = agents, CN = system:agent:m") && said.contains("verify OK"), "{said}");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_key_that_is_not_there_is_named() {
        let bench = Bench::new().await;
        assert!(bench.failure(TASK).await.contains("no such private key: "));
        bench.close().await;
    }
}
