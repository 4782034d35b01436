//! HTTP/1.1 as the host sees the network: the bytes go through the connection to the host, the client runs here, and
//! the host needs nothing for it. For `uri`, `get_url` and `etcd_cluster_info`; [`from_here`] needs no host.

pub(crate) mod follow;
pub(crate) mod network;
mod page;
mod stream;
pub(crate) mod tls;
pub(crate) mod url;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

pub(crate) use page::page;
pub(crate) use stream::{Streamed, stream_from_here};
pub(crate) use tls::Tls;
pub(crate) use url::Url;

use crate::connection::{self, Stream};
use crate::remote::{self, Probe};

/// More than this is not held in memory.
pub(crate) const LARGEST_BODY: usize = 256 << 20;
/// The largest download, packed or not: it is stored on the controller's disk before it is sent to the host.
pub(crate) const LARGEST_DOWNLOAD: u64 = 16 << 30;

/// Why there is no answer. The host itself being gone is [`HttpError::Host`]; all else is the other end's doing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Host(remote::Error),
    #[error("cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    /// The host was reached by SSH, whose server opens no tunnels.
    #[error("cannot connect to {address}: {reason}")]
    NoTunnels { address: String, reason: String },
    #[error("cannot connect to {address}: {reason}")]
    Offline { address: String, reason: String },
    #[error("TLS handshake with {address} failed: {reason}")]
    Tls { address: String, reason: String },
    /// One side rejected the other's certificate, or the client certificate cannot be used. With TLS 1.3 a server
    /// reports this after the handshake.
    #[error("TLS handshake with {address} failed: {reason}")]
    Certificate { address: String, reason: String },
    #[error("invalid response from {address}: {reason}")]
    Protocol { address: String, reason: String },
    #[error("{address} timed out after {limit:?}")]
    TimedOut { address: String, limit: Duration },
}

pub(crate) struct Request {
    pub method: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Through which it goes.
    pub proxy: Option<Url>,
    /// The socket of this machine behind which the server is, whatever the address says.
    pub socket: Option<PathBuf>,
    /// Where the server is, of a name that was resolved before, for requests from this machine. Empty: the name is resolved then.
    pub resolved: Vec<SocketAddr>,
}

impl Request {
    pub(crate) fn get(url: Url) -> Request {
        let (headers, body, resolved) = Default::default();
        Request { method: "GET".to_owned(), url, headers, body, proxy: None, socket: None, resolved }
    }
}

