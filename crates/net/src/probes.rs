//! Probes: `/healthz`, `/readyz` and `/metrics`, for kubelets and scrapers.
//!
//! Plain HTTP without names or secrets. A connection is for one request and has five seconds, and
//! only a few are served at once: a scraper that hangs takes nothing from anybody.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

const MOST_AT_ONCE: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);
/// What the encoder of the metrics writes.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A text on its way.
pub type Answer = Pin<Box<dyn Future<Output = String> + Send>>;

/// What a process tells about itself.
#[derive(Clone)]
pub struct Probes {
    /// Whether it is ready, or the one line that says why not.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Its metrics.
    pub metrics: Arc<dyn Fn() -> Answer + Send + Sync>,
}

impl Probes {
    fn routes(self) -> Router {
        let Self { ready, metrics } = self;
        let readyz = move || async move {
            match ready() {
                Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            }
        };
        let metrics = move || async move {
            let text = metrics().await;
            ([(header::CONTENT_TYPE, METRICS)], text).into_response()
        };
        Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
    }

    /// Answers until the task is aborted.
    pub fn serve(self, listener: TcpListener) -> std::io::Result<(SocketAddr, JoinHandle<()>)> {
        self.serve_beside(listener, Router::new())
    }

    /// The same, beside paths of the process's own, within the same bounds.
    pub fn serve_beside(
        self,
        listener: TcpListener,
        own: Router,
    ) -> std::io::Result<(SocketAddr, JoinHandle<()>)> {
        let addr = listener.local_addr()?;
        let routes = self.routes().merge(own);
        Ok((addr, tokio::spawn(answer(listener, routes))))
    }
}

async fn answer(listener: TcpListener, routes: Router) {
    let places = Arc::new(Semaphore::new(MOST_AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        // A failed accept is the peer's trouble, or a shortage that the next one will show again.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // Neither a broken request nor a slow one is ours to mend.
            drop(tokio::time::timeout(PATIENCE, served).await);
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn get(addr: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn readiness_says_why_not_and_the_rest_answers_all_the_same() {
        let is_ready = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_ready);
        let probes = Probes {
            ready: Arc::new(move || {
                if flag.load(Ordering::Relaxed) {
                    Ok(())
                } else {
                    Err("no inventory yet".to_owned())
                }
            }),
            metrics: Arc::new(|| Box::pin(async { "up 1\n".to_owned() })),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = Router::new().route("/config", axum::routing::get(async || "ours\n"));
        let (addr, task) = probes.serve_beside(listener, own).unwrap();
        let not_ready = get(addr, "/readyz").await;
        assert!(not_ready.starts_with("HTTP/1.1 503"), "{not_ready}");
        assert!(not_ready.ends_with("no inventory yet\n"), "{not_ready}");
        is_ready.store(true, Ordering::Relaxed);
        assert!(get(addr, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(get(addr, "/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(get(addr, "/metrics").await.ends_with("up 1\n"));
        assert!(get(addr, "/config").await.ends_with("ours\n"));
        assert!(get(addr, "/secrets").await.starts_with("HTTP/1.1 404"));
        task.abort();
    }
}
