//! What a certificate says, in comparable form.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rcgen::{ExtendedKeyUsagePurpose, SanType};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

use super::timestamp;
use crate::modules::Error;

/// What a certificate may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Usage {
    ServerAuth,
    ClientAuth,
    CodeSigning,
    EmailProtection,
    TimeStamping,
    OcspSigning,
}

impl Usage {
    /// Their names, as in the argument `usages`.
    pub(crate) const NAMES: &'static [&'static str] =
        &["server_auth", "client_auth", "code_signing", "email_protection", "time_stamping", "ocsp_signing"];

    pub(crate) fn usage_name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(crate) fn purpose(self) -> ExtendedKeyUsagePurpose {
        match self {
            Usage::ServerAuth => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::ClientAuth => ExtendedKeyUsagePurpose::ClientAuth,
            Usage::CodeSigning => ExtendedKeyUsagePurpose::CodeSigning,
            Usage::EmailProtection => ExtendedKeyUsagePurpose::EmailProtection,
            Usage::TimeStamping => ExtendedKeyUsagePurpose::TimeStamping,
            Usage::OcspSigning => ExtendedKeyUsagePurpose::OcspSigning,
        }
    }
}

/// The first certificate of a PEM file.
pub(crate) struct Certificate {
    pub der: CertificateDer<'static>,
    /// `O=example, CN=host`, in the order of the certificate.
    pub subject: String,
    pub issuer: String,
    /// `DNS:x`, `IP:1.2.3.4`
    pub names: BTreeSet<String>,
    pub usages: BTreeSet<Usage>,
    /// Seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    /// Lower-case hex, pairs with colons.
    pub serial: String,
    /// SHA-256 of it, lower-case hex, pairs with colons.
    pub fingerprint: String,
    /// Its public key in DER.
    pub public_key: Vec<u8>,
    /// None: it is no CA. `Some(None)`: one without a limit to its path.
    pub authority: Option<Option<u32>>,
}

impl Certificate {
    /// Reads PEM text. `path` is for messages.
    pub(crate) fn parse_certificate(text: &[u8], path: &str) -> Result<Certificate, Error> {
        let der = CertificateDer::from_pem_slice(text)
            .map_err(|_| Error::failed(format!("{path} has no certificate in PEM format")))?
            .into_owned();
        Self::from_der(der).ok_or_else(|| Error::failed(format!("the certificate {path} is damaged")))
    }

    /// Reads all certificates of PEM text. `path` is for messages.
    pub(crate) fn parse_certificates(text: &[u8], path: &str) -> Result<Vec<Certificate>, Error> {
        let damaged = || Error::failed(format!("the certificate {path} is damaged"));
        let parse = |der: Result<CertificateDer<'static>, _>| der.ok().and_then(Self::from_der).ok_or_else(damaged);
        CertificateDer::pem_slice_iter(text).map(parse).collect()
    }

    fn from_der(der: CertificateDer<'static>) -> Option<Certificate> {
        let (_, x509) = X509Certificate::from_der(&der).ok()?;
        let names = x509.subject_alternative_name().ok()?.map(|extension| names(&extension.value.general_names));
        let constraints = x509.basic_constraints().ok()?;
        let authority = constraints.filter(|c| c.value.ca).map(|c| c.value.path_len_constraint);
        let (names, usages) = (names.unwrap_or_default(), usages(&x509)?);
        Some(Certificate {
            subject: text(x509.subject()),
            issuer: text(x509.issuer()),
            names,
            usages,
            not_before: x509.validity().not_before.timestamp(),
            not_after: x509.validity().not_after.timestamp(),
            serial: hex(x509.raw_serial()),
            fingerprint: hex(&Sha256::digest(&der)),
            public_key: x509.public_key().raw.to_vec(),
            authority,
            der,
        })
    }

    /// SHA-256 of its public key, lower-case hex, pairs with colons: stays when a certificate is renewed with its key.
    pub(crate) fn key_fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.public_key))
    }

    /// Whether the other one's key signed this one, and is named as its issuer.
    pub(crate) fn is_issued_by(&self, authority: &Certificate) -> bool {
        let (Ok((_, leaf)), Ok((_, root))) =
            (X509Certificate::from_der(&self.der), X509Certificate::from_der(&authority.der))
        else {
            return false;
        };
        leaf.issuer().as_raw() == root.subject().as_raw() && leaf.verify_signature(Some(root.public_key())).is_ok()
    }

    /// In words, for a diff.
    pub(crate) fn description(&self) -> String {
        let usages: Vec<_> = self.usages.iter().map(|usage| usage.usage_name()).collect();
        let mut text = describe_certificate(&self.subject, &self.issuer, &self.names, &usages);
        text.push_str(&format!("not_after: {}\nserial: {}\n", timestamp(self.not_after), self.serial));
        text
    }
}

