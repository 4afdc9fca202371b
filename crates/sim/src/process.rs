//! A process of the shard: the real core, its disk, and what it is connected to.
//!
//! ```text
//! Persist ─▶ written, in order ─▶ on disk ─▶ Persisted        crash ─▶ any prefix from "on disk" on
//! ```

use crate::clock::Moment;
use bigfleet_model::Row;
use bigfleet_shard_core::{Barrier, OperationId, Record, SessionId, ShardCore};
use std::collections::{BTreeMap, BTreeSet};

/// One process of the shard, from its start to its crash.
pub(crate) struct Process {
    pub(crate) core: ShardCore,
    pub(crate) disk: Disk,
    /// Until when it computes a cycle; events that arrive meanwhile wait.
    pub(crate) busy_until: Moment,
    /// The last WakeAt counts, earlier ones do not.
    pub(crate) wake: u64,
    pub(crate) sessions: BTreeMap<SessionId, usize>,
    /// Whether operators can reach it.
    pub(crate) reachable: bool,
    /// Whether the provider has told it that a newer process replaced it.
    pub(crate) fenced: bool,
    /// Calls that were sent and not answered yet, by operation and attempt.
    pub(crate) calls: BTreeSet<(OperationId, u64)>,
    /// The roll-up in force on each session, and how many were accepted on it.
    pub(crate) in_force: BTreeMap<SessionId, (u64, Vec<Row>)>,
    /// Clusters it has accepted a roll-up from.
    pub(crate) heard: BTreeSet<usize>,
}

impl Process {
    pub(crate) fn new(core: ShardCore, records: Vec<Record>) -> Self {
        Self {
            core,
            disk: Disk {
                durable: records.len(),
                records,
                writes: BTreeMap::new(),
                last: Moment::START,
            },
            busy_until: Moment::START,
            wake: 0,
            sessions: BTreeMap::new(),
            reachable: true,
            fenced: false,
            calls: BTreeSet::new(),
            in_force: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }
}

/// A roll-up and the session it came on.
pub(crate) type RollUpOnSession = (SessionId, Vec<Row>);

impl Process {
    /// Remembers a roll-up that was handed in, if the core accepted it.
    pub(crate) fn remember(&mut self, said: Option<RollUpOnSession>) {
        let Some((session, rows)) = said else {
            return;
        };
        let accepted = self.core.roll_ups_accepted(session);
        let before = self.in_force.get(&session).map_or(0, |one| one.0);
        if before < accepted {
            self.in_force.insert(session, (accepted, rows));
        }
    }
}

/// The records a process has written, and how many of them are surely on disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    records: Vec<Record>,
    durable: usize,
    writes: BTreeMap<Barrier, usize>,
    last: Moment,
}

impl Disk {
    /// Takes a write; answers when it will be on disk. Writes end in the order they began.
    pub(crate) fn write(&mut self, barrier: Barrier, records: Vec<Record>, due: Moment) -> Moment {
        self.records.extend(records);
        self.writes.insert(barrier, self.records.len());
        self.last = self.last.max(due);
        self.last
    }

    pub(crate) fn written(&mut self, barrier: Barrier) {
        let upto = self.writes.remove(&barrier).unwrap_or(0);
        self.durable = self.durable.max(upto);
    }

    /// The records a new process finds: all that are surely on disk, and of those being written any
    /// number from the front.
    pub(crate) fn found(&self, torn: impl FnOnce(usize) -> usize) -> Vec<Record> {
        let unsure = self.unsure();
        let kept = self.durable + torn(unsure).min(unsure);
        self.records[..kept].to_vec()
    }

    /// How many records are not surely on disk.
    pub(crate) fn unsure(&self) -> usize {
        self.records.len() - self.durable
    }

    /// How many records were written since the beginning.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Replaces the file by these records, which say the same as all that were written.
    pub(crate) fn compact(&mut self, records: Vec<Record>) {
        self.durable = records.len();
        self.records = records;
        self.writes.clear();
    }
}
