//! TLS with a certificate and a key from files, which are read again when they change.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::access::sha256_hex;
use crate::value::mutex::RwLock;
use crate::value::ownership;

/// How often the files are looked at.
const LOOK: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(10) };

/// The longest file, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// The files of a certificate.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, and those that signed it behind it, in PEM form.
    pub certificate: PathBuf,
    /// Its private key, in PEM form.
    pub key: PathBuf,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Invalid { path: PathBuf, why: String },
    #[error("{}: other users can read it\nhint: chmod 600 {}", path.display(), path.display())]
    KeyOfAll { path: PathBuf },
    #[error("{}: another user owns it or can write to it", path.display())]
    NotOwn { path: PathBuf },
}

/// What the files hold.
struct Loaded {
    config: Arc<ServerConfig>,
    names: Vec<String>,
    /// SHA-256 of the certificate.
    fingerprint: String,
    bytes: [Vec<u8>; 2],
}

pub(super) struct ServerTls {
    files: TlsFiles,
    loaded: RwLock<Loaded>,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be used.
    pub(super) fn read_certificate(files: TlsFiles) -> Result<Arc<ServerTls>, TlsError> {
        let loaded = RwLock::new(load(&files, read_both(&files)?)?);
        Ok(Arc::new(ServerTls { files, loaded }))
    }

    pub(super) fn tls_config(&self) -> Arc<ServerConfig> {
        self.loaded.read().config.clone()
    }

    /// The host names and addresses of the certificate, without patterns.
    pub(super) fn names(&self) -> Vec<String> {
        self.loaded.read().names.clone()
    }

    pub(super) fn fingerprint(&self) -> String {
        self.loaded.read().fingerprint.clone()
    }

    /// Reads the files again if they have changed. Whether they have.
    fn look(&self) -> Result<bool, TlsError> {
        let bytes = read_both(&self.files)?;
        if bytes == self.loaded.read().bytes {
            return Ok(false);
        }
        let loaded = load(&self.files, bytes)?;
        *self.loaded.write() = loaded;
        Ok(true)
    }

    /// Reads the files again when they change, and at SIGHUP. Files that cannot be used leave the former certificate in use.
    pub(super) async fn keep_current(self: Arc<Self>) {
        let mut hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
        let mut last_fault = String::new();
        loop {
            let asked = async {
                match &mut hangup {
                    Ok(hangup) => hangup.recv().await.is_some(),
                    Err(_) => std::future::pending().await,
                }
            };
            let by_signal = tokio::time::timeout(LOOK, asked).await.is_ok();
            let tls = self.clone();
            let looked = tokio::task::spawn_blocking(move || tls.look()).await;
            match looked {
                Ok(Ok(true)) => {
                    last_fault.clear();
                    tracing::info!("a new certificate is in use, SHA-256 {}", self.fingerprint());
                }
                Ok(Ok(false)) => {
                    last_fault.clear();
                    if by_signal {
                        tracing::info!("the certificate has not changed");
                    }
                }
                // They may be replaced one after the other.
                Ok(Err(error)) => {
                    let fault = chain(&error);
                    if by_signal || fault != last_fault {
                        tracing::error!("the former certificate stays in use: {fault}");
                    }
                    last_fault = fault;
                }
                Err(error) => tracing::error!("cannot look at the certificate: {error}"),
            }
        }
    }
}

fn chain(error: &TlsError) -> String {
    let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    format!("{error}{source}").replace('\n', "; ")
}

fn read_both(files: &TlsFiles) -> Result<[Vec<u8>; 2], TlsError> {
    Ok([read_file(&files.certificate, false)?, read_file(&files.key, true)?])
}

/// Reads a file that only this user and root can change, and, if it is secret, that others cannot read. A group may read a key that root
/// owns, as with PostgreSQL.
fn read_file(path: &Path, secret: bool) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read { path: path.to_owned(), source };
    let invalid = |why: &str| TlsError::Invalid { path: path.to_owned(), why: why.to_owned() };
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(invalid("it is no file"));
    }
    if !ownership::is_own(&found) {
        return Err(TlsError::NotOwn { path: path.to_owned() });
    }
    let by_others = if found.uid() == 0 { 0o007 } else { 0o077 };
    if secret && found.mode() & by_others != 0 {
        return Err(TlsError::KeyOfAll { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LONGEST_FILE) {
        return Err(invalid("it is too long"));
    }
    Ok(bytes)
}

fn load(files: &TlsFiles, bytes: [Vec<u8>; 2]) -> Result<Loaded, TlsError> {
    let invalid = |path: &Path, why: String| TlsError::Invalid { path: path.to_owned(), why };
    let of_certificate = |why: String| invalid(&files.certificate, why);
    let [certificate, key] = &bytes;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| of_certificate(format!("it is not in PEM format: {error}")))?;
    let first = chain.first().ok_or_else(|| of_certificate("it has no certificate in PEM format".to_owned()))?.clone();
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| invalid(&files.key, "it has no private key in PEM format, or one with a password".to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| of_certificate(error.to_string()))?.with_no_client_auth();
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| of_certificate(format!("it does not go with {}: {error}", files.key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let (_, parsed) = X509Certificate::from_der(&first).map_err(|error| of_certificate(error.to_string()))?;
    if !parsed.validity().is_valid() {
        tracing::warn!(
            "{}: the certificate is good from {} to {}",
            files.certificate.display(),
            parsed.validity().not_before,
            parsed.validity().not_after
        );
    }
    Ok(Loaded { config: Arc::new(config), names: names_of(&parsed), fingerprint: sha256_hex(&first), bytes })
}

/// The names of a certificate, as browsers write them.
fn names_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternative)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| format!("[{}]", std::net::Ipv6Addr::from(bytes))),
            _ => None,
        },
        _ => None,
    };
    alternative.value.general_names.iter().filter_map(name).filter(|name| !name.contains('*')).collect()
}
