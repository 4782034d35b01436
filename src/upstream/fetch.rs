//! Downloads: retried, resumed where they stopped, kept by digest.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::blobs::{Blobs, Partial};
use crate::bundle::Error;
use crate::http::follow::{Redirects, RequestOptions};
use crate::http::network::Network;
use crate::http::{LARGEST_DOWNLOAD, Request, Response, Streamed, Tls, Url};
use crate::value::ProcessEnvironment;

/// The progress of a download: the name, the bytes so far, and their total number.
pub type Progress = Box<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

/// How downloads are made.
pub struct Client {
    tls: Result<Tls, String>,
    network: Network,
    pub(super) blobs: Blobs,
    /// For each step: the connection, the answer's head, each piece of its body.
    limit: Duration,
    attempts: u32,
    /// Before the second attempt; twice as long before each further one.
    pause: Duration,
    progress: Progress,
    pub(super) logins: super::credentials::Logins,
}

/// What is to be downloaded.
pub(super) struct DownloadRequest<'a> {
    pub url: &'a Url,
    /// Hex. None: whatever comes.
    pub sha256: Option<&'a str>,
    pub size: Option<u64>,
    pub headers: &'a [(String, String)],
}

/// Why there is no file.
pub(super) enum DownloadError {
    /// The server requires a login, or rejected the one that was sent.
    Login,
    Error(Error),
}

/// Why one attempt failed.
enum AttemptError {
    /// Another attempt may succeed.
    Passing(String),
    Lasting(Error),
    Login,
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        AttemptError::Lasting(error)
    }
}

impl Client {
    /// With the proxies, certificate authorities and cache of this machine's user; `authorities` replaces the machine's own.
    pub fn new(around: &ProcessEnvironment, authorities: Option<&Path>, progress: Progress) -> Result<Client, Error> {
        let named = around.variable("SSL_CERT_FILE").map(PathBuf::from);
        Ok(Client {
            tls: Tls::from_here(authorities.or(named.as_deref())),
            network: Network::from_here(around, true, false),
            blobs: Blobs::of_user(around)?,
            limit: Duration::from_secs(60),
            attempts: 6,
            pause: Duration::from_secs(1),
            progress,
            logins: super::credentials::Logins::read_logins(around)?,
        })
    }

    /// For tests: another cache, and no waiting.
    #[cfg(test)]
    pub(super) fn for_tests(cache: &Path) -> Client {
        Client {
            tls: Ok(Tls::none()),
            network: Network::default(),
            blobs: Blobs::below(cache.to_owned()).unwrap(),
            limit: Duration::from_secs(2),
            attempts: 6,
            pause: Duration::from_millis(5),
            progress: Box::new(|_, _, _| {}),
            logins: super::credentials::Logins::default(),
        }
    }

    async fn ask(&self, mut request: Request) -> Result<Streamed, AttemptError> {
        let tls = match (&self.tls, request.url.secure) {
            (Ok(tls), _) => tls,
            (Err(_), false) => &Tls::none(),
            (Err(why), true) => return Err(Error::new(why.clone()).hint("name a file with --ca").into()),
        };
        let manner = RequestOptions {
            tls,
            limit: self.limit,
            redirects: Redirects::Safe,
            unredirected: &[],
            network: &self.network,
        };
        request.headers.push(("user-agent".into(), concat!("windlass/", env!("CARGO_PKG_VERSION")).into()));
        let first = request.url.clone();
        let sent = manner.stream_from_here(&mut request).await;
        let is_elsewhere = first.address() != request.url.address() || first.secure != request.url.secure;
        if first.secure && !request.url.secure {
            let message = format!("{first} redirects to {}, without TLS", request.url);
            return Err(Error::new(message).into());
        }
        // The login of the first server is not for one that it redirects to.
        if is_elsewhere && sent.as_ref().is_ok_and(|streamed| streamed.head.status == 401) {
            return Err(Error::new(format!("{first} redirects to {}, which requires a login", request.url)).into());
        }
        sent.map_err(|failure| match failure {
            crate::http::HttpError::Certificate { .. } => Error::new(failure.to_string()).into(),
            failure => AttemptError::Passing(failure.to_string()),
        })
    }