/// The part of a description that is known before a certificate is made.
pub(crate) fn describe_certificate(subject: &str, issuer: &str, names: &BTreeSet<String>, usages: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    format!(
        "subject: {subject}\nissuer: {issuer}\nsubject_alt_name: {}\nusages: {}\n",
        names.join(", "),
        usages.join(", ")
    )
}

/// One name as written (`DNS:x`, `IP:1.2.3.4`, or bare) in its one form.
pub(crate) fn parse_alternative_name(written: &str) -> Result<String, Error> {
    let written = written.trim();
    let wrong = |why: &str| Error::failed(format!("subject_alt_name {written:?} {why}"));
    let (kind, value) = match written.split_once(':') {
        Some((kind, value)) if ["DNS", "IP", "URI", "EMAIL"].contains(&kind.to_ascii_uppercase().as_str()) => {
            (kind.to_ascii_uppercase(), value.trim())
        }
        _ if written.parse::<IpAddr>().is_ok() => ("IP".to_owned(), written),
        _ => ("DNS".to_owned(), written),
    };
    let valid_host = |host: &str| {
        let host = host.strip_prefix("*.").unwrap_or(host);
        host.split('.')
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'))
    };
    match kind.as_str() {
        "IP" => match value.parse::<IpAddr>() {
            Ok(address) => Ok(format!("IP:{address}")),
            Err(_) => Err(wrong("is not an IP address")),
        },
        "DNS" if valid_host(value) => Ok(format!("DNS:{}", value.to_ascii_lowercase())),
        "DNS" => Err(wrong("is not a host name")),
        _ if value.is_empty() || !value.is_ascii() => Err(wrong("is empty or not ASCII")),
        "URI" => Ok(format!("URI:{value}")),
        _ => Ok(format!("email:{value}")),
    }
}

/// A name in its one form, as rcgen has it.
pub(crate) fn san(name: &str) -> Option<SanType> {
    let (kind, value) = name.split_once(':')?;
    Some(match kind {
        "IP" => SanType::IpAddress(value.parse().ok()?),
        "URI" => SanType::URI(value.try_into().ok()?),
        "email" => SanType::Rfc822Name(value.try_into().ok()?),
        _ => SanType::DnsName(value.try_into().ok()?),
    })
}

fn names(names: &[GeneralName<'_>]) -> BTreeSet<String> {
    let one = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(host) => format!("DNS:{}", host.to_ascii_lowercase()),
        GeneralName::RFC822Name(address) => format!("email:{address}"),
        GeneralName::URI(uri) => format!("URI:{uri}"),
        GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
            (Ok(v4), _) => format!("IP:{}", IpAddr::from(v4)),
            (_, Ok(v6)) => format!("IP:{}", IpAddr::from(v6)),
            _ => format!("IP:{}", hex(bytes)),
        },
        other => format!("other:{other:?}"),
    };
    names.iter().map(one).collect()
}

fn usages(x509: &X509Certificate<'_>) -> Option<BTreeSet<Usage>> {
    let Some(extension) = x509.extended_key_usage().ok()? else { return Some(BTreeSet::new()) };
    let value = extension.value;
    let all = [
        (value.server_auth, Usage::ServerAuth),
        (value.client_auth, Usage::ClientAuth),
        (value.code_signing, Usage::CodeSigning),
        (value.email_protection, Usage::EmailProtection),
        (value.time_stamping, Usage::TimeStamping),
        (value.ocsp_signing, Usage::OcspSigning),
    ];
    Some(all.into_iter().filter(|(has, _)| *has).map(|(_, usage)| usage).collect())
}

fn text(name: &X509Name<'_>) -> String {
    name.to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        assert_eq!(parse_alternative_name("dns:Etcd-1.Example").unwrap(), "DNS:etcd-1.example");
        assert_eq!(parse_alternative_name("10.0.0.1").unwrap(), "IP:10.0.0.1");
        assert_eq!(parse_alternative_name("IP:fd00:0::1").unwrap(), "IP:fd00::1");
        assert_eq!(parse_alternative_name("fd00::1").unwrap(), "IP:fd00::1");
        assert_eq!(parse_alternative_name("localhost").unwrap(), "DNS:localhost");
        assert_eq!(parse_alternative_name("*.example").unwrap(), "DNS:*.example");
        for wrong in ["IP:1.2.3", "DNS:a b", "DNS:", "", "email:", "DNS:é"] {
            assert!(parse_alternative_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_named() {
        let error = |text: &[u8]| Certificate::parse_certificate(text, "/c").err().unwrap().to_string();
        assert_eq!(error(b""), "/c has no certificate in PEM format");
        let damaged = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(error(damaged), "the certificate /c is damaged");
    }
}
