//! Fleet: a workload as the one value a decision is made from.
//!
//! Every record is written out in full, a kilobyte or so each: for the sizes an oracle can run, not
//! for half a million machines.

use crate::{SeededMachine, Tier, Workload, valid};
use bigfleet_model::{Cluster, Fleet, FleetMachine, Holds, Host, Machine, MachineFacts, Time};

/// When every row of a workload arrived, in seconds.
const ARRIVAL_SECONDS: f64 = 1.0;
/// The moment of the decision, in seconds.
const NOW_SECONDS: f64 = 3600.0;

impl Workload {
    /// The whole fleet: every machine as a checked record, every cluster ready and reported.
    pub fn fleet(&self) -> Fleet {
        let now = time(NOW_SECONDS);
        let mut fleet = Fleet {
            now,
            holds: Holds::default(),
            ..Fleet::default()
        };
        for machine in self.machines() {
            let idle = machine.tier == Tier::Idle;
            fleet.put(FleetMachine {
                idle_since: idle.then_some(now),
                disruption: self.disruption(&machine),
                ..self.record(&machine).into()
            });
        }
        for cluster in self.clusters() {
            let rows = cluster
                .rows()
                .map(|row| (row, Some(time(ARRIVAL_SECONDS)), false));
            let reported = Cluster::new(cluster.id(), rows);
            let reported = reported.map_err(|at| format!("row {at} cannot be counted"));
            fleet.clusters.insert(cluster.id().clone(), valid(reported));
        }
        fleet
    }

    /// One machine as a checked record.
    pub fn record(&self, machine: &SeededMachine) -> Machine {
        let tier = machine.tier;
        let id = machine.to_string();
        let host = match tier {
            Tier::Configured | Tier::Idle => Host {
                provider: "seed".to_owned(),
                reference: id.clone(),
            },
            Tier::Speculative | Tier::Spot => Host::default(),
        };
        let mut facts = MachineFacts {
            host,
            shape: self.shapes()[machine.shape()].clone(),
            price_per_hour: tier.price_per_hour(),
            interruption_probability: tier.interruption_probability(),
            ..MachineFacts::new(&id, tier.state())
        };
        if let Some(commitment) = self.commitment(machine) {
            facts.cluster = commitment.cluster.to_string();
            facts.assignment = commitment.assignment();
        }
        valid(Machine::new(facts))
    }
}

fn time(seconds: f64) -> Time {
    Time::from_seconds(seconds).unwrap_or_default()
}
