//! Lists: who waits for the same thing, in the order it will be served.
//!
//! ```text
//! Disk ─▶ awaiting_disk      Ready ─▶ ready ◀─▶ no_slot, crowded, no_room      Blob ─▶ asked
//! ```

use super::{Operation, QueuePosition, WorkStage};
use crate::effect::{Barrier, OperationId, RequestId};
use bigfleet_model::{ClusterId, MachineId};
use std::collections::{BTreeMap, BTreeSet};

/// Operations by what they wait for. One that waits for something else is in none of these.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    /// In stage Disk, by the write they wait for.
    awaiting_disk: BTreeSet<(Barrier, OperationId)>,
    /// In stage Ready, with a chance to leave; most urgent first.
    ready: BTreeSet<QueuePosition>,
    /// In stage Ready, but all they lack is a call slot: not looked at while there is none.
    no_slot: BTreeSet<QueuePosition>,
    /// In stage Ready, but their cluster has all its calls out: not looked at while it has.
    crowded: BTreeMap<ClusterId, BTreeSet<QueuePosition>>,
    /// In stage Ready, but without a blob, and their cluster has as many bytes of blobs as it may.
    no_room: BTreeMap<ClusterId, BTreeSet<QueuePosition>>,
    /// In stage Blob, by what was asked.
    asked: BTreeMap<RequestId, MachineId>,
    /// How many are in stage Provider: their end is seen in a List.
    at_provider: usize,
}

impl Lists {
    /// Lists an operation where its stage says.
    pub(super) fn join(&mut self, operation: &Operation) {
        match operation.stage {
            WorkStage::Disk => {
                self.awaiting_disk.insert((operation.barrier, operation.id));
            }
            WorkStage::Ready => {
                self.ready.insert(operation.position());
            }
            WorkStage::Blob(request) => {
                self.asked.insert(request, operation.machine.clone());
            }
            WorkStage::Provider => self.at_provider += 1,
            WorkStage::DrainReport
            | WorkStage::Call(_)
            | WorkStage::Backoff
            | WorkStage::Confirm => {}
        }
    }

    /// Takes an operation from wherever its stage has put it.
    pub(super) fn leave(&mut self, operation: &Operation) {
        match operation.stage {
            WorkStage::Disk => {
                self.awaiting_disk
                    .remove(&(operation.barrier, operation.id));
            }
            WorkStage::Ready => self.leave_line(operation),
            WorkStage::Blob(request) => {
                self.asked.remove(&request);
            }
            WorkStage::Provider => self.at_provider -= 1,
            WorkStage::DrainReport
            | WorkStage::Call(_)
            | WorkStage::Backoff
            | WorkStage::Confirm => {}
        }
    }

    fn leave_line(&mut self, operation: &Operation) {
        let position = operation.position();
        if self.ready.remove(&position) || self.no_slot.remove(&position) {
            return;
        }
        let Some(cluster) = &operation.cluster else {
            return;
        };
        for lines in [&mut self.crowded, &mut self.no_room] {
            if let Some(line) = lines.get_mut(cluster) {
                line.remove(&position);
                if line.is_empty() {
                    lines.remove(cluster);
                }
            }
        }
    }

    /// One that waits for a write up to this barrier.
    pub(super) fn next_on_disk(&self, durable: Barrier) -> Option<OperationId> {
        let first = self.awaiting_disk.first();
        first
            .filter(|(barrier, _)| *barrier <= durable)
            .map(|(_, operation)| *operation)
    }

    pub(super) fn asked(&self, request: RequestId) -> Option<&MachineId> {
        self.asked.get(&request)
    }

    /// Machines that wait for a blob, oldest request first.
    pub(super) fn all_asked(&self) -> impl Iterator<Item = &MachineId> {
        self.asked.values()
    }

    pub(super) fn at_provider(&self) -> usize {
        self.at_provider
    }

    /// How many are in stage Ready.
    pub(super) fn in_line(&self) -> usize {
        let aside = self.crowded.values().chain(self.no_room.values());
        let aside: usize = aside.map(BTreeSet::len).sum();
        self.ready.len() + self.no_slot.len() + aside
    }

