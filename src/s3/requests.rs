//! Requests to the service: signed, and repeated when another attempt may succeed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::net::SocketAddr;

use sha2::{Digest, Sha256};

use super::answers::parse_error;
use super::sign::{Signed, encode, encoded_query, hex};
use super::{Bucket, S3Error};
use crate::http::{HttpError, Request, Response, Streamed, Url};

/// The largest answer that is held in memory: a page of a list.
const LARGEST_ANSWER: usize = 4 << 20;

/// One request, without its signature.
#[derive(Default)]
pub(super) struct Call<'a> {
    pub method: &'static str,
    /// Empty: of the bucket itself.
    pub key: &'a str,
    pub query: Vec<(&'static str, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why an attempt failed.
enum Failure {
    /// Another attempt may succeed.
    Passing(String),
    Lasting(S3Error),
}

/// The attempts of one request.
struct Attempts<'a> {
    bucket: &'a Bucket,
    what: &'a str,
    number: u32,
}

impl Attempts<'_> {
    /// Waits before another attempt. Fails after the last one, or if another one would fail, too.
    async fn wait(&mut self, failure: Failure) -> Result<(), S3Error> {
        let why = match failure {
            Failure::Lasting(error) => return Err(error),
            Failure::Passing(why) => why,
        };
        if self.number >= self.bucket.attempts {
            return Err(S3Error::other(self.what, &format!("{why} (after {} attempts)", self.number)));
        }
        tokio::time::sleep(self.bucket.pause * 2_u32.pow(self.number - 1)).await;
        self.number += 1;
        Ok(())
    }
}

impl Bucket {
    fn attempts<'a>(&'a self, what: &'a str) -> Attempts<'a> {
        Attempts { bucket: self, what, number: 1 }
    }

    /// Sends a request, and gives the answer with the number of attempts. `what`: as [`S3Error`] says it.
    ///
    /// # Errors
    /// There is no answer, or it is neither a success nor one of `also`.
    pub(super) async fn perform(&self, what: &str, call: &Call<'_>, also: &[u16]) -> Result<(Response, u32), S3Error> {
        let mut attempts = self.attempts(what);
        loop {
            let failure = match self.attempt(what, call).await {
                Ok(answer) if answer.is_success() || also.contains(&answer.status) => {
                    return Ok((answer, attempts.number));
                }
                Ok(answer) => of_answer(what, &answer),
                Err(failure) => failure,
            };
            attempts.wait(failure).await?;
        }
    }

    async fn attempt(&self, what: &str, call: &Call<'_>) -> Result<Response, Failure> {
        let mut streamed = self.ask(what, call).await?;
        whole_answer(&mut streamed).await
    }

    /// Sends a request once.
    async fn ask(&self, what: &str, call: &Call<'_>) -> Result<Streamed, Failure> {
        let path = match call.key {
            "" => format!("{}/", self.url.path),
            key => format!("{}/{}", self.url.path, encode(key, "/")),
        };
        let query = encoded_query(&call.query);
        let mut headers = call.headers.clone();
        let host = self.url.host_header();
        let payload_sha256 = hex(&Sha256::digest(&call.body));
        let signed =
            Signed { method: call.method, host: &host, path: &path, query: &query, payload_sha256: &payload_sha256 };
        self.signer.add_signature(&signed, &mut headers, chrono::Utc::now());
        headers.push(("user-agent".into(), concat!("windlass/", env!("CARGO_PKG_VERSION")).into()));
        let whole = if query.is_empty() { path } else { format!("{path}?{query}") };
        let request = Request {
            method: call.method.to_owned(),
            url: Url { path: whole, ..self.url.clone() },
            headers,
            body: call.body.clone(),
            proxy: self.proxy.clone(),
            socket: None,
            resolved: self.addresses(what).await?,
        };
        crate::http::stream_from_here(&self.tls, &request, self.limit).await.map_err(|error| match error {
            HttpError::Certificate { .. } => Failure::Lasting(
                S3Error::other(what, &error.to_string()).with_hint("AWS_CA_BUNDLE names a file with other authorities"),
            ),
            error => Failure::Passing(error.to_string()),
        })
    }

    /// Where the service is, if only some addresses may be connected to.
    async fn addresses(&self, what: &str) -> Result<Vec<SocketAddr>, Failure> {
        let Some(confined) = &self.confined else { return Ok(Vec::new()) };
        let resolved = confined.resolve(&self.url.host, self.url.port).await;
        resolved.map_err(|why| Failure::Lasting(S3Error::other(what, &why)))
    }

    /// Reads an object of at most `most` bytes, into a file if there is one. Gives its size in bytes and its SHA-256 in hex.
    ///
    /// # Errors
    /// It does not exist, is larger, or cannot be read; the file cannot be written.
    pub async fn download_object(
        &self,
        key: &str,
        most: u64,
        mut file: Option<&mut File>,
    ) -> Result<(u64, String), S3Error> {
        let what = format!("cannot read {}", self.object_address(key));
        let mut attempts = self.attempts(&what);
        loop {
            let call = Call { method: "GET", key, ..Call::default() };
            match self.download_once(&what, &call, most, file.as_deref_mut()).await {
                Ok(found) => return Ok(found),
                Err(failure) => attempts.wait(failure).await?,
            }
        }
    }

    async fn download_once(
        &self,
        what: &str,
        call: &Call<'_>,
        most: u64,
        mut file: Option<&mut File>,
    ) -> Result<(u64, String), Failure> {
        let lasting = |why: String| Failure::Lasting(S3Error::other(what, &why));
        let unwritable = |error: std::io::Error| lasting(format!("cannot write: {error}"));
        let mut streamed = self.ask(what, call).await?;
        if streamed.head.status != 200 {
            return Err(of_answer(what, &whole_answer(&mut streamed).await?));
        }
        if !streamed.shows_its_end() {
            return Err(lasting("the server does not say how large it is".to_owned()));
        }
        if let Some(file) = file.as_deref_mut() {
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(unwritable)?;
        }
        let (mut size, mut digest) = (0, Sha256::new());
        while let Some(piece) = streamed.next().await.map_err(|error| Failure::Passing(error.to_string()))? {
            size += piece.len() as u64;
            if size > most {
                return Err(lasting(format!("it is larger than {most} bytes")));
            }
            digest.update(&piece);
            if let Some(file) = file.as_deref_mut() {
                file.write_all(&piece).map_err(unwritable)?;
            }
        }
        Ok((size, hex(&digest.finalize())))
    }
}

async fn whole_answer(streamed: &mut Streamed) -> Result<Response, Failure> {
    let body = streamed.body_text(LARGEST_ANSWER).await.map_err(|error| Failure::Passing(error.to_string()))?;
    let Response { status, reason, headers, .. } = &streamed.head;
    Ok(Response { status: *status, reason: reason.clone(), headers: headers.clone(), body })
}

fn of_answer(what: &str, answer: &Response) -> Failure {
    match answer.status {
        // Somebody else writes an object with this key: the service asks to try again.
        409 if parse_error(&answer.body).0 == "ConditionalRequestConflict" => {
            Failure::Passing("the server responded 409 ConditionalRequestConflict".to_owned())
        }
        408 | 425 | 429 | 500 | 502..=599 => {
            Failure::Passing(format!("the server responded {} {}", answer.status, answer.reason))
        }
        _ => Failure::Lasting(S3Error::of_answer(what, answer)),
    }
}
