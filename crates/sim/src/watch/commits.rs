//! Commits: every operation from its record to its audit line.
//!
//! ```text
//! record written ─▶ on disk ─▶ may leave ─▶ audited
//! ```

use super::Decided;
use bigfleet_model::MachineId;
use bigfleet_shard_core::{Barrier, OperationId, Record};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Operation {
    machine: MachineId,
    written: (u64, Barrier),
    on_disk: bool,
    left: bool,
    audits: u32,
    orphan: bool,
}

/// Every operation there ever was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commits {
    operations: BTreeMap<OperationId, Operation>,
    /// Operations whose record is not on disk yet.
    unsure: Vec<OperationId>,
    /// Processes that lost their place: what they commit from then on is on a disk nobody reads.
    outlived: BTreeSet<u64>,
}

impl Commits {
    /// A process lost its place to a newer one.
    pub(crate) fn outlived(&mut self, epoch: u64) {
        self.outlived.insert(epoch);
    }

    /// Records are written; answers with the operations that are new in them.
    pub(crate) fn written(
        &mut self,
        epoch: u64,
        barrier: Barrier,
        records: &[Record],
    ) -> Vec<Decided> {
        let mut fresh = Vec::new();
        for (machine, kept) in operations_of(records) {
            if self.operations.contains_key(&kept.id) {
                continue;
            }
            let operation = Operation {
                machine: machine.clone(),
                written: (epoch, barrier),
                on_disk: false,
                left: false,
                audits: 0,
                orphan: self.outlived.contains(&epoch),
            };
            self.operations.insert(kept.id, operation);
            self.unsure.push(kept.id);
            fresh.push((kept.id, machine.clone(), kept.action, kept.cluster.clone()));
        }
        fresh
    }

    /// Everything a process wrote up to here is on disk.
    pub(crate) fn on_disk(&mut self, epoch: u64, barrier: Barrier) {
        let operations = &mut self.operations;
        self.unsure.retain(|id| {
            let Some(operation) = operations.get_mut(id) else {
                return false;
            };
            operation.on_disk |= operation.written.0 == epoch && operation.written.1 <= barrier;
            !operation.on_disk
        });
    }

    /// A new process found these records: what they hold is on disk, whoever was told.
    pub(crate) fn found(&mut self, records: &[Record]) {
        for (_, kept) in operations_of(records) {
            if let Some(operation) = self.operations.get_mut(&kept.id) {
                operation.on_disk = true;
            }
        }
    }

    /// Something of an operation leaves the process.
    pub(crate) fn leaves(&mut self, id: OperationId) -> Result<(), &'static str> {
        let Some(operation) = self.operations.get_mut(&id) else {
            return Err("was never written");
        };
        operation.left = true;
        match operation.on_disk {
            true => Ok(()),
            false => Err("is not on disk"),
        }
    }

    pub(crate) fn audited(&mut self, id: OperationId) {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.audits += 1;
        }
    }

    pub(crate) fn is_open(&self, id: OperationId) -> bool {
        let operation = self.operations.get(&id);
        operation.is_some_and(|operation| operation.audits == 0)
    }

    pub(crate) fn machine_of(&self, id: OperationId) -> Option<MachineId> {
        let operation = self.operations.get(&id);
        operation.map(|operation| operation.machine.clone())
    }

    /// An operation that acted and of which no audit line tells.
    pub(crate) fn unaudited(&self) -> Option<(OperationId, &MachineId)> {
        let mut operations = self.operations.iter();
        let silent = operations.find(|(_, one)| one.left && one.audits == 0 && !one.orphan);
        silent.map(|(id, one)| (*id, &one.machine))
    }
}

fn operations_of(
    records: &[Record],
) -> impl Iterator<Item = (&MachineId, &bigfleet_shard_core::KeptOperation)> {
    records.iter().filter_map(|record| match record {
        Record::Machine {
            machine,
            kept: Some(kept),
        } => kept
            .operation
            .as_deref()
            .map(|operation| (machine, operation)),
        _ => None,
    })
}
