//! Certificates, keys and kubeconfigs: all that are given must be there, valid today and belong together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kube::config::Kubeconfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::flags::Given;

/// A certificate's flag, and that of its key.
const PAIRS: &[(&str, &str)] = &[
    ("tls-cert-file", "tls-private-key-file"),
    ("etcd-certfile", "etcd-keyfile"),
    ("scheduler-estimator-cert-file", "scheduler-estimator-key-file"),
    ("grpc-auth-cert-file", "grpc-auth-key-file"),
];
const AUTHORITIES: &[&str] = &[
    "client-ca-file",
    "etcd-cafile",
    "requestheader-client-ca-file",
    "scheduler-estimator-ca-file",
    "grpc-client-ca-file",
];

/// Looks at every file that a flag names.
pub(crate) fn all_can_be_loaded(given: &Given) -> Result<(), String> {
    for (flag, path) in given.iter() {
        if flag.ends_with("kubeconfig") {
            kubeconfig(Path::new(path))?;
        } else if AUTHORITIES.contains(&flag) {
            certificates(Path::new(path))?;
        } else if let Some((_, key)) = PAIRS.iter().find(|(certificate, _)| *certificate == flag) {
            let key = given.get(key).ok_or_else(|| format!("--{key} is not given beside --{flag}"))?;
            pair(Path::new(path), Path::new(key))?;
        }
    }
    Ok(())
}

/// Reads a kubeconfig, and the files that it names.
pub(crate) fn kubeconfig(path: &Path) -> Result<Kubeconfig, String> {
    let config = Kubeconfig::read_from(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for cluster in config.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        if let Some(authority) = &cluster.certificate_authority {
            certificates(Path::new(authority))?;
        }
    }
    for user in config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        if let (Some(certificate), Some(key)) = (&user.client_certificate, &user.client_key) {
            pair(Path::new(certificate), Path::new(key))?;
        }
    }
    Ok(config)
}

/// All certificates of a file; an error if there is none, or one is not valid now.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| format!("{shown}: {error}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed());
    for der in &found {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| format!("{shown} is no certificate"))?;
        let validity = certificate.validity();
        if validity.not_after.timestamp() < now {
            return Err(format!("{shown}: the certificate has expired on {}", validity.not_after));
        }
        if validity.not_before.timestamp() > now {
            return Err(format!("{shown}: the certificate is not valid before {}", validity.not_before));
        }
    }
    if found.is_empty() { Err(format!("{shown} has no certificate")) } else { Ok(found) }
}

/// A certificate with the key that belongs to it.
pub(crate) fn pair(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = certificates(certificate)?;
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|_| format!("{} is not a valid private key", key.display()))?;
    CertifiedKey::from_der(chain.clone(), secret.clone_key(), &default_provider())
        .map_err(|error| format!("{} and {}: {error}", certificate.display(), key.display()))?;
    Ok((chain, secret))
}

/// How a server serves: TLS 1.3, and whoever shows a certificate must be the front proxy, if there is one.
pub(crate) fn serving(
    given: &Given,
    certificate: &str,
    key: &str,
    front_proxy: Vec<CertificateDer<'static>>,
) -> Result<Arc<ServerConfig>, String> {
    let path = |flag: &str| given.get(flag).map(PathBuf::from).ok_or_else(|| format!("--{flag} is not given"));
    let (chain, key) = pair(&path(certificate)?, &path(key)?)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(front_proxy);
    if roots.is_empty() {
        return without_clients(chain, key);
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()))
        .allow_unauthenticated()
        .build()
        .map_err(|error| format!("the front proxy's authority: {error}"))?;
    let config = tls13()?.with_client_cert_verifier(verifier).with_single_cert(chain, key);
    config.map(Arc::new).map_err(|error| error.to_string())
}

/// How the webhook serves: its files lie in a directory.
pub(crate) fn serving_of_webhook(given: &Given) -> Result<Arc<ServerConfig>, String> {
    let directory = PathBuf::from(given.get("cert-dir").unwrap_or("/tmp/k8s-webhook-server/serving-certs"));
    let path = |flag: &str| directory.join(given.get(flag).unwrap_or_default());
    let (chain, key) = pair(&path("tls-cert-file-name"), &path("tls-private-key-file-name"))?;
    without_clients(chain, key)
}

fn without_clients(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, String> {
    let config = tls13()?.with_no_client_auth().with_single_cert(chain, key);
    config.map(Arc::new).map_err(|error| error.to_string())
}

fn tls13() -> Result<rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>, String> {
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())
}
