//! Defects: old mistakes that can be switched back on, so that a guard is seen to catch them.
//!
//! ```text
//! simulator ─▶ ShardConfig.defect ─▶ one branch where the rule is kept ─▶ the guard must object
//! ```
//!
//! A simulation that never fails proves nothing. Each switch brings back one defect with the smallest
//! change, at the one place that keeps the rule; a scenario that guards the rule runs once more with
//! it and must be caught. No flag of any process sets one, and no preset has one.

use bigfleet_engine::Mistake;

/// One old mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// What a machine was bought for is forgotten when it becomes Idle (RF-1, DC-2).
    AttributionLostAtMaturing,
    /// Claims are not committed as attributions (RF-7).
    ClaimsNotCommitted,
    /// Every roll-up makes its rows look new (NT-3: an arrival is the first sight of a row).
    RollUpArrivalReset,
    /// A cluster counts as ready as soon as its operator connects (SH-8).
    FirstRollUpGateOff,
    /// A List that failed or lacks machines is believed: what it lacks is gone (SH-10).
    TruncatedListBelieved,
    /// A Create that was refused makes its slot unusable for ever (SH-11).
    CreateErrorBurnsSlot,
    /// The ledger follows when a call has ended, not when it was decided (DC-1).
    CommitAfterCalling,
    /// Intents and operations are not among the records (SH-5).
    IntentNotDurable,
    /// A fenced call is sent again like any other (FE-4).
    FencingNotChecked,
    /// Rail 1 lets everything pass, whatever is configured (SR-2).
    ReclaimCapOff,
    /// The engine is not told what a machine in creation is meant for (RF-1).
    CreatingNotCredited,
    /// The engine is told which cluster a machine serves, but not which Need (RF-1).
    CreditByClusterOnly,
    /// The engine does not see machines that drain for somebody (RF-10).
    DrainingNotPromised,
    /// The engine takes machines in configuration for serving ones (RF-11).
    NoMakeBeforeBreak,
    /// The engine lets whoever comes first take whatever the cluster has (RF-4).
    NoOwnFirst,
    /// The engine lets gangs choose their rack anew every cycle (RF-6).
    NoIncumbent,
    /// A machine's metadata says which workload it serves, but not which gang (DC-4).
    NoGroupOnMetadata,
    /// A machine that never became a node counts as if it served (SH-17).
    UnjoinedCounted,
    /// A machine that fails while it joins a cluster is replaced at once, and so is the next (SH-22).
    FailedConfigureForgiven,
    /// Whatever was to be tried by one machine at a time is tried by all at once (SH-22).
    ProbesUnlimited,
    /// A Delete that the provider does not carry out is tried for ever, and its host is lost (SH-23).
    DeleteTriedForEver,
    /// Nodes are marked one by one, however many of their cluster are not Ready (SH-17).
    PartitionBelieved,
    /// A process does not know what an earlier one reclaimed a moment ago (SH-30).
    ReclaimsForgotten,
    /// Rail 2 has no clock, judges by the last demand alone, and by its rows whether it matters (SH-31).
    HastyRollUpGuard,
    /// Whatever a row asks for is believed at once (SH-32).
    UnitMistakeBelieved,
    /// A process acts although the provider's records show an epoch it had to come after (SH-33).
    TwinNotSeen,
    /// A machine that one List lacks is gone, without a Get (SH-10).
    MissingNotAskedFor,
    /// A machine counts for a whole unit of which it holds a part (RF-19).
    CreditRoundedUp,
    /// Whole units are counted by the first of their dimensions (RF-19).
    CreditByFirstDimension,
    /// Rows that are one Need ask for whole units if one of them does, of the largest size (RF-19).
    MergedWholeIfAny,
    /// A row of whole units may ask for a part of one (RF-19).
    PartsOfUnits,
    /// Drains are taken back before machines that nobody claims are taken (RF-5).
    RestoredFirst,
    /// Drains are taken back after Idle machines are taken (RF-5).
    RestoredLast,
    /// Drains are taken back for any cluster (RF-20).
    RestoredForAnybody,
    /// What is taken back is promised to whom it is taken back for, too (RF-20).
    RestoredAndRestamped,
    /// A drain that the provider has heard of is taken back (SH-18).
    RestoredTooLate,
    /// A machine that is preempted is taken back (SH-18).
    RestoredThoughPreempted,
    /// What disturbs less is claimed last (RF-2).
    DisruptionInKeepOrder,
    /// Of equals the one leaves that disturbs most (RF-18).
    BusiestFirst,
    /// An exchange does not look at what a machine is worth to whom it serves (RF-18).
    PenaltyIgnored,
    /// An exchange does not look at where machines lie (RF-18).
    DomainIgnored,
    /// A machine that its Need has outgrown is let go at once (RF-11).
    OutgrownNotHeld,
    /// An admin's mark is forgotten with its process (SH-20).
    DrainNotDurable,
    /// What leaves now waits for its place under rail 1 (SH-20).
    LeavingNowCapped,
    /// What leaves soon is taken for what leaves now (RF-21).
    SoonToldAsNow,
    /// What leaves now waits for its replacement (RF-21).
    NowToldAsSoon,
    /// What is marked and serves nobody is supply like any other (RF-21).
    DrainedIdleOffered,
    /// The deadline of a drain changes nothing (SH-20).
    DeadlineIgnored,
    /// A mark that is lifted counts all the same (SH-20).
    UndrainForgotten,
    /// However much of a cluster a provider takes away, it is hurried (SH-20).
    NoticesAllBelieved,
    /// What a provider withdraws counts all the same (SH-20).
    NoticeForEver,
    /// What leaves now waits for its cluster's operator (SH-3).
    NowNeedsOperator,
    /// A drain that is blocked forces its way at the end of its grace, though it leaves soon (SH-14).
    SoonForced,
    /// Of two words the weaker one counts (SH-20).
    WeakerWordCounts,
    /// What was found in place of a machine that leaves is kept though it is not enough (RF-21).
    PartialPurchaseKept,
    /// A machine that leaves soon is held for any Need that waits (RF-21).
    LeavingHeldForAnybody,
    /// A machine that leaves soon is anybody's leftover (RF-21).
    LeavingIsLeftover,
    /// A gang that is short replaces what leaves (RF-21).
    IncompleteGangReplaces,
    /// A machine that leaves soon is no witness (RF-12).
    LeavingIsNoWitness,
    /// A machine does not replace one of its own domain if the spread would refuse it (RF-21).
    LikeRefusedBySpread,
    /// A domain counts for the spread though all that is bound there leaves (RF-21).
    DeadDomainCounts,
    /// Needs replace what leaves once all have had their turn (RF-21).
    ReplacedAfterAll,
    /// The intent of an unbound machine stands though it leaves (RF-21).
    LeavingIntentStands,
    /// One about what a coordinator says. The simulator has no coordinator, so these are not among [`Self::ALL`]: the core's own
    /// tests catch them.
    Above(AboveDefect),
}

