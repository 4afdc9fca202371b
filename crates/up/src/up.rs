//! Up: starts the whole system in one process, runs it, and stops it without leaving anything behind.
//!
//! ```text
//! folder ─▶ cloud ─▶ shard ─▶ operators ─▶ running: steps of the scenario, a line per cycle
//! stop:  operators hang up ─▶ shard stops ─▶ cloud stops ─▶ folder removed ─▶ is anything left?
//! ```
//!
//! The parts are the real ones and talk over loopback gRPC on ports the system chooses. If a part does not
//! start, those already running are stopped, so a failed start leaves nothing behind either.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bigfleet_model::{Fleet, Time};
use bigfleet_net::{Dial, DialRefused};
use bigfleet_shard::{Failed, Rotation, Settings, Shard};
use bigfleet_shard_core::ShardConfig;
use bigfleet_wire::v1alpha1::ListFilter;
use bigfleet_wire::v1alpha1::capacity_provider_client::CapacityProviderClient;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cloud::Cloud;
use crate::cluster::{Cluster, Order};
use crate::cycle_snapshot::{CycleSnapshot, RunTotals};
use crate::folder::Folder;
use crate::from_file::{FleetPlan, FleetRefused, play};
use crate::hardware::{PROVIDER, slots};
use crate::lines::Line;
use crate::maintenance;
use crate::operator::{self, ORDERS};
use crate::pace::Pace;
use crate::scenario::{Rack, Scenario, ScenarioStep, Script, StepAction};

/// How long somebody else's provider may take to answer at all.
const PROVIDER_WITHIN: Duration = Duration::from_secs(5);
/// How long operators may take to hang up, and ports to close.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// How to run the demonstration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the shard listens.
    pub listen: String,
    /// Whether others may reach that address; there are no certificates here.
    pub insecure: bool,
    /// Where its probes and metrics are; `None` for nowhere.
    pub metrics_addr: Option<String>,
    /// Where data is kept; `None` for a new folder that is removed at the end.
    pub data_dir: Option<PathBuf>,
    /// What happens, and when.
    pub scenario: Scenario,
    /// How many clusters take part.
    pub clusters: usize,
    /// How many seconds pass for the fleet in one real second; within [`SPEEDS`](crate::SPEEDS).
    pub speed: f64,
    /// The seed of everything random in the cloud.
    pub seed: u64,
    /// Machines and demand to start with, instead of the built-in ones.
    pub fleet: Option<Fleet>,
    /// The address of a provider to use instead of the simulated cloud; it runs at its own speed.
    pub provider_addr: Option<String>,
}

/// Why it did not start, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum UpRefused {
    /// The folder cannot be used.
    #[error("the data directory {} cannot be used: {problem}; name another with --data-dir", path.display())]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The answer of the operating system.
        problem: String,
    },
    /// The folder belongs to another cloud.
    #[error("{} holds a cloud already, which --fleet would replace; name another --data-dir", .0.display())]
    OtherCloud(PathBuf),
    /// The fleet cannot be run.
    #[error("--fleet: {0}")]
    Fleet(#[from] FleetRefused),
    /// The provider's address cannot be read as one.
    #[error("--provider-addr: {0}")]
    ProviderAddr(#[from] DialRefused),
    /// Nobody answers as a provider there.
    #[error(
        "nothing answers as a provider at {addr} ({problem}): is one running there? start one with \
             `bigfleet provider fake`, or leave --provider-addr out"
    )]
    Provider {
        /// The address of --provider-addr.
        addr: String,
        /// What it answered, or what the connection ended with.
        problem: String,
    },
    /// An address is taken.
    #[error(
        "cannot listen on {addr}: {problem}; name another with {flag}, or a port of 0 for any that is free"
    )]
    Listen {
        /// The address that was asked for.
        addr: String,
        /// The flag that names it.
        flag: &'static str,
        /// The answer of the operating system.
        problem: String,
        /// Whether it is not an address at all, on any host.
        is_no_address: bool,
    },
    /// The cloud did not start.
    #[error("the cloud did not start: {0}")]
    Cloud(String),
    /// The shard did not start.
    #[error("the shard did not start: {0}")]
    Shard(String),
}

