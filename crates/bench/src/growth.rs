//! Growth: what the same churn costs in a fleet ten times as large.
//!
//! ```text
//! a tenth of the fleet, all of it churning      ── a cycle ──┐
//! the whole fleet, as many clusters churning    ── a cycle ──┴── in turns ──▶ ratio
//! ```
//!
//! A cycle should cost what changed, not what is there. Both are measured in turns, so that whatever else
//! the machine does meanwhile slows both.

use crate::{
    Percentiles, Progress, Settings,
    checks::{Check, Promises, ratio},
    rig::Rig,
};
use bigfleet_workloads::{Churn, Preset, Rates, Workload};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Cycles before the first that counts: they fill both fleets with machines on their way.
const WARM_UP: usize = 10;

/// The same churn in two fleets.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// The workload that is a tenth as large.
    pub smaller: String,
    /// Clusters that churn in either.
    pub churning_clusters: usize,
    /// A steady cycle of the smaller fleet.
    pub smaller_steady_ms: Percentiles,
    /// A steady cycle of this one.
    pub steady_ms: Percentiles,
    /// How many times as long it takes here, by the middle of each.
    pub time_ratio: Option<f64>,
    /// How many times as many Needs, machines and classes are looked at here. The same in every run.
    pub work_ratio: Option<f64>,
}

impl Promises for Growth {
    fn checks(&self) -> Vec<Check> {
        let mut checks = vec![Check::at_most("growth_work_ratio", self.work_ratio, 1.5)];
        // A tenth of the 50k fleet fits into the processor's caches, so its time promises nothing.
        if self.smaller == Preset::FiftyK.name() {
            checks.push(Check::at_most("growth_time_ratio", self.time_ratio, 1.5));
        }
        checks
    }
}

/// Measures this fleet against a tenth of it, where there is such a workload.
pub(crate) fn growth(
    settings: Settings,
    rig: &mut Rig<'_>,
    progress: Progress<'_>,
) -> Option<Growth> {
    let smaller = match settings.preset {
        Preset::FiveHundredK => Preset::FiftyK,
        Preset::FiftyK => Preset::FiveK,
        Preset::Dev50
        | Preset::CoLocated
        | Preset::FiveK
        | Preset::FiveKTold
        | Preset::CostRouting5k => return None,
    };
    progress("loading a tenth of it", 0, 1);
    let workload = smaller.build(settings.seed);
    let clusters = workload.counts().clusters;
    let mut small = Rig::load(&workload);
    small.decide_full();
    let mut small = Churning::new(&workload, &mut small, settings.seed, clusters);
    let mut large = Churning::new(rig.workload(), rig, settings.seed, clusters);
    for cycle in 0..WARM_UP + settings.cycles {
        if cycle == WARM_UP {
            small.forget();
            large.forget();
        }
        progress("growth", cycle, WARM_UP + settings.cycles);
        small.cycle();
        large.cycle();
    }
    let smaller_steady_ms = Percentiles::of(&small.times, Duration::from_millis(1));
    let steady_ms = Percentiles::of(&large.times, Duration::from_millis(1));
    Some(Growth {
        smaller: smaller.name().to_owned(),
        churning_clusters: clusters,
        time_ratio: ratio(steady_ms.p50, smaller_steady_ms.p50),
        work_ratio: ratio(large.touched() as f64, small.touched() as f64),
        smaller_steady_ms,
        steady_ms,
    })
}

/// A fleet of which some clusters change.
struct Churning<'a, 'w> {
    rig: &'a mut Rig<'w>,
    churn: Churn<'w>,
    times: Vec<Duration>,
    touched_before: u64,
}

impl<'a, 'w> Churning<'a, 'w> {
    fn new(workload: &'w Workload, rig: &'a mut Rig<'w>, seed: u64, clusters: usize) -> Self {
        let rates = Rates {
            clusters,
            ..Rates::default()
        };
        Self {
            rig,
            churn: Churn::with(workload, seed, rates),
            times: Vec::new(),
            touched_before: 0,
        }
    }

    fn cycle(&mut self) {
        self.rig.wait();
        let facts = self.rig.next_facts(&mut self.churn);
        let clock = Instant::now();
        self.rig.take_in(&facts);
        self.rig.decide();
        self.times.push(clock.elapsed());
    }

    fn forget(&mut self) {
        self.times.clear();
        self.touched_before = self.rig.touched();
    }

    /// Needs, machines and classes looked at since.
    fn touched(&self) -> u64 {
        self.rig.touched() - self.touched_before
    }
}
