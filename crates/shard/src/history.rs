//! History: what was decided lately and what came of it, for readers (`InspectActions`).
//!
//! ```text
//! Persist ── operations nobody has seen yet ─▶ committed ─┐
//! Audit ──── ended, suppressed, adopted ─────▶ its outcome ┴─▶ the newest so many, numbered
//! ```
//!
//! The driver adds to it and waits for no reader: a reader takes the entries away as they are, in the
//! time it takes to copy so many pointers. The audit log is the record; this is what is at hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_model::{ActionKind, ClusterId, MachineId, NeedKey, Reason, Time};
use bigfleet_shard_core::{AuditRecord, Kept, KeptOperation, OperationId, Outcome, Record};

/// Entries that are kept.
const KEPT: usize = 1024;
/// Sequences of one epoch. Those of the next are all higher, so a reader can follow across a restart.
const PER_EPOCH: u64 = 1 << 32;

/// One thing that was decided, or that came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) sequence: u64,
    pub(crate) time: Time,
    pub(crate) cycle: u64,
    pub(crate) decided_cycle: u64,
    /// `None` for something that happened without an action.
    pub(crate) kind: Option<ActionKind>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) machine: MachineId,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) need: Option<NeedKey>,
    pub(crate) priority: Option<i32>,
    pub(crate) reason: Option<Reason>,
    pub(crate) grace_seconds: u32,
    /// `None` while it is only committed.
    pub(crate) outcome: Option<Outcome>,
    /// What went wrong, in the words of whoever said so; empty if nothing did.
    pub(crate) error: String,
}

/// The newest entries, of one process.
#[derive(Debug)]
pub(crate) struct History(Mutex<Newest>);

#[derive(Debug)]
struct Newest {
    /// Oldest first.
    entries: VecDeque<Arc<Entry>>,
    last: u64,
    /// The newest operation that was seen committed: numbers grow, and a record repeats what is known.
    committed: OperationId,
}

impl History {
    /// The history of a process of this epoch, which begins empty.
    pub(crate) fn new(epoch: u64) -> Self {
        Self(Mutex::new(Newest {
            entries: VecDeque::with_capacity(KEPT),
            last: epoch.saturating_mul(PER_EPOCH),
            committed: OperationId { epoch, number: 0 },
        }))
    }

    /// Takes down the operations that a write commits for the first time.
    pub(crate) fn committed(&self, now: Time, cycle: u64, records: &[Record]) {
        let kept = records.iter().filter_map(|record| match record {
            Record::Machine { machine, kept } => Some((machine, kept.as_deref()?)),
            _ => None,
        });
        let operations = kept.filter_map(|(machine, kept)| {
            let operation = kept.operation.as_ref()?;
            Some((machine, kept, operation))
        });
        let mut newest = self.lock();
        let before = newest.committed;
        for (machine, kept, operation) in operations.filter(|(.., one)| before < one.id) {
            newest.committed = newest.committed.max(operation.id);
            newest.add(|sequence| Entry {
                sequence,
                time: now,
                cycle,
                decided_cycle: operation.decided_cycle,
                kind: Some(operation.action),
                operation: Some(operation.id),
                machine: machine.clone(),
                cluster: operation.cluster.clone(),
                need: operation.need.clone(),
                priority: priority(kept, operation),
                reason: Some(operation.reason),
                grace_seconds: operation.grace_seconds,
                outcome: None,
                error: String::new(),
            });
        }
    }

    /// Takes down what came of something.
    pub(crate) fn ended(&self, record: &AuditRecord) {
        self.lock().add(|sequence| Entry {
            sequence,
            time: record.time,
            cycle: record.cycle,
            decided_cycle: record.decided_cycle,
            kind: record.kind,
            operation: record.operation,
            machine: record.machine.clone(),
            cluster: record.cluster.clone(),
            need: record.need.clone(),
            priority: record.priority,
            reason: record.reason,
            grace_seconds: record.grace_seconds,
            outcome: Some(record.outcome),
            error: record.error.clone(),
        });
    }

