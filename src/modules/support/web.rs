//! What the modules for web services have in common: their arguments, documented once, certificates from files, and what is
//! at an address.

use std::path::Path;
use std::time::Duration;

use crate::http::follow::{Redirects, RequestOptions};
use crate::http::network::Network;
use crate::http::tls::{authorities, identity, system_authorities};
use crate::http::{HttpError, Request, Tls, Url};
use crate::modules::{Controller, Error, vault_file};
use crate::remote::Probe;
use crate::value::doc::{Argument, ArgumentKind};

pub(crate) const HEADERS: Argument = Argument::new("headers", ArgumentKind::Dict, "Headers to send").default("{}");
pub(crate) const VALIDATE_CERTS: Argument =
    Argument::new("validate_certs", ArgumentKind::Bool, "Whether to check the server's certificate").default("true");
pub(crate) const CLIENT_CERT: Argument =
    Argument::new("client_cert", ArgumentKind::Path, "A file on the host with the client certificate");
pub(crate) const CLIENT_KEY: Argument =
    Argument::new("client_key", ArgumentKind::Path, "A file on the host with its key, unless it is in client_cert");
pub(crate) const URL_PASSWORD: Argument =
    Argument::new("url_password", ArgumentKind::Str, "The password").alias(&["password"]).mark_secret();
pub(crate) const FORCE_BASIC_AUTH: Argument =
    Argument::new("force_basic_auth", ArgumentKind::Bool, "Whether to send the login with the first request")
        .default("false");
pub(crate) const HTTP_AGENT: Argument =
    Argument::new("http_agent", ArgumentKind::Str, "The User-Agent header").default("ansible-httpget");
pub(crate) const USE_PROXY: Argument =
    Argument::new("use_proxy", ArgumentKind::Bool, "Whether to use http_proxy and https_proxy of the host or the task")
        .default("true");
pub(crate) const USE_NETRC: Argument = Argument::new(
    "use_netrc",
    ArgumentKind::Bool,
    "Whether to use the login in ~/.netrc on the host, without url_username",
)
.default("true");

/// The files with what is trusted and what is shown.
#[derive(Clone, Copy, Default)]
pub(crate) struct TlsFiles<'a> {
    /// A file of authorities; the system's if None.
    pub ca: Option<&'a str>,
    pub client_cert: Option<&'a str>,
    /// The certificate's own file if None.
    pub client_key: Option<&'a str>,
    /// Whose files they are, which may be vault files; the host's if None.
    pub controller: Option<&'a Controller<'a>>,
}

impl TlsFiles<'_> {
    /// Reads them. Without `verify` any certificate is taken.
    pub(crate) async fn load_tls(self, probe: &Probe, verify: bool) -> Result<Tls, Error> {
        let trusted = match (verify, self.ca) {
            (false, _) => None,
            (true, Some(path)) => {
                Some(authorities(path, &self.read_pem_file(probe, path).await?).map_err(Error::failed)?)
            }
            (true, None) => Some(system_authorities(probe).await?),
        };
        let client = match self.client_cert {
            Some(path) => {
                let key = self.client_key.unwrap_or(path);
                let (cert_text, key_text) =
                    (self.read_pem_file(probe, path).await?, self.read_pem_file(probe, key).await?);
                Some(identity((path, &cert_text), (key, &key_text)).map_err(Error::failed)?)
            }
            None => None,
        };
        Ok(Tls::new(trusted, client))
    }

    async fn read_pem_file(self, probe: &Probe, path: &str) -> Result<Vec<u8>, Error> {
        if let Some(here) = self.controller {
            return vault_file::read_decrypted(here, Path::new(path)).await;
        }
        let path = probe.expand_on_host(path).await?;
        probe.read_file(&path).await?.ok_or_else(|| Error::failed(format!("no such file on the host: {path}")))
    }
}

/// What is at an address, as the host sees it.
pub(crate) async fn fetch(probe: &Probe, address: &str) -> Result<Vec<u8>, Error> {
    let url = Url::parse(address).map_err(|why| Error::failed(format!("invalid URL: {why}")))?;
    let tls = TlsFiles::default().load_tls(probe, true).await?;
    let manner = RequestOptions {
        tls: &tls,
        limit: Duration::from_secs(300),
        redirects: Redirects::All,
        unredirected: &[],
        network: &Network::load_network(probe, true, false).await?,
    };
    let failed = |words: String| Error::failed(format!("cannot fetch {url}: {words}"));
    match manner.send(probe, &mut Request::get(url.clone()), None).await {
        Ok(response) if response.status == 200 => Ok(response.body),
        Ok(response) => Err(failed(format!("HTTP Error {}: {}", response.status, response.reason))),
        Err(HttpError::Host(error)) => Err(error.into()),
        Err(failure) => Err(failed(failure.to_string())),
    }
}