impl UpRefused {
    /// Whether the command line is wrong, as opposed to this host.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Fleet(_) | Self::ProviderAddr(_) => true,
            Self::Listen { is_no_address, .. } => *is_no_address,
            Self::DataDir { .. }
            | Self::OtherCloud(_)
            | Self::Provider { .. }
            | Self::Cloud(_)
            | Self::Shard(_) => false,
        }
    }
}

/// Everything, running.
#[derive(Debug)]
pub struct Up {
    pace: Pace,
    shard: Shard,
    cloud: Option<Cloud>,
    operators: JoinSet<()>,
    orders: Vec<mpsc::Sender<Order>>,
    steps: VecDeque<ScenarioStep>,
    folder: Folder,
    started: Line,
    interval: Duration,
}

impl Up {
    /// Starts everything; returns once the shard accepts sessions.
    pub async fn start(options: Options) -> Result<Self, UpRefused> {
        let pace = Pace::start(options.speed);
        let played = options.fleet.as_ref().map(play).transpose()?;
        let folder = folder(&options)?;
        let cloud = match &options.provider_addr {
            Some(addr) => {
                answers(addr).await?;
                None
            }
            None => Some(cloud(&options, &folder, pace, played.as_ref()).await?),
        };
        let provider = match (&cloud, &options.provider_addr) {
            (Some(cloud), _) => cloud.addr().to_string(),
            (None, addr) => addr.clone().unwrap_or_default(),
        };
        let settings = settings(&options, &folder, provider.clone());
        let interval = settings.core.cycle_interval;
        let shard = match bigfleet_shard::start(settings).await {
            Ok(shard) => shard,
            Err(refused) => {
                if let Some(cloud) = cloud {
                    cloud.stop().await;
                }
                return Err(of_shard(refused, &options, &folder));
            }
        };
        let mut up = Self {
            pace,
            started: Line::Started {
                shard: shard.addr(),
                metrics: shard.metrics_addr(),
                provider,
                clusters: Vec::new(),
                scenario: options.scenario.name(),
                speed: options.speed,
                seed: options.seed,
                data_dir: folder.path().to_owned(),
            },
            shard,
            cloud,
            operators: JoinSet::new(),
            orders: Vec::new(),
            steps: VecDeque::new(),
            folder,
            interval,
        };
        let mut script = Script::new(options.scenario, options.clusters);
        if options.provider_addr.is_some() {
            script.take_any_type();
        }
        let scripted = script.clusters.iter().cloned();
        let mut clusters: Vec<Cluster> = scripted.map(|id| Cluster::new(id, Vec::new())).collect();
        for step in script.steps.iter().filter(|step| step.at.is_zero()) {
            // What a cluster asks for from the start is in its first roll-up already: an empty one would
            // give back whatever an earlier run left it.
            if let StepAction::Orders(cluster, order) = &step.does {
                clusters[*cluster].order(order.clone());
            }
        }
        let from_file = played.into_iter().flat_map(|played| played.clusters);
        clusters.extend(from_file.map(|(id, rows)| Cluster::new(id, rows)));
        up.steps = script.steps.into();
        up.connect(clusters);
        Ok(up)
    }

    /// An operator for each cluster. Those a script gives orders to come first.
    fn connect(&mut self, clusters: Vec<Cluster>) {
        for cluster in clusters {
            if let Line::Started { clusters, .. } = &mut self.started {
                clusters.push(cluster.id().to_string());
            }
            let (orders, taken) = mpsc::channel(ORDERS);
            self.orders.push(orders);
            self.operators
                .spawn(operator::run(cluster, self.pace, self.shard.addr(), taken));
        }
    }

    /// Where the shard answers.
    pub fn addr(&self) -> SocketAddr {
        self.shard.addr()
    }