    /// The entries after a sequence, newest first.
    pub(crate) fn newest_first(&self, after: u64) -> Vec<Arc<Entry>> {
        let newest = self.lock();
        let entries = newest.entries.iter().rev();
        let later = entries.take_while(|entry| after < entry.sequence);
        later.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Newest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Newest {
    fn add(&mut self, entry: impl FnOnce(u64) -> Entry) {
        self.last += 1;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(Arc::new(entry(self.last)));
    }
}

/// The priority of the Need an operation is for, on which its machine was committed.
fn priority(kept: &Kept, operation: &KeptOperation) -> Option<i32> {
    let need = operation.need.as_ref()?;
    let meant = kept.intent.as_ref().filter(|intent| intent.need == *need);
    let bound = kept.cluster.as_ref().and_then(|cluster| {
        let assigned = kept.assignment.need(cluster)?;
        (assigned == *need).then_some(kept.assignment.terms.priority)
    });
    meant.map(|intent| intent.terms.priority).or(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Assignment, Fingerprint, Group, Intent, Terms};

    fn operation(number: u64) -> Record {
        let need = NeedKey {
            cluster: ClusterId::new("a").unwrap(),
            fingerprint: Fingerprint::new("f"),
            group: Group::new(""),
        };
        let terms = Terms {
            priority: 7,
            ..Terms::default()
        };
        let intent = Intent {
            need: need.clone(),
            terms,
            keep_price: None,
        };
        let operation = KeptOperation {
            id: OperationId { epoch: 3, number },
            action: ActionKind::Provision,
            reason: Reason::Speculative,
            cluster: Some(need.cluster.clone()),
            need: Some(need),
            decided_cycle: 9,
            grace_seconds: 0,
            preemptor_priority: 0,
            deadline: Time::from_nanos(0),
            held_since: None,
            not_ready: false,
        };
        Record::Machine {
            machine: MachineId::new(&format!("m{number}")).unwrap(),
            kept: Some(Box::new(Kept {
                cluster: None,
                bound_by: None,
                assignment: Assignment::default(),
                intent: Some(intent),
                not_ready: false,
                undeletable: false,
                given_up: None,
                spent: None,
                operation: Some(Box::new(operation)),
            })),
        }
    }

    fn machines(entries: &[Arc<Entry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.machine.as_str()).collect()
    }

    #[test]
    fn an_operation_is_committed_once_however_often_it_is_written() {
        let history = History::new(3);
        // By machine id, which is not the order of their numbers.
        history.committed(Time::from_nanos(0), 9, &[operation(2), operation(1)]);
        history.committed(
            Time::from_nanos(0),
            9,
            &[operation(1), operation(3), operation(2)],
        );
        let newest = history.newest_first(0);
        assert_eq!(machines(&newest), ["m3", "m1", "m2"]);
        assert!(newest.iter().all(|entry| entry.outcome.is_none()));
        assert_eq!(newest[0].priority, Some(7));
    }

    #[test]
    fn a_reader_that_follows_sees_each_entry_once_and_further_after_a_restart() {
        let history = History::new(3);
        history.committed(Time::from_nanos(0), 9, &[operation(1), operation(2)]);
        let seen = history.newest_first(0)[0].sequence;
        assert!(history.newest_first(seen).is_empty());
        history.committed(Time::from_nanos(0), 10, &[operation(3)]);
        assert_eq!(machines(&history.newest_first(seen)), ["m3"]);
        let next = History::new(4);
        next.committed(Time::from_nanos(0), 1, &[operation(1)]);
        assert!(
            next.newest_first(seen).is_empty(),
            "of an earlier epoch: seen before"
        );
        let record = AuditRecord {
            time: Time::from_nanos(0),
            cycle: 1,
            decided_cycle: 1,
            kind: None,
            operation: None,
            machine: MachineId::new("m9").unwrap(),
            cluster: None,
            need: None,
            priority: None,
            reason: None,
            grace_seconds: 0,
            outcome: Outcome::Adopted,
            error: String::new(),
            said: String::new(),
            provider_operation: String::new(),
            took_seconds: None,
            price: None,
            epoch: 4,
            event: 1,
        };
        next.ended(&record);
        assert_eq!(machines(&next.newest_first(seen)), ["m9"]);
    }

    #[test]
    fn only_so_many_are_kept() {
        let history = History::new(3);
        let records: Vec<Record> = (1..=KEPT as u64 + 5).map(operation).collect();
        history.committed(Time::from_nanos(0), 9, &records);
        let newest = history.newest_first(0);
        assert_eq!(newest.len(), KEPT);
        let oldest = &newest[KEPT - 1];
        assert_eq!(oldest.machine.as_str(), "m6");
    }
}
