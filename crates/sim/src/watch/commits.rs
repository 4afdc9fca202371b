//! Commits: every operation from its record to its audit line.
//!
//! ```text
//! record written ─▶ on disk ─▶ may leave ─▶ audited
//!        └── never on disk, and the process died ─▶ forgotten: it never was
//! ```
//!
//! A machine has one open operation at a time.

use bigfleet_model::{ActionKind, ClusterId, MachineId, NeedKey, Reason};
use bigfleet_shard_core::{Barrier, OperationId, Record};
use std::collections::{BTreeMap, BTreeSet};

/// A decision, as its record shows it.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    pub(crate) operation: OperationId,
    pub(crate) machine: MachineId,
    pub(crate) kind: ActionKind,
    pub(crate) reason: Reason,
    /// Whom the machine goes to, or comes from.
    pub(crate) cluster: Option<ClusterId>,
    /// Whom it is for.
    pub(crate) need: Option<NeedKey>,
    /// The machine's node was not ready then.
    pub(crate) not_ready: bool,
}

impl Decided {
    /// Whether a Need gets a machine that was not its own; one that only goes on its way was.
    pub(crate) fn acquires(&self) -> bool {
        match self.reason {
            Reason::Idle | Reason::Speculative | Reason::Inversion => true,
            Reason::Promised | Reason::Restored => false,
            Reason::Excess | Reason::Leaving | Reason::Release => false,
        }
    }
}

#[derive(Clone, Debug)]
struct Operation {
    machine: MachineId,
    written: (u64, Barrier),
    on_disk: bool,
    left: bool,
    audits: u32,
    /// Nobody will ever tell how it ended.
    orphan: bool,
}

/// Every operation there ever was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commits {
    operations: BTreeMap<OperationId, Operation>,
    /// The newest operation on each machine and the one before it, as the shard's current process has them.
    newest: BTreeMap<MachineId, OperationId>,
    before: BTreeMap<OperationId, OperationId>,
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

    /// Whether an operation has begun and nobody has said how it ended.
    fn is_under_way(&self, id: OperationId) -> bool {
        let operation = self.operations.get(&id);
        operation.is_some_and(|one| one.audits == 0 && !one.orphan)
    }

    /// Which of these, just decided, are about a machine that something is being done with, and by
    /// which operation.
    pub(crate) fn doubled<'a>(&self, decided: &'a [Decided]) -> Option<(&'a Decided, OperationId)> {
        decided.iter().find_map(|one| {
            let earlier = self.before.get(&one.operation).copied()?;
            self.is_under_way(earlier).then_some((one, earlier))
        })
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
            self.begun(epoch, barrier, kept.id, machine);
            fresh.push(Decided {
                operation: kept.id,
                machine: machine.clone(),
                kind: kept.action,
                reason: kept.reason,
                cluster: kept.cluster.clone(),
                need: kept.need.clone(),
                not_ready: kept.not_ready,
            });
        }
        fresh
    }

    /// An operation is written for the first time.
    pub(super) fn begun(
        &mut self,
        epoch: u64,
        barrier: Barrier,
        id: OperationId,
        machine: &MachineId,
    ) {
        let outlived = self.outlived.contains(&epoch);
        let operation = Operation {
            machine: machine.clone(),
            written: (epoch, barrier),
            on_disk: false,
            left: false,
            audits: 0,
            orphan: outlived,
        };
        self.operations.insert(id, operation);
        self.unsure.push(id);
        if !outlived && let Some(earlier) = self.newest.insert(machine.clone(), id) {
            self.before.insert(id, earlier);
        }
    }

    /// An operation that acted, is not in the newest record of its machine any more, and was never audited.
    pub(crate) fn ended_unaudited(&self, records: &[Record]) -> Option<(OperationId, MachineId)> {
        records.iter().find_map(|record| {
            let Record::Machine { machine, kept } = record else {
                return None;
            };
            let newest = self.newest.get(machine).copied()?;
            let kept = kept.as_ref().and_then(|kept| kept.operation.as_deref());
            let over = kept.is_none_or(|kept| kept.id != newest);
            let left = self.operations.get(&newest).is_some_and(|one| one.left);
            (over && left && self.is_under_way(newest)).then(|| (newest, machine.clone()))
        })
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

    /// A new process found these records: what they hold is on disk, whoever was told; what was
    /// never surely there and is not in them, never was.
    pub(crate) fn found(&mut self, records: &[Record]) {
        for (_, kept) in operations_of(records) {
            if let Some(operation) = self.operations.get_mut(&kept.id) {
                operation.on_disk = true;
            }
        }
        let (operations, outlived) = (&mut self.operations, &self.outlived);
        self.unsure.retain(|id| {
            let Some(operation) = operations.get_mut(id) else {
                return false;
            };
            operation.orphan |= !operation.on_disk;
            outlived.contains(&operation.written.0)
        });
    }

    /// Everything that was written is gone with the disk it was on.
    pub(crate) fn disk_lost(&mut self) {
        for operation in self.operations.values_mut() {
            operation.orphan |= operation.audits == 0;
        }
    }

    /// Something of an operation leaves the process.
    pub(crate) fn leaves(&mut self, id: OperationId) -> Result<(), &'static str> {
        let Some(operation) = self.operations.get_mut(&id) else {
            return Err("was never written");
        };
        operation.left = true;
        if operation.on_disk {
            Ok(())
        } else {
            Err("is not on disk")
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

    pub(crate) fn newest_of(&self, machine: &MachineId) -> Option<OperationId> {
        self.newest.get(machine).copied()
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
