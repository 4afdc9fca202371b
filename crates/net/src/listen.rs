//! Listening: from an address to connections whose callers are known.
//!
//! ```text
//! accept ─▶ a place ─▶ handshake, a task each, 10 s ──┬─ done, and its caller has few ─▶ Connection ─▶ opening, 10 s
//!                                                     └─ not ───▶ closed, and said
//! ```
//!
//! A caller that is slow to shake hands delays nobody else: there are so many who do, and the one that has been at
//! it for longest gives way to the next. One that was identified, or could not be, holds a bounded number of
//! connections, and all callers together as many as leave the process files for everything else: beyond that
//! they wait in the backlog of the system. One that says nothing, or
//! stops in the middle of what opens a connection, is closed; one that stops later does not answer pings.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::caller::Caller;
use crate::identity::{Identity, IdentityRefused};
use crate::log_budget::LogBudget;
use crate::tls::Tls;

/// Connections at once, those that still shake hands included.
const MOST_CONNECTIONS: usize = 16_384;
/// Of one identity: an operator has one, and a person's commands have one each while they run.
const MOST_OF_ONE: usize = 256;
/// Files that are left for probes, the store, the audit log and the provider.
const OTHER_FILES: usize = 256;
/// Handshakes at once. Nobody has to be known to begin one; one that is meant takes milliseconds.
const MOST_HANDSHAKES: usize = 512;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long a caller may take to open HTTP/2, after its handshake if there is one.
const OPENED_WITHIN: Duration = Duration::from_secs(10);
/// What opens HTTP/2: its preface, and the head of a SETTINGS frame.
const OPENING_BYTES: usize = 24 + 9;
/// Connections the system holds until they are accepted.
const BACKLOG: i32 = 1024;
/// How long to let a shortage of file handles pass.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}")]
pub struct ListenRefused {
    /// The address that was asked for.
    pub addr: String,
    /// What the system says.
    pub source: io::Error,
}

impl ListenRefused {
    /// Whether no host could listen on that: it is neither `host:port` nor `:port`.
    pub fn is_no_address(&self) -> bool {
        let port = self.addr.rsplit_once(':').map(|(_, port)| port);
        port.is_none_or(|port| port.parse::<u16>().is_err())
    }
}

/// Listens; `:9000` is this host only, `[::]:9000` every address of it, IPv6 and IPv4.
pub async fn listen(addr: &str) -> Result<TcpListener, ListenRefused> {
    let port_after = |host: &str| addr.strip_prefix(host).and_then(|port| port.parse().ok());
    let listener = match (port_after(":"), port_after("[::]:")) {
        (Some(port), _) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await,
        (None, Some(port)) => everywhere(port),
        (None, None) => TcpListener::bind(addr).await,
    };
    listener.map_err(|source| ListenRefused {
        addr: addr.to_owned(),
        source,
    })
}

/// One socket for both families; on a host without IPv6, one for IPv4.
fn everywhere(port: u16) -> io::Result<TcpListener> {
    match bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
        Err(why) if why.kind() != io::ErrorKind::AddrInUse => {
            bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        }
        listener => listener,
    }
}

fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    if addr.is_ipv6() {
        socket.set_only_v6(false)?; // whatever the system's default is
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// How many connections there may be, with as many files as the system lets this process have.
fn most_connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // A system that does not allow it leaves us with what there is.
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    let left = files.saturating_sub(OTHER_FILES).max(files / 2);
    left.min(MOST_CONNECTIONS)
}

/// How many connections each identity has.
#[derive(Clone, Debug, Default)]
struct Callers(Arc<Mutex<BTreeMap<String, usize>>>);

impl Callers {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another connection of a caller; `None` if it has too many. Those whose certificates say nothing count as
    /// one caller; without certificates all share what there is.
    fn enter(&self, caller: &Caller) -> Option<Entered> {
        let certified = caller.certified();
        let identity =
            certified.map(|identity| identity.map_or_else(|_| String::new(), ToString::to_string));
        if let Some(identity) = &identity {
            let mut counts = self.counts();
            let count = counts.entry(identity.clone()).or_default();
            if *count == MOST_OF_ONE {
                return None;
            }
            *count += 1;
        }
        Some(Entered {
            callers: self.clone(),
            identity,
        })
    }
}

/// One connection of a caller, for as long as there is one.
#[derive(Debug)]
struct Entered {
    callers: Callers,
    identity: Option<String>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(identity) = &self.identity else {
            return;
        };
        let mut counts = self.callers.counts();
        if let Some(count) = counts.get_mut(identity) {
            *count -= 1;
            if *count == 0 {
                counts.remove(identity);
            }
        }
    }
}

