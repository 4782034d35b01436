//! What `x509_ca` and `x509_certificate` share: keys, the fields of a certificate, and the attributes of both on a host.

pub(in crate::modules) mod certificate;
pub(in crate::modules) mod key;

use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, SerialNumber};
use time::{Duration, OffsetDateTime};

pub(in crate::modules) use certificate::Certificate;

use crate::modules::file_attributes::{self, DesiredAttributes};
use crate::modules::{Diff, Error, Outcome, host_links};
use crate::remote::{Attributes, Links, Probe, Remote, Stat};
use crate::value::Value;

/// How far in the past a certificate begins, for hosts whose clocks are slow.
const BACKDATED: Duration = Duration::minutes(5);

/// A file of PEM text and what it is.
pub(in crate::modules) struct PemFile {
    pub stat: Stat,
    pub text: Vec<u8>,
}

/// Reads a file of PEM text, which a link that another user made must not choose; None if it is not there.
pub(in crate::modules) async fn read_pem(probe: &Probe, path: &str) -> Result<Option<PemFile>, Error> {
    let Some(stat) = host_links::stat_target(probe, path).await? else { return Ok(None) };
    Ok(probe.read_file(path).await?.map(|text| PemFile { stat, text }))
}

/// Attributes that a certificate and its key lack.
#[derive(Debug, Default)]
pub(in crate::modules) struct MissingAttributes {
    pub certificate: Attributes,
    pub key: Attributes,
}

impl MissingAttributes {
    /// Owner and group are for both files, the mode for the certificate alone. A key that every user can read gets a stricter mode.
    pub(in crate::modules) fn of_certificate(
        wanted: &DesiredAttributes,
        certificate: &Stat,
        key: Option<&Stat>,
    ) -> MissingAttributes {
        let key = key.map_or_else(Attributes::default, |stat| MissingAttributes::of_key(wanted, stat));
        MissingAttributes { certificate: wanted.lacking(certificate), key }
    }

    /// The attributes to change of a key without a certificate.
    pub(in crate::modules) fn of_key(wanted: &DesiredAttributes, key: &Stat) -> Attributes {
        let mut lacking = wanted.with_mode(None).lacking(key);
        lacking.mode = (key.mode & 0o007 != 0).then_some(0o600);
        lacking
    }

    pub(in crate::modules) fn is_empty(&self) -> bool {
        file_attributes::is_empty(&self.certificate) && file_attributes::is_empty(&self.key)
    }

    pub(in crate::modules) async fn set_attributes(
        &self,
        remote: &Remote,
        path: &str,
        key_path: &str,
    ) -> Result<(), Error> {
        if !file_attributes::is_empty(&self.certificate) {
            remote.set_attributes(path, &self.certificate, Links::Follow).await?;
        }
        if !file_attributes::is_empty(&self.key) {
            remote.set_attributes(key_path, &self.key, Links::Follow).await?;
        }
        Ok(())
    }
}

/// Writes a private key that is not there yet: at every moment, only its owner can read it. Of two runs that create the same key, the
/// second one fails, as the first one may already have signed with its key.
pub(in crate::modules) async fn write_new_key(
    remote: &Remote,
    path: &str,
    pem: &str,
    wanted: &DesiredAttributes,
) -> Result<(), Error> {
    Ok(remote.write_new(path, pem.as_bytes(), &of_keys(wanted)).await?)
}

/// Writes the same private key in another form.
pub(in crate::modules) async fn rewrite_key(
    remote: &Remote,
    path: &str,
    pem: &str,
    wanted: &DesiredAttributes,
) -> Result<(), Error> {
    Ok(remote.write(path, pem.as_bytes(), &of_keys(wanted)).await?)
}

fn of_keys(wanted: &DesiredAttributes) -> Attributes {
    Attributes { owner: wanted.owner.clone(), group: wanted.group.clone(), mode: Some(0o600) }
}

