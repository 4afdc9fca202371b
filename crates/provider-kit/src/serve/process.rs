//! The process: from settings to a provider that answers, and back to nothing in good order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bigfleet_wire::v1alpha1::capacity_provider_server::CapacityProviderServer;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use super::backend::{Backend, Readiness};
use super::driver::{Driver, INBOX, Request, Shared};
use super::listing::Listing;
use super::probes;
use super::service::{Reads, Service};
use crate::kit::{Event, Kit, Options};
use crate::list::Query;
use crate::machine::Machine;
use crate::seed::SeedRefused;
use crate::store::{LogStore, Memory, Store, StoreRefused, new_incarnation};
use crate::tables::Tables;

/// Monotonic time since some origin; used to measure, never to decide.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Requests may carry a large blob and a large map; what is too large is then refused by name
/// rather than by the transport.
const MOST_REQUEST_BYTES: usize = 16 << 20;
const MOST_STREAMS: u32 = 1024;
/// How long a stopping provider waits for work under way.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Certificates, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate chain.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who signs callers; `None` lets anyone call.
    pub ca: Option<PathBuf>,
}

/// How a provider is run.
#[derive(Clone)]
pub struct Settings {
    /// The name in metrics: `bigfleet_<name>_…`.
    pub name: String,
    /// Where to listen; `:9000` is every address of the host.
    pub addr: String,
    /// Where probes and metrics are; `None` for nowhere.
    pub metrics_addr: Option<String>,
    /// Whether a metrics address that is taken stops the start.
    pub metrics_required: bool,
    /// The state file; `None` forgets with the process.
    pub state: Option<PathBuf>,
    /// Whether to answer gRPC reflection.
    pub reflection: bool,
    /// Certificates; `None` for plaintext.
    pub tls: Option<Tls>,
    /// The kit's own options.
    pub options: Options,
    /// How often to take an inventory.
    pub reconcile_interval: Duration,
    /// Measures calls; without it their durations are not shown.
    pub clock: Option<Clock>,
}

impl Settings {
    /// The usual: in memory, plaintext, reflection on, no metrics.
    pub fn new(name: &str, addr: &str) -> Self {
        Self {
            name: name.to_owned(),
            addr: addr.to_owned(),
            metrics_addr: None,
            metrics_required: true,
            state: None,
            reflection: true,
            tls: None,
            options: Options::default(),
            reconcile_interval: Duration::from_secs(120),
            clock: None,
        }
    }
}

