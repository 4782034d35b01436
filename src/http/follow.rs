//! Requests that are sent again with a login, and that follow redirects.

use std::time::Duration;

use base64::Engine;

use super::network::Network;
use super::{HttpError, Request, Response, Sink, Tls};
use crate::remote::Probe;

const MOST_REDIRECTS: usize = 10;

/// Which answers that point elsewhere are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirects {
    None,
    /// Those to GET and HEAD.
    Safe,
    All,
}

/// How a request is made.
pub(crate) struct RequestOptions<'a> {
    pub tls: &'a Tls,
    pub limit: Duration,
    pub redirects: Redirects,
    /// Headers, lower case, that are sent only to the first server.
    pub unredirected: &'a [String],
    pub network: &'a Network,
}

impl RequestOptions<'_> {
    /// Sends the request and follows redirects; `request` is then the last that was sent. With a sink the
    /// body goes there, as with [`super::download`].
    pub(crate) async fn send(
        &self,
        probe: &Probe,
        request: &mut Request,
        mut sink: Option<Sink<'_>>,
    ) -> Result<Response, HttpError> {
        for _ in 0..MOST_REDIRECTS {
            self.direct(request)?;
            let response = match &mut sink {
                Some(sink) => super::download(probe, self.tls, request, self.limit, *sink).await?,
                None => super::send(probe, self.tls, request, self.limit).await?,
            };
            if !self.prepare_next_request(request, &response)? {
                return Ok(response);
            }
        }
        Err(endless(request))
    }

    /// As [`RequestOptions::send`], from this machine.
    pub(crate) async fn send_from_here(&self, request: &mut Request) -> Result<Response, HttpError> {
        for _ in 0..MOST_REDIRECTS {
            self.direct(request)?;
            let response = super::from_here(self.tls, request, self.limit).await?;
            if !self.prepare_next_request(request, &response)? {
                return Ok(response);
            }
        }
        Err(endless(request))
    }

    /// As [`RequestOptions::send_from_here`], but the body is still to be read.
    pub(crate) async fn stream_from_here(&self, request: &mut Request) -> Result<super::Streamed, HttpError> {
        for _ in 0..MOST_REDIRECTS {
            self.direct(request)?;
            let streamed = super::stream::stream_from_here(self.tls, request, self.limit).await?;
            if !self.prepare_next_request(request, &streamed.head)? {
                return Ok(streamed);
            }
        }
        Err(endless(request))
    }

    /// Settles whether a request goes through a proxy.
    fn direct(&self, request: &mut Request) -> Result<(), HttpError> {
        let no_way = |reason| HttpError::Connect { address: request.url.address(), reason };
        request.proxy = self.network.proxy(&request.url).map_err(no_way)?;
        Ok(())
    }

    /// Whether a further request follows; it is then in `request`.
    fn prepare_next_request(&self, request: &mut Request, response: &Response) -> Result<bool, HttpError> {
        if let Some(login) = asked_to_log_in(response, request) {
            request.headers.push(("Authorization".to_owned(), login));
            return Ok(true);
        }
        let Some(location) = self.redirection(response, &request.method) else { return Ok(false) };
        self.redirect(request, response, location)?;
        Ok(true)
    }

    fn redirection<'a>(&self, response: &'a Response, method: &str) -> Option<&'a str> {
        let follows = match self.redirects {
            Redirects::None => false,
            Redirects::Safe => matches!(method, "GET" | "HEAD"),
            Redirects::All => true,
        };
        let is_redirect = matches!(response.status, 301 | 302 | 303 | 307 | 308);
        if follows && is_redirect { response.header("location") } else { None }
    }

    /// Makes the request one to the new address.
    fn redirect(&self, request: &mut Request, response: &Response, location: &str) -> Result<(), HttpError> {
        let broken = |reason| HttpError::Protocol { address: request.url.address(), reason };
        let url = request.url.resolve_location(location).map_err(broken)?;
        if url.address() != request.url.address() || url.secure != request.url.secure {
            // What logs in to the first server is not sent to another one.
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("host") && !is_secret(name));
        }
        request.headers.retain(|(name, _)| !self.unredirected.contains(&name.to_ascii_lowercase()));
        let keeps_method = matches!(response.status, 307 | 308) || matches!(&*request.method, "GET" | "HEAD");
        if !keeps_method {
            request.method = "GET".to_owned();
            request.body.clear();
            request.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        request.url = url;
        Ok(())
    }
}

/// Whether a header may hold a login, as `Authorization`, `X-Auth-Token` and `X-Api-Key` do.
fn is_secret(header: &str) -> bool {
    const WORDS: &[&str] = &["auth", "cookie", "token", "key", "secret", "password", "credential", "session"];
    let header = header.to_ascii_lowercase();
    WORDS.iter().any(|word| header.contains(word))
}

fn endless(request: &Request) -> HttpError {
    let reason = format!("more than {MOST_REDIRECTS} redirects");
    HttpError::Protocol { address: request.url.address(), reason }
}

/// The header that logs in without being asked to.
pub(crate) fn basic((user, password): &(String, String)) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
}

/// The login, if the server requires it and it was not sent yet.
fn asked_to_log_in(response: &Response, request: &Request) -> Option<String> {
    let reported = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let asked = response.status == 401
        && response.header("www-authenticate").is_some_and(|scheme| scheme.to_ascii_lowercase().starts_with("basic"));
    if asked && !reported { request.url.login.as_ref().map(basic) } else { None }
}
