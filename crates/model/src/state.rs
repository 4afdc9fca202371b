//! States: where a machine is in its life, and which steps between them are legal (model.md §2).
//!
//! ```text
//! Speculative ─▶ Creating ─▶ Idle ─▶ Configuring ─▶ Configured ─▶ Draining ─▶ Idle
//!      ▲                      └─▶ Deleting ─┐            every state that is on the way
//!      └────────────────────────────────────┘            somewhere may also end as Failed
//! ```

use std::fmt;

/// Where a machine is in its life. Unspecified does not exist: it is refused at ingest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// A quota slot: no host, no cluster.
    Speculative = 1,
    /// On its way from Speculative to Idle.
    Creating = 2,
    /// A host without a cluster.
    Idle = 3,
    /// On its way from Idle to Configured.
    Configuring = 4,
    /// Serving a cluster.
    Configured = 5,
    /// On its way from Configured to Idle.
    Draining = 6,
    /// On its way from Idle to Speculative.
    Deleting = 7,
    /// Broken; says why.
    Failed = 8,
}

/// On whose word a machine changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A step of the lifecycle: one of the 13 edges (ST-1).
    Step,
    /// Taking back a decision whose call never left (DC-7), or a drain on decision (RF-20).
    Rollback,
    /// The provider was seen to say so (ST-7). The only way out of Failed; the caller audits it.
    Adoption,
}

impl State {
    /// Every state, by number.
    pub const ALL: [Self; 8] = [
        Self::Speculative,
        Self::Creating,
        Self::Idle,
        Self::Configuring,
        Self::Configured,
        Self::Draining,
        Self::Deleting,
        Self::Failed,
    ];

    /// The wire number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The state with this wire number, if there is one.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// The word used in files and in speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::Speculative => "Speculative",
            Self::Creating => "Creating",
            Self::Idle => "Idle",
            Self::Configuring => "Configuring",
            Self::Configured => "Configured",
            Self::Draining => "Draining",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }

    /// Whether a machine rests here until someone acts.
    pub fn is_stable(self) -> bool {
        matches!(self, Self::Speculative | Self::Idle | Self::Configured)
    }

    /// Whether a machine serves or is being made to serve its cluster.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Configuring | Self::Configured)
    }

    /// Whether a cluster named with this state is dropped rather than refused (ST-5).
    pub(crate) fn drops_cluster(self) -> bool {
        matches!(self, Self::Idle | Self::Deleting | Self::Speculative)
    }

    /// Whether a machine in this state can be meant for a Need by intent (model.md §1).
    pub fn may_hold_intent(self) -> bool {
        matches!(self, Self::Creating | Self::Idle | Self::Draining)
    }

    /// Whether a machine may go from here to there on this word.
    pub fn may_become(self, to: Self, via: Via) -> bool {
        use State::*;
        match via {
            Via::Step => matches!(
                (self, to),
                (Speculative, Creating)
                    | (Creating, Idle | Failed)
                    | (Idle, Configuring | Deleting)
                    | (Configuring, Configured | Failed | Idle)
                    | (Configured, Draining)
                    | (Draining, Idle | Failed)
                    | (Deleting, Speculative | Failed)
            ),
            Via::Rollback => matches!(
                (self, to),
                (Creating, Speculative) | (Deleting, Idle) | (Draining, Configured)
            ),
            Via::Adoption => self != to,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A state number as a peer sent it; it may be none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateNumber(pub i32);

impl From<State> for StateNumber {
    fn from(state: State) -> Self {
        Self(state.number())
    }
}

impl fmt::Display for StateNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, State::from_number(self.0)) {
            (_, Some(state)) => f.write_str(state.word()),
            (0, None) => f.write_str("Unspecified"),
            (other, None) => write!(f, "State({other})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(via: Via) -> Vec<(State, State)> {
        let pairs = State::ALL
            .iter()
            .flat_map(|from| State::ALL.map(|to| (*from, to)));
        pairs
            .filter(|(from, to)| from.may_become(*to, via))
            .collect()
    }

    #[test]
    fn there_are_thirteen_steps_and_three_rollbacks() {
        assert_eq!(edges(Via::Step).len(), 13);
        assert_eq!(edges(Via::Rollback).len(), 3);
        let both = edges(Via::Rollback)
            .iter()
            .any(|edge| edges(Via::Step).contains(edge));
        assert!(!both, "a rollback is never a step");
    }

    /// EX-ST: the table's rows.
    #[test]
    fn ex_st_steps_outside_the_table_are_illegal() {
        assert!(!State::Idle.may_become(State::Configured, Via::Step));
        assert!(State::Configuring.may_become(State::Idle, Via::Step));
        assert!(!State::Failed.may_become(State::Idle, Via::Step));
        assert!(State::Failed.may_become(State::Idle, Via::Adoption));
        assert!(
            State::ALL
                .iter()
                .all(|to| !State::Failed.may_become(*to, Via::Step))
        );
    }

    /// ST-2.
    #[test]
    fn exactly_the_states_on_the_way_somewhere_may_fail() {
        for state in State::ALL {
            let transitional = !state.is_stable() && state != State::Failed;
            assert_eq!(
                state.may_become(State::Failed, Via::Step),
                transitional,
                "{state}"
            );
        }
    }

    #[test]
    fn numbers_out_of_range_are_shown_as_such() {
        assert_eq!(StateNumber(5).to_string(), "Configured");
        assert_eq!(StateNumber(0).to_string(), "Unspecified");
        assert_eq!(StateNumber(42).to_string(), "State(42)");
        assert_eq!(StateNumber(-1).to_string(), "State(-1)");
    }
}
