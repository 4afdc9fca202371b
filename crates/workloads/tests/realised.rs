//! What is drawn is what the catalog says: the realised mix, counted, over several seeds.

use bigfleet_model::{INSTANCE_TYPE_KEY, Row, WhenUnsatisfiable};
use bigfleet_workloads::{ARCHETYPE_KEY, Counts, Preset, RACK_KEY, Tier, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Machines of a tier by archetype, in per cent.
fn machine_mix(workload: &Workload, tier: Tier) -> BTreeMap<String, f64> {
    let mut mix = BTreeMap::new();
    let mut all = 0.0;
    for machine in workload.machines().filter(|machine| machine.tier == tier) {
        let labels = &workload.shapes()[machine.shape()].labels;
        *mix.entry(labels[ARCHETYPE_KEY].clone()).or_insert(0.0) += 1.0;
        all += 1.0;
    }
    mix.values_mut().for_each(|share| *share *= 100.0 / all);
    mix
}

fn check_mix(mix: &BTreeMap<String, f64>, table: &[(&str, f64, f64)]) {
    assert_eq!(mix.len(), table.len(), "{mix:?}");
    for (name, want, tolerance) in table {
        assert!(
            (mix[*name] - want).abs() <= *tolerance,
            "{name}: {} not {want}",
            mix[*name]
        );
    }
}

/// workloads.md §2.1: the machine mix, after floors. Quota is split by share; serving machines follow the draw, a
/// little above the shares for caches and databases because each row rounds up.
#[test]
fn the_machine_mix_is_the_target_in_every_tier() {
    let workload = Preset::FiftyK.build(1);
    let exact = [
        ("tiny-stateless", 66.4, 0.06),
        ("cpu-service", 11.4, 0.06),
        ("cpu-batch", 5.7, 0.06),
        ("critical-realtime", 0.95, 0.06),
        ("memory-cache", 1.55, 0.06),
        ("stateful-db", 1.55, 0.06),
        ("gpu-inference", 5.2, 0.06),
        ("gpu-training-small", 3.1, 0.06),
        ("gpu-training-medium", 4.2, 0.06),
    ];
    check_mix(&machine_mix(&workload, Tier::Speculative), &exact);
    for seed in 1..4 {
        let workload = Preset::FiftyK.build(seed);
        let drawn = [
            ("tiny-stateless", 65.4, 1.5),
            ("cpu-service", 11.3, 0.6),
            ("cpu-batch", 5.7, 0.5),
            ("critical-realtime", 1.1, 0.3),
            ("memory-cache", 2.05, 0.1),
            ("stateful-db", 2.05, 0.1),
            ("gpu-inference", 5.2, 1.0),
            ("gpu-training-small", 3.0, 0.6),
            ("gpu-training-medium", 4.2, 0.9),
        ];
        check_mix(&machine_mix(&workload, Tier::Configured), &drawn);
    }
}

/// workloads.md §2.1: Pods by priority and by spread, recovered from the rows by their CPU.
#[test]
fn the_pod_mix_is_the_derived_one() {
    let workload = Preset::FiftyK.build(2);
    let (mut cpu, mut spread, mut hard) = (BTreeMap::<(i32, String), f64>::new(), 0.0, 0.0);
    for row in workload.clusters().flat_map(|cluster| cluster.rows()) {
        let Row {
            profile, aggregate, ..
        } = &row;
        let types = profile
            .requirements()
            .iter()
            .find(|r| r.key() == INSTANCE_TYPE_KEY)
            .unwrap();
        let kind = (profile.priority(), types.values()[0].clone());
        // Mean CPU of a Pod of the archetype, in milli-units.
        let per_pod = match (kind.0, kind.1.as_str()) {
            (100, "m6i.large") => 360.0,
            (100, _) => 5600.0,
            (1_000_000, _) => 4000.0,
            (1000, "m6i.2xlarge") => 2800.0,
            (1000, "r6i.2xlarge") => {
                if profile.interruption().dollars().dollars() == 4096.0 {
                    2000.0
                } else {
                    8000.0
                }
            }
            (1000, "a2-highgpu-8g") => 8000.0,
            _ => 64000.0,
        };
        let pods = aggregate.get("cpu") as f64 / per_pod;
        *cpu.entry(kind).or_default() += pods;
        for carried in profile.spread() {
            spread += pods;
            hard += if carried.when() == WhenUnsatisfiable::DoNotSchedule {
                pods
            } else {
                0.0
            };
        }
    }
    let all: f64 = cpu.values().sum();
    assert!((all / 5e6 - 1.0).abs() < 0.01, "{all}");
    let priority = |p| {
        100.0
            * cpu
                .iter()
                .filter(|(k, _)| k.0 == p)
                .map(|(_, n)| n)
                .sum::<f64>()
            / all
    };
    assert!((priority(100) - 82.0).abs() < 0.8, "{}", priority(100));
    assert!((priority(1000) - 17.0).abs() < 0.8, "{}", priority(1000));
    assert!(
        (priority(1_000_000) - 1.1).abs() < 0.2,
        "{}",
        priority(1_000_000)
    );
    assert!(
        (100.0 * spread / all - 46.0).abs() < 1.5,
        "{}",
        100.0 * spread / all
    );
    assert!(
        (100.0 * hard / all - 11.0).abs() < 0.8,
        "{}",
        100.0 * hard / all
    );
}

/// workloads.md §2.1: about 230 rows per cluster as received and about 20 once gangs have folded.
#[test]
fn a_cluster_reports_230_rows_and_20_are_left_after_folding() {
    let workload = Preset::FiftyK.build(1);
    let mean = |of: fn(bigfleet_workloads::Cluster<'_>) -> usize| {
        workload.clusters().map(of).sum::<usize>() as f64 / 200.0
    };
    let (rows, folded) = (mean(|c| c.row_count()), mean(|c| c.folded_row_count()));
    assert!((225.0..240.0).contains(&rows), "{rows}");
    assert!((16.0..21.0).contains(&folded), "{folded}");
    for cluster in workload.clusters() {
        let rows: Vec<Row> = cluster.rows().collect();
        assert_eq!(rows.len(), cluster.row_count());
        let plain = rows.iter().filter(|row| row.group.is_empty()).count();
        assert!((7..=9).contains(&plain), "{plain}");
        let keys: BTreeSet<_> = rows
            .iter()
            .map(|row| (row.profile.clone(), row.group.clone()))
            .collect();
        assert_eq!(
            keys.len(),
            rows.len(),
            "no two rows are equal in profile and gang"
        );
        assert_eq!(cluster.pods(), 25_000);
    }
}

/// workloads.md §3.3: free tiers are sized exactly; the serving tier follows the draw, whole machines per row.
#[test]
fn tiers_have_the_size_the_rules_say() {
    let five = Preset::FiveK.build(1).counts();
    assert_eq!((five.idle, five.speculative), (1_157, 17_352));
    assert_eq!((five.clusters, five.pods), (20, 500_000));
    for (preset, effective) in [(Preset::FiveK, 5_784.0), (Preset::FiftyK, 56_892.0)] {
        for seed in 1..5 {
            let configured = preset.build(seed).counts().configured as f64;
            assert!(
                (configured / effective - 1.02).abs() < 0.06,
                "{configured} of {effective}"
            );
        }
    }
}

#[test]
fn the_largest_preset_is_of_the_size_promised() {
    let workload = Preset::FiveHundredK.build(1);
    let Counts {
        clusters,
        pods,
        rows,
        configured,
        idle,
        speculative,
        machines,
    } = workload.counts();
    assert_eq!((clusters, pods), (2_000, 50_000_000));
    assert_eq!((idle, speculative), (113_595, 1_703_919));
    assert!((460_000..466_000).contains(&rows), "{rows}");
    assert!((575_000..583_000).contains(&configured), "{configured}");
    assert_eq!(workload.machines().count(), machines);
    assert!(
        workload.shapes().len() <= 2_160,
        "{}",
        workload.shapes().len()
    );
    assert_eq!(workload.profiles().len(), 15);
}

/// workloads.md §3.4: every zone and rack, gangs' machines in blocks, and one whole gang acquirable per zone.
#[test]
fn each_zone_can_hold_a_gang_of_every_kind() {
    for preset in [Preset::Dev50, Preset::FiveK] {
        let workload = preset.build(1);
        let mut racks: BTreeMap<(&str, &str), BTreeMap<&str, u32>> = BTreeMap::new();
        for machine in workload.machines().filter(|m| m.tier == Tier::Speculative) {
            let shape = &workload.shapes()[machine.shape()];
            let rack = shape.attribute(RACK_KEY).unwrap();
            let key = (shape.labels[ARCHETYPE_KEY].as_str(), shape.zone.as_str());
            *racks.entry(key).or_default().entry(rack).or_default() += 1;
        }
        let largest = |name: &str| match (name, preset) {
            ("memory-cache" | "stateful-db", _) => 5,
            ("gpu-training-small", Preset::Dev50) => 4,
            ("gpu-training-small", _) => 8,
            ("gpu-training-medium", Preset::FiveK) => 16,
            _ => 1,
        };
        for ((name, zone), racks) in &racks {
            let best = racks.values().max().unwrap();
            assert!(largest(name) <= *best, "{name} in {zone}: {best}");
        }
        assert_eq!(racks.len(), 9 * 3);
    }
}

/// Every cluster has its own stream, so a larger fleet begins with the smaller one's clusters.
#[test]
fn the_first_clusters_are_the_same_at_every_size() {
    let (small, large) = (Preset::FiveK.build(7), Preset::FiftyK.build(7));
    for (a, b) in small.clusters().zip(large.clusters()) {
        assert!(a.rows().eq(b.rows()), "{}", a.id());
    }
}