/// Handshakes under way, oldest first: each ends at once when its half here is dropped.
#[derive(Debug)]
struct Handshakes {
    most: usize,
    under_way: VecDeque<oneshot::Sender<()>>,
}

impl Handshakes {
    fn new(most: usize) -> Self {
        let under_way = VecDeque::new();
        Self { most, under_way }
    }

    /// One more; resolves when it is to give way to newer ones.
    fn begin(&mut self) -> oneshot::Receiver<()> {
        if self.most <= self.under_way.len() {
            self.under_way.retain(|handshake| !handshake.is_closed());
        }
        if self.most <= self.under_way.len() {
            self.under_way.pop_front();
        }
        let (handshake, gives_way) = oneshot::channel();
        self.under_way.push_back(handshake);
        gives_way
    }
}

/// Connections as they come; ends when nobody takes them any more.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    ready: mpsc::Sender<io::Result<Connection>>,
) {
    let places = Arc::new(Semaphore::new(most_connections()));
    let callers = Callers::default();
    let most = MOST_HANDSHAKES.min(places.available_permits() / 2);
    let mut handshakes = Handshakes::new(most);
    let said = Arc::new(LogBudget::default());
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let next = tokio::select! {
            next = next => next,
            () = ready.closed() => return,
        };
        let Some((place, accepted)) = next else {
            return;
        };
        let Ok((stream, addr)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // An IPv4 caller is named as one, also on a socket for both families.
        let addr = SocketAddr::new(addr.ip().to_canonical(), addr.port());
        // Without it every small answer waits for an acknowledgement the peer delays by 40 ms.
        drop(stream.set_nodelay(true));
        let Some(tls) = tls.clone() else {
            let caller = Caller::plaintext(Some(addr));
            let held = (place, callers.enter(&caller));
            let connection = Connection::new(Io::Plain(stream), caller, held);
            if ready.send(Ok(connection)).await.is_err() {
                return;
            }
            continue;
        };
        let (ready, callers, said) = (ready.clone(), callers.clone(), Arc::clone(&said));
        let gives_way = handshakes.begin();
        tokio::spawn(async move {
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE_WITHIN, shake(stream, addr, &tls)) => shaken,
                _ = gives_way => {
                    tracing::debug!(%addr, "a TLS handshake gave way to newer ones");
                    return;
                }
            };
            match shaken {
                Ok(Ok((io, caller))) => {
                    let Some(entered) = callers.enter(&caller) else {
                        if let Some(left_out) = said.take() {
                            let identity = caller.identity().map(ToString::to_string);
                            let why = "a caller has too many connections, and the newest is closed";
                            tracing::warn!(%addr, identity, most = MOST_OF_ONE, left_out, "{why}");
                        }
                        return;
                    };
                    let connection = Connection::new(io, caller, (place, Some(entered)));
                    // Nobody takes connections any more: this one is closed like all the others.
                    drop(ready.send(Ok(connection)).await);
                }
                Ok(Err(error)) => {
                    if let Some(left_out) = said.take() {
                        tracing::info!(%addr, %error, left_out, "a TLS handshake was refused");
                    }
                }
                Err(_) => {
                    if let Some(left_out) = said.take() {
                        tracing::info!(%addr, left_out, "a TLS handshake took too long");
                    }
                }
            }
        });
    }
}

async fn shake(stream: TcpStream, addr: SocketAddr, tls: &Tls) -> io::Result<(Io, Caller)> {
    let stream = TlsAcceptor::from(tls.server()).accept(stream).await?;
    let leaf = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let identity = leaf.map_or(Err(IdentityRefused::None), |leaf| {
        Identity::of_certificate(leaf)
    });
    let caller = Caller::verified(Some(addr), identity);
    Ok((Io::Tls(Box::new(stream)), caller))
}

/// A connection and who is at its other end.
pub(crate) struct Connection {
    io: Io,
    caller: Caller,
    opening: Option<Opening>,
    _held: Held,
}

/// What a connection takes up.
type Held = (OwnedSemaphorePermit, Option<Entered>);