    /// Runs until `until` ends, `say` returns false, or the shard fails; then stops everything. Returns the
    /// summary, which the caller prints.
    pub async fn run(
        mut self,
        until: impl Future<Output = ()>,
        mut say: impl FnMut(&Line) -> bool,
    ) -> Result<Line, Failed> {
        let mut totals = RunTotals::default();
        let mut look_at = self.interval;
        let mut failed = None;
        let mut heard = say(&self.started);
        tokio::pin!(until);
        while heard {
            let step = self.steps.front().map(|step| self.pace.instant(step.at));
            let look = self.pace.instant(look_at);
            tokio::select! {
                biased;
                () = &mut until => break,
                lost = self.shard.failed() => {
                    failed = Some(lost);
                    break;
                }
                () = sleep_until(step) => heard = self.step(&mut say).await,
                () = tokio::time::sleep_until(look) => {
                    look_at = (look_at + self.interval).max(self.pace.fleet());
                    heard = self.look(&mut totals, &mut say).await;
                }
            }
        }
        self.look(&mut totals, &mut |_| true).await; // whatever happened since the last one
        let (here, fleet) = (self.pace.here(), self.pace.fleet());
        let left_running = self.stop().await;
        match failed {
            Some(failed) => Err(failed),
            None => Ok(Line::Summary {
                t: tenths(here),
                fleet_seconds: tenths(fleet),
                cycles: totals.cycle,
                actions: totals.decided(),
                states: totals.visited(),
                left_running,
            }),
        }
    }

    /// Performs the next step of the scenario.
    async fn step(&mut self, say: &mut impl FnMut(&Line) -> bool) -> bool {
        let Some(step) = self.steps.pop_front() else {
            return true;
        };
        let mut says = step.says;
        match step.does {
            StepAction::Orders(cluster, order) => {
                if let Some(orders) = self.orders.get(cluster) {
                    // An operator that has ended takes no orders; the step is announced all the same.
                    drop(orders.send(order).await);
                }
            }
            StepAction::Interrupts(most) => match &self.cloud {
                Some(cloud) => {
                    let struck = cloud.interrupt(most).await;
                    says = format!("{says} ({})", struck.join(", "));
                }
                None => {
                    says = "a spot interruption is left out: the provider is not ours".to_owned()
                }
            },
            // A shard that is stopping takes nothing out; the step is announced all the same.
            StepAction::Services(rack, Rack::Out) => {
                let now = self.shard.hub().ask(|core| core.last_cycle()).await;
                let now = now.ok().flatten().unwrap_or(Time::ZERO);
                drop(maintenance::take_out(self.shard.hub(), rack, now).await);
            }
            StepAction::Services(rack, Rack::Back) => {
                drop(maintenance::bring_back(self.shard.hub(), rack).await);
            }
        }
        say(&Line::Step {
            t: tenths(self.pace.here()),
            fleet_seconds: tenths(self.pace.fleet()),
            says,
        })
    }

    /// Takes a snapshot of the shard, and prints a line about it.
    async fn look(&self, totals: &mut RunTotals, say: &mut impl FnMut(&Line) -> bool) -> bool {
        let Ok(snapshot) = self.shard.hub().ask(|core| CycleSnapshot::take(core)).await else {
            return true; // it is stopping, which is seen elsewhere
        };
        let decided = totals.add(&snapshot);
        let machines = snapshot.by_state().into_iter();
        say(&Line::Cycle {
            t: tenths(self.pace.here()),
            fleet_seconds: tenths(self.pace.fleet()),
            cycle: snapshot.cycle,
            machines: machines
                .map(|(state, count)| (state.word(), count))
                .collect(),
            dollars_per_hour: (snapshot.price * 1000.0).round() / 1000.0,
            needs_short: snapshot.short,
            needs_lacking: snapshot.lacking,
            troubles: snapshot.troubles.clone(),
            sessions: snapshot.sessions,
            paused: snapshot.paused,
            decided: decided
                .into_iter()
                .map(|(kind, count)| (kind.word(), count))
                .collect(),
        })
    }

    /// Stops everything; returns what is still there afterwards.
    async fn stop(self) -> Vec<String> {
        let Self {
            shard,
            cloud,
            mut operators,
            orders,
            folder,
            ..
        } = self;
        let mut left = Vec::new();
        drop(orders); // operators without orders hang up
        let hung_up = async { while operators.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_WITHIN, hung_up).await.is_err() {
            left.push(format!("{} operators", operators.len()));
            operators.shutdown().await;
        }
        let mut ports = vec![("the shard's port", shard.addr())];
        ports.extend(shard.metrics_addr().map(|addr| ("the metrics port", addr)));
        shard.stop().await;
        if let Some(cloud) = cloud {
            ports.push(("the cloud's port", cloud.addr()));
            cloud.stop().await;
        }
        for (what, addr) in ports {
            if is_open(addr).await {
                left.push(format!("{what} {addr}"));
            }
        }
        left.extend(folder.remove().map(|path| path.display().to_string()));
        left
    }
}

