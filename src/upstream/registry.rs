//! The protocol of registries (OCI distribution), as far as reading goes.

use std::path::PathBuf;

use serde::Deserialize;

use super::fetch::{Client, DownloadError, DownloadRequest};
use super::oci::{ACCEPT, Descriptor, LARGEST_MANIFEST, check_digest};
use super::reference::{Reference, RepositoryLocation};
use crate::bundle::{Error, hex_of, without_login};
use crate::http::Url;
use crate::http::url::encode_form;
use crate::value::mutex::Mutex;

/// A repository at one server.
pub(super) struct Repository<'a> {
    client: &'a Client,
    place: RepositoryLocation,
    /// The value of the header Authorization, for this server only.
    authorization: Mutex<Option<String>>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl<'a> Repository<'a> {
    pub(super) fn new(client: &'a Client, place: RepositoryLocation) -> Repository<'a> {
        Repository { client, place, authorization: Mutex::default() }
    }

    /// An index or a manifest, by tag or digest. The caller checks what a tag refers to.
    pub(super) async fn manifest(&self, reference: &str) -> Result<Vec<u8>, Error> {
        if let Some(hex) = hex_of(reference)
            && let Some(path) = self.client.blobs.find_blob(hex)?
        {
            return std::fs::read(&path).map_err(|error| Error::io("read", &path, &error));
        }
        let url = self.url(&format!("manifests/{reference}"))?;
        for _ in 0..2 {
            let mut headers = self.headers();
            headers.push(("accept".to_owned(), ACCEPT.to_owned()));
            let answer = self.client.download_text(&url, &headers, LARGEST_MANIFEST).await?;
            match answer.status {
                200 => {
                    if let Some(hex) = hex_of(reference) {
                        check_digest(&answer.body, reference, url.to_string().as_str())?;
                        self.client.blobs.store(answer.body.as_slice(), hex, reference)?;
                    }
                    return Ok(answer.body);
                }
                401 => self.log_in(answer.header("www-authenticate").unwrap_or_default()).await?,
                status => {
                    let message = format!("cannot read {url}: the server responded {status} {}", answer.reason);
                    return Err(Error::new(message));
                }
            }
        }
        Err(self.refused())
    }

    /// A blob, from the cache or from the server, compared with its digest.
    pub(super) async fn blob(&self, descriptor: &Descriptor) -> Result<PathBuf, Error> {
        let url = self.url(&format!("blobs/{}", descriptor.digest))?;
        for _ in 0..2 {
            let headers = self.headers();
            let wanted = DownloadRequest {
                url: &url,
                sha256: Some(descriptor.digest_hex()?),
                size: Some(descriptor.size),
                headers: &headers,
            };
            match self.client.download_file(&wanted).await {
                Ok((path, _)) => return Ok(path),
                Err(DownloadError::Error(error)) => return Err(error),
                // A token may have expired since the manifest was read.
                Err(DownloadError::Login) => {
                    *self.authorization.lock() = None;
                    let answer = self.client.download_text(&url, &[], LARGEST_MANIFEST).await?;
                    self.log_in(answer.header("www-authenticate").unwrap_or_default()).await?;
                }
            }
        }
        Err(self.refused())
    }

    fn url(&self, what: &str) -> Result<Url, Error> {
        let address = self.place.address(what);
        Url::parse(&address).map_err(|why| Error::new(format!("invalid address {}: {why}", without_login(&address))))
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.authorization.lock().iter().map(|value| ("authorization".to_owned(), value.clone())).collect()
    }

    fn refused(&self) -> Error {
        Error::new(format!("the registry {} rejected the login for {}", self.place.host(), self.place.repository))
            .hint("log in with docker login, or another tool that writes ~/.docker/config.json")
    }

    /// Does what the server asks for: sends the login itself, or gets a token for it.
    async fn log_in(&self, challenge: &str) -> Result<(), Error> {
        let login = self.client.logins.login_for(self.place.host());
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            *self.authorization.lock() = Some(login.ok_or_else(|| self.refused())?);
            return Ok(());
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(self.refused());
        }
        let value = |name: &str| parameter(rest, name);
        let realm = value("realm").ok_or_else(|| self.refused())?;
        let scope = value("scope").unwrap_or_else(|| format!("repository:{}:pull", self.place.repository));
        let mut address = format!("{realm}?scope={}", encode_form(&scope));
        if let Some(service) = value("service") {
            address.push_str(&format!("&service={}", encode_form(&service)));
        }
        let url = Url::parse(&address)
            .map_err(|why| Error::new(format!("invalid address {}: {why}", without_login(&realm))))?;
        let own = Url::parse(&self.place.address("")).map_err(|why| Error::new(format!("invalid address: {why}")))?;
        // A server cannot make windlass send a password without TLS.
        if own.secure && !url.secure {
            return Err(Error::new(format!(
                "the registry {} sends logins to {}, without TLS",
                self.place.host(),
                without_login(&realm)
            )));
        }
        let headers: Vec<_> = login.into_iter().map(|value| ("authorization".to_owned(), value)).collect();
        let answer = self.client.download_text(&url, &headers, LARGEST_MANIFEST).await?;
        let token: Option<Token> = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status == 200);
        let token = token.map(|Token { token, access_token }| if token.is_empty() { access_token } else { token });
        let token = token.filter(|token| !token.is_empty()).ok_or_else(|| self.refused())?;
        *self.authorization.lock() = Some(format!("Bearer {token}"));
        Ok(())
    }
}

/// A parameter of a challenge: `realm="…",service="…"`.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let key = key.trim_start_matches([',', ' ']).trim();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next;
    }
    None
}

/// The first registry or mirror that has the image, with what its tag or digest refers to.
pub(super) async fn find_field<'a>(
    client: &'a Client,
    reference: &Reference,
    mirrors: &[(String, String)],
    digest: Option<&str>,
) -> Result<(Repository<'a>, Vec<u8>), Error> {
    let wanted = digest.or(reference.digest.as_deref());
    let by = wanted.or(reference.tag.as_deref()).unwrap_or_default();
    let mut answers = Vec::new();
    for place in reference.places(mirrors) {
        let repository = Repository::new(client, place);
        match repository.manifest(by).await {
            Ok(text) => return Ok((repository, text)),
            Err(error) => answers.push(error),
        }
    }
    let hint = answers.iter().find_map(|error| error.hint.clone());
    let message = answers.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ");
    let error = Error::new(message);
    Err(match hint {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_taken_apart() {
        let text = r#"realm="https://auth/token",service="a,b", scope=x"#;
        assert_eq!(parameter(text, "realm").as_deref(), Some("https://auth/token"));
        assert_eq!(parameter(text, "service").as_deref(), Some("a,b"));
        assert_eq!(parameter(text, "Scope").as_deref(), Some("x"));
        assert_eq!(parameter(text, "none"), None);
    }
}
