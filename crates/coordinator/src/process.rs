//! The process: from settings to a replica that serves, and back to nothing in good order.
//!
//! ```text
//! directory ─▶ replica ─▶ consensus port ─▶ gRPC ─▶ probes ─▶ listening ─▶ forming
//! stop ─▶ leads no more ─▶ another leads ─▶ servers closed ─▶ library closed
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_coordinator_core::{Applied, Command, CoordinatorCore, Refused};
use bigfleet_net::{
    Exposed, Limits, ListenRefused, Probes, Serving, Tls, TlsFiles, TlsRefused, check_exposure,
    listen, serve,
};
use bigfleet_wire::v1alpha1::coordinator_admin_server::CoordinatorAdminServer;
use bigfleet_wire::v1alpha1::coordinator_server::{CoordinatorServer, SERVICE_NAME};
use ring::digest::{SHA256, digest};
use tokio::task::JoinHandle;
use tonic_health::ServingStatus;

use crate::Member;
use crate::consensus::Consensus;
use crate::counts::Counts;
use crate::export::{self, Export};
use crate::forming::{self, Forming};
use crate::raft::{Pace, Replica, ReplicaRefused, SharedCore, drawn};
use crate::service::{Service, now};

/// Callers have this long to hang up.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at whether a leader is known.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a coordinator is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The replica's stable name.
    pub name: String,
    /// Where what must survive a restart is.
    pub data_dir: PathBuf,
    /// Where shards and admins call.
    pub listen: String,
    /// Where other replicas call.
    pub raft_bind: String,
    /// Where probes and metrics are; `None` for nowhere.
    pub metrics_addr: Option<String>,
    /// What others are told to dial, if not where it listens.
    pub advertise_addr: Option<String>,
    /// What other replicas are told to dial, if not where it listens for them.
    pub raft_advertise: Option<String>,
    /// How its group begins.
    pub forming: Forming,
    /// How fast the group notices.
    pub pace: Pace,
    /// How often shards report.
    pub report_interval: Duration,
    /// Where backups go; `None` for nowhere.
    pub export: Option<Export>,
    /// Certificates; `None` for plaintext.
    pub tls: Option<TlsFiles>,
    /// Other hosts may call without certificates.
    pub insecure: bool,
}

