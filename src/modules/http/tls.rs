//! TLS on this side of the connection, with certificates that lie on the host or here.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::modules::{Controller, Error, vault_file};
use crate::remote::{Links, Probe};

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

/// The arguments that say so.
#[derive(Clone, Copy, Default)]
pub(crate) struct Files<'a> {
    /// A file of authorities; the system's if None.
    pub ca: Option<&'a str>,
    pub client_cert: Option<&'a str>,
    /// The certificate's own file if None.
    pub client_key: Option<&'a str>,
    /// Whose files they are, which may be vault files; the host's if None.
    pub controller: Option<&'a Controller<'a>>,
}

impl Tls {
    /// Reads what is needed from the host. Without `verify` any certificate is taken.
    pub(crate) async fn load(probe: &Probe, files: Files<'_>, verify: bool) -> Result<Tls, Error> {
        let roots = match (verify, files.ca) {
            (false, _) => Vec::new(),
            (true, Some(path)) => authorities(probe, path, files.controller).await?,
            (true, None) => system_authorities(probe).await?,
        };
        let client = match files.client_cert {
            Some(path) => {
                let key = files.client_key.unwrap_or(path);
                Some(identity(probe, path, key, files.controller).await?)
            }
            None => None,
        };
        Ok(Tls { verify, roots, client, built: OnceLock::new() })
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
            false => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))),
        };
        match &self.client {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|_| "the client certificate does not match its key".to_owned()),
            None => Ok(builder.with_no_client_auth()),
        }
    }
}

async fn authorities(
    probe: &Probe,
    path: &str,
    here: Option<&Controller<'_>>,
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = certificates(&read(probe, path, here).await?);
    match found.is_empty() {
        true => Err(Error::failed(format!("{path} has no certificate in PEM format"))),
        false => Ok(found),
    }
}

async fn system_authorities(probe: &Probe) -> Result<Vec<CertificateDer<'static>>, Error> {
    for path in SYSTEM_ROOTS {
        if probe.stat(path, Links::Follow).await?.is_some()
            && let Some(text) = probe.read(path).await?
        {
            return Ok(certificates(&text));
        }
    }
    Ok(Vec::new())
}

async fn identity(
    probe: &Probe,
    path: &str,
    key_path: &str,
    here: Option<&Controller<'_>>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = authorities(probe, path, here).await?;
    // The parser's own words are left out: they might quote the key.
    let key = PrivateKeyDer::from_pem_slice(&read(probe, key_path, here).await?)
        .map_err(|_| Error::failed(format!("{key_path} has no unencrypted private key in PEM format")))?;
    Ok((chain, key))
}

async fn read(probe: &Probe, path: &str, here: Option<&Controller<'_>>) -> Result<Vec<u8>, Error> {
    if let Some(here) = here {
        return vault_file::read(here, Path::new(path)).await;
    }
    let path = probe.expand(path).await?;
    probe.read(&path).await?.ok_or_else(|| Error::failed(format!("no such file on the host: {path}")))
}

fn certificates(text: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text).filter_map(Result::ok).map(CertificateDer::into_owned).collect()
}

/// Takes any certificate: for `validate_certs: false`, which a person asked for in so many words.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
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
