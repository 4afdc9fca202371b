//! Defects: mistakes that can be switched on, so that a guard is seen to catch them.
//!
//! Each switch leaves out one rule with the smallest change, at the one place that keeps it. No flag of any process sets one.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// A leader that comes back leads on in its reign (CO-11).
    ReignNotRaised,
    /// A mark above the reign does not raise it (CO-12).
    FloorIgnored,
    /// An earlier start of a shard is believed (CO-13).
    EpochUnchecked,
    /// A second process of the same start is believed (CO-13).
    ProcessUnchecked,
    /// A process with another data directory is believed, whatever is in it (CO-13).
    DirectoryUnchecked,
    /// A report from before this reign was heard says what a shard does not hold (CO-19).
    UnheardBelieved,
    /// An older report is taken like a newer one (CO-18).
    OldReportBelieved,
    /// An answer leaves while words of an earlier report may still be agreed on (CO-24).
    UnsettledIgnored,
    /// Who shall have a domain has it, whoever holds it.
    HolderFollowsDesired,
    /// A domain is given to whoever shall have it, though nobody wrote that it is free (CO-24).
    GrantedUnrecorded,
    /// A removed shard holds nothing (CO-51).
    HolderLostOnRemoval,
    /// A new holder is not told which machines of its domain are somebody else's (CO-22).
    ForeignLeftOut,
    /// A restore is finished with whoever has reported (CO-46).
    RestoreDoesNotWait,
    /// A restore believes the backup (CO-46).
    RestoreNotRebuilt,
    /// While restored, domains are handed out as the backup has them (CO-46).
    RestoredTells,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::ReignNotRaised,
        Self::FloorIgnored,
        Self::EpochUnchecked,
        Self::ProcessUnchecked,
        Self::DirectoryUnchecked,
        Self::UnheardBelieved,
        Self::OldReportBelieved,
        Self::UnsettledIgnored,
        Self::HolderFollowsDesired,
        Self::GrantedUnrecorded,
        Self::HolderLostOnRemoval,
        Self::ForeignLeftOut,
        Self::RestoreDoesNotWait,
        Self::RestoreNotRebuilt,
        Self::RestoredTells,
    ];
}