/// Why a provider did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The state file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreRefused),
    /// The catalogue is wrong.
    #[error(transparent)]
    Seed(#[from] SeedRefused),
    /// The substrate did not say what there is.
    #[error("the inventory could not be taken: {0}")]
    Describe(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// Which address.
        addr: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The first changes could not be stored, or the runtime gave out.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
}

/// A provider that runs.
#[derive(Debug)]
pub struct Provider {
    addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    thread: std::thread::JoinHandle<()>,
    beside: Vec<JoinHandle<()>>,
}

impl Provider {
    /// Where it answers.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where its probes are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// Tells the kit what the substrate noticed on its own. True if it was taken.
    pub async fn report(&self, event: Event) -> bool {
        self.driver.send(Request::Event(event)).await.is_ok()
    }

    /// Every machine as it is now; none if the provider is stopping.
    pub async fn machines(&self) -> Vec<Arc<Machine>> {
        let (reply, page) = oneshot::channel();
        let query = Query::default();
        if self
            .driver
            .send(Request::List { query, reply })
            .await
            .is_err()
        {
            return Vec::new();
        }
        match page.await {
            Ok(Ok(page)) => page.machines,
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// Stops in order: no new calls, then the work under way, then the store.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.beside.iter().for_each(JoinHandle::abort);
        if tokio::time::timeout(STOP_PATIENCE, self.server)
            .await
            .is_err()
        {
            tracing::warn!("some callers did not hang up in time");
        }
        let idle = async {
            while self.shared.working.load(Ordering::Relaxed) != 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        drop(tokio::time::timeout(STOP_PATIENCE, idle).await);
        drop(self.driver.send(Request::Stop).await);
        let thread = self.thread;
        drop(tokio::task::spawn_blocking(move || thread.join()).await);
    }
}

/// Starts a provider, and answers once it accepts calls.
pub async fn start<B: Backend>(
    backend: Arc<B>,
    reads: Arc<dyn Reads>,
    settings: Settings,
) -> Result<Provider, StartRefused> {
    let (mut store, tables) = open(&settings)?;
    let options = Options {
        deletes: backend.deletes(),
        ..settings.options.clone()
    };
    let mut kit = Kit::new(tables, options);
    let first_boot = kit.tables().is_blank();
    boot(&*backend, &mut kit).await?;
    if !kit.tables().pending().is_empty() {
        store.commit(kit.tables().pending())?;
    }
    kit.commit();
    if backend.readiness() == Readiness::NotEnforced {
        tracing::warn!("readiness is not enforced: Configured does not mean that a node is Ready");
    }

    let listener = listen(&settings.addr).await?;
    let addr = listener.local_addr()?;
    let (outbox, inbox) = mpsc::channel(INBOX);
    let shared = Arc::new(Shared::default());
    shared.storing.store(true, Ordering::Relaxed);
    let driver = Driver {
        kit,
        store,
        backend: Arc::clone(&backend),
        runtime: tokio::runtime::Handle::current(),
        inbox,
        outbox: outbox.downgrade(),
        shared: Arc::clone(&shared),
        failures: 0,
    };
    let thread = std::thread::Builder::new()
        .name("kit".to_owned())
        .spawn(|| driver.run())?;
    let service = Service {
        driver: outbox.clone(),
        reads,
        rotation: Arc::default(),
        shared: Arc::clone(&shared),
        clock: settings.clock.clone(),
    };
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(server(&settings, service, listener, stopped).await?);
    let mut beside = vec![tokio::spawn(reconcile(
        backend,
        outbox.clone(),
        Arc::clone(&shared),
        settings.reconcile_interval,
        first_boot,
    ))];
    let metrics = metrics(&settings, outbox.clone(), Arc::clone(&shared)).await?;
    let metrics_addr = metrics.as_ref().map(|(addr, _)| *addr);
    beside.extend(metrics.map(|(_, task)| task));
    tracing::info!(%addr, state = ?settings.state, "provider ready");
    Ok(Provider {
        addr,
        metrics_addr,
        stop,
        driver: outbox,
        shared,
        server,
        thread,
        beside,
    })
}

/// Starts a provider and keeps it until the process is asked to end.
pub async fn run<B: Backend>(
    backend: Arc<B>,
    reads: Arc<dyn Reads>,
    settings: Settings,
) -> Result<(), StartRefused> {
    let asked = asked_to_end()?;
    let provider = start(backend, reads, settings).await?;
    asked.await;
    provider.stop().await;
    Ok(())
}

/// Ends when the process is asked to: an interrupt or a termination.
pub fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}

fn open(settings: &Settings) -> Result<(Box<dyn Store>, Tables), StoreRefused> {
    match &settings.state {
        None => Ok((Box::new(Memory), Tables::new(new_incarnation()))),
        Some(path) => {
            let (store, tables) = LogStore::open(path)?;
            Ok((Box::new(store), tables))
        }
    }
}

/// First boot takes the inventory; a later one believes its store and gives up what was under way.
async fn boot<B: Backend>(backend: &B, kit: &mut Kit) -> Result<(), StartRefused> {
    if !kit.tables().is_blank() {
        let failed = kit.recover();
        if failed != 0 {
            tracing::warn!(
                failed,
                "transitions the last process left behind are now failed"
            );
        }
        let machines = kit.tables().machines().values();
        let machines: Vec<_> = machines.map(|entry| Arc::clone(&entry.machine)).collect();
        backend.restore(&machines);
        return Ok(());
    }
    let described = tokio::time::timeout(DESCRIBE_TIMEOUT, backend.describe()).await;
    let described = described.map_err(|_| StartRefused::Describe("it took too long".to_owned()))?;
    let instances = described.map_err(|why| StartRefused::Describe(why.to_string()))?;
    Ok(kit.seed(&instances)?)
}

async fn listen(addr: &str) -> Result<TcpListener, StartRefused> {
    let full = match addr.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => addr.to_owned(),
    };
    let listener = TcpListener::bind(&full).await;
    listener.map_err(|source| StartRefused::Listen {
        addr: addr.to_owned(),
        source,
    })
}

async fn server(
    settings: &Settings,
    service: Service,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
) -> Result<impl Future<Output = Result<(), tonic::transport::Error>> + use<>, StartRefused> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health
        .set_serving::<CapacityProviderServer<Service>>()
        .await;
    let reflection = settings.reflection.then(|| {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(bigfleet_wire::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(|why| StartRefused::Describe(why.to_string()))
    });
    let mut builder = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(2 * 60 * 60)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_concurrent_streams(MOST_STREAMS);
    if let Some(files) = &settings.tls {
        builder = builder
            .tls_config(tls(files)?)
            .map_err(|why| StartRefused::Tls(why.to_string()))?;
    }
    let generated =
        CapacityProviderServer::new(service.clone()).max_decoding_message_size(MOST_REQUEST_BYTES);
    let service = Listing {
        generated,
        service,
        most_request_bytes: MOST_REQUEST_BYTES,
    };
    let router = builder
        .add_service(health_service)
        .add_optional_service(reflection.transpose()?)
        .add_service(service);
    // Without it every small answer waits for an acknowledgement the peer delays by 40 ms.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok(router.serve_with_incoming_shutdown(incoming, async move {
        drop(stopped.wait_for(|stopped| *stopped).await);
    }))
}

