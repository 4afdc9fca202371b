//! Intentions: what would be done and is not, said once and not with every cycle.
//!
//! ```text
//! paused: Reclaim m1, Reclaim m2 ─▶ news      and again, cycle after cycle ─▶ none      Delete m2 ─▶ news
//! ```
//!
//! A shard that is paused or only looks on decides the same every cycle. That it would do something is news
//! once, and again when it would do something else.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bigfleet_model::MachineId;
use bigfleet_shard_core::{AuditRecord, Outcome};

/// What is intended with a machine is forgotten when it was not decided again for so many cycles.
const FORGOTTEN_AFTER: u64 = 60;

/// What was last said to be intended with each machine.
#[derive(Debug, Default)]
pub(crate) struct Intentions {
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
    pub(crate) fn is_news(&mut self, record: &AuditRecord) -> bool {
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
