//! A gRPC server: its limits, its start, and an end that is bounded.
//!
//! ```text
//! serve ─▶ answering ── stop ──▶ no new calls ─▶ calls under way finish ──┬─ in time ─▶ ended
//!                                                                        └─ not ─────▶ cut off
//! ```

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::Router;

use crate::listen;
use crate::tls::Tls;

/// Bytes a server or client of ours takes in one message; most libraries stop at 4 MiB, which a
/// large roll-up or a full List exceeds.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// Connections whose handshake is done and that wait to be served.
const WAITING: usize = 64;
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// What one connection may use, and how a dead one is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ask a silent peer whether it is still there after this long.
    pub ping_after: Duration,
    /// How long it may take to say so.
    pub ping_timeout: Duration,
    /// Calls at once on one connection.
    pub most_streams: u32,
    /// Bytes under way towards us on one call.
    pub stream_window: u32,
    /// Bytes under way towards us on one connection.
    pub connection_window: u32,
}

impl Limits {
    /// Long sessions: a dead operator is to be noticed within a minute.
    pub const SESSIONS: Self = Self {
        ping_after: Duration::from_secs(30),
        ping_timeout: Duration::from_secs(20),
        // What a peer sends and nobody takes lies in memory here, and what it asks for and does not take, too.
        most_streams: 128,
        stream_window: 256 << 10,
        connection_window: 1 << 20,
    };

    /// A provider, as all providers do it: its callers keep nothing open that could go stale.
    pub const PROVIDER: Self = Self {
        ping_after: Duration::from_secs(2 * 60 * 60),
        most_streams: 1024,
        stream_window: 1 << 20,
        connection_window: 4 << 20,
        ..Self::SESSIONS
    };

    /// A server with these limits, to add services to.
    pub fn server(&self) -> Server {
        Server::builder()
            .http2_keepalive_interval(Some(self.ping_after))
            .http2_keepalive_timeout(Some(self.ping_timeout))
            .initial_stream_window_size(self.stream_window)
            .initial_connection_window_size(self.connection_window)
            .max_concurrent_streams(self.most_streams)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct Serving {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    /// Watched beside the server: one that gets no new callers waits for those it has, maybe for ever.
    accepting: JoinHandle<()>,
}

/// Answers on this listener, each request carrying its [`crate::Caller`]. With `tls`, callers must
/// show a certificate; without, anyone may call.
pub fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
) -> std::io::Result<Serving> {
    let addr = listener.local_addr()?;
    let (ready, connections) = mpsc::channel(WAITING);
    let accepting = tokio::spawn(listen::accept(listener, tls, ready));
    let (stop, mut stopped) = watch::channel(false);
    let connections = ReceiverStream::new(connections);
    let server = router.serve_with_incoming_shutdown(connections, async move {
        // An error means that the handle is gone, and nobody could stop the server any more.
        drop(stopped.wait_for(|stopped| *stopped).await);
    });
    let server = tokio::spawn(server);
    Ok(Serving {
        addr,
        stop,
        server,
        accepting,
    })
}

impl Serving {
    /// Where it answers.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends if the server ends without having been stopped, with the reason. To be heard once.
    pub async fn ended(&mut self) -> String {
        std::future::poll_fn(|context| {
            if let Poll::Ready(ended) = Pin::new(&mut self.server).poll(context) {
                let problem = ended.map(|served| served.err().map(|why| crate::chain(&why)));
                return Poll::Ready(match problem {
                    Ok(None) => "it answers no more".to_owned(),
                    Ok(Some(problem)) => problem,
                    Err(gone) => gone.to_string(),
                });
            }
            let accepting = Pin::new(&mut self.accepting).poll(context);
            accepting.map(|ended| match ended {
                Ok(()) => "it takes no more callers".to_owned(),
                Err(gone) => format!("it takes no more callers: {gone}"),
            })
        })
        .await
    }

    /// Takes no more calls, and waits this long for those under way. True if all of them finished.
    pub async fn stop(self, patience: Duration) -> bool {
        self.stop.send_replace(true);
        let mut server = self.server;
        let finished = tokio::time::timeout(patience, &mut server).await.is_ok();
        if !finished {
            server.abort();
            tracing::warn!(?patience, "some callers did not hang up in time");
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_health::pb::health_client::HealthClient;

    /// A caller holds on to the server, which therefore would never say by itself that it is deaf.
    #[tokio::test]
    async fn a_server_that_takes_no_more_callers_says_so() {
        let (_reporter, health) = tonic_health::server::health_reporter();
        let listener = listen::listen("127.0.0.1:0").await.unwrap();
        let router = Limits::SESSIONS.server().add_service(health);
        let mut serving = serve(listener, None, router).unwrap();
        let address = serving.addr().to_string();
        let channel = crate::Dial::unknown(None).channel(&address).unwrap();
        let mut client = HealthClient::new(channel);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        client.check(asked.clone()).await.unwrap();
        let watching = client.watch(asked).await.unwrap();
        {
            let mut ended = std::pin::pin!(serving.ended());
            let early = tokio::time::timeout(Duration::from_millis(20), &mut ended).await;
            assert!(early.is_err(), "nothing has ended: {early:?}");
        }
        serving.accepting.abort();
        let within = Duration::from_secs(10);
        let said = tokio::time::timeout(within, serving.ended()).await.unwrap();
        assert!(said.starts_with("it takes no more callers"), "{said}");
        drop(watching);
    }
}
