//! The engines: three ways to the same answer.

use bigfleet_engine::Engine as Incremental;
use bigfleet_model::{Cluster, ClusterId, Decision, Fleet, FleetMachine};
use bigfleet_seeded::Prng;
use clap::ValueEnum;

/// How often something is decided on the way to a fleet, more or less.
const DECISIONS_ON_THE_WAY: usize = 200;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The production engine, cold.
    Full,
    /// The rules transcribed one by one; slow.
    Oracle,
    /// The production engine, led to the fleet by random edits from an empty one.
    Incremental,
}

impl Engine {
    /// Decides. The seed is for engines that draw from one.
    pub(crate) fn decide(self, fleet: &Fleet, seed: u64) -> Decision {
        match self {
            Self::Full => bigfleet_engine::decide(fleet),
            Self::Oracle => bigfleet_oracle::decide(fleet),
            Self::Incremental => incremental(fleet, seed),
        }
    }
}

/// A machine or a cluster of the fleet.
enum Fact<'a> {
    Machine(&'a FleetMachine),
    Cluster(&'a ClusterId, &'a Cluster),
}

/// Tells the engine of the fleet fact by fact, in an order drawn from the seed, some of them wrong or
/// withdrawn at first, and decides now and then on the way. Nothing of that may show in the answer.
fn incremental(fleet: &Fleet, seed: u64) -> Decision {
    let mut prng = Prng::new(seed);
    let machines = fleet.machines.values().map(Fact::Machine);
    let clusters = fleet.clusters.iter();
    let clusters = clusters.map(|(id, cluster)| Fact::Cluster(id, cluster));
    let mut facts: Vec<Fact<'_>> = machines.chain(clusters).collect();
    prng.shuffle(&mut facts);

    let mut engine = Incremental::new();
    engine.set_holds(fleet.holds);
    for fact in &facts {
        match fact {
            Fact::Machine(machine) => put_machine(&mut engine, machine, &mut prng),
            Fact::Cluster(id, cluster) => put_cluster(&mut engine, id, cluster, &mut prng),
        }
        if prng.below(facts.len()) < DECISIONS_ON_THE_WAY {
            engine.decide(fleet.now);
        }
    }
    engine.decide(fleet.now);
    engine.decision()
}

fn put_machine(engine: &mut Incremental, machine: &FleetMachine, prng: &mut Prng) {
    match prng.below(8) {
        0 => {
            let mut wrong = machine.clone();
            wrong.not_ready = !wrong.not_ready;
            wrong.unavailable = !wrong.unavailable;
            engine.put_machine(&wrong);
        }
        1 => {
            engine.put_machine(machine);
            engine.remove_machine(machine.machine.id());
        }
        _ => {}
    }
    engine.put_machine(machine);
}

fn put_cluster(engine: &mut Incremental, id: &ClusterId, cluster: &Cluster, prng: &mut Prng) {
    match prng.below(4) {
        0 => {
            let mut wrong = cluster.clone();
            wrong.ready = !wrong.ready;
            engine.put_cluster(id, &wrong);
        }
        1 => {
            engine.put_cluster(id, cluster);
            engine.remove_cluster(id);
        }
        _ => {}
    }
    engine.put_cluster(id, cluster);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::generate::Generator;

    #[test]
    fn whatever_order_the_facts_come_in_the_answer_is_the_fleets() {
        for seed in 0..20 {
            let mut generator = Generator::new(seed);
            let mut fleet = generator.fleet();
            (0..seed).for_each(|_| {
                generator.edit(&mut fleet);
            });
            let expected = Engine::Full.decide(&fleet, 0);
            for order in 0..3 {
                let found = Engine::Incremental.decide(&fleet, order);
                assert_eq!(found, expected, "fleet {seed}, order {order}");
            }
        }
    }
}
