//! Fleets made from a seed, and histories of them.
//!
//! ```text
//! seed ──▶ palette: few clusters, sizes, prices, racks ──▶ fleet ── edit ──▶ fleet ── edit ──▶ …
//! ```
//!
//! A generator draws from a small palette of its own, so that what decides hard cases happens all
//! the time: equal prices, machines that fit exactly, gangs of one size, several rows after one
//! machine. Every fleet is valid, since it is made through the model's own checks.

mod edit;
mod machines;
mod marks;
mod palette;
mod rows;

use bigfleet_model::{Cluster, ClusterId, Fleet, Holds, Need, Row, Time};
use bigfleet_seeded::Prng;
use marks::Marks;
use palette::Palette;
use std::time::Duration;

/// Makes fleets; the same seed makes the same ones on every machine.
#[derive(Clone, Debug)]
pub struct Generator {
    prng: Prng,
    palette: Palette,
    marks: Marks,
    machines_made: u32,
}

impl Generator {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let palette = Palette::draw(&mut prng);
        Self {
            prng,
            palette,
            marks: Marks::new(seed),
            machines_made: 0,
        }
    }

    /// A fleet of a few clusters, up to a dozen rows and up to some thirty machines.
    pub fn fleet(&mut self) -> Fleet {
        let millis = *self.prng.pick(&[0, 1_000_000, 1_000_000, 1_234_500]);
        let mut fleet = Fleet {
            now: Time::default() + Duration::from_millis(millis),
            holds: self.holds(),
            ..Fleet::default()
        };
        for id in self.palette.clusters.clone() {
            let mut rows = Vec::new();
            for _ in 0..self.prng.between(0, 5) {
                rows.push(self.row(fleet.now));
            }
            set_rows(&mut fleet, &id, rows);
            self.flags(&mut fleet, &id);
        }
        // A cluster with machines that has not reported.
        if self.prng.percent(10) {
            let silent = self.prng.pick(&self.palette.clusters).clone();
            fleet.clusters.remove(&silent);
        }
        for _ in 0..self.prng.between(2, 30) {
            let machine = self.machine(&fleet);
            fleet.put(machine);
        }
        fleet
    }

    /// One step of a random history. Returns what kind of step it was.
    pub fn edit(&mut self, fleet: &mut Fleet) -> &'static str {
        edit::step(self, fleet)
    }

    fn flags(&mut self, fleet: &mut Fleet, id: &ClusterId) {
        if let Some(cluster) = fleet.clusters.get_mut(id) {
            cluster.ready = self.prng.percent(88);
            cluster.acquire = self.prng.percent(88);
        }
    }

    fn holds(&mut self) -> Holds {
        let all = [None, Some(0), Some(60), Some(600)];
        let mut hold = || self.prng.pick(&all).map(Duration::from_secs);
        let drawn = Holds {
            on_demand: hold(),
            spot: hold(),
        };
        if self.prng.percent(60) {
            Holds::default()
        } else {
            drawn
        }
    }
}

type Rows = Vec<(Row, Option<Time>, bool)>;

fn rows_of(cluster: &Cluster) -> Rows {
    let row = |need: &Need| (need.row.clone(), need.arrival, need.parked);
    cluster.needs().iter().map(row).collect()
}

