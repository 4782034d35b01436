//! Connections: at most so many, each with so much time for TLS and for a request's head, so that idle ones keep nobody out for long.

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
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::attempts::network;
use super::call::LocalAddress;
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
    let free = Arc::new(Semaphore::new(MOST));
    let machines = Machines::default();
    loop {
        let Ok(place) = free.clone().acquire_owned().await else { return };
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
        let (router, config) = (router.clone(), tls.as_ref().map(|tls| tls.config()));
        tokio::spawn(async move {
            match config {
                None => serve_requests(TokioIo::new(stream), router, (peer, local), false).await,
                Some(config) => {
                    if let Some(stream) = handshake(stream, config).await {
                        serve_requests(TokioIo::new(stream), router, (peer, local), true).await;
                    }
                }
            }
            drop((place, counted));
        });
    }
}

/// None: it was not TLS, or took too long.
async fn handshake(mut stream: TcpStream, config: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
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
        TlsAcceptor::from(config).accept(stream).await.map(Some)
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

async fn serve_requests<S>(stream: TokioIo<S>, router: Router, (peer, local): (SocketAddr, SocketAddr), secure: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(LocalAddress(local));
        // Browsers would take it for every port of this machine.
        let is_local =
            request.headers().get(header::HOST).is_some_and(|host| host.as_bytes().starts_with(b"localhost"));
        let answered = router.clone().oneshot(request);
        async move {
            let mut response = answered.await?;
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
}
