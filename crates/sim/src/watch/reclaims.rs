//! Reclaims: how many machines of a cluster were told to go within one interval (SH-30).
//!
//! Counted as they leave, whichever process lets them: what a crash makes a shard forget is still in here. A machine
//! that is told to go twice is one, a drain that is taken back gives its place back (SH-18), and whoever finds an
//! empty disk cannot know what the one before it did.

use super::Rule;
use crate::{
    clock::{Moment, seconds},
    world::World,
};
use bigfleet_model::{ActionKind, ClusterId, MachineId};
use bigfleet_shard_core::OperationId;
use std::collections::{BTreeMap, BTreeSet};

/// The reclaims of every process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reclaims {
    /// Decided, and nothing of it has left.
    decided: BTreeMap<OperationId, (ClusterId, MachineId)>,
    /// When the machines of a cluster were told to go, and by which operation; oldest first.
    left: BTreeMap<ClusterId, Vec<(Moment, OperationId, MachineId)>>,
}

impl Reclaims {
    /// A decision was written for the first time.
    pub(super) fn decided(&mut self, one: &super::Decided) {
        if one.kind == ActionKind::Reclaim
            && let Some(cluster) = &one.cluster
        {
            let whose = (cluster.clone(), one.machine.clone());
            self.decided.insert(one.operation, whose);
        }
    }

    /// It did not leave after all.
    pub(super) fn taken_back(&mut self, id: OperationId) {
        self.decided.remove(&id);
        for left in self.left.values_mut() {
            left.retain(|(_, operation, _)| *operation != id);
        }
    }

    /// A process begins that knows nothing of those before it.
    pub(super) fn forget(&mut self) {
        self.left.clear();
    }

    /// Something of an operation leaves. If it is the first of a reclaim: from which cluster, and how many
    /// left that one since then, this one included.
    pub(super) fn leaves(
        &mut self,
        id: OperationId,
        now: Moment,
        interval: u64,
    ) -> Option<(ClusterId, usize)> {
        let (cluster, machine) = self.decided.remove(&id)?;
        let left = self.left.entry(cluster.clone()).or_default();
        left.retain(|(at, ..)| now.since(*at) < interval);
        left.push((now, id, machine));
        let machines: BTreeSet<&MachineId> = left.iter().map(|(.., machine)| machine).collect();
        let count = machines.len();
        Some((cluster, count))
    }
}

impl World {
    /// SH-30: no stretch of one interval has more reclaims of a cluster than rail 1 allows.
    pub(super) fn check_window(&mut self, operation: OperationId) {
        if !self.plan.shard.rails {
            return;
        }
        let interval = seconds(self.plan.shard.cycle_seconds);
        let leaves = self.watch.reclaims.leaves(operation, self.now, interval);
        let Some((id, count)) = leaves else {
            return;
        };
        let bound = self.cloud.machines();
        let bound = bound.filter(|one| one.cluster == id.as_str()).count();
        // Those that have left and are gone already served when they were decided on.
        let allowed = ((bound + count) / 20).max(1);
        if allowed < count {
            let text = format!("{count} machines of {id} were told to go within {interval} ms");
            self.watch.broke(Rule::ReclaimCap, self.now, text);
        }
    }
}
