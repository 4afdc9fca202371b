//! What a decision costs.

use crate::{
    Percentiles,
    closed_loop::{ClosedLoop, Moved},
    memory::peak_mb,
    percentiles::rounded,
};
use bigfleet_engine::{Engine, KnownRow};
use bigfleet_model::{ClusterId, Need, Row, Time};
use bigfleet_workloads::{CYCLE, ChangedRow, Churn, Preset, Rates, Workload};
use serde::Serialize;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The workload.
    pub preset: Preset,
    /// The seed it is drawn from.
    pub seed: u64,
    /// How many cycles of each kind.
    pub cycles: usize,
    /// Churn in the first so many clusters only, to compare fleets at the same absolute churn.
    pub churning_clusters: Option<usize>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct DecideReport {
    /// The workload.
    pub profile: String,
    /// The seed it is drawn from.
    pub seed: u64,
    /// Machines of all tiers.
    pub machines: usize,
    /// Distinct shapes, prices included.
    pub shapes: usize,
    /// Distinct profiles, folded forms included.
    pub profiles: usize,
    /// Rows as received.
    pub rows: usize,
    /// Rows after folding.
    pub rows_after_fold: usize,
    /// From raw records to ready.
    pub load_ms: f64,
    /// Everything computed anew.
    pub full_ms: Percentiles,
    /// One cycle at the catalog's churn, ingest of what changed included.
    pub steady_ms: Percentiles,
    /// One cycle in which nothing changed.
    pub quiet_us: Percentiles,
    /// Rows that differ from the cycle before, on average.
    pub changed_rows_per_cycle: f64,
    /// Machines that differ from the cycle before, on average.
    pub changed_machines_per_cycle: f64,
    /// Bytes of a hot record.
    pub hot_bytes_per_machine: f64,
    /// The most memory the process needed.
    pub peak_rss_mb: Option<f64>,
    /// The digest of the first full decision: faster but different is a bug.
    pub digest: String,
    /// The naive transcription on the same fleet, where it can run.
    pub oracle_ms: Option<f64>,
}

