//! Rows of the demand, and gangs that are equal but for their group.

use crate::{
    index::{
        ClassIndex, ClusterIndex, FingerprintIndex, GroupIndex, HoldingIndex, NeedIndex,
        ProfileIndex, SlotIndex, SupplyIndex, UseIndex,
    },
    requested_amounts::RequestedAmounts,
};
use bigfleet_model::Time;
use std::collections::BTreeSet;

/// A row of the demand.
#[derive(Clone, Debug)]
pub(crate) struct NeedEntry {
    pub(crate) cluster: ClusterIndex,
    pub(crate) slot: SlotIndex,
    pub(crate) profile: ProfileIndex,
    pub(crate) usage: UseIndex,
    /// The class a gang is a member of.
    pub(crate) class: Option<ClassIndex>,
    /// Its place among the cluster's rows that are not gangs, if it is one.
    pub(crate) place_in_cluster: u32,
    /// A digest of its group's text, to check a handle without looking the group up.
    pub(crate) group_digest: u32,
    pub(crate) arrival: Option<Time>,
    pub(crate) wanted: RequestedAmounts,
    pub(crate) parked: bool,
    /// It asks for whole units of its use (RF-19).
    pub(crate) whole: bool,
    /// What became of it, if it is live: not folded away, and if a folded row, with members.
    pub(crate) holding: Option<HoldingIndex>,
    /// A gang with machines attributed to it.
    pub(crate) homed: bool,
    pub(crate) dirty: bool,
    /// Its own machines changed, not only the amounts it wants.
    pub(crate) own_dirty: bool,
    pub(crate) in_use: bool,
}

impl NeedEntry {
    pub(crate) fn is_live(&self) -> bool {
        self.holding.is_some()
    }
}

/// How far a class folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Every member without a home.
    All,
    /// The first so many of them.
    First(u64),
}

/// Those members of a class that fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folding {
    pub(crate) members: u64,
    /// The earliest arrival stated among them.
    pub(crate) arrival: Option<Time>,
    /// All of them ask for whole units.
    pub(crate) whole: bool,
}

/// Gangs of one cluster equal in profile and aggregate (RF-12).
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) cluster: ClusterIndex,
    pub(crate) supply: SupplyIndex,
    pub(crate) members: Vec<NeedIndex>,
    /// No member states an earlier arrival.
    pub(crate) earliest: Option<Time>,
    /// Members with machines attributed to them: they stay gangs.
    pub(crate) homed: Vec<NeedIndex>,
    pub(crate) fold: Fold,
    /// Members came, went or got machines since the class was last folded.
    pub(crate) regroup: bool,
    /// The members that came, or got or lost machines, since then.
    pub(crate) fresh: Vec<NeedIndex>,
    /// Members that do not ask for whole units.
    pub(crate) in_parts: usize,
    pub(crate) folding: Folding,
    /// The row they fold to; shared with classes whose profile folds to the same one (F-2).
    pub(crate) folded: NeedIndex,
    pub(crate) slot: SlotIndex,
    pub(crate) dirty: bool,
}

/// How many members the free machines of the shard hold, for all classes of a profile and aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    pub(crate) profile: ProfileIndex,
    /// The gang's own profile, with a whole member as the smallest unit.
    pub(crate) usage: UseIndex,
    pub(crate) wanted: RequestedAmounts,
    pub(crate) classes: BTreeSet<ClassIndex>,
    /// The folded row's fingerprint and group, the same in every cluster.
    pub(crate) folded: (FingerprintIndex, GroupIndex),
    /// Counted no further than `most`.
    pub(crate) holds: u64,
    /// The most members of any class that could fold.
    pub(crate) most: u64,
}
