//! Starts: clean fleets made from a seed, and demand that changes.

use crate::{
    DECIDE,
    commit::change,
    driver::{Latency, Loop},
};
use bigfleet_model::{
    Assignment, Cluster, ClusterId, Fleet, Holds, Host, MachineFacts, Need, Row, Shape, State,
};
use bigfleet_testkit::generate::Generator;
use std::sync::Arc;

/// What the machines of a start are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All of one size and price; racks, zones and types differ.
    One,
    /// As the generator makes them.
    Mixed,
}

/// A pool of free machines, Idle and Speculative, and demand; nothing serves, nothing is released.
pub(crate) fn free_pool(seed: u64, sizes: Sizes) -> Fleet {
    let mut fleet = Generator::new(seed).fleet();
    fleet.holds = Holds::NEVER;
    for cluster in fleet.clusters.values_mut() {
        cluster.ready = true;
        cluster.acquire = true;
    }
    let mut machines = fleet.machines.values();
    let one = machines.next().map(|found| found.machine.shape().clone());
    let ids: Vec<_> = fleet.machines.keys().cloned().collect();
    for id in ids {
        change(&mut fleet, id.as_str(), |facts| {
            free(facts);
            if let (Sizes::One, Some(one)) = (sizes, &one) {
                equalise(facts, one);
            }
        });
        if let Some(found) = fleet.machines.get_mut(&id) {
            found.unavailable = false;
            found.not_ready = false;
            found.leaving = None;
        }
    }
    fleet
}

fn free(facts: &mut MachineFacts) {
    let state = State::from_number(facts.state.0).expect("a state");
    facts.intent = None;
    facts.assignment = Assignment::default();
    facts.cluster.clear();
    let to = match state {
        State::Speculative | State::Creating | State::Deleting | State::Failed => {
            facts.host = Host::default();
            State::Speculative
        }
        State::Idle | State::Configuring | State::Configured | State::Draining => State::Idle,
    };
    facts.state = to.into();
}

fn equalise(facts: &mut MachineFacts, one: &Shape) {
    let mut shape = Shape::clone(&facts.shape);
    shape.resources = one.resources.clone();
    shape.allocatable = None;
    facts.shape = Arc::new(shape);
    facts.price_per_hour = 1.0;
    facts.interruption_probability = 0.0;
}

/// The fleet after a run without latency: everything that serves is attributed and claimed.
pub(crate) fn settled(fleet: Fleet) -> Fleet {
    let mut calm = Loop::new(DECIDE, fleet, Latency::Zero, 0);
    assert!(calm.settle(300), "{}", calm.story.join("\n"));
    calm.fleet
}

/// Changes the demand row by row.
pub(crate) fn with_rows(mut fleet: Fleet, mut change: impl FnMut(&mut Row)) -> Fleet {
    let ids: Vec<ClusterId> = fleet.clusters.keys().cloned().collect();
    for id in ids {
        let before = &fleet.clusters[&id];
        let row = |need: &Need| {
            let mut row = need.row.clone();
            change(&mut row);
            (row, need.arrival, need.parked)
        };
        let rows: Vec<_> = before.needs().iter().map(row).collect();
        let mut after = Cluster::new(&id, rows).expect("sums that can be counted");
        after.ready = before.ready;
        after.acquire = before.acquire;
        fleet.clusters.insert(id, after);
    }
    fleet
}

/// Every plain row and every gang asks for half.
pub(crate) fn halved(fleet: Fleet) -> Fleet {
    with_rows(fleet, |row| {
        let half = row.aggregate.iter();
        let half = half.map(|(name, milli)| (name.clone(), milli / 2));
        row.aggregate = bigfleet_model::Amounts::from_entries(half);
    })
}

/// The generator's own edits of the demand, this many.
pub(crate) fn edited(mut fleet: Fleet, seed: u64, edits: u32) -> Fleet {
    let mut generator = Generator::new(seed);
    generator.fleet();
    let mut done = 0;
    while done < edits {
        let mut next = fleet.clone();
        let what = generator.edit(&mut next);
        if what.starts_with("row") || what.starts_with("priority") {
            fleet = next;
            done += 1;
        }
    }
    fleet
}