/// What is being measured, for whoever shows progress.
pub type Progress<'a> = &'a mut dyn FnMut(&'static str, usize);

/// Measures the engine on one workload.
pub fn decide(settings: Settings, progress: Progress<'_>) -> DecideReport {
    let Settings {
        preset,
        seed,
        cycles,
        churning_clusters,
    } = settings;
    progress("drawing the workload", 0);
    let workload = preset.build(seed);
    let start = at(3600.0);

    progress("loading", 0);
    let mut engine = Engine::new();
    let mut closed_loop = ClosedLoop::default();
    let clock = Instant::now();
    let mut known = load(&workload, &mut engine, &mut closed_loop);
    engine.decide_full(start);
    let load_ms = millis(clock.elapsed());
    let peak_rss_mb = peak_mb();
    let digest = engine.decision().digest().to_string();
    let counts = engine.counts();

    let full = measure(cycles.min(30), |cycle| {
        progress("full cycles", cycle);
        let clock = Instant::now();
        engine.decide_full(start);
        clock.elapsed()
    });
    let quiet = measure(cycles.max(100), |cycle| {
        progress("quiet cycles", cycle);
        let now = after(start, cycle);
        let clock = Instant::now();
        engine.decide(now);
        clock.elapsed()
    });
    let rates = Rates {
        clusters: churning_clusters.unwrap_or(usize::MAX),
        ..Rates::default()
    };
    let mut churn = Churn::with(&workload, seed, rates);
    let (mut changed_rows, mut changed_machines) = (0, 0);
    let steady = measure(cycles, |cycle| {
        progress("steady cycles", cycle);
        let now = after(start, cycles.max(100) + cycle);
        let (rows, machines) = next_facts(&workload, &mut churn, &mut closed_loop, &engine, now);
        changed_rows += rows.len();
        changed_machines += machines.len();
        let clock = Instant::now();
        for changed in &rows {
            changed.put(&mut engine, &mut known);
        }
        for moved in &machines {
            moved.put(&mut engine);
        }
        engine.decide(now);
        clock.elapsed()
    });
    let per_cycle = |count: usize| rounded(count as f64 / cycles.max(1) as f64);
    DecideReport {
        profile: preset.name().to_owned(),
        seed,
        machines: counts.machines,
        shapes: counts.shapes,
        profiles: counts.profiles,
        rows: counts.rows,
        rows_after_fold: counts.rows_after_fold,
        load_ms,
        full_ms: Percentiles::of(&full, Duration::from_millis(1)),
        steady_ms: Percentiles::of(&steady, Duration::from_millis(1)),
        quiet_us: Percentiles::of(&quiet, Duration::from_micros(1)),
        changed_rows_per_cycle: per_cycle(changed_rows),
        changed_machines_per_cycle: per_cycle(changed_machines),
        hot_bytes_per_machine: counts.record_bytes as f64,
        peak_rss_mb,
        oracle_ms: oracle_ms(preset, &workload, &digest, progress),
        digest,
    }
}

/// How long the naive transcription takes, where somebody would wait for it.
fn oracle_ms(
    preset: Preset,
    workload: &Workload,
    digest: &str,
    progress: Progress<'_>,
) -> Option<f64> {
    match preset {
        Preset::CoLocated | Preset::Dev50 | Preset::FiveK => {}
        Preset::FiftyK | Preset::FiveHundredK | Preset::CostRouting5k => return None,
    }
    progress("the oracle", 0);
    let fleet = workload.fleet();
    let clock = Instant::now();
    let decision = bigfleet_oracle::decide(&fleet);
    let elapsed = clock.elapsed();
    assert_eq!(
        decision.digest().to_string(),
        digest,
        "faster but different is a bug"
    );
    Some(millis(elapsed))
}

/// The engine's handle of every row, by cluster and number.
type KnownRows = Vec<Vec<Option<KnownRow>>>;

fn load(workload: &Workload, engine: &mut Engine, closed_loop: &mut ClosedLoop) -> KnownRows {
    let mut known = Vec::new();
    for cluster in workload.clusters() {
        engine.ready(cluster.id());
        let put = |row| Some(engine.put_row(&need(cluster.id(), row)));
        known.push(cluster.rows().map(put).collect());
    }
    closed_loop.load(workload, engine);
    known
}

fn need(cluster: &ClusterId, row: Row) -> Need {
    Need {
        cluster: cluster.clone(),
        row,
        arrival: at(1.0),
        parked: false,
    }
}

/// A row that differs from the cycle before.
struct Changed {
    at: ChangedRow,
    need: Need,
    is_gone: bool,
}

impl Changed {
    fn put(&self, engine: &mut Engine, known: &mut KnownRows) {
        let held = &mut known[self.at.cluster as usize][self.at.row as usize];
        match (self.is_gone, *held) {
            (true, _) => {
                engine.remove_row(&self.need);
                *held = None;
            }
            (false, Some(row)) => engine.update_row(row, &self.need),
            (false, None) => *held = Some(engine.put_row(&self.need)),
        }
    }
}

/// What the world sends before the next cycle.
fn next_facts(
    workload: &Workload,
    churn: &mut Churn<'_>,
    closed_loop: &mut ClosedLoop,
    engine: &Engine,
    now: Time,
) -> (Vec<Changed>, Vec<Moved>) {
    let changes = churn.next_cycle().clone();
    let mut rows = Vec::new();
    for at in changes.rows {
        let cluster = workload.cluster(at.cluster as usize);
        let present = churn.row(at);
        let is_gone = present.is_none();
        let row = present.or_else(|| cluster.rows().nth(at.row as usize));
        rows.extend(row.map(|row| Changed {
            at,
            need: need(cluster.id(), row),
            is_gone,
        }));
    }
    let mut machines = closed_loop.happen(engine, now);
    machines.extend(
        changes
            .lost
            .iter()
            .filter_map(|lost| closed_loop.lost(engine, lost)),
    );
    (rows, machines)
}

fn measure(cycles: usize, mut cycle: impl FnMut(usize) -> Duration) -> Vec<Duration> {
    (0..cycles).map(&mut cycle).collect()
}

fn at(seconds: f64) -> Time {
    Time::from_seconds(seconds).unwrap_or_default()
}

fn after(start: Time, cycles: usize) -> Time {
    at(start.seconds() + CYCLE.as_secs_f64() * (cycles + 1) as f64)
}

fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}