impl Request {
    /// Logs in as the host's `~/.netrc` says, unless the address itself does.
    pub(crate) fn log_in(&mut self, network: &network::Network) {
        if let (None, Some(login)) = (&self.url.login, network.login(&self.url.host)) {
            self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            self.headers.push(("Authorization".to_owned(), follow::basic(&login)));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub status: u16,
    /// `Not Found`, in the server's own words if it has some.
    pub reason: String,
    /// Lower-case names, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of that name (lower case).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Sends one request over a new connection and reads the whole response.
pub(crate) async fn send(probe: &Probe, tls: &Tls, request: &Request, limit: Duration) -> Result<Response, HttpError> {
    let address = request.url.address();
    match tokio::time::timeout(limit, exchange(probe, tls, request)).await {
        Ok(answer) => answer,
        Err(_) => Err(HttpError::TimedOut { address, limit }),
    }
}

/// Where the body of an answer with status 200 is put as it comes.
pub(crate) type Sink<'a> = &'a mut (dyn AsyncWrite + Send + Unpin);

/// What becomes of the body of an answer.
enum BodyTo<'a> {
    /// It is in the response.
    Response,
    /// That of an answer with status 200 goes there; the limit is for each step.
    Sink(Sink<'a>, Duration),
    /// Nobody reads it.
    Nowhere,
}

/// As [`send`], but the body of an answer with status 200 goes to `sink`, however long it is; [`Response::body`] is
/// empty then. `limit` is for each step: the connection, the answer's head, each piece of its body.
pub(crate) async fn download(
    probe: &Probe,
    tls: &Tls,
    request: &Request,
    limit: Duration,
    sink: Sink<'_>,
) -> Result<Response, HttpError> {
    let stream = within(limit, request, open(probe, tls, request)).await?;
    talk(stream, request, BodyTo::Sink(sink, limit)).await
}

/// Opens a connection from the host, to an address that the run may connect to.
pub(crate) async fn connect(probe: &Probe, host: &str, port: u16) -> Result<Box<dyn Stream>, HttpError> {
    allow(probe, host, port)?;
    connect_to_api(probe, host, port).await
}

/// Refuses an address that the run may not connect to.
fn allow(probe: &Probe, host: &str, port: u16) -> Result<(), HttpError> {
    probe.may_reach(host).map_err(|error| match error {
        remote::Error::Connection(connection::Error::Start { reason, .. }) => {
            HttpError::Offline { address: format!("{host}:{port}"), reason }
        }
        gone => HttpError::Host(gone),
    })
}

/// As [`connect`], to an API server that a task names: an offline run may connect to it, wherever it is.
pub(crate) async fn connect_to_api(probe: &Probe, host: &str, port: u16) -> Result<Box<dyn Stream>, HttpError> {
    probe.tunnel(host, port).await.map_err(|error| match error {
        remote::Error::Connection(connection::Error::Start { reason, .. }) => {
            HttpError::Connect { address: format!("{host}:{port}"), reason }
        }
        remote::Error::Connection(connection::Error::NoTunnels { reason, .. }) => {
            HttpError::NoTunnels { address: format!("{host}:{port}"), reason }
        }
        remote::Error::Refused { reason, .. } => HttpError::Connect { address: format!("{host}:{port}"), reason },
        gone => HttpError::Host(gone),
    })
}

async fn exchange(probe: &Probe, tls: &Tls, request: &Request) -> Result<Response, HttpError> {
    let stream = open(probe, tls, request).await?;
    talk(stream, request, BodyTo::Response).await
}

/// Sends one request from this machine, over a new connection, and reads the whole response.
pub(crate) async fn from_here(tls: &Tls, request: &Request, limit: Duration) -> Result<Response, HttpError> {
    let exchange = async { talk(connect_from_here(tls, request).await?, request, BodyTo::Response).await };
    within(limit, request, exchange).await
}

/// As [`from_here`], but reads no more of the response than its head: for a server that may answer whatever it likes.
pub(crate) async fn head_from_here(tls: &Tls, request: &Request, limit: Duration) -> Result<Response, HttpError> {
    let exchange = async { talk(connect_from_here(tls, request).await?, request, BodyTo::Nowhere).await };
    within(limit, request, exchange).await
}

/// The way from this machine to the server, through a proxy if there is one, with TLS if the address asks for it.
async fn connect_from_here(tls: &Tls, request: &Request) -> Result<Box<dyn Stream>, HttpError> {
    let next = request.proxy.as_ref().unwrap_or(&request.url);
    let stream: std::io::Result<Box<dyn Stream>> = match &request.socket {
        Some(path) => UnixStream::connect(path).await.map(|stream| Box::new(stream) as _),
        None if !request.resolved.is_empty() => {
            TcpStream::connect(request.resolved.as_slice()).await.map(|stream| Box::new(stream) as _)
        }
        None => TcpStream::connect((next.host.as_str(), next.port)).await.map(|stream| Box::new(stream) as _),
    };
    let lost = |error: std::io::Error| HttpError::Connect { address: next.address(), reason: error.to_string() };
    let mut stream = stream.map_err(lost)?;
    if let Some(proxy) = request.proxy.as_ref().filter(|_| request.url.secure) {
        open_proxy_tunnel(&mut stream, proxy, &request.url).await?;
    }
    secured(stream, tls, request).await
}

async fn within<T>(
    limit: Duration,
    request: &Request,
    step: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let late = |_| HttpError::TimedOut { address: request.url.address(), limit };
    tokio::time::timeout(limit, step).await.map_err(late)?
}

/// The way to the server, with TLS if the address asks for it.
async fn open(probe: &Probe, tls: &Tls, request: &Request) -> Result<Box<dyn Stream>, HttpError> {
    let url = &request.url;
    let Some(proxy) = &request.proxy else {
        return secured(connect(probe, &url.host, url.port).await?, tls, request).await;
    };
    allow(probe, &url.host, url.port)?;
    let mut stream = connect(probe, &proxy.host, proxy.port).await?;
    if url.secure {
        open_proxy_tunnel(&mut stream, proxy, url).await?;
    }
    secured(stream, tls, request).await
}

/// Has a proxy connect to the server itself.
async fn open_proxy_tunnel(stream: &mut Box<dyn Stream>, proxy: &Url, url: &Url) -> Result<(), HttpError> {
    const LONGEST: usize = 16 * 1024;
    let address = url.address();
    let login = proxy.login.as_ref().map(|login| format!("Proxy-Authorization: {}\r\n", follow::basic(login)));
    let head = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{}\r\n", login.unwrap_or_default());
    let broken = |reason: String| HttpError::Connect { address: address.clone(), reason };
    let lost = |error: std::io::Error| broken(format!("the proxy {}: {error}", proxy.address()));
    stream.write_all(head.as_bytes()).await.map_err(lost)?;
    let mut answer = Vec::new();
    // Not a byte more than the head is the proxy's.
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < LONGEST {
        answer.push(stream.read_u8().await.map_err(lost)?);
    }
    let answer = String::from_utf8_lossy(&answer);
    let words = answer.lines().next().unwrap_or_default();
    match words.split(' ').nth(1).is_some_and(|code| code.starts_with('2')) {
        true => Ok(()),
        false => Err(broken(format!("the proxy {} responded {words:?}", proxy.address()))),
    }
}

async fn secured(stream: Box<dyn Stream>, tls: &Tls, request: &Request) -> Result<Box<dyn Stream>, HttpError> {
    let url = &request.url;
    if !url.secure {
        return Ok(stream);
    }
    let no_tls = |reason: String| HttpError::Tls { address: url.address(), reason };
    let name =
        ServerName::try_from(url.host.clone()).map_err(|_| no_tls(format!("invalid host name {:?}", url.host)))?;
    let unusable = |reason| HttpError::Certificate { address: url.address(), reason };
    let connector = TlsConnector::from(tls.config().map_err(unusable)?);
    let failed = |error: std::io::Error| tls::rejection(&error).map_or_else(|| no_tls(error.to_string()), unusable);
    Ok(Box::new(connector.connect(name, stream).await.map_err(failed)?))
}

async fn talk(stream: Box<dyn Stream>, request: &Request, mut to: BodyTo<'_>) -> Result<Response, HttpError> {
    let broken = |reason: String| HttpError::Protocol { address: request.url.address(), reason };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(error.to_string()))?;
    let message = message(request).map_err(broken)?;
    let exchange = async {
        let failed = |error: hyper::Error| match tls::rejection(&error) {
            Some(reason) => HttpError::Certificate { address: request.url.address(), reason },
            None => broken(chain(&error)),
        };
        let asked = async { sender.send_request(message).await.map_err(failed) };
        let answer = match &to {
            BodyTo::Sink(_, limit) => within(*limit, request, asked).await?,
            BodyTo::Response | BodyTo::Nowhere => asked.await?,
        };
        let reason = reason(&answer);
        let (parts, body) = answer.into_parts();
        let body = match &mut to {
            BodyTo::Nowhere => Vec::new(),
            BodyTo::Sink(sink, limit) if parts.status.as_u16() == 200 => {
                pour(body, request, sink, *limit).await?;
                Vec::new()
            }
            _ => Limited::new(body, LARGEST_BODY).collect().await.map_err(|e| broken(e.to_string()))?.to_bytes().into(),
        };
        let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Ok(Response {
            status: parts.status.as_u16(),
            reason,
            headers: parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
            body,
        })
    };
    // The connection has to be driven while the exchange waits; dropping both ends it.
    tokio::pin!(exchange, connection);
    tokio::select! {
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}

/// The reason phrase; hyper stores it only if it is not the standard one.
fn reason(answer: &hyper::Response<Incoming>) -> String {
    match answer.extensions().get::<hyper::ext::ReasonPhrase>() {
        Some(own) => String::from_utf8_lossy(own.as_bytes()).into_owned(),
        None => answer.status().canonical_reason().unwrap_or("Unknown").to_owned(),
    }
}

/// Takes a body in, piece by piece.
async fn pour(mut body: Incoming, request: &Request, sink: &mut Sink<'_>, limit: Duration) -> Result<(), HttpError> {
    let broken = |reason: String| HttpError::Protocol { address: request.url.address(), reason };
    let mut left = LARGEST_DOWNLOAD;
    loop {
        let piece = async { body.frame().await.transpose().map_err(|error| broken(chain(&error))) };
        let Some(frame) = within(limit, request, piece).await? else { break };
        if let Ok(bytes) = frame.into_data() {
            let rest = left.checked_sub(bytes.len() as u64);
            left = rest.ok_or_else(|| broken(format!("the response is larger than {} GiB", LARGEST_DOWNLOAD >> 30)))?;
            sink.write_all(&bytes).await.map_err(|error| broken(format!("cannot store the response: {error}")))?;
        }
    }
    sink.flush().await.map_err(|error| broken(format!("cannot store the response: {error}")))
}

fn message(request: &Request) -> Result<hyper::Request<Full<Bytes>>, String> {
    let mut builder = hyper::Request::builder().method(request.method.as_str());
    // A proxy gets the whole URL, unless it only tunnels.
    builder = match request.proxy.as_ref().filter(|_| !request.url.secure) {
        Some(_) => builder.uri(request.url.to_string()),
        None => builder.uri(&request.url.path),
    };
    if let Some(login) = request.proxy.as_ref().filter(|_| !request.url.secure).and_then(|proxy| proxy.login.as_ref()) {
        builder = builder.header("proxy-authorization", follow::basic(login));
    }
    let has = |name: &str| request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !has("host") {
        builder = builder.header("host", request.url.host_header());
    }
    if !has("connection") {
        builder = builder.header("connection", "close");
    }
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::new(Bytes::from(request.body.clone()))).map_err(|error| error.to_string())
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
