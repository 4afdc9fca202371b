//! Dialling: a channel to a peer, with the certificates that are in force when it connects.
//!
//! A channel connects when it is first used and again whenever the connection was lost; each time it
//! looks at the certificates anew, so a rotation needs no restart here either. With TLS the server's
//! name is checked against the address that was dialled.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::Service;

use crate::identity::shown;
use crate::tls::Tls;
use crate::turns::{Overheard, Places, TurnChannel};

/// An address that cannot be dialled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" is not an address like host:port", shown(.0))]
pub struct DialRefused(pub String);

/// How to reach a peer.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Certificates; `None` for plaintext.
    pub tls: Option<Arc<Tls>>,
    /// How long a connection may take to stand.
    pub connect_within: Duration,
    /// Ask a silent peer whether it is still there after this long.
    pub ping_after: Duration,
    /// Bytes under way towards us on one call.
    pub stream_window: u32,
    /// Bytes under way towards us on one connection.
    pub connection_window: u32,
}

impl Dial {
    /// Towards a provider: pings no more often than providers allow, room for a full List.
    pub fn provider(tls: Option<Arc<Tls>>) -> Self {
        Self {
            ping_after: Duration::from_secs(30),
            ..Self::unknown(tls)
        }
    }

    /// Towards a server of which nothing is known: one that counts pings hangs up on a second one
    /// within five minutes.
    pub fn unknown(tls: Option<Arc<Tls>>) -> Self {
        Self {
            tls,
            connect_within: Duration::from_secs(10),
            ping_after: Duration::from_secs(5 * 60),
            stream_window: 8 << 20,
            connection_window: 16 << 20,
        }
    }

    /// Whether this can be dialled at all: `host:port`.
    pub fn check(target: &str) -> Result<(), DialRefused> {
        let uri = Uri::try_from(format!("http://{target}")).ok();
        let is_address = uri.is_some_and(|uri| uri.host().is_some() && uri.port_u16().is_some());
        if is_address {
            Ok(())
        } else {
            Err(DialRefused(target.to_owned()))
        }
    }

    /// A channel to `host:port`. Connects when it is first used.
    pub fn channel(&self, target: &str) -> Result<Channel, DialRefused> {
        self.connecting(target, None)
    }

    /// The same, whose calls wait for a stream before anything of them is written.
    pub fn channel_with_turns(&self, target: &str) -> Result<TurnChannel, DialRefused> {
        let places = Places::new();
        let channel = self.connecting(target, Some(Arc::clone(&places)))?;
        Ok(TurnChannel {
            channel,
            places: Some(places),
        })
    }

    fn connecting(
        &self,
        target: &str,
        places: Option<Arc<Places>>,
    ) -> Result<Channel, DialRefused> {
        let refused = || DialRefused(target.to_owned());
        let uri = |scheme: &str| Uri::try_from(format!("{scheme}://{target}")).ok();
        let plain = uri("http").ok_or_else(refused)?;
        let (host, port) = plain.host().zip(plain.port_u16()).ok_or_else(refused)?;
        // An IPv6 address stands in brackets in an address, and without them everywhere else.
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from(plain)
            .origin(uri(scheme).ok_or_else(refused)?)
            .connect_timeout(self.connect_within)
            .http2_keep_alive_interval(self.ping_after)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(self.stream_window)
            .initial_connection_window_size(self.connection_window);
        let tls = match &self.tls {
            None => None,
            Some(tls) => {
                let name = ServerName::try_from(host.clone()).map_err(|_| refused())?;
                Some((Arc::clone(tls), name))
            }
        };
        let connector = Connector {
            host,
            port,
            tls,
            places,
        };
        Ok(endpoint.connect_with_connector_lazy(connector))
    }
}

#[derive(Clone)]
struct Connector {
    host: String,
    port: u16,
    tls: Option<(Arc<Tls>, ServerName<'static>)>,
    /// Who is told how many calls the peer takes at once.
    places: Option<Arc<Places>>,
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

impl Connector {
    async fn connect(self) -> io::Result<TokioIo<Box<dyn Wire>>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        drop(stream.set_nodelay(true));
        let stream: Box<dyn Wire> = match self.tls {
            None => Box::new(stream),
            Some((tls, name)) => {
                let connector = TlsConnector::from(tls.client());
                Box::new(connector.connect(name, stream).await?)
            }
        };
        let stream: Box<dyn Wire> = match self.places {
            None => stream,
            Some(places) => Box::new(Overheard::new(stream, places)),
        };
        Ok(TokioIo::new(stream))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Wire>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}
