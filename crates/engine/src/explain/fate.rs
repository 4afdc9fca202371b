//! Fate: everything that can happen to a machine from one Need's point of view.
//!
//! ```text
//! claimed ── own · cluster's · taken back · idle · creating · bought · draining · leaving, and why still here
//! left    ── outside the domain · not reached · given back · spread · parked · unavailable · …
//! taken   ── claimed by whom · promised to whom · preempted · serving elsewhere
//! away    ── on its way elsewhere · draining · being deleted · failed · not ready · to leave
//! unfit   ── which requirement · which dimension below the smallest unit
//! ```

use bigfleet_model::{ClusterId, Dimension, Leaving, NeedKey, Requirement};

/// How a Need came by a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimSource {
    /// It is the Need's own (RF-1).
    Own,
    /// It was bound to the cluster, and loose or outranked (RF-5, B1 and B5; RF-18).
    Bound,
    /// Its drain is taken back (B1a).
    Restored,
    /// It was idle (B2).
    Idle,
    /// It was being created for nobody (B3).
    Creating,
    /// It is bought (B4).
    Speculative,
    /// It is draining for nobody (RF-10).
    Draining,
    /// It was bound to the cluster and leaves soon, but has no replacement yet (RF-21).
    Leaving(NotReplaced),
}

/// Why a machine that leaves soon still counts for its Need: the first that applies (RF-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReplaced {
    /// The gang is incomplete, and an incomplete gang buys nothing.
    IncompleteGang,
    /// The gang is parked.
    Parked,
    /// The cluster may not acquire (RF-16).
    MayNotAcquire,
    /// No machine that the Need can use is free and stays.
    NothingFree,
    /// None that is free is in the gang's domain, and no other domain holds the whole gang.
    OutsideDomain,
    /// All that is free gives less than this machine does.
    NotEnough,
    /// The spread does not allow what is free (RF-9).
    Spread,
    /// What is free became so only after the Need's turn.
    FreedLater,
}

/// What became of a machine for a Need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It counts for the Need.
    Claimed(ClaimSource),
    /// It is preempted for the Need.
    Preempted,
    /// Taken, and given back since the others suffice without it (RF-8).
    Pruned,
    /// The Need is covered by machines that come first.
    NotReached,
    /// Outside the domain of the gang.
    OutsideDomain,
    /// It has no value of this topology key.
    NoDomain(String),
    /// The spread does not allow it (RF-9).
    Spread,
    /// It has nothing of what is still missing (RF-3).
    OffersNothingMissing,
    /// It cannot be acquired now (RF-17).
    Unavailable,
    /// The cluster may not acquire (RF-16).
    MayNotAcquire,
    /// The gang is parked.
    Parked,
    /// It is not bought for a gang that cannot be completed (RF-6, case 3).
    NotBoughtInPart,
    /// It stays until a replacement serves (RF-11).
    Held,
    /// It became free only after the Need's turn.
    FreedLater,
    /// It counts for this other Need.
    ClaimedBy(NeedKey),
    /// It is on its way to this other Need.
    PromisedTo(NeedKey),
    /// It is preempted for this other Need.
    PreemptedFor(NeedKey),
    /// It serves this cluster; as a victim it is weighed on its own.
    Serving(ClusterId),
    /// It is on its way to this cluster.
    OnItsWayTo(ClusterId),
    /// Its node did not become ready (SH-17).
    NotReady,
    /// It is to leave, and nobody may take it (RF-21).
    Leaves(Leaving),
    /// It is draining.
    Draining,
    /// It is being deleted.
    Deleting,
    /// It failed.
    Failed,
    /// This requirement does not hold; the machine has this value, or none.
    Requirement(Requirement, Option<String>),
    /// It has less of a dimension than the smallest unit.
    BelowMinUnit {
        /// The dimension it has too little of.
        dimension: Dimension,
        /// What it has, in thousandths.
        has: i128,
        /// What the unit is, in thousandths.
        unit: i128,
    },
    /// It has nothing of what is asked for.
    OffersNothing,
}

/// The sorts of fate, those worth reading first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Claimed,
    Left,
    Taken,
    Away,
    Unfit,
}

impl Fate {
    pub(super) fn rank(&self) -> Rank {
        match self {
            Self::Claimed(_) | Self::Preempted => Rank::Claimed,
            Self::Pruned
            | Self::NotReached
            | Self::OutsideDomain
            | Self::NoDomain(_)
            | Self::Spread
            | Self::OffersNothingMissing
            | Self::Unavailable
            | Self::MayNotAcquire
            | Self::Parked
            | Self::NotBoughtInPart
            | Self::Held
            | Self::FreedLater => Rank::Left,
            Self::ClaimedBy(_) | Self::PromisedTo(_) | Self::PreemptedFor(_) | Self::Serving(_) => {
                Rank::Taken
            }
            Self::OnItsWayTo(_)
            | Self::NotReady
            | Self::Leaves(_)
            | Self::Draining
            | Self::Deleting
            | Self::Failed => Rank::Away,
            Self::Requirement(..) | Self::BelowMinUnit { .. } | Self::OffersNothing => Rank::Unfit,
        }
    }
}
