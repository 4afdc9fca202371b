//! What a coordinator costs: replicas as processes of this program, asked over real gRPC.
//!
//! ```text
//! three replicas ── leader killed ── next write committed          twenty times
//!                └─ 200 shards report ── cores                     └─ writes by many callers ── per second
//! one replica ── 100,000 domains, 20,000 clusters ── snapshot ── killed ── again ── memory
//! ```
//!
//! Three replicas on one host share its cores and its disk: a real group has three of each.

mod group;
mod reports;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use tokio::task::JoinSet;

use super::report::NotMeasured;
use super::scene::Folder;
use crate::Progress;
use crate::checks::{Check, Promises};
use crate::memory::{peak_mb, resident_mb};
use crate::percentiles::{Percentiles, millis};
use crate::processes::meter::Meter;
use group::{Group, refused};
use reports::Shard;

/// Domains of one change.
const AT_ONCE: usize = 10_000;

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct CoordinatorSettings {
    /// The binary whose `coordinator` is run.
    pub program: PathBuf,
    /// Where data directories are made: that disk is measured.
    pub folder: PathBuf,
    /// How often the leader is killed.
    pub kills: usize,
    /// Shards that report.
    pub shards: usize,
    /// How often each does.
    pub every: Duration,
    /// How long reports and writes are watched, each.
    pub watched: Duration,
    /// Callers that write at once.
    pub callers: usize,
    /// Domains on record.
    pub domains: usize,
    /// Clusters on record.
    pub clusters: usize,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CoordinatorReport {
    /// Cores for all processes together.
    pub cores: usize,
    /// From the kill of the leader to the next write that is committed, in milliseconds.
    pub failover_ms: Percentiles,
    /// Shards that report.
    pub shards: usize,
    /// Between two reports of one.
    pub report_interval_seconds: f64,
    /// Reports answered while they were watched.
    pub reports: usize,
    /// From sending a report to its answer, in milliseconds.
    pub report_ms: Percentiles,
    /// Cores the leader uses for them.
    pub reporting_leader_cores: Option<f64>,
    /// Writes per second, agreed on by all, each on disk at a majority.
    pub writes_per_second: f64,
    /// One of them, in milliseconds.
    pub write_ms: Percentiles,
    /// Domains on record.
    pub domains: usize,
    /// Clusters on record.
    pub clusters: usize,
    /// A snapshot of them, asked for and received.
    pub snapshot_seconds: f64,
    /// Its bytes.
    pub snapshot_bytes: usize,
    /// From the start of a process that has all that on disk to its first answer.
    pub restart_seconds: f64,
    /// Memory after that.
    pub rss_mb: Option<f64>,
    /// The most memory either process ever had.
    pub peak_rss_mb: Option<f64>,
}

impl Promises for CoordinatorReport {
    fn checks(&self) -> Vec<Check> {
        vec![
            Check::at_most("failover_ms_p99", self.failover_ms.p99, 2_000.0),
            Check::at_most("reporting_leader_cores", self.reporting_leader_cores, 0.05),
            Check::at_least("writes_per_second", self.writes_per_second, 1_000.0),
            Check::at_most("snapshot_seconds", self.snapshot_seconds, 1.0),
            Check::at_most("restart_seconds", self.restart_seconds, 2.0),
            Check::at_most("rss_mb", self.rss_mb, 150.0),
        ]
    }
}

/// Starts groups and measures them.
pub async fn coordinator(
    settings: &CoordinatorSettings,
    progress: Progress<'_>,
) -> Result<CoordinatorReport, NotMeasured> {
    let folder = Folder::new(&settings.folder, "coordinator")?;
    let mut three = Group::start(&settings.program, &folder, "three", 3).await?;
    let failover_ms = failovers(settings, &mut three, progress).await?;
    progress("reports", 0, 1);
    let (report_ms, reporting_leader_cores) = reporting(settings, &mut three).await?;
    progress("writes", 0, 1);
    let (writes_per_second, write_ms) = writes(settings, &mut three).await?;
    drop(three);
    progress("tables", 0, 1);
    let full = full(settings, &folder).await?;
    Ok(CoordinatorReport {
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        failover_ms,
        shards: settings.shards,
        report_interval_seconds: settings.every.as_secs_f64(),
        reports: report_ms.count,
        report_ms,
        reporting_leader_cores,
        writes_per_second,
        write_ms,
        domains: settings.domains,
        clusters: settings.clusters,
        snapshot_seconds: full.snapshot_seconds,
        snapshot_bytes: full.snapshot_bytes,
        restart_seconds: full.restart_seconds,
        rss_mb: full.rss_mb,
        peak_rss_mb: full.peak_rss_mb,
    })
}

async fn failovers(
    settings: &CoordinatorSettings,
    group: &mut Group,
    progress: Progress<'_>,
) -> Result<Percentiles, NotMeasured> {
    let shard = &mut Shard::new(0, 0, 1);
    shard.report(group).await?;
    let mut times = Vec::new();
    for nth in 0..settings.kills {
        progress("failovers", nth, settings.kills);
        group.whole().await?;
        let leader = group.leader().await?;
        let clock = Instant::now();
        group.kill(leader);
        group.assign(&format!("failover-{nth}"), shard.id()).await?;
        times.push(clock.elapsed());
        group.restart(leader).await?;
    }
    group.whole().await?;
    Ok(Percentiles::of(&times, Duration::from_millis(1)))
}

/// Every shard reports in its turn, as they do in a fleet that was not started all at once.
async fn reporting(
    settings: &CoordinatorSettings,
    group: &mut Group,
) -> Result<(Percentiles, Option<f64>), NotMeasured> {
    let mut shards: Vec<Shard> = (0..settings.shards)
        .map(|nth| Shard::new(nth, 100, 64))
        .collect();
    // Known, and heard in this reign.
    for shard in &mut shards {
        shard.report(group).await?;
        shard.report(group).await?;
    }
    let leader = group.leader().await?;
    let meter = Meter::start(group.pid(leader)?);
    let began = Instant::now();
    let mut times = Vec::new();
    let apart = settings.every / u32::try_from(shards.len().max(1)).unwrap_or(u32::MAX);
    let mut due = began;
    for nth in (0..shards.len()).cycle() {
        if settings.watched <= began.elapsed() {
            break;
        }
        due += apart;
        tokio::time::sleep_until(due.into()).await;
        let clock = Instant::now();
        shards[nth].report(group).await?;
        times.push(clock.elapsed());
    }
    let cores = meter.read().map(|cost| cost.cores);
    Ok((Percentiles::of(&times, Duration::from_millis(1)), cores))
}

async fn writes(
    settings: &CoordinatorSettings,
    group: &mut Group,
) -> Result<(f64, Percentiles), NotMeasured> {
    let leader = group.leader().await?;
    let (client, until) = (group.client(leader)?, Instant::now() + settings.watched);
    let mut callers = JoinSet::new();
    let began = Instant::now();
    for caller in 0..settings.callers {
        let mut client = client.clone();
        callers.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let request = wire::AssignDomainRequest {
                    topology_key: "rack".to_owned(),
                    topology_value: format!("write-{caller}-{}", times.len()),
                    shard_id: "shard-0".to_owned(),
                };
                let clock = Instant::now();
                client.assign_domain(request).await.map_err(refused)?;
                times.push(clock.elapsed());
            }
            Ok::<_, NotMeasured>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = callers.join_next().await {
        times.extend(ended.map_err(|why| NotMeasured::Wrong(why.to_string()))??);
    }
    let rate = (times.len() as f64 / began.elapsed().as_secs_f64()).round();
    Ok((rate, Percentiles::of(&times, Duration::from_millis(1))))
}

struct Full {
    snapshot_seconds: f64,
    snapshot_bytes: usize,
    restart_seconds: f64,
    rss_mb: Option<f64>,
    peak_rss_mb: Option<f64>,
}

async fn full(settings: &CoordinatorSettings, folder: &Folder) -> Result<Full, NotMeasured> {
    let mut one = Group::start(&settings.program, folder, "one", 1).await?;
    let each = settings.clusters.div_ceil(settings.shards.max(1));
    for nth in 0..settings.shards {
        let mut shard = Shard::new(nth, 0, 0);
        shard.serves(each);
        shard.report(&one).await?;
        shard.report(&one).await?;
    }
    let changes: Vec<wire::DomainChange> = (0..settings.domains)
        .map(|nth| wire::DomainChange {
            topology_key: "rack".to_owned(),
            topology_value: format!("eu-1a-hall-3-rack-{nth}"),
            shard_id: format!("shard-{}", nth % settings.shards.max(1)),
            r#move: false,
        })
        .collect();
    for some in changes.chunks(AT_ONCE) {
        one.change(some.to_vec()).await?;
    }
    let clock = Instant::now();
    let snapshot_bytes = one.snapshot().await?;
    let snapshot_seconds = millis(clock.elapsed()) / 1_000.0;
    let before = peak_mb(one.pid(0)?);
    one.kill(0);
    let clock = Instant::now();
    one.restart(0).await?;
    let known = one.domains().await?;
    let restart_seconds = millis(clock.elapsed()) / 1_000.0;
    if known != settings.domains {
        let problem = format!("{known} of {} domains were there again", settings.domains);
        return Err(NotMeasured::Wrong(problem));
    }
    let pid = one.pid(0)?;
    let peak_rss_mb = peak_mb(pid).zip(before).map(|(one, other)| one.max(other));
    Ok(Full {
        snapshot_seconds,
        snapshot_bytes,
        restart_seconds,
        rss_mb: resident_mb(pid),
        peak_rss_mb,
    })
}