/// Writes a certificate, 0644 unless something else is wanted.
pub(in crate::modules) async fn write_certificate(
    remote: &Remote,
    path: &str,
    pem: &str,
    wanted: &DesiredAttributes,
) -> Result<(), Error> {
    let mut attributes = wanted.for_new(crate::remote::FileKind::File);
    attributes.mode = attributes.mode.or(Some(0o644));
    Ok(remote.write(path, pem.as_bytes(), &attributes).await?)
}

/// Whom a certificate, or the request for one, is for.
pub(in crate::modules) fn distinguished_name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, DnValue::Utf8String(organization.to_owned()));
    }
    name.push(DnType::CommonName, DnValue::Utf8String(common_name.to_owned()));
    name
}

/// What every certificate of ours has: subject, serial, and when it is valid.
pub(in crate::modules) fn parameters(
    common_name: &str,
    organization: Option<&str>,
    not_after: OffsetDateTime,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(common_name, organization);
    params.serial_number = Some(serial());
    params.not_before = OffsetDateTime::now_utc() - BACKDATED;
    params.not_after = not_after;
    params
}

/// 127 random bits: positive, and never the same twice.
fn serial() -> SerialNumber {
    let mut bytes: [u8; 16] = rand::random();
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}

/// The end of so many days from now.
pub(in crate::modules) fn in_days(days: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + Duration::days(days)
}

/// Refuses days that make no sense together.
pub(in crate::modules) fn check_days(validity: i64, renew_before: i64) -> Result<(), Error> {
    const LONGEST: i64 = 100 * 366;
    match (validity, renew_before) {
        (1..=LONGEST, 0..) if renew_before < validity => Ok(()),
        (1..=LONGEST, 0..) => Err(Error::failed(format!(
            "renew_before ({renew_before} days) must be less than validity ({validity} days)"
        ))),
        _ => Err(Error::failed(format!("validity must be 1 to {LONGEST} days, and renew_before 0 or more"))),
    }
}

/// Return values that describe a certificate.
pub(in crate::modules) fn described(outcome: Outcome, certificate: &Certificate) -> Outcome {
    outcome
        .with("subject", certificate.subject.as_str())
        .with("issuer", certificate.issuer.as_str())
        .with("serial", certificate.serial.as_str())
        .with("fingerprint", certificate.fingerprint.as_str())
        .with("not_before", timestamp(certificate.not_before))
        .with("not_after", timestamp(certificate.not_after))
        .with("subject_alt_name", Value::from_iter(certificate.names.iter().cloned()))
}

/// The outcome of having done something for a reason, or nothing.
pub(in crate::modules) fn explained(reason: Option<&str>, path: &str, key_path: &str) -> Outcome {
    let outcome = Outcome { message: reason.map(str::to_owned), ..Outcome::default() };
    outcome
        .with("reason", reason.map_or_else(|| Value::from(()), Value::from))
        .with("path", path)
        .with("privatekey_path", key_path)
}

/// Two certificates side by side, described in words; keys never.
pub(in crate::modules) fn certificate_diff(path: &str, before: Option<&Certificate>, after: &str) -> Diff {
    let before = before.map(Certificate::description).unwrap_or_default();
    Diff { before_header: path.to_owned(), after_header: path.to_owned(), before, after: after.to_owned() }
}

/// `2027-11-20T10:00:00Z`
pub(in crate::modules) fn timestamp(seconds: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// The error of rcgen, which knows no secrets.
pub(in crate::modules) fn cannot(what: &str) -> impl Fn(rcgen::Error) -> Error {
    move |error| Error::failed(format!("cannot {what}: {error}"))
}

/// A subject as text: `O=example, CN=host`.
pub(in crate::modules) fn subject(common_name: &str, organization: Option<&str>) -> String {
    match organization {
        Some(organization) => format!("O={organization}, CN={common_name}"),
        None => format!("CN={common_name}"),
    }
}