    /// A short response, whatever its status, after retries for server errors.
    pub(super) async fn download_text(
        &self,
        url: &Url,
        headers: &[(String, String)],
        most: usize,
    ) -> Result<Response, Error> {
        let attempt = async || {
            let request = Request { headers: headers.to_vec(), ..Request::get(url.clone()) };
            let mut streamed = self.ask(request).await?;
            if is_passing(streamed.head.status) {
                return Err(AttemptError::Passing(answered(&streamed.head)));
            }
            if streamed.head.status == 200 && !streamed.shows_its_end() {
                let why = format!("{url} sent neither a Content-Length nor chunks");
                return Err(Error::new(why).into());
            }
            let body = streamed.body_text(most).await.map_err(|failure| AttemptError::Passing(failure.to_string()))?;
            let Response { status, reason, headers, .. } = &streamed.head;
            Ok(Response { status: *status, reason: reason.clone(), headers: headers.clone(), body })
        };
        self.repeated(url, attempt).await.map_err(|failed| match failed {
            DownloadError::Error(error) => error,
            DownloadError::Login => Error::new(format!("{url} requires a login")),
        })
    }

    /// A file, from the cache or from its server. Gives its path in the cache, and its digest in hex.
    pub(super) async fn download_file(&self, wanted: &DownloadRequest<'_>) -> Result<(PathBuf, String), DownloadError> {
        let url = wanted.url;
        if let Some(found) = self.cached(wanted).map_err(DownloadError::Error)? {
            return Ok(found);
        }
        let name = format!("{url} {}", wanted.sha256.unwrap_or_default());
        let mut partial = self.blobs.partial(&name).await.map_err(DownloadError::Error)?;
        // Another process may have downloaded it.
        if let Some(found) = self.cached(wanted).map_err(DownloadError::Error)? {
            drop(std::fs::remove_file(partial.partial_path()));
            return Ok(found);
        }
        let sha256 = loop {
            let mut resumed = false;
            // One after the other, but `attempt` borrows the file.
            let mut number = 0;
            loop {
                match self.attempt(wanted, &mut partial, &mut resumed).await {
                    Ok(()) => break,
                    Err(AttemptError::Login) => return Err(DownloadError::Login),
                    Err(AttemptError::Lasting(error)) => return Err(DownloadError::Error(error)),
                    Err(AttemptError::Passing(why)) => self.pause(url, &mut number, &why).await?,
                }
            }
            let found = partial.partial_digest().map_err(DownloadError::Error)?;
            match wanted.sha256 {
                Some(sha256) if sha256 != found => {
                    self.discard(&mut partial).map_err(DownloadError::Error)?;
                    if !resumed {
                        let message = format!("{url} has SHA-256 {found}, expected {sha256}");
                        return Err(DownloadError::Error(Error::new(message)));
                    }
                }
                _ => break found,
            }
        };
        let path = self.blobs.store_blob(partial, &sha256).map_err(DownloadError::Error)?;
        Ok((path, sha256))
    }

    fn cached(&self, wanted: &DownloadRequest<'_>) -> Result<Option<(PathBuf, String)>, Error> {
        let Some(sha256) = wanted.sha256 else { return Ok(None) };
        Ok(self.blobs.find_blob(sha256)?.map(|path| (path, sha256.to_owned())))
    }

