//! Export: the fleet as one value, copied in steps so that no cycle waits for a reader.
//!
//! ```text
//! step, step, step … ─▶ machines in id order, then clusters ─▶ what changed meanwhile ─▶ Fleet
//! ```
//!
//! A step copies a bounded number of machines and rows, in the core's own thread, between events. What
//! changed behind a copy's back is copied once more in its last step, so the value that comes out is
//! the fleet of one moment: that of the last step. A copy that falls behind by more changes than are
//! remembered begins anew. Whoever holds the value writes a file of it, or asks the engine to explain
//! a Need, in a thread of their own.

use super::Reads;
use crate::demand::ClusterDemand;
use bigfleet_engine::Explanation;
use bigfleet_model::{Cluster, ClusterId, Fleet, FleetMachine, MachineId, NeedKey};
use std::collections::{BTreeMap, BTreeSet};

/// A copy of the fleet that is being made.
#[derive(Clone, Debug, Default)]
pub struct Export {
    fleet: Fleet,
    /// The last machine copied.
    after: Option<MachineId>,
    machines_done: bool,
    /// Changes that were seen when the copy began.
    seen: Option<u64>,
    /// The clusters copied, with the state of demand they were copied at.
    clusters: BTreeMap<ClusterId, u64>,
}

impl Export {
    /// A copy that is not begun.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Reads<'_> {
    /// Takes a copy further by at most so many machines and about as many rows; the fleet, once it
    /// is whole.
    pub(crate) fn export_step(&self, export: &mut Export, most: usize) -> Option<Fleet> {
        let changes = self.supply.ledger().changes();
        let began = *export.seen.get_or_insert(changes.count());
        if changes.since(began).is_none() {
            *export = Export::new(); // too much happened meanwhile
            return None;
        }
        if !export.machines_done {
            self.copy_machines(export, most);
            return None;
        }
        let stale = self.stale_clusters(export);
        let changed: BTreeSet<&MachineId> = changes.since(began)?.collect();
        if !self.copy_clusters(export, stale, most) || most < changed.len() {
            // Catch up with what changed, in a step of its own.
            for id in changed {
                refresh(&mut export.fleet, id, self.supply.told(id));
            }
            export.seen = Some(changes.count());
            return None;
        }
        for id in changed {
            refresh(&mut export.fleet, id, self.supply.told(id));
        }
        let mut fleet = std::mem::take(export).fleet;
        fleet.now = self.now;
        fleet.holds = self.config.holds;
        fleet.clusters.retain(|id, _| self.demand.of(id).is_some());
        Some(fleet)
    }

    fn copy_machines(&self, export: &mut Export, most: usize) {
        let after = export.after.take();
        let rest = self.supply.ledger().after(after.as_ref());
        let rest = rest.map(|machine| machine.id());
        let mut count = 0;
        for id in rest.take(most) {
            count += 1;
            export.after = Some(id.clone());
            refresh(&mut export.fleet, id, self.supply.told(id));
        }
        export.machines_done = count < most;
    }

    /// Clusters whose demand is not the one that was copied.
    fn stale_clusters(&self, export: &Export) -> Vec<ClusterId> {
        let known = self.demand.clusters();
        let stale = known.filter(|(id, known)| export.clusters.get(*id) != Some(&known.told()));
        stale.map(|(id, _)| id.clone()).collect()
    }

    /// Whether all of these are copied now.
    fn copy_clusters(&self, export: &mut Export, stale: Vec<ClusterId>, most: usize) -> bool {
        let mut rows = 0;
        for id in stale {
            let Some(known) = self.demand.of(&id) else {
                continue;
            };
            if 0 < rows && most < rows + known.len() {
                return false;
            }
            rows += known.len();
            export.clusters.insert(id.clone(), known.told());
            match cluster(&id, known) {
                Some(value) => export.fleet.clusters.insert(id, value),
                None => export.fleet.clusters.remove(&id),
            };
        }
        true
    }
}

/// A cluster as the engine was told of it; one that has not reported it was not.
fn cluster(id: &ClusterId, known: &ClusterDemand) -> Option<Cluster> {
    known.as_told(id).filter(|value| value.ready)
}

fn refresh(fleet: &mut Fleet, id: &MachineId, told: Option<FleetMachine>) {
    match told {
        Some(told) => fleet.put(told),
        None => {
            fleet.machines.remove(id);
        }
    }
}

/// Why a Need of an exported fleet gets what it gets; `None` if there is no such Need.
pub fn explain(fleet: &Fleet, need: &NeedKey) -> Option<Explanation> {
    bigfleet_engine::explain(fleet, need)
}