/// A connection that is not open yet: what is missing, and until when.
struct Opening {
    missing: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Connection {
    fn new(io: Io, caller: Caller, held: Held) -> Self {
        let opening = Opening {
            missing: OPENING_BYTES,
            deadline: Box::pin(tokio::time::sleep(OPENED_WITHIN)),
        };
        Self {
            io,
            caller,
            opening: Some(opening),
            _held: held,
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Io::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = self.read(cx, into);
        let Some(opening) = &mut self.opening else {
            return read;
        };
        let more = into.filled().len() - before;
        opening.missing = opening.missing.saturating_sub(more);
        if opening.missing == 0 {
            self.opening = None;
        } else if opening.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Io::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Io::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Io::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// wire 8.4: a port alone is this host.
    #[tokio::test]
    async fn a_port_alone_is_reached_from_this_host_only() {
        let listener = listen(":0").await.unwrap();
        let bound = listener.local_addr().unwrap();
        assert!(bound.ip().is_loopback(), "{bound}");
        assert!(
            listen(&format!(":{}", bound.port())).await.is_err(),
            "taken"
        );
    }

    /// Every address: callers of either family get through, and are named as they are.
    #[tokio::test]
    async fn every_address_is_reached_over_both_families() {
        let listener = listen("[::]:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listen(&format!("[::]:{port}")).await.is_err(), "taken");
        let (ready, mut connections) = mpsc::channel(4);
        let accepting = tokio::spawn(accept(listener, None, ready));
        let mut callers = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        // Where the host has no IPv6 there is nothing to call from.
        if bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))).is_ok() {
            callers.push(Ipv6Addr::LOCALHOST.into());
        }
        for from in callers {
            let _stream = TcpStream::connect((from, port)).await.unwrap();
            let caller = connections.recv().await.unwrap().unwrap().connect_info();
            assert_eq!(caller.addr().map(|addr| addr.ip()), Some(from));
        }
        accepting.abort();
    }

    /// SE-9: an identity has so many connections, and those of others are none of its business.
    #[test]
    fn an_identity_has_a_bounded_number_of_connections() {
        let of = |name: &str| Caller::verified(None, Ok(Identity::Cluster(name.to_owned())));
        let callers = Callers::default();
        let mut held: Vec<Entered> = Vec::new();
        while let Some(entered) = callers.enter(&of("a")) {
            held.push(entered);
        }
        assert_eq!(held.len(), MOST_OF_ONE);
        assert!(callers.enter(&of("b")).is_some());
        held.pop();
        assert!(callers.enter(&of("a")).is_some());
        let nobody = Caller::plaintext(None);
        let many: Vec<_> = (0..=MOST_OF_ONE).map(|_| callers.enter(&nobody)).collect();
        assert!(
            many.iter().all(Option::is_some),
            "without certificates nobody is counted"
        );
        let nameless = || Caller::verified(None, Err(IdentityRefused::None));
        let few: Vec<_> = (0..=MOST_OF_ONE)
            .map_while(|_| callers.enter(&nameless()))
            .collect();
        assert_eq!(
            few.len(),
            MOST_OF_ONE,
            "whose certificates say nothing are one"
        );
        drop((held, many, few));
        assert!(callers.counts().is_empty());
    }

    /// SE-9: strangers who connect and say nothing keep nobody out whose handshake is meant. With room for all of
    /// them they would hold every place for ten seconds.
    #[test]
    fn a_handshake_that_is_slow_gives_way() {
        let gives_way = |most| {
            let mut handshakes = Handshakes::new(most);
            let mut strangers: Vec<_> = (0..1000).map(|_| handshakes.begin()).collect();
            let meant = handshakes.begin();
            let left = strangers.iter_mut();
            let left = left.filter_map(|stranger| match stranger.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => Some(()),
                Ok(()) | Err(oneshot::error::TryRecvError::Closed) => None,
            });
            (left.count(), meant)
        };
        assert_eq!(gives_way(MOST_HANDSHAKES).0, MOST_HANDSHAKES - 1);
        assert_eq!(gives_way(usize::MAX).0, 1000);
        // Those that are over make room, and nobody has to give way.
        let mut handshakes = Handshakes::new(2);
        let mut first = handshakes.begin();
        drop(handshakes.begin());
        let _third = handshakes.begin();
        assert!(
            first
                .try_recv()
                .is_err_and(|why| why == oneshot::error::TryRecvError::Empty)
        );
    }

    /// wire 8.3: a caller that says nothing, or stops in the middle of the preface, is closed; one that is
    /// open may be silent for as long as it answers pings.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_not_opened_in_time_is_closed() {
        let whole = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0; 9]].concat();
        for (said, is_closed) in [(0, true), (7, true), (whole.len(), false)] {
            let listener = listen("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let (ready, mut connections) = mpsc::channel(4);
            let accepting = tokio::spawn(accept(listener, None, ready));
            let mut stream = TcpStream::connect(addr).await.unwrap();
            stream.write_all(&whole[..said]).await.unwrap();
            let mut connection = connections.recv().await.unwrap().unwrap();
            let mut seen = vec![0; said];
            connection.read_exact(&mut seen).await.unwrap();
            let next = tokio::time::timeout(2 * OPENED_WITHIN, connection.read_u8()).await;
            let ended = next.map(|read| read.unwrap_err().kind());
            let timed_out = ended == Ok(io::ErrorKind::TimedOut);
            assert_eq!(timed_out, is_closed, "after {said} bytes: {ended:?}");
            accepting.abort();
        }
    }
}
