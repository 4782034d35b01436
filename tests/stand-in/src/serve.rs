//! A small HTTP/1.1 server, plain or with TLS.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Request {
    pub method: String,
    pub path: String,
    /// The type of the body.
    pub kind: String,
    pub body: Vec<u8>,
    /// It showed a certificate that is trusted.
    pub trusted: bool,
}

pub(crate) struct Response {
    pub status: String,
    pub kind: &'static str,
    pub body: String,
}

pub(crate) type Answers = Arc<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// Begins to listen; an error if the port is taken.
pub(crate) async fn start(address: SocketAddr, tls: Option<Arc<ServerConfig>>, answers: Answers) -> Result<(), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("listen tcp {address}: {error}"))?;
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let (tls, answers) = (tls.clone(), answers.clone());
            // A connection that breaks concerns its client alone.
            tokio::spawn(async move {
                match tls {
                    None => converse(stream, false, &answers).await,
                    Some(config) => {
                        let stream = TlsAcceptor::from(config).accept(stream).await?;
                        let trusted = stream.get_ref().1.peer_certificates().is_some();
                        converse(stream, trusted, &answers).await
                    }
                }
            });
        }
    });
    Ok(())
}

/// Answers one request after the other, until the client has no more.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    trusted: bool,
    answers: &Answers,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut of_body) = (0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or_default(),
                "content-type" => of_body = value.trim().to_owned(),
                "" => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let Response { status, kind, body } = answers(Request { method, path, kind: of_body, body, trusted }).await;
        let again = if status.starts_with("429 ") { "Retry-After: 1\r\n" } else { "" };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{again}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).await?;
        stream.flush().await?;
    }
}
