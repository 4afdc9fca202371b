//! Phases: how far a machine that is to leave has come, as readers are shown.

use bigfleet_model::{Leaving, MachineId, State, Time};

/// How far a machine has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeavingPhase {
    /// Its Need has nothing in its place (it is among the claims, RF-21).
    NoReplacement,
    /// What takes its place is on its way (it is held), or serves, and its own reclaim waits.
    ReplacementComing,
    /// It is being drained.
    Draining,
    /// No cluster has it.
    Out,
}

impl LeavingPhase {
    /// All of them, in the order a machine goes through them.
    pub const ALL: [Self; 4] = [
        Self::NoReplacement,
        Self::ReplacementComing,
        Self::Draining,
        Self::Out,
    ];

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoReplacement => "no_replacement",
            Self::ReplacementComing => "replacement_coming",
            Self::Draining => "draining",
            Self::Out => "out",
        }
    }

    /// Where a machine in this state is; `is_replaced` if another serves or is to serve in its place.
    pub(crate) fn of(state: State, is_replaced: bool) -> Self {
        match state {
            State::Configuring | State::Configured if is_replaced => Self::ReplacementComing,
            State::Configuring | State::Configured => Self::NoReplacement,
            State::Draining => Self::Draining,
            State::Speculative
            | State::Creating
            | State::Idle
            | State::Deleting
            | State::Failed => Self::Out,
        }
    }
}

/// Whose word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeavingSource {
    /// A person's.
    Admin,
    /// The provider's.
    Provider,
}

impl LeavingSource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Admin, Self::Provider];

    /// The word in messages and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Provider => "provider",
        }
    }
}

/// Why a machine whose replacement serves is not drained yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavingWait {
    /// Its scope is paused, or the shard has stopped itself.
    Paused,
    /// Its cluster has no operator to evict what runs on it.
    NoOperator,
    /// A drain was given up since evictions were blocked; it is tried again then.
    Blocked(Time),
    /// So many of its cluster leave at a time (rail 1).
    ReclaimCap,
    /// The next cycle.
    Cycle,
}

/// A machine that is to leave, as shown.
#[derive(Clone, Debug, PartialEq)]
pub struct LeavingView {
    /// The word that counts.
    pub word: Leaving,
    /// Whose it is.
    pub source: LeavingSource,
    /// Who asked; empty for a provider.
    pub by: String,
    /// Why; empty for a provider.
    pub reason: String,
    /// Since when it is marked.
    pub since: Time,
    /// When `soon` becomes `now`, or when the provider takes it away.
    pub deadline: Option<Time>,
    /// The admin's deadline has passed and it is not out.
    pub overdue: bool,
    /// How far it has come.
    pub phase: LeavingPhase,
    /// A cycle has looked at it since it is there; before, nobody has looked for its replacement.
    pub is_judged: bool,
    /// Since when it is there.
    pub phase_since: Option<Time>,
    /// Machines on their way to the Need it serves.
    pub replacements: Vec<MachineId>,
    /// Why it is not drained although it could be.
    pub waits: Option<LeavingWait>,
}
