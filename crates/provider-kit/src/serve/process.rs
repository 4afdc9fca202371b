//! The process: from settings to a provider that answers, and back to nothing in good order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bigfleet_model::State;
use bigfleet_net::{
    Exposed, Limits, ListenRefused, Probes, Serving, Tls, TlsFiles, TlsRefused, asked_to_end,
    check_exposure, is_loopback, listen,
};
use bigfleet_wire::v1alpha1::capacity_provider_server::CapacityProviderServer;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::transport::server::Router;
use tonic_health::server::HealthReporter;

use super::backend::{Backend, Readiness};
use super::backend_work::BackendWork;
use super::driver::{Condition, Driver, INBOX, Request, Shared};
use super::listing::Listing;
use super::periodic;
use super::service::{Reads, Service};
use crate::event::{Event, Work};
use crate::kit::Kit;
use crate::list::Query;
use crate::machine::Machine;
use crate::options::Options;
use crate::seed::SeedRefused;
use crate::store::{LogStore, Memory, Store, StoreRefused, new_incarnation};
use crate::tables::Tables;

/// Monotonic time since some origin; used to measure, never to decide.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Four times what a Configure may hold: what is too large is refused by name rather than by the
/// transport.
const MOST_REQUEST_BYTES: usize = 4 * bigfleet_wire::limits::MAX_CONFIGURE_BYTES;
/// How long a stopping provider waits for work under way.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How a provider is run.
#[derive(Clone)]
pub struct Settings {
    /// The name in metrics: `bigfleet_<name>_…`.
    pub name: String,
    /// Where to listen; `:9000` is this host only.
    pub addr: String,
    /// Where probes and metrics are; `None` for nowhere.
    pub metrics_addr: Option<String>,
    /// Whether a metrics address that is taken stops the start.
    pub metrics_required: bool,
    /// The state file; `None` forgets with the process.
    pub state: Option<PathBuf>,
    /// Whether to answer gRPC reflection; never outside of this host.
    pub reflection: bool,
    /// Whether others may reach the address without certificates.
    pub insecure: bool,
    /// Certificates; `None` for plaintext. With them, a shard may only speak for itself.
    pub tls: Option<TlsFiles>,
    /// The kit's own options.
    pub options: Options,
    /// How often to take an inventory.
    pub reconcile_interval: Duration,
    /// How often to ask for prices.
    pub price_refresh: Duration,
    /// Measures calls; without it their durations are not shown.
    pub clock: Option<Clock>,
    /// The unix time at which the clock said zero.
    pub clock_began_at: Duration,
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
            insecure: false,
            tls: None,
            options: Options::default(),
            reconcile_interval: Duration::from_secs(120),
            price_refresh: Duration::from_secs(30 * 60),
            clock: None,
            clock_began_at: Duration::ZERO,
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
    #[error(transparent)]
    Listen(#[from] ListenRefused),
    /// An address that would let everybody in.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsRefused),
    /// What reflection would answer cannot be put together.
    #[error("reflection: {0}")]
    Reflection(String),
    /// The first changes could not be stored, or the runtime gave out.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
}

impl StartRefused {
    /// Whether the command line or a file it names is wrong, as opposed to this host.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Seed(_) | Self::Tls(_) => true,
            Self::Listen(refused) => refused.is_no_address(),
            _ => false,
        }
    }
}

/// A provider that runs.
#[derive(Debug)]
pub struct Provider {
    server: Serving,
    metrics_addr: Option<SocketAddr>,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    thread: std::thread::JoinHandle<()>,
    beside: Vec<JoinHandle<()>>,
}

