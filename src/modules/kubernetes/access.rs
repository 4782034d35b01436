//! The arguments that say which API server is meant and who we are, and the client that follows from them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, NamedCluster};
use kube::{Client, Config};
use serde::Deserialize;
use tower::retry::Retry;
use tower::{BoxError, ServiceExt as _};

use super::kubeconfig;
use super::tunnel::TunnelConnector;
use crate::http::LARGEST_BODY;
use crate::modules::{Controller, Error};
use crate::remote::Probe;
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind};

/// The arguments, documented once.
pub(super) mod arguments {
    use super::{Argument, ArgumentKind};

    pub(crate) const KUBECONFIG: Argument = Argument::new(
        "kubeconfig",
        ArgumentKind::Any,
        "A kubeconfig: a file on the controller or else on the host, or its content without names of files and programs (default: ~/.kube/config on the host)",
    );
    pub(crate) const REMOTE_SRC: Argument = Argument::new(
        "remote_src",
        ArgumentKind::Bool,
        "Whether kubeconfig is a file on the host, even if the controller has one of that name",
    )
    .default("false");
    pub(crate) const CONTEXT: Argument =
        Argument::new("context", ArgumentKind::Str, "The context in it (default: the current one)");
    pub(crate) const HOST: Argument = Argument::new(
        "host",
        ArgumentKind::Str,
        "URL of the API server as seen from the task's host, instead of the one in the kubeconfig",
    );
    pub(crate) const API_KEY: Argument = Argument::new("api_key", ArgumentKind::Str, "A bearer token").mark_secret();
    pub(crate) const CA_CERT: Argument = Argument::new(
        "ca_cert",
        ArgumentKind::Path,
        "A file on the host with the certificate authorities of the server",
    )
    .alias(&["ssl_ca_cert"]);
    pub(crate) const CLIENT_CERT: Argument =
        Argument::new("client_cert", ArgumentKind::Path, "A file on the host with the client certificate")
            .alias(&["cert_file"]);
    pub(crate) const CLIENT_KEY: Argument =
        Argument::new("client_key", ArgumentKind::Path, "A file on the host with its private key").alias(&["key_file"]);
    pub(crate) const VALIDATE_CERTS: Argument =
        Argument::new("validate_certs", ArgumentKind::Bool, "Whether to check the server's certificate")
            .alias(&["verify_ssl"]);
}

/// What the arguments say.
#[derive(Deserialize)]
pub(super) struct Access {
    kubeconfig: Option<Value>,
    remote_src: bool,
    context: Option<String>,
    host: Option<String>,
    api_key: Option<String>,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    validate_certs: Option<bool>,
}

impl Access {
    /// A client, and the namespace of objects that name none. Connects to nothing yet.
    pub(super) async fn client(&self, probe: &Probe, here: &Controller<'_>) -> Result<(Client, String), Error> {
        let mut kubeconfig = match (&self.kubeconfig, &self.host) {
            (None, Some(_)) => nobody(),
            (given, _) => kubeconfig::load_kubeconfig(given.as_ref(), self.remote_src, probe, here).await?,
        };
        self.adjust(&mut kubeconfig, probe).await?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        // The crate's own words might quote what is in the file.
        let config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| Error::failed(format!("cannot use the kubeconfig: {}", kubeconfig::problem(&error))))?;
        let namespace = config.default_namespace.clone();
        let unusable = |error: kube::Error| Error::failed(format!("cannot use the kubeconfig: {error}"));
        let connector =
            config.rustls_https_connector_with_connector(TunnelConnector(probe.clone())).map_err(unusable)?;
        let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(connector);
        // An API server may be a stranger's: what it answers must not take all memory.
        let limited = |answer: hyper::Response<Incoming>| answer.map(|body| Limited::new(body, LARGEST_BODY));
        let http = Retry::new(patience()?, http.map_err(BoxError::from)).map_response(limited);
        let builder = ClientBuilder::new(http, namespace.as_str());
        let client = match config.auth_layer().map_err(unusable)? {
            Some(login) => builder.with_layer(&login).with_layer(&config.base_uri_layer()).build(),
            None => builder.with_layer(&config.base_uri_layer()).build(),
        };
        Ok((client, namespace))
    }

    /// Puts what the other arguments say over every cluster and user of the kubeconfig: only one of each is used.
    async fn adjust(&self, kubeconfig: &mut Kubeconfig, probe: &Probe) -> Result<(), Error> {
        let read = async |path: &str| {
            let path = probe.expand_on_host(path).await?;
            let content = probe.read_file(&path).await?;
            let content = content.ok_or_else(|| Error::failed(format!("no such file on the host: {path}")))?;
            Ok::<_, Error>(BASE64.encode(content))
        };
        let ca = match &self.ca_cert {
            Some(path) => Some(read(path).await?),
            None => None,
        };
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            if let Some(host) = &self.host {
                cluster.server = Some(host.clone());
            }
            if let Some(ca) = &ca {
                cluster.certificate_authority_data = Some(ca.clone());
            }
            if let Some(validate) = self.validate_certs {
                cluster.insecure_skip_tls_verify = Some(!validate);
            }
            // The connection goes through the host.
            cluster.proxy_url = None;
        }
        let certificate = match &self.client_cert {
            Some(path) => Some((read(path).await?, read(self.client_key.as_ref().unwrap_or(path)).await?)),
            None => None,
        };
        for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
            if let Some(token) = &self.api_key {
                user.token = Some(token.clone().into());
            }
            if let Some((certificate, key)) = &certificate {
                user.client_certificate_data = Some(certificate.clone());
                user.client_key_data = Some(key.clone().into());
            }
        }
        Ok(())
    }
}

/// What a server refuses for now (429, 503, 504) is asked again, after as long as it says: it does so at its start, and for a
/// kind that was defined just now.
fn patience() -> Result<RetryPolicy, Error> {
    RetryPolicy::new(Duration::from_millis(250), Duration::from_secs(4), 6, true)
        .map_err(|error| Error::failed(format!("cannot set up retries: {error}")))
}

/// A kubeconfig of one cluster and one user who has nothing to show yet.
fn nobody() -> Kubeconfig {
    let cluster = NamedCluster { name: "given".into(), cluster: Some(Cluster::default()), ..NamedCluster::default() };
    let user =
        kube::config::NamedAuthInfo { name: "given".into(), auth_info: Some(Default::default()), ..Default::default() };
    let context = kube::config::Context { cluster: "given".into(), user: Some("given".into()), ..Default::default() };
    let context = kube::config::NamedContext { name: "given".into(), context: Some(context), ..Default::default() };
    Kubeconfig {
        clusters: vec![cluster],
        auth_infos: vec![user],
        contexts: vec![context],
        current_context: Some("given".into()),
        ..Kubeconfig::default()
    }
}