fn tls(files: &Tls) -> Result<ServerTlsConfig, StartRefused> {
    let read = |path: &PathBuf| {
        let text = std::fs::read(path);
        text.map_err(|why| StartRefused::Tls(format!("{}: {why}", path.display())))
    };
    let identity = Identity::from_pem(read(&files.cert)?, read(&files.key)?);
    let config = ServerTlsConfig::new().identity(identity);
    Ok(match &files.ca {
        Some(ca) => config.client_ca_root(Certificate::from_pem(read(ca)?)),
        None => config,
    })
}

/// Takes an inventory now and then. A substrate that fails or panics is asked again next time.
async fn reconcile<B: Backend>(
    backend: Arc<B>,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    interval: Duration,
    first_boot: bool,
) {
    // What changed while the provider was down should not wait for the first interval.
    let mut wait = if first_boot { interval } else { Duration::ZERO };
    loop {
        tokio::time::sleep(wait).await;
        wait = interval;
        let (reply, head) = oneshot::channel();
        if driver.send(Request::Head { reply }).await.is_err() {
            return;
        }
        let Ok(as_of) = head.await else { return };
        let backend = Arc::clone(&backend);
        let mut task = tokio::spawn(async move { backend.describe().await });
        let outcome = match tokio::time::timeout(DESCRIBE_TIMEOUT, &mut task).await {
            Ok(Ok(Ok(instances))) => {
                drop(
                    driver
                        .send(Request::Event(Event::Described { instances, as_of }))
                        .await,
                );
                "ok"
            }
            Ok(Ok(Err(_))) => "error",
            Ok(Err(_)) => "panic",
            Err(_) => {
                task.abort();
                "timeout"
            }
        };
        shared.metrics.reconciled(outcome);
        if outcome != "ok" {
            tracing::warn!(outcome, "no inventory this time");
        }
    }
}

async fn metrics(
    settings: &Settings,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
) -> Result<Option<(SocketAddr, JoinHandle<()>)>, StartRefused> {
    let Some(addr) = settings
        .metrics_addr
        .as_deref()
        .filter(|addr| !addr.is_empty())
    else {
        return Ok(None);
    };
    let listener = match listen(addr).await {
        Err(refused) if !settings.metrics_required => {
            tracing::warn!(%refused, "no metrics: the usual address is taken");
            return Ok(None);
        }
        other => other?,
    };
    let addr = listener.local_addr()?;
    let name: Arc<str> = settings.name.replace('-', "_").into();
    let task = tokio::spawn(probes::serve(listener, move |path| {
        let (driver, shared, name) = (driver.clone(), Arc::clone(&shared), Arc::clone(&name));
        async move {
            match path.as_str() {
                "/healthz" => ("200 OK", "ok\n".to_owned()),
                "/readyz" if shared.storing.load(Ordering::Relaxed) => {
                    ("200 OK", "ok\n".to_owned())
                }
                "/readyz" => ("503 Service Unavailable", "the store fails\n".to_owned()),
                "/metrics" => {
                    let (reply, counts) = oneshot::channel();
                    let asked = driver.send(Request::Counts { reply }).await;
                    let counts = match asked {
                        Ok(()) => counts.await.unwrap_or_default(),
                        Err(_) => Vec::new(),
                    };
                    ("200 OK", shared.metrics.render(&name, &counts))
                }
                _ => ("404 Not Found", "not found\n".to_owned()),
            }
        }
    }));
    Ok(Some((addr, task)))
}