    /// The next after this one that has a chance to leave.
    pub(super) fn next_ready(
        &self,
        after: Option<QueuePosition>,
        has_slot: bool,
    ) -> Option<QueuePosition> {
        use std::ops::Bound::{Excluded, Unbounded};
        let next = |line: &BTreeSet<QueuePosition>| {
            let lower = after.map_or(Unbounded, Excluded);
            line.range((lower, Unbounded)).next().copied()
        };
        let no_slot = if has_slot { next(&self.no_slot) } else { None };
        next(&self.ready).into_iter().chain(no_slot).min()
    }

    /// One in line only lacks a call slot.
    pub(super) fn await_slot(&mut self, operation: &Operation) {
        self.leave_line(operation);
        self.no_slot.insert(operation.position());
    }

    /// One in line only lacks a call of its cluster's.
    pub(super) fn await_share(&mut self, operation: &Operation) {
        if let Some(cluster) = &operation.cluster {
            self.leave_line(operation);
            let line = self.crowded.entry(cluster.clone()).or_default();
            line.insert(operation.position());
        }
    }

    /// One in line lacks a blob, and there is no room for it.
    pub(super) fn await_room(&mut self, operation: &Operation) {
        if let Some(cluster) = &operation.cluster {
            self.leave_line(operation);
            let line = self.no_room.entry(cluster.clone()).or_default();
            line.insert(operation.position());
        }
    }

    /// Clusters with operations that wait for a call of theirs.
    pub(super) fn crowded_clusters(&self) -> Vec<ClusterId> {
        self.crowded.keys().cloned().collect()
    }

    /// Clusters with operations that wait for room for their blobs.
    pub(super) fn clusters_without_room(&self) -> Vec<ClusterId> {
        self.no_room.keys().cloned().collect()
    }

    /// So many of a cluster's have a chance again.
    pub(super) fn ease(&mut self, cluster: &ClusterId, most: usize) {
        self.ready.extend(first(&mut self.crowded, cluster, most));
    }

    /// So many of a cluster's may be asked for.
    pub(super) fn make_room(&mut self, cluster: &ClusterId, most: usize) {
        self.ready.extend(first(&mut self.no_room, cluster, most));
    }

    /// Whether an operation is listed where its stage says, and once; [`Self::len`] says whether anything
    /// else is listed.
    pub(super) fn has(&self, operation: &Operation) -> bool {
        let position = operation.position();
        match operation.stage {
            WorkStage::Disk => self
                .awaiting_disk
                .contains(&(operation.barrier, operation.id)),
            WorkStage::Ready => {
                let cluster = operation.cluster.as_ref();
                let crowded = cluster.and_then(|cluster| self.crowded.get(cluster));
                let no_room = cluster.and_then(|cluster| self.no_room.get(cluster));
                let lines = [Some(&self.ready), Some(&self.no_slot), crowded, no_room];
                let lines = lines.into_iter().flatten();
                lines.filter(|line| line.contains(&position)).count() == 1
            }
            WorkStage::Blob(request) => self.asked.get(&request) == Some(&operation.machine),
            WorkStage::DrainReport
            | WorkStage::Call(_)
            | WorkStage::Provider
            | WorkStage::Backoff
            | WorkStage::Confirm => true,
        }
    }

    /// How many are listed altogether.
    pub(super) fn len(&self) -> usize {
        self.in_line() + self.awaiting_disk.len() + self.asked.len()
    }
}

/// Takes the first of a cluster's out of those that were put aside.
fn first(
    aside: &mut BTreeMap<ClusterId, BTreeSet<QueuePosition>>,
    cluster: &ClusterId,
    most: usize,
) -> Vec<QueuePosition> {
    let Some(line) = aside.get_mut(cluster) else {
        return Vec::new();
    };
    let eased = std::iter::from_fn(|| line.pop_first()).take(most).collect();
    if line.is_empty() {
        aside.remove(cluster);
    }
    eased
}
