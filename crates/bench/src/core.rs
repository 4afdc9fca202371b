//! What a whole shard costs: deciding, committing and remembering, around the same workloads.

use crate::{
    Percentiles, Progress, Settings,
    checks::{Check, Promises, ratio},
    decide::measure,
    memory::peak_mb,
    percentiles::{millis, rounded},
    shard::{Measured, Shard},
};
use bigfleet_workloads::{Churn, Preset, Rates};
use serde::Serialize;
use std::time::Duration;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CoreReport {
    /// The workload.
    pub profile: String,
    /// The seed it is drawn from.
    pub seed: u64,
    /// Machines of all tiers.
    pub machines: usize,
    /// Clusters, each with its operator.
    pub clusters: usize,
    /// Rows as received.
    pub rows: usize,
    /// The first full List, every operator and every roll-up, with their cycles.
    pub load_ms: f64,
    /// One cycle at the catalog's churn: decided, committed, its write handed out.
    pub cycle_ms: Percentiles,
    /// What a cycle's time brings beside: whole roll-ups of every cluster that changed, answers.
    pub events_ms: Percentiles,
    /// How many such events, on average.
    pub events_per_cycle: f64,
    /// One cycle in which nothing happened.
    pub quiet_us: Percentiles,
    /// Actions committed in a cycle, on average.
    pub actions_per_cycle: f64,
    /// Records handed out in a cycle.
    pub records_per_cycle: f64,
    /// What they hold, without a file's framing.
    pub bytes_persisted_per_cycle: f64,
    /// The most memory the process needed.
    pub peak_rss_mb: Option<f64>,
}

impl Promises for CoreReport {
    fn checks(&self) -> Vec<Check> {
        let is = |preset: Preset| self.profile == preset.name();
        let mut checks = Vec::new();
        if !is(Preset::FiveHundredK) {
            checks.push(Check::at_most("cycle_ms_p99", self.cycle_ms.p99, 10.0));
        }
        // In the smallest fleet so little changes that a quiet cycle is no shorter.
        if !is(Preset::Dev50) {
            let share = ratio(self.quiet_us.p50 / 1000.0, self.cycle_ms.p50);
            checks.push(Check::at_most("quiet_over_cycle", share, 0.1));
        }
        checks
    }
}

/// Measures a shard on one workload.
pub fn core(settings: Settings, progress: Progress<'_>) -> CoreReport {
    let (seed, cycles) = (settings.seed, settings.cycles);
    progress("drawing the workload", 0, 1);
    let workload = settings.preset.build(seed);
    let counts = workload.counts();
    progress("loading", 0, 1);
    let (mut shard, load) = Shard::load(&workload);
    // What the first look at the fleet sets in motion comes to its end.
    for _ in 0..3 {
        shard.quiet_cycle();
    }
    let quiet = measure(cycles.max(100), "quiet cycles", progress, || {
        shard.quiet_cycle()
    });
    let rates = Rates {
        clusters: settings.churning_clusters.unwrap_or(usize::MAX),
        ..Rates::default()
    };
    let mut churn = Churn::with(&workload, seed, rates);
    let acted = |shard: &Shard<'_>| shard.core().counters().actions.values().sum::<u64>();
    let before = acted(&shard);
    let mut steady: Vec<Measured> = Vec::with_capacity(cycles);
    for done in 0..cycles {
        progress("steady cycles", done, cycles);
        steady.push(shard.cycle(&mut churn));
    }
    let actions = acted(&shard) - before;
    let per_cycle = |count: u64| rounded(count as f64 / cycles.max(1) as f64);
    let durations = |of: fn(&Measured) -> Duration| {
        let all: Vec<Duration> = steady.iter().map(of).collect();
        Percentiles::of(&all, Duration::from_millis(1))
    };
    let sum = |of: fn(&Measured) -> u64| per_cycle(steady.iter().map(of).sum());
    CoreReport {
        profile: settings.preset.name().to_owned(),
        seed,
        machines: counts.machines,
        clusters: counts.clusters,
        rows: counts.rows,
        load_ms: millis(load),
        cycle_ms: durations(|one| one.cycle),
        events_ms: durations(|one| one.events),
        events_per_cycle: sum(|one| one.count as u64),
        quiet_us: Percentiles::of(&quiet, Duration::from_micros(1)),
        actions_per_cycle: per_cycle(actions),
        records_per_cycle: sum(|one| one.records),
        bytes_persisted_per_cycle: sum(|one| one.bytes),
        peak_rss_mb: peak_mb(std::process::id()),
    }
}
