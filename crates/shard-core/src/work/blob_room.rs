//! Blob room: how many bytes of bootstrap blobs the operations of a cluster hold (SE-9).
//!
//! ```text
//! room left ─▶ asked for ─▶ came: kept, if it fits ─▶ its operation ends: free again
//!     └─ none: not asked for until there is some      └─ does not: dropped, and asked for again
//! ```
//!
//! A blob may be three megabytes, and a cluster may have thousands of operations that wait for a call slot with
//! theirs. How large the next one is, is known when it is here: so both are bounded, what is asked for and what
//! is kept.

use bigfleet_model::ClusterId;
use std::collections::BTreeMap;

/// What the operations of one cluster may hold.
pub(super) const MOST_EACH: usize = 32 << 20;
/// What those of all clusters may.
const MOST_IN_ALL: usize = 512 << 20;

/// What is held, and how much may be.
#[derive(Clone, Debug)]
pub(super) struct BlobRoom {
    most_each: usize,
    in_all: usize,
    by_cluster: BTreeMap<ClusterId, usize>,
}

impl Default for BlobRoom {
    fn default() -> Self {
        Self::of(MOST_EACH)
    }
}

impl BlobRoom {
    pub(super) fn of(most_each: usize) -> Self {
        Self {
            most_each,
            in_all: 0,
            by_cluster: BTreeMap::new(),
        }
    }

    fn held(&self, cluster: &ClusterId) -> usize {
        self.by_cluster.get(cluster).copied().unwrap_or(0)
    }

    /// Whether one more may be asked for: half of the room is for those that were asked for already.
    pub(super) fn is_open(&self, cluster: &ClusterId) -> bool {
        self.held(cluster) < self.most_each / 2 && self.in_all < MOST_IN_ALL / 2
    }

    /// Whether this many bytes more fit; if so they are held from now on.
    pub(super) fn take(&mut self, cluster: &ClusterId, bytes: usize) -> bool {
        let held = self.held(cluster);
        let fits = held + bytes <= self.most_each && self.in_all + bytes <= MOST_IN_ALL;
        if fits && bytes != 0 {
            self.by_cluster.insert(cluster.clone(), held + bytes);
            self.in_all += bytes;
        }
        fits
    }

    pub(super) fn free(&mut self, cluster: &ClusterId, bytes: usize) {
        let left = self.held(cluster).saturating_sub(bytes);
        self.in_all -= self.held(cluster) - left;
        if left == 0 {
            self.by_cluster.remove(cluster);
        } else {
            self.by_cluster.insert(cluster.clone(), left);
        }
    }

    /// How many bytes there are.
    pub(super) fn in_all(&self) -> usize {
        self.in_all
    }
}
