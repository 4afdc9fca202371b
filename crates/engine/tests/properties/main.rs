//! What holds for every fleet (D-5, RF-11), on fleets and histories made from seeds.
#![allow(
    clippy::expect_used,
    reason = "test code: what cannot be fails the test"
)]

mod checks;

use bigfleet_model::{ActionKind, Cluster, ClusterId, Decision, Disruption, Fleet};
use bigfleet_seeded::Prng;
use bigfleet_testkit::generate::Generator;

/// The engine under test.
const DECIDE: fn(&Fleet) -> Decision = bigfleet_engine::decide;

/// A few steps of history for each of many seeds.
fn for_every_fleet(seeds: u64, check: impl Fn(&Fleet, &Decision, u64)) {
    for seed in 0..seeds {
        let mut generator = Generator::new(seed);
        let mut fleet = generator.fleet();
        for _ in 0..6 {
            check(&fleet, &DECIDE(&fleet), seed);
            generator.edit(&mut fleet);
        }
    }
}

/// D-1, D-5. Machines are a map and have no order.
#[test]
fn listing_order_never_changes_the_answer() {
    for_every_fleet(200, |fleet, decision, seed| {
        let shuffled = shuffled(fleet, seed);
        assert_eq!(DECIDE(&shuffled), *decision, "seed {seed}");
    });
}

/// The same demand, its rows in another order.
fn shuffled(fleet: &Fleet, seed: u64) -> Fleet {
    let mut prng = Prng::new(seed);
    let mut shuffled = fleet.clone();
    let ids: Vec<ClusterId> = fleet.clusters.keys().cloned().collect();
    for id in ids {
        let before = &fleet.clusters[&id];
        let rows = before.needs().iter();
        let mut rows: Vec<_> = rows
            .map(|need| (need.row.clone(), need.arrival, need.parked))
            .collect();
        prng.shuffle(&mut rows);
        let mut after = Cluster::new(&id, rows).expect("sums that can be counted");
        after.ready = before.ready;
        after.acquire = before.acquire;
        shuffled.clusters.insert(id, after);
    }
    shuffled
}

#[test]
fn the_same_fleet_gives_the_same_digest() {
    for_every_fleet(50, |fleet, decision, seed| {
        assert_eq!(DECIDE(fleet).digest(), decision.digest(), "seed {seed}");
    });
}

#[test]
fn actions_claims_and_verdicts_are_sound() {
    for_every_fleet(300, |fleet, decision, seed| {
        checks::actions_fit_the_machines(fleet, decision, seed);
        checks::claims_are_of_use(fleet, decision, seed);
        checks::verdicts_add_up(fleet, decision, seed);
        checks::lists_are_in_order(decision, seed);
    });
}

/// RF-2: which of equals leaves, never whether one does; and where nothing leaves, nothing else either.
#[test]
fn disruption_moves_only_what_leaves() {
    for_every_fleet(300, |fleet, decision, seed| {
        let mut prng = Prng::new(seed);
        let mut told = fleet.clone();
        for machine in told.machines.values_mut() {
            machine.disruption = Disruption::new(prng.below(17) as i64);
        }
        let other = DECIDE(&told);
        let leaves = |decision: &Decision| {
            let reclaims = decision.actions.iter();
            let reclaims = reclaims.filter(|action| action.kind == ActionKind::Reclaim);
            reclaims.count()
        };
        assert_eq!(leaves(&other), leaves(decision), "seed {seed}");
        if leaves(decision) == 0 {
            assert_eq!(other, *decision, "seed {seed}");
        }
        assert_eq!(other.needs, decision.needs, "seed {seed}");
        assert_eq!(other.held, decision.held, "seed {seed}");
    });
}

#[test]
fn nothing_that_serves_is_drained_for_what_has_not_arrived() {
    for_every_fleet(300, checks::make_before_break);
}

#[test]
fn what_leaves_is_replaced_claimed_or_gone() {
    for_every_fleet(300, checks::what_leaves_is_accounted_for);
}
