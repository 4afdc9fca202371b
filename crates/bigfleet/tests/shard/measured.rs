//! What a shard says of its own work, read from outside: how long the phases of its cycles take, and the
//! attribution probe.

use crate::open_metrics;
use crate::shard_scene::operator::{Manner, Operator, cpus, row};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, provider, shard, until};
use bigfleet_wire::v1alpha1 as wire;
use std::collections::BTreeMap;

const PHASES: [&str; 7] = [
    "reconcile",
    "snapread",
    "phase1",
    "phase2",
    "phase3",
    "emit",
    "execute",
];

/// Count and sum of every histogram of one name in one scrape, by the value of its only label.
fn histograms(scrape: &str, name: &str) -> BTreeMap<String, (f64, f64)> {
    let mut found: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in scrape.lines() {
        let Some((what, rest)) = line.strip_prefix(name).and_then(|rest| {
            let part = ["_count", "_sum"];
            let part = part.into_iter().find(|part| rest.starts_with(*part))?;
            Some((part, &rest[part.len()..]))
        }) else {
            continue;
        };
        let (labels, value) = rest.rsplit_once(' ').unwrap();
        let label = labels.split('"').nth(1).unwrap_or_default();
        let entry = found.entry(label.to_owned()).or_default();
        match what {
            "_count" => entry.0 = value.parse().unwrap(),
            _ => entry.1 = value.parse().unwrap(),
        }
    }
    found
}

#[tokio::test]
async fn the_phases_of_its_cycles_add_up_to_them() {
    let folder = Folder::new("phases");
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", 2)])]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    let (cycles, phases) = until("every phase, more than once", async || {
        let scrape = shard.http("/metrics");
        let cycles = histograms(&scrape, "bigfleet_shard_cycle_duration_seconds");
        let phases = histograms(&scrape, "bigfleet_shard_cycle_phase_duration_seconds");
        let seen = |phase: &&str| phases.get(*phase).is_some_and(|(count, _)| 1.0 < *count);
        (PHASES.iter().all(seen), (cycles, phases))
    })
    .await;
    let (count, took) = cycles[""];
    let in_cycle: Vec<_> = PHASES[1..].iter().map(|phase| phases[*phase]).collect();
    assert!(
        in_cycle.iter().all(|(of_phase, _)| *of_phase == count),
        "each cycle has each phase once: {count} cycles, {phases:?}"
    );
    let sum: f64 = in_cycle.iter().map(|(_, seconds)| seconds).sum();
    assert!(
        (sum - took).abs() < 1e-6,
        "{sum} s in phases, {took} s in cycles"
    );
    for busy in ["reconcile", "snapread", "phase1", "execute"] {
        assert!(0.0 < phases[busy].1, "{busy} takes time: {phases:?}");
    }
    assert!(phases["reconcile"].0 <= count, "at most once per cycle");
    assert_eq!(phases.len(), PHASES.len(), "{phases:?}");
}

/// A query language makes nothing of a histogram that does not end in +Inf.
#[tokio::test]
async fn its_page_is_open_metrics_and_every_histogram_gives_a_quantile() {
    let folder = Folder::new("open-metrics");
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", 2)])]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    let page = until("a cycle that was measured", async || {
        let page = open_metrics::parse(&shard.page("/metrics")).unwrap();
        let cycles = "bigfleet_shard_cycle_duration_seconds".to_owned();
        let measured = page.histograms.get(&(cycles, Vec::new()));
        (measured.is_some_and(|one| 0.0 < one.count()), page)
    })
    .await;
    assert!(10 < page.histograms.len() && 100 < page.samples.len());
    let mut quantiles = 0;
    for (name, histogram) in &page.histograms {
        if 0.0 < histogram.count() {
            let quantile = histogram.quantile(0.99);
            assert!(
                quantile.is_some_and(f64::is_finite),
                "{name:?}: {quantile:?}"
            );
            quantiles += 1;
        }
    }
    assert!(3 < quantiles, "{quantiles}");
}

#[tokio::test]
async fn a_probed_shard_logs_what_it_left_short_every_twentieth_cycle() {
    let folder = Folder::new("probe");
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", 2)])]);
    let mut shard = shard(
        &folder.file("data"),
        cloud.addr,
        &["--phase-attribution-log"],
    );
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    let same_rack = wire::NodeSelectorRequirement {
        key: "rack-nobody-has".to_owned(),
        operator: wire::node_selector_requirement::Operator::Same.into(),
        values: Vec::new(),
    };
    let gang = wire::CapacityNeed {
        requirements: vec![same_rack],
        group: "g1".to_owned(),
        ..row(8, 100, "")
    };
    a.needs(vec![cpus(1), gang]).await;
    a.has(1).await;
    let sample = shard.logged("attribution probe: gang");
    let fields = &sample["fields"];
    assert_eq!(
        (&fields["cluster"], &fields["group"]),
        (&"a".into(), &"g1".into())
    );
    assert_eq!(fields["acquired"], 0, "{sample}");
    // The summary comes before its samples, so it is there.
    let probes = shard.all_logged("attribution probe");
    let last = &probes.last().unwrap()["fields"];
    assert_eq!(last["cycle"].as_u64().unwrap() % 20, 0, "{last}");
    for (field, number) in [
        ("needs_total", 2),
        ("needs_same", 1),
        ("p1_unsatisfied", 1),
        ("p1_unsatisfied_same", 1),
        ("p3_reclaim", 0),
        ("p3_reclaim_matches_unsatisfied", 0),
        ("p3_reclaim_matches_and_fits", 0),
    ] {
        assert_eq!(last[field], number, "{field}: {last}");
    }
}
