//! A process of the shard: the real core, its disk, and what it is connected to.

use crate::clock::Moment;
use bigfleet_model::Row;
use bigfleet_shard_core::{Barrier, OperationId, Record, SessionId, ShardCore};
use bigfleet_shard_world::Disk;
use std::collections::{BTreeMap, BTreeSet};

/// One process of the shard, from its start to its crash.
pub(crate) struct Process {
    pub(crate) core: ShardCore,
    pub(crate) disk: Disk,
    /// When the last write ends.
    written_until: Moment,
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
    /// The roll-up in force on each session.
    pub(crate) in_force: BTreeMap<SessionId, Vec<Row>>,
    /// Clusters it has accepted a roll-up from.
    pub(crate) heard: BTreeSet<usize>,
}

impl Process {
    pub(crate) fn new(core: ShardCore, records: Vec<Record>) -> Self {
        Self {
            core,
            disk: Disk::holding(records),
            written_until: Moment::START,
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
    /// Begins a write; answers when it will be on disk. Writes end in the order they began.
    pub(crate) fn write(&mut self, barrier: Barrier, records: Vec<Record>, due: Moment) -> Moment {
        self.disk.write(barrier, records);
        self.written_until = self.written_until.max(due);
        self.written_until
    }

    /// How many roll-ups were accepted on the session this one came on.
    pub(crate) fn accepted(&self, said: Option<&RollUpOnSession>) -> u64 {
        said.map_or(0, |(session, _)| self.core.roll_ups_accepted(*session))
    }

    /// Remembers a roll-up that was handed in, if the core accepted it: more are accepted than `before`.
    pub(crate) fn remember(&mut self, said: Option<RollUpOnSession>, before: u64) {
        let is_accepted = before < self.accepted(said.as_ref());
        if let Some((session, rows)) = said.filter(|_| is_accepted) {
            self.in_force.insert(session, rows);
        }
    }
}
