//! The fleet whose clusters tell more than sums is the one beside it, and tells what it says it tells.

use bigfleet_model::Disruption;
use bigfleet_workloads::{Churn, Preset, Rates, Scale, Workload};
use std::collections::BTreeMap;

fn whole_rows(workload: &Workload) -> (usize, usize) {
    let rows = workload.clusters().flat_map(|cluster| cluster.rows());
    rows.fold((0, 0), |(whole, all), row| {
        (whole + usize::from(row.whole_units), all + 1)
    })
}

/// Rows, machines and churn are those of the fleet that tells sums only: a difference between the two is the price
/// of what is told.
#[test]
fn nothing_else_differs() {
    let (told, sums) = (Preset::FiveKTold.build(1), Preset::FiveK.build(1));
    assert_eq!(told.counts(), sums.counts());
    let rows = |workload: &Workload| {
        let rows = workload.clusters().flat_map(|cluster| cluster.rows());
        let plain = rows.map(|row| (row.profile, row.group, row.aggregate, row.min_unit));
        plain.collect::<Vec<_>>()
    };
    assert_eq!(rows(&told), rows(&sums));
    let (mut with, mut without) = (Churn::new(&told, 1), Churn::new(&sums, 1));
    for _ in 0..12 {
        let (with, without) = (with.next_cycle(), without.next_cycle());
        assert_eq!((&with.rows, &with.lost), (&without.rows, &without.lost));
        assert!(!with.disruptions.is_empty() && without.disruptions.is_empty());
    }
}

/// A row of one Pod size asks for whole units; one of two does not, and nobody's does who tells sums only.
#[test]
fn rows_of_one_size_ask_for_whole_units() {
    let (told, sums) = (Preset::FiveKTold.build(1), Preset::FiveK.build(1));
    assert_eq!(whole_rows(&sums).0, 0);
    let (whole, all) = whole_rows(&told);
    assert!(all / 2 < whole && whole < all, "{whole} of {all}");
    for row in told.clusters().flat_map(|cluster| cluster.rows()) {
        let mut parts = row.min_unit.iter();
        let fits = parts.all(|(name, unit)| row.aggregate.get(name.as_str()) % unit == 0);
        assert!(fits || !row.whole_units, "{row:?}");
    }
}

/// With one size of Pods per archetype every row could ask for whole units, and the fleet is as steady as before.
#[test]
fn a_fleet_of_one_size_has_rows_of_whole_units_only() {
    let scale = Preset::FiveK.scale().unwrap();
    let one_size = Scale {
        catalog: scale.catalog.of_one_size(),
        tells: true,
        ..scale
    };
    let (whole, all) = whole_rows(&one_size.build("one-size", 1));
    assert!(whole == all && 1000 < all, "{whole} of {all}");
}

/// Every level is told, one machine in five is not spoken of, and words come as fast as promised.
#[test]
fn disruption_is_told_of_every_level_and_not_of_all() {
    let workload = Preset::FiveKTold.build(1);
    let mut levels: BTreeMap<Option<Disruption>, usize> = BTreeMap::new();
    for machine in workload.machines().filter(|one| one.serves.is_some()) {
        *levels.entry(workload.disruption(&machine)).or_default() += 1;
    }
    let serving = workload.counts().configured;
    assert_eq!(levels.len(), 17, "{levels:?}");
    let untold = levels[&None] as f64 / serving as f64;
    assert!((untold - 0.2).abs() < 0.03, "{untold}");
    let free = workload
        .machines()
        .find(|one| one.serves.is_none())
        .unwrap();
    assert_eq!(workload.disruption(&free), None);

    let mut churn = Churn::new(&workload, 1);
    let words: usize = (0..60).map(|_| churn.next_cycle().disruptions.len()).sum();
    assert!((49_900..50_100).contains(&words), "{words} in ten minutes");
    let rates = Rates {
        disruptions_per_minute: 0.0,
        ..Rates::default()
    };
    let mut silent = Churn::with(&workload, 1, rates);
    assert!(silent.next_cycle().disruptions.is_empty());
}
