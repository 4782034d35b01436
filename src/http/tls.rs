//! TLS on the controller, with certificates from the host or the controller.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::remote::{self, Links, Probe};

/// Where systems keep the authorities that they trust.
const SYSTEM_ROOTS: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What is trusted and what is shown.
pub(crate) struct Tls {
    verify: bool,
    roots: Vec<CertificateDer<'static>>,
    client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    built: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// Certificates, outermost last.
pub(crate) type Certificates = Vec<CertificateDer<'static>>;
/// A certificate with those that signed it, and its key.
pub(crate) type Identity = (Certificates, PrivateKeyDer<'static>);

impl Tls {
    /// Trusts these authorities; None: any certificate is taken.
    pub(crate) fn new(authorities: Option<Certificates>, client: Option<Identity>) -> Tls {
        let verify = authorities.is_some();
        Tls { verify, roots: authorities.unwrap_or_default(), client, built: OnceLock::new() }
    }

    /// Trusts the authorities of a text in PEM form.
    pub(crate) fn trusting(authorities: &[u8]) -> Tls {
        Tls { verify: true, roots: certificates(authorities), client: None, built: OnceLock::new() }
    }

    /// Takes any certificate.
    pub(crate) fn anyone() -> Tls {
        Tls { verify: false, roots: Vec::new(), client: None, built: OnceLock::new() }
    }

    /// Trusts the authorities of a file of this machine, or else those that it trusts itself.
    pub(crate) fn from_here(file: Option<&Path>) -> Result<Tls, String> {
        let Some(path) = file else {
            let found = SYSTEM_ROOTS.iter().find_map(|path| std::fs::read(path).ok());
            return found
                .map(|text| Tls::trusting(&text))
                .ok_or("found no trusted certificate authorities on this machine".into());
        };
        let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        match certificates(&text).is_empty() {
            true => Err(format!("{} has no certificate in PEM format", path.display())),
            false => Ok(Tls::trusting(&text)),
        }
    }

    /// For addresses without TLS.
    pub(crate) fn none() -> Tls {
        Tls { verify: true, roots: Vec::new(), client: None, built: OnceLock::new() }
    }

    /// The settings, made once.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.built.get_or_init(|| self.build().map(Arc::new)).clone()
    }

    fn build(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let builder = match self.verify {
            true => {
                let mut store = RootCertStore::empty();
                store.add_parsable_certificates(self.roots.iter().cloned());
                if store.is_empty() {
                    return Err("found no trusted certificate authorities on the host; set ca_path".to_owned());
                }
                builder.with_root_certificates(store)
            }
            false => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider))),
        };
        match &self.client {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|_| "the client certificate does not match its key".to_owned()),
            None => Ok(builder.with_no_client_auth()),
        }
    }
}

/// The certificates of a text in PEM form; `name` is for the error.
pub(crate) fn authorities(name: &str, text: &[u8]) -> Result<Certificates, String> {
    let found = certificates(text);
    match found.is_empty() {
        true => Err(format!("{name} has no certificate in PEM format")),
        false => Ok(found),
    }
}

/// The authorities that the host trusts.
///
/// # Errors
/// The connection to the host is lost.
pub(crate) async fn system_authorities(probe: &Probe) -> Result<Certificates, remote::Error> {
    for path in SYSTEM_ROOTS {
        if probe.stat(path, Links::Follow).await?.is_some()
            && let Some(text) = probe.read_file(path).await?
        {
            return Ok(certificates(&text));
        }
    }
    Ok(Vec::new())
}

/// Why one end rejected the other's certificate, if that is why a connection failed.
pub(crate) fn rejection(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        let rejected = matches!(error, AlertReceived(_) | InvalidCertificate(_) | NoCertificatesPresented);
        return rejected.then(|| error.to_string());
    }
    // An input/output error's source is that of the error inside it, not that error.
    let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    rejection(inside.map(|inside| inside as _).or(error.source())?)
}

/// A certificate and its key, in PEM form. The parser's own words are left out: they might quote the key.
pub(crate) fn identity(cert: (&str, &[u8]), key: (&str, &[u8])) -> Result<Identity, String> {
    let chain = authorities(cert.0, cert.1)?;
    let read = PrivateKeyDer::from_pem_slice(key.1);
    Ok((chain, read.map_err(|_| format!("{} has no unencrypted private key in PEM format", key.0))?))
}

fn certificates(text: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text).filter_map(Result::ok).map(CertificateDer::into_owned).collect()
}

/// Accepts any certificate: for an explicit `validate_certs: false`.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
