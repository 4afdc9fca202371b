//! Defects: old mistakes that can be switched back on, so that a guard is seen to catch them.
//!
//! ```text
//! test ─▶ OperatorConfig.defect ─▶ one branch where the rule is kept ─▶ the guard must object
//! ```
//!
//! Each switch brings back one defect with the smallest change, at the one place that keeps the rule. No flag of any
//! process sets one.

/// One old mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// A Node is cordoned without a record of why (operator.md §7).
    CordonWithoutRecord,
    /// A machine that serves again is not taken for a drain taken back (operator.md §7).
    ConfiguredIsNoCancel,
    /// Nothing is cleaned up when a machine leaves (OP-41).
    NoCleaningOnLeaving,
    /// Nothing is cleaned up when a resync lacks a machine (OP-42).
    NoCleaningByResync,
    /// A Node that a person cordoned is uncordoned after a drain is taken back.
    CordonNotRemembered,
    /// A drain that can wait evicts at once.
    VoluntaryNotSettled,
    /// A Pod that must not be disturbed is evicted like any other (OP-52).
    DisturbsAnyPod,
    /// A record found on a Node is carried out without an instruction (OP-34).
    RecordIsAnInstruction,
    /// Demand that is gone is believed to be withdrawn (OP-24).
    NoWithdrawalGuard,
    /// A cache is believed while it is being filled (OP-2).
    PartialCacheBelieved,
    /// A request is acknowledged when it is sent (OP-27).
    AcknowledgedWhenSent,
    /// Nodes are reported one by one, however many are silent (OP-33).
    MassFlipBelieved,
    /// Rows whose units are all equal are whole: one new Pod of another size moves every machine (OP-22).
    EqualUnitsWhole,
    /// A stuck Pod raises though a machine for it is coming (OP-61).
    ComingIgnored,
    /// Bins are rounded up to powers of two (OP-62).
    BinsRoundedUp,
    /// A roll-up leaves before the spares in it are on record (OP-67).
    SpareNotRecordedFirst,
    /// What an unplaceable Pod opened is kept (OP-63).
    DoubtKept,
    /// Only Pods that lack room are seen, not those that need a Node of their own (OP-60).
    AloneIgnored,
    /// Every request of a row that is short is told so, whether its Pod runs or not (OP-53).
    RunningPodsTold,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::CordonWithoutRecord,
        Self::ConfiguredIsNoCancel,
        Self::NoCleaningOnLeaving,
        Self::NoCleaningByResync,
        Self::CordonNotRemembered,
        Self::VoluntaryNotSettled,
        Self::DisturbsAnyPod,
        Self::RecordIsAnInstruction,
        Self::NoWithdrawalGuard,
        Self::PartialCacheBelieved,
        Self::AcknowledgedWhenSent,
        Self::MassFlipBelieved,
        Self::EqualUnitsWhole,
        Self::ComingIgnored,
        Self::BinsRoundedUp,
        Self::SpareNotRecordedFirst,
        Self::DoubtKept,
        Self::AloneIgnored,
        Self::RunningPodsTold,
    ];
}