/// Whether a port stays open. It is given a while: a server that was stopped takes a moment to close it.
async fn is_open(addr: SocketAddr) -> bool {
    let closed = async {
        while tokio::net::TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(STOP_WITHIN, closed).await.is_err()
}

async fn sleep_until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Seconds, to a tenth.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn folder(options: &Options) -> Result<Folder, UpRefused> {
    let made = match &options.data_dir {
        Some(path) => Folder::named(path),
        None => Folder::fresh(),
    };
    made.map_err(|why| UpRefused::DataDir {
        path: options.data_dir.clone().unwrap_or_else(std::env::temp_dir),
        problem: why.to_string(),
    })
}

async fn cloud(
    options: &Options,
    folder: &Folder,
    pace: Pace,
    played: Option<&FleetPlan>,
) -> Result<Cloud, UpRefused> {
    let state = folder.cloud();
    if let Some(played) = played {
        if state.exists() {
            return Err(UpRefused::OtherCloud(folder.path().to_owned()));
        }
        std::fs::write(&state, &played.state).map_err(|why| UpRefused::DataDir {
            path: folder.path().to_owned(),
            problem: why.to_string(),
        })?;
    }
    let slots = played.map_or_else(slots, |played| played.slots.clone());
    let remembers = folder.stays() || played.is_some();
    let started = Cloud::start(slots, options.seed, pace, remembers.then_some(state)).await;
    started.map_err(|why| UpRefused::Cloud(bigfleet_net::chain(&why)))
}

/// Whether a provider answers there.
async fn answers(addr: &str) -> Result<(), UpRefused> {
    let refused = |problem: String| UpRefused::Provider {
        addr: addr.to_owned(),
        problem,
    };
    let channel = Dial::provider(None).channel(addr)?;
    let filter = ListFilter {
        max_results: 1,
        ..ListFilter::default()
    };
    let mut client = CapacityProviderClient::new(channel)
        .max_decoding_message_size(bigfleet_net::MAX_MESSAGE_BYTES);
    match tokio::time::timeout(PROVIDER_WITHIN, client.list(filter)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => Err(refused(bigfleet_net::chain(&status))),
        Err(_) => Err(refused(format!(
            "silent for {} s",
            PROVIDER_WITHIN.as_secs()
        ))),
    }
}

/// The settings of a production shard, safety limits included; only its clock runs faster.
fn settings(options: &Options, folder: &Folder, provider_addr: String) -> Settings {
    Settings {
        core: ShardConfig::production("up", PROVIDER),
        listen: options.listen.clone(),
        metrics_addr: options.metrics_addr.clone(),
        pause_file: folder.shard().join("pause"),
        data_dir: folder.shard(),
        epoch_floor: 0,
        records_lost: false,
        provider_addr,
        incremental_reconcile: false,
        largest_frame: Settings::LARGEST_FRAME_MIB << 20,
        actuation_paused: false,
        audit_log: Some(folder.audit()),
        audit_rotation: Rotation::default(),
        tls: None,
        insecure: options.insecure,
        reflection: true,
        speed: options.speed,
        attribution_probe: false,
        trouble: bigfleet_shard::Trouble::default(),
        around: bigfleet_shard::Around::default(),
    }
}

fn of_shard(
    refused: bigfleet_shard::StartRefused,
    options: &Options,
    folder: &Folder,
) -> UpRefused {
    use bigfleet_shard::StartRefused;
    match refused {
        StartRefused::Listen(refused) => UpRefused::Listen {
            flag: if options.metrics_addr.as_ref() == Some(&refused.addr)
                && options.listen != refused.addr
            {
                "--metrics-addr"
            } else {
                "--listen"
            },
            problem: refused.source.to_string(),
            is_no_address: refused.is_no_address(),
            addr: refused.addr,
        },
        StartRefused::Store(_) | StartRefused::Audit { .. } => UpRefused::DataDir {
            path: folder.path().to_owned(),
            problem: refused.to_string(),
        },
        other => UpRefused::Shard(other.to_string()),
    }
}
