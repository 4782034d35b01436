//! Answers read piece by piece, from this machine: for files that are too large to hold in memory.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::{HttpError, Request, Response, Tls, chain, message, reason, tls as certificates, within};

/// The head of an answer, and its body as it comes.
pub(crate) struct Streamed {
    pub head: Response,
    body: Incoming,
    /// How long to wait for each piece.
    limit: Duration,
    address: String,
    connection: JoinHandle<()>,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Streamed {
    /// The next piece; None: the body is complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let late = |_| HttpError::TimedOut { address: self.address.clone(), limit: self.limit };
            let Some(frame) = tokio::time::timeout(self.limit, self.body.frame()).await.map_err(late)? else {
                return Ok(None);
            };
            let lost =
                |error: hyper::Error| HttpError::Protocol { address: self.address.clone(), reason: chain(&error) };
            if let Ok(bytes) = frame.map_err(lost)?.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    /// The whole body, if it is not longer than `most`.
    pub(crate) async fn body_text(&mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut text = Vec::new();
        while let Some(bytes) = self.next().await? {
            if text.len() + bytes.len() > most {
                let reason = format!("the response is larger than {most} bytes");
                return Err(HttpError::Protocol { address: self.address.clone(), reason });
            }
            text.extend_from_slice(&bytes);
        }
        Ok(text)
    }

    /// How many bytes the server announced. None: it did not say.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Whether a body that ends too early is noticed.
    pub(crate) fn shows_its_end(&self) -> bool {
        let chunked = |value: &str| value.to_ascii_lowercase().contains("chunked");
        self.length().is_some() || self.head.header("transfer-encoding").is_some_and(chunked)
    }
}

/// Sends one request from this machine; the body of the answer is still to be read.
pub(crate) async fn stream_from_here(tls: &Tls, request: &Request, limit: Duration) -> Result<Streamed, HttpError> {
    let address = request.url.address();
    let stream = within(limit, request, super::connect_from_here(tls, request)).await?;
    let broken = |reason: String| HttpError::Protocol { address: request.url.address(), reason };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(error.to_string()))?;
    let message = message(request).map_err(broken)?;
    let connection = tokio::spawn(async move { drop(connection.await) });
    let failed = |error: hyper::Error| match certificates::rejection(&error) {
        Some(reason) => HttpError::Certificate { address: request.url.address(), reason },
        None => broken(chain(&error)),
    };
    let answer = within(limit, request, async { sender.send_request(message).await.map_err(failed) }).await;
    let answer = answer.inspect_err(|_| connection.abort())?;
    let reason = reason(&answer);
    let (parts, body) = answer.into_parts();
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let head = Response { status: parts.status.as_u16(), reason, headers, body: Vec::new() };
    Ok(Streamed { head, body, limit, address, connection })
}
