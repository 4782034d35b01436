//! `x509_certificate`: a certificate that a CA signs, and its key; renewed before it expires.

use std::collections::BTreeSet;

use rcgen::{ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::x509::certificate::{self, Usage};
use super::x509::key::{self, KeyType};
use super::x509::{self, Certificate, MissingAttributes};
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct X509Certificate {
    path: String,
    privatekey_path: String,
    ca_path: String,
    ca_privatekey_path: String,
    common_name: String,
    organization: Option<String>,
    subject_alt_name: Vec<String>,
    usages: Vec<Usage>,
    key_type: KeyType,
    new_key: bool,
    validity: i64,
    renew_before: i64,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

/// What is to be done.
pub(super) struct X509CertificateChange {
    /// Why a certificate is made; None: only attributes change.
    reason: Option<String>,
    key: Option<KeyPair>,
    /// There is a key, and a new one takes its place.
    replaces_key: bool,
    /// None only in check mode, where the task that makes it has made none.
    authority: Option<Certificate>,
    names: BTreeSet<String>,
    lacking: MissingAttributes,
    wanted: DesiredAttributes,
    path: String,
    key_path: String,
}

impl Module for X509Certificate {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "x509_certificate",
        collection: "windlass",
        summary: "Issue and renew a certificate from a CA, and generate its private key",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The certificate").required(),
            Argument::new("privatekey_path", ArgumentKind::Path, "Its private key; generated if it does not exist")
                .required(),
            Argument::new("ca_path", ArgumentKind::Path, "The certificate of the CA").required(),
            Argument::new(
                "ca_privatekey_path",
                ArgumentKind::Path,
                "The private key of the CA, vault-encrypted or not; read only to sign",
            )
            .required(),
            Argument::new("common_name", ArgumentKind::Str, "Its common name").required(),
            Argument::new("organization", ArgumentKind::Str, "Its organization"),
            Argument::new(
                "subject_alt_name",
                ArgumentKind::List(&ArgumentKind::Str),
                "Subject alternative names, as DNS:host or IP:1.2.3.4",
            )
            .default("[]"),
            Argument::new("usages", ArgumentKind::List(&ArgumentKind::Str), "Its extended key usages")
                .default("server_auth")
                .choices(Usage::NAMES),
            Argument::new("key_type", ArgumentKind::Str, "The curve of a new key")
                .default("p256")
                .choices(&["p256", "p384"]),
            Argument::new(
                "new_key",
                ArgumentKind::Bool,
                "Whether a certificate that another CA issued gets a new private key, too",
            )
            .default("false"),
            Argument::new("validity", ArgumentKind::Int, "How many days it is valid; at most as long as its CA")
                .default("365"),
            Argument::new("renew_before", ArgumentKind::Int, "How many days before it expires to renew it")
                .default("30"),
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
- name: Issue the server certificate of this host
  windlass.x509_certificate:
    path: /etc/etcd/pki/server.crt
    privatekey_path: /etc/etcd/pki/server.key
    ca_path: /etc/etcd/pki/ca.crt
    ca_privatekey_path: /etc/etcd/pki/ca.key
    common_name: etcd-1
    subject_alt_name: ['DNS:etcd-1', 'IP:10.0.0.1']
    usages: [server_auth, client_auth]
    owner: etcd
",
        returns: &[
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
        ],
    };
    type Change = X509CertificateChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<X509CertificateChange>, Error> {
        x509::check_days(self.validity, self.renew_before)?;
        let names = self
            .subject_alt_name
            .iter()
            .map(|name| certificate::parse_alternative_name(name))
            .collect::<Result<_, _>>()?;
        let (path, key_path) =
            (probe.expand_on_host(&self.path).await?, probe.expand_on_host(&self.privatekey_path).await?);
        let authority = self.authority(probe).await?;
        if authority.is_none() && !here.check {
            return Err(self.no_authority());
        }
        let (found, found_key) = (x509::read_pem(probe, &path).await?, x509::read_pem(probe, &key_path).await?);
        let key = found_key.as_ref().map(|found| key::decrypt_private_key(here, &found.text, &key_path)).transpose()?;
        // A damaged certificate is replaced: nothing is lost with it.
        let certificate = found.as_ref().and_then(|found| Certificate::parse_certificate(&found.text, &path).ok());
        let reason = match (&found, &certificate, &authority) {
            (None, _, _) => Some("the certificate does not exist yet".to_owned()),
            (Some(_), None, _) => Some("the certificate is damaged".to_owned()),
            (_, _, None) => Some("the certificate authority does not exist yet".to_owned()),
            (_, Some(certificate), Some(authority)) => self.reason(certificate, key.as_ref(), authority, &names),
        };
        let is_of_other_ca = match (&certificate, &authority) {
            (Some(certificate), Some(authority)) => !certificate.is_issued_by(authority),
            _ => false,
        };
        let replaces_key = self.new_key && is_of_other_ca && key.is_some();
        let key = key.filter(|_| !replaces_key);
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let lacking = found.as_ref().map_or_else(MissingAttributes::default, |found| {
            MissingAttributes::of_certificate(&wanted, &found.stat, found_key.as_ref().map(|key| &key.stat))
        });
        let outcome = x509::explained(reason.as_deref(), &path, &key_path);
        let outcome = match &certificate {
            Some(certificate) => x509::described(outcome, certificate),
            None => outcome,
        };
        if reason.is_none() && lacking.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        let usages: Vec<_> = self.usages().iter().map(|usage| usage.usage_name()).collect();
        let issuer = authority.as_ref().map_or("", |authority| &authority.subject);
        let after = certificate::describe_certificate(&self.subject(), issuer, &names, &usages);
        let diff =
            reason.as_ref().map(|_| x509::certificate_diff(&path, certificate.as_ref(), &after)).into_iter().collect();
        let change =
            X509CertificateChange { reason, key, replaces_key, authority, names, lacking, wanted, path, key_path };
        Ok(Plan::Change { diff, outcome, change })
    }

    async fn apply(
        &self,
        change: X509CertificateChange,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> Result<Outcome, Error> {
        let X509CertificateChange { reason, key, replaces_key, authority, names, lacking, wanted, path, key_path } =
            change;
        if reason.is_some() {
            let authority = authority.ok_or_else(|| self.no_authority())?;
            // The authority's key is read before anything is written: without it nothing is begun.
            let issuer = self.issuer(remote, here, &authority).await?;
            let (key, is_new) = match key {
                Some(key) => (key, false),
                None => (key::generate(self.key_type)?, true),
            };
            let pem = self.certificate(&key, &names, &authority, &issuer)?;
            if replaces_key {
                x509::rewrite_key(remote, &key_path, &key.serialize_pem(), &wanted).await?;
            } else if is_new {
                x509::write_new_key(remote, &key_path, &key.serialize_pem(), &wanted).await?;
            }
            x509::write_certificate(remote, &path, &pem, &wanted).await?;
        }
        lacking.set_attributes(remote, &path, &key_path).await?;
        let made = x509::read_pem(remote, &path).await?.ok_or_else(|| Error::failed(format!("{path} vanished")))?;
        let outcome = x509::explained(reason.as_deref(), &path, &key_path);
        Ok(x509::described(outcome, &Certificate::parse_certificate(&made.text, &path)?))
    }
}

impl X509Certificate {
    fn subject(&self) -> String {
        x509::subject(&self.common_name, self.organization.as_deref())
    }

    fn no_authority(&self) -> Error {
        Error::failed(format!("no such certificate authority: {}", self.ca_path))
    }

    fn usages(&self) -> BTreeSet<Usage> {
        self.usages.iter().copied().collect()
    }

    /// The authority's certificate; refused if it is none, or no longer valid.
    async fn authority(&self, probe: &Probe) -> Result<Option<Certificate>, Error> {
        let path = probe.expand_on_host(&self.ca_path).await?;
        let Some(found) = x509::read_pem(probe, &path).await? else { return Ok(None) };
        let authority = Certificate::parse_certificate(&found.text, &path)?;
        if authority.authority.is_none() {
            return Err(Error::failed(format!("the certificate {path} is not a CA certificate")));
        }
        if authority.not_after <= x509::in_days(0).unix_timestamp() {
            let ended = x509::timestamp(authority.not_after);
            return Err(Error::failed(format!("the certificate authority {path} expired on {ended}")));
        }
        Ok(Some(authority))
    }

    /// Why a new certificate is needed, if one is.
    fn reason(
        &self,
        certificate: &Certificate,
        key: Option<&KeyPair>,
        authority: &Certificate,
        names: &BTreeSet<String>,
    ) -> Option<String> {
        let Some(key) = key else { return Some("the private key does not exist".to_owned()) };
        if certificate.public_key != key::public(key) {
            return Some("the certificate does not match the private key".to_owned());
        }
        if !certificate.is_issued_by(authority) {
            return Some(format!("the certificate was not issued by this CA ({})", authority.subject));
        }
        if certificate.subject != self.subject() {
            return Some(format!("the subject changed from {} to {}", certificate.subject, self.subject()));
        }
        if certificate.names != *names {
            let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
            return Some(format!("subject_alt_name changed from {} to {}", list(&certificate.names), list(names)));
        }
        if certificate.usages != self.usages() {
            return Some("the usages changed".to_owned());
        }
        // A certificate that ends with its authority cannot be made to last longer.
        let close = certificate.not_after <= x509::in_days(self.renew_before).unix_timestamp();
        let ended = certificate.not_after <= x509::in_days(0).unix_timestamp();
        match close && certificate.not_after < authority.not_after {
            true if ended => Some(format!("the certificate expired on {}", x509::timestamp(certificate.not_after))),
            true => Some(format!("the certificate expires on {}", x509::timestamp(certificate.not_after))),
            false => None,
        }
    }

    async fn issuer(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        authority: &Certificate,
    ) -> Result<Issuer<'static, KeyPair>, Error> {
        let path = probe.expand_on_host(&self.ca_privatekey_path).await?;
        let found = x509::read_pem(probe, &path).await?;
        let found = found.ok_or_else(|| Error::failed(format!("no such private key of the CA: {path}")))?;
        let key = key::decrypt_private_key(here, &found.text, &path)?;
        if key::public(&key) != authority.public_key {
            let message = format!("the private key {path} does not match the CA {}", self.ca_path);
            return Err(Error::failed(message));
        }
        Issuer::from_ca_cert_der(&authority.der, key).map_err(x509::cannot("use the CA"))
    }

    /// A signed certificate, PEM.
    fn certificate(
        &self,
        key: &KeyPair,
        names: &BTreeSet<String>,
        authority: &Certificate,
        issuer: &Issuer<'static, KeyPair>,
    ) -> Result<String, Error> {
        let end = x509::in_days(self.validity);
        let latest = time::OffsetDateTime::from_unix_timestamp(authority.not_after).unwrap_or(end);
        let mut params = x509::parameters(&self.common_name, self.organization.as_deref(), end.min(latest));
        params.is_ca = IsCa::ExplicitNoCa;
        params.subject_alt_names = names.iter().filter_map(|name| certificate::san(name)).collect();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if key::is_rsa(key) {
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages =
            self.usages().into_iter().map(Usage::purpose).collect::<Vec<ExtendedKeyUsagePurpose>>();
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(key, issuer).map_err(x509::cannot("sign the certificate"))?.pem())
    }
}

#[cfg(test)]
mod tests;
