//! Probes: `/healthz`, `/readyz` and `/metrics`, for kubelets and scrapers.
//!
//! Plain HTTP without names or secrets. A connection is for one request and has five seconds.
//!
//! ```text
//! accept ─▶ headers, 2 s ──┬─ /healthz, /readyz ─────────────▶ answered at once
//!     ▲ the oldest goes    └─ the rest ─▶ a place of sixteen ─▶ answered
//! ```
//!
//! Whoever is slow to ask costs a socket, and gives it up when there are many; whoever is slow to read
//! costs one of a few places, which probes do not need. So nobody can make a live process look dead.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinHandle};
use tower::ServiceExt;

/// Answers at once, probes not counted: the text of the metrics can be large.
const MOST_AT_ONCE: usize = 16;
/// Connections at once, those that have not asked yet included.
const MOST_CONNECTIONS: usize = 512;
const HEADERS_WITHIN: Duration = Duration::from_secs(2);
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
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        // A failed accept is the peer's trouble, or a shortage that the next one will show again.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if MOST_CONNECTIONS <= open.len() {
            open.retain(|connection| !connection.is_finished());
        }
        if MOST_CONNECTIONS <= open.len()
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let serving = tokio::spawn(serve(stream, routes.clone(), Arc::clone(&places)));
        open.push_back(serving.abort_handle());
    }
}

/// One request, and its answer written.
async fn serve(stream: TcpStream, routes: Router, places: Arc<Semaphore>) {
    // Held until all is written, and not only until the answer is made.
    let held = Arc::new(OnceLock::new());
    let place = Arc::clone(&held);
    let service = service_fn(move |request: Request<Incoming>| {
        let (routes, places, place) = (routes.clone(), Arc::clone(&places), Arc::clone(&place));
        async move {
            if !["/healthz", "/readyz"].contains(&request.uri().path()) {
                // An error means that nobody gives places any more, which never happens.
                drop(place.set(places.acquire_owned().await));
            }
            routes.oneshot(request).await
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Neither a broken request nor a slow one is ours to mend.
    drop(tokio::time::timeout(PATIENCE, served).await);
    drop(held);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

    /// The metrics of a process that is busy, which take as long as they are let.
    fn busy() -> Probes {
        Probes {
            ready: Arc::new(|| Ok(())),
            metrics: Arc::new(|| Box::pin(std::future::pending())),
        }
    }

    async fn is_live(addr: SocketAddr) {
        let asked = get(addr, "/healthz");
        let answer = tokio::time::timeout(Duration::from_secs(1), asked).await;
        let answer = answer.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// wire 8.4: neither half a request nor an answer that nobody gets makes a live process look dead.
    #[tokio::test]
    async fn probes_answer_while_others_are_slow_to_ask_and_to_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, task) = busy().serve(listener).unwrap();
        let mut slow = Vec::new();
        for number in 0..MOST_CONNECTIONS + 50 {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            let said = [
                "GET /healthz HT",
                "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n",
            ];
            stream.write_all(said[number % 2].as_bytes()).await.unwrap();
            slow.push(stream);
            if number == 200 {
                is_live(addr).await;
            }
        }
        is_live(addr).await;
        task.abort();
    }
}
