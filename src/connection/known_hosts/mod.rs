//! The hosts whose keys we know: reads and extends OpenSSH's `known_hosts` files. Speaks to no host.
//!
//! Understands hashed names, wildcards, negation, `[host]:port`, `@revoked` and `@cert-authority`.

pub mod hosts;

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate, EcdsaCurve, HashAlg, PublicKey, PublicKeyOrCertificate};
use sha2::{Digest, Sha256};

use crate::value::pattern::matches_list;

/// How a host is called in `known_hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Lower case; what a host certificate must name.
    host: String,
    /// `[host]:port`, unless the port is 22 or the name is an alias.
    recorded: String,
}

impl Name {
    pub(super) fn new(host: &str, port: u16) -> Self {
        let host = host.to_lowercase();
        let recorded = if port == 22 { host.clone() } else { format!("[{host}]:{port}") };
        Name { host, recorded }
    }

    /// A `HostKeyAlias` is used as it is, whatever the port.
    pub(super) fn alias(alias: &str) -> Self {
        let host = alias.to_lowercase();
        Name { recorded: host.clone(), host }
    }
}

/// What the records say about a key that a host showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostKeyVerdict {
    Known,
    /// `certificate`: why the certificate that the host showed does not count, if it showed one.
    Unknown {
        certificate: Option<String>,
    },
    /// Another key is recorded.
    Changed(Record),
    Revoked(Record),
}

/// Where a key is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub file: PathBuf,
    /// Counted from 1, comments included.
    pub line: usize,
    pub algorithm: String,
    /// `SHA256:...`
    pub fingerprint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    Revoked,
    Authority,
}

#[derive(Debug, Clone)]
struct Entry {
    marker: Marker,
    hosts: String,
    algorithm: String,
    blob: Vec<u8>,
    file: PathBuf,
    line: usize,
}

impl Entry {
    /// None: a comment, or nothing that can be read (as OpenSSH, which skips it).
    fn parse(text: &str, file: &Path, line: usize) -> Option<Entry> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
        let mut hosts = words.next()?;
        let marker = match hosts {
            "@revoked" => Marker::Revoked,
            "@cert-authority" => Marker::Authority,
            other if other.starts_with('@') => return None,
            _ => Marker::None,
        };
        if marker != Marker::None {
            hosts = words.next()?;
        }
        let algorithm = words.next()?.to_owned();
        let blob = STANDARD.decode(words.next()?).ok()?;
        Some(Entry { marker, hosts: hosts.to_owned(), algorithm, blob, file: file.to_owned(), line })
    }

    fn is_for(&self, name: &str) -> bool {
        hosts::are_for(&self.hosts, name)
    }

    fn record(&self) -> Record {
        Record {
            file: self.file.clone(),
            line: self.line,
            algorithm: self.algorithm.clone(),
            fingerprint: fingerprint(&self.blob),
        }
    }
}

/// The entries of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownHosts {
    entries: Vec<Entry>,
}

