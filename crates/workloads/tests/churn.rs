//! A steady fleet changes as fast as it says, and says exactly what changed.

use bigfleet_model::{Amounts, Row};
use bigfleet_workloads::{ChangedRow, Churn, Preset, Rates, Workload};
use std::collections::{BTreeMap, BTreeSet};

type Demand = BTreeMap<(usize, String, String), (Amounts, Amounts)>;

fn demand<'a>(clusters: impl Iterator<Item = (usize, Vec<Row>)> + 'a) -> Demand {
    let mut demand = Demand::new();
    for (cluster, rows) in clusters {
        for row in rows {
            let key = (
                cluster,
                row.profile.fingerprint().to_string(),
                row.group.to_string(),
            );
            demand.insert(key, (row.aggregate, row.min_unit));
        }
    }
    demand
}

fn now(workload: &Workload, churn: &Churn<'_>) -> Demand {
    let clusters = 0..workload.counts().clusters;
    demand(clusters.map(|cluster| (cluster, churn.rows(cluster).collect())))
}

/// The rows named are those that differ, each as `row` gives it, and no others.
#[test]
fn changed_rows_are_exactly_the_rows_that_changed() {
    let workload = Preset::Dev50.build(3);
    let all: Vec<Vec<Row>> = workload
        .clusters()
        .map(|cluster| cluster.rows().collect())
        .collect();
    let mut churn = Churn::new(&workload, 9);
    let mut before = now(&workload, &churn);
    for _ in 0..50 {
        let changes = churn.next_cycle().clone();
        let after = now(&workload, &churn);
        let key = |changed: &ChangedRow| {
            let row = &all[changed.cluster as usize][changed.row as usize];
            let text = row.profile.fingerprint().to_string();
            (changed.cluster as usize, text, row.group.to_string())
        };
        let named: BTreeSet<_> = changes.rows.iter().map(key).collect();
        assert_eq!(named.len(), changes.rows.len(), "each row once");
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
        let differ: BTreeSet<_> = keys
            .into_iter()
            .filter(|key| before.get(key) != after.get(key))
            .collect();
        assert_eq!(named, differ);
        for changed in &changes.rows {
            let row = churn.row(*changed).map(|row| (row.aggregate, row.min_unit));
            assert_eq!(row.as_ref(), after.get(&key(changed)));
        }
        before = after;
    }
}

/// A Pod is away for one cycle: what is missing now is what was deleted now.
#[test]
fn a_row_dips_for_one_cycle_and_returns() {
    let workload = Preset::FiveK.build(1);
    let rates = |replaced_per_minute| Rates {
        replaced_per_minute,
        ..Rates::default()
    };
    let full = demand(
        workload
            .clusters()
            .map(|c| (c.number(), c.rows().collect())),
    );
    let mut churn = Churn::with(&workload, 1, rates(0.02));
    let (mut deleted, mut dips) = (0, 0);
    for _ in 0..30 {
        let before = churn.changes().deleted_pods;
        let changes = churn.next_cycle();
        assert_eq!(changes.returned_pods, before);
        deleted = changes.deleted_pods;
        let after = now(&workload, &churn);
        dips = full
            .iter()
            .filter(|(key, full)| after.get(*key) != Some(full))
            .count();
        assert!(
            full.iter()
                .all(|(key, full)| after.get(key).is_none_or(|now| full.0.covers(&now.0)))
        );
    }
    assert!((1_600..1_740).contains(&deleted), "{deleted}");
    assert!((160..260).contains(&dips), "{dips}");
    let mut still = Churn::with(&workload, 1, rates(0.0));
    assert_eq!(still.next_cycle().rows, []);
    assert_eq!(now(&workload, &still), full);
}

/// 25,000 × 0.02 ÷ 6 = 83⅓ Pods and about 12 rows per cluster and cycle.
#[test]
fn pods_are_replaced_at_the_rate_promised() {
    let workload = Preset::FiveK.build(1);
    let mut churn = Churn::new(&workload, 5);
    let (mut pods, mut rows) = (0, 0);
    for _ in 0..120 {
        let changes = churn.next_cycle();
        pods += changes.deleted_pods;
        rows += changes.rows.len();
    }
    let per_cluster = |sum: f64| sum / 120.0 / 20.0;
    assert!(
        (per_cluster(pods.into()) - 83.333).abs() < 0.1,
        "{}",
        per_cluster(pods.into())
    );
    let rows = per_cluster(rows as f64);
    assert!((11.5..14.0).contains(&rows), "{rows}");
}

/// The injector's own rate: an earlier one sampled a few machines per tick and never fired.
#[test]
fn machines_are_lost_at_the_rate_promised() {
    let workload = Preset::FiveK.build(1);
    let configured = workload.counts().configured as f64;
    for (lost_per_second, cycles) in [(1.16e-7, 40_000), (5.8e-6, 2_000)] {
        let rates = Rates {
            replaced_per_minute: 0.0,
            lost_per_second,
            ..Rates::default()
        };
        let mut churn = Churn::with(&workload, 2, rates);
        let mut lost = BTreeSet::new();
        for _ in 0..cycles {
            for machine in &churn.next_cycle().lost {
                assert!(lost.insert(machine.to_string()), "{machine} failed twice");
            }
        }
        // Each machine lost is one less to lose.
        let rate = lost_per_second * 10.0 * f64::from(cycles);
        let due = configured * (1.0 - (-rate).exp());
        let sigma = due.sqrt();
        assert!(
            (lost.len() as f64 - due).abs() < 4.0 * sigma,
            "{} of {due}",
            lost.len()
        );
    }
}

/// The same absolute churn in a fleet ten times as large.
#[test]
fn churn_can_be_kept_to_the_first_clusters() {
    let workload = Preset::FiftyK.build(1);
    let rates = Rates {
        lost_per_second: 1e-4,
        clusters: 20,
        ..Rates::default()
    };
    let mut churn = Churn::with(&workload, 1, rates);
    for _ in 0..5 {
        let changes = churn.next_cycle();
        assert!(changes.rows.iter().all(|row| row.cluster < 20));
        assert!(!changes.lost.is_empty());
        assert!(
            changes
                .lost
                .iter()
                .all(|lost| lost.serves.is_some_and(|s| s.cluster < 20))
        );
        assert!((1_600..1_740).contains(&changes.deleted_pods));
    }
}

/// However hard it storms, a machine fails once, and a draw among those left comes to an end.
#[test]
fn a_storm_takes_every_machine_once() {
    let workload = Preset::Dev50.build(1);
    let rates = Rates {
        replaced_per_minute: 1.0,
        lost_per_second: 1.0,
        ..Rates::default()
    };
    let mut churn = Churn::with(&workload, 1, rates);
    let configured = workload.counts().configured;
    let lost: usize = (0..40).map(|_| churn.next_cycle().lost.len()).sum();
    assert_eq!(lost, configured);
}
