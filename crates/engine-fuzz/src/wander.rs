//! Wander: an engine led to a fleet by random edits from an empty one.
//!
//! ```text
//! nothing ── a machine ── half a cluster ── decide ── a stranger ── the other half ── … ──▶ fleet
//! ```
//!
//! Whatever order the facts come in, whatever was believed of them in between and however often
//! something was decided on the way, the answer is that of the fleet.

use crate::edit::Edit;
use bigfleet_engine::Engine;
use bigfleet_model::{
    Cluster, ClusterId, Decision, Disruption, Fleet, FleetMachine, Holds, Leaving, Machine,
    MachineId, Need,
};
use bigfleet_seeded::Prng;
use std::time::Duration;

/// How often something is decided on the way, more or less.
const DECISIONS: usize = 200;

/// The answer for a fleet that was reached by edits drawn from this seed.
pub fn wander(fleet: &Fleet, seed: u64) -> Decision {
    let mut engine = Engine::new();
    walk(fleet, seed, &mut |edit| edit.tell(&mut engine));
    engine.decision()
}

/// The edits of a seed that lead to a fleet, one by one.
pub(crate) fn walk(fleet: &Fleet, seed: u64, tell: &mut dyn FnMut(Edit)) {
    let mut walk = Walk {
        fleet,
        machines: fleet.machines.values().collect(),
        prng: Prng::new(seed),
        tell,
        strangers: Vec::new(),
        steps: fleet.machines.len() + fleet.clusters.len(),
    };
    let mut errands: Vec<Errand<'_>> = fleet.machines.values().map(Errand::Machine).collect();
    errands.extend(
        fleet
            .clusters
            .iter()
            .map(|(id, cluster)| Errand::Cluster(id, cluster)),
    );
    walk.prng.shuffle(&mut errands);
    for errand in errands {
        match errand {
            Errand::Machine(machine) => walk.machine(machine),
            Errand::Cluster(id, cluster) => walk.cluster(id, cluster),
        }
        walk.stranger();
    }
    walk.arrive();
}

/// A fact of the fleet that is still to be brought.
enum Errand<'a> {
    Machine(&'a FleetMachine),
    Cluster(&'a ClusterId, &'a Cluster),
}

struct Walk<'a> {
    fleet: &'a Fleet,
    machines: Vec<&'a FleetMachine>,
    prng: Prng,
    tell: &'a mut dyn FnMut(Edit),
    strangers: Vec<Stranger>,
    steps: usize,
}

/// Something that is not in the fleet.
enum Stranger {
    Machine(MachineId),
    Cluster(ClusterId),
}

