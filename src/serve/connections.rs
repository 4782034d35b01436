//! Connections: at most so many, each with so much time for TLS, for a request's head and for a client that does not read, so that idle
//! ones keep nobody out.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::attempts::network;
use super::call::LocalAddress;
use super::places::{Places, Visitor};
use super::stalls::Unstalled;
use super::tls::ServerTls;
use crate::value::mutex::Mutex;

/// How many connections there may be. Each is an open file, of which a process may usually have 1024.
const MOST: usize = 512;

/// How long the head of a request may take, also that of the next one on a connection.
const HEAD: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(10) };

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = HEAD;

/// How many connections there may be from one other machine.
const MOST_OF_MACHINE: usize = 128;

/// For a year, as browsers want it. They ignore it for addresses without a name.
const STRICT_TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// How many connections each other machine has.
#[derive(Clone, Default)]
struct Machines(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that counts, until it is dropped.
struct Counted {
    machines: Machines,
    machine: IpAddr,
}

impl Machines {
    /// None: it has as many as it may.
    fn count(&self, peer: SocketAddr) -> Option<Counted> {
        let machine = network(peer.ip());
        let mut counts = self.0.lock();
        let count = counts.entry(machine).or_default();
        // A person who forwards the port with SSH comes from this machine, as all others who do.
        if *count >= MOST_OF_MACHINE && !machine.is_loopback() {
            return None;
        }
        *count += 1;
        Some(Counted { machines: self.clone(), machine })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.machines.0.lock();
        if let Some(count) = counts.get_mut(&self.machine) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.machine);
            }
        }
    }
}

/// Serves connections, for ever.
pub(super) async fn serve_connections(listener: TcpListener, router: Router, tls: Option<Arc<ServerTls>>) {
    let mut places = Places::new(MOST);
    let machines = Machines::default();
    loop {
        let (stream, peer): (_, SocketAddr) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(counted) = machines.count(peer) else { continue };
        let Ok(local) = stream.local_addr() else { continue };
        let place = places.take().await;
        let (router, config) = (router.clone(), tls.as_ref().map(|tls| tls.tls_config()));
        tokio::spawn(async move {
            let from = Origin { peer, local, visitor: place.visitor.clone() };
            tokio::select! {
                () = serve_connection(stream, router, config, from) => {}
                () = place.visitor.until_asked() => tracing::debug!("a connection made room for another one"),
            }
            drop((place, counted));
        });
    }
}

/// Where requests of a connection come from.
struct Origin {
    peer: SocketAddr,
    local: SocketAddr,
    visitor: Arc<Visitor>,
}

async fn serve_connection(stream: TcpStream, router: Router, config: Option<Arc<ServerConfig>>, from: Origin) {
    match config {
        None => {
            let stream = Unstalled::new(stream, from.visitor.clone());
            serve_requests(TokioIo::new(stream), router, from, false).await;
        }
        Some(config) => {
            if let Some(stream) = handshake(stream, config, &from.visitor).await {
                serve_requests(TokioIo::new(stream), router, from, true).await;
            }
        }
    }
}

/// None: it was not TLS, or took too long.
async fn handshake(
    mut stream: TcpStream,
    config: Arc<ServerConfig>,
    visitor: &Arc<Visitor>,
) -> Option<TlsStream<Unstalled<TcpStream>>> {
    let shaken = tokio::time::timeout(HANDSHAKE, async {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
            let text = "this server speaks HTTPS: use https://\n";
            let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close";
            stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).await?;
            stream.shutdown().await?;
            // What was sent is read, as a connection that is closed with unread bytes loses the answer.
            let mut rest = [0; 4096];
            while stream.read(&mut rest).await? > 0 {}
            return Ok(None);
        }
        TlsAcceptor::from(config).accept(Unstalled::new(stream, visitor.clone())).await.map(Some)
    });
    match shaken.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!("a TLS handshake failed: {error}");
            None
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            None
        }
    }
}

