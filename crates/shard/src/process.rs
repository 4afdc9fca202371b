//! The process: from settings to a shard that serves, and back to nothing in good order.
//!
//! ```text
//! directory, epoch ─▶ core ─▶ store, provider, driver ─▶ gRPC ─▶ probes ─▶ serving
//! stop ─▶ nothing more leaves ─▶ calls under way end ─▶ store closed ─▶ servers closed
//! ```

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use axum::routing::get;
use bigfleet_net::{
    Dial, DialRefused, Exposed, Limits, ListenRefused, Probes, Serving, Tls, TlsRefused,
    check_exposure, is_loopback, listen, serve,
};
use bigfleet_shard_core::{ShardConfig, ShardCore};
use bigfleet_wire::v1alpha1::shard_admin_server::ShardAdminServer;
use bigfleet_wire::v1alpha1::shard_read_server::ShardReadServer;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::Router;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_reflection::server::Error as ReflectionError;

use crate::admin::Admin;
use crate::audit::{AuditCounts, AuditLog};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::driver::Driver;
pub use crate::driver::Failed;
use crate::events::Events;
use crate::hash_key::draw_hash_key;
use crate::history::History;
use crate::hub::{Hub, Told};
use crate::incoming::SessionServer;
use crate::pause::PauseFile;
use crate::provider::Provider;
use crate::publish::{About, Metrics, Publisher};
use crate::read::{Reads, ShardInfo, Surroundings};
use crate::services;
use crate::session::Sessions;
use crate::settings::Settings;
use crate::store::{self, Store, StoreRefused, Wanted};

/// The largest request of a reader or an admin: they name things, and there is nothing large to name.
const MOST_ASKED: usize = 64 << 10;