impl Walk<'_> {
    /// Brings a machine, perhaps after something else was believed of it.
    fn machine(&mut self, machine: &FleetMachine) {
        let id = machine.machine.id();
        match self.prng.below(8) {
            0 | 1 => {
                let other = *self.prng.pick(&self.machines);
                if let Some(mistaken) = renamed(other, id) {
                    self.put(&mistaken);
                }
            }
            2 => {
                self.put(machine);
                (self.tell)(Edit::RemoveMachine(id.clone()));
                self.perhaps_decide();
            }
            3 => {
                let mut marked = machine.clone();
                marked.not_ready = !marked.not_ready;
                marked.unavailable = !marked.unavailable;
                marked.reversible = !marked.reversible;
                self.put(&marked);
            }
            5 => {
                let mut marked = machine.clone();
                marked.leaving = match machine.leaving {
                    None | Some(Leaving::Now) => Some(Leaving::Soon),
                    Some(Leaving::Soon) => *self.prng.pick(&[None, Some(Leaving::Now)]),
                };
                self.put(&marked);
            }
            4 => {
                let mut other = machine.clone();
                let level = self.prng.below(17) as i64;
                other.disruption = Disruption::new(level);
                self.put(&other);
                (self.tell)(Edit::SetDisruption(id.clone(), machine.disruption));
            }
            _ => {}
        }
        self.put(machine);
    }

    fn put(&mut self, machine: &FleetMachine) {
        (self.tell)(Edit::PutMachine(machine.clone().into()));
        self.perhaps_decide();
    }

    /// Brings a cluster: at once, in parts, or row by row.
    fn cluster(&mut self, id: &ClusterId, cluster: &Cluster) {
        match self.prng.below(5) {
            0 => {
                let half = cluster
                    .needs()
                    .iter()
                    .filter(|_| self.prng.percent(50))
                    .collect();
                self.report(id, half);
            }
            1 => {
                (self.tell)(Edit::PutCluster(id.clone(), cluster.clone()));
                self.perhaps_decide();
                (self.tell)(Edit::RemoveCluster(id.clone()));
                self.perhaps_decide();
            }
            2 => {
                (self.tell)(Edit::Ready(id.clone()));
                self.row_by_row(cluster.needs());
                // Flags come with the whole only.
                if cluster.ready && cluster.acquire {
                    return;
                }
            }
            3 => {
                let mut other = cluster.clone();
                other.ready = !cluster.ready;
                other.acquire = self.prng.percent(50);
                (self.tell)(Edit::PutCluster(id.clone(), other.clone()));
                self.perhaps_decide();
            }
            _ => {}
        }
        (self.tell)(Edit::PutCluster(id.clone(), cluster.clone()));
        self.perhaps_decide();
    }

    /// Rows in any order, some of them too large, withdrawn or reported again on the way.
    fn row_by_row(&mut self, needs: &[Need]) {
        let mut needs: Vec<&Need> = needs.iter().collect();
        self.prng.shuffle(&mut needs);
        for need in needs {
            match self.prng.below(4) {
                0 => {
                    (self.tell)(Edit::PutRow(need.clone()));
                    self.perhaps_decide();
                    (self.tell)(Edit::RemoveRow(need.clone()));
                }
                1 => {
                    let mut larger = need.clone();
                    let sum = need.row.aggregate.checked_add(&need.row.min_unit);
                    larger.row.aggregate = sum.unwrap_or_default();
                    larger.parked = !need.parked;
                    larger.row.whole_units = false;
                    (self.tell)(Edit::PutRow(larger.clone()));
                }
                _ => {}
            }
            self.perhaps_decide();
            (self.tell)(Edit::PutRow(need.clone()));
            self.perhaps_decide();
        }
    }

    fn report(&mut self, id: &ClusterId, needs: Vec<&Need>) {
        let row = |need: &Need| (need.row.clone(), need.arrival, need.parked);
        // Rows of one cluster could be counted before, so fewer of them can.
        if let Ok(cluster) = Cluster::new(id, needs.into_iter().map(row)) {
            (self.tell)(Edit::PutCluster(id.clone(), cluster.clone()));
            self.perhaps_decide();
        }
    }

    /// Lets somebody in who does not belong here, or out again.
    fn stranger(&mut self) {
        match self.prng.below(12) {
            0 => self.machine_stranger(),
            1 => self.cluster_stranger(),
            2 | 3 if !self.strangers.is_empty() => {
                let at = self.prng.below(self.strangers.len());
                let stranger = self.strangers.swap_remove(at);
                self.remove(stranger);
            }
            _ => {}
        }
    }

    fn machine_stranger(&mut self) {
        let name = format!("stranger-{}", self.prng.below(1 << 20));
        let Ok(id) = MachineId::new(&name) else {
            return;
        };
        if self.machines.is_empty() || self.fleet.machines.contains_key(&id) {
            return;
        }
        let model = *self.prng.pick(&self.machines);
        if let Some(machine) = renamed(model, &id) {
            self.put(&machine);
            self.strangers.push(Stranger::Machine(id));
        }
    }

    fn cluster_stranger(&mut self) {
        let name = format!("stranger-{}", self.prng.below(1 << 20));
        let Ok(id) = ClusterId::new(&name) else {
            return;
        };
        let all: Vec<&Cluster> = self.fleet.clusters.values().collect();
        if all.is_empty() || self.fleet.clusters.contains_key(&id) {
            return;
        }
        let model = *self.prng.pick(&all);
        self.report(&id, model.needs().iter().collect());
        self.strangers.push(Stranger::Cluster(id));
    }

    fn remove(&mut self, stranger: Stranger) {
        match stranger {
            Stranger::Machine(id) => (self.tell)(Edit::RemoveMachine(id.clone())),
            Stranger::Cluster(id) => (self.tell)(Edit::RemoveCluster(id.clone())),
        }
        self.perhaps_decide();
    }

    /// Decides now and then, before the moment that counts, on holds that may be others.
    fn perhaps_decide(&mut self) {
        if DECISIONS <= self.prng.below(self.steps.max(3 * DECISIONS)) {
            return;
        }
        let holds = if self.prng.percent(20) {
            Holds::NEVER
        } else {
            self.fleet.holds
        };
        (self.tell)(Edit::SetHolds(holds));
        let now = self.fleet.now - Duration::from_secs(self.prng.below(1000) as u64);
        if self.prng.percent(10) {
            (self.tell)(Edit::DecideFull(now))
        } else {
            (self.tell)(Edit::Decide(now))
        }
    }

    fn arrive(mut self) {
        while let Some(stranger) = self.strangers.pop() {
            self.remove(stranger);
        }
        (self.tell)(Edit::SetHolds(self.fleet.holds));
        (self.tell)(Edit::Decide(self.fleet.now));
    }
}

/// The same machine under another id.
fn renamed(machine: &FleetMachine, id: &MachineId) -> Option<FleetMachine> {
    let mut facts = machine.machine.clone().into_facts();
    facts.id = id.to_string();
    let machine = FleetMachine {
        machine: Machine::new(facts).ok()?,
        ..machine.clone()
    };
    Some(machine)
}