/// An old mistake about what a coordinator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AboveDefect {
    /// A shard that lost its disk takes in unbound machines before it is told which are its own (CO-26).
    LostDiskTakesAll,
    /// A shard that holds no domain any more holds everything (CO-25).
    NothingIsEverything,
    /// What is somebody else's by an answer is taken in all the same (CO-25).
    ForeignTakenIn,
    /// A domain that is taken away keeps its unbound machines (CO-30).
    LeavingKept,
    /// A domain is reported gone while one of its machines is still being acquired (CO-30).
    LeavingOverTooSoon,
    /// A report leaves before what it speaks of is on disk (CO-16).
    ReportBeforeDisk,
    /// That another process is on record as this shard is forgotten with the process (CO-14).
    SupersededForgotten,
    /// A drain of a machine that only its mark makes ours is sent without a look at the mark (CO-28).
    DrainedUnseen,
    /// What another shard may still be at work on is taken in at first sight (CO-27).
    SharedNotWatched,
}

impl Defect {
    /// All of them that the simulator can show.
    pub const ALL: [Self; 63] = [
        Self::AttributionLostAtMaturing,
        Self::ClaimsNotCommitted,
        Self::RollUpArrivalReset,
        Self::FirstRollUpGateOff,
        Self::TruncatedListBelieved,
        Self::CreateErrorBurnsSlot,
        Self::CommitAfterCalling,
        Self::IntentNotDurable,
        Self::FencingNotChecked,
        Self::ReclaimCapOff,
        Self::CreatingNotCredited,
        Self::CreditByClusterOnly,
        Self::DrainingNotPromised,
        Self::NoMakeBeforeBreak,
        Self::NoOwnFirst,
        Self::NoIncumbent,
        Self::NoGroupOnMetadata,
        Self::UnjoinedCounted,
        Self::FailedConfigureForgiven,
        Self::ProbesUnlimited,
        Self::DeleteTriedForEver,
        Self::PartitionBelieved,
        Self::ReclaimsForgotten,
        Self::HastyRollUpGuard,
        Self::UnitMistakeBelieved,
        Self::TwinNotSeen,
        Self::MissingNotAskedFor,
        Self::CreditRoundedUp,
        Self::CreditByFirstDimension,
        Self::MergedWholeIfAny,
        Self::PartsOfUnits,
        Self::RestoredFirst,
        Self::RestoredLast,
        Self::RestoredForAnybody,
        Self::RestoredAndRestamped,
        Self::RestoredTooLate,
        Self::RestoredThoughPreempted,
        Self::DisruptionInKeepOrder,
        Self::BusiestFirst,
        Self::PenaltyIgnored,
        Self::DomainIgnored,
        Self::OutgrownNotHeld,
        Self::DrainNotDurable,
        Self::LeavingNowCapped,
        Self::SoonToldAsNow,
        Self::NowToldAsSoon,
        Self::DrainedIdleOffered,
        Self::DeadlineIgnored,
        Self::UndrainForgotten,
        Self::NoticesAllBelieved,
        Self::NoticeForEver,
        Self::NowNeedsOperator,
        Self::SoonForced,
        Self::WeakerWordCounts,
        Self::PartialPurchaseKept,
        Self::LeavingHeldForAnybody,
        Self::LeavingIsLeftover,
        Self::IncompleteGangReplaces,
        Self::LeavingIsNoWitness,
        Self::LikeRefusedBySpread,
        Self::DeadDomainCounts,
        Self::ReplacedAfterAll,
        Self::LeavingIntentStands,
    ];

