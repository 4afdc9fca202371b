//! What a decision costs.

use crate::{
    Percentiles, Progress,
    checks::{Check, Promises, ratio},
    growth::{Growth, growth},
    memory::peak_mb,
    percentiles::{millis, rounded},
    pinned,
    rig::Rig,
    told::{Told, told},
};
use bigfleet_workloads::{Churn, Preset, Rates, Workload};
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
    /// The same churn here and in a tenth of this fleet, where there is such a workload.
    pub growth: Option<Growth>,
    /// What it costs that clusters tell more than sums, where that is measured.
    pub told: Option<Told>,
}

impl Promises for DecideReport {
    fn checks(&self) -> Vec<Check> {
        let mut checks = vec![
            Check::at_most("quiet_us_p99", self.quiet_us.p99, 50.0),
            Check::at_most("full_ms_p50", self.full_ms.p50, 50.0),
            Check::at_most("load_ms", self.load_ms, 3000.0),
            Check::at_most("peak_rss_mb", self.peak_rss_mb, 430.0),
            Check::at_most("hot_bytes_per_machine", self.hot_bytes_per_machine, 48.0),
        ];
        if self.profile == Preset::FiftyK.name() {
            checks.push(Check::at_most("steady_ms_p99", self.steady_ms.p99, 5.0));
        }
        if let Some(digest) = pinned::digest(&self.profile, self.seed) {
            let differ = f64::from(u8::from(digest != self.digest));
            checks.push(Check::at_most("digests_that_differ", differ, 0.0));
        }
        if let Some(oracle_ms) = self.oracle_ms {
            // The smallest fleet is there to see that it runs: its full cycle is too short to compare.
            if self.profile != Preset::Dev50.name() {
                let times = ratio(oracle_ms, self.full_ms.p50);
                checks.push(Check::at_least("oracle_over_full", times, 100.0));
            }
        }
        checks.extend(self.growth.iter().flat_map(Promises::checks));
        checks.extend(self.told.iter().flat_map(Promises::checks));
        checks
    }
}

/// Measures the engine on one workload.
pub fn decide(settings: Settings, progress: Progress<'_>) -> DecideReport {
    let Settings {
        preset,
        seed,
        cycles,
        churning_clusters,
    } = settings;
    progress("drawing the workload", 0, 1);
    let workload = preset.build(seed);

    progress("loading", 0, 1);
    let clock = Instant::now();
    let mut rig = Rig::load(&workload);
    rig.decide_full();
    let load_ms = millis(clock.elapsed());
    let digest = rig.engine().digest().to_string();
    let counts = rig.engine().counts();

    let full = measure(cycles.min(30), "full cycles", progress, || {
        let clock = Instant::now();
        rig.decide_full();
        clock.elapsed()
    });
    let quiet = measure(cycles.max(100), "quiet cycles", progress, || {
        rig.wait();
        let clock = Instant::now();
        rig.decide();
        clock.elapsed()
    });
    let rates = Rates {
        clusters: churning_clusters.unwrap_or(usize::MAX),
        ..Rates::default()
    };
    let mut churn = Churn::with(&workload, seed, rates);
    let (mut changed_rows, mut changed_machines) = (0, 0);
    let steady = measure(cycles, "steady cycles", progress, || {
        rig.wait();
        let facts = rig.next_facts(&mut churn);
        changed_rows += facts.rows();
        changed_machines += facts.machines();
        let clock = Instant::now();
        rig.take_in(&facts);
        rig.decide();
        clock.elapsed()
    });
    // Before anything is measured that has a fleet of its own.
    let peak_rss_mb = peak_mb(std::process::id());
    let growth = growth(settings, &mut rig, progress);
    let told = told(settings, &workload, progress);
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
        growth,
        told,
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
        Preset::CoLocated | Preset::Dev50 | Preset::FiveK | Preset::FiveKTold => {}
        Preset::FiftyK | Preset::FiveHundredK | Preset::CostRouting5k => return None,
    }
    progress("the oracle", 0, 1);
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

pub(crate) fn measure(
    cycles: usize,
    phase: &'static str,
    progress: Progress<'_>,
    mut cycle: impl FnMut() -> Duration,
) -> Vec<Duration> {
    let mut measured = Vec::with_capacity(cycles);
    for done in 0..cycles {
        progress(phase, done, cycles);
        measured.push(cycle());
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::broken;

    fn report(profile: &str, digest: &str) -> DecideReport {
        DecideReport {
            profile: profile.to_owned(),
            seed: 1,
            machines: 0,
            shapes: 0,
            profiles: 0,
            rows: 0,
            rows_after_fold: 0,
            load_ms: 1.0,
            full_ms: Percentiles::default(),
            steady_ms: Percentiles::default(),
            quiet_us: Percentiles::default(),
            changed_rows_per_cycle: 0.0,
            changed_machines_per_cycle: 0.0,
            hot_bytes_per_machine: 40.0,
            peak_rss_mb: Some(1.0),
            digest: digest.to_owned(),
            oracle_ms: None,
            growth: None,
            told: None,
        }
    }

    #[test]
    fn another_digest_breaks_a_promise() {
        assert!(broken(&report("5k", pinned::FIVE_K_DIGEST)).is_empty());
        assert_eq!(
            broken(&report("5k", "another")),
            ["digests_that_differ_at_most"]
        );
        let other_seed = DecideReport {
            seed: 2,
            ..report("5k", "another")
        };
        assert!(broken(&other_seed).is_empty(), "no digest is pinned for it");
    }

    #[test]
    fn five_milliseconds_are_promised_at_50k() {
        let slow = |profile, digest| DecideReport {
            steady_ms: Percentiles {
                p99: 5.001,
                ..Percentiles::default()
            },
            ..report(profile, digest)
        };
        let digest = pinned::digest("50k", 1).unwrap();
        assert_eq!(broken(&slow("50k", digest)), ["steady_ms_p99_at_most"]);
        let digest = pinned::digest("500k", 1).unwrap();
        assert!(broken(&slow("500k", digest)).is_empty());
    }

    #[test]
    fn memory_that_is_not_known_breaks_a_promise() {
        let unknown = DecideReport {
            peak_rss_mb: None,
            ..report("dev-50", "")
        };
        assert_eq!(broken(&unknown), ["peak_rss_mb_at_most"]);
    }
}