    async fn attempt(
        &self,
        wanted: &DownloadRequest<'_>,
        partial: &mut Partial,
        resumed: &mut bool,
    ) -> Result<(), AttemptError> {
        let url = wanted.url;
        let path = partial.partial_path().to_owned();
        let cannot = |error: std::io::Error| AttemptError::Lasting(Error::io("write", &path, &error));
        let there = partial.file.metadata().map_err(cannot)?.len();
        let mut request = Request { headers: wanted.headers.to_vec(), ..Request::get(url.clone()) };
        let validator = partial.validator().filter(|_| there > 0);
        if let Some(validator) = &validator {
            request.headers.push(("range".into(), format!("bytes={there}-")));
            request.headers.push(("if-range".into(), validator.clone()));
        }
        let mut streamed = self.ask(request).await?;
        let head = &streamed.head;
        let begin = match head.status {
            200 => 0,
            206 if validator.is_some() && continues(head, there, streamed.length()) => there,
            // The range differs from the request, or nothing is left: start again.
            206 | 416 => {
                self.discard(partial)?;
                return Err(AttemptError::Passing(format!("it responded {} to a request to resume", head.status)));
            }
            401 => return Err(AttemptError::Login),
            status if is_passing(status) => return Err(AttemptError::Passing(answered(head))),
            _ => return Err(Error::new(format!("cannot download {url}: {}", answered(head))).into()),
        };
        if begin == 0 {
            self.discard(partial)?;
            let strong = head.header("etag").filter(|tag| !tag.starts_with("W/"));
            partial.set_validator(strong.or_else(|| head.header("last-modified")));
        }
        *resumed |= begin > 0;
        if wanted.sha256.is_none() && !streamed.shows_its_end() {
            let message = format!("{url} sent no Content-Length, so windlass cannot check that the file is complete");
            return Err(Error::new(message).hint("give its digest").into());
        }
        let total = streamed.length().map(|length| begin + length);
        if let (Some(size), Some(total)) = (wanted.size, total)
            && size != total
        {
            self.discard(partial)?;
            return Err(Error::new(format!("{url} has {total} bytes, expected {size}")).into());
        }
        let most = wanted.size.unwrap_or(LARGEST_DOWNLOAD).min(LARGEST_DOWNLOAD);
        partial.file.seek(SeekFrom::Start(begin)).map_err(cannot)?;
        let mut at = begin;
        loop {
            let piece = streamed.next().await.map_err(|failure| AttemptError::Passing(failure.to_string()))?;
            let Some(piece) = piece else { break };
            at += piece.len() as u64;
            if at > most {
                self.discard(partial)?;
                return Err(Error::new(format!("{url} is larger than {most} bytes")).into());
            }
            partial.file.write_all(&piece).map_err(cannot)?;
            (self.progress)(&url.to_string(), at, total.or(wanted.size));
        }
        if wanted.size.is_some_and(|size| size != at) {
            self.discard(partial)?;
            return Err(AttemptError::Passing(format!("{at} bytes arrived, expected {most}")));
        }
        Ok(())
    }

    fn discard(&self, partial: &mut Partial) -> Result<(), Error> {
        partial.set_validator(None);
        partial.file.set_len(0).map_err(|error| Error::io("write", partial.partial_path(), &error))
    }

    async fn repeated<T>(
        &self,
        url: &Url,
        attempt: impl AsyncFn() -> Result<T, AttemptError>,
    ) -> Result<T, DownloadError> {
        let mut number = 0;
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(AttemptError::Login) => return Err(DownloadError::Login),
                Err(AttemptError::Lasting(error)) => return Err(DownloadError::Error(error)),
                Err(AttemptError::Passing(why)) => self.pause(url, &mut number, &why).await?,
            }
        }
    }

    /// Waits before another attempt. Fails after the last one.
    async fn pause(&self, url: &Url, number: &mut u32, why: &str) -> Result<(), DownloadError> {
        *number += 1;
        if *number >= self.attempts {
            let message = format!("cannot download {url}: {why} (after {number} attempts)");
            return Err(DownloadError::Error(Error::new(message)));
        }
        tokio::time::sleep(self.pause * 2_u32.pow(*number - 1)).await;
        Ok(())
    }
}

/// Whether a server may answer otherwise in a moment.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

fn answered(head: &Response) -> String {
    format!("the server responded {} {}", head.status, head.reason)
}

/// Whether a partial answer begins at this byte and brings the rest of the file, in as many bytes as announced (RFC 9110, 14.4).
fn continues(head: &Response, byte: u64, length: Option<u64>) -> bool {
    let range = head.header("content-range").and_then(|range| range.strip_prefix("bytes "));
    let parts = range.and_then(|range| {
        let (part, total) = range.split_once('/')?;
        let (start, end) = part.split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        Some((number(start)?, number(end)?, number(total)?))
    });
    parts.is_some_and(|(start, end, total)| {
        start == byte
            && end.checked_add(1) == Some(total)
            && total.checked_sub(start).is_some_and(|rest| length.is_none_or(|length| length == rest))
    })
}

#[cfg(test)]
mod tests;