    /// Those that are the engine's.
    pub(crate) fn of_the_engine(self) -> Option<Mistake> {
        match self {
            Self::NoOwnFirst => Some(Mistake::OwnNotFirst),
            Self::NoIncumbent => Some(Mistake::NoIncumbent),
            Self::CreditRoundedUp => Some(Mistake::CreditRoundedUp),
            Self::CreditByFirstDimension => Some(Mistake::CreditByFirstDimension),
            Self::RestoredFirst => Some(Mistake::RestoredFirst),
            Self::RestoredLast => Some(Mistake::RestoredLast),
            Self::RestoredForAnybody => Some(Mistake::RestoredForAnybody),
            Self::RestoredAndRestamped => Some(Mistake::RestoredAndRestamped),
            Self::DisruptionInKeepOrder => Some(Mistake::DisruptionInKeepOrder),
            Self::BusiestFirst => Some(Mistake::BusiestFirst),
            Self::PenaltyIgnored => Some(Mistake::PenaltyIgnored),
            Self::DomainIgnored => Some(Mistake::DomainIgnored),
            Self::OutgrownNotHeld => Some(Mistake::OutgrownNotHeld),
            Self::PartialPurchaseKept => Some(Mistake::PartialPurchaseKept),
            Self::LeavingHeldForAnybody => Some(Mistake::LeavingHeldForAnybody),
            Self::LeavingIsLeftover => Some(Mistake::LeavingIsLeftover),
            Self::IncompleteGangReplaces => Some(Mistake::IncompleteGangReplaces),
            Self::LeavingIsNoWitness => Some(Mistake::LeavingIsNoWitness),
            Self::LikeRefusedBySpread => Some(Mistake::LikeRefusedBySpread),
            Self::DeadDomainCounts => Some(Mistake::DeadDomainCounts),
            Self::ReplacedAfterAll => Some(Mistake::ReplacedAfterAll),
            Self::LeavingIntentStands => Some(Mistake::LeavingIntentStands),
            _ => None,
        }
    }
}
