//! The hot record: what a cycle touches of a machine.

use crate::index::{ClusterIndex, Index, NeedIndex, ShapeIndex, SlotIndex, TermsIndex};
use bigfleet_model::{Leaving, State};

/// The hot record of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) shape: ShapeIndex,
    /// What it is attributed to, as recorded.
    pub(crate) slot: Option<SlotIndex>,
    /// The cluster it is bound to while Configuring or Configured.
    pub(crate) cluster: Option<ClusterIndex>,
    pub(crate) terms: TermsIndex,
    /// The Need that claims it by name; see [`FleetTables::claimant`].
    pub(crate) claimant: Option<NeedIndex>,
    /// Its place among the cluster's bound machines.
    pub(crate) place_in_cluster: u32,
    /// Its place among the shape's Configured machines.
    pub(crate) place_in_shape: u32,
    /// None if there is no such machine.
    pub(crate) state: Option<State>,
    /// It cannot be counted on. While bound, its node is not ready or it leaves now; while it is not, it cannot
    /// be had, or is to leave (RF-1, RF-17, RF-21).
    pub(crate) unfit: bool,
    /// How it is to leave (RF-21).
    pub(crate) leaving: Option<Leaving>,
    pub(crate) preempted: bool,
}

impl Record {
    /// In the place of a machine that is gone. Only its state may be read.
    pub(crate) const ABSENT: Self = Self {
        shape: ShapeIndex::FIRST,
        slot: None,
        cluster: None,
        terms: TermsIndex::FIRST,
        claimant: None,
        place_in_cluster: 0,
        place_in_shape: 0,
        state: None,
        unfit: false,
        leaving: None,
        preempted: false,
    };

    /// Whether it is bound and cannot be counted on.
    pub(crate) fn is_unfit(&self) -> bool {
        self.unfit && self.cluster.is_some()
    }

    /// Whether it is bound, and serves until another does in its place (RF-21).
    pub(crate) fn leaves_soon(&self) -> bool {
        self.leaving == Some(Leaving::Soon) && self.cluster.is_some()
    }
}

/// How a machine whose drain can still be taken back was bound (RF-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayBack {
    pub(crate) cluster: ClusterIndex,
    pub(crate) terms: TermsIndex,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5 asks for at most 55 bytes.
    #[test]
    fn the_hot_record_is_half_a_cache_line() {
        assert_eq!(size_of::<Record>(), 32);
    }
}
