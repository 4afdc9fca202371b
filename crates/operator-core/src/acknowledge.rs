//! Acknowledgement: telling a request that the shard has it (OP-27, OP-28).
//!
//! ```text
//! request seen ─▶ first roll-up that holds it, n ─▶ ACCEPTED k ≥ n ─▶ patch, oldest first
//! ```
//!
//! A request knows one number: the first roll-up that held it as it is now. Every later one held it too, or the number
//! would be a later one; so an accepted roll-up of that number or above says that the shard has it.

use crate::{demand::KeptRequest, effect::Write, objects::ObjectKey};
use bigfleet_model::Time;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Waiting {
    uid: String,
    created: Time,
    held_since: u64,
    has_status: bool,
}

/// Requests that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledgements {
    waiting: BTreeMap<ObjectKey, Waiting>,
    /// Those the shard has, oldest first.
    ready: BTreeSet<(Time, ObjectKey)>,
}

impl Acknowledgements {
    /// A request changed; the next roll-up will be the first that holds it as it is now.
    pub(crate) fn changed(
        &mut self,
        key: &ObjectKey,
        before: Option<&KeptRequest>,
        after: Option<&KeptRequest>,
        next_roll_up: u64,
    ) {
        let Some(after) = after.filter(|after| !after.is_acknowledged()) else {
            self.forget(key);
            return;
        };
        let is_same = before.is_some_and(|before| before.asks_as(after));
        let held_since = self.waiting.get(key).filter(|_| is_same);
        let held_since = held_since.map_or(next_roll_up, |known| known.held_since);
        let was_ready = self.forget(key);
        if was_ready && is_same {
            self.ready.insert((after.created, key.clone()));
        }
        let waiting = Waiting {
            uid: after.uid.clone(),
            created: after.created,
            held_since,
            has_status: after.status.is_some(),
        };
        self.waiting.insert(key.clone(), waiting);
    }

    /// Whether it was to be told.
    fn forget(&mut self, key: &ObjectKey) -> bool {
        let known = self.waiting.remove(key);
        known.is_some_and(|known| self.ready.remove(&(known.created, key.clone())))
    }

    /// The shard accepted the roll-up with this number.
    pub(crate) fn accepted(&mut self, number: u64) {
        let held = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.held_since <= number);
        self.ready
            .extend(held.map(|(key, waiting)| (waiting.created, key.clone())));
    }

    /// Patches to write now, oldest first. Each is handed out once; one that was not written comes again with
    /// the next accepted roll-up.
    pub(crate) fn next(&mut self, now: Time) -> Option<Write> {
        while let Some((_, key)) = self.ready.pop_first() {
            if let Some(waiting) = self.waiting.get(&key) {
                return Some(Write::Acknowledge {
                    uid: waiting.uid.clone(),
                    at: now,
                    has_status: waiting.has_status,
                    request: key,
                });
            }
        }
        None
    }

    /// A patch was written: what the watch will show soon.
    pub(crate) fn done(&mut self, request: &ObjectKey, uid: &str) {
        if self
            .waiting
            .get(request)
            .is_some_and(|waiting| waiting.uid == uid)
        {
            self.forget(request);
        }
    }

    /// Those the shard has and that have not been told.
    pub(crate) fn backlog(&self) -> usize {
        self.ready.len()
    }
}
