//! The seeded fleet is steady: every row is covered by machines committed to it, and by no more.
//!
//! That is all a decision needs to do nothing: each Need claims its own machines first, all of them,
//! and is covered. Nothing is left to acquire, nothing to let go. Checked on the records and rows as
//! an engine receives them.

use bigfleet_model::{Amounts, ClusterId, Fleet, Machine, Need, NeedKey, Row, Shape};
use bigfleet_workloads::Preset;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A Need after folding, with what it asks for.
struct FoldedDemand {
    row: Row,
    aggregate: Amounts,
}

/// Every Need after folding. With quota of every shape, a gang folds if one machine can hold it.
fn folded_needs(fleet: &Fleet) -> BTreeMap<NeedKey, FoldedDemand> {
    let machines = fleet.machines.values();
    let shapes: BTreeSet<Arc<Shape>> = machines.map(|m| m.machine.shape().clone()).collect();
    let mut holds = BTreeMap::new();
    let mut wanted: BTreeMap<NeedKey, FoldedDemand> = BTreeMap::new();
    for need in fleet.clusters.values().flat_map(|cluster| cluster.needs()) {
        let Row {
            profile,
            aggregate,
            group,
            ..
        } = &need.row;
        let gang = profile.same_key().is_some();
        let class = (profile.clone(), aggregate.key());
        let folds = *holds
            .entry(class)
            .or_insert_with(|| gang && shapes.iter().any(|shape| shape.serves(profile, aggregate)));
        let row = Row {
            profile: if folds {
                profile.folded().into()
            } else {
                profile.clone()
            },
            min_unit: if folds {
                aggregate.clone()
            } else {
                need.row.min_unit.clone()
            },
            group: if folds {
                bigfleet_model::Group::new(&format!("fold:{}", aggregate.key()))
            } else {
                group.clone()
            },
            aggregate: aggregate.clone(),
            whole_units: false,
        };
        let key = Need {
            row: row.clone(),
            ..need.clone()
        }
        .key();
        let more = aggregate.clone();
        let entry = wanted.entry(key).or_insert_with(|| FoldedDemand {
            row,
            aggregate: Amounts::NONE,
        });
        entry.aggregate = entry.aggregate.add(&more);
    }
    wanted
}

fn sum<'a>(machines: impl Iterator<Item = &'a &'a Machine>) -> Amounts {
    machines.fold(Amounts::NONE, |sum, machine| {
        sum.add(machine.shape().effective())
    })
}

fn check_steady(preset: Preset, seed: u64) {
    let fleet = preset.build(seed).fleet();
    let needs = folded_needs(&fleet);
    let mut own: BTreeMap<NeedKey, Vec<&Machine>> = BTreeMap::new();
    for machine in fleet.machines.values().map(|m| &m.machine) {
        let free = machine.cluster().is_none();
        match machine.attribution() {
            Some(key) => own.entry(key).or_default().push(machine),
            None => assert!(free, "{} serves a cluster but no Need", machine.id()),
        }
    }
    let stray = own.keys().find(|key| !needs.contains_key(key));
    assert_eq!(stray, None, "committed to a Need that is not there");
    for (key, FoldedDemand { row, aggregate }) in &needs {
        let own = own.get(key).map_or(&[][..], Vec::as_slice);
        let all = sum(own.iter());
        assert!(
            all.covers(aggregate),
            "{key} is short: {all:?} of {aggregate:?}"
        );
        for machine in own {
            let id = machine.id();
            assert!(
                machine.shape().serves(&row.profile, &row.min_unit),
                "{key} cannot use {id}"
            );
            let rest = all.sub(machine.shape().effective());
            assert!(!rest.covers(aggregate), "{key} does not need {id}");
            assert_eq!(machine.terms().priority, row.profile.priority());
        }
        if let Some(same) = row.profile.same_key() {
            let domains: BTreeSet<_> = own.iter().map(|m| m.shape().attribute(same)).collect();
            assert_eq!(domains.len(), 1, "{key} is torn apart");
        }
        for spread in row.profile.hard_spreads() {
            let mut zones: BTreeMap<_, i32> = BTreeMap::new();
            for machine in own {
                *zones
                    .entry(machine.shape().attribute(spread.topology_key()))
                    .or_default() += 1;
            }
            let (least, most) = (zones.values().min(), zones.values().max());
            let skew = most.zip(least).map_or(0, |(most, least)| most - least);
            let even = own.len() < 3 || (zones.len() == 3 && skew <= spread.max_skew());
            assert!(even, "{key} is not spread: {zones:?}");
        }
    }
}

#[test]
fn every_machine_of_the_5k_fleet_is_needed_and_no_row_is_short() {
    check_steady(Preset::FiveK, 1);
}

/// Counted in whole units, what serves still covers every row: their machines hold their units without a rest.
#[test]
fn every_machine_of_the_told_fleet_is_needed_and_no_row_is_short() {
    check_steady(Preset::FiveKTold, 1);
}

#[test]
fn the_coverage_catalog_is_steady_for_any_seed() {
    for seed in 0..20 {
        check_steady(Preset::Dev50, seed);
    }
}

#[test]
fn a_fleet_that_serves_nobody_yet_has_no_commitments() {
    let fleet = Preset::CostRouting5k.build(1).fleet();
    assert!(
        fleet
            .machines
            .values()
            .all(|m| m.machine.attribution().is_none())
    );
    let id = ClusterId::new("kwok-cluster-19").unwrap();
    assert_eq!(fleet.clusters[&id].needs().len(), 2);
}
