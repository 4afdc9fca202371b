//! Counters: what a leader has counted since its process began.

use std::collections::BTreeMap;

use crate::{AckOutcome, Order};

/// How a report ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportEnd {
    /// Heard, and answered in full.
    Heard,
    /// Taken, and answered with WAIT: this reign does not know yet what the shard holds, or waits for a restore to be finished.
    Unheard,
    /// No newer than the last one: nothing was taken.
    Old,
    /// Refused: it cannot be read, or its caller may not.
    Refused,
    /// Refused: another process is on record for its shard.
    OtherProcess,
}

/// The kind of an order, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKind {
    /// Have a domain.
    AssignDomain,
    /// Let go of a domain.
    UnassignDomain,
    /// Take machines.
    Claim,
    /// Take machines back.
    Return,
}

impl From<&Order> for OrderKind {
    fn from(order: &Order) -> Self {
        match order {
            Order::AssignDomain(_) => Self::AssignDomain,
            Order::UnassignDomain(_) => Self::UnassignDomain,
            Order::Claim(_) => Self::Claim,
            Order::Return(_) => Self::Return,
        }
    }
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reports, by how they ended.
    pub reports: BTreeMap<ReportEnd, u64>,
    /// Answers to orders.
    pub acks: BTreeMap<(OrderKind, AckOutcome), u64>,
    /// Marks of shards that raised the reign.
    pub floor_raised: u64,
    /// Marks of shards that did not: too far above it, or from a process that raised it before.
    pub floor_refused: u64,
}

impl Counters {
    pub(crate) fn report(&mut self, end: ReportEnd) {
        *self.reports.entry(end).or_default() += 1;
    }

    pub(crate) fn ack(&mut self, order: &Order, outcome: AckOutcome) {
        let count = self.acks.entry((order.into(), outcome)).or_default();
        *count += 1;
    }
}
