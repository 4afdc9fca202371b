//! Journal: what is to reach the disk, and in which write (SH-5).
//!
//! ```text
//! note ─▶ pending ─▶ write: one barrier, one Persist ─▶ the answer releases what waited for it
//! ```
//!
//! A machine is noted by its id and read when it is written, so that ten changes are one record.
//!
//! **Invariant:** what is pending is written by the next barrier, and while anything is pending a flush is
//! armed.

use crate::{
    effect::Barrier,
    record::{Kept, Record},
};
use bigfleet_model::MachineId;
use std::collections::BTreeSet;

/// What is not on disk yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    issued: u64,
    machines: BTreeSet<MachineId>,
    records: Vec<Record>,
    is_armed: bool,
    /// Whether something a report speaks of is pending, and the last write that had such a thing.
    speaks: bool,
    spoken: Barrier,
    durable: Barrier,
}

/// Whether whoever noted something is to set the reminder to flush.
#[must_use]
pub(crate) struct Arm(pub(crate) bool);

impl Journal {
    /// The epoch is written with whatever comes first.
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            records: vec![Record::Epoch(epoch)],
            ..Self::default()
        }
    }

    /// Something about a machine changed.
    pub(crate) fn note_machine(&mut self, machine: &MachineId) -> Arm {
        self.machines.insert(machine.clone());
        self.arm()
    }

    /// A record that replaces nothing yet written.
    pub(crate) fn note(&mut self, record: Record) -> Arm {
        self.records.push(record);
        self.arm()
    }

    /// The same of something a report speaks of.
    pub(crate) fn note_spoken(&mut self, record: Record) -> Arm {
        self.speaks = true;
        self.note(record)
    }

    /// Whether something a report speaks of is not even handed out.
    pub(crate) fn speaks(&self) -> bool {
        self.speaks
    }

    /// The write that has the last of it.
    pub(crate) fn spoken(&self) -> Barrier {
        self.spoken
    }

    /// Everything up to there is on disk.
    pub(crate) fn persisted(&mut self, barrier: Barrier) {
        self.durable = self.durable.max(barrier);
    }

    /// Whether a write is on disk.
    pub(crate) fn is_on_disk(&self, barrier: Barrier) -> bool {
        barrier <= self.durable
    }

    /// Arms a flush of what is pending.
    pub(crate) fn arm(&mut self) -> Arm {
        Arm(!std::mem::replace(&mut self.is_armed, true))
    }

    /// The reminder to flush has come.
    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
    }

    /// The barrier the next write will have.
    pub(crate) fn next_barrier(&self) -> Barrier {
        Barrier(self.issued + 1)
    }

    /// Everything that is pending, as one write; `None` if nothing is.
    pub(crate) fn write(
        &mut self,
        kept: impl Fn(&MachineId) -> Option<Box<Kept>>,
    ) -> Option<(Barrier, Vec<Record>)> {
        let mut records = std::mem::take(&mut self.records);
        for machine in std::mem::take(&mut self.machines) {
            let kept = kept(&machine);
            records.push(Record::Machine { machine, kept });
        }
        if records.is_empty() {
            return None;
        }
        self.issued += 1;
        let barrier = Barrier(self.issued);
        if std::mem::take(&mut self.speaks) {
            self.spoken = barrier;
        }
        Some((barrier, records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_changes_of_a_machine_are_one_record_in_one_write() {
        let mut journal = Journal::new(7);
        let machine = MachineId::new("m1").unwrap();
        let armed: Vec<bool> = (0..10).map(|_| journal.note_machine(&machine).0).collect();
        assert!(armed[0] && !armed[1..].contains(&true), "armed once");
        assert!(!journal.note(Record::ForeignSeen).0);
        assert_eq!(journal.next_barrier(), Barrier(1));
        let expected = vec![
            Record::Epoch(7),
            Record::ForeignSeen,
            Record::Machine {
                machine: machine.clone(),
                kept: None,
            },
        ];
        assert_eq!(journal.write(|_| None), Some((Barrier(1), expected)));
        assert_eq!(journal.write(|_| None), None, "nothing is pending");
        assert_eq!(journal.next_barrier(), Barrier(2));
        journal.disarm();
        assert!(journal.note_machine(&machine).0, "armed anew");
    }
}