async fn serve_requests<S>(stream: TokioIo<S>, router: Router, from: Origin, secure: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(from.peer));
        request.extensions_mut().insert(LocalAddress(from.local));
        request.extensions_mut().insert(from.visitor.clone());
        // Browsers would take it for every port of this machine.
        let is_local =
            request.headers().get(header::HOST).is_some_and(|host| host.as_bytes().starts_with(b"localhost"));
        let answered = router.clone().oneshot(request);
        let visitor = from.visitor.clone();
        async move {
            let mut response = answered.await?;
            let kind = response.headers().get(header::CONTENT_TYPE);
            visitor.set_stream(kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")));
            if secure && !is_local {
                response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = server.serve_connection(stream, answer).await {
        tracing::debug!("a connection ended early: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::stalls::STALL;
    use super::*;

    #[test]
    fn one_other_machine_does_not_get_all_connections() {
        let machines = Machines::default();
        let peer = |last: u8, port: u16| SocketAddr::from(([192, 0, 2, last], port));
        let mut open: Vec<_> = (0..128).map(|port| machines.count(peer(1, port)).unwrap()).collect();
        assert!(machines.count(peer(1, 999)).is_none());
        assert!(machines.count(peer(2, 1)).is_some(), "another machine");
        open.pop();
        assert!(machines.count(peer(1, 999)).is_some(), "one has ended");
        let local: Vec<_> = (0..MOST).map(|_| machines.count(SocketAddr::from(([127, 0, 0, 1], 1)))).collect();
        assert!(local.iter().all(Option::is_some));
        drop((open, local));
        assert!(machines.0.lock().is_empty());
    }

    #[tokio::test]
    async fn connections_without_a_request_make_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", axum::routing::get(async || "here"));
        let server = tokio::spawn(serve_connections(listener, router, None));
        let mut idle = Vec::new();
        for _ in 0..MOST {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HT").await.unwrap();
            idle.push(stream);
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        late.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        late.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        server.abort();
    }

    /// A client that takes as little as the kernel allows.
    async fn connect(address: SocketAddr, sent: &str) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_left() {
        const SIZE: usize = 16 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", axum::routing::get(async || vec![b'x'; SIZE]))
            .route("/events", axum::routing::get(async || ([("content-type", "text/event-stream")], vec![b'x'; SIZE])));
        let server = tokio::spawn(serve_connections(listener, router, None));
        let received = async |path: &str| {
            let mut stream = connect(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(40)).await;
            tokio::time::sleep(3 * STALL).await;
            let mut bytes = vec![0; SIZE];
            // A connection that was left has an end, or an error.
            let whole = stream.read_exact(&mut bytes).await;
            whole.is_ok()
        };
        assert!(!received("/").await, "the answer came after the client had not read for long");
        assert!(received("/events").await, "a stream of events may be paused");
        server.abort();
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_login_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let go: Arc<tokio::sync::Notify> = Arc::default();
        let wait = go.clone();
        let router = Router::new()
            .route("/", axum::routing::get(async || "here"))
            .route("/never", axum::routing::get(async || std::future::pending::<()>().await))
            .route(
                "/known",
                axum::routing::get(async move |request: axum::extract::Request| {
                    request.extensions().get::<Arc<Visitor>>().unwrap().set_known(true);
                    wait.notified().await;
                    "known"
                }),
            );
        let server = tokio::spawn(serve_connections(listener, router, None));
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut known = connect(address, &request("/known")).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut strangers = Vec::new();
        for _ in 1..MOST {
            strangers.push(connect(address, &request("/never")).await);
        }
        for _ in 0..3 {
            let mut answer = String::new();
            let mut late = connect(address, &request("/")).await;
            let read = tokio::time::timeout(20 * HEAD, late.read_to_string(&mut answer)).await;
            read.expect("there is no room").unwrap();
            assert!(answer.ends_with("here"), "{answer}");
        }
        go.notify_one();
        let mut answer = String::new();
        known.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("known"), "{answer}");
        let mut byte = [0];
        let newest = strangers.last_mut().unwrap();
        let closed = tokio::time::timeout(Duration::from_millis(50), newest.read(&mut byte)).await;
        assert!(closed.is_err(), "the newest had to leave");
        let oldest = tokio::time::timeout(Duration::from_secs(5), strangers[0].read(&mut byte)).await.unwrap();
        assert!(matches!(oldest, Ok(0) | Err(_)));
        server.abort();
    }
}