impl KnownHosts {
    /// Reads the files that are there; a file that is missing records nothing.
    pub(super) fn read_known_hosts(files: &[PathBuf]) -> io::Result<KnownHosts> {
        let mut known = KnownHosts::default();
        for file in files {
            match fs::read(file) {
                Ok(bytes) => known.add(&String::from_utf8_lossy(&bytes), file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(in_file(file, error)),
            }
        }
        Ok(known)
    }

    /// Adds a file of `RevokedHostKeys`: one public key per line. A file that cannot be read or understood is an error, as
    /// any key may be in it.
    pub(super) fn revoke(&mut self, file: &Path) -> io::Result<()> {
        let bytes = fs::read(file).map_err(|error| in_file(file, error))?;
        let wrong = |message: String| Err(in_file(file, io::Error::new(io::ErrorKind::InvalidData, message)));
        if bytes.starts_with(b"SSHKRL\n") {
            return wrong("a binary revocation list is not supported: list the public keys, one per line".to_owned());
        }
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            match Entry::parse(&format!("@revoked * {}", line.trim()), file, index + 1) {
                Some(entry) => self.entries.push(entry),
                None if line.trim().is_empty() || line.trim().starts_with('#') => {}
                None => return wrong(format!("line {} is not a public key", index + 1)),
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str, file: &Path) {
        let lines = text.lines().enumerate();
        self.entries.extend(lines.filter_map(|(index, line)| Entry::parse(line, file, index + 1)));
    }

    /// The host key algorithms to ask a host for, those of its recorded keys first: it then shows the key that we can check.
    pub(super) fn algorithms(&self, name: &Name) -> Vec<Algorithm> {
        let recorded: Vec<&str> = self.of(name, Marker::None).iter().map(|entry| entry.algorithm.as_str()).collect();
        let (mut first, rest): (Vec<_>, Vec<_>) = all_algorithms().into_iter().partition(|algorithm| {
            let plain = match algorithm {
                Algorithm::Rsa { .. } => "ssh-rsa".to_owned(),
                other => other.to_string(),
            };
            recorded.contains(&plain.as_str())
        });
        first.extend(rest);
        first
    }

    /// Whether an authority is recorded that may certify this host: only then is a certificate worth asking for.
    pub(super) fn has_authority(&self, name: &Name) -> bool {
        !self.of(name, Marker::Authority).is_empty()
    }

    pub(super) fn check_host_key(&self, name: &Name, shown: &PublicKeyOrCertificate) -> HostKeyVerdict {
        let key = blob_of(&shown.public_key());
        if let Some(record) = self.revoked(name, &key) {
            return HostKeyVerdict::Revoked(record);
        }
        let mut reason = None;
        if let Some(certificate) = shown.certificate() {
            let authority = blob_of(&PublicKey::new(certificate.signature_key().clone(), ""));
            if let Some(record) = self.revoked(name, &authority) {
                return HostKeyVerdict::Revoked(record);
            }
            match self.check_certificate(name, certificate, &authority) {
                Ok(()) => return HostKeyVerdict::Known,
                Err(why) => reason = Some(why),
            }
        }
        match self.check_key(name, &key) {
            HostKeyVerdict::Unknown { .. } => HostKeyVerdict::Unknown { certificate: reason },
            verdict => verdict,
        }
    }

    fn check_key(&self, name: &Name, key: &[u8]) -> HostKeyVerdict {
        let entries = self.of(name, Marker::None);
        if entries.iter().any(|entry| entry.blob == key) {
            return HostKeyVerdict::Known;
        }
        if let Some(entry) = entries.first() {
            return HostKeyVerdict::Changed(entry.record());
        }
        // A host that listens on another port may be recorded by its name alone, as long as the key is the same.
        let plain = self.entries.iter().filter(|entry| entry.marker == Marker::None && entry.is_for(&name.host));
        match plain.into_iter().any(|entry| entry.blob == key) {
            true => HostKeyVerdict::Known,
            false => HostKeyVerdict::Unknown { certificate: None },
        }
    }

    fn check_certificate(&self, name: &Name, certificate: &Certificate, authority: &[u8]) -> Result<(), String> {
        if !self.of(name, Marker::Authority).iter().any(|entry| entry.blob == authority) {
            return Err(format!("its certificate is signed by {}, which is not a known CA", fingerprint(authority)));
        }
        if certificate.cert_type() != CertType::Host {
            return Err("its certificate is a user certificate, not a host certificate".to_owned());
        }
        if matches!(certificate.signature().algorithm(), Algorithm::Rsa { hash: None }) {
            return Err("its certificate is signed with SHA-1".to_owned());
        }
        certificate.verify_signature().map_err(|_| "the signature of its certificate is wrong".to_owned())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if now < certificate.valid_after() {
            return Err("its certificate is not valid yet".to_owned());
        }
        if now >= certificate.valid_before() {
            return Err("its certificate has expired".to_owned());
        }
        if let Some((option, _)) = certificate.critical_options().iter().next() {
            return Err(format!("its certificate has an unknown option: {option}"));
        }
        let principals = certificate.valid_principals();
        if !principals.is_empty() && !principals.iter().any(|principal| matches_list(principal, &name.host)) {
            return Err(format!("its certificate is valid for {}, not for {}", principals.join(", "), name.host));
        }
        Ok(())
    }

    fn revoked(&self, name: &Name, key: &[u8]) -> Option<Record> {
        self.of(name, Marker::Revoked).into_iter().find(|entry| entry.blob == key).map(Entry::record)
    }

    fn of(&self, name: &Name, marker: Marker) -> Vec<&Entry> {
        // A revocation of the host's name counts on every port.
        let also_plain = marker == Marker::Revoked;
        let fits = |entry: &&Entry| {
            entry.marker == marker && (entry.is_for(&name.recorded) || also_plain && entry.is_for(&name.host))
        };
        self.entries.iter().filter(fits).collect()
    }
}

/// Records a key that was not known. Parallel writers (of us) wait for each other; if one of them recorded the
/// host meanwhile, its word counts.
pub(super) fn record(
    file: &Path,
    name: &Name,
    shown: &PublicKeyOrCertificate,
    hashed: bool,
) -> io::Result<HostKeyVerdict> {
    if let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut handle = fs::OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(file)?;
    handle.lock()?;
    let mut bytes = Vec::new();
    handle.rewind()?;
    handle.read_to_end(&mut bytes)?;
    let mut known = KnownHosts::default();
    known.add(&String::from_utf8_lossy(&bytes), file);
    let verdict = known.check_host_key(name, shown);
    if !matches!(verdict, HostKeyVerdict::Unknown { .. }) {
        return Ok(verdict);
    }
    let key = shown.public_key();
    let hosts = if hashed { hosts::hash(&name.recorded) } else { name.recorded.clone() };
    let line_break = if bytes.last().is_some_and(|last| *last != b'\n') { "\n" } else { "" };
    let line = format!("{line_break}{hosts} {} {}\n", key.algorithm(), STANDARD.encode(blob_of(&key)));
    handle.write_all(line.as_bytes())?;
    Ok(HostKeyVerdict::Known)
}

fn in_file(file: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// `SHA256:...` as `ssh-keygen -l` prints it.
pub(super) fn key_fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// All that we can check, best first. SHA-1 signatures are not offered.
pub(super) fn all_algorithms() -> Vec<Algorithm> {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let rsa = |hash| Algorithm::Rsa { hash: Some(hash) };
    vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
        rsa(HashAlg::Sha512),
        rsa(HashAlg::Sha256),
    ]
}

fn fingerprint(blob: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(blob)))
}

fn blob_of(key: &PublicKey) -> Vec<u8> {
    key.to_bytes().expect("a key that was read can be written")
}

#[cfg(test)]
mod tests;
