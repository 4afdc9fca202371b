//! Connecting: from a kubeconfig, or from within a cluster, to somebody who makes calls.
//!
//! ```text
//! --kubeconfig FILE ─▶ that file      otherwise $KUBECONFIG, ~/.kube/config, the Pod's own account
//! ```
//!
//! HTTP/1.1 over TLS 1.3, connections kept for the next call. A watch holds one for as long as it lasts.

use crate::credentials::Credentials;
use crate::kubeconfig::{Access, files};
use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::Service;

/// A connection stands within this, or is none.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectRefused {
    /// The file cannot be used.
    #[error("kubeconfig {path}: {why}")]
    File {
        /// Which file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// No file was named, and nothing else says where the cluster is.
    #[error(
        "no cluster to talk to: there is no kubeconfig, and {0}; name a file with --kubeconfig"
    )]
    Nowhere(String),
    /// The address of the server cannot be used.
    #[error("\"{0}\" is not an address like https://host:port")]
    Server(String),
}

/// A cluster that can be talked to.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client<Connector, Full<Bytes>>,
    pub(crate) credentials: Credentials,
    server: String,
    namespace: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cluster").field(&self.server).finish()
    }
}

impl Cluster {
    /// Connects when it is first used. An empty path is none.
    pub fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, ConnectRefused> {
        let files = files(kubeconfig);
        let access = if files.is_empty() {
            Access::of_pod().map_err(ConnectRefused::Nowhere)?
        } else {
            Access::read(&files, context).map_err(|(path, why)| ConnectRefused::File {
                path: path.display().to_string(),
                why,
            })?
        };
        Self::with(access)
    }

    fn with(access: Access) -> Result<Self, ConnectRefused> {
        let server = access.server.trim_end_matches('/').to_owned();
        let refused = || ConnectRefused::Server(server.clone());
        let uri: Uri = server.parse().map_err(|_| refused())?;
        let host = uri.host().ok_or_else(refused)?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| refused())?;
        let port = uri
            .port_u16()
            .unwrap_or(if access.tls.is_some() { 443 } else { 80 });
        let connector = Connector {
            host,
            port,
            tls: access.tls.map(|tls| (tls, name)),
        };
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            credentials: access.credentials,
            namespace: access.namespace,
            server,
        })
    }

    /// The namespace this process is in, or that its kubeconfig names.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }
}

#[derive(Clone)]
pub(crate) struct Connector {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// One connection.
pub(crate) struct Line(TokioIo<Box<dyn Wire>>);

impl Connector {
    async fn connect(self) -> io::Result<Line> {
        let connecting = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            drop(stream.set_nodelay(true));
            let stream: Box<dyn Wire> = match self.tls {
                None => Box::new(stream),
                Some((config, name)) => {
                    Box::new(TlsConnector::from(config).connect(name, stream).await?)
                }
            };
            Ok(Line(TokioIo::new(stream)))
        };
        let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
        connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Line>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