impl Provider {
    /// The address it listens on, with the port the system chose if 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
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
        self.shared.is(Condition::Stopping);
        self.server.stop(STOP_PATIENCE).await;
        let idle = async {
            while self.shared.working.load(Ordering::Relaxed) != 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        drop(tokio::time::timeout(STOP_PATIENCE, idle).await);
        drop(self.driver.send(Request::Stop).await);
        self.beside.iter().for_each(JoinHandle::abort);
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
    let tls = settings.tls.clone().map(Tls::load).transpose()?;
    check_exposure("--addr", &settings.addr, tls.is_some(), settings.insecure)?;
    let (mut store, tables) = open(&settings)?;
    let options = Options {
        deletes: backend.deletes(),
        resumes: backend.resumes(),
        reconfigures: backend.reconfigures(),
        ..settings.options.clone()
    };
    let mut kit = Kit::new(tables, options);
    let first_boot = kit.tables().is_blank();
    let unfinished = boot(&*backend, &mut kit).await?;
    if !kit.tables().pending().is_empty() {
        store.commit(kit.tables().pending())?;
    }
    kit.commit();
    if backend.readiness() == Readiness::NotEnforced {
        tracing::warn!("readiness is not enforced: Configured does not mean that a node is Ready");
    }

    let listener = listen(&settings.addr).await?;
    let (outbox, inbox) = mpsc::channel(INBOX);
    let shared = Arc::new(Shared::default());
    let service = Service {
        driver: outbox.clone(),
        reads,
        rotation: Arc::default(),
        shared: Arc::clone(&shared),
        clock: settings.clock.clone(),
    };
    let (router, health) = router(&settings, service)?;
    let server = bigfleet_net::serve(listener, tls.clone(), router)?;
    let metrics = metrics(&settings, outbox.clone(), Arc::clone(&shared), tls).await?;

    let retry = kit.options.retry;
    let backend_work = BackendWork::new(
        Arc::clone(&backend),
        outbox.downgrade(),
        Arc::clone(&shared),
        retry,
    );
    let mut driver = Driver {
        kit,
        store,
        backend_work,
        runtime: tokio::runtime::Handle::current(),
        inbox,
        shared: Arc::clone(&shared),
        failures: 0,
        clock: settings.clock.clone(),
        failed_since: Default::default(),
    };
    driver.take_up(unfinished);
    let thread = std::thread::Builder::new()
        .name("kit".to_owned())
        .spawn(|| driver.run())?;
    shared.is(Condition::Ready);
    health
        .set_serving::<CapacityProviderServer<Service>>()
        .await;

    // What changed while the provider was down should not wait for the first interval.
    let interval = settings.reconcile_interval;
    let wait = if first_boot { interval } else { Duration::ZERO };
    let (of_driver, of_shared) = (outbox.clone(), Arc::clone(&shared));
    let inventories = periodic::inventories(
        Arc::clone(&backend),
        of_driver.clone(),
        Arc::clone(&of_shared),
        wait,
        interval,
    );
    let (clock, began) = (settings.clock.clone(), settings.clock_began_at);
    let now = move || clock.as_ref().map(|clock| began + clock());
    let prices = periodic::prices(backend, of_driver, of_shared, settings.price_refresh, now);
    let mut beside = vec![
        tokio::spawn(inventories),
        tokio::spawn(prices),
        tokio::spawn(tell_health(health, Arc::clone(&shared))),
    ];
    let metrics_addr = metrics.as_ref().map(|(addr, _)| *addr);
    beside.extend(metrics.map(|(_, task)| task));
    let secured = settings.tls.is_some();
    let probes = metrics_addr
        .map(|addr| addr.to_string())
        .unwrap_or_default();
    let state = settings.state.as_deref().unwrap_or(Path::new("")).display();
    tracing::info!(addr = %server.addr(), tls = secured, probes, %state, "listening");
    Ok(Provider {
        server,
        metrics_addr,
        driver: outbox,
        shared,
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

fn open(settings: &Settings) -> Result<(Box<dyn Store>, Tables), StoreRefused> {
    match &settings.state {
        None => Ok((Box::new(Memory), Tables::new(new_incarnation()))),
        Some(path) => {
            let (store, tables) = LogStore::open(path)?;
            Ok((Box::new(store), tables))
        }
    }
}

/// First boot takes the inventory. A later one believes its store; of what was under way it gives up
/// what cannot be taken up again, and answers with what can.
async fn boot<B: Backend>(backend: &B, kit: &mut Kit) -> Result<Vec<Work>, StartRefused> {
    if !kit.tables().is_blank() {
        let unfinished = kit.resume();
        let idle = kit.tables().count(State::Idle);
        let failed = kit.recover();
        let idle_again = kit.tables().count(State::Idle) - idle;
        if failed != 0 || idle_again != 0 || !unfinished.is_empty() {
            let resumed = unfinished.len();
            tracing::warn!(
                resumed,
                idle_again,
                failed,
                "the last process left transitions behind"
            );
        }
        let machines = kit.tables().machines().values();
        let machines: Vec<_> = machines.map(|entry| Arc::clone(&entry.machine)).collect();
        backend.restore(&machines);
        return Ok(unfinished);
    }
    let described = tokio::time::timeout(periodic::WITHIN, backend.describe()).await;
    let described = described.map_err(|_| StartRefused::Describe("it took too long".to_owned()))?;
    let instances = described.map_err(|why| StartRefused::Describe(why.to_string()))?;
    kit.seed(&instances)?;
    Ok(Vec::new())
}

fn router(settings: &Settings, service: Service) -> Result<(Router, HealthReporter), StartRefused> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let is_reflected = settings.reflection && is_loopback(&settings.addr);
    let reflection = is_reflected.then(|| {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(bigfleet_wire::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(|why| StartRefused::Reflection(why.to_string()))
    });
    let generated =
        CapacityProviderServer::new(service.clone()).max_decoding_message_size(MOST_REQUEST_BYTES);
    let service = Listing {
        generated,
        service,
        most_request_bytes: MOST_REQUEST_BYTES,
    };
    let router = Limits::PROVIDER
        .server()
        .add_service(health_service)
        .add_optional_service(reflection.transpose()?)
        .add_service(service);
    Ok((router, health))
}

/// Keeps the health service saying what `/readyz` says.
async fn tell_health(health: HealthReporter, shared: Arc<Shared>) {
    let mut condition = shared.condition.subscribe();
    loop {
        let now = *condition.borrow_and_update();
        match now.problem() {
            None => {
                health
                    .set_serving::<CapacityProviderServer<Service>>()
                    .await
            }
            Some(_) => {
                health
                    .set_not_serving::<CapacityProviderServer<Service>>()
                    .await;
            }
        }
        if condition.changed().await.is_err() {
            return;
        }
    }
}

async fn metrics(
    settings: &Settings,
    driver: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
) -> Result<Option<(SocketAddr, JoinHandle<()>)>, StartRefused> {
    let wanted = settings.metrics_addr.as_deref();
    let Some(addr) = wanted.filter(|addr| !["", "0"].contains(addr)) else {
        return Ok(None);
    };
    let listener = match listen(addr).await {
        Err(refused) if !settings.metrics_required => {
            tracing::warn!(%refused, "no metrics: the usual address is taken");
            return Ok(None);
        }
        other => other?,
    };
    let name: Arc<str> = settings.name.replace('-', "_").into();
    let condition = shared.condition.subscribe();
    let probes = Probes {
        ready: Arc::new(move || match condition.borrow().problem() {
            None => Ok(()),
            Some(problem) => Err(problem.to_owned()),
        }),
        metrics: Arc::new(move || {
            let (driver, shared, name) = (driver.clone(), Arc::clone(&shared), Arc::clone(&name));
            let tls = tls.clone();
            Box::pin(async move {
                let (reply, census) = oneshot::channel();
                let census = match driver.send(Request::Census { reply }).await {
                    Ok(()) => census.await.unwrap_or_default(),
                    Err(_) => Default::default(),
                };
                let tls = tls.map(|tls| tls.counts());
                shared.metrics.render(&name, &census, tls)
            })
        }),
    };
    Ok(Some(probes.serve(listener)?))
}
