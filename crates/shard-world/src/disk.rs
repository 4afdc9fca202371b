//! The disk of a process: what it wrote, and how much of that a crash cannot take away.
//!
//! ```text
//! Persist ─▶ written, in order ─▶ durable ─▶ Persisted        crash ─▶ any prefix from "durable" on
//! ```

use bigfleet_shard_core::{Barrier, Record};
use std::collections::BTreeMap;

/// The records a process has written, and how many of them are surely on disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    records: Vec<Record>,
    durable: usize,
    /// How long the file is with each write that is under way.
    writes: BTreeMap<Barrier, usize>,
}

impl Disk {
    /// A disk on which a process finds these.
    pub fn holding(records: Vec<Record>) -> Self {
        Self {
            durable: records.len(),
            records,
            writes: BTreeMap::new(),
        }
    }

    /// Begins a write.
    pub fn write(&mut self, barrier: Barrier, records: Vec<Record>) {
        self.records.extend(records);
        self.writes.insert(barrier, self.records.len());
    }

    /// A write has ended: it is durable, and whatever was written before it.
    pub fn written(&mut self, barrier: Barrier) {
        let upto = self.writes.remove(&barrier).unwrap_or(0);
        self.durable = self.durable.max(upto);
    }

    /// Everything that was written, durable or not.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many records were written.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many records are durable.
    pub fn durable(&self) -> usize {
        self.durable
    }

    /// How many records are not.
    pub fn unsure(&self) -> usize {
        self.records.len() - self.durable
    }

    /// The records a new process finds: the durable ones, and so many more that happened to get written.
    pub fn found(&self, more: usize) -> Vec<Record> {
        self.records[..self.durable + more.min(self.unsure())].to_vec()
    }

    /// Replaces the file by these records, which say the same as all that were written.
    pub fn compact(&mut self, records: Vec<Record>) {
        *self = Self::holding(records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_leaves_what_is_durable_and_any_prefix_of_the_rest() {
        let mut disk = Disk::holding(vec![Record::Epoch(1)]);
        disk.write(Barrier(1), vec![Record::Term(2)]);
        disk.write(Barrier(2), vec![Record::Term(3), Record::Term(4)]);
        assert_eq!((disk.durable(), disk.unsure()), (1, 3));
        disk.written(Barrier(1));
        assert_eq!(disk.found(0), [Record::Epoch(1), Record::Term(2)]);
        assert_eq!(disk.found(1).last(), Some(&Record::Term(3)));
        assert_eq!(disk.found(9), disk.records());
        disk.written(Barrier(2));
        assert_eq!((disk.durable(), disk.unsure()), (4, 0));
    }

    #[test]
    fn a_write_that_ends_late_takes_nothing_back() {
        let mut disk = Disk::default();
        disk.write(Barrier(1), vec![Record::Term(1)]);
        disk.write(Barrier(2), vec![Record::Term(2)]);
        disk.written(Barrier(2));
        disk.written(Barrier(1));
        assert_eq!(disk.durable(), 2);
        disk.compact(vec![Record::Term(2)]);
        disk.written(Barrier(2));
        assert_eq!((disk.durable(), disk.len()), (1, 1));
    }
}
