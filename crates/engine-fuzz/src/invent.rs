//! Invent: where the fleets of a history come from.

use crate::{Mode, obey};
use bigfleet_model::{Cluster, Decision, Fleet, Need};
use bigfleet_seeded::Prng;
use bigfleet_testkit::generate::Generator;

/// Makes up a first fleet and what happens to it.
pub(crate) struct Inventor {
    generator: Generator,
    pub(crate) prng: Prng,
    mode: Mode,
}

impl Inventor {
    pub(crate) fn new(seed: u64, mode: Mode) -> Self {
        // A stream of its own: the generator's fleets are those of its seed.
        let mut prng = Prng::new(!seed);
        Self {
            generator: Generator::new(seed),
            prng: prng.fork(),
            mode,
        }
    }

    pub(crate) fn first(&mut self) -> Fleet {
        let mut fleet = self.generator.fleet();
        if self.mode == Mode::Crowd {
            let machines = self.prng.between(100, 300);
            while fleet.machines.len() < machines {
                let more = self.generator.fleet();
                join(&mut fleet, more);
            }
        }
        fleet
    }

    /// Changes something, or does what was decided.
    pub(crate) fn next(&mut self, fleet: &mut Fleet, decision: Option<&Decision>) -> &'static str {
        if let Some(decision) = decision
            && self.prng.percent(20)
        {
            let all = decision.actions.len();
            let actions = if self.prng.percent(60) {
                all
            } else {
                self.prng.below(all + 1)
            };
            obey::commit(fleet, decision, actions);
            return "decision committed";
        }
        if self.prng.percent(5) {
            obey::arrive(fleet);
            return "everything arrived";
        }
        self.generator.edit(fleet)
    }
}

/// Adds the machines and the rows of one fleet to another. Both come from one palette, so many of
/// them are alike.
fn join(fleet: &mut Fleet, other: Fleet) {
    fleet.now = fleet.now.max(other.now);
    fleet.machines.extend(other.machines);
    for (id, cluster) in other.clusters {
        let Some(known) = fleet.clusters.get_mut(&id) else {
            fleet.clusters.insert(id, cluster);
            continue;
        };
        let row = |need: &Need| (need.row.clone(), need.arrival, need.parked);
        let rows = known.needs().iter().chain(cluster.needs()).map(row);
        if let Ok(joined) = Cluster::new(&id, rows) {
            let (ready, acquire) = (known.ready, known.acquire);
            *known = joined;
            (known.ready, known.acquire) = (ready, acquire);
        }
    }
}
