//! Tables: everything a provider must not forget, and the changes that move it.
//!
//! ```text
//! write(change) ─▶ applied in memory ─▶ pending ──┬─ stored ──▶ commit:   visible, answered
//!                                                 └─ refused ─▶ rollback: as if never asked
//! ```
//!
//! A change is the unit of the store too: loading is applying the same changes in the same order,
//! so what a restart sees is what the process saw.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{MachineId, State};

use crate::call::Transition;
use crate::fencing_marks::{FencingMarks, Mark, MarkBefore, MarkKey};
use crate::machine::Machine;

/// Removed ids remembered for delta lists; a cursor older than the oldest gets a full list.
pub(crate) const MAX_TOMBSTONES: usize = 65_536;

/// One durable change. Applying the same changes in the same order gives the same tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A machine is now like this, as of this revision.
    Machine {
        /// The record as it is from now on.
        machine: Arc<Machine>,
        /// Higher than every earlier one.
        revision: u64,
    },
    /// A machine ceased to exist.
    Removed {
        /// The machine that is gone.
        id: MachineId,
        /// Higher than every earlier one.
        revision: u64,
    },
    /// A token passed the fence.
    Mark {
        /// For which machine and shard.
        key: MarkKey,
        /// The highest token seen so far.
        mark: Mark,
    },
    /// A mark of an unknown machine aged out.
    MarkForgotten {
        /// The machine and the shard of the mark.
        key: MarkKey,
    },
    /// An operation was started; replaces the record of its kind.
    Operation {
        /// The machine the operation is about.
        machine: MachineId,
        /// The transition that was started.
        kind: Transition,
        /// Its id.
        operation: Arc<str>,
        /// The counter after it.
        next: u64,
        /// What a Drain was granted; else 0.
        grace_seconds: u64,
    },
}

/// A machine with what is recorded about it.
#[derive(Clone, Debug)]
pub struct MachineEntry {
    /// The record, shared with whoever lists it.
    pub machine: Arc<Machine>,
    /// When it last changed.
    pub revision: u64,
    operations: [Option<Arc<str>>; 4],
    grace_seconds: u64,
}

impl MachineEntry {
    /// What the last Drain was granted.
    pub(crate) fn grace_seconds(&self) -> u64 {
        self.grace_seconds
    }

    /// The id of the last operation of this kind.
    pub fn operation(&self, kind: Transition) -> Option<&Arc<str>> {
        self.operations[kind as usize].as_ref()
    }
}

#[derive(Debug)]
enum Undo {
    Machine(MachineId, Option<MachineEntry>),
    Removed(u64, MachineEntry),
    Mark(MarkBefore),
    Operation(MachineId, Transition, Option<Arc<str>>, u64, u64),
}

/// All that is known. Reading is public; writing goes through the kit.
#[derive(Debug)]
pub struct Tables {
    incarnation: u64,
    head: u64,
    next_operation: u64,
    machines: BTreeMap<MachineId, MachineEntry>,
    by_revision: BTreeMap<u64, MachineId>,
    removed: BTreeMap<u64, MachineId>,
    floor: u64,
    marks: FencingMarks,
    counts: [usize; 9],
    pending: Vec<Change>,
    undo: Vec<(Undo, u64)>,
}