/// Replaces a cluster's demand and leaves its flags.
fn set_rows(fleet: &mut Fleet, id: &ClusterId, rows: Rows) {
    let mut cluster = Cluster::new(id, rows).expect("generated sums can be counted");
    if let Some(before) = fleet.clusters.get(id) {
        cluster.ready = before.ready;
        cluster.acquire = before.acquire;
    }
    fleet.clusters.insert(id.clone(), cluster);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::folded_key;
    use bigfleet_model::{FleetMachine, State};
    use std::collections::BTreeMap;

    #[test]
    fn the_same_seed_makes_the_same_history() {
        let history = |seed| {
            let mut generator = Generator::new(seed);
            let mut fleet = generator.fleet();
            let steps: Vec<_> = (0..50).map(|_| generator.edit(&mut fleet)).collect();
            (fleet, steps)
        };
        assert_eq!(history(7), history(7));
        assert_ne!(history(7).0, history(8).0);
    }

    /// What the fuzzers are for must come up, and often.
    #[test]
    fn everything_that_matters_comes_up() {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..200 {
            let mut generator = Generator::new(seed);
            let mut fleet = generator.fleet();
            for _ in 0..10 {
                note(&fleet, &mut |what| *seen.entry(what).or_default() += 1);
                let step = generator.edit(&mut fleet);
                *seen.entry(step).or_default() += 1;
            }
        }
        let rare: Vec<_> = seen.iter().filter(|(_, count)| **count < 10).collect();
        assert!(rare.is_empty(), "too rare: {rare:?}");
        assert_eq!(
            seen.len(),
            WANTED.len() + edit::STEPS.len() + marks::STEPS.len(),
            "something never comes up: {seen:?}"
        );
    }

    const WANTED: [&str; 26] = [
        "gang",
        "gangs of one class",
        "spread",
        "parked",
        "not ready cluster",
        "no acquire",
        "silent cluster",
        "own",
        "own of a folded form",
        "edited away",
        "promised idle",
        "draining for someone",
        "creating without intent",
        "not ready machine",
        "unavailable",
        "lower priority to preempt",
        "hold run out",
        "a gang that one machine holds",
        "pinned",
        "whole units",
        "whole gang",
        "told disruption",
        "reversible drain",
        "leaves soon",
        "leaves now",
        "leaves unbound",
    ];

    fn note(fleet: &Fleet, see: &mut impl FnMut(&'static str)) {
        let needs: Vec<&Need> = fleet
            .clusters
            .values()
            .flat_map(|cluster| cluster.needs())
            .collect();
        let mut when = |what: &'static str, holds: bool| {
            if holds {
                see(what);
            }
        };
        let gangs = || {
            needs
                .iter()
                .filter(|need| need.row.profile.same_key().is_some())
        };
        let class = |need: &Need| {
            let (profile, aggregate) = (need.row.profile.clone(), need.row.aggregate.clone());
            (need.cluster.clone(), profile, aggregate)
        };
        let machines = || fleet.machines.values();
        when("gang", gangs().next().is_some());
        let classes: std::collections::BTreeSet<_> = gangs().map(|need| class(need)).collect();
        when("gangs of one class", classes.len() < gangs().count());
        let holds_gang = |m: &FleetMachine| {
            gangs().any(|need| {
                let shape = m.machine.shape();
                shape.matches(&need.row.profile) && shape.effective().covers(&need.row.aggregate)
            })
        };
        when("a gang that one machine holds", machines().any(holds_gang));
        let spread = |need: &&Need| need.row.profile.hard_spreads().next().is_some();
        when("whole units", needs.iter().any(|need| need.row.whole_units));
        when("whole gang", gangs().any(|need| need.row.whole_units));
        when(
            "told disruption",
            machines().any(|m| m.disruption.is_some() && m.machine.state() == State::Configured),
        );
        let restorable = |m: &FleetMachine| m.is_reversible() && m.machine.intent().is_none();
        when("reversible drain", machines().any(restorable));
        when("leaves soon", machines().any(FleetMachine::leaves_soon));
        when("leaves now", machines().any(FleetMachine::leaves_now));
        let unbound = |m: &FleetMachine| m.leaving.is_some() && !m.machine.state().is_bound();
        when("leaves unbound", machines().any(unbound));
        when("spread", needs.iter().any(spread));
        when("parked", gangs().any(|need| need.parked));
        when(
            "pinned",
            needs
                .iter()
                .any(|need| need.row.profile.interruption() == bigfleet_model::Bucket::PINNED),
        );
        let clusters = || fleet.clusters.values();
        when("not ready cluster", clusters().any(|c| !c.ready));
        when("no acquire", clusters().any(|c| !c.acquire));
        let silent = |m: &FleetMachine| {
            let cluster = m.machine.cluster();
            cluster.is_some_and(|id| !fleet.clusters.contains_key(id))
        };
        when("silent cluster", machines().any(silent));
        let attributed = || {
            machines().filter_map(|m| m.machine.attribution().map(|key| (m.machine.state(), key)))
        };
        let current = |key: &_| needs.iter().any(|need| need.key() == *key);
        let folded = |key: &_| gangs().any(|need| folded_key(need) == *key);
        when("own", attributed().any(|(_, key)| current(&key)));
        when(
            "own of a folded form",
            attributed().any(|(_, key)| folded(&key)),
        );
        when(
            "edited away",
            attributed().any(|(_, key)| !current(&key) && !folded(&key)),
        );
        when(
            "promised idle",
            attributed().any(|(state, key)| state == State::Idle && current(&key)),
        );
        when(
            "draining for someone",
            attributed().any(|(state, _)| state == State::Draining),
        );
        let bare =
            |m: &FleetMachine| m.machine.state() == State::Creating && m.machine.intent().is_none();
        when("creating without intent", machines().any(bare));
        let phantom = |m: &FleetMachine| m.not_ready && m.machine.state().is_bound();
        when("not ready machine", machines().any(phantom));
        when("unavailable", machines().any(|m| m.unavailable));
        let low = |m: &FleetMachine| {
            let configured = m.machine.state() == State::Configured;
            let priority = m.machine.terms().priority;
            configured
                && needs
                    .iter()
                    .any(|need| priority < need.row.profile.priority())
        };
        when("lower priority to preempt", machines().any(low));
        let expired = |m: &FleetMachine| {
            let tier = m.machine.shape().capacity_type;
            m.idle_since
                .is_some_and(|since| fleet.holds.expired(tier, since, fleet.now))
        };
        when("hold run out", machines().any(expired));
    }
}
