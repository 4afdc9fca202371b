//! Counters: what happened so far, for metrics.

use crate::demand::Degraded;
use std::collections::BTreeMap;

/// Why no roll-up left though one was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// The cache of requests was never whole or is not fresh (OP-2, OP-4).
    NotFresh,
    /// A request that nobody could ever read is there (OP-6).
    Unreadable,
    /// Half of the demand is gone while its Pods are there (OP-24).
    Withdrawal,
    /// The shard knows none of this cluster's machines (OP-25).
    StrangeShard,
    /// The same rows were refused a moment ago (OP-26).
    Rejected,
    /// The spares in it are not on record yet (OP-67).
    SpareRecord,
    /// The rows did not pass the check (OP-23).
    Defect,
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Parts of requests that were said more loosely, by cause.
    pub degraded: BTreeMap<Degraded, u64>,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Roll-ups sent.
    pub roll_ups: u64,
    /// Roll-ups that were due and did not leave, by reason.
    pub held: BTreeMap<Held, u64>,
    /// Roll-ups answered as accepted, held and rejected.
    pub answers: [u64; 3],
    /// Requests acknowledged.
    pub acknowledged: u64,
    /// Sessions that ended.
    pub reconnects: u64,
    /// Frames that were dropped: for another cluster, or without a usable name.
    pub frames_dropped: u64,
    /// Evictions by outcome: sent, gone, refused by a budget, other.
    pub evictions: [u64; 4],
    /// Resyncs that were counted, and that were not.
    pub resyncs: [u64; 2],
    /// Bootstrap requests answered with a blob, and with an error.
    pub bootstraps: [u64; 2],
    /// Writes the API server refused as wrong.
    pub writes_refused: u64,
    /// Raises and lowerings of spares.
    pub spare_changes: [u64; 2],
}
