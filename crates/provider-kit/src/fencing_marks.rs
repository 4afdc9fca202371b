//! Fencing marks: the highest token of every shard for every machine.
//!
//! ```text
//! (machine, shard) ──▶ Mark        shard ──▶ its highest epoch, over all machines
//! ghosts: marks of machines that do not exist, oldest first, at most MAX_GHOST_MARKS
//! ```
//!
//! A mark has to outlive a refused call for an unknown machine, so a caller who makes up ids could fill
//! memory with marks. The ghosts bound that.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::MachineId;

/// Marks kept for machine ids that do not exist; the oldest are forgotten first.
pub(crate) const MAX_GHOST_MARKS: usize = 65_536;

/// The highest token seen from one shard for one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Higher for every start of the shard.
    pub epoch: i64,
    /// Higher for every call within an epoch.
    pub sequence: i64,
}

/// A machine and a shard, in this order: what a mark belongs to.
pub type MarkKey = (Arc<str>, Arc<str>);

/// What all marks of one shard say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShardMarks {
    highest_epoch: i64,
    marks: usize,
}

/// A mark as it was before a change, to take the change back.
#[derive(Debug)]
pub(crate) struct MarkBefore {
    key: MarkKey,
    mark: Option<Mark>,
    shard: Option<ShardMarks>,
}

/// All marks.
#[derive(Debug, Default)]
pub(crate) struct FencingMarks {
    marks: BTreeMap<MarkKey, Mark>,
    shards: BTreeMap<Arc<str>, ShardMarks>,
    ghosts: BTreeMap<u64, MarkKey>,
    next_ghost: u64,
}

impl FencingMarks {
    pub(crate) fn all(&self) -> &BTreeMap<MarkKey, Mark> {
        &self.marks
    }

    /// The highest epoch a shard has shown, whatever the machine.
    pub(crate) fn highest_epoch(&self, shard: &str) -> Option<i64> {
        self.shards.get(shard).map(|shard| shard.highest_epoch)
    }

    pub(crate) fn set(&mut self, key: &MarkKey, mark: Mark, machine_exists: bool) {
        let new = self.marks.insert(key.clone(), mark).is_none();
        let shard = self.shards.entry(Arc::clone(&key.1)).or_insert(ShardMarks {
            highest_epoch: mark.epoch,
            marks: 0,
        });
        shard.highest_epoch = shard.highest_epoch.max(mark.epoch);
        shard.marks += usize::from(new);
        if new && !machine_exists {
            self.add_ghost(key.clone());
        }
    }

    /// Forgets a mark. A shard without marks is forgotten too, so that made-up shards do not pile up.
    pub(crate) fn forget(&mut self, key: &MarkKey) {
        let known = self.marks.remove(key).is_some();
        if let Some(shard) = self.shards.get_mut(&key.1).filter(|_| known) {
            shard.marks -= 1;
            if shard.marks == 0 {
                self.shards.remove(&key.1);
            }
        }
    }

    /// The marks of a machine that is gone start to age like those of one that never was.
    pub(crate) fn machine_removed(&mut self, id: &MachineId) {
        let first: MarkKey = (Arc::from(id.as_str()), Arc::from(""));
        let of_it = |key: &&MarkKey| *key.0 == *id.as_str();
        let keys = self.marks.range(first..).map(|(key, _)| key);
        let keys: Vec<MarkKey> = keys.take_while(of_it).cloned().collect();
        keys.into_iter().for_each(|key| self.add_ghost(key));
    }

    fn add_ghost(&mut self, key: MarkKey) {
        self.ghosts.insert(self.next_ghost, key);
        self.next_ghost += 1;
    }

    /// Takes the oldest ghost while there are too many. Its machine may exist by now, and its mark may
    /// be gone.
    pub(crate) fn pop_surplus_ghost(&mut self) -> Option<MarkKey> {
        let surplus = MAX_GHOST_MARKS < self.ghosts.len();
        let oldest = surplus.then(|| self.ghosts.pop_first()).flatten();
        oldest.map(|(_, key)| key)
    }

    /// What to remember before a mark is set or forgotten.
    pub(crate) fn before(&self, key: &MarkKey) -> MarkBefore {
        MarkBefore {
            key: key.clone(),
            mark: self.marks.get(key).copied(),
            shard: self.shards.get(&key.1).copied(),
        }
    }

    /// Takes back what was done to a mark since [`before`](Self::before).
    pub(crate) fn restore(&mut self, before: MarkBefore) {
        let MarkBefore { key, mark, shard } = before;
        match shard {
            Some(shard) => drop(self.shards.insert(Arc::clone(&key.1), shard)),
            None => drop(self.shards.remove(&key.1)),
        }
        match mark {
            Some(mark) => drop(self.marks.insert(key, mark)),
            None => drop(self.marks.remove(&key)),
        }
    }
}