/// Why a shard did not start, by the part that refused.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The data directory.
    #[error("store: {0}")]
    Store(#[from] StoreRefused),
    /// What was remembered, or the settings.
    #[error("core: {0}")]
    Core(#[from] bigfleet_shard_core::StartRefused),
    /// The provider's address.
    #[error("provider: {0}")]
    Provider(#[from] DialRefused),
    /// The audit log.
    #[error("audit log: {}: {source}", path.display())]
    Audit {
        /// The file that was asked for.
        path: PathBuf,
        /// Why it cannot be written.
        source: std::io::Error,
    },
    /// The certificates.
    #[error("tls: {0}")]
    Tls(#[from] TlsRefused),
    /// An address to listen on.
    #[error("listen: {}", bigfleet_net::chain(.0))]
    Listen(#[from] ListenRefused),
    /// An address that would let everybody in.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// What reflection would answer.
    #[error("reflection: {0}")]
    Reflection(String),
    /// A thread or socket the system did not give.
    #[error("system: {0}")]
    System(#[from] std::io::Error),
}

/// A shard that runs.
#[derive(Debug)]
pub struct Shard {
    hub: Hub,
    server: Serving,
    metrics_addr: Option<SocketAddr>,
    failed: watch::Receiver<Option<Failed>>,
    driver: std::thread::JoinHandle<()>,
    beside: Vec<(&'static str, JoinHandle<()>)>,
}

impl Shard {
    /// Where operators and readers call.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Where its probes are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// The way to its core.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Ends when a part is lost without which the shard cannot go on: any of them. To be heard once.
    pub async fn failed(&mut self) -> Failed {
        let failed = tokio::select! {
            // Whoever is lost because the driver is gone is not the cause.
            biased;
            failed = of_driver(&mut self.failed) => failed,
            problem = self.server.ended() => return lost("server", problem),
            failed = of_tasks(&mut self.beside) => return failed,
        };
        // The driver's last act is to write what the audit log was handed: why the shard ends is among it.
        let gone = async { while self.failed.changed().await.is_ok() {} };
        drop(tokio::time::timeout(Settings::STOP_WITHIN, gone).await);
        failed
    }

    /// Stops in order: nothing more leaves, calls under way end, the store closes, callers hang up.
    pub async fn stop(self) {
        let (stopped, has_stopped) = oneshot::channel();
        let asked = self.hub.events.send(Told::Stop(stopped)).await;
        if asked.is_ok() {
            let ended = tokio::time::timeout(Settings::STOP_WITHIN, has_stopped).await;
            if ended.is_err() {
                tracing::warn!("calls are still under way; the next process takes them up");
            }
        }
        drop(self.hub);
        self.server.stop(Settings::STOP_WITHIN).await;
        self.beside.iter().for_each(|(_, task)| task.abort());
        if self.driver.is_finished() {
            drop(self.driver.join());
        }
    }
}

async fn of_driver(failed: &mut watch::Receiver<Option<Failed>>) -> Failed {
    let heard = failed.wait_for(Option::is_some).await;
    let heard = heard.ok().and_then(|failed| failed.clone());
    heard.unwrap_or_else(|| lost("driver", "it ended by itself".to_owned()))
}

/// None of them ends while the shard runs.
async fn of_tasks(tasks: &mut [(&'static str, JoinHandle<()>)]) -> Failed {
    std::future::poll_fn(|context| {
        for (component, task) in tasks.iter_mut() {
            if let Poll::Ready(ended) = Pin::new(task).poll(context) {
                let problem = match ended {
                    Ok(()) => "it ended by itself".to_owned(),
                    Err(gone) => gone.to_string(),
                };
                return Poll::Ready(lost(component, problem));
            }
        }
        Poll::Pending
    })
    .await
}

fn lost(component: &'static str, problem: String) -> Failed {
    tracing::error!(component, err = problem, "component exited");
    Failed { component, problem }
}

/// Starts a shard, and answers once it accepts sessions.
pub async fn start(settings: Settings) -> Result<Shard, StartRefused> {
    let clock = Clock::start(settings.speed, settings.trouble.host_clock());
    let tls = settings.tls.clone().map(Tls::load).transpose()?;
    check_exposure(
        "--listen",
        &settings.listen,
        tls.is_some(),
        settings.insecure,
    )?;
    let grpc = listen(&settings.listen).await?;
    let http = match &settings.metrics_addr {
        Some(addr) => Some(listen(addr).await?),
        None => None,
    };
    let mut opened = store::open(
        &settings.data_dir,
        Wanted {
            epoch_floor: settings.epoch_floor,
            records_lost: settings.records_lost,
            // A shard that nobody above knows of may be copied and moved as its owner likes (SH-33 sees to twins).
            refuses_copies: settings.core.coordinated,
        },
    )?;
    let epoch = opened.epoch;
    let (records, ages) = (
        std::mem::take(&mut opened.records),
        std::mem::take(&mut opened.ages),
    );
    let config = ShardConfig {
        hash_key: draw_hash_key(),
        full_lists: !settings.incremental_reconcile,
        ..settings.core.clone()
    };
    let mut core = ShardCore::rebuild(config, epoch, clock.now(), records)?;
    core.set_directory(opened.directory);
    for (need, since) in ages {
        core.recall_lacking(need, since);
    }

    let shown = settings.shown(epoch);
    tracing::info!(config = %shown, "effective configuration");
    let (hub, inbox) = Hub::new(settings.trouble.clone());
    let metrics = Metrics {
        clock,
        publisher: Publisher::default(),
        commits: Arc::default(),
        lists: Arc::default(),
        rpcs: Arc::default(),
        sessions: Arc::default(),
        audit: Arc::default(),
        panics: Arc::clone(&hub.panics),
        beside: Arc::clone(&hub.beside),
        tls: tls.clone(),
        trouble: settings.trouble.clone(),
        about: About {
            epoch,
            settings: settings.labels(),
        },
    };
    let audit = audit(&settings, &metrics.audit)?;
    let lines = audit.as_ref().map(AuditLog::lines);
    let (shard_id, addr) = (settings.core.shard.as_str(), &settings.provider_addr);
    tracing::info!(addr, shard_id, epoch, "provider dial");
    // On every line of the driver and of what it starts, at any level (docs/operating.md).
    let span = tracing::error_span!("shard", shard_id, epoch);
    let mut channel = Dial::provider(tls.clone()).channel_with_turns(addr)?;
    if settings.trouble.queues_calls() {
        channel = channel.without_turns();
    }
    let provider = Provider::new(
        channel,
        hub.clone(),
        Arc::clone(&metrics.lists),
        Arc::clone(&metrics.rpcs),
        settings.trouble.clone(),
        span.clone(),
    );
    let store = Store::start(
        opened,
        hub.clone(),
        Arc::clone(&metrics.commits),
        settings.trouble.clone(),
    )?;

    // Before the first cycle, so that a shard that starts paused never acts.
    let mut pause = PauseFile::new(&settings.pause_file, settings.actuation_paused);
    for event in pause.changes() {
        drop(hub.tell(event).await);
    }
    if settings.core.dry_run {
        tracing::info!("started in shadow mode");
    }
    let (failed, has_failed) = watch::channel(None);
    let lists = Arc::clone(&metrics.lists);
    let history = Arc::new(History::new(epoch));
    let events = Arc::new(Events::new(epoch, lines.clone()));
    let driver = Driver {
        core,
        clock,
        inbox,
        store,
        provider,
        audit,
        history: Arc::clone(&history),
        events: Arc::clone(&events),
        lists: Arc::clone(&lists),
        publisher: metrics.publisher.clone(),
        attribution_probe: settings.attribution_probe,
        runtime: Handle::current(),
        failed,
        trouble: settings.trouble.clone(),
    };
    let driver = drive(driver, span.clone())?;

    let info = ShardInfo::new(&settings, clock, lists);
    let info = Arc::new(info);
    let counts = Arc::clone(&metrics.sessions);
    let sessions = Sessions::new(hub.clone(), counts, clock, settings.largest_frame);
    let reads = Reads::new(
        hub.clone(),
        Arc::clone(&info),
        history,
        events,
        Arc::clone(&metrics.sessions),
        Surroundings::new(&metrics, &settings),
    );
    let noticing = tokio::spawn(reads.clone().tell_problems());
    let telling = tokio::spawn(reads.clone().tell_needs());
    let admin = Admin::new(hub.clone(), info, lines);
    let (health, reporting) = services::health(metrics.publisher.readiness()).await;
    let reflection = settings.reflection && is_loopback(&settings.listen);
    let router = router(reflection, health, sessions, reads, admin)?;
    let server = serve(grpc, tls.clone(), router)?;
    let (trouble, watching) = (settings.trouble.clone(), pause.watch(hub.clone()));
    let watching = tokio::spawn(async move {
        trouble.works("pause file");
        watching.await;
    });
    let mut beside = vec![
        ("pause file", watching),
        ("health", tokio::spawn(reporting)),
        ("need status", telling),
        ("problems", noticing),
    ];
    let metrics_addr = match http {
        None => None,
        Some(listener) => {
            let (addr, task) = probes(listener, metrics, &shown)?;
            beside.push(("probes", task));
            Some(addr)
        }
    };
    if tls.is_none() {
        tracing::warn!("plaintext: anyone who can reach this address is believed; see --tls-cert");
    }
    let probes = metrics_addr
        .map(|addr| addr.to_string())
        .unwrap_or_default();
    tracing::info!(addr = %server.addr(), probes, shard_id, epoch, tls = tls.is_some(), "listening");
    Ok(Shard {
        hub,
        server,
        metrics_addr,
        failed: has_failed,
        driver,
        beside,
    })
}

fn audit(settings: &Settings, counts: &Arc<AuditCounts>) -> Result<Option<AuditLog>, StartRefused> {
    let Some(path) = &settings.audit_log else {
        return Ok(None);
    };
    let shard = &settings.core.shard;
    let log = AuditLog::start(path, settings.audit_rotation, shard, Arc::clone(counts));
    let log = log.map_err(|source| StartRefused::Audit {
        path: path.clone(),
        source,
    })?;
    tracing::info!(path = %path.display(), "audit log enabled");
    Ok(Some(log))
}

/// The core's own thread: a long cycle takes a core, not the runtime of everybody else.
fn drive(driver: Driver, span: tracing::Span) -> std::io::Result<std::thread::JoinHandle<()>> {
    let timers = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    std::thread::Builder::new()
        .name("driver".to_owned())
        .spawn(move || span.in_scope(|| timers.block_on(driver.run())))
}

/// Every service on the gRPC address. Whoever adds one asks the core through the hub.
fn router(
    reflection: bool,
    health: HealthServer<impl Health>,
    sessions: Sessions,
    reads: Reads,
    admin: Admin,
) -> Result<Router, StartRefused> {
    let refused = |why: ReflectionError| StartRefused::Reflection(why.to_string());
    let (v1, v1alpha) = if reflection {
        let v1 = services::reflected().build_v1().map_err(refused)?;
        let v1alpha = services::reflected().build_v1alpha().map_err(refused)?;
        (Some(v1), Some(v1alpha))
    } else {
        (None, None)
    };
    let reads = ShardReadServer::new(reads).max_decoding_message_size(MOST_ASKED);
    let admin = ShardAdminServer::new(admin).max_decoding_message_size(MOST_ASKED);
    let calls = Calls::default();
    Ok(Limits::SESSIONS
        .server()
        .add_service(calls.count(health))
        .add_optional_service(v1.map(|v1| calls.count(v1)))
        .add_optional_service(v1alpha.map(|v1alpha| calls.count(v1alpha)))
        .add_service(calls.count(SessionServer(sessions)))
        .add_service(calls.count(reads))
        .add_service(calls.count(admin)))
}

fn probes(
    listener: tokio::net::TcpListener,
    metrics: Metrics,
    config: &serde_json::Value,
) -> std::io::Result<(SocketAddr, JoinHandle<()>)> {
    let publisher = metrics.publisher.clone();
    let probes = Probes {
        ready: Arc::new(move || publisher.ready()),
        metrics: Arc::new(move || {
            let metrics = metrics.clone();
            Box::pin(async move { metrics.render() })
        }),
    };
    let config = format!("{config:#}\n");
    let own = axum::Router::new().route("/config", get(async move || config.clone()));
    probes.serve_beside(listener, own)
}
