//! Whom the program talks to: the API server by its kubeconfig, etcd by its certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::files;
use crate::flags::Given;

/// A client of the API server. Connects to nothing yet.
pub(crate) async fn client(given: &Given) -> Result<(Client, String), String> {
    let path = given.get("karmada-kubeconfig").or(given.get("kubeconfig")).ok_or("--kubeconfig is not given")?;
    let kubeconfig = files::kubeconfig(Path::new(path))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| format!("{path}: {error}"))?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).map_err(|error| format!("{path}: {error}"))?;
    Ok((client, server))
}

/// Whether the API server has answered; Err: it has, and does not know who asks.
async fn answered(client: &Client, server: &str) -> Result<Result<(), String>, String> {
    let namespaces = Api::<DynamicObject>::all_with(client.clone(), &resource("", "v1", "Namespace", "namespaces"));
    match tokio::time::timeout(Duration::from_secs(10), namespaces.get("kube-system")).await {
        Err(_) => Ok(Err(format!("{server} does not answer"))),
        Ok(Err(error @ kube::Error::Api(_))) => Err(format!("{server}: {error}")),
        Ok(answer) => Ok(answer.map(drop).map_err(|error| format!("{server}: {error}"))),
    }
}

/// Ends an estimator whose account may not list what it counts in the member, and one that cannot reach it.
pub(crate) async fn member_lets_us_count(client: &Client, server: &str) -> Result<(), String> {
    for (group, kind, plural) in [("", "Node", "nodes"), ("", "Pod", "pods"), ("apps", "Deployment", "deployments")] {
        let counted = Api::<DynamicObject>::all_with(client.clone(), &resource(group, "v1", kind, plural));
        let listed = tokio::time::timeout(Duration::from_secs(10), counted.list(&ListParams::default().limit(1))).await;
        listed
            .map_err(|_| format!("{server} does not answer"))?
            .map_err(|error| format!("{server}: {plural}: {error}"))?;
    }
    Ok(())
}

/// Ends whom the API server does not know, and who cannot reach it: systemd tries again.
pub(crate) async fn knows_us(client: &Client, server: &str) -> Result<(), String> {
    answered(client, server).await?
}

/// Waits for the API server; ends whom it does not know.
pub(crate) async fn will_know_us(client: &Client, server: &str) -> Result<(), String> {
    while let Err(words) = answered(client, server).await? {
        eprintln!("{words}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Whom the API server presents itself with when it forwards requests: by a flag, or else asked of it.
pub(crate) async fn front_proxy_authorities(
    given: &Given,
    client: &Client,
) -> Result<Vec<CertificateDer<'static>>, String> {
    const NAME: &str = "extension-apiserver-authentication";
    if let Some(path) = given.get("requestheader-client-ca-file") {
        return files::certificates(Path::new(path));
    }
    let kind = resource("", "v1", "ConfigMap", "configmaps");
    let maps = Api::<DynamicObject>::namespaced_with(client.clone(), "kube-system", &kind);
    let map = maps.get(NAME).await.map_err(|error| format!("{NAME}: {error}"))?;
    let text = map.data["data"]["requestheader-client-ca-file"].as_str().unwrap_or_default();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| format!("{NAME} names no authority of the front proxy"))
}

pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.into(), version: version.into(), api_version, kind: kind.into(), plural: plural.into() }
}

/// etcd, as an API server's flags say it.
pub(crate) struct Etcd {
    endpoints: Vec<String>,
    tls: Arc<ClientConfig>,
}

impl Etcd {
    /// None for a program that stores nothing.
    pub(crate) fn of(given: &Given) -> Result<Option<Etcd>, String> {
        let Some(servers) = given.get("etcd-servers") else { return Ok(None) };
        let path = |flag: &str| given.get(flag).map(PathBuf::from).ok_or_else(|| format!("--{flag} is not given"));
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(files::certificates(&path("etcd-cafile")?)?);
        let (chain, key) = files::pair(&path("etcd-certfile")?, &path("etcd-keyfile")?)?;
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_root_certificates(roots).with_client_auth_cert(chain, key))
            .map_err(|error| format!("etcd's certificates: {error}"))?;
        Ok(Some(Etcd { endpoints: servers.split(',').map(str::to_owned).collect(), tls: Arc::new(tls) }))
    }

    /// One of the members is healthy.
    pub(crate) async fn answers(&self) -> Result<(), String> {
        let mut reported = Vec::new();
        for endpoint in &self.endpoints {
            match tokio::time::timeout(Duration::from_secs(3), self.ask(endpoint)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(words)) => reported.push(format!("{endpoint}: {words}")),
                Err(_) => reported.push(format!("{endpoint}: no answer")),
            }
        }
        Err(format!("no etcd: {}", reported.join("; ")))
    }

    async fn ask(&self, endpoint: &str) -> Result<(), String> {
        let address = endpoint.strip_prefix("https://").ok_or("it is not https")?.trim_end_matches('/');
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let plain = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(self.tls.clone());
        let mut stream = connector.connect(name, plain).await.map_err(|error| error.to_string())?;
        let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
        let answer = String::from_utf8_lossy(&answer);
        let healthy = answer.starts_with("HTTP/1.1 200");
        if healthy { Ok(()) } else { Err(answer.lines().next().unwrap_or("it closed the connection").to_owned()) }
    }
}
