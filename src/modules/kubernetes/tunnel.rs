//! Connections from the host to an API server, in the form that the HTTP client of the `kube` crate needs.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;

use crate::connection::Stream;
use crate::http;
use crate::remote::Probe;

/// Opens a connection to whatever address a request is for.
#[derive(Clone)]
pub(super) struct TunnelConnector(pub Probe);

impl tower::Service<Uri> for TunnelConnector {
    type Response = Tunnel;
    type Error = http::HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Tunnel, http::HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), http::HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let probe = self.0.clone();
        Box::pin(async move {
            let usual = if address.scheme_str() == Some("http") { 80 } else { 443 };
            let host = address.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let stream = http::connect_to_api(&probe, host, address.port_u16().unwrap_or(usual)).await?;
            Ok(Tunnel(TokioIo::new(stream)))
        })
    }
}

/// An open connection.
pub(super) struct Tunnel(TokioIo<Box<dyn Stream>>);

impl Connection for Tunnel {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Tunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
