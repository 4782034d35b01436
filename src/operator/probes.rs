//! `/healthz`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::metrics::Metrics;

/// If the API has not answered for so many seconds, the operator is not healthy.
const SILENCE: i64 = 600;

/// What the probes look at.
#[derive(Clone, Default)]
pub(super) struct Health {
    /// In seconds since 1970.
    pub api_answered: Arc<AtomicI64>,
    /// It works, or waits for its turn.
    pub ready: Arc<AtomicBool>,
}

impl Health {
    fn is_healthy(&self) -> bool {
        super::now() - self.api_answered.load(Ordering::Relaxed) < SILENCE
    }
}

/// Opens the address.
///
/// # Errors
/// It is taken.
pub(super) async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Answers probes, for ever.
pub(super) async fn serve(listener: TcpListener, health: Health, metrics: Metrics) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let (health, metrics) = (health.clone(), metrics.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let answer = answered(&request, &health, &metrics);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut server = http1::Builder::new();
            let served = server.timer(hyper_util::rt::TokioTimer::new()).serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = served.await {
                tracing::debug!("a probe ended early: {error}");
            }
        });
    }
}

fn answered(request: &Request<Incoming>, health: &Health, metrics: &Metrics) -> Response<Full<Bytes>> {
    let (status, text) = match request.uri().path() {
        "/healthz" if health.is_healthy() => (StatusCode::OK, "ok\n".to_owned()),
        "/healthz" => (StatusCode::SERVICE_UNAVAILABLE, "the API has not answered for ten minutes\n".to_owned()),
        "/readyz" if health.ready.load(Ordering::Relaxed) => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
        "/metrics" => (StatusCode::OK, metrics.text()),
        _ => (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