impl Tables {
    /// Empty tables of a new store. The incarnation tells its cursors and operation ids from those
    /// of every other store.
    pub fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            head: 0,
            next_operation: 0,
            machines: BTreeMap::new(),
            by_revision: BTreeMap::new(),
            removed: BTreeMap::new(),
            floor: 0,
            marks: FencingMarks::default(),
            counts: [0; 9],
            pending: Vec::new(),
            undo: Vec::new(),
        }
    }

    /// A number drawn when the store was made: cursors of another store are not understood.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The revision of the newest change.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// How many operations were ever started.
    pub fn next_operation(&self) -> u64 {
        self.next_operation
    }

    /// Whether nothing was ever recorded: a first boot.
    pub fn is_blank(&self) -> bool {
        let nothing = self.machines.is_empty() && self.marks.all().is_empty();
        nothing && self.head == 0 && self.next_operation == 0
    }

    /// Machines by id.
    pub fn machines(&self) -> &BTreeMap<MachineId, MachineEntry> {
        &self.machines
    }

    /// Machines in the order of their last change.
    pub(crate) fn by_revision(&self) -> &BTreeMap<u64, MachineId> {
        &self.by_revision
    }

    /// Removed ids by the revision that removed them.
    pub(crate) fn removed(&self) -> &BTreeMap<u64, MachineId> {
        &self.removed
    }

    /// The oldest revision from which a delta can name every removal.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Every mark.
    pub fn marks(&self) -> &BTreeMap<MarkKey, Mark> {
        self.marks.all()
    }

    /// The highest epoch a shard has shown, whatever the machine.
    pub(crate) fn highest_epoch(&self, shard: &str) -> Option<i64> {
        self.marks.highest_epoch(shard)
    }

    /// How many machines are in this state.
    pub fn count(&self, state: State) -> usize {
        self.counts[state.number() as usize]
    }

    /// The smallest set of changes that makes these tables out of empty ones.
    pub fn snapshot(&self) -> impl Iterator<Item = Change> + '_ {
        let machine = |id: &MachineId| {
            let entry = self.machines.get(id)?;
            let (machine, revision) = (Arc::clone(&entry.machine), entry.revision);
            Some(Change::Machine { machine, revision })
        };
        let removed = |(revision, id): (&u64, &MachineId)| Change::Removed {
            id: id.clone(),
            revision: *revision,
        };
        let operations = self.machines.iter().flat_map(|(id, entry)| {
            Transition::ALL.into_iter().filter_map(|kind| {
                let operation = Arc::clone(entry.operation(kind)?);
                let (machine, next) = (id.clone(), self.next_operation);
                let grace_seconds = match kind {
                    Transition::Drain => entry.grace_seconds,
                    Transition::Create | Transition::Configure | Transition::Delete => 0,
                };
                Some(Change::Operation {
                    machine,
                    kind,
                    operation,
                    next,
                    grace_seconds,
                })
            })
        });
        let marks = self.marks.all().iter();
        self.by_revision
            .values()
            .filter_map(machine)
            .chain(self.removed.iter().map(removed))
            .chain(operations)
            .chain(marks.map(|(key, mark)| Change::Mark {
                key: key.clone(),
                mark: *mark,
            }))
    }

    /// The counters, which a snapshot cannot always derive from its changes.
    pub fn restore_counters(&mut self, head: u64, next_operation: u64) {
        self.head = self.head.max(head);
        self.next_operation = self.next_operation.max(next_operation);
    }

    /// Applies a change that is already stored.
    pub fn load(&mut self, change: Change) {
        self.apply(&change);
    }

    pub(crate) fn next_revision(&self) -> u64 {
        self.head + 1
    }

    /// Applies a change that is yet to be stored.
    pub(crate) fn write(&mut self, change: Change) {
        let head = self.head;
        let undo = match &change {
            Change::Machine { machine, .. } => {
                let before = self.machines.get(&machine.id).cloned();
                Some(Undo::Machine(machine.id.clone(), before))
            }
            Change::Removed { id, revision } => {
                let before = self.machines.get(id).cloned();
                before.map(|entry| Undo::Removed(*revision, entry))
            }
            Change::Mark { key, .. } | Change::MarkForgotten { key } => {
                Some(Undo::Mark(self.marks.before(key)))
            }
            Change::Operation { machine, kind, .. } => {
                let entry = self.machines.get(machine);
                let before = entry.and_then(|entry| entry.operation(*kind).cloned());
                let grace = entry.map_or(0, MachineEntry::grace_seconds);
                let (id, next) = (machine.clone(), self.next_operation);
                Some(Undo::Operation(id, *kind, before, next, grace))
            }
        };
        self.undo.extend(undo.map(|undo| (undo, head)));
        self.apply(&change);
        self.pending.push(change);
        self.forget_old_ghosts();
    }

    /// What was written since the last commit or rollback.
    pub fn pending(&self) -> &[Change] {
        &self.pending
    }

    /// The pending changes are stored.
    pub fn commit(&mut self) {
        self.pending.clear();
        self.undo.clear();
    }

    /// The pending changes could not be stored: take them back, newest first.
    pub fn rollback(&mut self) {
        self.pending.clear();
        while let Some((undo, head)) = self.undo.pop() {
            match undo {
                Undo::Machine(id, before) => self.put_back(&id, before),
                Undo::Removed(revision, entry) => {
                    self.removed.remove(&revision);
                    self.put_back(&entry.machine.id.clone(), Some(entry));
                }
                Undo::Mark(before) => self.marks.restore(before),
                Undo::Operation(id, kind, before, next, grace) => {
                    self.next_operation = next;
                    if let Some(entry) = self.machines.get_mut(&id) {
                        entry.grace_seconds = grace;
                        entry.operations[kind as usize] = before;
                    }
                }
            }
            self.head = head;
        }
    }

    fn put_back(&mut self, id: &MachineId, before: Option<MachineEntry>) {
        self.take_out(id);
        if let Some(entry) = before {
            self.counts[entry.machine.state.number() as usize] += 1;
            self.by_revision.insert(entry.revision, id.clone());
            self.machines.insert(id.clone(), entry);
        }
    }

    fn take_out(&mut self, id: &MachineId) -> Option<MachineEntry> {
        let entry = self.machines.remove(id)?;
        self.counts[entry.machine.state.number() as usize] -= 1;
        self.by_revision.remove(&entry.revision);
        Some(entry)
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Machine { machine, revision } => {
                let before = self.take_out(&machine.id);
                let before = before.map(|entry| (entry.operations, entry.grace_seconds));
                let (operations, grace_seconds) = before.unwrap_or_default();
                let machine = Arc::clone(machine);
                let id = machine.id.clone();
                self.put_back(
                    &id,
                    Some(MachineEntry {
                        machine,
                        revision: *revision,
                        operations,
                        grace_seconds,
                    }),
                );
                self.head = self.head.max(*revision);
            }
            Change::Removed { id, revision } => {
                self.take_out(id);
                self.removed.insert(*revision, id.clone());
                self.marks.machine_removed(id);
                self.head = self.head.max(*revision);
                while MAX_TOMBSTONES < self.removed.len() {
                    if let Some((oldest, _)) = self.removed.pop_first() {
                        self.floor = oldest;
                    }
                }
            }
            Change::Mark { key, mark } => {
                let exists = self.machines.contains_key(&*key.0);
                self.marks.set(key, *mark, exists);
            }
            Change::MarkForgotten { key } => self.marks.forget(key),
            Change::Operation {
                machine,
                kind,
                operation,
                next,
                grace_seconds,
            } => {
                self.next_operation = self.next_operation.max(*next);
                if let Some(entry) = self.machines.get_mut(machine) {
                    if *kind == Transition::Drain {
                        entry.grace_seconds = *grace_seconds;
                    }
                    entry.operations[*kind as usize] = Some(Arc::clone(operation));
                }
            }
        }
    }

    /// A caller that makes up ids must not be able to fill memory with marks.
    fn forget_old_ghosts(&mut self) {
        while let Some(key) = self.marks.pop_surplus_ghost() {
            let exists = self.machines.contains_key(&*key.0);
            if self.marks.all().contains_key(&key) && !exists {
                self.undo
                    .push((Undo::Mark(self.marks.before(&key)), self.head));
                self.marks.forget(&key);
                self.pending.push(Change::MarkForgotten { key });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fencing_marks::MAX_GHOST_MARKS;
    use crate::seed::tests::slot;

    fn put(tables: &mut Tables, id: &str, revision: u64) {
        let machine = Arc::new(crate::seed::check(&slot(id), false).unwrap());
        tables.write(Change::Machine { machine, revision });
    }

    fn mark(tables: &mut Tables, machine: &str, epoch: i64) {
        let key = (Arc::from(machine), Arc::from("s"));
        tables.write(Change::Mark {
            key,
            mark: Mark { epoch, sequence: 1 },
        });
    }

    fn shown(tables: &Tables) -> String {
        let changes: Vec<Change> = tables.snapshot().collect();
        format!("{} {} {changes:?}", tables.head(), tables.next_operation())
    }

    #[test]
    fn a_rollback_leaves_no_trace() {
        let mut tables = Tables::new(1);
        put(&mut tables, "a", 1);
        mark(&mut tables, "a", 1);
        tables.commit();
        let before = shown(&tables);
        put(&mut tables, "a", 2);
        put(&mut tables, "b", 3);
        mark(&mut tables, "a", 2);
        mark(&mut tables, "ghost", 2);
        let id = MachineId::new("a").unwrap();
        let operation = Arc::from("op");
        tables.write(Change::Operation {
            machine: id.clone(),
            kind: Transition::Create,
            operation,
            next: 1,
            grace_seconds: 0,
        });
        tables.write(Change::Removed { id, revision: 4 });
        tables.rollback();
        assert_eq!(shown(&tables), before);
        assert_eq!(tables.count(State::Speculative), 1);
    }

    #[test]
    fn a_snapshot_makes_the_same_tables() {
        let mut tables = Tables::new(1);
        put(&mut tables, "b", 1);
        put(&mut tables, "a", 2);
        mark(&mut tables, "a", 7);
        tables.write(Change::Removed {
            id: MachineId::new("b").unwrap(),
            revision: 3,
        });
        tables.commit();
        let mut again = Tables::new(1);
        tables.snapshot().for_each(|change| again.load(change));
        again.restore_counters(tables.head(), tables.next_operation());
        assert_eq!(shown(&again), shown(&tables));
    }

    #[test]
    fn marks_of_made_up_machines_are_bounded() {
        let mut tables = Tables::new(1);
        for made_up in 0..MAX_GHOST_MARKS + 10 {
            mark(&mut tables, &format!("ghost-{made_up}"), 1);
            tables.commit();
        }
        assert_eq!(tables.marks().len(), MAX_GHOST_MARKS);
    }
}
