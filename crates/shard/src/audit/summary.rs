//! What is not written line by line: the same intention again, and what the log has no room for.
//!
//! ```text
//! paused: Reclaim m1, Reclaim m2 ─▶ a line each      and again, cycle after cycle ─▶ one line a minute
//! ```
//!
//! A paused shard decides the same every cycle. That it would do something is said once, and again when it
//! would do something else; the rest is counted.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use bigfleet_model::{MachineId, Time};
use bigfleet_shard_core::{AuditRecord, Outcome};

/// What is intended with a machine is forgotten when it was not decided again for so many cycles.
const FORGOTTEN_AFTER: u64 = 60;

/// What was last said to be intended with each machine.
#[derive(Debug, Default)]
pub(super) struct Intentions {
    said: BTreeMap<MachineId, Intention>,
    /// The cycle in which old ones were last forgotten.
    tidied: u64,
}

#[derive(Clone, Copy, Debug)]
struct Intention {
    /// A hash of all that it says: a collision would leave out one line.
    what: u64,
    /// The cycle that last decided it.
    cycle: u64,
}

impl Intentions {
    /// Whether a record says something that was not said of its machine before.
    pub(super) fn is_news(&mut self, record: &AuditRecord) -> bool {
        if !is_intention(record.outcome) {
            self.said.remove(&record.machine);
            return true;
        }
        self.tidy(record.cycle);
        let what = hash(record);
        let intention = Intention {
            what,
            cycle: record.cycle,
        };
        if let Some(before) = self.said.get_mut(&record.machine) {
            let before = std::mem::replace(before, intention);
            return before.what != what;
        }
        self.said.insert(record.machine.clone(), intention);
        true
    }

    fn tidy(&mut self, cycle: u64) {
        if self.tidied + FORGOTTEN_AFTER < cycle {
            self.tidied = cycle;
            self.said
                .retain(|_, intention| cycle <= intention.cycle + FORGOTTEN_AFTER);
        }
    }
}

/// Whether it was decided and nothing was done.
fn is_intention(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Suppressed | Outcome::DryRun)
}

fn hash(record: &AuditRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    let reason = record.reason.map(|reason| reason.text());
    let kind = record.kind.map(|kind| kind.word());
    (kind, record.outcome.label(), reason).hash(&mut hasher);
    (&record.cluster, &record.need, record.priority).hash(&mut hasher);
    hasher.finish()
}

/// Actions that were not written one by one, by kind and outcome.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<(&'static str, &'static str), Summary>>);

/// How many of one kind and outcome, and when the first and the last were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
    pub(super) count: u64,
    pub(super) since: Time,
    pub(super) until: Time,
}

impl Summaries {
    pub(super) fn add(&self, record: &AuditRecord) {
        let kind = record.kind.map_or("", |kind| kind.word());
        let outcome = record.outcome.label();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let summary = all.entry((kind, outcome)).or_insert(Summary {
            kind,
            outcome,
            count: 0,
            since: record.time,
            until: record.time,
        });
        summary.count += 1;
        summary.until = summary.until.max(record.time);
    }

    /// Those that wait to be written; none waits any more.
    pub(super) fn take(&self) -> Vec<Summary> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all).into_values().collect()
    }
}
