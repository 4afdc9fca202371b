//! A cluster's side as processes: `bigfleet operator` and `bigfleet pod-controller` on a real API server.
//!
//! ```text
//! etcd, kube-apiserver ◀── watch, write ──▶ bigfleet operator ══ session ══▶ a shard from a script, in this process
//!        ▲      └───────── watch, write ──▶ bigfleet pod-controller
//!        └── requests, Pods: made and watched by this process
//! ```
//!
//! Three parts, one after the other in one cluster: CapacityRequests there are many of, with changes between them; many
//! machines that change at once; Pods there are many of, and then a burst of them. There is no scheduler: nothing is ever placed.
//! Everything shares the same few cores, so what the API server and its store took stands beside every number.

mod cluster;
mod pods;
mod report;
mod requests;
mod updates;

use super::meter::{Meter, ProcessCost};
use super::report::NotMeasured;
use crate::Progress;
use bigfleet_kube_world::World;
use std::path::PathBuf;
use std::time::Duration;

pub use report::{BurstReport, OperatorReport, PodsReport, RequestsReport, UpdatesReport};

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// The binary whose `operator` and `pod-controller` are run.
    pub program: PathBuf,
    /// CapacityRequests.
    pub requests: usize,
    /// Changes that are timed while requests are acknowledged, and as many after.
    pub changes: usize,
    /// Machines that change at once.
    pub updates: usize,
    /// Pods.
    pub pods: usize,
    /// Pods a second in the burst.
    pub burst_rate: usize,
    /// How long the burst lasts.
    pub burst: Duration,
}

/// Writes a second that the processes are given (`--qps`).
const QPS: usize = 200;

/// Measures an operator and a pod controller.
pub async fn operator(
    settings: &OperatorSettings,
    progress: Progress<'_>,
) -> Result<OperatorReport, NotMeasured> {
    progress("starting a cluster", 0, 1);
    let cluster = cluster::BenchCluster::start().await?;
    let measured = parts(settings, &cluster, progress).await;
    // What the API server says of itself explains more than what was asked of it.
    measured.map_err(|why| match why {
        NotMeasured::Wrong(why) => NotMeasured::Wrong(format!("{why}\n{}", cluster.world.logs())),
        other => other,
    })
}

async fn parts(
    settings: &OperatorSettings,
    cluster: &cluster::BenchCluster,
    progress: Progress<'_>,
) -> Result<OperatorReport, NotMeasured> {
    let (requests, operator) = requests::run(settings, cluster, progress).await?;
    let updates = updates::run(settings, cluster, &operator, progress).await?;
    drop(operator);
    let pods = pods::run(settings, cluster, progress).await?;
    Ok(OperatorReport {
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        qps: QPS,
        requests,
        updates,
        pods,
    })
}

/// What the API server and its store take from now on.
struct ServerMeter {
    server: Option<Meter>,
    store: Option<Meter>,
}

impl ServerMeter {
    fn start(world: &World) -> Self {
        let pids = world.pids();
        let of = |name: &str| {
            let found = pids.iter().find(|(program, _)| *program == name);
            found.map(|(_, pid)| Meter::start(*pid))
        };
        Self {
            server: of("kube-apiserver"),
            store: of("etcd"),
        }
    }

    /// The API server's, and its store's.
    fn read(&self) -> (Option<ProcessCost>, Option<ProcessCost>) {
        let read = |meter: &Option<Meter>| meter.as_ref().and_then(Meter::read);
        (read(&self.server), read(&self.store))
    }
}
