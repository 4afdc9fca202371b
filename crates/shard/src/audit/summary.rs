//! What is not written line by line: the same intention again, and what the log has no room for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bigfleet_model::Time;
use bigfleet_shard_core::AuditRecord;

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
