//! A shard around the smallest workload: the bench runs, and what it measures is a shard at work.

use bigfleet_bench::{Settings, Shard, core};
use bigfleet_workloads::{Churn, Preset};

const SEED: u64 = 1;

#[test]
fn a_smoke_size_run_measures_a_shard_at_work() {
    let settings = Settings {
        preset: Preset::Dev50,
        seed: SEED,
        cycles: 20,
        churning_clusters: None,
    };
    let mut phases = Vec::new();
    let report = core(settings, &mut |phase, _, _| phases.push(phase));
    phases.dedup();
    assert!(phases.contains(&"steady cycles"), "{phases:?}");
    assert_eq!((report.profile.as_str(), report.clusters), ("dev-50", 2));
    assert!(0.0 < report.events_per_cycle && 0.0 < report.records_per_cycle);
    assert!(report.records_per_cycle < report.bytes_persisted_per_cycle);
}

/// The seeded fleet is steady: what a shard makes of it after a restart is nothing.
#[test]
fn a_seeded_fleet_that_does_not_change_is_left_alone() {
    let workload = Preset::Dev50.build(SEED);
    let (mut shard, _) = Shard::load(&workload);
    for _ in 0..5 {
        shard.quiet_cycle();
    }
    assert_eq!(shard.core().counters().actions.len(), 0);
    assert_eq!(shard.core().shortfalls().count(), 0);
    let mut churn = Churn::new(&workload, SEED);
    let written: u64 = (0..20).map(|_| shard.cycle(&mut churn).records).sum();
    assert!(0 < written);
    let machines = shard.core().summary().machines as usize;
    assert_eq!(machines, workload.counts().machines);
}