/// Why a coordinator did not start, by the part that refused.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The replica.
    #[error(transparent)]
    Replica(#[from] ReplicaRefused),
    /// The certificates.
    #[error("tls: {0}")]
    Tls(#[from] TlsRefused),
    /// An address to listen on.
    #[error("listen: {}", bigfleet_net::chain(.0))]
    Listen(#[from] ListenRefused),
    /// An address that would let everybody in.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// An empty disk and nobody to begin or join a group with.
    #[error(
        "the data directory is empty: give --bootstrap to begin a group of one, or --join-addr with the addresses of all replicas"
    )]
    NothingToDo,
    /// A thread or socket the system did not give.
    #[error("system: {0}")]
    System(#[from] std::io::Error),
}

/// A coordinator that runs.
#[derive(Debug)]
pub struct Coordinator {
    replica: Arc<Replica>,
    core: SharedCore,
    server: Serving,
    peers: Serving,
    metrics_addr: Option<SocketAddr>,
    beside: Vec<JoinHandle<()>>,
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let sum = digest(&SHA256, bytes);
    let mut array = [0; 32];
    array.copy_from_slice(sum.as_ref());
    array
}

/// Starts a coordinator, and answers once it accepts calls. Whether it has a group by then is another matter.
pub async fn start(settings: Settings) -> Result<Coordinator, StartRefused> {
    let tls = settings.tls.clone().map(Tls::load).transpose()?;
    let (is_secure, insecure) = (tls.is_some(), settings.insecure);
    check_exposure("--listen", &settings.listen, is_secure, insecure)?;
    check_exposure("--raft-bind", &settings.raft_bind, is_secure, insecure)?;
    let grpc = listen(&settings.listen).await?;
    let raft = listen(&settings.raft_bind).await?;
    let http = match &settings.metrics_addr {
        Some(addr) => Some(listen(addr).await?),
        None => None,
    };
    let core_settings = bigfleet_coordinator_core::Settings {
        sha256,
        report_interval: settings.report_interval,
        defect: None,
    };
    let opened = Replica::open(&settings.data_dir, tls.clone(), settings.pace, |tables| {
        CoordinatorCore::new(core_settings, tables)
    });
    let (replica, core) = opened.await?;
    let replica = Arc::new(replica);
    let is_empty = replica.identity().1.cluster.is_none();
    if is_empty && settings.forming == Forming::Resumed {
        replica.stop().await;
        return Err(StartRefused::NothingToDo);
    }
    let told = |given: &Option<String>, bound: SocketAddr| {
        let given = given.clone();
        given.unwrap_or_else(|| bound.to_string())
    };
    let member = Member {
        name: settings.name.clone(),
        raft_address: told(&settings.raft_advertise, raft.local_addr()?),
        grpc_address: told(&settings.advertise_addr, grpc.local_addr()?),
    };
    let peers = Limits::PROVIDER.server().add_service(replica.service());
    let peers = serve(raft, tls.clone(), peers)?;
    let counts = Arc::new(Counts::default());
    let service = Service {
        name: settings.name.clone(),
        consensus: Arc::clone(&replica),
        core: core.clone(),
        counts: Arc::clone(&counts),
        joining: Arc::default(),
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_service_status(SERVICE_NAME, ServingStatus::NotServing)
        .await;
    let most = bigfleet_net::MAX_MESSAGE_BYTES;
    let router = Limits::SESSIONS
        .server()
        .add_service(health)
        .add_service(CoordinatorServer::new(service.clone()).max_decoding_message_size(most))
        .add_service(CoordinatorAdminServer::new(service));
    let server = serve(grpc, tls.clone(), router)?;
    let mut beside = Vec::new();
    let mut metrics_addr = None;
    if let Some(http) = http {
        let (addr, serving) = probes(&replica, &core, &counts).serve(http)?;
        metrics_addr = Some(addr);
        beside.push(serving);
    }
    beside.push(tokio::spawn(tell_health(Arc::clone(&replica), reporter)));
    if let Some(export) = settings.export {
        let (name, counts) = (settings.name.clone(), Arc::clone(&counts));
        let kept = export::keep(export, name, Arc::clone(&replica), core.clone(), counts);
        beside.push(tokio::spawn(kept));
    }
    let leading = lead(Arc::clone(&replica), core.clone(), counts);
    beside.push(tokio::spawn(leading));
    let probes = metrics_addr
        .map(|addr| addr.to_string())
        .unwrap_or_default();
    let (addr, raft) = (server.addr(), peers.addr());
    if tls.is_none() {
        tracing::warn!("no certificates: whoever reaches these addresses may do anything");
    }
    tracing::info!(name = settings.name, %addr, %raft, probes, "listening");
    let forming = forming::keep(Arc::clone(&replica), settings.forming, member, tls);
    beside.push(tokio::spawn(forming));
    Ok(Coordinator {
        replica,
        core,
        server,
        peers,
        metrics_addr,
        beside,
    })
}

fn probes(replica: &Arc<Replica>, core: &SharedCore, counts: &Arc<Counts>) -> Probes {
    let observed = Arc::clone(replica);
    let ready = move || {
        let is_led = observed.view().is_led();
        is_led
            .then_some(())
            .ok_or("no raft leader observed".to_owned())
    };
    let (replica, core, counts) = (Arc::clone(replica), core.clone(), Arc::clone(counts));
    let metrics = move || -> bigfleet_net::Answer {
        let text = counts.page(&core.lock(), &replica.view(), now());
        Box::pin(async move { text })
    };
    Probes {
        ready: Arc::new(ready),
        metrics: Arc::new(metrics),
    }
}

/// The health of the service is whether a leader is known.
async fn tell_health(replica: Arc<Replica>, reporter: tonic_health::server::HealthReporter) {
    loop {
        let status = if replica.view().is_led() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        reporter.set_service_status(SERVICE_NAME, status).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Begins a reign whenever this replica finds itself elected, and ends it when it is not (CO-11).
async fn lead<C: Consensus>(consensus: Arc<C>, core: SharedCore, counts: Arc<Counts>) {
    let mut begun = None;
    loop {
        let view = consensus.view();
        if !view.is_elected && begun.is_some() {
            core.lock().deposed();
            begun = None;
            tracing::info!("this replica leads no more");
        }
        if view.is_elected && begun != Some(view.term) {
            match begin_reign(consensus.as_ref(), &core).await {
                Ok(reign) => {
                    begun = Some(view.term);
                    counts.reign_begun();
                    tracing::info!(reign, "this replica leads");
                }
                Err(why) => tracing::info!(%why, "elected, and no reign began yet"),
            }
        }
        consensus.changed().await;
    }
}

async fn begin_reign<C: Consensus>(consensus: &C, core: &SharedCore) -> Result<u64, Refused> {
    let (_, belonging) = consensus.identity();
    let is_named = core.lock().tables().cluster().is_some();
    let mut commands = core.lock().elected();
    if let Some(id) = belonging.cluster.filter(|_| !is_named) {
        let generation = belonging.generation;
        commands.push(Command::SetCluster { id, generation });
    }
    let results = consensus.propose(&commands).await?;
    let Some(Ok(Applied::Reign(reign))) = results.first() else {
        return Err(Refused::NotCommitted);
    };
    let seed = drawn().map_err(|_| Refused::NotCommitted)?;
    core.lock().begin(now(), *reign, seed);
    Ok(*reign)
}

impl Coordinator {
    /// Where shards and admins call.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Where its probes are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// Ends when a part is lost without which it cannot go on, with which and why. To be heard once.
    pub async fn failed(&mut self) -> String {
        let (component, problem) = tokio::select! {
            problem = self.replica.ended() => ("consensus", problem),
            problem = self.server.ended() => ("server", problem),
            problem = self.peers.ended() => ("consensus port", problem),
        };
        tracing::error!(component, err = problem, "component exited");
        format!("{component}: {problem}")
    }

    /// Stops in order: it leads no more, another replica does, callers hang up, the log is closed (CO-50).
    pub async fn stop(self) {
        let Self {
            replica,
            core,
            server,
            peers,
            beside,
            ..
        } = self;
        // Nothing new is begun meanwhile, neither a reign nor a group.
        beside.iter().for_each(JoinHandle::abort);
        core.lock().deposed();
        if replica.view().is_elected {
            match replica.hand_over(None).await {
                Ok(to) => tracing::info!(to, "leadership handed over"),
                Err(why) => tracing::warn!(%why, "leadership was not handed over"),
            }
        }
        server.stop(STOP_WITHIN).await;
        replica.stop().await;
        peers.stop(STOP_WITHIN).await;
    }
}
